"""The loss and its gradients in float64 NumPy: the slow, readable reference that backends are tested against.

Center v, context u, D = ‖context[u] − center[v]‖², k(D) = Σ cᵢ kᵢ(D). A walk w₁…w_l with shared negatives N
is one mini-batch of weighted pairs (center, context), target t, weight ω:

    (w_i, w_j), t = 1, ω = α^(|i − j| − 1)              for 0 < |i − j| ≤ window; only i < j if forward
    (w_i, r),   t = 0, ω = n_negative · pairs_i / |N|   for r in N

    loss = Σ ω (t − k)² + λ/2 Σ_i (pairs_i ‖center[w_i]‖² + pairs′_i ‖context[w_i]‖²)
                        + λ/2 Σ_r (n_negative · pairs / |N|) ‖context[r]‖² + β/2 · pairs · ‖c‖²

where pairs_i is the weight of all contexts of position i, pairs′_i that of all centers whose context it is,
which is the same unless forward, and pairs = Σ pairs_i. In the paper α = 1, and these
are the numbers of pairs: λ is applied to a row once for each pair that contains it, β once per (center,
context) pair. A training step subtracts the learning rate times the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne.model.kernels import KERNELS

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class WalkPairs(NamedTuple):
    """The pairs of one walk (arrays of equal length), and how often each of its rows is decayed."""

    centers: Rows
    contexts: Rows
    targets: Floats
    weights: Floats
    center_rows: Rows
    center_decays: Floats
    context_rows: Rows
    context_decays: Floats
    n_pairs: float  # the sum of their weights


class Gradients(NamedTuple):
    """Derivatives of the loss: center (n, d), context (n, d), coefficients (K,)."""

    center: Floats
    context: Floats
    coefficients: Floats


def walk_pairs(
    walk: Sequence[int] | Rows,
    noise: Sequence[int] | Rows,
    *,
    window: int,
    n_negative: int,
    window_decay: float = 1.0,
    forward: bool = False,
) -> WalkPairs:
    """Return the weighted pairs of a walk and its shared negatives `noise`; α = `window_decay`."""
    w, r = np.asarray(walk, np.int64), np.asarray(noise, np.int64)
    ahead = np.arange(w.size) - np.arange(w.size)[:, None]
    gap = np.abs(ahead)
    i, j = np.nonzero((gap > 0) & (gap <= window) & (ahead > 0 if forward else True))
    near = window_decay ** (gap[i, j] - 1.0)
    pairs: Floats = np.bincount(i, near, minlength=w.size).astype(np.float64)
    as_contexts: Floats = np.bincount(j, near, minlength=w.size).astype(np.float64)
    return WalkPairs(
        centers=np.concatenate([w[i], np.repeat(w, r.size)]),
        contexts=np.concatenate([w[j], np.tile(r, w.size)]),
        targets=np.concatenate([np.ones(i.size), np.zeros(w.size * r.size)]),
        weights=np.concatenate([near, np.repeat(n_negative * pairs / r.size, r.size)]),
        center_rows=w,
        center_decays=pairs,
        context_rows=np.concatenate([w, r]),
        context_decays=np.concatenate([as_contexts, np.full(r.size, n_negative * pairs.sum() / r.size)]),
        n_pairs=float(pairs.sum()),
    )


def loss_and_gradients(
    center: Floats,
    context: Floats,
    coefficients: Floats,
    kernels: Sequence[tuple[str, float]],
    pairs: WalkPairs,
    *,
    l2: float,
    coef_l2: float,
) -> tuple[float, Gradients]:
    """Return the loss of one walk and its derivatives; the tables are (n, d), coefficients (K,)."""
    r = context[pairs.contexts] - center[pairs.centers]
    D = (r**2).sum(axis=1)
    each = [KERNELS[name](D, sigma) for name, sigma in kernels]
    values, slopes = np.array([v for v, _ in each]), np.array([s for _, s in each])
    miss = pairs.targets - coefficients @ values
    loss = (
        (pairs.weights * miss**2).sum()
        + l2 / 2 * (pairs.center_decays * (center[pairs.center_rows] ** 2).sum(axis=1)).sum()
        + l2 / 2 * (pairs.context_decays * (context[pairs.context_rows] ** 2).sum(axis=1)).sum()
        + coef_l2 / 2 * pairs.n_pairs * (coefficients**2).sum()
    )
    pull = (-4 * pairs.weights * miss * (coefficients @ slopes))[:, None] * r
    d_center, d_context = np.zeros_like(center), np.zeros_like(context)
    np.add.at(d_center, pairs.centers, -pull)
    np.add.at(d_context, pairs.contexts, pull)
    np.add.at(d_center, pairs.center_rows, l2 * pairs.center_decays[:, None] * center[pairs.center_rows])
    np.add.at(d_context, pairs.context_rows, l2 * pairs.context_decays[:, None] * context[pairs.context_rows])
    d_coefficients = -2 * values @ (pairs.weights * miss) + coef_l2 * pairs.n_pairs * coefficients
    return float(loss), Gradients(d_center, d_context, d_coefficients)
