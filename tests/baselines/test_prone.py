"""ProNE's two halves against dense float64 algebra."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from kernelne import Graph
from kernelne.baselines import ProNE
from kernelne.baselines.prone import edge_matrix, propagate


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_matrix_of_edges(directed, weighted, random_graph):
    graph = random_graph(3, 25, directed=directed, weighted=weighted)
    A = graph.to_scipy().toarray().astype(np.float64)
    steps = A / A.sum(axis=1, keepdims=True)
    noise = steps.sum(axis=0) ** 0.75
    with np.errstate(divide="ignore"):
        wanted = np.where(A > 0, np.log(steps) - np.log(noise / noise.sum()), 0.0)
    found = edge_matrix(graph.to_scipy())
    np.testing.assert_allclose(found.toarray(), wanted, rtol=1e-5, atol=1e-6)
    assert found.nnz == len(graph.neighbours)


def test_filter(random_graph):
    """The expansion is the matrix function it stands for."""
    mu, theta = 0.2, 0.5
    A = random_graph(3, 25, directed=False, weighted=True).to_scipy()
    X = np.random.default_rng(0).standard_normal((25, 4)).astype(np.float32)
    joined = A.toarray().astype(np.float64) + np.eye(25)
    shifted = (1 - mu) * np.eye(25) - joined / joined.sum(axis=1, keepdims=True)
    # exp(−θ x), x = (M² − 2)/2: the paper's Gaussian exp(−θ/2 (M² − 1)) times exp(θ/2).
    band = scipy.linalg.expm(-theta * (shifted @ shifted - 2 * np.eye(25)) / 2)
    wanted = joined @ (X - band @ X)
    np.testing.assert_allclose(propagate(A, X, 12, mu, theta), wanted, rtol=1e-4, atol=1e-3)


def test_factorisation(random_graph):
    """With no filter, rows are those of the left singular vectors times the roots of their values."""
    graph = random_graph(8, 14, directed=False, weighted=True)
    left, values, _ = np.linalg.svd(edge_matrix(graph.to_scipy()).toarray().astype(np.float64))
    wanted = left[:, :5] * np.sqrt(values[:5])
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    found = ProNE(dim=5, order=1, random_state=0).fit_transform(graph)
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=1e-4)


def test_rows_have_length_one(two_cliques):
    with pytest.warns(UserWarning, match="no edges"):
        lengths = np.linalg.norm(ProNE(dim=4, random_state=0).fit_transform(two_cliques), axis=1)
    np.testing.assert_allclose(lengths, [1] * 10 + [0], atol=1e-6)


def test_columns_beyond_the_nodes_are_zero():
    found = ProNE(dim=9, random_state=0).fit_transform([(0, 1), (1, 2), (0, 2)])
    assert found[:, :3].any()
    assert not found[:, 3:].any()


def test_few_directions():
    """A star has two, and a node without edges none."""
    star = Graph.from_edges([0] * 300, np.arange(1, 301), nodes=np.arange(302))
    with pytest.warns(UserWarning, match="no edges"):
        found = ProNE(dim=8, random_state=0).fit_transform(star)
    assert not found[301].any()
    assert not found[:, 2:].any()
    np.testing.assert_allclose(found[1:301] @ found[1], np.ones(300), atol=1e-5)
