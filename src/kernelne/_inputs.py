"""Files to read, looked at before they are opened, so that every reader refuses them in the same words."""

from __future__ import annotations

import os
import stat
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path

from kernelne.errors import FileFormatError, FolderError, InputError

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_XML = b"<?xml"
_KINDS = {
    b"PK\x03\x04": "is an Excel or zip file: save it as CSV, or unpack it",
    b"\xd0\xcf\x11\xe0": "is an old Excel file: save it as CSV",
    _GZIP: "is compressed by gzip: name it {name}.gz",
    _ZSTD: "is compressed by zstd: name it {name}.zst",
    BOM_UTF16_LE: "is UTF-16: save it as UTF-8",
    BOM_UTF16_BE: "is UTF-16: save it as UTF-8",
    b"%pdf-": "is a PDF file: save the table in it as CSV",
    b"<!doctype html": "is a web page (HTML): download the file itself",
    b"<html": "is a web page (HTML): download the file itself",
    _XML: "is an XML file: name it .graphml if it is one of GraphML, or write the edges as text",
}


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


def check_compressed(path: str | os.PathLike[str], compression: str) -> None:
    """Raise FileFormatError if the file, by its name compressed, is not; an empty one is let through."""
    with open(path, "rb") as file:
        head = file.read(4)
    # zstd may start with a frame to skip.
    skips = compression == "zstd" and head[1:] == b"\x2a\x4d\x18" and head[0] >> 4 == 5
    if head and not skips and not head.startswith(_GZIP if compression == "gzip" else _ZSTD):
        raise FileFormatError(path, f"is not a {compression} file, in spite of its name")


def compression_by_content(path: str | os.PathLike[str]) -> str:
    """The suffix that goes with how a file is compressed, by its first bytes; empty if it is not."""
    with open(path, "rb") as file:
        head = file.read(4)
    return ".gz" if head.startswith(_GZIP) else ".zst" if head == _ZSTD else ""


def check_start(path: str | os.PathLike[str], head: bytes, xml: bool = False) -> None:
    """Raise FileFormatError if the first bytes are those of something else than text; `xml`: may be XML."""
    text = head.removeprefix(BOM_UTF8).lstrip().lower()
    for magic, message in _KINDS.items():
        if xml and magic == _XML:
            continue
        if head.startswith(magic) or (text.startswith(magic) and magic.isascii()):
            raise FileFormatError(path, message.format(name=Path(path).name))
