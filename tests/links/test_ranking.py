"""Ranking of new links: scores against their formula, known links left out, two sides, measures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from kernelne import (
    Embedding,
    Graph,
    InputError,
    MKernelNE,
    ParameterError,
    load_dataset,
    rank_links,
    recommend_links,
)
from kernelne.links import ranking
from kernelne.model.kernels import KERNELS

pytestmark = pytest.mark.filterwarnings("ignore:the embedding was made of another graph:UserWarning")
KINDS = [("gaussian", 0.8), ("schoenberg", 1.5), ("inverse_multiquadric", 1.0)]


def _embedding(graph, kernels=KINDS, coefficients=(0.7, 0.5, -0.1)):
    rng = np.random.default_rng(4)
    center, context = rng.normal(0, 0.5, (2, graph.n_nodes, 5)).astype(np.float32)
    return Embedding(
        center, graph.nodes, center=center, context=context, kernels=kernels, coefficients=coefficients
    )


def _odds(embedding, one, others):
    D = ((one.astype(float) - others.astype(float)) ** 2).sum(axis=1)
    pairs = zip(embedding.kernels, embedding.coefficients, strict=True)
    k = sum(c * KERNELS[name](D, sigma)[0] for (name, sigma), c in pairs)
    k = np.maximum(k, 1e-9)
    return k / (1.001 * max(np.clip(embedding.coefficients, 0, None).sum(), 1) - k)


def _scores(graph, embedding, row):
    """The scores of all nodes as new neighbours of one, in float64."""
    center, context = embedding.center, embedding.context
    product = _odds(embedding, center[row], context) * _odds(embedding, context[row], center)
    return np.sqrt(product * np.maximum(graph.degrees, 1))


@pytest.mark.parametrize("block", [None, 1])
def test_the_best_are_those_of_the_formula(monkeypatch, block):
    if block:
        monkeypatch.setattr(ranking, "_BLOCK", block)
    graph = load_dataset("karate").graph
    embedding = _embedding(graph)
    found = recommend_links(graph, embedding, k=7)
    assert len(found) == 7 * 34
    for row in range(34):
        scores = _scores(graph, embedding, row)
        scores[graph.neighbours[graph.offsets[row] : graph.offsets[row + 1]]] = -1
        scores[row] = -1
        mine = found.nodes == row
        np.testing.assert_array_equal(found.recommended[mine], np.argsort(-scores, kind="stable")[:7])
        np.testing.assert_allclose(found.scores[mine], np.sort(scores)[::-1][:7], rtol=2e-3)
        np.testing.assert_array_equal(found.ranks[mine], np.arange(1, 8))


def circle_of_groups(n=240, groups=4, seed=0):
    """Arcs of every node lead to nodes of the next group."""
    rng = np.random.default_rng(seed)
    sources = np.repeat(np.arange(n), 8)
    targets = groups * rng.integers(n // groups, size=sources.size) + (sources + 1) % groups
    return Graph.from_edges(sources, targets, nodes=np.arange(n), directed=True)


def test_arcs_are_recommended_in_their_direction():
    graph = circle_of_groups()
    model = MKernelNE(dim=16, random_state=0, n_threads=1, forward=True)
    found = recommend_links(graph, model.fit(graph).to_embedding(), k=5)
    ahead = (found.recommended - found.nodes) % 4
    assert (ahead == 1).mean() > 0.95
    known = set(zip(np.repeat(graph.nodes, graph.degrees).tolist(), graph.neighbours.tolist(), strict=True))
    assert not known & set(zip(found.nodes.tolist(), found.recommended.tolist(), strict=True))


def test_scores_of_arcs_are_those_of_the_formula():
    rng = np.random.default_rng(1)
    graph = Graph.from_edges(*rng.integers(0, 30, (2, 90)), nodes=np.arange(30), directed=True)
    about = {"parameters": {"forward": True}}
    embedding = replace(_embedding(graph), provenance=about)
    found = recommend_links(graph, embedding, k=4)
    n_in = np.maximum(np.bincount(graph.neighbours, minlength=30), 1)
    for row in range(30):
        scores = _odds(embedding, embedding.center[row], embedding.context) * np.sqrt(n_in)
        scores[graph.neighbours[graph.offsets[row] : graph.offsets[row + 1]]] = -1
        scores[row] = -1
        best = np.argsort(-scores, kind="stable")[:4]
        mine = found.nodes == row
        np.testing.assert_array_equal(found.recommended[mine], best)
        np.testing.assert_allclose(found.scores[mine], scores[best], rtol=2e-3)


def test_fewer_remain_than_are_asked_for():
    graph = Graph.from_edges([0, 0, 1], [1, 2, 2], nodes=np.arange(4))
    found = recommend_links(graph, _embedding(graph), k=10)
    assert sorted(zip(found.nodes.tolist(), found.recommended.tolist(), strict=True)) == [
        (0, 3), (1, 3), (2, 3), (3, 0), (3, 1), (3, 2)
    ]  # fmt: skip
    assert found.of(3).shape == (3,)
    nobody = recommend_links(graph, _embedding(graph), [], k=2)
    assert (len(nobody), repr(nobody)) == (0, "<Recommendations: 0 to 0 nodes>")


def _shop():
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 30, 200), rng.integers(0, 40, 200)
    return Graph.from_edges([f"u{u}" for u in users], [f"i{i}" for i in items])


def test_users_get_items():
    shop = _shop()
    found = recommend_links(shop, _embedding(shop), k=5)
    assert set(found.nodes) == set(shop.nodes)
    assert all(node[0] != other[0] for node, other in zip(found.nodes, found.recommended, strict=True))
    some = recommend_links(shop, _embedding(shop), ["u1"], candidates=["u2", "i3", "u3"])
    assert set(some.recommended) <= {"u2", "i3", "u3"}
    assert recommend_links(shop, _embedding(shop), k=1).to_pandas().columns.tolist() == [
        "node", "recommended", "rank", "score"
    ]  # fmt: skip


def test_a_tree_has_no_users():
    tree = Graph.from_edges(np.arange(99) // 2, np.arange(1, 100))
    assert tree.sides is not None
    found = recommend_links(tree, _embedding(tree), [0], k=99)
    assert len(found) == 97  # all but itself and its two neighbours, on both sides


def _numbered_shop():
    rng = np.random.default_rng(0)
    bought = pd.DataFrame({"user_id": rng.integers(0, 12, 60), "item_id": rng.integers(0, 20, 60)})
    return Graph.from_table(bought, bipartite=True)


def test_a_table_of_users_and_items():
    graph = _numbered_shop()
    embedding = _embedding(graph)
    third = recommend_links(graph, embedding, ["user_id:0"], k=3).recommended[2]
    ids = pd.DataFrame({"user_id": ["user_id:0"], "item_id": [third]})
    for links in (ids, ids.replace("^.*:", "", regex=True), ids.replace("^.*:", "", regex=True).astype(int)):
        assert rank_links(graph, embedding, links, k=3).mrr == pytest.approx(1 / 3)
    with pytest.raises(InputError, match="close ids: 'item_id:3', 'user_id:3'"):
        rank_links(graph, embedding, [("3", "4")])
    with pytest.raises(InputError, match="unknown node id 3; close ids: 'item_id:3', 'user_id:3'"):
        recommend_links(graph, embedding, [3])


def test_nodes_come_in_the_order_asked_for():
    graph = _numbered_shop()
    embedding = _embedding(graph)
    asked = ["user_id:3", "item_id:2", "user_id:1", "item_id:5", "user_id:3"]
    found = recommend_links(graph, embedding, asked, k=2)
    assert found.nodes.tolist() == np.repeat(asked, 2).tolist()
    assert found.ranks.tolist() == [1, 2] * 5
    alone = [recommend_links(graph, embedding, [node], k=2) for node in asked]
    assert found.recommended.tolist() == [name for each in alone for name in each.recommended]
    everyone = recommend_links(graph, embedding, k=1)
    assert everyone.nodes.tolist() == graph.nodes.tolist()


def test_the_default_of_a_bipartite_graph_ranks():
    chosen = MKernelNE()._settle(_shop())
    assert (chosen["n_negative"], chosen["shared_negatives"], chosen["l2"]) == (60, 28, 3e-4)
    assert chosen["kernels"] == (("gaussian", 1.0), ("gaussian", 2.0))
    assert MKernelNE(n_negative=5)._settle(_shop())["n_negative"] == 5
    tree = Graph.from_edges(np.arange(99) // 2, np.arange(1, 100))
    assert tree.sides is not None
    assert MKernelNE()._settle(tree)["n_negative"] == 5


@pytest.mark.parametrize("directed", [False, True])
def test_two_sides(directed):
    square = Graph.from_edges([0, 1, 2, 3, 5], [1, 2, 3, 0, 4], nodes=np.arange(7), directed=directed)
    assert square.sides.tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert Graph.from_edges([0, 1, 2], [1, 2, 0], directed=directed).sides is None
    assert Graph.from_edges([0, 1], [0, 0], directed=directed).sides is None


def test_without_tables_the_cosine_decides():
    graph = load_dataset("karate").graph
    vectors = np.random.default_rng(2).normal(size=(34, 6))
    found = recommend_links(graph, Embedding(vectors, graph.nodes), [5], k=34)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    near = np.exp(-(2 - 2 * unit @ unit[5]))
    scores = near / (1.001 - near) * np.sqrt(graph.degrees)
    np.testing.assert_allclose(found.scores, scores[found.recommended], rtol=1e-3)


def test_measures_are_those_of_their_definitions():
    graph = load_dataset("karate").graph
    embedding = _embedding(graph)
    links = [(5, 20), (5, 21), (5, 22), (9, 30), (9, 30), (0, 1)]
    with pytest.warns(UserWarning, match="links: 1 of 6 are edges of the graph.* left out"):
        found = rank_links(graph, embedding, links, k=8)
    every = recommend_links(graph, embedding, k=34)
    recall, ndcg, mrr = [], [], []
    for node, wanted in ((5, {20, 21, 22}), (9, {30})):
        order = every.of(node).tolist()
        hits = np.array([other in wanted for other in order[:8]])
        gains = 1 / np.log2(np.arange(2, 10))
        recall.append(hits.sum() / len(wanted))
        ndcg.append((gains * hits).sum() / gains[: len(wanted)].sum())
        ranks = [1 + order.index(other) for other in wanted if other in order]
        mrr.append(1 / min(ranks))
    assert (found.recall, found.ndcg, found.mrr) == pytest.approx(
        (np.mean(recall), np.mean(ndcg), np.mean(mrr))
    )
    assert (found.k, found.n_nodes) == (8, 2)
    frame = pd.DataFrame(links[:-1], columns=["from", "to"])
    for same in (np.array(links[:-1]), frame, pa.Table.from_pandas(frame)):
        assert rank_links(graph, embedding, same, k=8) == found
    assert "recall@8" in str(found)


def test_links_that_cannot_be_recommended():
    shop = _shop()
    embedding, new = _embedding(shop), ("u0", "i0")
    user, item = next(
        (n, shop.nodes[shop.neighbours[shop.offsets[i]]]) for i, n in enumerate(shop.nodes) if n[0] == "u"
    )
    assert item not in ("i0", "i39")
    for more, options, message in (
        (("u0", "u1"), {}, "1 of 2 join nodes of the same side"),
        ((user, item), {}, "1 of 2 are edges of the graph"),
        (("u0", "i39"), {"candidates": ["i0", "i1"]}, "1 of 2 lead to nodes that are no candidates"),
    ):
        with pytest.warns(UserWarning, match=message):
            found = rank_links(shop, embedding, [new, more], **options)
        assert found == rank_links(shop, embedding, [new], **options)
        with pytest.raises(InputError, match=message.replace("of 2", "of 1")):
            rank_links(shop, embedding, [more], **options)
    rows = shop.index_of(["u0", "i0"])
    with pytest.raises(
        InputError, match=r"links: .*look like row numbers: graph\.nodes\[split\.test_edges\]"
    ):
        rank_links(shop, embedding, rows[None])
    with pytest.raises(InputError, match="columns 'a', 'b', 'c': give only the two"):
        rank_links(shop, embedding, pd.DataFrame({"a": ["u0"], "b": ["i0"], "c": [1]}))


def test_bad_arguments_are_refused():
    graph = load_dataset("karate").graph
    embedding = _embedding(graph)
    with pytest.raises(ParameterError, match="k=0"):
        recommend_links(graph, embedding, k=0)
    with pytest.raises(InputError, match="nodes: 'ann'"):
        recommend_links(graph, embedding, "ann")
    with pytest.raises(InputError, match="candidates"):
        recommend_links(graph, embedding, candidates=[])
    with pytest.raises(InputError, match="pairs of node ids"):
        rank_links(graph, embedding, [(1, 2, 3)])
    with pytest.raises(InputError, match="99"):
        recommend_links(graph, embedding, [99])
