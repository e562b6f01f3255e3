"""HOPE against the Katz index written out."""

from __future__ import annotations

import numpy as np
import pytest

from kernelne import Graph, ParameterError
from kernelne.baselines import HOPE
from kernelne.baselines.hope import Katz


def _katz(graph, decay):
    dense = graph.to_scipy().toarray().astype(np.float64)
    step = dense * (decay / np.linalg.norm(dense, 2))
    return np.linalg.inv(np.eye(len(dense)) - step) - np.eye(len(dense))


@pytest.mark.filterwarnings("ignore:.*no edges")
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("n", [40, 200])
def test_halves_multiply_to_the_best_approximation_of_the_katz_index(directed, n, random_graph):
    graph = random_graph(1, n, directed=directed, weighted=True, density=4 / n)
    katz = _katz(graph, 0.5)
    left, values, right = np.linalg.svd(katz)
    best = (left[:, :10] * values[:10]) @ right[:10]
    vectors = HOPE(dim=20, normalise=False, random_state=0).fit_transform(graph)
    np.testing.assert_allclose(vectors[:, :10] @ vectors[:, 10:].T, best, atol=0.02 * values[0])
    np.testing.assert_allclose(np.square(vectors[:, :10]).sum(axis=0), values[:10], rtol=0.02)


def test_operator(random_graph):
    graph = random_graph(2, 30, directed=True, weighted=True)
    dense = graph.to_scipy().astype(np.float64)
    step = (dense * (0.5 / np.linalg.norm(dense.toarray(), 2))).tocsr()
    katz = Katz(step, step.T.tocsr(), 40)
    X = np.random.default_rng(0).standard_normal((30, 4))
    np.testing.assert_allclose(katz @ X, _katz(graph, 0.5) @ X, atol=1e-9)
    np.testing.assert_allclose(katz.T @ X, _katz(graph, 0.5).T @ X, atol=1e-9)


def test_arcs_keep_their_direction():
    star = Graph.from_edges([0] * 5, [1, 2, 3, 4, 5], directed=True)
    model = HOPE(dim=8, normalise=False, random_state=0).fit(star)
    sources, targets = model.embedding_[:, :4], model.embedding_[:, 4:]
    assert np.abs(sources[0]).max() > 0.1
    assert np.abs(targets[0]).max() < 1e-6
    assert np.abs(sources[1:]).max() < 1e-6


def test_rows_have_length_one_unless_told_otherwise(two_cliques):
    with pytest.warns(UserWarning, match="no edges"):
        lengths = np.linalg.norm(HOPE(dim=7, random_state=0).fit_transform(two_cliques), axis=1)
    np.testing.assert_allclose(lengths, [1] * 10 + [0], atol=1e-6)


@pytest.mark.parametrize("decay", [0, 1, 1.5])
def test_decay_out_of_range(decay):
    with pytest.raises(ParameterError, match="decay="):
        HOPE(decay=decay).fit([(0, 1)])
