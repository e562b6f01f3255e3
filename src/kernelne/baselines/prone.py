"""ProNE: a sparse matrix factorisation followed by a band-pass filter on the graph's spectrum."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.special import ive
from sklearn.utils.extmath import randomized_svd

from kernelne.baselines._base import Baseline, pad_columns, unit_rows
from kernelne.graph import Graph
from kernelne.progress import Progress, Report

#: Exponent of the noise distribution.
_NOISE_POWER = 0.75
#: Number of rounds of the randomised factorisation.
_ROUNDS = 5


class ProNE(Baseline):
    """Node embeddings by sparse factorisation and spectral propagation.

    J. Zhang, Y. Dong, Y. Wang, J. Tang, M. Ding: "ProNE: Fast and Scalable Network Representation Learning",
    IJCAI 2019.

    The matrix log p(v | u) − log p⁻(v), over edges (u, v) only, is factorised by a randomised SVD. The
    vectors are then propagated through the filter exp(−θ/2 ((λ − µ)² − 1)) of the graph's Laplacian, by a
    Chebyshev expansion, and rotated to their principal axes. Rows have length 1; those of nodes without edges
    are zero, as are columns beyond the number of nodes.

    Parameters
    ----------
    dim: number of columns of the embedding.
    order: number of terms of the expansion; 1 disables the filter.
    mu, theta: center and sharpness of the filter.
    n_threads, random_state, progress: as in KernelNE.

    Examples
    --------
    >>> from kernelne.baselines import ProNE
    >>> edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
    >>> ProNE(dim=4, random_state=1).fit(edges).embedding_.shape
    (6, 4)
    """

    _counts: ClassVar[tuple[str, ...]] = ("order",)
    _numbers: ClassVar[dict[str, bool]] = {"mu": False, "theta": True}
    _task: ClassVar[str] = "factorising"
    _unit: ClassVar[str] = "steps"

    def __init__(
        self,
        *,
        dim: int = 128,
        order: int = 10,
        mu: float = 0.2,
        theta: float = 0.5,
        n_threads: int | None = None,
        random_state: Any = None,
        progress: Progress = None,
    ) -> None:
        self.dim = dim
        self.order = order
        self.mu = mu
        self.theta = theta
        self.n_threads = n_threads
        self.random_state = random_state
        self.progress = progress

    def memory_bytes(self, graph: Any) -> int:
        # Tables in float32, most of them during the last decomposition, and copies of the matrix.
        return int(14 * 4 * graph.n_nodes * self.dim + 40 * graph.neighbours.size)

    def _embed(self, graph: Graph, seed: int, report: Report) -> NDArray[np.float32]:
        adjacency = graph.to_scipy()
        k = min(self.dim, graph.n_nodes)
        vectors = _factorise(edge_matrix(adjacency), k, seed)
        report(1, 2, math.nan)
        if self.order > 1:
            vectors = _main_axes(propagate(adjacency, vectors, self.order, self.mu, self.theta))
        report(2, 2, math.nan)
        return pad_columns(vectors, self.dim)


def edge_matrix(adjacency: Any) -> Any:
    """log p(v | u) − log p⁻(v) for every edge (u, v) of the adjacency matrix, float32, sparse."""
    steps = _stochastic(adjacency)
    noise = np.asarray(steps.sum(axis=0), np.float64) ** _NOISE_POWER
    with np.errstate(divide="ignore"):  # for nodes without incoming edges, which no entry uses
        log_noise = np.log(noise / max(noise.sum(), 1e-300))
    values = np.log(steps.data) - log_noise[steps.indices]
    return scipy.sparse.csr_array((values.astype(np.float32), steps.indices, steps.indptr), steps.shape)


def _stochastic(adjacency: Any) -> Any:
    """Scale rows to a sum of 1; empty rows stay empty."""
    sums = np.asarray(adjacency.sum(axis=1), np.float64)
    share = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)
    data = adjacency.data * np.repeat(share, np.diff(adjacency.indptr))
    return scipy.sparse.csr_array(
        (data.astype(np.float32), adjacency.indices, adjacency.indptr), adjacency.shape
    )


def _factorise(matrix: Any, k: int, seed: int) -> NDArray[np.float32]:
    """Left vectors times the roots of their values, (n, k), by the randomised SVD the paper names."""
    random = np.random.RandomState(np.random.MT19937(seed))
    _, values, right = randomized_svd(matrix, k, n_iter=_ROUNDS, random_state=random)
    kept = values > 100 * np.finfo(np.float32).eps * values.max(initial=0)
    # Left vectors by a product, so that nodes without edges get zeros.
    return unit_rows(matrix @ (right[kept].T / np.sqrt(values[kept])))


def propagate(
    adjacency: Any, vectors: NDArray[np.float32], order: int, mu: float, theta: float
) -> NDArray[np.float32]:
    """Apply the filter to vectors (n, k), then propagate them to the neighbours.

    With M = L − µ, the filter exp(−θ/2 (M² − 1)) is, up to a factor, exp(−θ x) for x = (M² − 2)/2: a sum of
    Chebyshev polynomials Tᵢ(x) whose coefficients are Bessel functions, (−1)ⁱ (2 − [i = 0]) Iᵢ(θ).
    """
    n = adjacency.shape[0]
    joined = adjacency + scipy.sparse.eye_array(n, dtype=np.float32, format="csr")
    shifted = (scipy.sparse.eye_array(n, dtype=np.float32) * np.float32(1 - mu) - _stochastic(joined)).tocsr()
    weights = [
        (-1) ** i * (1 if i == 0 else 2) * float(ive(i, theta)) * math.exp(theta) for i in range(order)
    ]

    def x(a: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(0.5 * (shifted @ (shifted @ a)) - a)

    before, now = vectors, x(vectors)
    total = np.float32(weights[0]) * before + np.float32(weights[1]) * now
    for weight in weights[2:]:
        before, now = now, 2 * x(now) - before
        total += np.float32(weight) * now
    return np.asarray(joined @ (vectors - total))


def _main_axes(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    left, values, _ = np.linalg.svd(vectors, full_matrices=False)
    return unit_rows(left * np.sqrt(values))
