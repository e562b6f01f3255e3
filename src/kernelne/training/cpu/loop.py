"""The loop of CPU training, in Numba: any mixture of kernels; each walk is sampled when it is trained on.

A walk is one mini-batch. Its center and context rows and its shared negatives are read once, all squared
distances come from one small matrix product, and both gradients are two more (`simd`). Every position's step
is computed from the values read at the walk's start.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached, uncached
from kernelne.training.cpu.barrier import next_block, take, wait_for_all
from kernelne.training.cpu.evaluate import FAST, compiled, evaluator
from kernelne.training.cpu.rows import measure, prefetch_walk, read_rows, write_rows
from kernelne.training.cpu.scratch import BATCH, Floats
from kernelne.training.cpu.simd import prefetch_row, prefetch_row_to_read
from kernelne.walks.negatives import draw_alias
from kernelne.walks.rng import LOW, NOISE, draw, stream_key
from kernelne.walks.sample import sample_walks

#: Deferred steps that are prefetched before one is added.
_AHEAD = 16
#: Most batches of walks that a thread takes at a time, and an odd number with bits all over.
_MOST_BATCHES, _SPREAD = 16, np.uint64(2654435761)


class Step(NamedTuple):
    """The settings that the loop needs."""

    window: int
    window_decay: float
    forward: bool
    n_negative: int
    n_shared: int
    l2: np.float32
    first_rate: float
    last_rate: float
    n_walks: int
    norm_limit: np.float32  # a row with a larger squared norm has exploded


class Tables(NamedTuple):
    """The tables, and the arrays that collect (row, step) if steps are deferred."""

    center: Floats  # n × dim
    context: Floats
    deferred: bool
    center_steps: Floats  # walks of a chunk · rows × dim
    center_rows: NDArray[np.int64]  # row of each step; -1: no step
    context_steps: Floats
    context_rows: NDArray[np.int64]
    center_order: NDArray[
        np.int64
    ]  # places of steps: those of each thread's walks, sorted by whose rows they are
    context_order: NDArray[np.int64]
    ends: NDArray[
        np.int64
    ]  # 2 × threads × at least threads + 1: where the places for each thread begin and end


class Mixture(NamedTuple):
    """k(D) = Σ coefficients[i] · KERNELS[kinds[i]](D, sigmas[i])."""

    kinds: NDArray[np.int64]
    sigmas: Floats
    coefficients: Floats
    learned: bool  # whether to compute the sums from which the coefficients are solved


evaluate_kernel = evaluator(__name__)


@compiled
def weigh_pairs(length: Any, step: Any, s: Any) -> Any:
    """Fill in weights and targets for walks of this length; returns the total weight of their pairs."""
    columns = s.D.shape[1]
    s.known[0] = length
    s.D[:] = 0.0  # values of a longer walk would be read as distances
    s.weights[:] = 0.0
    s.targets[:] = 0.0
    s.pairs[:] = 0.0
    s.center_decay[:] = 0.0
    s.context_decay[:] = 0.0
    for i in range(length):
        for j in range(i if step.forward else max(0, i - step.window), min(length, i + step.window + 1)):
            if i != j:
                weight = step.window_decay ** (abs(i - j) - 1)
                s.weights[i * columns + j] = weight
                s.targets[i * columns + j] = 1.0
                s.pairs[i] += weight
        for r in range(step.n_shared):
            s.weights[i * columns + length + r] = step.n_negative * s.pairs[i] / step.n_shared
    return s.pairs.sum()


@compiled
def _product_sum(w: Any, x: Any, y: Any) -> Any:
    total = np.float32(0.0)
    for t in range(w.size):
        total += w[t] * x[t] * y[t]
    return total


@compiled
def _scale(c: Any, out: Any) -> None:
    for t in range(out.size):
        out[t] *= c


@compiled
def _add_scaled(c: Any, x: Any, out: Any) -> None:
    for t in range(out.size):
        out[t] += c * x[t]


@compiled
def _mix(n: Any, mixture: Any, s: Any, sums: Any) -> None:
    """Write Σ cᵢkᵢ and its slope to row 0; add Σ w·t·kᵢ and Σ w·kᵢ·kⱼ, from which c is solved, to `sums`."""
    n_kernels = mixture.kinds.size
    w, targets = s.weights[:n], s.targets[:n]
    for a in range(n_kernels):
        values = s.values[a, :n]
        sums[2 + a] += _product_sum(w, targets, values)
        for b in range(a + 1):
            sums[2 + n_kernels + a * n_kernels + b] += _product_sum(w, values, s.values[b, :n])
    for out in (s.values, s.slopes):
        total = out[0, :n]
        _scale(mixture.coefficients[0], total)
        for q in range(1, n_kernels):
            _add_scaled(mixture.coefficients[q], out[q, :n], total)


@compiled
def _weigh(scale: Any, w: Any, targets: Any, values: Any, slopes: Any, out: Any) -> Any:
    loss = np.float32(0.0)
    for t in range(out.size):
        miss = targets[t] - values[t]
        pressure = w[t] * miss
        loss += pressure * miss
        out[t] = scale * pressure * slopes[t]
    return loss


@compiled
def _weigh_gradients(n: Any, rate: Any, mixture: Any, s: Any, sums: Any) -> Any:
    """Replace n squared distances by the weights of the gradient; returns the loss."""
    D = s.D.reshape(-1)[:n]
    for q in range(mixture.kinds.size):
        evaluate_kernel(mixture.kinds[q], mixture.sigmas[q], D, s.values[q, :n], s.slopes[q, :n])
    if mixture.learned or mixture.kinds.size > 1:
        _mix(n, mixture, s, sums)
    return _weigh(np.float32(-4.0) * rate, s.weights[:n], s.targets[:n], s.values[0, :n], s.slopes[0, :n], D)


@compiled
def sample_batch(start: Any, size: Any, graph: Any, plan: Any, noise: Any, s: Any) -> None:
    """Sample walks start … start + size − 1 and their negatives."""
    sample_walks(graph, plan, start, s.walks[:size], s.lengths[:size])
    for b in range(size):
        key = stream_key(plan.seed, NOISE, start + b)
        for r in range(s.noise.shape[1]):
            s.noise[b, r] = draw_alias(noise, draw(key, r))


@uncached(inline="always")  # in Numba, not in LLVM: as a function of its own it would be compiled twice
def train_walks(
    first: Any, last: Any, graph: Any, plan: Any, noise: Any, step: Any, mixture: Any, tables: Any, slot: Any,
    s: Any, sums: Any,
) -> Any:  # fmt: skip
    """Train on walks first … last − 1; returns the number of exploded rows.

    `sums` (rows × `n_sums`) collects pairs, loss and moments: all in row 0 or, if steps are deferred, in one
    row per walk, from `slot` on, so that the order in which they are added does not depend on the threads.
    """
    n_pairs, n_bad = 0.0 + s.pairs.sum(), 0
    columns = s.D.shape[1]
    for start in range(first, last, BATCH):
        size = min(BATCH, last - start)
        sample_batch(start, size, graph, plan, noise, s)
        place = slot + start - first
        prefetch_walk(0, place, tables, s)
        for b in range(size):
            length = s.lengths[b]
            if length < 2:
                continue
            if length != s.known[0]:
                n_pairs = weigh_pairs(length, step, s)
            walk = start + b
            rate = np.float32(step.first_rate + (step.last_rate - step.first_rate) * (walk / step.n_walks))
            n_contexts = length + step.n_shared
            n_bad += read_rows(b, rate, n_pairs, step, tables, s)
            ahead = min(b + 1, size - 1)
            measure(length, n_contexts, step.window, ahead, place + ahead, tables, s)
            here = sums[place + b if tables.deferred else 0]
            here[0] += n_pairs
            here[1] += _weigh_gradients(length * columns, rate, mixture, s, here)
            write_rows(length, n_contexts, step.window, place + b, tables, s)
    return n_bad


@compiled
def sort_steps(rows: Any, first: Any, last: Any, n_parts: Any, order: Any, ends: Any) -> None:
    """Write the places of steps first … last − 1 to the same part of `order`, by the part of their row.

    Those of part p are then at ends[p] … ends[p + 1] − 1, in ascending order.
    """
    for p in range(n_parts + 1):
        ends[p] = 0
    for e in range(first, last):
        if rows[e] >= 0:
            ends[_part_of(rows[e], n_parts) + 1] += 1
    at = first
    for p in range(n_parts):
        count = ends[p + 1]
        ends[p + 1] = at
        at += count
    ends[0] = first
    for e in range(first, last):
        if rows[e] >= 0:
            p = _part_of(rows[e], n_parts) + 1
            order[ends[p]] = e
            ends[p] += 1


@compiled
def apply_steps(table: Any, steps: Any, rows: Any, order: Any, ends: Any, part: Any, n_parts: Any) -> None:
    """Add the steps whose row belongs to this part, in the order of the walks.

    Some of those that come next are prefetched, since other cores have written them.
    """
    _prefetch_steps(table, steps, rows, order, ends[0, part], min(ends[0, part] + _AHEAD, ends[0, part + 1]))
    for p in range(n_parts):
        first, last = ends[p, part], ends[p, part + 1]
        if p + 1 < n_parts:
            begin = ends[p + 1, part]
            _prefetch_steps(table, steps, rows, order, begin, min(begin + _AHEAD, ends[p + 1, part + 1]))
        for x in range(first, last):
            if x + _AHEAD < last:
                _prefetch_steps(table, steps, rows, order, x + _AHEAD, x + _AHEAD + 1)
            place = order[x]
            row = rows[place]
            for k in range(table.shape[1]):
                table[row, k] += steps[place, k]


@compiled
def _prefetch_steps(table: Any, steps: Any, rows: Any, order: Any, first: Any, last: Any) -> None:
    for x in range(first, last):
        prefetch_row(table, rows[order[x]])
        prefetch_row_to_read(steps, order[x])


@compiled
def _part_of(row: Any, n_parts: Any) -> Any:
    """The part to which a row belongs: a hash of its number, as a division would take longer."""
    return np.int64((np.uint64(row) * _SPREAD & LOW) * np.uint64(n_parts) >> np.uint64(32))


@compiled
def walks_at_once(first: Any, last: Any, n_parts: Any) -> Any:
    """Number of walks that a thread takes at a time: whole batches, an eighth of its share of a block."""
    batches = (last - first) // (8 * BATCH * n_parts)
    return BATCH * min(max(batches, 1), _MOST_BATCHES)


@cached(error_model="numpy", fastmath=FAST, _nrt=False)
def train_part(
    part: Any, n_parts: Any, barrier: Any, graph: Any, plan: Any, noise: Any, step: Any, mixture: Any,
    tables: Any, s: Any, walk_sums: Any, sums: Any, n_bad: Any,
) -> None:  # fmt: skip
    """Train on one thread's part of the next block (part 0), or of all blocks until there are no more.

    Threads take walks from the counter of the block, a few at a time, and row 0 of `walk_sums`, one for each
    thread, collects their sums. If steps are deferred, walks are trained on in chunks of as many walks as
    `walk_sums` has rows: all threads compute the steps of a chunk from the same tables, then each thread adds
    those of its own rows, and `sums` collects the rows of `walk_sums`. The result then does not depend on the
    number of threads. `n_bad[0]` counts exploded rows.
    """
    rows, columns = s.center_rows.size, s.context_rows.size
    while True:
        first, last = next_block(barrier, n_parts)
        if first == last:
            return
        chunk = walk_sums.shape[0] if tables.deferred else last - first
        at_once = walks_at_once(first, last, n_parts)
        for start in range(first, last, chunk):
            size = min(chunk, last - start)
            low, high = start + size * part // n_parts, start + size * (part + 1) // n_parts
            slot = low - start
            if tables.deferred:
                walk_sums[slot : high - start] = 0.0
                tables.center_rows[slot * rows : (high - start) * rows] = -1
                tables.context_rows[slot * columns : (high - start) * columns] = -1
            else:
                low = take(barrier, at_once)
                high = min(low + at_once, last)
            while low < high:
                n_bad[0] += train_walks(
                    low, high, graph, plan, noise, step, mixture, tables, slot, s, walk_sums
                )
                low = high if tables.deferred else take(barrier, at_once)
                high = high if tables.deferred else min(low + at_once, last)
            if tables.deferred:
                begin, end = size * part // n_parts, size * (part + 1) // n_parts
                sort_steps(
                    tables.center_rows, begin * rows, end * rows, n_parts, tables.center_order,
                    tables.ends[0, part],
                )  # fmt: skip
                sort_steps(
                    tables.context_rows, begin * columns, end * columns, n_parts, tables.context_order,
                    tables.ends[1, part],
                )  # fmt: skip
                if not wait_for_all(barrier, n_parts):
                    return
                apply_steps(
                    tables.center, tables.center_steps, tables.center_rows, tables.center_order,
                    tables.ends[0], part, n_parts,
                )  # fmt: skip
                apply_steps(
                    tables.context, tables.context_steps, tables.context_rows, tables.context_order,
                    tables.ends[1], part, n_parts,
                )  # fmt: skip
                if part == 0:
                    for w in range(size):
                        for x in range(sums.size):
                            sums[x] += walk_sums[w, x]
                if not wait_for_all(barrier, n_parts):
                    return
        if not wait_for_all(barrier, n_parts) or part == 0:
            return
