"""Walks, negatives and initial tables on the GPU, in Triton, with the random numbers of `kernelne.walks`.

The generator is the same, so on an unweighted graph the walks are those of the CPU, except for rare steps
with many rejections due to p and q. Sums of weights are rounded to 32 bits in another order, so that a
weighted walk occasionally takes another edge.
"""

from __future__ import annotations

import triton
import triton.language as tl

_GOLDEN = tl.constexpr(0x9E3779B97F4A7C15)
_MIX_1 = tl.constexpr(0xBF58476D1CE4E5B9)
_MIX_2 = tl.constexpr(0x94D049BB133111EB)
_LOW = tl.constexpr(0xFFFFFFFF)
_UNIT = tl.constexpr(2.0**-32)
_START, _STEP, _NOISE, _INITIAL = tl.constexpr(1), tl.constexpr(2), tl.constexpr(3), tl.constexpr(4)
_FEISTEL_ROUNDS = tl.constexpr(6)
_MAX_REJECTIONS = tl.constexpr(4096)


@triton.jit
def mix(z: tl.tensor) -> tl.tensor:
    z = (z ^ (z >> 30)) * _MIX_1
    z = (z ^ (z >> 27)) * _MIX_2
    return z ^ (z >> 31)


@triton.jit
def _stream_key(seed: tl.tensor, stream: tl.tensor, number: tl.tensor) -> tl.tensor:
    base = mix(seed + stream.to(tl.uint64) * _GOLDEN)
    return mix(base ^ (number.to(tl.uint64) * _GOLDEN))


@triton.jit
def _draw(key: tl.tensor, counter: tl.tensor) -> tl.tensor:
    return mix(key + (counter.to(tl.uint64) + 1) * _GOLDEN)


@triton.jit
def below(bits: tl.tensor, n: tl.tensor) -> tl.tensor:
    return (((bits >> 32) * n.to(tl.uint64)) >> 32).to(tl.int64)


