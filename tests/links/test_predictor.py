"""LinkPredictor: better than its parts on links it has not seen; exact where the answer is known."""

from __future__ import annotations

import networkx
import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError

from kernelne import (
    Embedding,
    FileFormatError,
    Graph,
    InputError,
    KernelNE,
    LinkPredictor,
    MKernelNE,
    ParameterError,
    UnknownNodeError,
)
from kernelne.datasets import load_dataset
from kernelne.evaluation.link_splits import split_links
from kernelne.evaluation.links import control_scores, rank_scores, score_links
from kernelne.graph.ops import edges_of
from kernelne.graph.pairs import hide_edges
from kernelne.links.features import LinkFeatures, _neighbour_means, _paths_of_three
from kernelne.links.trees import Trees

FAST = MKernelNE(dim=16, walks_per_node=20, n_threads=1, random_state=0)


@pytest.fixture(scope="module")
def split():
    return split_links(load_dataset("lfr:n=600,mu=0.2,degree=12,max_degree=60,seed=1").graph, random_state=3)


@pytest.fixture(scope="module")
def embedding(split):
    return clone(FAST).fit(split.graph).to_embedding()


@pytest.fixture(scope="module")
def fitted(split, embedding):
    return LinkPredictor(random_state=0).fit(split.graph, embedding)


def _auc(model, split):
    parts = (split.test_edges, split.test_non_edges)
    return rank_scores(*(model.predict_proba(split.graph.nodes[part])[:, 1] for part in parts)).auc


def test_beats_the_papers_operator_and_the_controls_on_links_it_has_not_seen(split, embedding, fitted):
    edges, others = (control_scores(split.graph, p) for p in (split.test_edges, split.test_non_edges))
    controls = [rank_scores(edges[name], others[name]).auc for name in edges]
    best = max(*controls, score_links(embedding.vectors, split).auc)
    assert fitted.n_held_out_ > 100
    assert _auc(fitted, split) > best + 0.02 > 0.75


def test_probabilities_are_pairs_that_sum_to_one(split, fitted):
    chances = fitted.predict_proba(split.graph.nodes[split.test_edges])
    assert chances.shape == (len(split.test_edges), 2)
    assert chances.dtype == np.float64
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert fitted.predict_proba(np.empty((0, 2), np.int64)).shape == (0, 2)


def test_direction_of_a_pair_does_not_matter(split, fitted):
    for rows in (split.test_edges, split.train_edges):
        pairs = split.graph.nodes[rows[:200]]
        np.testing.assert_allclose(
            fitted.predict_proba(pairs), fitted.predict_proba(pairs[:, ::-1]), atol=1e-6
        )


def test_recommend_leaves_out_neighbours_and_the_node_itself(split, fitted):
    nodes, chances = fitted.recommend(0, k=600)
    row = slice(split.graph.offsets[0], split.graph.offsets[1])
    absent = {0, *split.graph.nodes[split.graph.neighbours[row]].tolist()}
    assert not absent & set(nodes.tolist())
    assert len(nodes) == split.graph.n_nodes - len(absent)
    assert (np.diff(chances) <= 0).all()
    few, same = fitted.recommend(0, k=5)
    assert few.tolist() == nodes[:5].tolist()
    np.testing.assert_array_equal(same, chances[:5])
    pairs = np.column_stack([np.zeros(5, np.int64), few])
    rate = fitted.base_rate_
    assert rate == pytest.approx(
        split.graph.n_edges / (len(split.graph.nodes) * (len(split.graph.nodes) - 1) / 2)
    )
    np.testing.assert_allclose(fitted.predict_proba(pairs, base_rate=rate)[:, 1], same)
    even = fitted.predict_proba(pairs)[:, 1]
    np.testing.assert_allclose(even / (1 - even) * rate / (1 - rate), same / (1 - same))
    for wrong in (0, 1, -0.5, "x", True):
        with pytest.raises(ParameterError, match="base_rate"):
            fitted.predict_proba(pairs, base_rate=wrong)


