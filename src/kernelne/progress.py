"""Showing how far a long run is: a bar on a terminal, lines in a log, or a function of the user's."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: None: a bar if standard error is a terminal. True: a bar, or lines if it is none. False: nothing.
#: A function is called with (walks done, walks in all, loss per pair).
Progress = bool | Callable[[int, int, float], Any] | None
Report = Callable[[int, int, float], None]

#: Seconds before anything is shown, before the wait for the first block is explained, between lines of a log.
_PATIENCE = 1.0
_BEFORE_EXPLAINING = 2.0
_BETWEEN_LINES = 10.0


@contextmanager
def reporting(progress: Progress) -> Iterator[Report]:
    """A function to call after every block of work; what it shows is gone when the context ends."""
    if callable(progress):
        yield progress
    elif progress is False or sys.stderr is None or (progress is None and not sys.stderr.isatty()):
        yield _ignore
    else:
        shown = _Bar() if sys.stderr.isatty() else _Lines()
        try:
            yield shown.report
        finally:
            shown.close()


def _ignore(done: int, total: int, loss: float) -> None:
    pass


class _Shown:
    """Speed and time left, counted from the first block: before it lies the compiling of a first run."""

    def __init__(self) -> None:
        self.first: tuple[float, int] | None = None
        self.explanation = threading.Timer(_BEFORE_EXPLAINING, self._explain)
        self.explanation.daemon = True
        self.explanation.start()

    def _explain(self) -> None:
        print("preparing: compiling (first run only), counting visits …", file=sys.stderr, flush=True)

    def report(self, done: int, total: int, loss: float) -> None:
        now = time.monotonic()
        if self.first is None:
            self.explanation.cancel()
            self.first = now, done
        elapsed = now - self.first[0]
        if elapsed >= _PATIENCE:
            self.show(done, total, loss, (done - self.first[1]) / elapsed, elapsed)

    def show(self, done: int, total: int, loss: float, speed: float, elapsed: float) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.explanation.cancel()


class _Lines(_Shown):
    """A line now and then: walks, walks a second, loss, seconds left."""

    due = 0.0

    def show(self, done: int, total: int, loss: float, speed: float, elapsed: float) -> None:
        if elapsed >= self.due:
            self.due = elapsed + _BETWEEN_LINES
            print(
                f"{done / total:4.0%}  {done:,} of {total:,} walks  {speed:,.0f} walks/s  "
                f"loss {loss:.4f}  {(total - done) / speed:.0f} s left",
                file=sys.stderr,
                flush=True,
            )


class _Bar(_Shown):
    """A rich progress bar that appears once a run has taken a second."""

    bar: Any = None

    def show(self, done: int, total: int, loss: float, speed: float, elapsed: float) -> None:
        if self.bar is None:
            self._open(total)
        self.bar.update(self.task, completed=done, speed=f"{speed:,.0f} walks/s", loss=f"loss {loss:.4f}")

    def _open(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self.bar = RichProgress(
            TextColumn("training"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[speed]}"),
            TextColumn("{task.fields[loss]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.bar.add_task("training", total=total, speed="", loss="")
        self.bar.start()

    def close(self) -> None:
        super().close()
        if self.bar is not None:
            self.bar.stop()
