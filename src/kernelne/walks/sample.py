"""Random walks that depend on the seed and the walk number alone, not on thread, batch or machine.

A counter-based generator gives every walk its own stream, first-order steps use integer arithmetic only, and
the order of the start nodes is a keyed permutation computed on the fly: no walk, order or table is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.walks.rng import LOW, START, STEP, U32, UNIT, below, draw, stream_key

if TYPE_CHECKING:
    from kernelne.graph import Graph

#: Decorator for functions that make no arrays: without counts of references, which are shared by all threads.
unowned = cached(_nrt=False)

_FEISTEL_ROUNDS = 6
_MAX_REJECTIONS = 64


class WalkGraph(NamedTuple):
    """The arrays of a graph that compiled loops read.

    thresholds: empty if the graph has no weights. starts: the nodes from which walks start; empty: all.
    times, totals: those of `graph.times.TimedArcs`, whose offsets and neighbours then take the place of the
    graph's; empty if arcs have no times.
    """

    offsets: NDArray[np.int64]
    neighbours: NDArray[np.int32] | NDArray[np.int64]
    thresholds: NDArray[np.uint32]
    starts: NDArray[np.int64]
    times: NDArray[np.float64]
    totals: NDArray[np.float64]


class WalkPlan(NamedTuple):
    """Parameters of the walks: seed, number of nodes, and node2vec's 1/p and 1/q (1, 1: first-order)."""

    seed: np.uint64
    length: int
    inverse_p: float
    inverse_q: float


@unowned
def _side(n: Any) -> Any:
    """⌈√n⌉."""
    side = np.uint64(np.sqrt(np.float64(n)))
    while side * side < np.uint64(n):
        side += np.uint64(1)
    return side


@unowned
def _turn(key: Any, pair: Any, side: Any, level: Any) -> Any:
    """One round of a Feistel network on [0, side)², a pair being the upper and the lower 32 bits."""
    left, right = pair >> U32, pair & LOW
    left += (draw(key, right * np.uint64(_FEISTEL_ROUNDS) + np.uint64(level)) >> U32) * side >> U32
    return right << U32 | (left - side if left >= side else left)


@unowned
def _permuted(key: Any, x: Any, side: Any, n: Any) -> Any:
    """The network applied to x < side², and to the result, until it is below n ≤ side²."""
    while True:
        pair = x // side << U32 | x % side
        for level in range(_FEISTEL_ROUNDS):
            pair = _turn(key, pair, side, level)
        x = (pair >> U32) * side + (pair & LOW)
        if x < n:
            return x


