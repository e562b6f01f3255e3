"""Two readers of edge lists based on pyarrow.csv, for comparison with ours: see text_readers.py."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from kernelne.errors import FileFormatError
from kernelne.io.text import lines as text_lines

NAMES = ["source", "target", "weight"]


class Layout(NamedTuple):
    """What the readers are told of a file: what stands between fields, whether there are weights."""

    separator: str = " "
    weighted: bool = False
    skip_bad: bool = False


class Edges(NamedTuple):
    """Columns of ids, weights or None, and the number of lines left out."""

    sources: Any
    targets: Any
    weights: Any
    n_bad: int = 0


def _read_options(layout: Layout, names: list[str], threads: bool = True) -> Any:
    # Where many rows are handed to Python, threads wait for one another: with two, 200,000 bad lines took
    # 14 times as long as with one.
    return pacsv.ReadOptions(
        column_names=names, block_size=text_lines.BUFFER, use_threads=threads and not layout.skip_bad
    )


def bare(path: str, layout: Layout) -> Edges:
    """pyarrow.csv on the file as it is."""
    names = NAMES[: 2 + layout.weighted]
    n_bad = 0

    def skip(row: Any) -> str:
        nonlocal n_bad
        comment = row.text.startswith(("#", "%"))
        n_bad += not comment
        return "skip" if comment or layout.skip_bad else "error"

    for kind, threads in ((pa.int64(), True), (pa.string(), True), (pa.string(), False)):
        n_bad = 0
        try:
            rows = pacsv.read_csv(
                path,
                _read_options(layout, names, threads),  # only without threads does an error tell the row
                pacsv.ParseOptions(
                    delimiter=layout.separator,
                    quote_char=False if layout.separator == " " else '"',
                    invalid_row_handler=skip,
                ),
                pacsv.ConvertOptions(
                    column_types=dict(zip(names, (kind, kind, pa.float64()), strict=False)), null_values=[]
                ),
            )
            break
        except pa.ArrowInvalid as error:
            refused = error
    else:
        number = re.search(r"Row #([0-9]+)", str(refused))
        raise FileFormatError(path, str(refused)[:200], line=int(number[1]) if number else None)
    weights = rows["weight"].to_numpy() if layout.weighted else None
    return Edges(rows["source"], rows["target"], weights, n_bad)


class Cleaned(io.RawIOBase):
    """The lines of a file, unpacked and checked, with one separator between fields, without comments."""

    def __init__(self, path: str, separator: str) -> None:
        self.separator = separator
        self.quotes = False
        self._path = path
        self._chunks = self._clean()
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        if not self._left:
            self._left = next(self._chunks, b"")
        size = min(len(target), len(self._left))
        target[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

    def _clean(self) -> Iterator[bytes]:
        line = 0
        for buffer, start, stop in text_lines.read_chunks(self._path):
            text_lines.check_utf8(self._path, buffer, start, stop, line)
            text = bytes(buffer[start:stop])
            line += text.count(b"\n")
            if b"\r" in text:
                text = text.replace(b"\r\n", b"\n")
                if b"\r" in text:
                    raise pa.ArrowInvalid("a carriage return inside a line")
            if b"#" in text or b"%" in text:
                text = re.sub(rb"(?m)^[ \t]*[#%][^\n]*\n", b"", text)
            if self.separator == " ":
                text = text.replace(b"\t", b" ")
                while b"  " in text:
                    text = text.replace(b"  ", b" ")
                text = text.replace(b"\n ", b"\n").replace(b" \n", b"\n").removeprefix(b" ")
            else:
                text = re.sub(rb"(?m)^[ \t]+$", b"", text) if b" \n" in text or b"\t\n" in text else text
                self.quotes = self.quotes or b'"' in text
            if text:
                yield text


def checked(path: str, layout: Layout) -> Edges:
    """pyarrow.csv on cleaned lines, what it read checked again."""
    try:
        return _checked(path, layout)
    except pa.ArrowInvalid as error:
        if layout.skip_bad:
            raise FileFormatError(path, str(error)[:200]) from None
        raise _blame(path, layout, error) from None


def _checked(path: str, layout: Layout) -> Edges:
    names = NAMES[: 2 + layout.weighted]
    n_bad = 0

    def skip(row: Any) -> str:
        nonlocal n_bad
        n_bad += 1
        return "skip" if layout.skip_bad else "error"

    stream = Cleaned(path, layout.separator)
    kinds = (pa.string(), pa.string(), pa.string() if layout.skip_bad else pa.float64())
    try:
        batches = pacsv.open_csv(
            io.BufferedReader(stream, text_lines.BUFFER),
            _read_options(layout, names),
            pacsv.ParseOptions(
                delimiter=layout.separator,
                quote_char=False if layout.separator == " " else '"',
                invalid_row_handler=skip,
            ),
            pacsv.ConvertOptions(column_types=dict(zip(names, kinds, strict=False)), null_values=[]),
        )
    except pa.ArrowInvalid as error:
        if str(error).startswith("Empty CSV"):
            raise FileFormatError(path, "no edges in the file") from None
        raise
    columns: tuple[list[Any], list[Any]] = ([], [])
    weights = [np.empty(0)]
    integers = True
    for batch in batches:
        ids = [batch["source"], batch["target"]]
        good = np.ones(len(batch), bool)
        if not stream.quotes and layout.separator != " ":
            ids = [pc.utf8_trim(column, " \t") for column in ids]
        for column in ids:
            if not stream.quotes:
                good &= np.asarray(pc.not_equal(column, ""))
        if layout.weighted:
            values = batch["weight"]
            if layout.skip_bad:
                number = pc.match_substring_regex(
                    values, r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
                )
                good &= np.asarray(number)
                values = pc.if_else(number, values, "0").cast(pa.float64())
            numbers = values.to_numpy(zero_copy_only=False)
            good &= (numbers >= 0) & (numbers < np.inf)
            weights.append(numbers[good])
        if not good.all():
            if not layout.skip_bad:
                raise pa.ArrowInvalid("an id or a weight is none")
            n_bad += int(np.count_nonzero(~good))
            ids = [column.filter(pa.array(good)) for column in ids]
        found = None if stream.quotes or not integers else [_integers(column) for column in ids]
        if found is None or any(column is None for column in found):
            if integers:  # all so far are plain, so their texts are those of the file
                for earlier in columns:
                    earlier[:] = [chunk.cast(pa.string()) for chunk in earlier]
            integers = False
            found = ids
        for place, column in zip(columns, found, strict=True):
            place.append(column)
    if not any(map(len, columns[0])):
        raise FileFormatError(path, "no edges in the file")
    kind = pa.int64() if integers else pa.string()
    sources, targets = (pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind) for chunks in columns)
    return Edges(sources, targets, np.concatenate(weights) if layout.weighted else None, n_bad)


def _integers(texts: Any) -> Any:
    """Strings as int32 or int64 if each is the one plain spelling of its number, else None."""
    try:
        numbers = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    if pc.all(pc.equal(numbers.cast(texts.type), texts)).as_py() is False:
        return None
    try:
        return numbers.cast(pa.int32())
    except pa.ArrowInvalid:
        return numbers


def _blame(path: str, layout: Layout, error: Exception) -> FileFormatError:
    """The error about the first bad line, found in a loop of Python."""
    number = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
    mark = None if layout.separator == " " else layout.separator.encode()
    for line, raw in text_lines.data_lines(path):
        fields = [field.strip() for field in raw.split(mark)]
        wrong = len(fields) != 2 + layout.weighted or not all(fields) or b"\r" in raw
        if wrong or (
            layout.weighted and not (number.fullmatch(fields[2]) and 0 <= float(fields[2]) < np.inf)
        ):
            return FileFormatError(path, str(error)[:200], line=line, text=text_lines.shown(raw))
    return FileFormatError(path, str(error)[:200])
