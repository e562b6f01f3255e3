"""Every exception the package raises on purpose.

KernelneError
├── InputError (ValueError)              something given to us is wrong: nothing was changed
│   ├── ParameterError                   a parameter: its name, its value, what would do
│   ├── UnknownNodeError (KeyError)      a node id that is not there: says which are close to it
│   └── FileFormatError                  a file: path, line, the text found, what was expected
│       └── FolderError (IsADirectoryError)
├── OutputError                          a result could not be written; the old file, if any, is intact
├── MissingDependencyError (ImportError) an optional package is needed: says which extra brings it
└── DivergenceError (ArithmeticError)    training blew up: says what to lower
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any


def _rebuild(kind: type[KernelneError], args: tuple[Any, ...], state: dict[str, Any]) -> KernelneError:
    error: KernelneError = (OSError if issubclass(kind, OSError) else kind).__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class KernelneError(Exception):
    """Base of all errors raised on purpose by kernelne."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses take other arguments than the message: a process pool must not call them with it.
        return _rebuild, (type(self), self.args, self.__dict__)


class InputError(KernelneError, ValueError):
    """Something given to us is wrong; nothing was changed."""


class ParameterError(InputError):
    """A parameter has a value that cannot work."""

    def __init__(self, name: str, value: object, remedy: str) -> None:
        super().__init__(f"{name}={value!r}: {remedy}")
        self.name = name
        self.value = value


class UnknownNodeError(InputError, KeyError):
    """A node id that is not there; also a KeyError, as it is raised by `embedding[id]`."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes


class FileFormatError(InputError):
    """A file does not hold what it should; `line` counts from 1 (None: not tied to a line)."""

    def __init__(
        self, path: str | os.PathLike[str], expected: str, *, line: int | None = None, text: str | None = None
    ) -> None:
        where = os.fspath(path) if line is None else f"{os.fspath(path)}:{line}"
        found = "" if text is None else f" (found {text[:80] + '…' if len(text) > 80 else text!r})"
        super().__init__(f"{where}: {expected}{found}")
        self.path = os.fspath(path)
        self.line = line
        self.text = text


class FolderError(FileFormatError, IsADirectoryError):
    """A folder where a file should be."""


class OutputError(KernelneError):
    """A result could not be written; what was there before is intact."""


class MissingDependencyError(KernelneError, ImportError):
    """An optional package is needed for what was asked."""

    def __init__(self, package: str, extra: str | None = None) -> None:
        wanted = package if extra is None else f"'kernelne[{extra}]'"
        super().__init__(f"this needs {package}: pip install {wanted}")


class DivergenceError(KernelneError, ArithmeticError):
    """Training produced non-finite or exploding values."""


def warn(message: str) -> None:
    """Issue a UserWarning for the line outside this package that led here, however deep the call."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "kernelne":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)
