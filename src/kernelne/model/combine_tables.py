"""The embedding, computed from the two trained tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from kernelne._checks import available_threads
from kernelne._jit import cached
from kernelne.errors import ParameterError

#: Ways to make the embedding from the two tables.
VECTORS = ("center", "sum", "concat", "smooth", "joint")

#: The value of `norm` that leaves the rows as trained.
AS_TRAINED = "trained"

#: Number of columns that are smoothed at a time, and of rows whose weights are normalised at a time.
_BLOCK_COLUMNS, _BLOCK_ROWS = 16, 2**16

#: Number of nodes whose joint rows are computed at a time, and from which their directions are found.
_BLOCK_NODES, _DIRECTIONS_FROM = 2**13, 2**17

#: Number of columns from which on joint rows have one length: in the plane they would lie on a circle.
_EQUAL_FROM = 16

#: Weight of the neighbours' mean in joint rows: the mean degree over 20, clipped to this range. The mean has
#: less noise than a row itself, the less the more neighbours there are.
_NEAR = 1.5, 3.0


def check_options(vectors: Any, norm: Any, dim: Any) -> None:
    """Raise a ParameterError if `vectors`, `norm` or `dim` is invalid."""
    if vectors not in VECTORS:
        raise ParameterError("vectors", vectors, f"must be one of {', '.join(VECTORS)}")
    if vectors == "concat" and isinstance(dim, Integral) and dim % 2:
        raise ParameterError("dim", dim, 'must be even with vectors="concat": each table has dim / 2 columns')
    if norm is None or (isinstance(norm, str) and norm == AS_TRAINED):
        return
    if not isinstance(norm, Real) or isinstance(norm, bool) or not 0 < float(norm) < math.inf:
        raise ParameterError("norm", norm, f'must be a positive number, "{AS_TRAINED}" or None')


def n_tables(vectors: str, norm: float | str | None) -> float:
    """Memory for tables at the peak, in units of one trained table, the embedding included."""
    if vectors == "center":
        return 2 if norm in (None, AS_TRAINED) else 3
    return {"sum": 3, "concat": 4, "smooth": 3.25, "joint": 3.25}[vectors]


class Frame(NamedTuple):
    """How vectors are made of both tables, so that those of other nodes can be made in the same space.

    axes: (2·dim, dim) float32, the directions of joint rows, else None. weight: of the neighbours in them.
    scale: factor of all rows.
    """

    axes: NDArray[np.float32] | None = None
    weight: float = 1.0
    scale: float = 1.0


def combine(
    graph: Any,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    vectors: str,
    norm: float | str | None,
) -> NDArray[np.float32]:
    """Return the embedding (n, dim) made from both tables, its rows scaled to mean length `norm`.

    "smooth" is the sum of both plus the mean of the neighbours' sums; as their noise is independent, the mean
    has less of it. "joint" keeps what a node is as a center and what it is as a context apart: training moves
    a center towards the contexts of its neighbours, so one half is center plus 1.5 times the mean of these
    (more where there are many neighbours), the other context plus as much of the neighbours' centers. Both
    side by side are projected onto the `dim` directions in which they are largest, and with 16 columns or
    more every row is scaled to the same length. Where linked nodes are alike, the halves are nearly equal,
    and this is nearly "smooth" rotated; where they are not, as in bipartite graphs, the sum would mix both
    up.
    """
    return combine_in_frame(graph, center, context, vectors, norm)[0]


def combine_in_frame(
    graph: Any,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    vectors: str,
    norm: float | str | None,
) -> tuple[NDArray[np.float32], Frame]:
    """Return the embedding as `combine` makes it, and how it was made."""
    frame = Frame()
    if vectors == "concat":
        made = np.hstack([center, context])
    elif vectors == "center":
        made = center if norm in (None, AS_TRAINED) else center.copy()
    elif vectors == "sum":
        made = center + context
    elif vectors == "smooth":
        made = _smoothed(graph, center, context)
    else:
        made, frame = _joint(graph, center, context, np.arange(graph.n_nodes), frame)
    if norm is None or isinstance(norm, str):
        return made, frame
    mean = float(np.sqrt(np.einsum("ij,ij->i", made, made)).mean())  # np.linalg.norm would square a copy
    if mean > 0:
        frame = frame._replace(scale=norm / mean)
        made *= np.float32(frame.scale)
    return made, frame


def combine_some(
    graph: Any,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    vectors: str,
    frame: Frame,
    rows: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Return the vectors of some rows, made as those of another graph were."""
    if vectors == "concat":
        made = np.hstack([center[rows], context[rows]])
    elif vectors == "center":
        made = center[rows]
    elif vectors == "sum":
        made = center[rows] + context[rows]
    elif vectors == "smooth":
        total = center + context
        made = total[rows] + _shares(graph)[rows] @ total
    else:
        made, _ = _joint(graph, center, context, rows, frame)
    return np.asarray(made * np.float32(frame.scale), np.float32)


