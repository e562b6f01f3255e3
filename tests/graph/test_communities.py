"""Louvain's communities on graphs whose answer is known, modularity against networkx and by hand."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from kernelne import Graph, InputError, ParameterError, read_graph
from kernelne.graph.communities import louvain, modularity
from kernelne.graph.ops import as_undirected

FOLDER = os.environ.get("KERNELNE_DATA")


def _best(graph, n_seeds, **options):
    """Highest modularity over seeds, and the partition that has it."""
    found = [louvain(graph, random_state=seed, **options) for seed in range(n_seeds)]
    return max(((modularity(graph, c, **options), c) for c in found), key=lambda pair: pair[0])


def _planted(n_groups, size, seed):
    """Groups of nodes with 8 edges a node inside and 1 outside, rows shuffled; and the groups."""
    rng = np.random.default_rng(seed)
    n = n_groups * size
    group = rng.permutation(np.repeat(np.arange(n_groups), size))
    members = np.argsort(group, kind="stable").reshape(n_groups, size)
    inside = np.repeat(np.arange(n), 8)
    sources = np.concatenate([inside, np.arange(n)])
    targets = np.concatenate(
        [members[group[inside], rng.integers(size, size=len(inside))], rng.integers(n, size=n)]
    )
    return Graph.from_edges(sources, targets, drop_self_loops=True), group


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("resolution", [1.0, 0.4, 2.5])
def test_modularity_is_networkxs(random_graph, directed, weighted, resolution):
    nx = pytest.importorskip("networkx")
    graph = random_graph(2, 25, directed=directed, weighted=weighted, density=0.2)
    plain = nx.from_scipy_sparse_array(as_undirected(graph).to_scipy())
    assert nx.number_of_selfloops(plain) > 0
    codes = np.random.default_rng(0).integers(0, 4, 25)
    groups = [set(np.flatnonzero(codes == c).tolist()) for c in range(4)]
    expected = nx.community.modularity(plain, groups, resolution=resolution)
    names = np.array(["north", "south", "east", "west"])[codes]
    assert modularity(graph, names, resolution) == pytest.approx(expected)
    mixed = [(c,) if c else None for c in codes.tolist()]
    objects = np.fromiter(mixed, object, 25)
    assert modularity(graph, objects, resolution) == pytest.approx(expected)


def test_modularity_by_hand(two_cliques):
    # 20 of 21 edges inside; each clique holds 21 of 42 ends.
    sides = [0] * 5 + [1] * 5 + [2]
    assert modularity(two_cliques, sides) == pytest.approx(20 / 21 - 0.5)
    assert modularity(two_cliques, np.zeros(11)) == pytest.approx(0.0)
    assert modularity(Graph.from_edges([], [], nodes=[1, 2]), [0, 1]) == 0.0


def test_directions_merge_and_weights_add():
    graph = Graph.from_edges(["a", "b", "b", "c"], ["b", "a", "c", "c"], [1.0, 2.0, 4.0, 8.0], directed=True)
    plain = as_undirected(graph)
    expected = [[0, 3, 0], [3, 0, 4], [0, 4, 8]]
    np.testing.assert_array_equal(plain.to_scipy().toarray(), expected)
    assert plain.nodes.tolist() == ["a", "b", "c"]
    assert not plain.directed
    assert as_undirected(plain) is plain
    bare = as_undirected(Graph.from_edges([0, 1], [1, 0], directed=True))
    assert (bare.n_edges, bare.weights) == (1, None)


def test_two_cliques_and_a_loner(two_cliques):
    for seed in range(5):
        communities = louvain(two_cliques, random_state=seed)
        assert communities.dtype == np.int64
        np.testing.assert_array_equal(communities, [0] * 5 + [1] * 5 + [2])


def test_communities_are_numbered_by_size():
    cliques = [(s + i, s + j) for s, size in ((0, 3), (3, 6), (9, 4)) for i in range(size) for j in range(i)]
    communities = louvain(Graph.from_edges(*zip(*cliques, strict=True), nodes=range(13)))
    np.testing.assert_array_equal(communities, [2] * 3 + [0] * 6 + [1] * 4)


def test_weights_decide(two_cliques):
    # All pairs are joined; heavy edges make two groups that cross the cliques' order.
    pairs = np.array([(i, j) for i in range(10) for j in range(i)])
    same = pairs[:, 0] % 2 == pairs[:, 1] % 2
    graph = Graph.from_edges(pairs[:, 0], pairs[:, 1], np.where(same, 5.0, 0.5))
    np.testing.assert_array_equal(louvain(graph), np.arange(10) % 2)


def test_a_heavy_self_loop_keeps_a_node_to_itself():
    # To join its neighbour would gain 1 - 21 · 2/26 < 0: the loop adds twice its weight to the ends, 2m = 26.
    path = Graph.from_edges([0, 0, 1, 2], [0, 1, 2, 3], [10.0, 1.0, 1.0, 1.0])
    communities = louvain(path)
    assert (communities == communities[0]).sum() == 1
    bare = Graph.from_edges([0, 1, 2], [1, 2, 3])
    communities = louvain(bare)
    assert communities[0] == communities[1]


def test_planted_groups_are_found():
    graph, group = _planted(30, 40, seed=1)
    communities = louvain(graph)
    assert modularity(graph, communities) > modularity(graph, group) - 0.005
    for c in range(30):
        sizes = np.bincount(communities[group == c])
        assert sizes.max() >= 38


def test_a_higher_resolution_gives_more_communities():
    graph, _ = _planted(10, 30, seed=2)
    sizes = [louvain(graph, resolution=r).max() + 1 for r in (0.1, 1.0, 20.0)]
    assert sizes[0] < sizes[1] < sizes[2]


def test_karate():
    nx = pytest.importorskip("networkx")
    graph = Graph.from_networkx(nx.karate_club_graph(), weight="unweighted")
    assert _best(graph, 20)[0] == pytest.approx(0.41979, abs=0.005)


@pytest.mark.parametrize("weighted", [False, True])
def test_as_good_as_networkx(random_graph, weighted):
    nx = pytest.importorskip("networkx")
    graph = random_graph(5, 80, directed=False, weighted=weighted, density=0.06)
    theirs = nx.from_scipy_sparse_array(graph.to_scipy())
    found = (nx.community.louvain_communities(theirs, seed=s) for s in range(10))
    best = max(nx.community.modularity(theirs, c) for c in found)
    assert _best(graph, 10)[0] > best - 0.01


@pytest.mark.skipif(not FOLDER, reason="KERNELNE_DATA does not name the folder of the paper's graphs")
def test_dolphins_have_five_communities():
    score, communities = _best(read_graph(Path(FOLDER) / "dolphins.edges.gz"), 100)
    assert score == pytest.approx(0.5285, abs=0.0005)
    assert communities.max() + 1 == 5


def test_the_seed_fixes_the_communities(random_graph):
    graph = random_graph(7, 100, directed=False, weighted=False, density=0.05)
    found = [louvain(graph, random_state=s) for s in (1, 1, 2, 3, 4)]
    np.testing.assert_array_equal(found[0], found[1])
    assert any((found[0] != other).any() for other in found[2:])


def test_nodes_without_edges_stay_alone():
    np.testing.assert_array_equal(louvain(Graph.from_edges([], [], nodes=["x", "y", "z"])), [0, 1, 2])
    np.testing.assert_array_equal(louvain(Graph.from_edges([5], [5])), [0])


def test_bad_input(two_cliques):
    for bad in (0.0, -1.0, math.nan, math.inf, "high", True):
        with pytest.raises(ParameterError, match="resolution"):
            louvain(two_cliques, resolution=bad)
        with pytest.raises(ParameterError, match="resolution"):
            modularity(two_cliques, np.zeros(11), bad)
    with pytest.raises(ParameterError, match="random_state=-1"):
        louvain(two_cliques, random_state=-1)
    with pytest.raises(InputError, match=r"communities has shape \(3,\) for 11 nodes"):
        modularity(two_cliques, [0, 1, 2])
    with pytest.raises(InputError, match="hashable"):
        modularity(two_cliques, np.fromiter([[]] * 11, object, 11))
    with pytest.raises(InputError, match="expected a Graph"):
        louvain(3)
