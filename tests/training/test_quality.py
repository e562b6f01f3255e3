"""Does training learn anything? Labels are hard to read off the start table, easy off the trained one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from reference import config, train
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

from kernelne.evaluation.classification import classify_nodes
from kernelne.graph import Graph

MODELS = {
    "gaussian": {"kernels": (("gaussian", 2.0),)},
    "schoenberg": {"kernels": (("schoenberg", 2.0),)},
    "inverse_multiquadric": {"kernels": (("inverse_multiquadric", 0.25),)},
    "mixture": {
        "kernels": (("gaussian", 1.0), ("gaussian", 2.0), ("gaussian", 3.0)),
        "learn_coefficients": True,
        "coef_spread": 2.0,
    },
}


@pytest.fixture(scope="module")
def digits():
    """Handwritten digits, each joined to its ten nearest: 1,797 nodes, ten classes."""
    images, labels = load_digits(return_X_y=True)
    nearest = kneighbors_graph(images, 10)
    return Graph.from_scipy((nearest + nearest.T) > 0), labels


@pytest.fixture(scope="module")
def partition():
    """Eight groups of 50 nodes, about 8 edges a node inside its group and 4 to others."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 50)
    chance = np.where(labels[:, None] == labels, 8 / 50, 4 / 350)
    upper = np.triu(rng.random((400, 400)) < chance, 1)
    return Graph.from_scipy(scipy.sparse.csr_array(upper | upper.T)), labels


def _score(vectors, labels):
    return classify_nodes(vectors, labels, train_sizes=(0.1,), n_repeats=3).micro_f1.mean()


def _untrained(graph, changes):
    return train(graph, config(**(changes | {"learning_rate": 1e-30, "min_learning_rate": 0.0}))).center


@pytest.mark.parametrize("model", list(MODELS))
def test_digits_are_told_apart(digits, model):
    graph, labels = digits
    changes = MODELS[model] | {"dim": 32, "walks_per_node": 40}
    assert _score(_untrained(graph, changes | {"walks_per_node": 1}), labels) < 0.25
    assert _score(train(graph, config(**changes)).center, labels) > 0.94


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("model", list(MODELS))
def test_planted_groups_are_found(partition, model, deterministic):
    graph, labels = partition
    changes = MODELS[model] | {"dim": 32, "walks_per_node": 150, "deterministic": deterministic}
    assert _score(_untrained(graph, changes | {"walks_per_node": 1}), labels) < 0.3
    assert _score(train(graph, config(**changes)).center, labels) > 0.85


def test_vectors_come_apart_where_structure_is_weak():
    """Preferential attachment has hubs and no groups: a mixture without a floor under its sum collapses."""
    rng = np.random.default_rng(0)
    n = 2000
    sources = np.repeat(np.arange(5, n), 5)
    targets = (rng.random(sources.size) ** 2 * sources).astype(np.int64)
    graph = Graph.from_edges(sources, targets, drop_self_loops=True)
    kernels = (("gaussian", 1.0), ("gaussian", 2.0), ("gaussian", 3.0))
    trained = train(graph, config(kernels=kernels, learn_coefficients=True, dim=32, walks_per_node=80))
    norms = np.linalg.norm(trained.center, axis=1)
    assert norms.mean() > 0.3
    assert trained.loss < 0.83
