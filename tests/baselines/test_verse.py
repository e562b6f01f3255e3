"""VERSE: groups are found, pairs come by personalised PageRank, inner products tell it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from skipgram_reference import assert_learns, crumbs

from kernelne._common.jit import cached
from kernelne.baselines import VERSE
from kernelne.baselines._pairs import make_drawn
from kernelne.baselines.verse import Plan, walk_ends
from kernelne.errors import ParameterError
from kernelne.walks.sample import walk_graph


def _pagerank(graph, alpha):
    """Where walks from each node end, (n, n): a node without neighbours keeps them."""
    A = graph.to_scipy().toarray().astype(float)
    degrees = A.sum(axis=1, keepdims=True)
    P = np.where(degrees > 0, A / np.where(degrees > 0, degrees, 1), np.eye(len(A)))
    return (1 - alpha) * np.linalg.inv(np.eye(len(A)) - alpha * P)


@cached()
def _count_ends(graph, plan, drawn, counts):
    for first in range(0, 100_000, 10):
        walk_ends(first, 10, graph, plan, drawn)
        for b in range(10):
            counts[drawn.others[b, 0]] += 1


@pytest.mark.parametrize("directed", [False, True])
def test_walks_end_where_personalised_pagerank_says(random_graph, directed):
    graph = random_graph(4, 8, directed=directed, weighted=True, density=0.25)
    exact = _pagerank(graph, 0.85)
    for v in range(0, 8, 3):
        counts = np.zeros(8)
        drawn = make_drawn(1, 4)
        drawn.sources[:] = v
        plan = Plan(np.uint64(v), np.uint64(0.85 * 2**32), 1, 0.1, 0.1)
        _count_ends(walk_graph(graph), plan, drawn, counts)
        np.testing.assert_allclose(counts / 100_000, exact[v], atol=0.008)


def test_planted_groups_are_found():
    assert_learns(VERSE(dim=16, n_threads=1, random_state=0))


def test_inner_products_rank_as_pagerank_does(ring):
    model = VERSE(dim=64, samples_per_node=5000, n_threads=1, random_state=0).fit(ring)
    products, exact = model.embedding_ @ model.embedding_.T, _pagerank(ring, 0.85)
    near = exact > 1 / 64  # the others are hardly drawn more often than by chance
    assert spearmanr(products[near], exact[near]).statistic > 0.9
    assert products[near].min() > products[~near].mean()


def test_components_of_a_few_nodes_do_not_explode():
    with pytest.warns(UserWarning, match="1 of 24 nodes have no edges"):
        vectors = VERSE(dim=16, n_threads=1, random_state=0).fit_transform(crumbs())
    assert np.linalg.norm(vectors, axis=1).max() < 10


@pytest.mark.parametrize(
    ("name", "value"), [("alpha", 1.0), ("alpha", -0.1), ("samples_per_node", 0), ("n_negative", 0)]
)
def test_parameters_are_checked(name, value):
    with pytest.raises(ParameterError, match=name):
        VERSE(**{name: value}).fit([(0, 1)])
