"""Node classification as the paper does it: one-vs-rest logistic regression on the raw vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelne.errors import InputError, ParameterError

_MAX_NEWTON_STEPS = 50
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class ClassificationScores:
    """F1 by training share: arrays of shape (shares, repeats)."""

    train_sizes: tuple[float, ...]
    micro_f1: NDArray[np.float64]
    macro_f1: NDArray[np.float64]


def fit_logistic(X: NDArray[np.float64], y: NDArray[np.bool_], C: float = 1.0) -> NDArray[np.float64]:
    """Weights (d,) of a logistic regression with penalty ‖w‖²/2, by Newton's method with step halving.

    X (n, d) holds a column of ones if an intercept is wanted; as in liblinear it is penalised like the rest.
    """
    sign = np.where(y, 1.0, -1.0)
    w = np.zeros(X.shape[1])
    margin = np.zeros(X.shape[0])
    loss = C * X.shape[0] * np.log(2.0)
    first_norm = 0.0
    for iteration in range(_MAX_NEWTON_STEPS):
        wrong = 1.0 / (1.0 + np.exp(np.clip(sign * margin, -500, 500)))
        gradient = w - C * (X.T @ (sign * wrong))
        norm = float(np.linalg.norm(gradient))
        first_norm = first_norm if iteration else norm
        if norm <= _TOLERANCE * first_norm:
            break
        curvature = C * wrong * (1.0 - wrong)
        hessian = (X * curvature[:, None]).T @ X
        hessian.flat[:: X.shape[1] + 1] += 1.0
        direction = np.linalg.solve(hessian, gradient)
        moved = X @ direction
        step = 1.0
        while True:
            trial_w, trial_margin = w - step * direction, margin - step * moved
            trial = 0.5 * trial_w @ trial_w + C * np.logaddexp(0.0, -sign * trial_margin).sum()
            if trial <= loss or step < 1e-6:
                break
            step /= 2.0
        w, margin, loss = trial_w, trial_margin, trial
    return w


def _indicator(labels: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Labels as a boolean n × classes matrix: from one label a node, or from an indicator matrix."""
    array = np.asarray(labels)
    if array.shape[:1] != (n,):
        raise InputError(
            f"labels: {array.shape[0] if array.ndim else 0} labels for {n} vectors: give one a row"
        )
    if array.ndim == 2:
        return np.asarray(array != 0)
    classes, codes = np.unique(array, return_inverse=True)
    return np.asarray(codes[:, None] == np.arange(classes.size))


def _top_k(scores: NDArray[np.float64], truth: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """For each row as many best-scored labels as it truly has."""
    rank = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable")
    return np.asarray(rank < truth.sum(axis=1)[:, None])


def _f1(truth: NDArray[np.bool_], guess: NDArray[np.bool_]) -> tuple[float, float]:
    hits = (truth & guess).sum(axis=0).astype(float)
    sizes = (truth.sum(axis=0) + guess.sum(axis=0)).astype(float)
    per_label = np.divide(2 * hits, sizes, out=np.zeros_like(hits), where=sizes > 0)
    return float(2 * hits.sum() / sizes.sum()), float(per_label.mean())


def _score_split(X: Any, truth: Any, order: NDArray[np.int64], n_train: int) -> tuple[float, float]:
    train, test = order[:n_train], order[n_train:]
    scores = np.full((test.size, truth.shape[1]), -np.inf)
    for label in range(truth.shape[1]):
        y = truth[train, label]
        if y.all():
            scores[:, label] = np.inf
        elif y.any():
            scores[:, label] = X[test] @ fit_logistic(X[train], y)
    return _f1(truth[test], _top_k(scores, truth[test]))


def classify_nodes(
    vectors: ArrayLike,
    labels: ArrayLike,
    *,
    train_sizes: Sequence[float] = (0.1, 0.5, 0.9),
    n_repeats: int = 50,
    random_state: int = 0,
) -> ClassificationScores:
    """Micro- and macro-F1 of one-vs-rest logistic regression (L2, C = 1) over random splits.

    vectors (n, d); labels: one label a node (n,), or an indicator matrix (n, classes) where nodes may have
    several. For each share the first int(share · n) nodes of a shuffle train; a test node with k labels gets
    its k most probable ones.
    """
    table = np.asarray(vectors, np.float64)
    truth = _indicator(labels, table.shape[0])
    for share in train_sizes:
        if not 1 <= int(share * table.shape[0]) < table.shape[0]:
            raise ParameterError("train_sizes", share, "each share must leave nodes to train and to test on")
    X = np.column_stack([table, np.ones(table.shape[0])])
    orders = [np.random.default_rng([random_state, r]).permutation(X.shape[0]) for r in range(n_repeats)]
    scores = np.array(
        [
            [_score_split(X, truth, order, int(share * X.shape[0])) for order in orders]
            for share in train_sizes
        ]
    )
    return ClassificationScores(tuple(train_sizes), scores[..., 0], scores[..., 1])
