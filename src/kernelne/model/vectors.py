"""Two trained tables become one embedding."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernelne.errors import ParameterError

#: How the two tables become the embedding.
VECTORS = ("center", "sum", "concat", "smooth")

#: A `norm` that leaves the rows as long as they were trained.
AS_TRAINED = "trained"

#: Columns that are smoothed at a time, and rows whose weights are made to sum to 1.
_BLOCK_COLUMNS, _BLOCK_ROWS = 16, 2**16


def check_options(vectors: Any, norm: Any, dim: Any) -> None:
    """Raise what is wrong with the parameters that make the embedding of two tables."""
    if vectors not in VECTORS:
        raise ParameterError("vectors", vectors, f"must be one of {', '.join(VECTORS)}")
    if vectors == "concat" and isinstance(dim, Integral) and dim % 2:
        raise ParameterError("dim", dim, 'must be even with vectors="concat": each table has half of it')
    if norm is None or (isinstance(norm, str) and norm == AS_TRAINED):
        return
    if not isinstance(norm, Real) or isinstance(norm, bool) or not 0 < float(norm) < math.inf:
        raise ParameterError("norm", norm, f'must be a positive number, "{AS_TRAINED}" or None')


def n_tables(vectors: str, norm: float | str | None) -> float:
    """Tables as wide as those trained that are held at the peak, the embedding made of them included."""
    if vectors == "center":
        return 2 if norm in (None, AS_TRAINED) else 3
    return {"sum": 3, "concat": 4, "smooth": 3.25}[vectors]


def combine(
    graph: Any,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    vectors: str,
    norm: float | str | None,
) -> NDArray[np.float32]:
    """The embedding (n, dim) made of both tables, its rows of this mean length.

    "smooth": the sum of both, plus the mean of the neighbours' sums, which have noise of their own.
    """
    if vectors == "concat":
        made = np.hstack([center, context])
    elif vectors == "center":
        made = center if norm in (None, AS_TRAINED) else center.copy()
    elif vectors == "sum":
        made = center + context
    else:
        made = _smoothed(graph, center, context)
    if norm is None or isinstance(norm, str):
        return made
    mean = float(np.sqrt(np.einsum("ij,ij->i", made, made)).mean())  # np.linalg.norm would square a copy
    if mean > 0:
        made *= np.float32(norm / mean)
    return made


def _smoothed(graph: Any, center: NDArray[np.float32], context: NDArray[np.float32]) -> NDArray[np.float32]:
    """Every row of center + context plus the mean, by weight, of its neighbours' rows.

    A few columns at a time, so that what is needed besides the result is a fraction of a table.
    """
    shares = csr_array(
        (_neighbour_shares(graph), graph.neighbours, graph.offsets), (graph.n_nodes, graph.n_nodes)
    )
    made = np.empty_like(center)
    for first in range(0, center.shape[1], _BLOCK_COLUMNS):
        columns = slice(first, first + _BLOCK_COLUMNS)
        total = center[:, columns] + context[:, columns]
        np.add(total, shares @ total, out=made[:, columns])
    return made


def _neighbour_shares(graph: Any) -> NDArray[np.float32]:
    """The weight of every entry of the adjacency as a share of its row's."""
    made = np.empty(graph.neighbours.size, np.float32)
    for first in range(0, graph.n_nodes, _BLOCK_ROWS):
        offsets = graph.offsets[first : first + _BLOCK_ROWS + 1]
        entries = slice(offsets[0], offsets[-1])
        degrees = np.diff(offsets)
        if graph.weights is None:
            weights = np.ones(int(offsets[-1] - offsets[0]))
        else:
            weights = graph.weights[entries].astype(np.float64)  # sums of float32 may be beyond float32
        rows = np.repeat(np.arange(len(degrees)), degrees)
        made[entries] = weights / np.bincount(rows, weights, len(degrees))[rows]
    return made