@unowned
def start_node(seed: Any, walk: Any, n: Any) -> Any:
    """Start node of walk number `walk`: each round of n walks starts once at every node, in a new order."""
    key = stream_key(seed, START, walk // n)
    return np.int64(_permuted(key, np.uint64(walk % n), _side(n), np.uint64(n)))


@unowned
def _permute(key: Any, first: Any, n: Any, out: Any) -> None:
    """Write `_permuted` of first, first + 1, … to `out`, in loops that LLVM turns into vector code."""
    side = _side(n)
    for w in range(out.size):
        x = np.uint64(first + w)
        out[w] = x // side << U32 | x % side
    for level in range(_FEISTEL_ROUNDS):
        for w in range(out.size):
            out[w] = _turn(key, np.uint64(out[w]), side, level)
    for w in range(out.size):
        pair = np.uint64(out[w])
        x = (pair >> U32) * side + (pair & LOW)
        out[w] = x if x < np.uint64(n) else _permuted(key, x, side, np.uint64(n))


@unowned
def start_nodes(seed: Any, first: Any, n: Any, out: Any) -> None:
    """Write the start nodes of walks first, first + 1, … to `out`."""
    done = 0
    while done < out.size:
        place = (first + done) % n
        end = min(out.size, done + n - place)
        _permute(stream_key(seed, START, (first + done) // n), place, n, out[done:end])
        done = end


@unowned
def _search(values: Any, first: Any, n: Any, limit: Any) -> Any:
    """First of n positions from `first` on whose ascending values are not below `limit`, else first + n.

    The sign of a difference takes the place of branches, which would be guessed wrong half of the time.
    """
    while n > 1:
        half = n >> 1
        first += half & (np.int64(values[first + half - 1]) - limit >> 63)
        n -= half
    return first - (np.int64(values[first]) - limit >> 63) if n == 1 else first


@unowned
def pick_neighbour(graph: Any, v: Any, bits: Any) -> Any:
    """Draw a neighbour of v, which must have one, by weight; returns its position in `neighbours`."""
    low, high = graph.offsets[v], graph.offsets[v + 1]
    if graph.thresholds.size == 0:
        return low + below(bits, high - low)
    return _search(graph.thresholds, low, high - low - 1, np.int64(bits >> U32) + 1)


@unowned
def _find(graph: Any, v: Any, u: Any) -> Any:
    """Position of u among the neighbours of v, or -1."""
    low, end = graph.offsets[v], graph.offsets[v + 1]
    at = _search(graph.neighbours, low, end - low, np.int64(u))
    return at if at < end and graph.neighbours[at] == u else np.int64(-1)


@unowned
def _probability(graph: Any, v: Any, position: Any) -> Any:
    """Probability of the first-order step from v along the edge at `position`, as rounded for sampling."""
    low, high = graph.offsets[v], graph.offsets[v + 1]
    if graph.thresholds.size == 0:
        return 1.0 / (high - low)
    below_it = np.float64(graph.thresholds[position - 1]) if position > low else 0.0
    upto = np.float64(graph.thresholds[position]) if position < high - 1 else 2.0**32
    return (upto - below_it) * UNIT


@unowned
def _bias(graph: Any, plan: Any, previous: Any, x: Any) -> Any:
    """node2vec's α of a step to x: the previous node, a neighbour of it, or neither."""
    if x == previous:
        return plan.inverse_p
    return 1.0 if _find(graph, previous, x) >= 0 else plan.inverse_q


@unowned
def _second_order(graph: Any, plan: Any, previous: Any, v: Any, key: Any, step: Any) -> Any:
    """Position of the next edge of a node2vec walk, by rejection sampling: no table per edge is needed.

    A neighbour is proposed by its first-order probability, and accepted if a uniform number up to
    max(1, 1/q) is below its bias. Only the edge back can have a larger bias: the excess is one more outcome
    beside the others, so that a small p causes no rejections. After _MAX_REJECTIONS proposals the exact
    distribution is computed instead.
    """
    counter = np.uint64(step) << U32
    ceiling = max(1.0, plan.inverse_q)
    floor = min(1.0, plan.inverse_q)
    back, excess = np.int64(-1), 0.0
    if plan.inverse_p > ceiling:
        back = _find(graph, v, previous)
        if back >= 0:
            excess = (plan.inverse_p - ceiling) * _probability(graph, v, back)
    for _ in range(_MAX_REJECTIONS):
        counter += np.uint64(1)
        bits = draw(key, counter)
        height = np.float64(bits & LOW) * UNIT * (ceiling + excess)
        if height >= ceiling:
            return back
        position = pick_neighbour(graph, v, bits)
        x = graph.neighbours[position]
        if (height < floor and x != previous) or height < _bias(graph, plan, previous, x):
            return position
    total = 0.0
    for position in range(graph.offsets[v], graph.offsets[v + 1]):
        bias = _bias(graph, plan, previous, graph.neighbours[position])
        total += bias * _probability(graph, v, position)
    target = np.float64(draw(key, counter + np.uint64(1)) >> U32) * UNIT * total
    chosen = graph.offsets[v]
    for position in range(graph.offsets[v], graph.offsets[v + 1]):
        bias = _bias(graph, plan, previous, graph.neighbours[position])
        share = bias * _probability(graph, v, position)
        if share > 0.0:
            chosen = position
        target -= share
        if target < 0.0:
            break
    return chosen


@unowned
def _walk_in_time(graph: Any, key: Any, walk: Any) -> Any:
    """Fill `walk` from its first node on with steps along arcs that are no older than the last one.

    Returns its length: it ends where no such arc is left. All later arcs of a node are equally likely, or by
    their weights.
    """
    time = -np.inf
    for step in range(1, walk.size):
        v = walk[step - 1]
        begin, end = graph.offsets[v], graph.offsets[v + 1]
        low = begin + np.searchsorted(graph.times[begin:end], time)
        if low == end:
            return step
        bits = draw(key, np.uint64(step) << U32)
        position = low + below(bits, end - low)
        if graph.totals.size:
            before = graph.totals[low - 1] if low > begin else 0.0
            target = before + (graph.totals[end - 1] - before) * (np.float64(bits >> U32) * UNIT)
            found = low + np.searchsorted(graph.totals[low:end], target, side="right")
            position = min(found, end - 1)
        walk[step] = graph.neighbours[position]
        time = graph.times[position]
    return walk.size


@unowned
def sample_walks(graph: Any, plan: Any, first: Any, walks: Any, lengths: Any) -> None:
    """Fill `walks` (count × length, int64) and `lengths` (count) with walks first, first + 1, …

    All walks of the batch take their first step, then their second, …, so that their memory accesses overlap.
    A walk ends at a node without neighbours; entries beyond its length are not written.
    """
    n = graph.starts.size if graph.starts.size else graph.offsets.size - 1
    first_order = plan.inverse_p == 1.0 and plan.inverse_q == 1.0
    start_nodes(plan.seed, first, n, lengths)
    for w in range(lengths.size):
        walks[w, 0] = graph.starts[lengths[w]] if graph.starts.size else lengths[w]
        lengths[w] = plan.length
        if graph.times.size:
            lengths[w] = _walk_in_time(graph, stream_key(plan.seed, STEP, first + w), walks[w, : plan.length])
    for step in range(1, 0 if graph.times.size else plan.length):
        for w in range(lengths.size):
            if lengths[w] < plan.length:
                continue
            v = walks[w, step - 1]
            if graph.offsets[v] == graph.offsets[v + 1]:
                lengths[w] = step
                continue
            key = stream_key(plan.seed, STEP, first + w)
            if first_order or step == 1:
                position = pick_neighbour(graph, v, draw(key, np.uint64(step) << U32))
            else:
                position = _second_order(graph, plan, walks[w, step - 2], v, key, step)
            walks[w, step] = graph.neighbours[position]


@cached()
def _cumulate(offsets: Any, weights: Any, thresholds: Any) -> None:
    for v in range(offsets.size - 1):
        total = 0.0
        for position in range(offsets[v], offsets[v + 1]):
            total += weights[position]
        sum_so_far = 0.0
        for position in range(offsets[v], offsets[v + 1]):
            sum_so_far += weights[position]
            thresholds[position] = np.uint32(min(sum_so_far / total * 2.0**32, 2.0**32 - 1.0))


def walk_graph(graph: Graph, starts: NDArray[np.int64] | None = None) -> WalkGraph:
    """Return the arrays that sampling reads; weights become one 32-bit cumulative probability per edge."""
    chosen, empty = np.empty(0, np.int64) if starts is None else starts, np.empty(0)
    empty.flags.writeable = False  # as times are: loops are not compiled a second time for graphs with them
    if graph.timed is not None:
        offsets, neighbours, times, totals = graph.timed
        return WalkGraph(offsets, neighbours, np.empty(0, np.uint32), chosen, times, totals)
    thresholds = np.empty(0 if graph.weights is None else graph.neighbours.size, np.uint32)
    if graph.weights is not None:
        _cumulate(graph.offsets, graph.weights, thresholds)
    return WalkGraph(graph.offsets, graph.neighbours, thresholds, chosen, empty, empty)


@cached()
def _push(graph: Any, mass: Any, moved: Any) -> None:
    """One first-order step of a distribution over the nodes: moved += mass · P."""
    for v in range(mass.size):
        low, high = graph.offsets[v], graph.offsets[v + 1]
        if mass[v] == 0.0 or low == high:
            continue
        for position in range(low, high):
            moved[graph.neighbours[position]] += mass[v] * _probability(graph, v, position)


@cached()
def _count(graph: Any, plan: Any, first: Any, last: Any, counts: Any) -> None:
    walks, lengths = np.empty((64, plan.length), np.int64), np.empty(64, np.int64)
    for start in range(first, last, 64):
        size = min(64, last - start)
        sample_walks(graph, plan, start, walks[:size], lengths[:size])
        for w in range(size):
            for step in range(lengths[w]):
                counts[walks[w, step]] += 1.0


#: Rounds (one walk from each node) that are counted to estimate the visits of second-order walks.
COUNTED_ROUNDS = 10


def expected_visits(
    graph: WalkGraph, plan: WalkPlan, walks_per_node: int, tick: Callable[[], None] = lambda: None
) -> NDArray[np.float64]:
    """Expected number of visits to each node per round of walks, float64 (n,).

    Exact for first-order walks, whose distribution is propagated along the edges; for second-order walks and
    those in the order of time the mean over the first `COUNTED_ROUNDS` rounds of the walks that are used in
    training. `tick` is called between parts of the work.
    """
    n, starts = graph.offsets.size - 1, graph.starts
    if plan.inverse_p == plan.inverse_q == 1.0 and not graph.times.size:
        mass = np.bincount(starts, minlength=n).astype(np.float64) if starts.size else np.ones(n)
        visits = mass.copy()
        for _ in range(plan.length - 1):
            moved = np.zeros(n)
            _push(graph, mass, moved)
            visits += moved
            mass = moved
            tick()
        return visits
    rounds, n_starts = min(walks_per_node, COUNTED_ROUNDS), starts.size or n
    visits = np.zeros(n)
    for r in range(rounds):
        _count(graph, plan, r * n_starts, (r + 1) * n_starts, visits)
        tick()
    return visits / rounds
