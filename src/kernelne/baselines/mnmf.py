"""M-NMF: non-negative matrix factorisation that preserves proximities and communities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.baselines._base import Baseline, unit_rows
from kernelne.graph import Graph
from kernelne.graph.ops import as_undirected
from kernelne.progress import Progress, Report

#: Weight of the second-order proximity relative to the first-order one, η.
_SECOND_ORDER = 5.0
#: Penalty on communities that are not orthogonal, λ.
_ORTHOGONALITY = 1e9
#: Lower bound of denominators.
_TINY = 1e-15


class MNMF(Baseline):
    """Node embeddings by modularised non-negative matrix factorisation.

    X. Wang, P. Cui, J. Wang, J. Pei, W. Zhu, S. Yang: "Community Preserving Network Embedding", AAAI 2017.

    Minimises ‖S − M Uᵀ‖² + α‖H − U Cᵀ‖² − β tr(Hᵀ B H) over non-negative M, U, C, H with Hᵀ H = 1, by the
    paper's multiplicative updates. S is the adjacency matrix plus 5 times the cosines of its rows, B the
    modularity matrix, H contains the communities; the vectors are U. S is never stored: memory grows with
    the number of edges, not with n². Directions are ignored.

    Parameters
    ----------
    dim: number of columns of the embedding.
    n_communities: number of columns of H; the KernelNE paper uses the best of 5, 15, 20, 25, 50, 75 and 100.
    alpha: weight of the term that connects vectors and communities, α.
    beta: weight of the modularity, β.
    n_iterations: number of rounds of updates.
    normalise: if True, scale every row to length 1. The paper does not: the scales of M and U then depend on
        their random initial values, and with them the result of a regularised classifier on U.
    n_threads, random_state, progress: as in KernelNE.

    Examples
    --------
    >>> from kernelne.baselines import MNMF
    >>> edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
    >>> MNMF(dim=4, n_communities=2, random_state=1).fit(edges).embedding_.shape
    (6, 4)
    """

    _counts: ClassVar[tuple[str, ...]] = ("n_communities", "n_iterations")
    _numbers: ClassVar[dict[str, bool]] = {"alpha": False, "beta": False}
    _flags: ClassVar[tuple[str, ...]] = ("normalise",)
    _task: ClassVar[str] = "factorising"
    _unit: ClassVar[str] = "rounds"

    def __init__(
        self,
        *,
        dim: int = 128,
        n_communities: int = 20,
        alpha: float = 0.1,
        beta: float = 5.0,
        n_iterations: int = 200,
        normalise: bool = True,
        n_threads: int | None = None,
        random_state: Any = None,
        progress: Progress = None,
    ) -> None:
        self.dim = dim
        self.n_communities = n_communities
        self.alpha = alpha
        self.beta = beta
        self.n_iterations = n_iterations
        self.normalise = normalise
        self.n_threads = n_threads
        self.random_state = random_state
        self.progress = progress

    def memory_bytes(self, graph: Any) -> int:
        # Two tables, a product and a denominator in float32; H and the arrays of its update in float64.
        tables = 5 * 4 * self.dim + 8 * 8 * self.n_communities
        return int(graph.n_nodes * tables + 30 * graph.neighbours.size)

    def _embed(self, graph: Graph, seed: int, report: Report) -> NDArray[np.float32]:
        proximity = Proximity.of(as_undirected(graph).to_scipy())
        state = State.start(graph.n_nodes, self.dim, self.n_communities, seed)
        for i in range(self.n_iterations):
            step(state, proximity, self.alpha, self.beta)
            report(i + 1, self.n_iterations, math.nan)
        return unit_rows(state.U) if self.normalise else state.U


@dataclass(frozen=True)
class Proximity:
    """S = A + η · cosines of the rows of A, as an operator, and the degrees of A (n,) float64."""

    adjacency: Any
    unit: Any
    degrees: NDArray[np.float64]

    @classmethod
    def of(cls, adjacency: Any) -> Proximity:
        squares = np.asarray(adjacency.multiply(adjacency).sum(axis=1), np.float64)
        share = np.divide(1.0, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)
        unit = scipy.sparse.diags_array((math.sqrt(_SECOND_ORDER) * share).astype(np.float32)) @ adjacency
        return cls(adjacency, unit.tocsr(), np.asarray(adjacency.sum(axis=1), np.float64))

    def __matmul__(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(self.adjacency @ X + self.unit @ (self.unit.T @ X))


@dataclass
class State:
    """The factors: M, U float32 (n, dim); H float64 (n, communities); C float64 (communities, dim)."""

    M: NDArray[np.float32]
    U: NDArray[np.float32]
    H: NDArray[np.float64]
    C: NDArray[np.float64]

    @classmethod
    def start(cls, n: int, dim: int, n_communities: int, seed: int) -> State:
        rng = np.random.default_rng(seed)
        M, U = rng.random((n, dim), np.float32), rng.random((n, dim), np.float32)
        return cls(M, U, rng.random((n, n_communities)), rng.random((n_communities, dim)))


def step(state: State, proximity: Proximity, alpha: float, beta: float) -> None:
    """One round of the multiplicative updates, in the paper's order: M, U, C, H."""
    M, U, H, C = state.M, state.U, state.H, state.C
    _scale(M, proximity @ U, M @ (U.T @ U))
    pull = np.float32(alpha)
    short = C.astype(np.float32)
    towards = proximity @ M + pull * (H.astype(np.float32) @ short)
    _scale(U, towards, U @ (M.T @ M + pull * (short.T @ short)))
    _scale(C, H.T @ U, C @ (U.T @ U).astype(np.float64))
    state.H = _step_communities(state, proximity, alpha, beta)


def _step_communities(state: State, proximity: Proximity, alpha: float, beta: float) -> NDArray[np.float64]:
    """Update H: each entry solves a quadratic equation, at whose root the gradient vanishes."""
    H, strength = state.H, proximity.degrees
    chance = 2 * beta * np.outer(strength, (strength @ H) / max(strength.sum(), _TINY))
    overlap = H @ (H.T @ H)
    told = state.U @ state.C.T.astype(np.float32)
    gain = 2 * beta * (proximity.adjacency @ H) + 2 * alpha * told + (4 * _ORTHOGONALITY - 2 * alpha) * H
    root = np.sqrt(chance**2 + 16 * _ORTHOGONALITY * overlap * gain)
    return np.asarray(H * np.sqrt((root - chance) / np.maximum(8 * _ORTHOGONALITY * overlap, _TINY)))


@cached()
def _scale(X, wanted, had):  # type: ignore[no-untyped-def]
    """X *= wanted / had, element by element, in place."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            X[i, j] *= wanted[i, j] / max(had[i, j], _TINY)
