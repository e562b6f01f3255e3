"""Splits by their promises on random graphs, scores against scikit-learn and by hand."""

from __future__ import annotations

import math
import warnings
from contextlib import nullcontext, suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from kernelne import Embedding, Graph, InputError, ParameterError
from kernelne.evaluation import links
from kernelne.evaluation.link_splits import split_links
from kernelne.evaluation.links import (
    OPERATORS,
    LinkScores,
    control_scores,
    pair_features,
    rank_scores,
    score_links,
)
from kernelne.graph.pairs import _distinct, spare_edges

PARTS = ("train_edges", "train_non_edges", "test_edges", "test_non_edges")


def _preferential(n, m=4, seed=0):
    """Barabási–Albert: each new node joins m ends of edges that are there."""
    rng = np.random.default_rng(seed)
    ends = list(range(m))
    for node in range(m, n):
        for target in set(rng.choice(ends, m).tolist()):
            ends += [node, target]
    edges = np.array(ends[m:]).reshape(-1, 2)
    return Graph.from_edges(edges[:, 0], edges[:, 1])


def _pairs(array):
    return set(map(tuple, array.tolist()))


def _edges(graph):
    rows = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    return {(u, v) for u, v in zip(rows.tolist(), graph.neighbours.tolist(), strict=True) if u < v}


@pytest.fixture(scope="module")
def hubs():
    return _preferential(1500)


def _check(split, graph, share):
    """All that a split of a connected undirected graph without self-loops promises."""
    residual, truth = split.graph, _edges(graph)
    found = {name: getattr(split, name) for name in PARTS}
    for array in found.values():
        assert array.dtype == np.int64
        assert array.ndim == 2
        assert (array[:, 0] < array[:, 1]).all()
        assert 0 <= array.min() <= array.max() < residual.n_nodes
        assert len(_pairs(array)) == len(array)
    train, no_train, test, no_test = (_pairs(array) for array in found.values())
    assert train == _edges(residual)
    assert test | train == truth
    assert not test & train
    assert not (no_train | no_test) & truth
    assert not no_train & no_test
    assert (len(no_train), len(no_test)) == (len(train), len(test))
    assert len(test) == min(round(share * len(truth)), len(truth) - residual.n_nodes + 1)
    assert connected_components(residual.to_scipy(), directed=False)[0] == 1
    assert not residual.directed