def test_recommend_to_many(split, fitted):
    found = fitted.recommend([5, 0, 5], k=3)
    assert found.nodes.tolist() == [5, 5, 5, 0, 0, 0, 5, 5, 5]
    assert found.ranks.tolist() == [1, 2, 3] * 3
    assert found.to_pandas().columns.tolist() == ["node", "recommended", "rank", "probability"]
    assert "<th>probability</th>" in found._repr_html_()
    assert repr(found).startswith(
        f"<Recommendations: 9 to 3 nodes: 5 – {found.recommended[0]}, probability 0"
    )
    nodes, chances = fitted.recommend(0, k=600)
    listed = dict(zip(nodes.tolist(), chances.tolist(), strict=True))
    assert found.of(0).tolist() == sorted(found.of(0).tolist(), key=lambda node: -listed[node])
    np.testing.assert_allclose(found.scores[3:6], [listed[node] for node in found.of(0)], rtol=1e-5)
    assert listed[found.of(0)[0]] >= chances[2]  # among the best of all
    few = fitted.recommend(np.array([0]), k=3, candidates=[7, 8, 9, 10, 11])
    assert set(few.recommended.tolist()) <= {7, 8, 9, 10, 11}


def test_saved_and_loaded(split, embedding, fitted, tmp_path):
    file = tmp_path / "links.safetensors"
    fitted.save(file)
    again = LinkPredictor.load(file, split.graph, embedding)
    pairs = split.graph.nodes[split.test_edges]
    np.testing.assert_array_equal(again.predict_proba(pairs), fitted.predict_proba(pairs))
    assert repr(again) == repr(LinkPredictor(random_state=fitted.random_state))
    assert (again.n_held_out_, again.base_rate_) == (fitted.n_held_out_, fitted.base_rate_)
    with pytest.raises(InputError, match="already exists"):
        fitted.save(file)
    smaller = Graph.from_edges([0], [1], nodes=split.graph.nodes)
    with pytest.raises(InputError, match="another graph"), pytest.warns(UserWarning, match="another graph"):
        LinkPredictor.load(file, smaller, embedding)
    moved = Embedding(embedding.vectors + 1, embedding.nodes)
    with pytest.raises(InputError, match=r"other vectors: .*give those, or train another: LinkPredictor\(\)"):
        LinkPredictor.load(file, split.graph, moved)
    data = file.read_bytes()
    rng = np.random.default_rng(0)
    n_told = 0
    for _ in range(60):  # damaged files are refused, or differ in numbers only
        damaged = bytearray(data)
        damaged[rng.integers(min(len(data), 3000))] ^= 1 << rng.integers(8)
        file.write_bytes(damaged)
        try:
            LinkPredictor.load(file, split.graph, embedding).predict_proba(pairs[:3])
        except InputError:
            n_told += 1
    assert n_told > 20
    file.write_bytes(data[: len(data) // 2])
    with pytest.raises(FileFormatError):
        LinkPredictor.load(file, split.graph, embedding)


def test_trees_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=3000) > 0
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(X, y)
    trees = Trees.of(model)
    trees.check(6)
    np.testing.assert_allclose(trees.scores(X), model.decision_function(X), rtol=0, atol=1e-9)
    for name, value in (("left", -7), ("right", 10**6), ("features", 6)):
        array = getattr(trees, name).copy()
        array[int(np.flatnonzero(trees.left >= 0)[0])] = value
        with pytest.raises(ValueError, match="damaged"):
            trees._replace(**{name: array}).check(6)


def test_the_same_seed_gives_the_same_chances(split, embedding, fitted):
    again = LinkPredictor(random_state=0, embedder=clone(FAST)).fit(split.graph, embedding)
    other = LinkPredictor(random_state=1, embedder=clone(FAST)).fit(split.graph, embedding)
    third = LinkPredictor(random_state=1, embedder=clone(FAST)).fit(split.graph, embedding)
    pairs = split.graph.nodes[split.test_edges]
    np.testing.assert_array_equal(other.predict_proba(pairs), third.predict_proba(pairs))
    assert not np.array_equal(again.predict_proba(pairs), other.predict_proba(pairs))


def test_rows_follow_ids_not_places(split, embedding):
    order = np.random.default_rng(0).permutation(len(embedding))
    tables = {name: getattr(embedding, name)[order] for name in ("vectors", "nodes", "center", "context")}
    shuffled = Embedding(
        **tables,
        provenance=embedding.provenance,
        kernels=embedding.kernels,
        coefficients=embedding.coefficients,
    )
    one, two = (
        LinkPredictor(random_state=0, embedder=clone(FAST)).fit(split.graph, e) for e in (embedding, shuffled)
    )
    pairs = split.graph.nodes[split.test_edges]
    np.testing.assert_array_equal(one.predict_proba(pairs), two.predict_proba(pairs))


def test_a_tree_is_scored_by_nearness_and_degree():
    nodes = [f"n{i}" for i in range(80)]
    graph = Graph.from_edges(nodes[1:], [nodes[(i - 1) // 2] for i in range(1, 80)])
    embedding = MKernelNE(dim=8, walks_per_node=80, n_threads=1, random_state=0).fit(graph).to_embedding()
    model = LinkPredictor(random_state=0).fit(graph, embedding)
    assert model.n_held_out_ == 0
    siblings, strangers = [("n3", "n4"), ("n5", "n6")], [("n70", "n40"), ("n60", "n45")]
    assert model.predict_proba(siblings)[:, 1].min() > model.predict_proba(strangers)[:, 1].max()


def test_without_an_embedding_it_makes_one(split):
    model = LinkPredictor(embedder=FAST, random_state=0).fit(split.graph)
    assert _auc(model, split) > 0.6
    assert FAST.random_state == 0  # the estimator given is cloned, not changed


def test_tells_what_an_embedding_lacks(split, embedding):
    bare = Embedding(embedding.vectors, embedding.nodes, provenance=embedding.provenance)
    with pytest.warns(UserWarning, match="no context vectors"):
        model = LinkPredictor(random_state=0).fit(split.graph, bare)
    assert model.n_held_out_ > 100
    assert _auc(model, split) > 0.6
    foreign = Embedding(embedding.vectors, embedding.nodes)
    with pytest.warns(UserWarning, match="no context vectors|names no model") as told:
        model = LinkPredictor(random_state=0).fit(split.graph, foreign)
    assert len(told) == 2
    assert model.n_held_out_ == 0
    assert _auc(model, split) > 0.6


def test_non_edges_of_the_same_degrees():
    graph = load_dataset("planted:n=500,k=4,p_in=0.08,p_out=0.004,seed=2").graph
    split = split_links(graph, non_edges="degree", random_state=0)
    embedding = clone(FAST).fit(split.graph).to_embedding()
    model = LinkPredictor(non_edges="degree", random_state=0).fit(split.graph, embedding)
    assert _auc(model, split) > 0.6


def test_a_directed_graph_is_embedded_as_directed():
    graph = load_dataset("planted:n=600,k=4,p_in=0.08,p_out=0.004,seed=1").graph
    edges, _ = edges_of(graph)
    order = np.random.default_rng(0).permutation(len(edges))
    hidden, kept = edges[order[:400]], edges[order[400:]]
    arcs = Graph.from_edges(*kept.T, nodes=graph.nodes, directed=True)
    walker = KernelNE(dim=16, walks_per_node=80, n_threads=1)
    model = LinkPredictor(random_state=0, embedder=walker).fit(arcs)
    others = np.random.default_rng(1).integers(600, size=(400, 2))
    others = others[others[:, 0] != others[:, 1]]
    assert model.graph_.directed
    assert rank_scores(*(model.predict_proba(part)[:, 1] for part in (hidden, others))).auc > 0.75


def test_arcs_are_told_from_reversed_arcs(tmp_path):
    rng = np.random.default_rng(0)
    sources = np.repeat(np.arange(300), 10)
    targets = 3 * rng.integers(100, size=sources.size) + (sources + 1) % 3  # a circle of three groups
    arcs = np.unique(np.column_stack([sources, targets]), axis=0)
    hidden = rng.random(len(arcs)) < 0.1
    graph = Graph.from_edges(*arcs[~hidden].T, nodes=np.arange(300), directed=True)
    walker = KernelNE(dim=16, window=1, learning_rate=0.1, forward=True, random_state=0, n_threads=1)
    embedding = walker.fit(graph).to_embedding()
    model = LinkPredictor(random_state=0).fit(graph, embedding)
    test = arcs[hidden]
    assert rank_scores(*(model.predict_proba(p)[:, 1] for p in (test, test[:, ::-1]))).auc > 0.95
    nodes, _ = model.recommend(0, k=20)
    assert (nodes % 3 == 1).mean() > 0.9
    assert not set(nodes) & set(graph.neighbours[graph.offsets[0] : graph.offsets[1]].tolist())
    assert model.base_rate_ == pytest.approx(graph.n_edges / (300 * 299))
    model.save(tmp_path / "links.safetensors")
    again = LinkPredictor.load(tmp_path / "links.safetensors", graph, embedding)
    np.testing.assert_array_equal(again.predict_proba(test), model.predict_proba(test))


def test_an_embedder_without_tables():
    class Mean(BaseEstimator):
        def fit(self, graph):
            vectors = np.random.default_rng(0).normal(size=(graph.n_nodes, 4))
            self.embedding_ = np.asarray(graph.to_scipy() @ vectors, np.float32)
            return self

    graph = load_dataset("planted:n=300,k=3,p_in=0.1,p_out=0.01,seed=0").graph
    embedding = clone(FAST).fit(graph).to_embedding()
    model = LinkPredictor(embedder=Mean(), random_state=0).fit(graph, embedding)
    assert model.n_held_out_ > 0
    assert np.isfinite(model.recommend(0)[1]).all()


@pytest.mark.filterwarnings("ignore:the loss")
def test_a_complete_graph_has_nothing_to_tell_links_from():
    u, v = np.triu_indices(30, 1)
    graph = Graph.from_edges(u[:-1], v[:-1])
    model = LinkPredictor(embedder=FAST, random_state=0).fit(graph)
    assert model.n_held_out_ == 0
    nodes, _ = model.recommend(28)
    assert nodes.tolist() == [29]
    assert len(model.recommend(0)[0]) == 0


def test_ids_of_any_kind():
    graph = Graph.from_networkx(networkx.grid_2d_graph(6, 6))
    model = LinkPredictor(embedder=FAST, random_state=0).fit(graph)
    assert model.predict_proba([((0, 0), (1, 1)), ((0, 0), (5, 5))]).shape == (2, 2)


def test_tells_of_another_graph(split, embedding):
    other = Graph.from_edges(*split.train_edges[:-1].T, nodes=split.graph.nodes)
    with pytest.warns(UserWarning, match="another graph"):
        LinkPredictor(random_state=0).fit(other, embedding)


@pytest.mark.parametrize("seed", range(3))
def test_counts_do_not_hang_on_the_random_pairs_of_a_large_graph(seed):
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(*rng.integers(20_000, size=(2, 40_000)), nodes=np.arange(20_000))
    vectors = Embedding(rng.normal(size=(20_000, 2)), graph.nodes)
    reference = np.random.default_rng(seed).integers(20_000, size=(2000, 2))
    pair = graph.neighbours[:2].astype(np.int64)[None]  # share a neighbour
    counts = LinkFeatures(graph, vectors, reference, by_degree=True).table(pair)[0, -5:-1]
    assert (np.abs(counts) < 10).all()


@pytest.mark.filterwarnings("ignore:the loss")  # of a random graph there is little to learn
def test_directed_and_weighted_graphs():
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(*rng.integers(60, size=(2, 500)), rng.random(500) + 0.1, directed=True)
    model = LinkPredictor(embedder=FAST, random_state=0).fit(graph)
    nodes, _ = model.recommend(graph.nodes[0], k=3)
    assert len(nodes) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"holdout": 0.0}, "holdout"), ({"holdout": 0.6}, "holdout"), ({"non_edges": "all"}, "non_edges"),
     ({"random_state": -1}, "random_state")],
)  # fmt: skip
def test_bad_parameters(split, embedding, settings, message):
    with pytest.raises(ParameterError, match=message):
        LinkPredictor(**settings).fit(split.graph, embedding)


