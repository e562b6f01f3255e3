"""HOPE: factorisation of a graph's Katz index."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kernelne.baselines._base import Baseline, pad_columns, unit_rows
from kernelne.baselines._linalg import truncated_svd
from kernelne.errors import ParameterError
from kernelne.graph import Graph
from kernelne.progress import Progress, Report

#: Powers of the matrix with a weight below this are left out.
_NEGLIGIBLE = 1e-5


class HOPE(Baseline):
    """Node embeddings by factorisation of the Katz index.

    M. Ou, P. Cui, J. Pei, Z. Zhang, W. Zhu: "Asymmetric Transitivity Preserving Graph Embedding", KDD 2016.

    The Katz index S = Σ_{t ≥ 1} (βA)ᵗ counts the paths between two nodes, a path of t edges with weight βᵗ.
    Its largest singular triplets (s, u, v) give each node the vectors √s·u as a source and √s·v as a target,
    half of the columns each. Directions of arcs are kept. Nodes without edges have zero vectors, and columns
    beyond twice the number of nodes are zero.

    Parameters
    ----------
    dim: number of columns of the embedding.
    decay: β as a share of 1/‖A‖₂, from which on the sum over paths does not converge; above 0 and below 1.
    normalise: if True, scale every row to length 1. The paper does not: there the length of a row depends on
        the node's degree, and is so small that a regularised classifier learns almost nothing from it.
    n_threads, random_state, progress: as in KernelNE.

    Examples
    --------
    >>> from kernelne.baselines import HOPE
    >>> edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
    >>> HOPE(dim=4, random_state=1).fit(edges).embedding_.shape
    (6, 4)
    """

    _numbers: ClassVar[dict[str, bool]] = {"decay": True}
    _flags: ClassVar[tuple[str, ...]] = ("normalise",)
    _task: ClassVar[str] = "factorising"
    _unit: ClassVar[str] = "steps"

    def __init__(
        self,
        *,
        dim: int = 128,
        decay: float = 0.5,
        normalise: bool = True,
        n_threads: int | None = None,
        random_state: Any = None,
        progress: Progress = None,
    ) -> None:
        self.dim = dim
        self.decay = decay
        self.normalise = normalise
        self.n_threads = n_threads
        self.random_state = random_state
        self.progress = progress

    def _check(self) -> None:
        if self.decay >= 1:
            raise ParameterError("decay", self.decay, "must be below 1, or the sum over paths diverges")

    def memory_bytes(self, graph: Any) -> int:
        # Vectors, their basis and products in float32; the matrix and its transpose.
        return int(4 * graph.n_nodes * 12 * (self.dim // 2 + 10) + 20 * graph.neighbours.size)

    def _embed(self, graph: Graph, seed: int, report: Report) -> NDArray[np.float32]:
        adjacency = graph.to_scipy()
        half = (self.dim + 1) // 2
        symmetric = not graph.directed
        largest = float(truncated_svd(adjacency, 1, seed, symmetric=symmetric)[1].max(initial=0))
        if largest == 0:
            return np.zeros((graph.n_nodes, self.dim), np.float32)
        matrix = adjacency * np.float32(self.decay / largest)
        terms = math.ceil(math.log(_NEGLIGIBLE) / math.log(self.decay))
        report(1, 2, math.nan)
        katz = Katz(matrix, matrix if symmetric else matrix.T.tocsr(), terms)
        left, values, right = truncated_svd(katz, half, seed, symmetric=symmetric)
        root = np.sqrt(values)
        report(2, 2, math.nan)
        sources, targets = pad_columns(left * root, half), pad_columns(right * root, half)
        vectors = np.hstack([sources, targets[:, : self.dim - half]])
        return unit_rows(vectors) if self.normalise else vectors


@dataclass(frozen=True)
class Katz:
    """Σ_{t = 1}^{terms} Bᵗ as an operator that only computes products; B and its transpose are sparse."""

    matrix: Any
    transposed: Any
    terms: int

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.matrix.shape)

    @property
    def dtype(self) -> Any:
        return self.matrix.dtype

    @property
    def T(self) -> Katz:  # noqa: N802
        return Katz(self.transposed, self.matrix, self.terms)

    def __matmul__(self, X: NDArray[Any]) -> NDArray[Any]:
        # Horner: B X + B² X + … = B (X + B (X + …)).
        total = self.matrix @ X
        for _ in range(self.terms - 1):
            total = self.matrix @ (X + total)
        return np.asarray(total)