@pytest.mark.parametrize("non_edges", ["uniform", "degree"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_split_keeps_its_promises(hubs, non_edges, share):
    _check(split_links(hubs, test_share=share, non_edges=non_edges), hubs, share)


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(4, 30), extra=st.integers(1, 60), share=st.floats(0.05, 0.95), seed=st.integers(0, 2**31)
)
def test_small_graphs_split_or_say_why(n, extra, share, seed):
    rng = np.random.default_rng(seed)
    tree = [(rng.integers(i), i) for i in range(1, n)]
    others = [tuple(rng.choice(n, 2, replace=False)) for _ in range(extra)]
    sources, targets = np.array(tree + others).T
    graph = Graph.from_edges(sources, targets)
    if graph.n_edges == n - 1 or round(share * graph.n_edges) == 0:
        remedy = "is a tree|hides none"
    else:
        remedy = "have no edge" if n * (n - 1) // 2 < 2 * graph.n_edges else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with nullcontext() if remedy is None else pytest.raises(InputError, match=remedy):
            _check(split_links(graph, test_share=share, random_state=seed), graph, share)
        with suppress(InputError):  # of so few nodes often no ends can be paired
            split = split_links(graph, test_share=share, non_edges="degree", random_state=seed)
            _check(split, graph, share)


def test_hiding_is_deleting_in_random_order_unless_that_cuts():
    edges = np.array(sorted(_edges(_preferential(80))))
    order = np.random.default_rng(5).permutation(len(edges))
    left, expected = np.ones(len(edges), bool), []
    for e in order:
        left[e] = False
        rest = Graph.from_edges(edges[left, 0], edges[left, 1], nodes=np.arange(80))
        left[e] = connected_components(rest.to_scipy(), directed=False)[0] > 1
        expected.append(not left[e])
    assert left.sum() == 79
    assert spare_edges(edges, order, 80).tolist() == expected


@pytest.mark.parametrize("non_edges", ["uniform", "degree"])
def test_the_seed_fixes_the_split(hubs, non_edges):
    first, again, other = (split_links(hubs, non_edges=non_edges, random_state=s) for s in (3, 3, 4))
    assert first.graph.fingerprint == again.graph.fingerprint != other.graph.fingerprint
    for name in PARTS:
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
        assert _pairs(getattr(first, name)) != _pairs(getattr(other, name))


def test_uniform_non_edges_are_uniform():
    graph = Graph.from_edges(np.arange(12), (np.arange(12) + 1) % 12)
    absent = {(u, v) for u in range(12) for v in range(u + 1, 12)} - _edges(graph)
    counts = dict.fromkeys(sorted(absent), 0)
    for seed in range(3000):
        split = split_links(graph, test_share=0.1, random_state=seed)
        for pair in _pairs(split.train_non_edges) | _pairs(split.test_non_edges):
            counts[pair] += 1
    # Each of 54 pairs is among 12 in 2 of 9 cases: 667 ± 23.
    assert abs(np.array(list(counts.values())) - 3000 * 12 / 54).max() < 100


@pytest.mark.parametrize("size", [1, 30, 99, 100])
def test_distinct_numbers_are_distinct(size):
    drawn = _distinct(100, size, np.random.default_rng(0))
    assert len(set(drawn.tolist())) == len(drawn) == size
    assert 0 <= drawn.min() <= drawn.max() < 100


def test_matched_degrees_are_worth_nothing(hubs):
    auc = {}
    for non_edges in ("uniform", "degree"):
        split = split_links(hubs, non_edges=non_edges, random_state=1)
        products = [
            control_scores(split.graph, pairs)["degree_product"]
            for pairs in (split.test_edges, split.test_non_edges)
        ]
        auc[non_edges] = rank_scores(*products).auc
    assert auc["uniform"] > 0.65
    assert abs(auc["degree"] - 0.5) < 0.03


def test_matched_non_edges_have_the_ends_of_the_edges(hubs):
    split = split_links(hubs, non_edges="degree")
    for part in ("train", "test"):
        edges, absent = getattr(split, f"{part}_edges"), getattr(split, f"{part}_non_edges")
        np.testing.assert_array_equal(np.bincount(edges.ravel()), np.bincount(absent.ravel()))


def test_only_the_giant_component_is_split_and_ids_keep_their_order():
    ring = [(f"r{i}", f"r{(i + j) % 9}") for i in range(9) for j in (1, 2)]
    edges = [("x", "y"), ("y", "z"), ("z", "x"), *ring, ("r3", "r3")]
    names = ["r8", "alone", "x", "r0"]
    graph = Graph.from_edges(*zip(*edges, strict=True), nodes=names)
    split = split_links(graph, test_share=0.3)
    assert split.graph.nodes.tolist() == ["r8", "r0", *(f"r{i}" for i in range(1, 8))]
    shown = split.graph.nodes[np.concatenate([split.train_edges, split.test_edges])]
    assert {frozenset(pair) for pair in shown.tolist()} == {frozenset(pair) for pair in ring}


@pytest.mark.parametrize("directed", [False, True])
def test_weights_are_kept_and_those_of_two_directions_add(random_graph, directed):
    graph = random_graph(3, 40, directed=directed, weighted=True, density=0.1)
    matrix = graph.to_scipy().toarray().astype(np.float64)
    matrix = matrix + matrix.T if directed else matrix
    split = split_links(graph, test_share=0.3)
    rows = graph.index_of(split.graph.nodes)
    residual = split.graph.to_scipy().toarray()
    kept = residual > 0
    assert kept.sum() == 2 * len(split.train_edges)
    np.testing.assert_allclose(residual[kept], matrix[np.ix_(rows, rows)][kept], rtol=1e-6)
    np.testing.assert_array_equal(residual, residual.T)


def test_other_forms_of_graph_are_taken():
    edges = [(i, (i + j) % 12) for i in range(12) for j in (1, 2)]
    matrix = Graph.from_edges(*zip(*edges, strict=True)).to_scipy()
    assert split_links(edges).graph.fingerprint == split_links(matrix).graph.fingerprint


def test_fewer_edges_than_asked_for_are_hidden_with_a_warning():
    ring = Graph.from_edges(np.arange(10), (np.arange(10) + 1) % 10)
    with pytest.warns(UserWarning, match=r"5 of 10 edges requested, 1 hidden"):
        split = split_links(ring)
    assert len(split.test_edges) == len(split.test_non_edges) == 1


def test_graphs_that_cannot_be_split():
    with pytest.raises(InputError, match="no edges but self-loops"):
        split_links(Graph.from_edges([1, 2], [1, 2]))
    with pytest.raises(InputError, match="no edges"):
        split_links(Graph.from_edges([], [], nodes=["only"]))
    with pytest.raises(InputError, match="a tree of 4 nodes"):
        split_links([(0, 1), (1, 2), (1, 3)])
    clique = [(i, j) for i in range(8) for j in range(i)]
    with pytest.raises(InputError, match=r"28 non-edges are needed, but only 0 pairs of the 8 nodes"):
        split_links(clique)
    wheel = [(0, i) for i in range(1, 30)] + [(i, i + 1) for i in range(1, 29)]
    with pytest.raises(InputError, match=r"node 0 has edges to 29 of 29 others"):
        split_links(wheel, non_edges="degree")


def test_the_ends_of_one_edge_cannot_be_paired_anew():
    ring = Graph.from_edges(np.arange(10), (np.arange(10) + 1) % 10)
    with pytest.raises(
        InputError, match=r"cannot sample 1 non-edges .* too small or too dense; use non_edges=\"uniform"
    ):
        split_links(ring, test_share=0.1, non_edges="degree")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("test_share", 0.0),
        ("test_share", 1.0),
        ("test_share", math.nan),
        ("test_share", "half"),
        ("test_share", 0.001),
        ("non_edges", "hard"),
        ("random_state", -1),
        ("random_state", None),
        ("random_state", True),
    ],
)
def test_bad_parameters_are_named(ring, name, value):
    with pytest.raises(ParameterError, match=name):
        split_links(ring, **{name: value})


