"""Ids that stay text: an array of strings that makes Python objects only of those asked for.

This module does not use Numba, because loading an embedding must not need it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

#: Ids that are looked at together.
_BLOCK = 2**20
#: Ids that are looked up one by one if all are in order; more are looked up by a pass over all.
_FEW = 2**12


class StringIds:
    """The ids of a mapped file, used like an array (n,) of objects; `column` is a pyarrow large_string array.

    An index, a slice, a mask or an array of rows gives a str or an ordinary array of them. `tolist()` and
    `numpy.asarray` decode all.
    """

    dtype = np.dtype(object)
    ndim = 1

    def __init__(self, column: Any) -> None:
        self.column = column
        self._ordered: bool | None = None

    def __len__(self) -> int:
        return len(self.column)

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    @property
    def size(self) -> int:
        return len(self)

    @property
    def nbytes(self) -> int:
        return int(self.column.nbytes)

    def __repr__(self) -> str:
        first = ", ".join(map(repr, self[:3].tolist()))
        return f"<StringIds: {first}{', …' if len(self) > 3 else ''} ({len(self):,})>"

    def __reduce__(self) -> tuple[Any, ...]:
        return StringIds, (self.column,)

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _BLOCK):
            yield from self.column.slice(start, _BLOCK).to_pylist()

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return _objects(self.column.slice(start, max(stop - start, 0)))
            rows = np.arange(start, stop, step)
        if np.ndim(rows) == 0:
            row = int(rows)
            if not -len(self) <= row < len(self):
                raise IndexError(f"row {row} of {len(self)} ids")
            return self.column[row % len(self)].as_py()
        wanted = np.asarray(rows)
        if wanted.dtype == bool:
            if wanted.shape != self.shape:
                raise IndexError(f"a mask of shape {wanted.shape} for {len(self)} ids")
            wanted = np.flatnonzero(wanted)
        wanted = wanted.astype(np.int64, copy=False)
        if wanted.size and (wanted.min() < -len(self) or wanted.max() >= len(self)):
            raise IndexError(f"rows outside of {len(self)} ids")
        flat = np.where(wanted < 0, wanted + len(self), wanted).ravel()
        return _objects(self.column.take(pa.array(flat))).reshape(wanted.shape)

    def tolist(self) -> list[str]:
        return list(self.column.to_pylist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("ids that stay text are decoded into a new array")
        return _objects(self.column).astype(dtype or object, copy=False)

    @property
    def ordered(self) -> bool:
        """Whether the ids ascend, by code point; so each of them is there once."""
        if self._ordered is None:
            self._ordered = ascends(self.column)
        return self._ordered

    def repeated(self) -> str | None:
        """Return an id that appears more than once, None if all are different."""
        if self.ordered:
            return None
        counts = self.column.value_counts()
        again = counts.field(0).filter(pc.greater(counts.field(1), 1))
        return str(again[0].as_py()) if len(again) else None

    def find(self, wanted: Any) -> NDArray[np.int64]:
        """Return the rows of a large_string column of ids, -1 for those that are not there."""
        if self.ordered and len(wanted) <= _FEW:
            return np.array([self._row_of(text) for text in wanted.to_pylist()], np.int64)
        if len(wanted) == len(self) and wanted.equals(_like(self.column, wanted)):
            return np.arange(len(self))
        return positions(wanted, self.column)

    def _row_of(self, text: str) -> int:
        row = bisect_left(range(len(self)), text, key=lambda at: self.column[at].as_py())
        return row if row < len(self) and self.column[row].as_py() == text else -1


def string_ids(offsets: NDArray[np.int64], text: NDArray[np.uint8]) -> StringIds | None:
    """Return the ids `text[offsets[i]:offsets[i + 1]]`, not copied; None if these are not UTF-8 text."""
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(text):
        return None
    for start in range(0, len(offsets), _BLOCK):
        if (np.diff(offsets[start : start + _BLOCK + 1]) < 0).any():
            return None
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    column = pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return StringIds(column)


def text_arrays(ids: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return a large_string array as offsets from 0 and the concatenated text."""
    _, ends, text = ids.buffers()
    offsets = np.frombuffer(ends, np.int64, len(ids) + 1, 8 * ids.offset)
    first, last = int(offsets[0]), int(offsets[-1])
    return offsets - first, np.frombuffer(text or b"", np.uint8, last - first, first)


def _objects(column: Any) -> NDArray[Any]:
    return np.fromiter(column.to_pylist(), object, len(column))


def _like(column: Any, other: Any) -> Any:
    return pa.chunked_array([column]) if isinstance(other, pa.ChunkedArray) else column


def ascends(column: Any) -> bool:
    """Whether each value of a column is larger than the one before it."""
    for start in range(0, len(column) - 1, _BLOCK):
        part = column.slice(start, _BLOCK + 1)
        if not pc.all(pc.less(part.slice(0, len(part) - 1), part.slice(1))).as_py():
            return False
    return True


def positions(wanted: Any, known: Any) -> NDArray[np.int64]:
    """Return the row in `known` of each of the ids `wanted`, -1 if it is not there.

    Only the ids wanted are hashed: all others pass by in blocks.
    """
    different = wanted.unique()
    rows = np.full(len(different) + 1, -1, np.int64)
    for start in reversed(range(0, len(known), _BLOCK)):  # so that the first of equal ids is kept
        at = pc.index_in(known.slice(start, _BLOCK), value_set=different)
        hits = np.flatnonzero(at.is_valid().to_numpy(zero_copy_only=False))
        rows[at.drop_null().to_numpy()[::-1]] = start + hits[::-1]
    found: NDArray[np.int64] = rows[pc.index_in(wanted, value_set=different).to_numpy()]
    return found
