"""NetMF: explicit factorisation, by singular values, of the matrix that DeepWalk factorises implicitly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from kernelne._common.checks import check_count
from kernelne._common.jit import cached
from kernelne.baselines._base import Baseline, pad_columns
from kernelne.baselines._linalg import top_eigenpairs, truncated_svd
from kernelne.graph import Graph
from kernelne.graph.ops import as_undirected
from kernelne.progress import Progress, Report

#: Number of entries in a block of rows of the matrix while it is computed: 16 MB.
_BLOCK = 2**22
#: Share of non-zero entries below which a block is stored as a sparse matrix; dense products are much faster.
_SPARSE = 0.1


class NetMF(Baseline):
    """Node embeddings by factorisation of the matrix that skip-gram factorises implicitly.

    J. Qiu, Y. Dong, H. Ma, J. Li, K. Wang, J. Tang: "Network Embedding as Matrix Factorization: Unifying
    DeepWalk, LINE, PTE, and node2vec", WSDM 2018.

    M = vol/(b T) · (Σ_{r = 1}^{T} (D⁻¹A)ʳ) D⁻¹ for a window of T and b negatives; log max(M, 1) ≈ U Σ Uᵀ, and
    the vectors are U √Σ. Directions are ignored. Nodes without edges have zero vectors, and columns beyond
    the number of nodes are zero. The matrix has n² entries, of which those above zero are stored.

    Parameters
    ----------
    dim: number of columns of the embedding.
    window: window size, T.
    n_negative: number of negatives, b; 1 in the paper.
    rank: number of eigenpairs of D^-½ A D^-½ from which the sum is computed, as in the paper for large
        windows, not counting those of eigenvalue 1, one per component, which are known. The paper uses 256;
        fewer smooth more, which helps on small graphs. None computes the powers themselves.
    n_threads, random_state, progress: as in KernelNE.

    Examples
    --------
    >>> from kernelne.baselines import NetMF
    >>> edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
    >>> NetMF(dim=4, random_state=1).fit(edges).embedding_.shape
    (6, 4)
    """

    _counts: ClassVar[tuple[str, ...]] = ("window", "n_negative")
    _task: ClassVar[str] = "factorising"
    _unit: ClassVar[str] = "rows"

    def __init__(
        self,
        *,
        dim: int = 128,
        window: int = 10,
        n_negative: int = 1,
        rank: int | None = 64,
        n_threads: int | None = None,
        random_state: Any = None,
        progress: Progress = None,
    ) -> None:
        self.dim = dim
        self.window = window
        self.n_negative = n_negative
        self.rank = rank
        self.n_threads = n_threads
        self.random_state = random_state
        self.progress = progress

    def _check(self) -> None:
        if self.rank is not None:
            check_count("rank", self.rank)

    def memory_bytes(self, graph: Any) -> int:
        n = graph.n_nodes
        # The matrix at worst, when no entry is zero; bases of the two factorisations; blocks in the making.
        return int(4 * n * n + 4 * n * 12 * (max(self.dim, self.rank or 0) + 10) + 4 * 4 * _BLOCK)

    def _embed(self, graph: Graph, seed: int, report: Report) -> NDArray[np.float32]:
        adjacency = as_undirected(graph).to_scipy()
        spread = Spread.of(adjacency, self.window, self.n_negative)
        parts = _powers(spread, self.window) if self.rank is None else _spectrum(spread, self, seed)
        blocks: list[Any] = []
        done = 0
        for part in parts:
            blocks.append(_logarithm(part, done, spread))
            done += len(part)
            report(done, graph.n_nodes, math.nan)
        left, values, _ = truncated_svd(Stacked(blocks), self.dim, seed, symmetric=True)
        return pad_columns(left * np.sqrt(values), self.dim)


@dataclass(frozen=True)
class Spread:
    """The parts from which the matrix M is computed.

    normalised: N = D^-½ A D^-½, sparse float32; M = (Σ_r Nʳ) · outer outerᵀ.
    outer: float32 (n,), √(vol/(b T d)); zero for nodes without edges.
    component: int32 (n,), connected component of each node. Entries of M between two components are zero.
    inside: float32 (components,), what the eigenvector of eigenvalue 1 of a component adds to M between its
        nodes.
    trivial: these eigenvectors, sparse float32 (n, components).
    """

    normalised: Any
    outer: NDArray[np.float32]
    component: NDArray[np.int32]
    inside: NDArray[np.float32]
    trivial: Any

    @classmethod
    def of(cls, adjacency: Any, window: int, n_negative: int) -> Spread:
        degrees = np.asarray(adjacency.sum(axis=1), np.float64)
        root = np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
        scale = scipy.sparse.diags_array(root.astype(np.float32))
        n_components, component = connected_components(adjacency, directed=False)
        volumes = np.bincount(component, degrees)
        total = degrees.sum()
        share = np.divide(1.0, volumes, out=np.zeros_like(volumes), where=volumes > 0)
        trivial = scipy.sparse.csr_array(
            (np.sqrt(degrees * share[component]).astype(np.float32), component, np.arange(len(degrees) + 1)),
            (len(degrees), n_components),
        )
        return cls(
            (scale @ adjacency @ scale).tocsr(),
            (root * math.sqrt(total / (n_negative * window))).astype(np.float32),
            component.astype(np.int32),
            (total / n_negative * share).astype(np.float32),
            trivial,
        )


def _powers(spread: Spread, window: int) -> Iterator[NDArray[np.float32]]:
    """Yield blocks of rows of Σ_{r ≤ T} Nʳ without the part of eigenvalue 1."""
    matrix, trivial = spread.normalised, spread.trivial
    for start, stop in _ranges(matrix.shape[0]):
        power = matrix[start:stop].T.toarray()
        total = power - window * (trivial @ trivial[start:stop].T).toarray()
        for _ in range(window - 1):
            power = matrix @ power
            total += power
        yield np.ascontiguousarray(total.T)


def _spectrum(spread: Spread, model: NetMF, seed: int) -> Iterator[NDArray[np.float32]]:
    """As `_powers`, from the largest eigenvalues below 1; as in the paper, negative sums are set to zero."""
    n = len(spread.outer)
    shifted, vectors = top_eigenpairs(Shifted(spread.normalised, spread.trivial), model.rank or n, seed)
    values = shifted.astype(np.float64) - 1
    sums = sum(values**r for r in range(1, model.window + 1))
    half = vectors * np.sqrt(np.maximum(sums, 0)).astype(np.float32)
    for start, stop in _ranges(n):
        yield half[start:stop] @ half.T


def _ranges(n: int) -> Iterator[tuple[int, int]]:
    size = max(_BLOCK // n, 1)
    return ((start, min(start + size, n)) for start in range(0, n, size))


def _logarithm(rows: NDArray[np.float32], first: int, spread: Spread) -> Any:
    """Return rows `first` … of log max(M, 1), sparse if few entries are not zero; `rows` is overwritten."""
    counts = _take_logarithm(rows, first, spread.component, spread.inside, spread.outer)
    if counts.sum() > _SPARSE * rows.size:
        return rows
    offsets = np.concatenate([[0], np.cumsum(counts)])
    columns, values = _gather(rows, offsets)
    return scipy.sparse.csr_array((values, columns, offsets), rows.shape)


@cached()
def _take_logarithm(rows, first, component, inside, outer):  # type: ignore[no-untyped-def]
    """Replace the sums of `_powers` by log max(M, 1); returns the number of non-zero entries of each row."""
    counts = np.zeros(len(rows), np.int64)
    for i in range(len(rows)):
        here, home = outer[first + i], component[first + i]
        between = inside[home]
        for j in range(rows.shape[1]):
            value = between + here * outer[j] * rows[i, j]
            if component[j] == home and value > np.float32(1.0) and here * outer[j] > np.float32(0.0):
                rows[i, j] = np.log(value)
                counts[i] += 1
            else:
                rows[i, j] = np.float32(0.0)
    return counts


@cached()
def _gather(rows, offsets):  # type: ignore[no-untyped-def]
    """Return columns and values of the non-zero entries, row by row."""
    columns = np.empty(offsets[-1], np.int32)
    values = np.empty(offsets[-1], np.float32)
    for i in range(len(rows)):
        at = offsets[i]
        for j in range(rows.shape[1]):
            if rows[i, j] > np.float32(0.0):
                columns[at] = j
                values[at] = rows[i, j]
                at += 1
    return columns, values


@dataclass(frozen=True)
class Shifted:
    """1 + N without its eigenvalues 2, as an operator.

    Its other eigenvectors are N's, and none of its eigenvalues is below zero: those of N near zero, of which
    there may be many and which are found to a share of themselves, would never be.
    """

    normalised: Any
    trivial: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.normalised.shape)

    @property
    def dtype(self) -> Any:
        return self.normalised.dtype

    @property
    def T(self) -> Shifted:  # noqa: N802
        return self

    def __matmul__(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(X + self.normalised @ X - 2 * (self.trivial @ (self.trivial.T @ X)))


class Stacked:
    """A symmetric matrix in blocks of rows, each sparse or dense."""

    dtype = np.dtype(np.float32)

    def __init__(self, blocks: list[Any]) -> None:
        self.blocks = blocks
        self.shape = (sum(block.shape[0] for block in blocks),) * 2

    @property
    def T(self) -> Stacked:  # noqa: N802
        return self

    def __matmul__(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.concatenate([block @ X for block in self.blocks])
