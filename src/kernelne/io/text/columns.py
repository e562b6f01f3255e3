"""Columns of ids and weights from a text file of lines, chunk by chunk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne._common.memory import available_bytes
from kernelne.errors import FileFormatError
from kernelne.io.text import lines as text_lines
from kernelne.io.text import sniff, tokens


@dataclass(frozen=True)
class Layout:
    """How to read the lines of a file."""

    separator: int
    n_fields: int  # 0: any number
    places: tuple[int, ...]  # fields of ids, from 0
    first_line: int  # those before it are not data
    weight: int | None = None  # field of the weight
    may_lack_last_id: bool = False
    n_times: int = 0  # the last of `places` that hold times, which are always text
    told: tuple[str, ...] = ()  # the columns as errors call them, if this is a table of edges

    @property
    def between(self) -> str:
        return sniff.SEPARATORS.get(self.separator, repr(chr(self.separator)))


class NotIntegerError(Exception):
    """An id is not an integer, though they were to be read as integers."""


LineError = Callable[[int, int, str], FileFormatError]


def read_columns(
    path: str | os.PathLike[str],
    layout: Layout,
    as_strings: bool,
    line_error: LineError,
    bad: NDArray[np.int64] | None = None,
) -> tuple[list[Any], NDArray[np.float64] | None] | None:
    """Id columns as `read_ids` returns them, and weights; None when an id is not an integer but must be.

    The parameters are those of `column_blocks`.
    """
    pieces: list[list[Any]] = [[] for _ in layout.places]
    weight_pieces = [np.empty(0)]
    held, available = 0, available_bytes()
    try:
        for columns, weights, _ in column_blocks(path, layout, as_strings, line_error, bad):
            for column, piece in zip(pieces, columns, strict=False):
                column.append(piece)
            weight_pieces.append(weights)
            held += weights.nbytes + sum(piece.nbytes for piece in columns)
            text_lines.check_held(path, held, available)
    except NotIntegerError:
        return None
    joined = [join_pieces(column) for column in pieces]
    return joined, None if layout.weight is None else np.concatenate(weight_pieces)


def column_blocks(
    path: str | os.PathLike[str],
    layout: Layout,
    as_strings: bool,
    line_error: LineError,
    bad: NDArray[np.int64] | None = None,
    unpacked: int | None = None,
) -> Iterator[tuple[list[Any], NDArray[np.float64], int]]:
    """Yield the ids of some lines, an array for each column (none if these lines have no edges), their
    weights (empty if there are none), and the bytes of these lines.

    `line_error` makes the error of a status of `tokens`, the number of a line and its text. Lines that are no
    edges are left out and noted in `bad`, as `scan` says; without it they are an error. Raises
    NotIntegerError unless all ids are integers or `as_strings`. `unpacked` is as in `read_chunks`.
    """
    bad = np.empty(0, np.int64) if bad is None else bad
    bad[:] = 0
    count_ids, weighted = len(layout.places), layout.weight is not None
    as_text = np.array([as_strings or k >= count_ids - layout.n_times for k in range(count_ids)])
    lines = text_lines.BUFFER // 2 + 1  # no data line is shorter than "1\n"
    ids = np.empty((count_ids, 0 if as_strings else lines), np.int64)
    text = np.empty((count_ids, text_lines.BUFFER if as_text.any() else 0), np.uint8)
    ends = np.zeros((count_ids, lines + 1 if as_text.any() else 0), np.int32)
    weights = np.empty(lines if weighted else 0)
    line = 0
    for buffer, start, stop in text_lines.read_chunks(path, unpacked):
        text_lines.check_utf8(path, buffer, start, stop, line)
        count, status, position, line = tokens.scan(
            buffer, start, stop, line, layout.first_line, layout.separator, layout.n_fields,
            np.array(layout.places), count_ids - layout.may_lack_last_id, layout.weight if weighted else -1,
            as_text, (ids, weights, text, ends), bad,
        )  # fmt: skip
        if status == tokens.NOT_INTEGER:
            raise NotIntegerError
        if status != tokens.OK:
            raise line_error(status, line, text_lines.shown_at(buffer, position))
        columns = []
        for k in range(count_ids if count else 0):
            if as_text[k]:
                bounds = pa.py_buffer(ends[k, : count + 1].copy())
                data = pa.py_buffer(text[k, : ends[k, count]].copy())
                columns.append(pa.Array.from_buffers(pa.string(), count, [None, bounds, data]))
            else:
                columns.append(_compact(ids[k, :count]))
        yield columns, weights[:count].copy() if weighted else weights[:0], stop - start


def _compact(ids: NDArray[np.int64]) -> Any:
    fits = ids.min() >= -(2**31) and ids.max() < 2**31
    return pa.array(ids.astype(np.int32 if fits else np.int64))


def join_pieces(chunks: list[Any]) -> Any:
    """The chunks as one column of the smallest type that holds them all."""
    kinds = {chunk.type for chunk in chunks} or {pa.null()}
    # A string array, so also one of all the different ids, holds at most 2 GiB.
    if pa.string() in kinds and sum(chunk.nbytes for chunk in chunks) >= 2**31:
        kinds.add(pa.large_string())
    kind = pa.large_string() if pa.large_string() in kinds else pa.int64() if len(kinds) > 1 else kinds.pop()
    return pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind)
