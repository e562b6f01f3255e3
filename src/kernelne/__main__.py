"""Run the command line with `python -m kernelne`."""

import sys

from kernelne.cli import main

if __name__ == "__main__":
    sys.exit(main())
