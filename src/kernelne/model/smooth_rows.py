"""Rows smoothed over the nodes two, four, … steps away: what is noise in each of them averages out."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.model.neighbour_sums import blocks

#: Weight of the rows two steps away: (_SHARE · memory of walks)^4, at most _MOST; below _LEAST there is none.
_SHARE, _MOST, _LEAST = 2.0, 0.95, 0.3
#: Terms of the series are added until they weigh about this, but at least one.
_SMALLEST = 0.5
#: Number of columns that are smoothed at a time: the more, the faster, and the more memory is needed.
_COLUMNS = 32


def weight_of(graph: Any) -> float:
    """Weight of the rows two steps away for this graph: the more walks remember, the more these tell."""
    weight = min((_SHARE * graph.memory_of_walks) ** 4, _MOST)
    return float(f"{weight:.3g}") if weight >= _LEAST else 0.0


def reach(weight: float) -> int:
    """How many steps away a row has an effect."""
    return 2 * max(round(math.log(_SMALLEST) / math.log(weight)), 1) if weight else 0


def smooth(graph: Any, rows: NDArray[np.float32], weight: float, threads: Executor, slabs: int = 1) -> None:
    """Replace R by the sum of (weight · P²)^k R, k = 0, 1, …; P: means over neighbours, by weight of edges.

    Two steps lead to nodes of the same role, also where linked nodes are unlike each other.

    rows: (n, dim), changed in place; may be mapped to a file, as it is gone through a few columns at a time.
    slabs: beside it at most about half of a slabs-th of its size is in memory.
    """
    if not weight:
        return
    n, dim = rows.shape
    weights = np.empty(0, np.float32) if graph.weights is None else graph.weights
    columns = min(max(dim // (4 * slabs), 1), _COLUMNS)
    parts = list(blocks(0, n))
    for first in range(0, dim, columns):
        here = rows[:, first : first + columns]
        near = np.array(here, order="C")  # a copy, also of all columns
        far = np.empty_like(near)
        for _ in range(reach(weight) // 2):
            for factor in (1.0, weight):
                arrays = graph.offsets, graph.neighbours, weights, np.float32(factor), near, far
                list(threads.map(partial(_fill_means, *arrays), parts))  # raises what a thread has raised
                near, far = far, near
            here += near


@cached(fastmath=True)
def _fill_means(
    offsets: Any, neighbours: Any, weights: Any, factor: Any, rows: Any, made: Any, nodes: Any
) -> None:
    """Fill made[i] for some nodes with `factor` times the weighted mean of the rows of its neighbours.

    Four neighbours at a time, so that as many rows are on their way from memory: several times as fast.
    """
    shares = np.empty(4, np.float32)
    for i in range(nodes.start, nodes.stop):
        begin, end = offsets[i], offsets[i + 1]
        total = float(end - begin)
        if weights.size:
            total = 0.0  # float64: sums of float32 may overflow
            for k in range(begin, end):
                total += weights[k]
        made[i] = 0.0
        for k in range(begin, end, 4):
            for t in range(4):
                weight = (weights[min(k + t, end - 1)] if weights.size else 1.0) if k + t < end else 0.0
                shares[t] = factor * np.float32(weight / total)
            a, b = neighbours[k], neighbours[min(k + 1, end - 1)]
            c, d = neighbours[min(k + 2, end - 1)], neighbours[min(k + 3, end - 1)]
            for column in range(made.shape[1]):
                made[i, column] += (shares[0] * rows[a, column] + shares[1] * rows[b, column]) + (
                    shares[2] * rows[c, column] + shares[3] * rows[d, column]
                )