def test_bad_input(split, embedding, fitted):
    with pytest.raises(NotFittedError):
        LinkPredictor().predict_proba([[0, 1]])
    with pytest.raises(UnknownNodeError, match="9999"):
        fitted.predict_proba([[0, 9999]])
    with pytest.raises(InputError, match="ids mix"):
        fitted.recommend("nobody")
    frame = pd.DataFrame({"user": [0, 1], "item": [2, 3]})
    np.testing.assert_array_equal(fitted.predict_proba(frame), fitted.predict_proba([[0, 2], [1, 3]]))
    with pytest.raises(InputError, match="pairs of node ids"):
        fitted.predict_proba([0, 1])
    with pytest.raises(InputError, match="pair 1 is"):
        fitted.predict_proba([[0, 1], [2]])
    with pytest.raises(InputError, match="shape"):
        fitted.predict_proba(np.zeros((2, 3), np.int64))
    with pytest.raises(InputError, match="to itself"):
        fitted.predict_proba([[0, 1], [4, 4]])
    with pytest.raises(InputError, match="must be an Embedding"):
        LinkPredictor().fit(split.graph, embedding.vectors)
    with pytest.raises(ParameterError, match="embedder"):
        LinkPredictor(embedder="x").fit(split.graph, embedding)
    with pytest.raises(ParameterError, match="k="):
        fitted.recommend(0, k=0)
    with pytest.raises(InputError, match="nodes"):
        LinkPredictor().fit(load_dataset("karate").graph, embedding)
    with pytest.raises(InputError, match="no edges"):
        LinkPredictor().fit(Graph.from_edges([], [], nodes=[1, 2]), embedding)