@triton.jit(do_not_specialize=["n_rows"])
def fill_uniform(
    table: tl.tensor,
    seeds: tl.tensor,
    n_rows: tl.int64,
    bound: tl.float64,
    DIM: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Fill table (n_rows, DIM) with uniform random numbers in ±bound, the same as on the CPU."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    key = _stream_key(tl.load(seeds).to(tl.uint64), tl.full((), _INITIAL, tl.int64), place // DIM)
    unit = (_draw(key, place % DIM) >> 11).to(tl.float64) * (2.0**-52) - 1.0
    tl.store(table + place, (unit * bound).to(tl.float32), mask=place < n_rows * DIM)


@triton.jit
def _start_node(seed: tl.tensor, walk: tl.tensor, n: tl.tensor, side: tl.tensor) -> tl.tensor:
    """Start nodes of walks: each round of n walks starts once at every node, in a new order."""
    key = _stream_key(seed, tl.full((), _START, tl.int64), walk // n)
    x = walk % n
    outside = x >= 0  # all true: the network is applied at least once
    while tl.max(outside.to(tl.int32), axis=0) > 0:
        left, right = x // side, x % side
        for level in tl.static_range(_FEISTEL_ROUNDS):
            turned = left + below(_draw(key, right * _FEISTEL_ROUNDS + level), side)
            left, right = right, tl.where(turned >= side, turned - side, turned)
        x = tl.where(outside, left * side + right, x)
        outside = x >= n
    return x


@triton.jit
def _neighbour(
    offsets: tl.tensor,
    thresholds: tl.tensor,
    v: tl.tensor,
    bits: tl.tensor,
    alive: tl.tensor,
    WEIGHTED: tl.constexpr,
) -> tl.tensor:
    """Draw neighbours of the nodes v by weight; returns their positions in `neighbours`."""
    low = tl.load(offsets + v, mask=alive, other=0)
    high = tl.load(offsets + v + 1, mask=alive, other=1)
    if not WEIGHTED:
        return low + below(bits, high - low)
    target = (bits >> 32).to(tl.int64)
    high -= 1
    while tl.max((low < high).to(tl.int32), axis=0) > 0:
        middle = (low + high) >> 1
        open_ = low < high
        upto = tl.load(thresholds + middle, mask=open_ & alive, other=0).to(tl.int64) & _LOW
        high = tl.where(open_ & (upto > target), middle, high)
        low = tl.where(open_ & (upto <= target), middle + 1, low)
    return low


@triton.jit
def _find(
    offsets: tl.tensor, neighbours: tl.tensor, v: tl.tensor, u: tl.tensor, alive: tl.tensor
) -> tl.tensor:
    """Positions of u among the neighbours of v, or -1."""
    low = tl.load(offsets + v, mask=alive, other=0)
    end = tl.load(offsets + v + 1, mask=alive, other=0)
    high = end
    while tl.max((low < high).to(tl.int32), axis=0) > 0:
        middle = (low + high) >> 1
        open_ = low < high
        less = tl.load(neighbours + middle, mask=open_ & alive, other=0) < u
        low = tl.where(open_ & less, middle + 1, low)
        high = tl.where(open_ & (less == 0), middle, high)
    there = (low < end) & alive
    found = tl.load(neighbours + low, mask=there, other=-1)
    return tl.where(there & (found == u), low, -1)


@triton.jit
def _probability(
    offsets: tl.tensor,
    thresholds: tl.tensor,
    v: tl.tensor,
    position: tl.tensor,
    alive: tl.tensor,
    WEIGHTED: tl.constexpr,
) -> tl.tensor:
    """First-order probability with which `_neighbour` draws the edges at `position`."""
    low = tl.load(offsets + v, mask=alive, other=0)
    high = tl.load(offsets + v + 1, mask=alive, other=1)
    if not WEIGHTED:
        return 1.0 / (high - low).to(tl.float64)
    before = tl.load(thresholds + position - 1, mask=alive & (position > low), other=0).to(tl.int64) & _LOW
    upto = tl.load(thresholds + position, mask=alive, other=0).to(tl.int64) & _LOW
    upto = tl.where(position < high - 1, upto, 1 << 32)
    return (upto - before).to(tl.float64) * _UNIT


@triton.jit
def _second_order(
    offsets: tl.tensor,
    neighbours: tl.tensor,
    thresholds: tl.tensor,
    inverse_p: tl.tensor,
    inverse_q: tl.tensor,
    previous: tl.tensor,
    v: tl.tensor,
    key: tl.tensor,
    step: tl.tensor,
    alive: tl.tensor,
    WEIGHTED: tl.constexpr,
) -> tl.tensor:
    """Next edges of node2vec walks by rejection sampling; see `kernelne.walks.sample._second_order`.

    The CPU computes the exact distribution after 64 rejections; here one walk would keep 127 others waiting,
    so it continues. If all proposals are rejected, which takes p and q above 1000, the last one is used.
    """
    counter = step.to(tl.uint64) << 32
    ceiling = tl.maximum(inverse_q, 1.0)
    back = _find(offsets, neighbours, v, previous, alive)
    above = tl.maximum(inverse_p - ceiling, 0.0)
    excess = tl.where(
        back >= 0,
        above * _probability(offsets, thresholds, v, tl.maximum(back, 0), alive & (back >= 0), WEIGHTED),
        0.0,
    )
    chosen = tl.load(offsets + v, mask=alive, other=0)
    searching = alive
    tries = tl.full((), 0, tl.int32)
    while (tl.max(searching.to(tl.int32), axis=0) > 0) & (tries < _MAX_REJECTIONS):
        tries += 1
        counter += 1
        bits = _draw(key, counter)
        height = (bits & _LOW).to(tl.float64) * _UNIT * (ceiling + excess)
        is_back = height >= ceiling
        position = _neighbour(offsets, thresholds, v, bits, searching, WEIGHTED)
        x = tl.load(neighbours + position, mask=searching, other=0)
        near = _find(offsets, neighbours, previous, x, searching) >= 0
        bias = tl.where(x == previous, inverse_p, tl.where(near, 1.0, inverse_q))
        chosen = tl.where(searching, tl.where(is_back, back, position), chosen)
        searching = searching & (is_back == 0) & (height >= bias)
    return chosen


@triton.jit(do_not_specialize=["first", "count", "n", "side", "inverse_p", "inverse_q"])
def sample_walks(
    offsets: tl.tensor,
    neighbours: tl.tensor,
    thresholds: tl.tensor,
    keep: tl.tensor,
    other: tl.tensor,
    rows: tl.tensor,
    lengths: tl.tensor,
    seeds: tl.tensor,
    first: tl.int64,
    count: tl.int32,
    n: tl.int64,
    side: tl.int64,
    inverse_p: tl.float64,
    inverse_q: tl.float64,
    LENGTH: tl.constexpr,
    N_SHARED: tl.constexpr,
    WEIGHTED: tl.constexpr,
    SECOND_ORDER: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Fill rows (count × (LENGTH + N_SHARED), int32) with walks first, first + 1, … and their negatives.

    `lengths` (count): number of nodes of each walk. `keep`, `other`: alias table of the noise distribution.
    """
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    walk = first.to(tl.int64) + place
    seed = tl.load(seeds).to(tl.uint64, bitcast=True)
    out = rows + place.to(tl.int64) * (LENGTH + N_SHARED)
    v = _start_node(seed, walk, n, side)
    tl.store(out, v.to(tl.int32), mask=inside)
    key = _stream_key(seed, tl.full((), _STEP, tl.int64), walk)
    length = tl.full((BLOCK,), LENGTH, tl.int32)
    alive = inside
    previous = tl.zeros_like(v)  # not v itself, which Triton would treat as constant in the loop
    for step in range(1, LENGTH):
        low = tl.load(offsets + v, mask=alive, other=0)
        high = tl.load(offsets + v + 1, mask=alive, other=0)
        length = tl.where(alive & (low == high), step, length)
        alive = alive & (low < high)
        moves = tl.full((BLOCK,), 0, tl.int64) + step
        if SECOND_ORDER:
            if step == 1:
                position = _neighbour(offsets, thresholds, v, _draw(key, moves << 32), alive, WEIGHTED)
            else:
                position = _second_order(
                    offsets, neighbours, thresholds, inverse_p, inverse_q, previous, v, key, moves, alive,
                    WEIGHTED,
                )  # fmt: skip
        else:
            position = _neighbour(offsets, thresholds, v, _draw(key, moves << 32), alive, WEIGHTED)
        previous = v
        v = tl.load(neighbours + position, mask=alive, other=0).to(tl.int64)
        tl.store(out + step, v.to(tl.int32), mask=alive)
    tl.store(lengths + place, length, mask=inside)
    key = _stream_key(seed, tl.full((), _NOISE, tl.int64), walk)
    for r in range(N_SHARED):
        bits = _draw(key, tl.full((BLOCK,), 0, tl.int64) + r)
        slot = below(bits, n)
        kept = (bits & _LOW).to(tl.int64) <= (tl.load(keep + slot, mask=inside, other=0).to(tl.int64) & _LOW)
        chosen = tl.where(kept, slot, tl.load(other + slot, mask=inside, other=0).to(tl.int64))
        tl.store(out + LENGTH + r, chosen.to(tl.int32), mask=inside)
