"""Small runs and the oracle's word on a walk: what the tests of every backend share, so it needs none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernelne.model.kernels import KERNELS
from kernelne.model.mixture import Moments
from kernelne.model.objective import Gradients, WalkPairs, loss_and_gradients
from kernelne.training.config import TrainingConfig


def config(**changes: object) -> TrainingConfig:
    """A small run, by the paper's settings where nothing else is said."""
    settings: dict[str, object] = {
        "kernels": (("gaussian", 2.0),), "learn_coefficients": False, "dim": 16, "walks_per_node": 10,
        "walk_length": 10, "window": 10, "n_negative": 5, "shared_negatives": 20, "p": 1.0, "q": 1.0,
        "learning_rate": 0.025, "min_learning_rate": 1e-4, "l2": 1e-2, "coef_l2": 0.1, "coef_spread": 0.3,
        "deterministic": False, "n_threads": 1, "seed": 1,
    }  # fmt: skip
    return TrainingConfig(**(settings | changes))  # type: ignore[arg-type]


def judge(
    pairs: WalkPairs,
    center: NDArray[np.float64],
    context: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    kernels: Sequence[tuple[str, float]],
    l2: float,
) -> tuple[Gradients, Moments]:
    """Gradients of one walk's loss, and the sums training collects of it: the loss without the decay."""
    _, gradients = loss_and_gradients(center, context, coefficients, kernels, pairs, l2=l2, coef_l2=0.0)
    loss, _ = loss_and_gradients(center, context, coefficients, kernels, pairs, l2=0.0, coef_l2=0.0)
    D = ((context[pairs.contexts] - center[pairs.centers]) ** 2).sum(axis=1)
    k = np.array([KERNELS[name](D, sigma)[0] for name, sigma in kernels])
    linear, quadratic = k @ (pairs.weights * pairs.targets), (k * pairs.weights) @ k.T
    return gradients, Moments(pairs.n_pairs, loss, linear, quadratic)