def test_hidden_edges_leave_components_whole():
    graph = load_dataset("planted:n=300,k=3,p_in=0.05,p_out=0.0,seed=0").graph
    before, _ = connected_components(graph.to_scipy(), directed=False)
    rest, hidden = hide_edges(graph, 0.1, np.random.default_rng(0))
    after, _ = connected_components(rest.to_scipy(), directed=False)
    known, left = (set(map(tuple, edges_of(g)[0].tolist())) for g in (graph, rest))
    gone = set(map(tuple, hidden.tolist()))
    assert before == after > 1
    assert len(gone) == round(0.1 * len(known))
    assert known - left == gone
    assert rest.nodes.tolist() == graph.nodes.tolist()


def test_at_most_half_of_what_can_go_is_hidden():
    ring = Graph.from_edges([*range(10), 0, 2], [*range(1, 10), 0, 5, 7])  # three edges can go
    _, hidden = hide_edges(ring, 0.5, np.random.default_rng(0))
    assert len(hidden) == 1


def _small():
    rng = np.random.default_rng(5)
    graph = Graph.from_edges(*rng.integers(25, size=(2, 60)), nodes=np.arange(26), drop_self_loops=True)
    return graph, graph.to_scipy().toarray().astype(np.float64)


@pytest.mark.parametrize("largest", [1000, 5])
def test_paths_of_three_by_hand(largest):
    graph, A = _small()
    degrees = A.sum(axis=1)
    pairs = np.array([(u, v) for u in range(26) for v in range(26) if u != v])
    expected = [
        sum(
            1 / np.sqrt(degrees[a] * degrees[b])
            for a in np.flatnonzero(A[u])
            for b in np.flatnonzero(A[v])
            if A[a, b] and len({u, a, b, v}) == 4 and max(degrees[a], degrees[b]) <= largest
        )
        for u, v in pairs
    ]
    found = _paths_of_three(graph.offsets, graph.neighbours, *pairs.T, np.argsort(pairs[:, 0]), largest)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_neighbour_means_by_hand():
    graph, A = _small()
    vectors = np.random.default_rng(0).normal(size=(26, 3)).astype(np.float32)
    means = _neighbour_means(graph, vectors)
    for node in range(26):
        expected = vectors[A[node] > 0].mean(axis=0) if A[node].any() else vectors[node]
        np.testing.assert_allclose(means[node], expected, rtol=1e-5)


