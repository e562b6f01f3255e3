"""Gradient step on one pair of nodes and its negatives, for methods that sample pairs instead of walks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne.baselines._threads import NORM_LIMIT
from kernelne.model import kernels
from kernelne.training.cpu.evaluate import compiled
from kernelne.training.cpu.scratch import floats
from kernelne.training.cpu.simd import prefetch_row

#: Pairs drawn together, so that their random memory accesses overlap.
BATCH = 16
#: Maximum number of pairs in a block.
LARGEST_BLOCK = 2**20

_ONE, _ZERO, _LIMIT = np.float32(1.0), np.float32(0.0), np.float32(NORM_LIMIT)


class Drawn(NamedTuple):
    """One thread's working memory: sampled pairs, their scores, two rows."""

    sources: NDArray[np.int64]  # BATCH
    others: NDArray[np.int64]  # BATCH × 1 + negatives: the partner of a source, then its negatives
    moving: NDArray[np.bool_]  # BATCH: whether the walk to a partner continues, if there is one
    scores: NDArray[np.float32]  # 1 + negatives
    own: NDArray[np.float32]  # dim: the source's row before the step
    change: NDArray[np.float32]  # dim: the step of that row


def make_drawn(n_negative: int, dim: int) -> Drawn:
    return Drawn(
        np.zeros(BATCH, np.int64),
        np.zeros((BATCH, 1 + n_negative), np.int64),
        np.zeros(BATCH, np.bool_),
        floats(1 + n_negative),
        floats(dim),
        floats(dim),
    )


@compiled
def _dot(a: Any, b: Any) -> Any:
    total = _ZERO
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@compiled
def _add_scaled(c: Any, x: Any, out: Any) -> None:
    for k in range(out.size):
        out[k] += c * x[k]


@compiled
def _begin(source: Any, own: Any, change: Any) -> Any:
    """Copy a row to `own` and set `change` to zero; returns the squared norm of the row."""
    norm = _ZERO
    for k in range(own.size):
        own[k] = source[k]
        change[k] = _ZERO
        norm += source[k] * source[k]
    return norm


@compiled
def _weigh(rate: Any, scores: Any) -> Any:
    """Replace scores, the partner's first, by the weights of the gradient; returns the loss."""
    scores[0] = -scores[0]  # now all should be low
    loss = _ZERO
    for r in range(scores.size):
        small = kernels.exp(-abs(scores[r]))  # never overflows
        loss += max(scores[r], _ZERO) + kernels.log(_ONE + small)
        scores[r] = -rate * (_ONE if scores[r] > _ZERO else small) / (_ONE + small)
    scores[0] = -scores[0]
    return loss


@compiled
def _step_pair(b: Any, rate: Any, shift: Any, center: Any, context: Any, d: Any) -> Any:
    """Gradient step on −log σ(s_uv) − Σ_r log σ(−s_ur), s_xy = ⟨x, y⟩ − shift, for pair b.

    Returns this loss and whether the row of u has exploded. u is a row of `center`, v and r are rows of
    `context`, which may be the same table.
    """
    source = center[d.sources[b]]
    exploded = not _begin(source, d.own, d.change) < _LIMIT  # true for NaN, too
    for r in range(d.scores.size):
        d.scores[r] = _dot(d.own, context[d.others[b, r]]) - shift
    loss = _weigh(rate, d.scores)
    for r in range(d.scores.size):
        _add_scaled(d.scores[r], context[d.others[b, r]], d.change)
    for r in range(d.scores.size):
        _add_scaled(d.scores[r], d.own, context[d.others[b, r]])
    _add_scaled(_ONE, d.change, source)
    return loss, exploded


@compiled
def step_pairs(size: Any, rate: Any, shift: Any, center: Any, context: Any, d: Any) -> Any:
    """Train on the first `size` sampled pairs; returns their loss and the number of exploded rows."""
    for b in range(size):
        prefetch_row(center, d.sources[b])
        for r in range(d.others.shape[1]):
            prefetch_row(context, d.others[b, r])
    loss, n_bad = 0.0, 0
    for b in range(size):
        its_loss, exploded = _step_pair(b, rate, shift, center, context, d)
        loss += its_loss
        n_bad += exploded
    return loss, n_bad
