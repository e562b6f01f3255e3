"""Files to read, looked at before they are opened, so that every reader refuses them in the same words."""

from __future__ import annotations

import os
import stat

from kernelne.errors import FileFormatError, FolderError, InputError


def check_input(path: str | os.PathLike[str]) -> int:
    """The size of the file in bytes, if it is one that can be read.

    Raises FileNotFoundError if it is not there, FolderError, FileFormatError if it is no ordinary file (to
    open a named pipe would wait for somebody to write to it), InputError if the system refuses to read it.
    """
    name = os.fspath(path)
    try:
        status = os.stat(name)
        if stat.S_ISREG(status.st_mode):
            os.close(os.open(name, os.O_RDONLY))  # permission bits alone do not tell
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a ValueError: no file can have this name
        raise FileNotFoundError(f"{name}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or type(error).__name__}") from error
    if stat.S_ISDIR(status.st_mode):
        raise FolderError(path, "is a folder, give the name of a file")
    if not stat.S_ISREG(status.st_mode):
        raise FileFormatError(path, "is a device or a pipe, give the name of an ordinary file")
    return status.st_size
