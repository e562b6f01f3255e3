"""The `kernelne` command, also as `python -m kernelne`."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from typing import Any


def _leave(number: int, frame: Any) -> None:
    # Nothing has been done yet, and an exception in the middle of an import may end anywhere.
    os.write(2, b"interrupted: nothing was written\n")
    os._exit(128 + number)


def _end() -> None:
    """After a signal, end without taking modules down: LLVM may have been left in any state."""
    signals = sys.modules.get("kernelne.cli.signals")
    number = signals and signals.stop_requested()
    if number:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # closed, or none
                stream.flush()
        os._exit(128 + number)


def main(args: list[str] | None = None) -> int:
    """Run the console script and return its exit code; Ctrl-C while modules are imported is one line."""
    atexit.register(_end)  # what is registered first is called last
    before = signal.signal(signal.SIGINT, _leave)
    from kernelne.cli import main as run

    signal.signal(signal.SIGINT, before)
    return run(args)


if __name__ == "__main__":
    sys.exit(main())
