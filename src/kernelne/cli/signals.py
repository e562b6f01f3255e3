"""Signals that end a command: Ctrl-C, SIGTERM, SIGHUP.

The first one sets a flag and raises an exception, so that files are left whole; a second one ends the process
at once. An exception raised while a weak reference or ctypes calls back would be lost: it is raised again.
Within `deferred()` there is no exception: the work looks at `stop_requested()` between its blocks.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_AGAIN = 0.05  # seconds until a lost exception is raised again
_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(SystemExit):
    """A signal asks the command to end; `code` is the exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.name = signal.Signals(number).name


class _State:
    number: int | None = None  # of the first signal
    n_deferred = 0


def stop_requested() -> int | None:
    """Return the number of the signal that asked the command to end, None if there was none."""
    return _State.number


@contextmanager
def deferred() -> Iterator[None]:
    """While the block runs, a first signal only sets the flag; its exception is raised at the end."""
    _State.n_deferred += 1
    try:
        yield
    finally:
        _State.n_deferred -= 1
    if _State.number is not None and not _State.n_deferred:
        raise _exception(_State.number)


@contextmanager
def handled() -> Iterator[None]:
    """Handle the signals during the block; what was set before is restored after it."""
    _State.number = None
    # What is ignored stays so: nohup ignores SIGHUP, and a shell SIGINT for what runs in the background.
    heard = [number for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, _first) for number in heard}
    hook = sys.unraisablehook

    def again(lost: Any) -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt | Stopped) and _State.number is not None:
            _raise_later(_State.number)
        else:
            hook(lost)

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def _exception(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else Stopped(number)


def _first(number: int, frame: Any) -> None:
    _State.number = number
    for ending in _ENDING:
        if signal.getsignal(ending) != signal.SIG_IGN:
            signal.signal(ending, signal.SIG_DFL)
    if not _State.n_deferred:
        raise _exception(number)


def _repeated(number: int, frame: Any) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise _exception(number)


def _raise_later(number: int) -> None:
    with contextlib.suppress(ValueError):  # not in the main thread, which handles all signals
        signal.signal(number, _repeated)
        timer = threading.Timer(_AGAIN, signal.raise_signal, [number])
        timer.daemon = True
        timer.start()
