"""Rows that are smoothed over the nodes two, four, … steps away."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from kernelne.graph import Graph
from kernelne.graph.ops import among, within
from kernelne.model import combine_tables, neighbour_sums, smooth_rows
from kernelne.model.smooth_rows import reach, smooth, weight_of


def smoothed(graph, rows, weight, slabs=1, n_threads=2):
    made = rows.copy()
    with ThreadPoolExecutor(n_threads) as threads:
        smooth(graph, made, weight, threads, slabs)
    return made


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("slabs", [1, 4, 100])
@pytest.mark.parametrize("weight", [0.0, 0.2, 0.7, 0.95])
@pytest.mark.parametrize("dim", [1, 37])
def test_rows_are_the_sum_of_the_series(random_graph, weighted, slabs, weight, dim, monkeypatch):
    monkeypatch.setattr(neighbour_sums, "BLOCK_NODES", 5)
    graph = random_graph(3, 23, directed=False, weighted=weighted, density=0.1)
    rows = np.random.default_rng(1).normal(size=(23, dim)).astype(np.float32)
    links = graph.to_scipy().toarray().astype(float)
    steps = links / np.maximum(links.sum(axis=1, keepdims=True), 1e-9)
    term, expected = rows.astype(float), rows.astype(float)
    for _ in range(reach(weight) // 2):
        term = weight * steps @ steps @ term
        expected = expected + term
    np.testing.assert_allclose(smoothed(graph, rows, weight, slabs), expected, rtol=1e-4, atol=1e-5)


def test_bits_do_not_depend_on_threads_and_slabs(random_graph):
    graph = random_graph(4, 40, directed=False, weighted=True)
    rows = np.random.default_rng(2).normal(size=(40, 33)).astype(np.float32)
    made = [smoothed(graph, rows, 0.6, slabs, threads) for slabs, threads in ((1, 1), (1, 3), (9, 2))]
    assert made[0].tobytes() == made[1].tobytes() == made[2].tobytes()


@pytest.mark.parametrize(
    ("memory", "weight", "steps"),
    [
        (0.0, 0.0, 0), (0.36, 0.0, 0), (0.38, 0.334, 2), (0.4, 0.41, 2),
        (0.48, 0.849, 8), (0.5, 0.95, 28), (1.0, 0.95, 28),
    ],
)  # fmt: skip
def test_the_more_walks_remember_the_farther_rows_are_smoothed(memory, weight, steps):
    found = weight_of(SimpleNamespace(memory_of_walks=memory))
    assert found == pytest.approx(weight, rel=0.01)
    assert reach(found) == steps


def test_neighbours_of_another_role_are_not_mixed_up():
    """Two steps from a node of a bipartite graph lead to its own side."""
    ends = np.array([(i, 6 + (i + k) % 6) for i in range(6) for k in range(2)]).T
    sides = np.repeat([[1.0, 0.0], [0.0, 1.0]], 6, axis=0).astype(np.float32)
    made = smoothed(Graph.from_edges(*ends), sides, 0.9)
    assert (made[:6, 1] == 0).all()
    assert (made[6:, 0] == 0).all()
    assert (made.max(axis=1) > 2).all()


def test_noise_averages_out():
    """In two rings of eight, each row is its ring's own, and noise as large."""
    ring = [(i, (i + 1) % 8) for i in range(8)]
    graph = Graph.from_edges(*np.array(ring + [(8 + a, 8 + b) for a, b in ring]).T)
    rng = np.random.default_rng(5)
    own = np.repeat(rng.normal(size=(2, 16)), 8, axis=0)
    rows = (own + rng.normal(size=own.shape)).astype(np.float32)

    def away(table):
        table = table / np.linalg.norm(table, axis=1, keepdims=True)
        return np.linalg.norm(table - own / np.linalg.norm(own, axis=1, keepdims=True), axis=1).mean()

    assert away(smoothed(graph, rows, weight_of(graph))) < 0.7 * away(rows)


def test_the_graph_around_some_nodes_is_enough(random_graph):
    graph = random_graph(6, 60, directed=False, weighted=True, density=0.04)
    rows = np.random.default_rng(3).normal(size=(60, 20)).astype(np.float32)
    some = np.flatnonzero(graph.degrees > 0)[[2, 9]]
    around = np.flatnonzero(within(graph, some, reach(0.4)))
    assert 2 < len(around) < 60
    part = smoothed(among(graph, around), rows[around], 0.4)
    whole = smoothed(graph, rows, 0.4)
    np.testing.assert_array_equal(part[np.searchsorted(around, some)], whole[some])


@pytest.mark.parametrize("directed", [False, True])
def test_vectors_of_some_nodes_are_those_of_all(random_graph, directed, monkeypatch):
    monkeypatch.setattr(smooth_rows, "_LEAST", 0.0)
    graph = random_graph(7, 80, directed=directed, weighted=True, density=0.02)
    tables = np.random.default_rng(4).normal(size=(2, 80, 16)).astype(np.float32)
    made, frame = combine_tables.combine_in_frame(graph, *tables, "joint", 2.0)
    assert frame.smoothing > 0
    for rows in (np.array([70, 3]), np.arange(80)[::-1]):
        some = combine_tables.combine_some(graph, *tables, "joint", frame, rows)
        np.testing.assert_allclose(some, made[rows], atol=1e-5)


def _groups(n_groups, size, spread):
    """Nodes that lie around the centers of their groups, on a ring of all nodes; and both their tables."""
    rng = np.random.default_rng(8)
    n = n_groups * size
    centers = rng.normal(size=(n_groups, 64)) * np.linspace(0.5, 3, n_groups)[:, None]
    rows = np.repeat(centers, size, axis=0) + spread * rng.normal(size=(n, 64))
    # Neighbours' rows are those of the same group, but for one node of each.
    graph = Graph.from_edges(np.arange(n), np.roll(np.arange(n), -1))
    return graph, np.stack([rows, rows]).astype(np.float32)


@pytest.mark.parametrize(
    ("n_groups", "size", "spread", "grouped"),
    [
        (40, 30, 0.01, True),
        (40, 30, 1.0, False),
        (40, 4, 0.01, False),
        (40, 110, 0.01, False),
        (20, 30, 0.01, False),
    ],
)
@pytest.mark.parametrize("slabs", [1, 2])
def test_many_small_clear_groups_are_equally_far_apart_and_have_short_rows(
    n_groups, size, spread, grouped, slabs, monkeypatch
):
    monkeypatch.setattr(smooth_rows, "_MOST", 0.0)
    graph, tables = _groups(n_groups, size, spread)
    made, frame = combine_tables.combine_in_frame(graph, *tables, "joint", 3.0, None, slabs, True)
    assert frame.grouped == grouped
    assert np.linalg.norm(made, axis=1).mean() == pytest.approx(1.15 if grouped else 3.0, rel=1e-4)
    # A length that is asked for is kept.
    asked, _ = combine_tables.combine_in_frame(graph, *tables, "joint", 3.0, None, slabs)
    assert np.linalg.norm(asked, axis=1).mean() == pytest.approx(3.0, rel=1e-4)
    if grouped:
        middles = made.reshape(n_groups, size, 64).mean(axis=1)
        middles /= np.linalg.norm(middles, axis=1, keepdims=True)
        cosines = (middles @ middles.T)[np.triu_indices(n_groups, 1)]
        assert np.abs(cosines).max() < 0.15
