"""The exceptions of the package, and its warnings.

KernelneError
├── InputError (ValueError)              an argument is invalid: nothing was changed
│   ├── ParameterError                   a parameter: its name, its value, which values are valid
│   ├── UnknownNodeError (KeyError)      a node id does not exist: similar ids are named
│   └── FileFormatError                  a file: path, line, the text found, what was expected
│       └── FolderError (IsADirectoryError)
├── OutputError                          a result could not be written; the old file, if any, is intact
├── MissingDependencyError (ImportError) an optional package is missing: the extra to install is named
└── DivergenceError (ArithmeticError)    training diverged: the parameters to lower are named
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


def shown(text: str, most: int = 2_000) -> str:
    """Return text that may come from a file as it can be shown: not too long, without control characters.

    A terminal would obey them, and marks that change the direction of writing would hide what follows.
    """
    if len(text) > most:
        half = most // 2
        text = f"{text[:half]} … {text[len(text) - half :]}"
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in " \n\t" else c.encode("unicode_escape").decode() for c in text
    )


class KernelneError(Exception):
    """Base class of all errors that kernelne raises."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*(shown(arg) if isinstance(arg, str) else arg for arg in args))

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses do not take the message as argument, but unpickling in a process pool would pass it.
        return _rebuild, (type(self), self.args, self.__dict__)


class InputError(KernelneError, ValueError):
    """An argument is invalid; nothing was changed."""


class ParameterError(InputError):
    """A parameter has an invalid value."""

    def __init__(self, name: str, value: object, remedy: str) -> None:
        super().__init__(f"{name}={value!r}: {remedy}")
        self.name = name
        self.value = value


class UnknownNodeError(InputError, KeyError):
    """A node id does not exist; also a KeyError, because `embedding[id]` raises it."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes


class FileFormatError(InputError):
    """A file has invalid content; `line` counts from 1 (None: the error concerns no single line)."""

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
    """A path is a folder, but a file was expected."""


class OutputError(KernelneError):
    """A result could not be written; an existing file is intact."""


class MissingDependencyError(KernelneError, ImportError):
    """An optional package is missing."""

    def __init__(self, package: str, extra: str | None = None) -> None:
        remedy = f"pip install {package.replace(' and ', ' ')}"
        if extra is not None:
            remedy += f", or in a clone of kernelne pip install -e '.[{extra}]'"
        super().__init__(f"this needs {package}: {remedy}")


class DivergenceError(KernelneError, ArithmeticError):
    """Training produced non-finite or exploding values."""


def warn(message: str) -> None:
    """Issue a UserWarning that points to the line outside this package from which it was called."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "kernelne":
        frame, level = frame.f_back, level + 1
    warnings.warn(shown(message), UserWarning, stacklevel=level)
