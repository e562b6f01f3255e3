"""MAT-files of version 5 (MATLAB's -v6 and -v7), with declared sizes checked before use.

SciPy is not used: on damaged tags its compiled reader accesses memory out of bounds and crashes.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelne._common.memory import available_bytes

_HEADER = 128  # bytes before the first variable
_HEAD = 4096  # bytes that contain flags, shape and name of a variable: names have at most 63 letters
_RATIO = 1032  # maximum compression ratio of zlib
_HELD = 4  # memory needed at least to read a matrix, as a multiple of its size

_MATRIX, _PACKED, _BYTES = 14, 15, 2
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_SHAPE, _NAME = {5, 6}, {1, 2, 16}  # types of 32-bit integers, and of text
_OPAQUE = 17  # a class without a shape
_CLASSES = {
    1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse", 6: "double", 7: "single", 8: "int8",
    9: "uint8", 10: "int16", 11: "uint16", 12: "int32", 13: "uint32", 14: "int64", 15: "uint64",
    16: "function",
}  # fmt: skip
_COMPLEX, _LOGICAL = 0x800, 0x200  # flags

Element = tuple[int, memoryview]


class Variable(NamedTuple):
    """A variable as the file declares it.

    start, stop: its bytes in the file; packed: whether compressed by zlib; order: byte order, < or >
    """

    shape: tuple[int, ...]
    kind: str
    is_complex: bool
    is_logical: bool
    start: int
    stop: int
    packed: bool
    order: str


class TooSmallError(ValueError):
    """The file has too little data for a declared shape."""


def find_variables(file: BinaryIO) -> dict[str, Variable]:
    """Return the variables of an open file by name; raises ValueError or zlib.error if it is damaged."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    order = _byte_order(file.read(_HEADER))
    found = {}
    place = _HEADER
    while place < size:
        file.seek(place)
        kind, length = _tag(file.read(8), order)
        start, place = place + 8, place + 8 + length
        if kind not in (_MATRIX, _PACKED) or place > size:
            raise ValueError(f"no variable, or a truncated one, at byte {start - 8}")
        head = file.read(min(length, _HEAD))
        if kind == _PACKED:
            head = _inside(zlib.decompressobj().decompress(head, _HEAD), order)[1]
        elements = _elements(memoryview(head), order)
        flags = int(_integers(_next(elements), order)[:1].sum())
        if flags & 0xFF == _OPAQUE:
            continue
        shape, name = _next(elements), _next(elements)
        if shape[0] not in _SHAPE or name[0] not in _NAME or len(shape[1]) < 8:
            raise ValueError(f"the variable at byte {start - 8} has no shape or name")
        what = _CLASSES.get(flags & 0xFF, "unknown")
        if flags & _LOGICAL and what != "sparse":
            what = "logical"
        found[bytes(name[1]).decode("utf-8", "replace")] = Variable(
            tuple(_integers(shape, order).tolist()), what, bool(flags & _COMPLEX),
            bool(flags & _LOGICAL), start, place, kind == _PACKED, order,
        )  # fmt: skip
    found.pop("", None)  # internal data of MATLAB functions
    return found


