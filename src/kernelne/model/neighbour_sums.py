"""Sums over the neighbours of all nodes, of rows that do not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from kernelne._common.checks import available_threads
from kernelne._common.jit import cached

#: Number of nodes whose rows are computed at a time.
BLOCK_NODES = 2**13

#: Rows (m, dim) of a range of nodes.
RowsOf = Callable[[slice], NDArray[np.float32]]


def blocks(first: int, last: int) -> Iterator[slice]:
    """Yield first … last − 1 in ranges of BLOCK_NODES."""
    return (slice(at, min(at + BLOCK_NODES, last)) for at in range(first, last, BLOCK_NODES))


def sum_in_slabs(
    graph: Any,
    nodes: NDArray[np.int64] | None,
    near: RowsOf,
    n_slabs: int,
    weight: float,
    made: NDArray[np.float32],
    begin: RowsOf | None = None,
    end: Callable[[NDArray[np.float32]], Any] | None = None,
) -> None:
    """Add to made[i] the weighted mean of the rows of the neighbours of nodes[i], times `weight`.

    near: gives the rows of a range of nodes. They are made and held in slabs, each an n_slabs-th of all
        nodes, and `made`, which may be mapped to a file, is gone through once for each slab: only a slab,
        which is in memory, is read in the order of the neighbours.
    nodes: None: all nodes.
    begin: gives made[rows] before the sum (None: it is there). end: changes the finished rows of a block.
    """
    n = graph.n_nodes
    weights = np.empty(0, np.float32) if graph.weights is None else graph.weights
    size = -(-n // n_slabs)
    slab = np.empty((size, made.shape[1]), np.float32)
    with ThreadPoolExecutor(available_threads()) as threads, threadpool_limits(1, "blas"):
        for first in range(0, n, size):
            last = min(first + size, n)

            def fill(rows: slice, first: int = first) -> None:
                slab[rows.start - first : rows.stop - first] = near(rows)

            def add(rows: slice, first: int = first, last: int = last) -> None:
                here = np.arange(rows.start, rows.stop) if nodes is None else nodes[rows]
                part = made[rows] if first or begin is None else begin(rows)
                part = np.array(part, np.float32)
                _add_slab(
                    here, graph.offsets, graph.neighbours, weights, np.float32(weight), first,
                    slab[: last - first], part,
                )  # fmt: skip
                if last == n and end is not None:
                    end(part)
                made[rows] = part

            list(threads.map(fill, blocks(first, last)))  # raises what a thread has raised
            list(threads.map(add, blocks(0, len(made))))


@cached(fastmath=True)
def _add_slab(
    nodes: Any, offsets: Any, neighbours: Any, weights: Any, weight: Any, first: Any, slab: Any, made: Any
) -> None:
    """Add the share of each neighbour in first … first + len(slab) − 1, times its row, to its node's row."""
    for i in range(nodes.size):
        begin, end = offsets[nodes[i]], offsets[nodes[i] + 1]
        total = float(end - begin)
        if weights.size:
            total = 0.0
            for k in range(begin, end):
                total += weights[k]
        for k in range(begin, end):
            node = neighbours[k] - first
            if 0 <= node < slab.shape[0]:
                share = weight * np.float32((weights[k] if weights.size else 1.0) / total)
                for column in range(made.shape[1]):
                    made[i, column] += share * slab[node, column]
