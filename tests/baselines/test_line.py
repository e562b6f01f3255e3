"""LINE: groups are found, edges are drawn by weight, and directions matter to the second order."""

from __future__ import annotations

import numpy as np
import pytest
from skipgram_reference import assert_learns, planted

from kernelne.baselines import LINE
from kernelne.errors import ParameterError
from kernelne.graph import Graph


@pytest.mark.parametrize("order", ["first", "second", "both"])
def test_planted_groups_are_found(order):
    assert_learns(LINE(order=order, dim=16, n_threads=1, random_state=0))


def test_the_two_orders_side_by_side():
    graph, _ = planted()
    settings = {"samples_per_node": 50, "n_threads": 1, "random_state": 1}
    both = LINE(dim=9, **settings).fit_transform(graph)
    for order, columns in (("first", both[:, :5]), ("second", both[:, 5:])):
        alone = LINE(order=order, dim=columns.shape[1], **settings).fit_transform(graph)
        norms = np.linalg.norm(alone, axis=1, keepdims=True)
        np.testing.assert_allclose(columns, alone / norms, rtol=1e-5, atol=1e-6)


def test_heavy_edges_weigh_more():
    """A square whose two heavy sides join 0 with 1 and 2 with 3."""
    graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], [9.0, 0.1, 9.0, 0.1])
    v = LINE(order="first", dim=8, n_threads=1, random_state=0).fit_transform(graph)
    assert min(v[0] @ v[1], v[2] @ v[3]) > 0.2
    assert max(v[0] @ v[2], v[1] @ v[2], v[0] @ v[3], v[1] @ v[3]) < 0


def test_nodes_with_the_same_targets_are_alike():
    """Of second order: 0–4 point at 10–14, 5–9 at 15–19; none of them at each other."""
    sources = np.repeat(np.arange(10), 5)
    targets = np.concatenate([np.tile(np.arange(10, 15), 5), np.tile(np.arange(15, 20), 5)])
    graph = Graph.from_edges(sources, targets, directed=True)
    v = LINE(order="second", dim=8, n_threads=1, random_state=0).fit_transform(graph)[:10]
    unit = v / np.linalg.norm(v, axis=1, keepdims=True)
    likeness = unit @ unit.T
    assert likeness[:5, :5].min() > likeness[:5, 5:].max() + 0.3


def test_a_graph_without_edges_stays_as_it_starts():
    with pytest.warns(UserWarning, match="3 of 3 nodes have no edges"):
        vectors = LINE(dim=4, order="first").fit_transform(Graph.from_edges([], [], nodes=[1, 2, 3]))
    assert np.abs(vectors).max() <= 0.5 / 4


@pytest.mark.parametrize(
    ("name", "value"), [("order", "third"), ("samples_per_node", 0), ("dim", 1), ("learning_rate", -1)]
)
def test_parameters_are_checked(name, value):
    with pytest.raises(ParameterError, match=name):
        LINE(**{name: value}).fit([(0, 1)])


def test_progress_counts_both_orders():
    calls = []
    LINE(dim=4, samples_per_node=10, n_threads=1, progress=lambda *call: calls.append(call)).fit([(0, 1)])
    assert calls[-1][:2] == (40, 40)
    assert [done for done, _, _ in calls] == sorted(done for done, _, _ in calls)
