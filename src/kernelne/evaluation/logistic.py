"""Logistic regressions by Newton's method: of many classes at once, and of rows that come in blocks.

As liblinear's: L2, C = 1, an intercept is a column of ones and penalised like the rest. Kept beside
scikit-learn's because a score needs thousands of these: benchmarks/logistic.py (AMD EPYC, one thread) gave
1.3 to 2.1 times its fastest solver's speed with the 7 labels of Cora and 4.6 to 7.5 times with the 50 of PPI,
at a thirteenth to a sixtieth of the error of lbfgs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

_MAX_NEWTON_STEPS = 100
_MAX_GRADIENT_STEPS = 100  # conjugate gradients within a Newton step
#: `fit_towards` ends where the gradient is this share of what it was at the start.
_SHARE_LEFT = 1e-4
#: Singular values below this share of the largest are rounding.
_RANK_TOLERANCE = 1e-12

#: Of weights (K, r): the gradients (K, r), which are not yet small enough (K,), and what solves
#: Hessian · step = gradient for all K, (K, r) to (K, r).
_Local = tuple[NDArray[Any], NDArray[np.bool_], Callable[[NDArray[Any]], NDArray[Any]]]


def whiten(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Z (n, r), penalty (r,) and back (d, r): Z = X · back has columns that are orthogonal and of size √n.

    For weights w = back · u the margins are Z · u and ‖w‖² is Σ penalty · u². In u the problem is well
    conditioned whatever the scales in X, and float32 is enough for the products.
    """
    _, singular, axes = np.linalg.svd(np.linalg.qr(X, mode="r"), full_matrices=False)
    scale = singular / np.sqrt(len(X))
    kept = scale > max(_RANK_TOLERANCE * scale.max(initial=0.0), 1e-15)  # less cannot move a margin
    back = axes[kept].T / scale[kept]
    return X @ back, scale[kept] ** -2, back


def fit_classes(Z: NDArray[Any], sign: NDArray[Any], penalty: NDArray[Any], enough: float) -> NDArray[Any]:
    """Weights (K, r) of least Σ penalty · u²/2 + Σ log(1 + exp(∓zᵢ·u)) for K classes; sign (n, K) is ±1.

    Z (n, r) and penalty (r,) are those of `whiten`.
    enough: how far margins may be off: root mean square, weighed as the loss weighs them; as a share of how
        far they were off at the start, where that is less than 1.
    """
    first: NDArray[Any] | None = None
    rounding = 64 * float(np.finfo(Z.dtype).eps)

    def at(weights: NDArray[Any]) -> _Local:
        nonlocal first
        wrong = 1.0 / (1.0 + np.exp(np.minimum(sign * (Z @ weights.T), 80.0)))
        gradient = penalty * weights - (sign * wrong).T @ Z
        curvature = wrong * (1.0 - wrong)
        total = curvature.sum(axis=0)
        diagonal = penalty + total[:, None]  # of the Hessian, nearly, and little is beside it
        size = (gradient**2 / diagonal).sum(axis=1)
        first = size if first is None else first
        # A size that may be rounding alone.
        blur = (rounding * total) ** 2 / diagonal.min(axis=1, initial=np.inf)
        goal = np.maximum(enough**2 * np.minimum(first, total), blur)
        return gradient, size > goal, lambda g: _solve(Z, curvature, penalty, diagonal, g, goal / 4)

    return _newton(at, np.zeros((sign.shape[1], Z.shape[1]), Z.dtype))


def fit_towards(
    blocks: Callable[[], Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]]],
    prior: NDArray[np.float64],
    firmness: float = 1.0,
) -> NDArray[np.float64]:
    """Weights w (d,) of least firmness · ‖w − prior‖²/2 + Σ log(1 + exp(∓xᵢ·w)), sought from the prior.

    blocks: called for every step; gives the rows (n, d) and their signs (n,), ±1, in as many parts as it
        likes: sums over them are all that is kept.
    """
    enough: float | None = None

    def at(weights: NDArray[np.float64]) -> _Local:
        nonlocal enough
        w = weights[0]
        gradient, hessian = firmness * (w - prior), firmness * np.eye(len(w))
        for X, sign in blocks():
            wrong = expit(-sign * (X @ w))
            gradient -= X.T @ (sign * wrong)
            weighed = X * np.sqrt(wrong * (1.0 - wrong))[:, None]
            hessian += weighed.T @ weighed
        size = float(np.linalg.norm(gradient))
        enough = _SHARE_LEFT * size if enough is None else enough
        return gradient[None], np.array([size > enough]), lambda g: np.linalg.solve(hessian, g.T).T

    return np.asarray(_newton(at, prior[None])[0])


def _newton(at: Callable[[NDArray[Any]], _Local], weights: NDArray[Any]) -> NDArray[Any]:
    """Where K convex functions are least, (K, r), sought from the weights.

    A step is halved if it ends beyond the lowest point of its line, where the loss rises at over half the
    rate it fell at the start. Gradients tell this exactly in float32; sums of losses would be too coarse.
    """
    step, slope = np.zeros_like(weights), np.zeros(len(weights), weights.dtype)
    for _ in range(_MAX_NEWTON_STEPS):
        gradient, unfinished, solve = at(weights)
        if not unfinished.any():
            break
        too_far = unfinished & ((gradient * step).sum(axis=1) < -0.5 * slope)
        gradient[~unfinished | too_far] = 0.0
        newton = solve(gradient)
        weights = weights + np.where(too_far[:, None], step / 2, -newton)
        step = np.where(too_far[:, None], step / 2, newton)
        slope = np.where(too_far, slope / 2, (gradient * newton).sum(axis=1))
    return weights


def _solve(
    Z: NDArray[Any],
    curvature: NDArray[Any],
    penalty: NDArray[Any],
    diagonal: NDArray[Any],
    gradient: NDArray[Any],
    enough: NDArray[Any],
) -> NDArray[Any]:
    """(diag(penalty) + Zᵀ·diag(curvature)·Z)⁻¹ · gradient for K classes, (K, r), by conjugate gradients.

    To a tenth: Newton's next step corrects the rest. A Hessian is only ever multiplied by a vector, which
    costs as little as a gradient, and for all classes it is two products.
    """
    least = np.finfo(Z.dtype).tiny  # where all is zero already, 0/0 shall be 0
    solution, residual, direction = np.zeros_like(gradient), gradient, gradient / diagonal
    size = (residual * direction).sum(axis=1)
    goal = np.maximum(0.01 * size, enough)
    for _ in range(_MAX_GRADIENT_STEPS):
        image = penalty * direction + (curvature * (Z @ direction.T)).T @ Z
        length = (size / np.maximum((direction * image).sum(axis=1), least))[:, None]
        solution += length * direction
        residual = residual - length * image
        scaled = residual / diagonal
        before, size = size, (residual * scaled).sum(axis=1)
        if (size <= goal).all():
            break
        direction = scaled + (size / np.maximum(before, least))[:, None] * direction
    return solution