def test_numbers_are_standardised_and_the_same_in_any_block(split, embedding, monkeypatch):
    reference = np.random.default_rng(0).integers(split.graph.n_nodes, size=(4000, 2))
    features = LinkFeatures(split.graph, embedding, reference, by_degree=True)
    table = features.table(reference)
    relative = table[:, :-5]  # then four counts and the prior
    np.testing.assert_allclose(relative.mean(axis=0), 0.0, atol=1e-8)
    np.testing.assert_allclose(relative.std(axis=0), 1.0)
    assert (table[:, -5:-1] >= 0).all()
    monkeypatch.setattr("kernelne.links.features._BLOCK", 300)
    np.testing.assert_allclose(features.table(reference), table, atol=1e-9)


@pytest.fixture
def runs(monkeypatch):
    """All models fitted, in turn."""
    found = []
    fit = MKernelNE.fit

    def spied(self, *args, **more):
        found.append(fit(self, *args, **more))
        return self

    monkeypatch.setattr(MKernelNE, "fit", spied)
    return found


def _settings(model):
    """What the default chooses by the graph, and what goes with it."""
    parameters = model.to_embedding().provenance["parameters"]
    return {
        name: parameters[name]
        for name in ("kernels", "l2", "walks_per_node", "learning_rate", "window_decay", "vectors", "norm")
    }


