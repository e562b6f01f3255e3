"""Write files atomically: a reader sees either the old file or the complete new one; check input files."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernelne.errors import FileFormatError, FolderError, InputError, OutputError

PathLike = str | os.PathLike[str]

_TEMPORARY = re.compile(r"([0-9]{1,9})-[0-9a-f]{12}\.tmp")
_FOLDER = re.compile(r"kernelne-([0-9]{1,9})-\w{8}")
_OLD = 3600.0  # seconds


@contextmanager
def atomic_output(path: PathLike, overwrite: bool = False) -> Iterator[Path]:
    """Yield the path of a temporary file next to `path`; rename it to `path` when the block succeeds.

    The block may write to, truncate or replace the temporary file; its suffix has no meaning. If the block
    raises, including KeyboardInterrupt, the temporary file is removed and the file at `path` is unchanged.
    Symbolic links are followed. A file that is overwritten keeps its permissions.

    Raises InputError if `path` is not a regular file, or if it exists and `overwrite` is false, even if it
    was created during the block; OutputError if writing fails (disk full, missing folder).
    """
    target, old_mode = _check_target(path, overwrite)
    _sweep(target)
    temporary = _temporary_name(target)
    try:
        mode = _create(temporary)
        if old_mode is not None:
            mode = old_mode
            os.chmod(temporary, mode | stat.S_IRUSR | stat.S_IWUSR)  # never more permissive than the old file
        yield temporary
        _sync(temporary)
        os.chmod(temporary, mode)  # last: the old permissions may not allow opening it
        _put_in_place(temporary, target, path, overwrite)
    except OSError as error:
        raise _output_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    # The new file is already in place: a folder that cannot be synchronised (network file systems,
    # Windows) must not be reported as a failed write.
    with contextlib.suppress(OSError):
        _sync(target.parent)


@contextmanager
def folder_beside(path: PathLike) -> Iterator[Path]:
    """Yield a new folder next to the output `path` for temporary files; it is removed in the end."""
    target = Path(os.path.realpath(path))
    _sweep(target)
    folder = _temporary_name(target)
    try:
        folder.mkdir(mode=0o700)
        yield folder
    except OSError as error:
        raise _output_error(path, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def open_for_arrow(path: PathLike) -> Any:
    """Open a file for Arrow's threads to read.

    They may let a file go after the work is done. If it is one of Python's, they wait for Python then: a
    process that ends at that moment hangs or aborts.
    """
    import pyarrow as pa

    try:
        return pa.OSFile(os.fspath(path))
    except UnicodeError:  # Arrow takes only names in UTF-8
        with open(path, "rb") as file:
            return pa.OSFile(f"/dev/fd/{file.fileno()}")


def check_output(path: PathLike, overwrite: bool = False) -> None:
    """Raise the errors of `atomic_output` early, before hours of training.

    A file is created in the folder and removed: permission bits alone do not reveal read-only or full file
    systems.
    """
    target, _ = _check_target(path, overwrite)
    temporary = _temporary_name(target)
    try:
        _create(temporary)
    except OSError as error:
        raise _output_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _check_target(path: PathLike, overwrite: bool) -> tuple[Path, int | None]:
    """Return the file to write, links followed, and its current permissions (None: it does not exist)."""
    target = Path(path)
    try:
        target = Path(os.path.realpath(path))  # fails for a relative path if the working folder is gone
        status = os.stat(target)
    except (FileNotFoundError, NotADirectoryError):
        return target, None  # a missing folder is reported by the first attempt to write
    except OSError as error:
        raise _output_error(path, error) from error
    except ValueError as error:
        raise InputError(f"{os.fspath(path)!r} is not a valid file name: {error}") from error
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{os.fspath(path)}: is a folder, give the name of a file")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{os.fspath(path)}: is a device or a pipe, give the name of an ordinary file")
    if not overwrite:
        raise _exists_error(path)
    return target, stat.S_IMODE(status.st_mode)


def _temporary_name(target: Path) -> Path:
    # Truncated, because the longest allowed file name leaves no room for a suffix.
    return target.with_name(f".{target.name[:32]}.{os.getpid()}-{secrets.token_hex(6)}.tmp")


def _sweep(target: Path) -> None:
    """Remove temporary files and folders for `target` of processes that were killed, if an hour old.

    The number of a process says little: it may have been used again, or the folder be shared by machines.
    """
    start = f".{target.name[:32]}."
    with contextlib.suppress(OSError):
        for entry in os.scandir(target.parent):
            found = _TEMPORARY.fullmatch(entry.name[len(start) :]) if entry.name.startswith(start) else None
            if found is None or _is_alive(int(found[1])):
                continue
            with contextlib.suppress(OSError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime <= _OLD:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Yield a new folder, removed after the block; removes those that killed processes of this user left."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            found = _FOLDER.fullmatch(entry.name)
            if found is None or _is_alive(int(found[1])):
                continue
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if status.st_uid == os.getuid() and time.time() - status.st_mtime > _OLD:
                    shutil.rmtree(entry.path)
    with tempfile.TemporaryDirectory(prefix=f"kernelne-{os.getpid()}-") as folder:
        yield folder


def _is_alive(process: int) -> bool:
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # of another user
    return True


def _create(path: Path) -> int:
    """Create an empty file with the permissions of the umask (mkstemp would use 0600) and return them."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        return stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)


