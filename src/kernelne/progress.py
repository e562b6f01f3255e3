"""Showing how far a long run is: a bar on a terminal, lines in a log, or a function of the user's."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

#: None: a bar if standard error is a terminal. True: a bar, or lines if it is none. False: nothing.
#: A function is called with (walks done, walks in all, loss per pair).
Progress = bool | Callable[[int, int, float], Any] | None
Report = Callable[[int, int, float], None]

#: Seconds before anything is shown, and between two lines of a log.
_PATIENCE = 1.0
_BETWEEN_LINES = 10.0


@contextmanager
def reporting(progress: Progress) -> Iterator[Report]:
    """A function to call after every block of work; what it shows is gone when the context ends."""
    if callable(progress):
        yield progress
    elif progress is False or (progress is None and not sys.stderr.isatty()):
        yield lambda done, total, loss: None
    elif sys.stderr.isatty():
        bar = _Bar()
        try:
            yield bar.show
        finally:
            bar.close()
    else:
        yield _Lines(sys.stderr).show


class _Lines:
    """A line now and then: walks, walks a second, loss, seconds left."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.start = time.monotonic()
        self.due = self.start + _PATIENCE

    def show(self, done: int, total: int, loss: float) -> None:
        now = time.monotonic()
        if now >= self.due:
            self.due = now + _BETWEEN_LINES
            speed = done / (now - self.start)
            left = (total - done) / speed
            print(
                f"{done / total:4.0%}  {done:,} of {total:,} walks  {speed:,.0f} walks/s  "
                f"loss {loss:.4f}  {left:.0f} s left",
                file=self.stream,
                flush=True,
            )


class _Bar:
    """A rich progress bar that appears once a run has taken a second."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.bar: Any = None

    def show(self, done: int, total: int, loss: float) -> None:
        elapsed = time.monotonic() - self.start
        if self.bar is None:
            if elapsed < _PATIENCE:
                return
            self._open(total)
        self.bar.update(
            self.task, completed=done, speed=f"{done / elapsed:,.0f} walks/s", loss=f"loss {loss:.4f}"
        )

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
        if self.bar is not None:
            self.bar.stop()