def test_features_by_hand():
    vectors = np.array([[1.0, 2.0], [4.0, -2.0], [0.0, 1.0]], np.float32)
    pairs = [(0, 1), (2, 2)]
    expected = {
        "l2": [[9, 16], [0, 0]],
        "l1": [[3, 4], [0, 0]],
        "hadamard": [[4, -4], [0, 1]],
        "average": [[2.5, 0], [0, 1]],
    }
    for operator, values in expected.items():
        features = pair_features(vectors, pairs, operator)
        assert features.dtype == np.float32
        np.testing.assert_array_equal(features, values)
    assert pair_features(vectors.astype(int), pairs).dtype == np.float64
    assert pair_features(vectors, []).shape == (0, 2)


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_scores_are_those_of_liblinear(hubs, operator, monkeypatch):
    split = split_links(hubs, random_state=2)
    rng = np.random.default_rng(0)
    # Vectors that know a little: each the mean of its neighbours' noise.
    noise = rng.normal(size=(hubs.n_nodes, 6))
    vectors = (split.graph.to_scipy() @ noise / split.graph.degrees[:, None]).astype(np.float32)
    monkeypatch.setattr(links, "_BLOCK", 7 * 1000)  # several blocks, the last one shorter
    scores = score_links(vectors, split, operator=operator)
    pairs = np.concatenate([split.train_edges, split.train_non_edges])
    truth = np.arange(len(pairs)) < len(split.train_edges)
    model = LogisticRegression(solver="liblinear", tol=1e-8, max_iter=1000)
    model.fit(pair_features(vectors, pairs, operator), truth)
    tests = np.concatenate([split.test_edges, split.test_non_edges])
    guess = model.decision_function(pair_features(vectors, tests, operator))
    truth = np.arange(len(tests)) < len(split.test_edges)
    assert scores.auc == pytest.approx(roc_auc_score(truth, guess), abs=1e-4)
    assert scores.average_precision == pytest.approx(average_precision_score(truth, guess), abs=1e-4)


def test_vectors_that_tell_edges_score_one(two_cliques):
    split = split_links(two_cliques, test_share=0.2, random_state=1)
    side = (split.graph.nodes >= 5).astype(float)[:, None]
    assert score_links(side, split) == LinkScores(1.0, 1.0)
    noise = np.random.default_rng(0).normal(size=(10, 3))
    assert score_links(noise, split).auc < 0.9


def test_separable_and_huge_features_stay_finite(hubs):
    split = split_links(hubs)
    vectors = np.random.default_rng(0).normal(size=(hubs.n_nodes, 2)) * 1e6
    assert 0 <= score_links(vectors, split).auc <= 1
    assert score_links(np.zeros((hubs.n_nodes, 2)), split).auc == 0.5


