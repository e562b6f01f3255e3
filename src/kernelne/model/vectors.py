"""Two trained tables become one embedding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernelne.errors import ParameterError

#: How the two tables become the embedding.
VECTORS = ("center", "sum", "concat", "smooth")


#: Rows that are smoothed at a time.
_BLOCK_ROWS = 2**16


def n_tables(settled: Mapping[str, Any]) -> int:
    """Tables as wide as those trained that a run holds at its peak, with the embedding made of them."""
    if settled["vectors"] in ("smooth", "concat"):
        return 4
    return 2 if settled["vectors"] == "center" and settled["norm"] is None else 3


def check_vector_options(vectors: Any, norm: Any, dim: Any) -> None:
    """Raise what is wrong with the parameters that make the embedding of two tables."""
    if vectors not in VECTORS:
        raise ParameterError("vectors", vectors, f"must be one of {', '.join(VECTORS)}")
    if vectors == "concat" and isinstance(dim, Integral) and dim % 2:
        raise ParameterError("dim", dim, 'must be even with vectors="concat": each table has half of it')
    if norm is not None and not (
        isinstance(norm, Real) and not isinstance(norm, bool) and 0 < float(norm) < math.inf
    ):
        raise ParameterError("norm", norm, "must be a positive number, or None")


def combine(
    graph: Any,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    vectors: str,
    norm: float | None,
) -> NDArray[np.float32]:
    """The embedding (n, dim) made of both tables, its rows of this mean length.

    "smooth": the sum of both, plus the mean of the neighbours' sums, which have noise of their own.
    """
    if vectors == "concat":
        made = np.hstack([center, context])
    elif vectors == "center":
        made = center if norm is None else center.copy()
    else:
        made = center + context
    if vectors == "smooth":
        made = _smoothed(graph, made)
    if norm is None:
        return made
    mean = float(np.sqrt(np.einsum("ij,ij->i", made, made)).mean())  # np.linalg.norm would square a copy
    if mean > 0:
        made *= np.float32(norm / mean)
    return made


def _smoothed(graph: Any, table: NDArray[np.float32]) -> NDArray[np.float32]:
    """Every row plus the mean, by weight, of its neighbours' rows; in blocks, so that one copy is all."""
    weights = np.ones(graph.neighbours.size, np.float32) if graph.weights is None else graph.weights
    links = csr_array((weights, graph.neighbours, graph.offsets), (graph.n_nodes, graph.n_nodes))
    made = table.copy()
    for first in range(0, len(made), _BLOCK_ROWS):
        rows = slice(first, first + _BLOCK_ROWS)
        shares = links[rows].astype(np.float64)  # sums of float32 weights may be beyond float32
        shares.data /= np.repeat(shares.sum(axis=1), np.diff(shares.indptr))
        made[rows] += shares.astype(np.float32) @ table
    return made
