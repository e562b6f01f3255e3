"""Compiled tokenizer of a whole text in memory, for formats whose lines may have any length."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.errors import FileFormatError
from kernelne.io.text import lines as text_lines
from kernelne.io.text.tokens import parse_integer, parse_number

_WORD = re.compile(rb"[^ \t\r\n]*")
_SPACE, _TAB, _NEWLINE, _RETURN = (ord(c) for c in " \t\n\r")


class Words:
    """The tokens of `data[start:stop]`, separated by whitespace, without comments.

    data    (n,) uint8, the whole text of the file `path`
    starts  (m,) int64, positions of the tokens in `data`
    rows    (m,) int64, their lines, counted from 0 including blank lines but not comment lines
    n_rows  the number of these lines
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        data: NDArray[np.uint8],
        comment: str,
        start: int = 0,
        stop: int | None = None,
    ) -> None:
        self.path, self.data = path, data
        stop = len(data) if stop is None else stop
        none = np.empty(0, np.int64)
        size, self.n_rows = _find_words(data, start, stop, ord(comment), none, none)
        self.starts, self.rows = np.empty(size, np.int64), np.empty(size, np.int64)
        _find_words(data, start, stop, ord(comment), self.starts, self.rows)

    def line(self, word: int) -> int:
        """Return the line number of a token, from 1."""
        return line_at(self.data, int(self.starts[word]))

    def text(self, word: int) -> str:
        start = int(self.starts[word])
        return text_lines.shown(_WORD.match(self.data[start : start + 400].tobytes())[0])  # type: ignore[index]

    def error(self, expected: str, word: int) -> FileFormatError:
        return FileFormatError(self.path, expected, line=self.line(word), text=self.text(word))

    def integers(self, words: Any, expected: str) -> NDArray[np.int64]:
        """Parse tokens, given by indices or a mask, as integers; `expected` is the error message."""
        starts = self.starts[words]
        values = np.empty(len(starts), np.int64)
        bad = _integers(self.data, starts, values)
        if bad >= 0:
            raise self.error(expected, int(np.arange(len(self.starts))[words][bad]))
        return values

    def weights(self, words: Any, expected: str) -> NDArray[np.float64]:
        """Parse tokens as weights: finite and not negative."""
        starts = self.starts[words]
        values = np.empty(len(starts))
        bad = _weights(self.data, starts, values)
        if bad >= 0:
            raise self.error(expected, int(np.arange(len(self.starts))[words][bad]))
        return values

    def strings(self) -> Any:
        """Return all tokens as a large_string array."""
        sizes = np.zeros(len(self.starts) + 1, np.int64)
        _sizes(self.data, self.starts, sizes)
        offsets = np.cumsum(sizes)
        text = np.empty(int(offsets[-1]), np.uint8)
        _copy(self.data, self.starts, offsets, text)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.large_string(), len(self.starts), buffers)


def line_at(data: NDArray[np.uint8], position: int) -> int:
    """Return the line number, from 1, of a position."""
    return 1 + int(np.count_nonzero(data[:position] == _NEWLINE))


@cached()
def blank_comments(data, comment):  # type: ignore[no-untyped-def]
    """Overwrite the text from each byte `comment` to the end of its line with blanks."""
    inside = False
    for i in range(len(data)):
        inside = (inside or data[i] == comment) and data[i] != _NEWLINE
        if inside:
            data[i] = _SPACE


@cached()
def _word_end(data, start):  # type: ignore[no-untyped-def]
    i = start
    while i < len(data) and data[i] != _SPACE and data[i] != _TAB and data[i] != _RETURN:
        if data[i] == _NEWLINE:
            break
        i += 1
    return i


@cached()
def _find_words(data, start, stop, comment, starts, rows):  # type: ignore[no-untyped-def]
    """Find tokens, or only count them if `starts` is empty; returns the numbers of tokens and of lines."""
    count = 0
    row = 0
    i = start
    while i < stop:
        first = i
        while first < stop and (data[first] == _SPACE or data[first] == _TAB):
            first += 1
        skip = first < stop and data[first] == comment
        while i < stop and data[i] != _NEWLINE and not skip:
            while i < stop and (data[i] == _SPACE or data[i] == _TAB or data[i] == _RETURN):
                i += 1
            if i == stop or data[i] == _NEWLINE:
                break
            if count < len(starts):
                starts[count] = i
                rows[count] = row
            count += 1
            i = _word_end(data, i)
        while i < stop and data[i] != _NEWLINE:
            i += 1
        i += 1
        row += not skip
    return count, row


@cached()
def _integers(data, starts, values):  # type: ignore[no-untyped-def]
    """Parse integers; returns the index of the first token that is not an integer, or -1."""
    for k in range(len(starts)):
        plain, value = parse_integer(data, starts[k], _word_end(data, starts[k]))
        if not plain:
            return k
        values[k] = value
    return -1


@cached()
def _weights(data, starts, values):  # type: ignore[no-untyped-def]
    """Parse weights; returns the index of the first token that is not a weight, or -1."""
    for k in range(len(starts)):
        values[k] = parse_number(data, starts[k], _word_end(data, starts[k]))
        if not 0 <= values[k] < np.inf:
            return k
    return -1


@cached()
def _sizes(data, starts, sizes):  # type: ignore[no-untyped-def]
    for k in range(len(starts)):
        sizes[k + 1] = _word_end(data, starts[k]) - starts[k]


@cached()
def _copy(data, starts, offsets, text):  # type: ignore[no-untyped-def]
    for k in range(len(starts)):
        size = offsets[k + 1] - offsets[k]
        text[offsets[k] : offsets[k + 1]] = data[starts[k] : starts[k] + size]
