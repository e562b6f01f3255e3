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

#: Number of nodes whose rows are computed at a time, and from which the directions of joint rows are found.
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


def combine_in_frame(
    graph: Any,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    vectors: str,
    norm: float | str | None,
    out: NDArray[np.float32] | None = None,
) -> tuple[NDArray[np.float32], Frame]:
    """Return the embedding (n, dim) made from both tables, and how it was made.

    "smooth" is the sum of both plus the mean of the neighbours' sums; as their noise is independent, the mean
    has less of it. "joint" keeps what a node is as a center and what it is as a context apart: training moves
    a center towards the contexts of its neighbours, so one half is center plus 1.5 times the mean of these
    (more where there are many neighbours), the other context plus as much of the neighbours' centers. Both
    side by side are projected onto the `dim` directions in which they are largest, and with 16 columns or
    more every row is scaled to the same length. Where linked nodes are alike, the halves are nearly equal,
    and this is nearly "smooth" rotated; where they are not, as in bipartite graphs, the sum would mix both
    up. In the end, rows are scaled to mean length `norm`.

    out: the array to fill, (n, dim). As the tables, it may be mapped to a file: rows are made in blocks, so
    that beside these arrays only a block and a few numbers per node are in memory (for "joint" rows of a
    directed graph also the graph with its arcs in both directions).
    """
    frame = Frame()
    width = center.shape[1] * (1 + (vectors == "concat"))
    if vectors == "center" and norm in (None, AS_TRAINED) and out is None:
        return center, frame
    made = np.empty((len(center), width), np.float32) if out is None else out
    if vectors == "joint":
        frame = _joint(graph, center, context, np.arange(graph.n_nodes), frame, made)
    else:
        for rows in _blocks(len(center)):
            made[rows] = _simple(graph, center, context, vectors, np.arange(rows.start, rows.stop))
    if norm is None or isinstance(norm, str):
        return made, frame
    lengths = np.concatenate([np.sqrt(np.einsum("ij,ij->i", made[r], made[r])) for r in _blocks(len(made))])
    mean = float(lengths.mean())
    if mean > 0:
        frame = frame._replace(scale=norm / mean)
        for rows in _blocks(len(made)):
            made[rows] *= np.float32(frame.scale)
    return made, frame


def _blocks(n_rows: int) -> Iterator[slice]:
    return (slice(at, min(at + _BLOCK_NODES, n_rows)) for at in range(0, n_rows, _BLOCK_NODES))


def combine_some(
    graph: Any,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    vectors: str,
    frame: Frame,
    rows: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Return the vectors of some rows, made as those of another graph were."""
    if vectors == "joint":
        made = np.empty((len(rows), center.shape[1]), np.float32)
        _joint(graph, center, context, rows, frame, made)
    else:
        made = _simple(graph, center, context, vectors, rows)
    return np.asarray(made * np.float32(frame.scale), np.float32)


def _simple(
    graph: Any,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    vectors: str,
    rows: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Return the vectors of some rows, not scaled, in a way that is not "joint"."""
    if vectors == "center":
        return center[rows]
    if vectors == "concat":
        return np.hstack([center[rows], context[rows]])
    made: NDArray[np.float32] = center[rows] + context[rows]
    if vectors == "smooth":
        _add_neighbours(
            rows, *_shares_of(graph, rows), graph.neighbours, graph.offsets, center, context, made
        )
    return made


def _joint(
    graph: Any,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    wanted: NDArray[np.int64],
    frame: Frame,
    made: NDArray[np.float32],
) -> Frame:
    """Fill `made` with both smoothed tables side by side, projected onto their `dim` largest directions.

    Row i is that of node wanted[i]. Returns the frame.

    In a directed graph predecessors are neighbours too: pairs of a walk are trained on in both orders. The
    directions come from all nodes, or from _DIRECTIONS_FROM of a larger graph, unless the frame has them.
    """
    n, dim = center.shape
    linked = _both_ways(graph) if graph.directed else graph
    if frame.axes is None:
        frame = frame._replace(weight=float(np.clip(len(linked.neighbours) / max(n, 1) / 20, *_NEAR)))

    def halves(rows: Any) -> NDArray[np.float32]:
        made = np.empty((len(rows), 2 * dim), np.float32)
        starts, shares = _shares_of(linked, rows)
        shares *= np.float32(frame.weight)
        _fill_halves(rows, starts, shares, linked.neighbours, linked.offsets, center, context, made)
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

        def turn(places: Any) -> None:
            part = halves(wanted[places]) @ turned
            if dim >= _EQUAL_FROM:
                lengths = np.sqrt(np.einsum("ij,ij->i", part, part))[:, None]
                np.divide(part, lengths, out=part, where=lengths > 0)
            made[places] = part

        list(threads.map(turn, blocks(np.arange(len(wanted)))))  # raises what a thread has raised
    return frame


@cached(fastmath=True)
def _fill_halves(
    rows: Any, starts: Any, shares: Any, neighbours: Any, offsets: Any, center: Any, context: Any, made: Any
) -> None:
    """Fill made[i] with center and context of rows[i], each plus its neighbours' rows of the other table."""
    dim = center.shape[1]
    for i in range(rows.size):
        row = rows[i]
        own, other = made[i, :dim], made[i, dim:]
        own[:] = center[row]
        other[:] = context[row]
        for k in range(starts[i + 1] - starts[i]):
            share, node = shares[starts[i] + k], neighbours[offsets[row] + k]
            for column in range(dim):
                own[column] += share * context[node, column]
                other[column] += share * center[node, column]


@cached()
def _add_neighbours(
    rows: Any, starts: Any, shares: Any, neighbours: Any, offsets: Any, center: Any, context: Any, made: Any
) -> None:
    """Add to made[i] the weighted mean of the neighbours' sums of both tables."""
    mean = np.empty(center.shape[1], np.float32)
    for i in range(rows.size):
        mean[:] = 0
        for k in range(starts[i + 1] - starts[i]):
            share, node = shares[starts[i] + k], neighbours[offsets[rows[i]] + k]
            for column in range(mean.size):
                mean[column] += share * (center[node, column] + context[node, column])
        made[i] += mean


def _both_ways(graph: Any) -> Any:
    """Return offsets, neighbours and weights of the graph with all arcs in both directions."""
    arcs = graph.to_scipy()
    rows = csr_array(arcs + arcs.T)
    return SimpleNamespace(offsets=rows.indptr, neighbours=rows.indices, weights=rows.data)


def _shares_of(graph: Any, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the weights of the edges of some rows, divided by the sum of their row, and where rows start."""
    first = graph.offsets[rows]
    degrees = graph.offsets[rows + 1] - first
    starts = np.append(0, np.cumsum(degrees))
    owners = np.repeat(np.arange(len(rows)), degrees)
    if graph.weights is None:
        weights = np.ones(len(owners))
    else:
        entries = np.arange(len(owners)) + (first - starts[:-1])[owners]
        weights = graph.weights[entries].astype(np.float64)  # sums of float32 may overflow
    return starts, (weights / np.bincount(owners, weights, len(rows))[owners]).astype(np.float32)