def load_matrix(file: BinaryIO, variable: Variable) -> Any:
    """Load a real, two-dimensional variable as a csc_array of float64 without duplicates.

    Raises TooSmallError if there is too little data for its shape, ValueError or zlib.error if it is damaged.
    """
    file.seek(variable.start)
    content = file.read(variable.stop - variable.start)
    if variable.packed:
        content = _unpack(content, variable.order)
    elements = _elements(memoryview(content), variable.order)
    for _ in range(3):  # flags, shape and name
        _next(elements)
    n_rows, n_columns = variable.shape
    if variable.kind != "sparse":
        dense = _numbers(_next(elements), variable.order)
        if len(dense) < max(math.prod(variable.shape), n_columns):  # no columns without rows
            raise TooSmallError
        matrix = scipy.sparse.csc_array(dense.reshape(variable.shape, order="F"))
        return matrix.astype(np.float64)
    rows, starts = (_integers(_next(elements), variable.order) for _ in range(2))
    if len(starts) <= n_columns:
        raise TooSmallError
    used = int(starts[n_columns])  # more space may be allocated
    kind, data = _next(elements)
    if variable.is_logical and len(data) in (used, len(rows)):
        kind = _BYTES  # although MATLAB declares doubles
    values = _numbers((kind, data), variable.order)
    starts, rows = starts[: n_columns + 1], rows[: max(used, 0)]
    # Checked here because SciPy does not check columns that are declared empty.
    if starts[0] != 0 or (np.diff(starts) < 0).any() or min(len(rows), len(values)) < used:
        raise ValueError("the column pointers of a sparse matrix do not match its entries")
    if len(rows) and not 0 <= rows.min() <= rows.max() < n_rows:
        raise ValueError(f"entries of a sparse matrix are outside its {n_rows} rows")
    parts = (values[:used].astype(np.float64), rows, starts)
    matrix = scipy.sparse.csc_array(parts, shape=(n_rows, n_columns))
    matrix.sum_duplicates()
    return matrix


def _byte_order(header: bytes) -> str:
    if header.startswith(b"\x89HDF") or header[124:] in (b"\0\2IM", b"\2\0MI"):
        raise NotImplementedError("7.3 (HDF5)")
    if 0 in header[:4]:
        raise NotImplementedError("4")
    order = {b"IM": "<", b"MI": ">"}.get(header[126:])
    if order is None:
        raise ValueError("the header is not that of a MAT-file of version 5")
    return order


def _tag(data: bytes, order: str) -> tuple[int, int]:
    """Return type and size of an element."""
    if len(data) < 8:
        raise ValueError("the file is truncated")
    kind, length = struct.unpack(order + "II", data[:8])
    return kind, length


def _inside(data: bytes, order: str) -> tuple[int, bytes]:
    """Return the declared size of a matrix, and its available bytes."""
    kind, length = _tag(data, order)
    if kind != _MATRIX:
        raise ValueError(f"expected a matrix, found an element of type {kind}")
    return length, data[8:]


def _unpack(data: bytes, order: str) -> bytes:
    declared, _ = _inside(zlib.decompressobj().decompress(data, _HEAD), order)
    available = available_bytes()
    if declared > _RATIO * len(data):
        raise TooSmallError
    if available is not None and _HELD * declared > available:
        raise ValueError(f"a matrix of {declared} bytes, unpacked, does not fit in memory")
    # One more byte than declared, so that the end of the data and thus the checksum is reached.
    _, matrix = _inside(zlib.decompressobj().decompress(data, 8 + declared + 1), order)
    if len(matrix) != declared:
        raise ValueError(f"the unpacked data does not have the declared {declared} bytes")
    return matrix


def _elements(data: memoryview, order: str) -> Iterator[Element]:
    """Yield type and bytes of the elements of a matrix."""
    place = 0
    while place < len(data):
        kind, length = _tag(bytes(data[place : place + 8]), order)
        start = place + 8
        place = start + -(-length // 8) * 8
        if kind >> 16:  # the small format: type and size in four bytes, data in the next four
            kind, length, place, start = kind & 0xFFFF, kind >> 16, start, start - 4
            if length > 4:
                raise ValueError(f"a small element of {length} bytes")
        if start + length > len(data):
            raise ValueError("an element exceeds its variable")
        yield kind, data[start : start + length]


def _next(elements: Iterator[Element]) -> Element:
    found = next(elements, None)
    if found is None:
        raise ValueError("a variable is truncated")
    return found


def _numbers(element: Element, order: str) -> NDArray[Any]:
    kind, data = element
    if kind not in _NUMBERS:
        raise ValueError(f"expected numbers, found an element of type {kind}")
    numbers = np.frombuffer(data, order + _NUMBERS[kind])
    return numbers.astype(numbers.dtype.newbyteorder("="), copy=False)


def _integers(element: Element, order: str) -> NDArray[np.int64]:
    numbers = _numbers(element, order)
    if numbers.dtype.kind == "f":
        raise ValueError("expected integers, found floating-point numbers")
    return numbers.astype(np.int64)
