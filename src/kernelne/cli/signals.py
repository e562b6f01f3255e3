"""Signals that end a command: Ctrl-C, SIGTERM, SIGHUP.

The first one sets a flag and raises an exception, so that files are left whole; a second one ends the process
at once. Code of others may drop any exception, as Python itself does while a weak reference or ctypes calls
back. One that is freed before the command ends was lost: it is raised again, unless `answered()`. Within
`deferred()` there is no exception: the work looks at `stop_requested()` between its blocks.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_AGAIN = 0.05  # seconds until a lost exception is raised again
_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class CtrlC(KeyboardInterrupt):
    """Unlike its base class, it can be watched."""


class Stopped(SystemExit):
    """A signal asks the command to end; `code` is the exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.name = signal.Signals(number).name


class _State:
    number: int | None = None  # of the first signal
    n_deferred = 0
    watch: weakref.ref[BaseException] | None = None  # notices that the exception is lost
    again: threading.Timer | None = None


def stop_requested() -> int | None:
    """Return the number of the signal that asked the command to end, None if there was none."""
    return _State.number


def answered() -> None:
    """The command has heard the signal, and ends as it does without one."""
    _State.number = None
    _forget()


def _forget() -> None:
    """Do not raise the exception again."""
    _State.watch = None
    if _State.again is not None:
        _State.again.cancel()


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
    sys.unraisablehook = lambda lost: None if isinstance(lost.exc_value, CtrlC | Stopped) else hook(lost)
    try:
        yield
    finally:
        _forget()
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def _exception(number: int) -> BaseException:
    error = CtrlC() if number == signal.SIGINT else Stopped(number)
    _State.watch = weakref.ref(error, lambda _: _raise_later(number))
    return error


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
    """Raise an exception again that was freed: not here, where it would be lost once more."""
    with contextlib.suppress(ValueError):  # not in the main thread, which handles all signals
        signal.signal(number, _repeated)
        _State.again = threading.Timer(_AGAIN, _send, [number])
        _State.again.daemon = True
        _State.again.start()


def _send(number: int) -> None:
    if hasattr(signal, "pthread_kill"):  # to the main thread, which may be waiting
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)
