"""The coefficients of a mixture of kernels, updated after each block from sums over its pairs.

With the tables fixed the loss is quadratic in c, so after a block of walks an implicit step replaces the step
of gradient descent: c becomes the minimiser of

    η · Σ_pairs [(t − Σᵢ cᵢkᵢ)² + β/2 ‖c‖² + γ/2 ‖c − c̄‖²] + ½ ‖c − c_old‖²,   c̄ = mean(c).

For one pair and a small learning rate η this is the paper's step (with γ = 0). For a block it cannot
overshoot, whatever the number of pairs, and the sums can be merged between threads, devices and machines.

The term with γ is not in the paper. A narrow kernel fits the pairs of a walk more closely than a wide one, so
with the ridge penalty alone the mixture becomes narrow, and its small vectors classify worse if many labels
are known. The penalty on the differences of the cᵢ keeps the wide kernels in the mixture.

The lower bound of Σc is not in the paper either. While all vectors are alike every kᵢ is 1, and the best sum
is 1/(1 + n_negative): attraction and repulsion cancel there, only the weight decay is left, and on graphs
with weak structure the vectors shrink to zero. With a larger sum repulsion is stronger, and the vectors
separate (`least_sum`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


def least_sum(n_negative: int) -> float:
    """Lower bound of Σc.

    While vectors are all alike, a pair with its negatives repels by S · (S · (1 + n) − 1), S = Σc, and decays
    by l2 for each of its 1 + n contexts. The bound keeps the ratio of the two that S = 4/3 · 1/(1 + n) has
    for the five negatives of the paper, or that S itself for fewer.
    """
    n = 1 + n_negative
    return (4 / 3 if n_negative <= 5 else (1 + math.sqrt(1 + 4 * n**2 / 81)) / 2) / n


class Moments(NamedTuple):
    """Sums over the pairs of a block: their number, their loss, t·k (K,) and k·kᵀ (K, K)."""

    n_pairs: float
    loss: float
    linear: NDArray[np.float64]
    quadratic: NDArray[np.float64]

    @classmethod
    def unpack(cls, sums: NDArray[np.float64], n_kernels: int) -> Moments:
        """Convert the flat array of the training loops: pairs, loss, t·k, lower triangle of k·kᵀ."""
        lower = np.tril(sums[2 + n_kernels :].reshape(n_kernels, n_kernels))
        return cls(sums[0], sums[1], sums[2 : 2 + n_kernels], lower + np.tril(lower, -1).T)


def n_sums(n_kernels: int) -> int:
    """Length of the flat array that `Moments.unpack` reads."""
    return 2 + n_kernels + n_kernels**2


def step_coefficients(
    coefficients: NDArray[np.float64],
    moments: Moments,
    rate: float,
    coef_l2: float,
    coef_spread: float,
    floor: float = -np.inf,
) -> NDArray[np.float64]:
    """Return the new coefficients (K,); η = `rate`, β = `coef_l2`, γ = `coef_spread`, Σc ≥ `floor`."""
    one = np.eye(coefficients.size)
    penalty = coef_l2 * one + coef_spread * (one - 1 / coefficients.size)
    system = one + rate * (2 * moments.quadratic + moments.n_pairs * penalty)
    free = np.linalg.solve(system, coefficients + 2 * rate * moments.linear)
    lifting = np.linalg.solve(system, np.ones(coefficients.size))
    return np.asarray(free + lifting * max(floor - free.sum(), 0.0) / lifting.sum(), np.float64)