def _sync(path: Path) -> None:
    # Folders can only be opened for reading; Windows synchronises only files open for writing.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _put_in_place(temporary: Path, target: Path, path: PathLike, overwrite: bool) -> None:
    if overwrite:
        os.replace(temporary, target)
        return
    try:
        os.link(temporary, target)  # unlike a rename, fails if the target exists by now
        return
    except FileExistsError:
        raise _exists_error(path) from None
    except (OSError, AttributeError, NotImplementedError):
        pass  # no hard links (FAT, some network file systems): reserve the name, then rename over it
    try:
        _create(target)
    except FileExistsError:
        raise _exists_error(path) from None
    try:
        os.replace(temporary, target)
    except BaseException:
        target.unlink()
        raise


def _exists_error(path: PathLike) -> InputError:
    return InputError(f"{os.fspath(path)}: already exists; pass overwrite=True (--overwrite) to replace it")


def _output_error(path: PathLike, error: OSError) -> OutputError:
    reason = error.strerror or str(error).partition("\n")[0] or type(error).__name__
    folder = Path(path).parent
    if isinstance(error, FileNotFoundError) and not folder.exists():
        reason = f"there is no folder {folder}"
    return OutputError(f"{os.fspath(path)}: cannot be written: {reason}")


_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
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
    _XML: "is an XML file: name it .graphml if it is GraphML, or write the edges as text",
}


def check_input(path: str | os.PathLike[str]) -> int:
    """Check that a file can be read, and return its size in bytes.

    Raises FileNotFoundError if it does not exist, FolderError if it is a folder, FileFormatError if it is not
    a regular file (opening a named pipe would wait for a writer), InputError if it cannot be opened.
    """
    name = os.fspath(path)
    try:
        status = os.stat(name)
        if stat.S_ISREG(status.st_mode):
            os.close(os.open(name, os.O_RDONLY))  # permission bits alone are not sufficient
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: not a valid file name
        raise FileNotFoundError(f"{name}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or type(error).__name__}") from error
    if stat.S_ISDIR(status.st_mode):
        raise FolderError(path, "is a folder, give the name of a file")
    if not stat.S_ISREG(status.st_mode):
        raise FileFormatError(path, "is a device or a pipe, give the name of an ordinary file")
    return status.st_size


def compression_by_name(path: str | os.PathLike[str]) -> str | None:
    """How the file is compressed, gzip or zstd, by its name; None: it is not."""
    return _COMPRESSIONS.get(Path(path).suffix.lower())


def check_compressed(path: str | os.PathLike[str], compression: str) -> None:
    """Raise FileFormatError if a file with the suffix of `compression` is not compressed; it may be empty."""
    with open(path, "rb") as file:
        head = file.read(4)
    # A zstd file may start with a skippable frame.
    skips = compression == "zstd" and head[1:] == b"\x2a\x4d\x18" and head[0] >> 4 == 5
    if head and not skips and not head.startswith(_GZIP if compression == "gzip" else _ZSTD):
        raise FileFormatError(path, f"is not a {compression} file, despite its suffix")


def compression_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix of the compression found in the first bytes; empty if the file is not compressed."""
    with open(path, "rb") as file:
        head = file.read(4)
    return ".gz" if head.startswith(_GZIP) else ".zst" if head == _ZSTD else ""


def refuse_other_kinds(path: str | os.PathLike[str], head: bytes, xml: bool = False) -> None:
    """Raise FileFormatError if the first bytes show that the file is not text; `xml`: it may be XML."""
    text = head.removeprefix(BOM_UTF8).lstrip().lower()
    for magic, message in _KINDS.items():
        if xml and magic == _XML:
            continue
        if head.startswith(magic) or (text.startswith(magic) and magic.isascii()):
            raise FileFormatError(path, message.format(name=Path(path).name))
