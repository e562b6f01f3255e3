"""Read text files line by line: decompressed in pieces, checked to be UTF-8."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne._common.memory import MEMORY, available_bytes, gib
from kernelne.errors import FileFormatError
from kernelne.io.files import check_compressed, check_input, compression_by_name, refuse_other_kinds

MAX_LINE = 1 << 20  # bytes
BUFFER = 2 * MAX_LINE  # a line of the maximum length always fits
SAMPLE = 100  # data lines used to detect the separator
_SAMPLE_BYTES = 1 << 17  # of them, beyond the first: they are split by slow code
_DATA_LINE = re.compile(rb"^[ \t\r]*[^ \t\r\n#%][^\n]*", re.MULTILINE)

#: Memory needed at least to read a whole file, as a multiple of its size; 7 (GraphML) to 15 (METIS) were
#: measured. A piece is the number of bytes unpacked between two checks of the size.
_HELD, _PIECE = 6, 1 << 24
#: Of a file read line by line only the columns are held, with what a graph needs to be built of them. What
#: it unpacks to may be larger than the memory, but not without end.
_HELD_COLUMNS, _UNPACKED = 3, 4


_REMEDY = f"{MEMORY}=SIZE or {MEMORY}=unlimited in the environment sets this limit by hand"


def read_chunks(
    path: str | os.PathLike[str], unpacked: int | None = None
) -> Iterator[tuple[NDArray[np.uint8], int, int]]:
    """Yield whole lines of the decompressed file as (buffer, start, stop); the buffer is reused.

    A compressed file is refused that unpacks to more than `unpacked` bytes, or a multiple of the free memory.
    """
    check_input(path)
    storage = bytearray(BUFFER + 1)
    buffer, view = np.frombuffer(storage, np.uint8), memoryview(storage)
    compression = compression_by_name(path)
    if compression is not None:
        check_compressed(path, compression)
    filled = total = 0
    start = None
    most, limit = unpacked, "is more than there is room for"
    if most is None and compression is not None and (available := available_bytes()) is not None:
        most, limit = _UNPACKED * available, f"is more than {_UNPACKED} times the free memory"
    # Opened by Python: pyarrow takes no name that is not UTF-8.
    with open(path, "rb", buffering=0) as file:
        stream: Any = file if compression is None else pa.input_stream(file, compression=compression)
        while True:
            try:
                size = stream.readinto(view[filled:BUFFER])
            except OSError as error:
                if compression is None:
                    raise
                raise FileFormatError(path, f"corrupt or truncated {compression} data ({error})") from None
            filled += size
            total += size
            if most is not None and compression is not None and total > most:
                raise _too_large(path, most, limit)
            if size and filled < BUFFER:
                continue
            stop = storage.rfind(b"\n", 0, filled) + 1
            if size == 0 or stop == 0:  # the end of the file, or a line too long, which `scan` rejects
                if filled > stop:
                    storage[filled] = ord("\n")
                    filled += 1
                stop = filled
            if start is None:
                refuse_other_kinds(path, bytes(storage[: min(filled, 64)]))
                start = len(BOM_UTF8) if storage.startswith(BOM_UTF8) else 0
            if stop > start:
                yield buffer, start, stop
            if size == 0:
                return
            start = 0
            filled -= stop
            view[:filled] = view[stop : stop + filled]


def read_bytes(path: str | os.PathLike[str], xml: bool = False) -> NDArray[np.uint8]:
    """Read the whole decompressed file, for formats not read line by line; `xml`: the file may be XML.

    Raises FileFormatError if it would not fit in memory: a small file may unpack to any size.
    """
    size, available = check_input(path), available_bytes()
    most = None if available is None else available // _HELD
    compression = compression_by_name(path)
    if compression is not None:
        check_compressed(path, compression)
    data, piece = bytearray(), memoryview(bytearray(min(_PIECE, max(size, 1) * 64)))
    with open(path, "rb") as file:
        stream: Any = file if compression is None else pa.input_stream(file, compression=compression)
        try:
            while most is None or max(size, len(data)) <= most:
                # Into memory of our own: `read` would leak its piece when the data are corrupt.
                if not (got := stream.readinto(piece)):
                    break
                data += piece[:got]
            else:
                assert most is not None
                told = f"needs {_HELD} times as much memory, and {gib(_HELD * most)} are free"
                raise _too_large(path, most, f"{told}; as an edge list it would be read in pieces")
        except OSError as error:
            if compression is None:
                raise
            raise FileFormatError(path, f"corrupt or truncated {compression} data ({error})") from None
    refuse_other_kinds(path, bytes(data[:64]), xml)
    return np.frombuffer(data, np.uint8)


def _too_large(path: str | os.PathLike[str], most: int, why: str) -> FileFormatError:
    unpacked = "" if compression_by_name(path) is None else ", unpacked,"
    text = f"the file{unpacked} is larger than {gib(most)}, which {why}; {_REMEDY}"
    return FileFormatError(path, text)


def check_held(path: str | os.PathLike[str], held: int, available: int | None) -> None:
    """Raise FileFormatError if the columns read so far, `held` bytes, leave no memory for their graph."""
    if available is not None and held * _HELD_COLUMNS > available:
        needed = gib(held * _HELD_COLUMNS)
        raise FileFormatError(
            path, f"needs more than {needed} of memory, and {gib(available)} are free; {_REMEDY}"
        )


def read_text(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """Read the whole decompressed UTF-8 file, with the BOM replaced by blanks; it must not be empty."""
    data = read_bytes(path)
    if data[: len(BOM_UTF8)].tobytes() == BOM_UTF8:
        data[: len(BOM_UTF8)] = ord(" ")
    if not len(data):
        raise FileFormatError(path, "the file is empty")
    check_utf8(path, data, 0, len(data), 0)
    return data


def check_utf8(
    path: str | os.PathLike[str], buffer: NDArray[np.uint8], start: int, stop: int, line: int
) -> None:
    """Raise FileFormatError if the lines after line number `line` are not UTF-8, or contain NUL."""
    part = buffer[start:stop]
    if part.min() > 0 and part.max() < 128:
        return
    zeros = np.flatnonzero(part == 0)
    bad = int(zeros[0]) if len(zeros) else stop - start
    try:
        str(part[:bad].data, "utf-8")
    except UnicodeDecodeError as error:
        bad = error.start
    if bad < stop - start:
        line += 1 + int(np.count_nonzero(part[:bad] == ord("\n")))
        raise FileFormatError(path, "not UTF-8 text", line=line, text=shown_at(part, bad))


def shown_at(buffer: NDArray[np.uint8], position: int) -> str:
    """Return the line at `position`, truncated if it is long."""
    begin = bytes(buffer[max(0, position - 200) : position]).rfind(b"\n") + 1 + max(0, position - 200)
    return shown(bytes(buffer[begin : begin + 400]).partition(b"\n")[0].removesuffix(b"\r"))


def shown(raw: bytes) -> str:
    """Return a line as text for a message, truncated if it is long."""
    return raw[:400].decode("utf-8", "backslashreplace")


def data_lines(path: str | os.PathLike[str], first_line: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of the lines that are neither blank nor comments; slow, meant for few lines."""
    line = 0
    for buffer, start, stop in read_chunks(path):
        check_utf8(path, buffer, start, stop, line)
        chunk = bytes(buffer[start:stop])
        place = 0
        # Found by one pattern: a file may have millions of blank lines before the first of data.
        for found in _DATA_LINE.finditer(chunk):
            line += chunk.count(b"\n", place, found.start())
            place = found.start()
            if line + 1 >= first_line:
                yield line + 1, found[0].removesuffix(b"\r")
        line += chunk.count(b"\n", place)


def sample_lines(path: str | os.PathLike[str]) -> list[tuple[int, bytes]]:
    """Return number and bytes of the first data lines, as many as are needed to tell the columns."""
    sample: list[tuple[int, bytes]] = []
    size = 0
    for line, raw in data_lines(path):
        size += len(raw)
        if sample and size > _SAMPLE_BYTES:
            break
        sample.append((line, raw))
        if len(sample) == SAMPLE:
            break
    return sample