@pytest.mark.parametrize("embedded", ["before", "by the predictor", "by another model"])
def test_one_choice_holds_for_all_embeddings(runs, embedded):
    """Those with edges held out, too: other kernels would make vectors that mean something else."""
    graph = load_dataset("planted:n=150,k=3,p_in=0.25,p_out=0.02,seed=2").graph
    model = MKernelNE(dim=8, n_threads=1, random_state=0)
    embedding = None
    if embedded == "before":
        embedding = clone(model).fit(graph).to_embedding()
    elif embedded == "by another model":
        embedding = KernelNE(dim=8, walks_per_node=2, random_state=0).fit(graph).to_embedding()
    predictor = LinkPredictor(embedder=model, random_state=0).fit(graph, embedding)
    assert predictor.n_held_out_ > 0
    first, *others = runs
    assert len(runs) == (3 if embedded == "by another model" else 4)
    assert ["kernels" in run.chosen_ for run in runs] == [True] + [False] * len(others)
    assert all(_settings(run) == _settings(first) for run in others)
    assert model.kernels == "auto"  # whoever gave it has it as it was


def test_what_an_embedder_is_told_stays(runs):
    graph = load_dataset("planted:n=150,k=3,p_in=0.25,p_out=0.02,seed=2").graph
    embedding = MKernelNE(dim=8, walks_per_node=30, random_state=0).fit(graph).to_embedding()
    told = {"dim": 4, "walks_per_node": 10, "n_threads": 1}
    LinkPredictor(embedder=MKernelNE(**told), random_state=0).fit(graph, embedding)
    first, *others = runs
    assert [run.get_params() | told == run.get_params() for run in others] == [True] * 3
    assert {run.kernels_ for run in others} == {first.kernels_}
    # What is left open beside kernels that are given are constants.
    mine = MKernelNE(kernels=[("gaussian", 1.0)], **told)
    runs.clear()
    LinkPredictor(embedder=mine, random_state=0).fit(graph, embedding)
    assert {run.kernels_ for run in runs} == {(("gaussian", 1.0),)}
    assert {run.vectors for run in runs} == {None}
