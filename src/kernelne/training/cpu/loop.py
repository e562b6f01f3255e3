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
            if tables.deferred and b + 1 < size:
                prefetch_walk(b + 1, place + b + 1, tables, s)
            length = s.lengths[b]
            if length < 2:
                continue
            if length != s.known[0]:
                n_pairs = weigh_pairs(length, step, s)
            walk = start + b
            rate = np.float32(step.first_rate + (step.last_rate - step.first_rate) * (walk / step.n_walks))
            n_contexts = length + step.n_shared
            n_bad += read_rows(b, rate, n_pairs, step, tables, s)
            measure(length, n_contexts, step.window, min(b + 1, size - 1), tables, s)
            here = sums[place + b if tables.deferred else 0]
            here[0] += n_pairs
            here[1] += _weigh_gradients(length * columns, rate, mixture, s, here)
            write_rows(length, n_contexts, step.window, place + b, tables, s)
    return n_bad


@compiled
def apply_steps(table: Any, steps: Any, rows: Any, part: Any, n_parts: Any, found: Any) -> None:
    """Add the steps whose row belongs to this part, in the order of the walks.

    found: room for the places of some steps. As many are prefetched at the same time, since other cores have
    written them.
    """
    n_found = 0
    for e in range(rows.size + 1):
        if n_found == found.size or e == rows.size:
            for f in range(n_found):
                place = found[f]
                row = rows[place]
                for k in range(table.shape[1]):
                    table[row, k] += steps[place, k]
            n_found = 0
        if e < rows.size and rows[e] >= 0 and _part_of(rows[e], n_parts) == part:
            prefetch_row(table, rows[e])
            prefetch_row_to_read(steps, e)
            found[n_found] = e
            n_found += 1


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
                if not wait_for_all(barrier, n_parts):
                    return
                seen = tables.center_rows[: size * rows]
                apply_steps(tables.center, tables.center_steps, seen, part, n_parts, s.found)
                seen = tables.context_rows[: size * columns]
                apply_steps(tables.context, tables.context_steps, seen, part, n_parts, s.found)
                if part == 0:
                    for w in range(size):
                        for x in range(sums.size):
                            sums[x] += walk_sums[w, x]
                if not wait_for_all(barrier, n_parts):
                    return
        if not wait_for_all(barrier, n_parts) or part == 0:
            return
