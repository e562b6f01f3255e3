"""Nearest rows of every row of a table, for layouts: exact for few rows, by cells for many.

Rows are compared by blocked matrix products, in single precision, and the nearest of a block are kept by
compiled code; both release the lock of the interpreter, so that threads share the blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.progress import Report
from kernelne.training.cpu.threads import Workers

#: Up to this many rows every row is compared with every other.
EXACT_UP_TO = 30_000
#: Rows of a cell on average, and at most; cells compared with each cell, the nearest by their means.
_CELL, _LARGEST_CELL, _PROBES = 512, 1024, 16
_SAMPLE, _ROUNDS = 48, 6  # rows per cell that k-means sees, and its rounds
_QUERIES, _TILE = 512, 4096  # rows of a block of queries, and of the rows that it is compared with at a time

Table = NDArray[np.float32]
Rows = NDArray[np.int32]
Assign = Callable[[Table, Table], NDArray[np.int64]]


class Cells(NamedTuple):
    """A partition of n rows into cells of near rows.

    order   (n,) the rows, cell by cell
    starts  (cells + 1,) where the rows of each cell begin in that order, and n
    probes  (cells, p) the cells that each cell is compared with, itself first
    """

    order: Rows
    starts: NDArray[np.int64]
    probes: NDArray[np.int64]


def nearest_rows(
    table: Table, k: int, workers: Workers, report: Report, cells: Cells | None = None
) -> tuple[Rows, Table]:
    """Return the k < n nearest other rows of each row of table (n, d): rows (n, k) and squared distances.

    Nearest first. With cells, the table has the rows in their order, and rows are searched in the cells
    around their own: a few per cent of the nearest may be missed, and -1 stands for rows that there are not.
    """
    n = len(table)
    rows, distances = np.full((n, k), -1, np.int32), np.full((n, k), np.inf, np.float32)
    squares = np.einsum("ij,ij->i", table, table)
    starts = np.append(np.arange(0, n, _QUERIES), n) if cells is None else cells.starts
    widest = int(np.diff(starts).max())
    done = np.zeros(workers.n_threads, np.int64)

    def search(part: int) -> None:
        products = np.empty(widest * max(widest, _TILE), np.float32)
        # Cells in turn, as their sizes differ.
        for cell in range(part, len(starts) - 1, workers.n_threads):
            low, high = int(starts[cell]), int(starts[cell + 1])
            own = slice(low, high)
            for first, last in _spans(starts, None if cells is None else cells.probes[cell], n):
                block = products[: (high - low) * (last - first)].reshape(high - low, last - first)
                np.matmul(table[own], table[first:last].T, out=block)
                _keep_nearest(block, squares[own], squares[first:last], low, first, rows[own], distances[own])
            done[part] += high - low
            if part == 0:
                report(int(done.sum()), n, np.nan)

    _on_single_blas_threads(workers, search)
    return rows, distances


def _spans(starts: NDArray[np.int64], probes: NDArray[np.int64] | None, n: int) -> list[tuple[int, int]]:
    """Return the ranges of rows that a cell is compared with: its probes, or all rows, tile by tile."""
    if probes is None:
        return [(first, min(first + _TILE, n)) for first in range(0, n, _TILE)]
    return [(int(starts[cell]), int(starts[cell + 1])) for cell in probes]


def _on_single_blas_threads(workers: Workers, work: Any) -> None:
    """Run `work` on every worker; matrix products of each on its own thread only."""
    with _single_blas_threads():
        workers.each(work)


def _single_blas_threads() -> Any:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    return threadpool_limits(1, user_api="blas")


def find_cells(
    table: Table, seed: int, workers: Workers, assign: Assign | None = None, size: int | None = None
) -> Cells:
    """Partition the rows of table (n, d) by k-means; cells that are too large are cut into parts.

    size: rows of a cell on average, at most twice as many; None: enough for a search of near rows.
    assign: finds the nearest of the means (m, d) for each row of a table; None: on the threads.
    """

    def on_threads(rows: Table, means: Table) -> NDArray[np.int64]:
        return _assign(rows, means, workers)

    assign = assign or on_threads
    n = len(table)
    rng = np.random.default_rng(seed)
    wanted, largest = (_CELL, _LARGEST_CELL) if size is None else (size, 2 * size)
    count = max(n // wanted, 1)
    sample = table[np.sort(rng.choice(n, min(n, _SAMPLE * count), replace=False))]
    means = sample[rng.choice(len(sample), count, replace=False)].copy()
    for _ in range(_ROUNDS):
        means = _means(sample, assign(sample, means), means)
    cells = assign(table, means)
    order = np.argsort(cells, kind="stable").astype(np.int32)
    sizes = np.bincount(cells, minlength=count)
    # A cell that is too large, as of many rows that are equal, is cut into parts of equal size.
    parts = -(-sizes // largest)
    ends = np.cumsum(sizes)
    which = np.repeat(np.arange(count), parts)
    number = np.arange(len(which)) - np.repeat(np.cumsum(parts) - parts, parts)
    starts = (ends - sizes)[which] + sizes[which] * number // parts[which]
    starts = np.append(starts, n)
    centres = cell_means(table[order], starts)
    probes = np.empty((len(centres), min(_PROBES, len(centres))), np.int64)
    with _single_blas_threads():
        _find_probes(centres, probes)
    return Cells(order, starts, probes)


def _find_probes(centres: Table, probes: NDArray[np.int64]) -> None:
    """Fill probes (m, p) with the nearest centres of each of m centres, itself first."""
    centre_squares = np.einsum("ij,ij->i", centres, centres)
    for first in range(0, len(centres), _QUERIES):
        some = slice(first, first + _QUERIES)
        apart = centre_squares - 2 * (centres[some] @ centres.T)
        own = np.arange(len(apart))
        apart[own, own + first] = -np.inf
        near = np.argpartition(apart, probes.shape[1] - 1, axis=1)[:, : probes.shape[1]]
        near_apart = np.take_along_axis(apart, near, 1)
        probes[some] = np.take_along_axis(near, np.argsort(near_apart, axis=1, kind="stable"), 1)


def cell_means(ordered: Table, starts: NDArray[np.int64]) -> Table:
    """Return the means of the rows of each cell, from the rows in the order of the cells."""
    sums: Table = np.add.reduceat(ordered, starts[:-1], axis=0)
    sums /= np.diff(starts)[:, None].astype(np.float32)
    return sums


def _assign(table: Table, means: Table, workers: Workers) -> NDArray[np.int64]:
    """Return the nearest of the means (m, d) for each row of the table."""
    found = np.empty(len(table), np.int64)
    mean_squares = np.einsum("ij,ij->i", means, means)

    def assign(part: int) -> None:
        # The same blocks on any number of threads: how products are rounded may depend on their shapes.
        for first in range(part * _QUERIES, len(table), workers.n_threads * _QUERIES):
            some = slice(first, first + _QUERIES)
            apart = table[some] @ means.T
            apart *= -2
            apart += mean_squares
            found[some] = apart.argmin(axis=1)

    _on_single_blas_threads(workers, assign)
    return found


def share_of(n: int, part: int, parts: int) -> tuple[int, int]:
    return n * part // parts, n * (part + 1) // parts


def _means(table: Table, cells: NDArray[np.int64], before: Table) -> Table:
    """Return the mean of the rows of each cell; of an empty one, the mean that it had."""
    order = np.argsort(cells, kind="stable")
    sizes = np.bincount(cells, minlength=len(before))
    used = sizes > 0
    starts = (np.cumsum(sizes) - sizes)[used]
    means = before.copy()
    means[used] = np.add.reduceat(table[order], starts, axis=0) / sizes[used][:, None]
    return means


@cached(error_model="numpy", boundscheck=False)
def _keep_nearest(
    products: Any, query_squares: Any, squares: Any, low: Any, first: Any, rows: Any, distances: Any
) -> None:
    """Merge a block of inner products (m, b) into the nearest rows (m, k) so far and their distances.

    Query i is row low + i of the table, and is not its own neighbour; column j is row first + j. Rows are
    kept in the order of their distance: most are rejected by one comparison, and few are inserted.
    """
    m, b = products.shape
    last = rows.shape[1] - 1
    for i in range(m):
        limit = distances[i, last]
        for j in range(b):
            apart = query_squares[i] + squares[j] - np.float32(2.0) * products[i, j]
            if apart < limit and first + j != low + i:
                apart = max(apart, np.float32(0.0))
                place = last
                while place > 0 and distances[i, place - 1] > apart:
                    distances[i, place] = distances[i, place - 1]
                    rows[i, place] = rows[i, place - 1]
                    place -= 1
                distances[i, place] = apart
                rows[i, place] = first + j
                limit = distances[i, last]