def test_bad_vectors_and_pairs(ring):
    split = split_links(ring)
    good = np.random.default_rng(0).normal(size=(64, 4))
    with pytest.raises(InputError, match="63 rows for a graph of 64 nodes"):
        score_links(good[1:], split)
    with pytest.raises(InputError, match=r"row 5 .* not finite \(1 such rows\)"):
        score_links(np.where(np.arange(64)[:, None] == 5, np.nan, good), split)
    with pytest.raises(InputError, match=r"shape \(64,\)"):
        score_links(good[:, 0], split)
    with pytest.raises(InputError, match="of <U1"):
        score_links([["a"]] * 64, split)
    with pytest.raises(ParameterError, match=r"operator='cosine': must be one of l2"):
        score_links(good, split, operator="cosine")
    with pytest.raises(ParameterError, match="operator"):
        pair_features(good, [(0, 1)], "cosine")
    with pytest.raises(InputError, match="rows 0 to 64: must lie between 0 and 63"):
        pair_features(good, [(0, 64)])
    with pytest.raises(InputError, match=r"shape \(2,\)"):
        control_scores(ring, [0, 1])


def test_ranks_by_hand():
    rng = np.random.default_rng(0)
    edges, others = rng.integers(0, 8, 40) + 1.0, rng.integers(0, 8, 60).astype(float)
    wins = np.sign(edges[:, None] - others[None, :])
    scores = rank_scores(edges, others)
    assert scores.auc == pytest.approx((wins + 1).mean() / 2)
    at = sorted(set(edges.tolist()), reverse=True)
    precision = [(edges >= t).sum() / ((edges >= t).sum() + (others >= t).sum()) for t in at]
    share = [(edges == t).mean() for t in at]
    assert scores.average_precision == pytest.approx(np.dot(precision, share))
    assert rank_scores([2.0], [1.0]) == LinkScores(1.0, 1.0)
    assert rank_scores([1.0, 1.0], [1.0, 1.0]) == LinkScores(0.5, 0.5)


@pytest.mark.parametrize("bad", [[], [np.nan], [[1.0]], [np.inf]])
def test_scores_that_cannot_be_ranked(bad):
    with pytest.raises(InputError, match="scores_edges"):
        rank_scores(bad, [1.0])
    with pytest.raises(InputError, match="scores_non_edges"):
        rank_scores([1.0], bad)


@pytest.mark.parametrize("directed", [False, True])
def test_controls_are_networkxs(random_graph, directed):
    nx = pytest.importorskip("networkx")
    graph = random_graph(1, 30, directed=directed, weighted=True, density=0.15)
    plain = nx.from_scipy_sparse_array(graph.to_scipy()).to_undirected()
    plain.remove_edges_from(list(nx.selfloop_edges(plain)))
    pairs = np.array([(u, v) for u in range(30) for v in range(30) if u != v])
    scores = control_scores(graph, pairs)
    degree = dict(plain.degree)
    np.testing.assert_array_equal(scores["degree_product"], [degree[u] * degree[v] for u, v in pairs])
    common = [len(list(nx.common_neighbors(plain, u, v))) for u, v in pairs.tolist()]
    np.testing.assert_array_equal(scores["common_neighbours"], common)
    adamic = [value for _, _, value in nx.adamic_adar_index(plain, pairs.tolist())]
    np.testing.assert_allclose(scores["adamic_adar"], adamic)
    assert max(common) > 1


def test_controls_of_a_node_with_itself_are_finite(ring):
    scores = control_scores(Graph.from_edges([0, 1], [1, 2]), [(0, 0), (1, 1)])
    assert all(np.isfinite(values).all() for values in scores.values())


def test_an_embedding_is_scored_by_id(hubs):
    split = split_links(hubs, test_share=0.3)
    vectors = np.random.default_rng(1).normal(size=(split.graph.n_nodes, 3)).astype(np.float32)
    order = np.random.default_rng(2).permutation(len(vectors))
    embedding = Embedding(vectors[order], split.graph.nodes[order])
    assert score_links(embedding, split) == score_links(vectors, split)
    with pytest.raises(InputError, match="no node"):
        score_links(Embedding(vectors[1:], split.graph.nodes[1:]), split)
    with pytest.raises(InputError, match=r"no split: give split_links\(graph\)"):
        score_links(vectors, hubs)
