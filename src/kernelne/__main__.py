"""The `kernelne` command, also as `python -m kernelne`."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def _leave(number: int, frame: Any) -> None:
    # Nothing has been done yet, and an exception in the middle of an import may end anywhere.
    os.write(2, b"interrupted: nothing was written\n")
    os._exit(128 + number)


def main(args: list[str] | None = None) -> int:
    """Run the console script and return its exit code; Ctrl-C while modules are imported is one line."""
    before = signal.signal(signal.SIGINT, _leave)
    from kernelne.cli import main as run

    signal.signal(signal.SIGINT, before)
    return run(args)


if __name__ == "__main__":
    sys.exit(main())
