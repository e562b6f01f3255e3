"""Progress of a long run: a bar on a terminal, lines in a log, or calls of a user's function."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

#: None: a bar if standard error is a terminal or in a notebook. True: a bar, or else lines. False: nothing.
#: A function is called with (walks done, total walks, loss per pair).
Progress = bool | Callable[[int, int, float], Any] | None
Report = Callable[[int, int, float], None]

#: Seconds before progress is shown, before the message about the preparation, and between lines of a log.
_PATIENCE = 1.0
_BEFORE_EXPLAINING = 2.0
_BETWEEN_LINES = 10.0
_BETWEEN_FRAMES = 0.2  # of a notebook


@contextmanager
def reporting(progress: Progress, task: str = "training", unit: str = "walks") -> Iterator[Report]:
    """Context manager that gives a function to call after every block; a bar is removed at the end.

    task: name of the work. unit: name of what is counted. A loss of nan is not shown.
    """
    if callable(progress):
        yield lambda done, total, loss: _call(progress, done, total, loss)
    elif (
        progress is False
        or sys.stderr is None
        or (progress is None and not sys.stderr.isatty() and not in_notebook())
    ):
        yield _ignore
    else:
        kind = _Bar if sys.stderr.isatty() else _Notebook if in_notebook() else _Lines
        shown = kind(task, unit)
        try:
            yield shown.report
        finally:
            shown.close()


def _call(function: Callable[[int, int, float], Any], done: int, total: int, loss: float) -> None:
    function(done, total, loss)  # the result is ignored: True would end the run


def _ignore(done: int, total: int, loss: float) -> None:
    pass


def _loss(loss: float) -> str:
    return "" if math.isnan(loss) else f"loss {loss:.4f}  "


class _Shown:
    """Base class that computes the speed; in training after the first block, as compiling comes before."""

    def __init__(self, task: str, unit: str) -> None:
        self.task = task
        self.unit = unit
        self.first: tuple[float, int] | None = None
        self.explanation = threading.Timer(_BEFORE_EXPLAINING, self._explain)
        self.explanation.daemon = True
        if task == "training":
            self.explanation.start()
        else:
            self.first = time.monotonic(), 0

    def _explain(self) -> None:
        print("preparing: compiling (first run only), counting visits …", file=sys.stderr, flush=True)

    def report(self, done: int, total: int, loss: float) -> None:
        now = time.monotonic()
        if self.first is None:
            self.explanation.cancel()
            self.first = now, done
        elapsed = now - self.first[0]
        if elapsed >= _PATIENCE and done > self.first[1]:
            self.show(done, total, loss, (done - self.first[1]) / elapsed, elapsed)

    def rate(self, speed: float) -> str:
        return f"{speed:,.{0 if speed >= 1 else 2}f} {self.unit}/s"

    def show(self, done: int, total: int, loss: float, speed: float, elapsed: float) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.explanation.cancel()


def _can_show() -> bool:
    return sys.stderr.isatty() or in_notebook()


def in_notebook() -> bool:
    """Whether this runs in a Jupyter notebook, which shows HTML."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


class _Notebook(_Shown):
    """A bar in a notebook, shown once a run has taken two seconds and removed at its end."""

    handle: Any = None
    due = _BEFORE_EXPLAINING

    def _explain(self) -> None:
        """Show no text: it would stay in the notebook."""

    def show(self, done: int, total: int, loss: float, speed: float, elapsed: float) -> None:
        if elapsed < self.due:
            return
        tools = import_module("IPython.display")
        self.due = elapsed + _BETWEEN_FRAMES
        words = f"{done / total:.0%}  {self.rate(speed)}  {_loss(loss)}{(total - done) / speed:.0f} s left"
        bar = f'{self.task} <progress value="{done}" max="{total}"></progress> {words}'
        if self.handle is None:
            self.handle = tools.display(tools.HTML(bar), display_id=True)
        else:
            self.handle.update(tools.HTML(bar))

    def close(self) -> None:
        super().close()
        if self.handle is not None:
            self.handle.update(import_module("IPython.display").HTML(""))


class _Lines(_Shown):
    """Prints lines to a log: share done, speed, loss, seconds left."""

    due = 0.0

    def show(self, done: int, total: int, loss: float, speed: float, elapsed: float) -> None:
        if elapsed >= self.due:
            self.due = elapsed + _BETWEEN_LINES
            print(
                f"{done / total:4.0%}  {done:,} of {total:,} {self.unit}  {self.rate(speed)}  "
                f"{_loss(loss)}{(total - done) / speed:.0f} s left",
                file=sys.stderr,
                flush=True,
            )


class _Bar(_Shown):
    """A progress bar of rich, shown once a run has taken a second."""

    bar: Any = None

    def show(self, done: int, total: int, loss: float, speed: float, elapsed: float) -> None:
        if self.bar is None:
            self._open(total)
        self.bar.update(self.row, completed=done, speed=self.rate(speed), loss=_loss(loss))

    def _open(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self.bar = RichProgress(
            TextColumn(self.task),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[speed]}"),
            TextColumn("{task.fields[loss]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self.row = self.bar.add_task(self.task, total=total, speed="", loss="")
        self.bar.start()

    def close(self) -> None:
        super().close()
        if self.bar is not None:
            self.bar.stop()
