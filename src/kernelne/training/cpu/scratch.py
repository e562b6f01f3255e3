"""One thread's working memory for the training loop."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne.training.cpu.simd import TILE_COLUMNS, TILE_ROWS, WIDTH

#: Number of unused float32 values on both sides of a scratch array.
_APART = 1024
#: Number of float32 values in a cache line.
_LINE = 16


#: Walks sampled together, so that their random memory accesses overlap.
BATCH = 16


Floats = NDArray[np.float32]


class Scratch(NamedTuple):
    """One thread's working memory. Rows: positions of a walk; columns: its contexts, then its negatives.

    Both are padded to whole tiles, `dim` to whole registers; the padding has weight zero.
    """

    known: NDArray[np.int64]  # 1: the length of walks for which weights and targets are filled in
    walks: NDArray[np.int64]  # BATCH × length
    lengths: NDArray[np.int64]  # BATCH
    noise: NDArray[np.int64]  # BATCH × n_shared
    center_rows: NDArray[np.int64]  # rows: table row to which the step of a position is added
    context_rows: NDArray[np.int64]  # columns
    centers: Floats  # rows × dim, as read at the start of the walk
    contexts: Floats  # columns × dim
    center_norms: Floats  # rows, squared
    context_norms: Floats  # columns
    center_decay: Floats  # rows
    context_decay: Floats  # columns
    pairs: Floats  # rows: total weight of the pairs of a position
    weights: Floats  # rows · columns: weight of a pair in the loss
    targets: Floats  # rows · columns: 1 for a context, 0 for a negative
    D: Floats  # rows × columns: squared distances, then the weights of the gradient
    values: Floats  # kernels × rows · columns
    slopes: Floats  # kernels × rows · columns


def _up(n: int, to: int) -> int:
    return -(-n // to) * to


def floats(*shape: int) -> Floats:
    """Return zeros with a distance to all other arrays.

    LLVM checks at run time whether arrays are too close to be read and written as vectors, and if so sums in
    another order. The distance prevents this, so that the bits do not depend on the heap. It also keeps the
    memory of one thread apart from that of others: no two write to the same cache line.
    """
    size = math.prod(shape)
    return aligned(size + 2 * _APART)[_APART : _APART + size].reshape(shape)


def aligned(*shape: int) -> Floats:
    """Return zeros that begin with a cache line, so that no register is read from two lines."""
    size = math.prod(shape)
    room = np.zeros(size + _LINE, np.float32)
    begin = -room.ctypes.data // room.itemsize % _LINE
    return room[begin : begin + size].reshape(shape)


def make_scratch(length: int, n_shared: int, dim: int, n_kernels: int) -> Scratch:
    rows, columns, width = _up(length, TILE_ROWS), _up(length + n_shared, TILE_COLUMNS), _up(dim, WIDTH)

    def numbers(*shape: int) -> NDArray[np.int64]:
        return floats(2 * math.prod(shape)).view(np.int64).reshape(shape)

    return Scratch(
        known=numbers(1),
        walks=numbers(BATCH, length),
        lengths=numbers(BATCH),
        noise=numbers(BATCH, n_shared),
        center_rows=numbers(rows),
        context_rows=numbers(columns),
        centers=floats(rows, width),
        contexts=floats(columns, width),
        center_norms=floats(rows),
        context_norms=floats(columns),
        center_decay=floats(rows),
        context_decay=floats(columns),
        pairs=floats(rows),
        weights=floats(rows * columns),
        targets=floats(rows * columns),
        D=floats(rows, columns),
        values=floats(n_kernels, rows * columns),
        slopes=floats(n_kernels, rows * columns),
    )
