"""The loop over the pairs of a block, in Numba, with the kernels and sums of the loop over walks.

The pairs of a block are ordered by their centers, and a few that follow each other are one mini-batch. Pairs
of one center share its row, and all centers of the batch share a few negatives, drawn from the part of the
contexts. Every step is computed from the values read at the start of the batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne._common.variants import variant
from kernelne.training.cpu.evaluate import FAST, compiled
from kernelne.training.cpu.loop import _weigh_gradients as _plain_gradients
from kernelne.training.cpu.scratch import Floats, _up, floats
from kernelne.training.cpu.simd import (
    TILE_COLUMNS,
    TILE_ROWS,
    WIDTH,
    add_pairs,
    add_products,
    distances,
    gather_row,
    prefetch_row,
)
from kernelne.training.parts.schedule import ROW_BITS
from kernelne.walks.negatives import draw_alias
from kernelne.walks.rng import draw

#: Most center rows and most pairs of a mini-batch. Its steps add up where it meets a row several times: of
#: small parts a mini-batch has fewer pairs, one for this many rows, but not fewer than _FEWEST.
_CENTERS, _PAIRS, _FEWEST, _ROWS_PER_PAIR = 16, 32, 8, 32
_ROW = np.uint32(2**ROW_BITS - 1)
_BITS = np.uint32(ROW_BITS)

# A copy of this module for kernels of one's own uses the copy of the loop over walks that has them.
_weigh_gradients: Any = _plain_gradients
if "+" in __name__:
    _weigh_gradients = variant("kernelne.training.cpu.loop", __name__.partition("+")[2])._weigh_gradients
_add_products, _add_pairs = compiled(add_products), compiled(add_pairs)


class PairStep(NamedTuple):
    """The settings of the loop."""

    n_negative: int
    n_shared: int  # negatives of a mini-batch
    n_pairs: int  # most pairs of a mini-batch
    l2: np.float32
    first_rate: float
    last_rate: float
    norm_limit: np.float32  # a row with a larger squared norm has exploded
    near: Floats  # weight of a pair by its number of steps, less one
    noise_key: np.uint64


class PairScratch(NamedTuple):
    """Working memory of a mini-batch. `D` holds the pairs, then `far`, the centers × negatives."""

    ends: NDArray[np.int64]  # where the pairs of a center end
    center_rows: NDArray[np.int64]
    context_rows: NDArray[np.int64]
    noise_rows: NDArray[np.int64]
    centers: Floats  # × dim, as read at the start of the batch
    contexts: Floats
    noise: Floats
    center_norms: Floats
    context_norms: Floats
    noise_norms: Floats
    center_decay: Floats
    noise_decay: Floats
    pair_decay: Floats
    pairs: Floats  # total weight of the pairs of a center
    weights: Floats
    targets: Floats
    D: Floats
    far: Floats  # the part of D after the pairs, as a matrix
    values: Floats  # kernels × size of D
    slopes: Floats


def most_pairs(n_rows: int) -> int:
    """Return the most pairs of a mini-batch in a part with this many rows."""
    return min(max(n_rows // _ROWS_PER_PAIR, _FEWEST), _PAIRS)


def make_pair_scratch(n_shared: int, dim: int, n_kernels: int) -> PairScratch:
    columns, width = _up(n_shared, max(TILE_COLUMNS, TILE_ROWS)), _up(dim, WIDTH)
    rows = _up(_CENTERS, TILE_ROWS)
    size = _PAIRS + rows * columns

    def numbers(count: int) -> NDArray[np.int64]:
        return floats(2 * count).view(np.int64)

    D, targets = floats(size), floats(size)
    targets[:_PAIRS] = 1.0
    return PairScratch(
        ends=numbers(rows),
        center_rows=numbers(rows),
        context_rows=numbers(_PAIRS),
        noise_rows=numbers(columns),
        centers=floats(rows, width),
        contexts=floats(_PAIRS, width),
        noise=floats(columns, width),
        center_norms=floats(rows),
        context_norms=floats(_PAIRS),
        noise_norms=floats(columns),
        center_decay=floats(rows),
        noise_decay=floats(columns),
        pair_decay=floats(_PAIRS),
        pairs=floats(rows),
        weights=floats(size),
        targets=targets,
        D=D,
        far=D[_PAIRS:].reshape(rows, columns),
        values=floats(n_kernels, size),
        slopes=floats(n_kernels, size),
    )


@compiled
def _skip(row: Any, at: Any, starts: Any) -> Any:
    """Return the row to which pair `at` belongs, from `row` on, or the number of rows."""
    while row < starts.size - 1 and at >= starts[row + 1]:
        row += 1
    return row


@compiled
def _take(row: Any, at: Any, starts: Any, contexts: Any, step: Any, s: Any) -> Any:
    """Take the pairs from `at` on, of center `row` and following ones, for the next mini-batch.

    Returns the number of its centers and of its pairs, and the row of the pair after them.
    """
    n_centers, n_pairs = 0, 0
    s.weights[:_PAIRS] = 0.0
    s.pairs[:] = 0.0
    while n_centers < _CENTERS and n_pairs < step.n_pairs and row < starts.size - 1:
        s.center_rows[n_centers] = row
        for _ in range(min(starts[row + 1] - at - n_pairs, step.n_pairs - n_pairs)):
            context = contexts[at + n_pairs]
            weight = step.near[context >> _BITS]
            s.context_rows[n_pairs] = np.int64(context & _ROW)
            s.weights[n_pairs] = weight
            s.pairs[n_centers] += weight
            n_pairs += 1
        s.ends[n_centers] = n_pairs
        n_centers += 1
        row = _skip(row, at + n_pairs, starts)
    return n_centers, n_pairs, row


@compiled
def _prefetch(
    row: Any,
    at: Any,
    number: Any,
    starts: Any,
    contexts: Any,
    noise: Any,
    step: Any,
    center: Any,
    context: Any,
) -> None:
    """Prefetch the rows of mini-batch `number`, which begins at pair `at` of center `row`."""
    for r in range(step.n_shared):
        prefetch_row(context, draw_alias(noise, draw(step.noise_key, number * step.n_shared + r)))
    end = min(at + step.n_pairs, contexts.size)
    for k in range(at, end):
        prefetch_row(context, np.int64(contexts[k] & _ROW))
    for other in range(row, min(row + _CENTERS, starts.size - 1)):
        if starts[other] >= end:
            break
        prefetch_row(center, other)


@compiled
def _read(
    n_centers: Any, n_pairs: Any, rate: Any, number: Any, noise: Any, step: Any, center: Any, context: Any,
    s: Any,
) -> Any:  # fmt: skip
    """Draw the negatives and copy all rows to scratch; returns the number of exploded rows."""
    decay, n_bad, total = rate * step.l2, 0, np.float32(0.0)
    s.weights[_PAIRS:] = 0.0
    columns = s.far.shape[1]
    for i in range(n_centers):
        s.center_norms[i] = gather_row(center, s.center_rows[i], s.centers, i)
        n_bad += not s.center_norms[i] < step.norm_limit  # true for NaN, too
        s.center_decay[i] = decay * s.pairs[i]
        total += s.pairs[i]
        weight = np.float32(step.n_negative * s.pairs[i] / step.n_shared)
        for r in range(step.n_shared):
            s.weights[_PAIRS + i * columns + r] = weight
    if n_centers % TILE_ROWS:  # an incomplete tile is filled with the last row, to which zero is added
        s.center_rows[n_centers] = s.center_rows[n_centers - 1]
        s.center_decay[n_centers] = 0.0
    for k in range(n_pairs):
        s.context_norms[k] = gather_row(context, s.context_rows[k], s.contexts, k)
        n_bad += not s.context_norms[k] < step.norm_limit
        s.pair_decay[k] = decay * s.weights[k]
    noise_decay = decay * np.float32(step.n_negative * total / step.n_shared)
    for r in range(step.n_shared):
        row = draw_alias(noise, draw(step.noise_key, number * step.n_shared + r))
        s.noise_rows[r] = row
        s.noise_norms[r] = gather_row(context, row, s.noise, r)
        s.noise_decay[r] = noise_decay
        n_bad += not s.noise_norms[r] < step.norm_limit
    if step.n_shared % TILE_ROWS:
        s.noise_rows[step.n_shared] = s.noise_rows[step.n_shared - 1]
    return n_bad


@compiled
def _measure(n_centers: Any, n_pairs: Any, s: Any) -> None:
    """Compute the squared distances of the pairs, and between all centers and negatives."""
    for k in range(_PAIRS):
        s.D[k] = 0.0
    first = 0
    for i in range(n_centers):
        for k in range(first, s.ends[i]):
            dot = np.float32(0.0)
            for x in range(s.contexts.shape[1]):
                dot += s.contexts[k, x] * s.centers[i, x]
            D = s.center_norms[i] + s.context_norms[k] - np.float32(2.0) * dot
            s.D[k] = np.float32(0.0) if D < 0.0 else D  # NaN stays, to be detected
        first = s.ends[i]
    for i in range(0, n_centers, TILE_ROWS):
        for r in range(0, s.far.shape[1], TILE_COLUMNS):
            distances(s.centers, s.center_norms, i, s.noise, s.noise_norms, r, s.far)


@compiled
def _write(n_centers: Any, step: Any, center: Any, context: Any, s: Any) -> None:
    """Add the steps to the tables."""
    columns = s.far.shape[1]
    if n_centers % TILE_ROWS:
        s.far[n_centers] = 0.0
    _add_products(
        center, s.center_rows, n_centers, s.far, 1, step.n_shared, 0, 0, s.noise, s.centers, s.center_decay
    )
    _add_products(
        context, s.noise_rows, step.n_shared, s.far, columns, n_centers, 0, 0, s.centers, s.noise,
        s.noise_decay,
    )  # fmt: skip
    first = 0
    for i in range(n_centers):
        _add_pairs(
            center, s.center_rows[i], s.centers, i, context, s.context_rows, first, s.ends[i], s.D,
            s.pair_decay, s.contexts,
        )  # fmt: skip
        first = s.ends[i]


@cached(error_model="numpy", fastmath=FAST, _nrt=False)
def train_pairs(
    starts: Any, contexts: Any, noise: Any, step: Any, mixture: Any, center: Any, context: Any, s: Any,
    sums: Any,
) -> Any:  # fmt: skip
    """Train on pairs ordered by center, as `pairs.by_center` gives them; returns the number of exploded rows.

    center, context: the parts of the tables, changed in place. sums (`n_sums`,): collects weights of pairs,
    loss and moments.
    """
    n_bad, at, number = 0, 0, 0
    row = _skip(0, 0, starts)
    while at < contexts.size:
        n_centers, n_pairs, following = _take(row, at, starts, contexts, step, s)
        _prefetch(following, at + n_pairs, number + 1, starts, contexts, noise, step, center, context)
        rate = np.float32(
            step.first_rate + (step.last_rate - step.first_rate) * (at / np.float64(contexts.size))
        )
        n_bad += _read(n_centers, n_pairs, rate, number, noise, step, center, context, s)
        _measure(n_centers, n_pairs, s)
        for i in range(n_centers):
            sums[0] += s.pairs[i]
        size = _PAIRS + n_centers * s.far.shape[1]
        sums[1] += _weigh_gradients(size, rate, mixture, s, sums)
        _write(n_centers, step, center, context, s)
        row = following
        at += n_pairs
        number += 1
    return n_bad
