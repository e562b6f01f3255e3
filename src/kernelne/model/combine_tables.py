"""The embedding, computed from the two trained tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from kernelne._common.checks import available_threads
from kernelne._common.jit import cached
from kernelne.errors import ParameterError
from kernelne.graph import Graph
from kernelne.graph.ops import among, within
from kernelne.graph.shape import components, outside_largest
from kernelne.model.joint_axes import (
    EQUAL_FROM,
    SHORT,
    apart_axes,
    equal_lengths,
    has_common,
    largest_directions,
    lengths_outside,
    squares,
)
from kernelne.model.neighbour_sums import blocks, sum_in_slabs
from kernelne.model.smooth_rows import reach, smooth, weight_of

#: Ways to make the embedding from the two tables.
VECTORS = ("center", "sum", "concat", "smooth", "joint")

#: The value of `norm` that leaves the rows as trained.
AS_TRAINED = "trained"

#: Number of nodes from which the directions of joint rows are found; out of core it may be less.
_DIRECTIONS_FROM, _FEWEST_DIRECTIONS_FROM = 2**17, 2**14

#: Weight of the neighbours' mean in joint rows: the mean has less noise than a row itself.
_NEAR = 5.0


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
    return {"sum": 3, "concat": 4, "smooth": 3.25, "joint": 3.5}[vectors]


class Frame(NamedTuple):
    """How vectors are made of both tables, so that those of other nodes can be made in the same space.

    axes: (2·dim, dim) float32, the directions of joint rows, else None; or (2·dim + 1, 2·dim): the second
    half is that of nodes outside the largest component, the last row is added to rows that have their length.
    weight: of the neighbours in them. smoothing: of rows two steps away. scale: factor of all rows.
    grouped: whether the nodes lie in small, clear groups.
    """

    axes: NDArray[np.float32] | None = None
    weight: float = 1.0
    scale: float = 1.0
    smoothing: float = 0.0
    grouped: bool = False


def combine_in_frame(
    graph: Any,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    vectors: str,
    norm: float | str | None,
    out: NDArray[np.float32] | None = None,
    slabs: int = 1,
    shorten: bool = False,
) -> tuple[NDArray[np.float32], Frame]:
    """Return the embedding (n, dim) made from both tables, and how it was made.

    "smooth" is the sum of both plus the mean of the neighbours' sums, which has less noise. "joint" keeps
    what a node is as a center and what it is as a context apart: training moves a center towards the contexts
    of its neighbours, so one half is center plus 5 times the mean of these, the other context plus as much of
    the neighbours' centers. Both side by side are projected onto the `dim` directions in which they are
    largest, of which the largest are shortened a little; with 16 columns or more these are rotated, so that
    all columns vary alike, and every row is scaled to the same length. Where linked nodes are alike, this is
    nearly "smooth" rotated; where they are not, as in bipartite graphs, the sum would mix both up. Then rows
    are smoothed over the nodes two, four, … steps away, as far as walks remember where they came from, and
    scaled to the same length again. Training leaves components in directions at random, so that some look
    alike: with 16 columns or more, rows outside the largest component are made orthogonal to the directions
    that hold most of its rows, are the longer the larger their own component is, and have one direction in
    common. In the end, rows are scaled to mean length `norm`.

    out: the array to fill, (n, dim). As the tables, it may be mapped to a file: rows are made in blocks, so
    that beside these arrays only a block, the rows from which directions are found and a few numbers per
    node are in memory (for "joint" rows of a directed graph also the graph with its arcs in both directions).
    slabs: 1, or for tables that do not fit in memory into how many ranges their rows are divided; those of
    neighbours are read from one at a time. Vectors are the same up to rounding and the rows of directions.
    shorten: whether the mean length is at most SHORT where nodes lie in small, clear groups.
    """
    frame = Frame()
    width = center.shape[1] * (1 + (vectors == "concat"))
    if vectors == "center" and norm in (None, AS_TRAINED) and out is None:
        return center, frame
    made = np.empty((len(center), width), np.float32) if out is None else out
    if vectors == "joint" and slabs > 1:
        frame = _joint_in_slabs(graph, center, context, slabs, made)
    elif vectors == "joint":
        frame = _joint(graph, center, context, np.arange(graph.n_nodes), frame, made)
    elif vectors == "smooth" and slabs > 1:

        def total(rows: slice) -> NDArray[np.float32]:
            return center[rows] + context[rows]

        sum_in_slabs(graph, None, total, slabs, 1.0, made, total)
    else:
        for rows in blocks(0, len(center)):
            made[rows] = _simple(graph, center, context, vectors, np.arange(rows.start, rows.stop))
    if norm is None or isinstance(norm, str):
        return made, frame
    lengths = np.concatenate([np.sqrt(np.einsum("ij,ij->i", made[r], made[r])) for r in blocks(0, len(made))])
    mean = float(lengths.mean())
    if mean > 0:
        norm = min(norm, SHORT) if shorten and frame.grouped else norm
        frame = frame._replace(scale=norm / mean)
        for rows in blocks(0, len(made)):
            made[rows] *= np.float32(frame.scale)
    return made, frame


def combine_some(
    graph: Any,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    vectors: str,
    frame: Frame,
    rows: NDArray[np.int64],
    outside: NDArray[np.bool_] | None = None,
) -> NDArray[np.float32]:
    """Return the vectors of some rows, made as those of another graph were.

    outside: (n,) which nodes are made as those outside the largest component; None: those that are, or none
        if the frame has one set of axes.
    """
    if vectors == "joint":
        made = np.empty((len(rows), center.shape[1]), np.float32)
        _joint(graph, center, context, rows, frame, made, outside)
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
    outside: NDArray[np.bool_] | None = None,
) -> Frame:
    """Fill `made` with both smoothed tables side by side, projected onto their `dim` largest directions.

    Row i is that of node wanted[i]. Returns the frame.

    In a directed graph predecessors are neighbours too: pairs of a walk are trained on in both orders. The
    directions come from all nodes, or from _DIRECTIONS_FROM of a larger graph, unless the frame has them.
    """
    n, dim = center.shape
    linked = _both_ways(graph) if graph.directed else graph
    if frame.axes is None:
        frame = frame._replace(weight=_NEAR, smoothing=weight_of(linked))
    if outside is None or (frame.axes is not None and not has_common(frame.axes)):
        outside = _outside(linked, frame.axes, dim)

    def halves(rows: Any) -> NDArray[np.float32]:
        made = np.empty((len(rows), 2 * dim), np.float32)
        starts, shares = _shares_of(linked, rows)
        shares *= np.float32(frame.weight)
        _fill_halves(rows, starts, shares, linked.neighbours, linked.offsets, center, context, made)
        return made

    def parts(rows: Any) -> Iterator[Any]:
        return (rows[part] for part in blocks(0, len(rows)))

    with ThreadPoolExecutor(available_threads()) as threads, threadpool_limits(1, "blas"):
        if frame.axes is None:
            moments = sum(threads.map(lambda rows: squares(halves(rows)), parts(_some_nodes(n))))
            axes, grouped = largest_directions(moments, n)
            if outside is not None:

                def inside(rows: Any) -> NDArray[np.float64]:
                    return squares(equal_lengths(halves(rows) @ axes))

                axes = apart_axes(axes, sum(threads.map(inside, parts(_some_inside(outside)))))
            frame = frame._replace(axes=axes, grouped=grouped)
        turned: Any = frame.axes
        # Smoothing needs rows of nodes around those that are wanted, too.
        every = np.array_equal(wanted, np.arange(n))
        around = wanted if every else np.flatnonzero(within(linked, wanted, reach(frame.smoothing)))
        near = made if every else np.empty((len(around), dim), np.float32)

        def turn(places: Any) -> None:
            rows = around[places]
            near[places] = equal_lengths(_turn(halves(rows), turned, outside, rows))

        list(threads.map(turn, parts(np.arange(len(around)))))  # raises what a thread has raised
        smooth(linked if every else among(linked, around), near, frame.smoothing, threads)
        if not every:
            made[:] = near[np.searchsorted(around, wanted)]
    _finish(linked, wanted, turned, outside, made)
    return frame


def _joint_in_slabs(graph: Any, center: Any, context: Any, slabs: int, made: NDArray[np.float32]) -> Frame:
    """Do the same as `_joint` for all nodes; the neighbours' rows are read from one slab at a time.

    Since the projection is linear, the rows of neighbours are projected before they are added.
    """
    n, dim = center.shape
    linked = _both_ways(graph) if graph.directed else graph
    frame, outside = Frame(weight=_NEAR, smoothing=weight_of(linked)), _outside(linked, None, dim)
    most = max(n // (2 * slabs), _FEWEST_DIRECTIONS_FROM)  # both halves of them take as much as a slab

    def moments(nodes: Any, turned: Any) -> Any:
        halves = [np.asarray(table[nodes]) for table in (center, context)]
        for half, other in zip(halves, (context, center), strict=True):
            sum_in_slabs(linked, nodes, other.__getitem__, slabs, frame.weight, half)
        both = (np.hstack([half[rows] for half in halves]) for rows in blocks(0, len(nodes)))
        return sum(squares(turned(rows)) for rows in both)

    with threadpool_limits(1, "blas"):  # the bits of a product depend on the number of threads
        axes, grouped = largest_directions(moments(_some_nodes(n, most), lambda rows: rows), n)
        if outside is not None:
            inside = _some_inside(outside, most)
            axes = apart_axes(axes, moments(inside, lambda rows: equal_lengths(rows @ axes)))
    sum_in_slabs(
        linked,
        None,
        lambda rows: _turn(np.hstack([context[rows], center[rows]]), axes, outside, rows),
        slabs,
        frame.weight,
        made,
        lambda rows: _turn(np.hstack([center[rows], context[rows]]), axes, outside, rows),
        equal_lengths,
    )
    with ThreadPoolExecutor(available_threads()) as threads:
        smooth(linked, made, frame.smoothing, threads, slabs)
    _finish(linked, np.arange(n), axes, outside, made)
    return frame._replace(axes=axes, grouped=grouped)


def _finish(linked: Any, wanted: Any, axes: Any, outside: Any, made: NDArray[np.float32]) -> None:
    """Give smoothed rows their lengths, and those outside the largest component what they have in common."""
    dim = made.shape[1]
    if outside is not None:
        roots = components(linked)
        sizes = np.bincount(roots)
    for part in blocks(0, len(made)):
        rows, nodes = equal_lengths(made[part]), wanted[part]
        if outside is not None:
            apart = np.flatnonzero(outside[nodes])
            lengths = lengths_outside(sizes[roots[nodes[apart]]], sizes.max())
            rows[apart] = rows[apart] * lengths[:, None] + axes[-1, dim:]


def _some_nodes(n_nodes: int, most: int = _DIRECTIONS_FROM) -> NDArray[np.int64]:
    return np.arange(n_nodes)[:: -(-n_nodes // min(most, _DIRECTIONS_FROM))]


def _some_inside(outside: NDArray[np.bool_], most: int = _DIRECTIONS_FROM) -> NDArray[np.int64]:
    inside = np.flatnonzero(~outside)
    return inside[_some_nodes(len(inside), most)]


def _outside(linked: Any, axes: Any, dim: int) -> NDArray[np.bool_] | None:
    """Return which nodes are outside the largest component, or None if their rows are made like all others.

    axes: those of the frame; None: of a new one.
    """
    if dim < EQUAL_FROM or (axes is not None and not has_common(axes)):
        return None
    outside = outside_largest(linked)
    return outside if outside.any() or axes is not None else None


def _turn(halves: Any, axes: Any, outside: Any, rows: Any) -> NDArray[np.float32]:
    """Return both halves of some rows, projected; outside: which of all rows have axes of their own."""
    dim = halves.shape[1] // 2
    turned: NDArray[np.float32] = halves @ axes[: 2 * dim, :dim]
    if outside is not None:
        apart = outside[rows]
        turned[apart] = halves[apart] @ axes[: 2 * dim, dim:]
    return turned


@cached(fastmath=True)
def _fill_halves(
    rows: Any, starts: Any, shares: Any, neighbours: Any, offsets: Any, center: Any, context: Any, made: Any
) -> None:
    """Fill made[i] with center and context of rows[i], each plus its neighbours' rows of the other table.

    Four neighbours at a time, so that as many rows are on their way from memory: several times as fast.
    """
    dim = center.shape[1]
    weights = np.empty(4, np.float32)
    for i in range(rows.size):
        row = rows[i]
        own, other = made[i, :dim], made[i, dim:]
        own[:] = center[row]
        other[:] = context[row]
        begin, count = offsets[row], starts[i + 1] - starts[i]
        for k in range(0, count, 4):
            for t in range(4):
                weights[t] = shares[starts[i] + k + t] if k + t < count else 0.0
            a, b = neighbours[begin + k], neighbours[begin + min(k + 1, count - 1)]
            c, d = neighbours[begin + min(k + 2, count - 1)], neighbours[begin + min(k + 3, count - 1)]
            for column in range(dim):
                own[column] += (weights[0] * context[a, column] + weights[1] * context[b, column]) + (
                    weights[2] * context[c, column] + weights[3] * context[d, column]
                )
                other[column] += (weights[0] * center[a, column] + weights[1] * center[b, column]) + (
                    weights[2] * center[c, column] + weights[3] * center[d, column]
                )


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


def _both_ways(graph: Any) -> Graph:
    """Return the graph with all arcs in both directions."""
    arcs = graph.to_scipy()
    rows = csr_array(arcs + arcs.T)
    return Graph(rows.indptr.astype(np.int64), rows.indices, rows.data, False, graph.nodes)


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
