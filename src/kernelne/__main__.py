"""`python -m kernelne` is the command."""

import sys

from kernelne.cli import main

if __name__ == "__main__":
    sys.exit(main())
