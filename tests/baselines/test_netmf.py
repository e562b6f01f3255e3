"""NetMF against its matrix written out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from kernelne import Graph
from kernelne.baselines import NetMF, netmf

pytestmark = pytest.mark.filterwarnings("ignore:.*no edges")


def _graph(random_graph, n, weighted, directed=False):
    """Two components at least, one of two nodes, and a node alone."""
    first = random_graph(4, n, directed=directed, weighted=weighted, density=5 / n).to_scipy()
    pair = scipy.sparse.csr_array([[0, 3.0 if weighted else 1], [3.0 if weighted else 1, 0]])
    whole = scipy.sparse.block_diag([first, pair, scipy.sparse.csr_array((1, 1))], "csr")
    return Graph.from_scipy(whole, directed=directed)


def _written_out(graph, window, n_negative, drop_negative):
    """log max(vol/(bT) Σ (D⁻¹A)ʳ D⁻¹, 1), float64."""
    A = graph.to_scipy().toarray().astype(np.float64)
    A = A + A.T - np.diag(A.diagonal()) if graph.directed else A
    degrees = A.sum(axis=1)
    root = np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1e-300)), 0.0)
    values, vectors = np.linalg.eigh(root[:, None] * A * root)
    sums = sum(values**r for r in range(1, window + 1))
    sums = np.maximum(sums, 0) if drop_negative else sums
    M = degrees.sum() / (n_negative * window) * root[:, None] * ((vectors * sums) @ vectors.T) * root
    return np.log(np.maximum(M, 1))


def _best(matrix, k):
    values, vectors = np.linalg.eigh(matrix)
    largest = np.argsort(-np.abs(values))[:k]
    return np.abs(values[largest]), vectors[:, largest]


@pytest.mark.parametrize("rank", [None, 1000])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("window", [1, 4])
def test_vectors(rank, weighted, window, random_graph):
    graph = _graph(random_graph, 50, weighted)
    values, vectors = _best(_written_out(graph, window, 1, rank is not None), 10)
    found = NetMF(dim=10, window=window, rank=rank, random_state=0).fit_transform(graph)
    np.testing.assert_allclose(np.square(found).sum(axis=0), values, rtol=1e-4)
    wanted = (vectors * values) @ vectors.T
    np.testing.assert_allclose(found @ found.T, wanted, atol=1e-3 * values[0])


def test_directions_are_ignored(random_graph):
    graph = _graph(random_graph, 30, True, directed=True)
    values, _ = _best(_written_out(graph, 10, 2, False), 5)
    found = NetMF(dim=5, rank=None, n_negative=2, random_state=0).fit_transform(graph)
    np.testing.assert_allclose(np.square(found).sum(axis=0), values, rtol=1e-4)


@pytest.mark.parametrize("rank", [None, 20])
def test_blocks_make_no_difference(rank, random_graph, monkeypatch):
    graph = _graph(random_graph, 120, False)
    whole = NetMF(dim=8, rank=rank, random_state=0).fit_transform(graph)
    monkeypatch.setattr(netmf, "_BLOCK", 1000)
    monkeypatch.setattr(netmf, "_SPARSE", 0.5)
    parts = NetMF(dim=8, rank=rank, random_state=0).fit_transform(graph)
    np.testing.assert_allclose(parts @ parts.T, whole @ whole.T, atol=1e-3)


def test_few_eigenpairs_are_the_largest(random_graph):
    """With a small rank the sum is that of the largest eigenvalues, and of all components."""
    graph = _graph(random_graph, 120, False)
    A = graph.to_scipy().toarray().astype(np.float64)
    degrees = A.sum(axis=1)
    root = np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1e-300)), 0.0)
    values, vectors = np.linalg.eigh(root[:, None] * A * root)
    n_trivial = int((values > 1 - 1e-9).sum())
    assert n_trivial > 1
    keep = np.argsort(-values)[: n_trivial + 20]
    sums = sum(values[keep] ** r for r in range(1, 11))
    M = degrees.sum() / 10 * root[:, None] * ((vectors[:, keep] * sums) @ vectors[:, keep].T) * root
    wanted, _ = _best(np.log(np.maximum(M, 1)), 8)
    found = NetMF(dim=8, rank=20, random_state=0).fit_transform(graph)
    np.testing.assert_allclose(np.square(found).sum(axis=0), wanted, rtol=0.02)


def test_no_rank():
    with pytest.raises(ValueError, match="rank=0"):
        NetMF(rank=0).fit([(0, 1)])


def test_isolated_nodes_get_zeros(two_cliques):
    assert not NetMF(dim=4, random_state=0).fit_transform(two_cliques)[10].any()