def _smoothed(graph: Any, center: NDArray[np.float32], context: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return center + context plus, for every row, the weighted mean of its neighbours' rows.

    Only a few columns are computed at a time, so that temporary arrays take a fraction of a table.
    """
    shares = _shares(graph)
    made = np.empty_like(center)
    for first in range(0, center.shape[1], _BLOCK_COLUMNS):
        columns = slice(first, first + _BLOCK_COLUMNS)
        total = center[:, columns] + context[:, columns]
        np.add(total, shares @ total, out=made[:, columns])
    return made


def _joint(
    graph: Any,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    wanted: NDArray[np.int64],
    frame: Frame,
) -> tuple[NDArray[np.float32], Frame]:
    """Return both smoothed tables side by side, projected onto their `dim` largest directions, of some rows.

    In a directed graph predecessors are neighbours too: pairs of a walk are trained on in both orders. The
    directions come from all nodes, or from _DIRECTIONS_FROM of a larger graph, unless the frame has them.
    """
    n, dim = center.shape
    shares = _shares_both_ways(graph) if graph.directed else _shares(graph)
    if frame.axes is None:
        frame = frame._replace(weight=float(np.clip(shares.nnz / max(n, 1) / 20, *_NEAR)))
    shares.data *= np.float32(frame.weight)

    def halves(rows: Any) -> NDArray[np.float32]:
        made = np.empty((len(rows), 2 * dim), np.float32)
        _fill_halves(rows, shares.indptr, shares.indices, shares.data, center, context, made)
        return made

    def blocks(rows: Any) -> Iterator[Any]:
        return (rows[first : first + _BLOCK_NODES] for first in range(0, len(rows), _BLOCK_NODES))

    with ThreadPoolExecutor(available_threads()) as threads, threadpool_limits(1, "blas"):

        def squares(rows: Any) -> NDArray[np.float32]:
            part = halves(rows)
            return part.T @ part

        if frame.axes is None:
            some = np.arange(n)[:: -(-n // _DIRECTIONS_FROM)]
            moments = sum(threads.map(squares, blocks(some)), np.zeros((2 * dim, 2 * dim)))
            axes = np.linalg.eigh(moments)[1][:, : dim - 1 : -1]
            # A direction has no sign of its own: the same one every time.
            axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(dim)] < 0, -1.0, 1.0)
            frame = frame._replace(axes=np.ascontiguousarray(axes, np.float32))
        turned: Any = frame.axes
        made = np.empty((len(wanted), dim), np.float32)

        def turn(places: Any) -> None:
            part = halves(wanted[places]) @ turned
            if dim >= _EQUAL_FROM:
                lengths = np.sqrt(np.einsum("ij,ij->i", part, part))[:, None]
                np.divide(part, lengths, out=part, where=lengths > 0)
            made[places] = part

        list(threads.map(turn, blocks(np.arange(len(wanted)))))  # raises what a thread has raised
    return made, frame


@cached(fastmath=True)
def _fill_halves(
    rows: Any, offsets: Any, neighbours: Any, shares: Any, center: Any, context: Any, made: Any
) -> None:
    """Fill made[i] with center and context of rows[i], each plus its neighbours' rows of the other table."""
    dim = center.shape[1]
    for i in range(rows.size):
        row = rows[i]
        own, other = made[i, :dim], made[i, dim:]
        own[:] = center[row]
        other[:] = context[row]
        for entry in range(offsets[row], offsets[row + 1]):
            share, node = shares[entry], neighbours[entry]
            for column in range(dim):
                own[column] += share * context[node, column]
                other[column] += share * center[node, column]


def _shares(graph: Any) -> csr_array:
    """Adjacency matrix with rows that sum to 1."""
    return csr_array(
        (_neighbour_shares(graph), graph.neighbours, graph.offsets), (graph.n_nodes, graph.n_nodes)
    )


def _shares_both_ways(graph: Any) -> csr_array:
    """The same for the graph with all arcs in both directions."""
    arcs = graph.to_scipy()
    rows = csr_array(arcs + arcs.T)
    both = SimpleNamespace(
        n_nodes=graph.n_nodes, offsets=rows.indptr, neighbours=rows.indices, weights=rows.data
    )
    return _shares(both)


def _neighbour_shares(graph: Any) -> NDArray[np.float32]:
    """Weights of the adjacency matrix, divided by the sum of their row."""
    made = np.empty(graph.neighbours.size, np.float32)
    for first in range(0, graph.n_nodes, _BLOCK_ROWS):
        offsets = graph.offsets[first : first + _BLOCK_ROWS + 1]
        entries = slice(offsets[0], offsets[-1])
        degrees = np.diff(offsets)
        if graph.weights is None:
            weights = np.ones(int(offsets[-1] - offsets[0]))
        else:
            weights = graph.weights[entries].astype(np.float64)  # sums of float32 may overflow
        rows = np.repeat(np.arange(len(degrees)), degrees)
        made[entries] = weights / np.bincount(rows, weights, len(degrees))[rows]
    return made
