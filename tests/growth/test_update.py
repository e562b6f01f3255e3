"""Graphs that grow: what an update leaves alone, and that it is as good as training anew."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from kernelne import (
    Embedding,
    Graph,
    InputError,
    KernelNE,
    MKernelNE,
    fold_in,
    load_dataset,
    read_graph,
    update_embedding,
)
from kernelne.embedding import provenance
from kernelne.embedding.provenance import changed_kernels
from kernelne.graph.ops import edges_of, neighbourhoods
from kernelne.growth import update
from kernelne.model.joint_axes import made_outside

SETTINGS = {"dim": 32, "random_state": 0, "n_threads": 1}


@cache
def data():
    return load_dataset("planted:n=400,k=4,p_in=0.12,p_out=0.004,seed=1")


@cache
def edges():
    return edges_of(data().graph)[0]


def without(share, seed=0):
    """The graph with a share of its edges left out; every node stays."""
    kept = np.random.default_rng(seed).random(len(edges())) >= share
    return Graph.from_edges(*edges()[kept].T, nodes=data().graph.nodes)


@pytest.fixture(scope="module")
def old():
    return MKernelNE(**SETTINGS).fit(without(0.1)).to_embedding()


def accuracy(model, embedding, rows):
    return (model.predict(embedding.vectors[rows]) == data().labels.single[rows]).mean()


def test_an_update_is_as_good_as_a_new_training_and_keeps_the_space(old):
    new = update_embedding(old, data().graph, n_threads=1, random_state=0)
    assert new.nodes.tolist() == data().graph.nodes.tolist()
    told = new.provenance["update"]
    assert (told["new"], told["removed"], told["updates"]) == (0, 0, 1)
    assert 0 < told["drift"] < 0.3
    train, test = np.arange(0, 400, 2), np.arange(1, 400, 2)
    model = LogisticRegression(max_iter=500).fit(old.vectors[train], data().labels.single[train])
    before = accuracy(model, old, test)
    assert accuracy(model, new, test) >= before - 0.01  # the classifier of the old vectors
    fresh = MKernelNE(**SETTINGS).fit(data().graph).to_embedding()
    again = LogisticRegression(max_iter=500).fit(fresh.vectors[train], data().labels.single[train])
    assert accuracy(model, new, test) >= accuracy(again, fresh, test) - 0.02


def test_nodes_that_change_sides_are_trained_again():
    """Centers, which only training moves: nodes of group 0 get links of group 1 in place of theirs."""
    group = data().labels.single
    movers = np.flatnonzero(group == 0)[:5]
    old = KernelNE(**SETTINGS, sigma=1.0, learning_rate=0.2).fit(data().graph).to_embedding()
    others = np.flatnonzero(group == 1)[:20]
    kept = edges()[~np.isin(edges(), movers).any(axis=1)]
    links = np.array([(mover, other) for mover in movers for other in others])
    new = update_embedding(
        old, Graph.from_edges(*np.concatenate([kept, links]).T, nodes=range(400)), n_threads=1, random_state=0
    )
    for embedding, now in ((old, 0), (new, 1)):
        near = group[embedding.neighbours(movers, k=10, among=np.setdiff1d(np.arange(400), movers)).ids]
        assert (near == now).mean() > 0.7


def test_far_from_a_change_nothing_moves():
    ring = np.arange(400)
    graph = Graph.from_edges(ring, (ring + 1) % 400)
    old = KernelNE(**SETTINGS, walks_per_node=20, vectors="joint", norm=1.0).fit(graph).to_embedding()
    more = Graph.from_edges([*ring, 0], [*((ring + 1) % 400), 2])
    new = update_embedding(old, more, n_threads=1, random_state=0)
    steps = np.minimum(np.abs(ring - 1), 400 - np.abs(ring - 1)) - 1  # from 0 and 2, the ends of the new edge
    moved = (new.vectors != old.vectors).any(axis=1)
    assert not moved[steps > 3].any()
    assert moved[steps <= 1].all()
    assert (new.center[steps > 2] == old.center[steps > 2]).all()
    assert new.provenance["update"]["changed"] == 2


def test_nothing_new_changes_no_bit(old, tmp_path):
    assert update_embedding(old, without(0.1)) is old
    old.save(tmp_path / "v.npz")
    again = Embedding.load(tmp_path / "v.npz")
    assert update_embedding(again, without(0.1)) is again
    order = np.random.default_rng(0).permutation(400)
    same = Graph.from_edges(*edges_of(without(0.1))[0].T, nodes=order)
    turned = update_embedding(old, same, n_threads=1)
    np.testing.assert_array_equal(turned[order], old[order])
    assert turned.provenance["update"]["changed"] == 0


def test_a_node_added_removed_and_added_again(old):
    graph = without(0.1)
    pairs = [*map(tuple, edges_of(graph)[0]), (400, 0), (400, 4), (400, 8)]
    bigger = Graph.from_edges(*zip(*pairs, strict=True), nodes=range(401))
    one = update_embedding(old, bigger, n_threads=1, random_state=0)
    assert len(one) == 401
    assert one.provenance["update"]["new"] == 1
    group = data().labels.single[[node for node, _ in one.neighbours(400, k=10)]]
    assert (group == data().labels.single[0]).mean() >= 0.8
    back = update_embedding(one, graph, n_threads=1, random_state=0)
    assert 400 not in back
    assert back.provenance["update"]["removed"] == 1
    again = update_embedding(back, bigger, n_threads=1, random_state=0)
    assert again.provenance["update"] | {"seconds": 0} == again.provenance["update"] | {
        "new": 1, "removed": 0, "updates": 3, "seconds": 0,
    }  # fmt: skip
    assert np.isfinite(again.vectors).all()


def test_a_graph_that_falls_apart_and_nodes_without_edges(old):
    kept = edges()[(edges() < 200).all(axis=1) | (edges() >= 200).all(axis=1)]
    apart = Graph.from_edges(*kept.T, nodes=range(403))  # and three nodes without edges
    new = update_embedding(old, apart, n_threads=1, random_state=0)
    assert np.isfinite(new.vectors).all()
    assert new.provenance["update"]["new"] == 3


def test_what_cannot_be_updated(old, tmp_path):
    named = Graph.from_edges(["a"], ["b"])
    with pytest.raises(InputError, match="ids of the graph are strings, those of the embedding integers"):
        update_embedding(old, named)
    with pytest.raises(InputError, match="only 0 of 400 nodes of the embedding are in the graph"):
        update_embedding(old, Graph.from_edges([1000], [1001]))
    old.save(tmp_path / "v.parquet")
    with pytest.raises(InputError, match=r"cannot be updated: it has no center, context, .*\.npz or"):
        update_embedding(Embedding.load(tmp_path / "v.parquet"), data().graph)
    bare = Embedding(old.vectors, old.nodes, center=old.center, context=old.context)
    with pytest.raises(InputError, match="no coefficients, neighbourhoods, settings of its training"):
        update_embedding(bare, data().graph)


def test_new_rows_alone_are_refused(old):
    with pytest.raises(InputError, match=r"only 1 of .* whole graph as it is now.*fold-in"):
        update_embedding(old, [(0, 10_000)])
    weighted = without(0.1).to_pandas().assign(weight=2.0)
    with pytest.warns(UserWarning, match="the graph has weights, that of the embedding had none"):
        update_embedding(old, weighted, n_threads=1, random_state=0)


def test_another_function_of_the_same_name_is_refused(old, monkeypatch):
    monkeypatch.setattr(update, "changed_kernels", lambda provenance, names: sorted(set(names))[:1])
    with pytest.raises(InputError, match="the kernel gaussian is another function now"):
        update_embedding(old, without(0.0))
    monkeypatch.setattr(provenance, "own_hashes", lambda names: {"mine": "1", "hers": "2"})
    assert changed_kernels({"own_kernels": {"mine": "1", "hers": "3"}}, ["mine", "hers"]) == ["hers"]
    assert changed_kernels({}, ["mine"]) == []


def test_an_interrupted_update_changes_nothing():
    model = MKernelNE(**SETTINGS).fit(without(0.1))
    before = model.embedding_.copy(), model.center_.copy()

    def stop(done, total, loss):
        raise KeyboardInterrupt

    model.set_params(progress=stop)
    with pytest.raises(KeyboardInterrupt):
        model.update(data().graph)
    np.testing.assert_array_equal(model.embedding_, before[0])
    np.testing.assert_array_equal(model.center_, before[1])
    model.set_params(progress=None)
    assert model.update(data().graph) is model
    assert model.graph_ is data().graph
    assert model.to_embedding().provenance["update"]["updates"] == 1
    assert model.update(data().graph).to_embedding().provenance["graph"]["edges"] == data().graph.n_edges


def test_deterministic_on_any_number_of_threads(old):
    made = [
        update_embedding(old, data().graph, n_threads=n, deterministic=True, random_state=5).vectors
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(*made)


def test_directed_and_weighted_graphs():
    rng = np.random.default_rng(0)
    ends = rng.integers(100, size=(2, 600))
    graph = Graph.from_edges(*ends[:, :550], rng.random(550), directed=True, nodes=range(100))
    old = KernelNE(**SETTINGS, vectors="joint").fit(graph).to_embedding()
    weights = graph.weights.copy()
    weights[0] *= 2
    heavier = Graph.from_scipy(type(graph.to_scipy())((weights, graph.neighbours, graph.offsets), (100, 100)))
    new = update_embedding(old, heavier, n_threads=1, random_state=0)
    assert new.provenance["update"]["changed"] == 1  # one weight of one arc


def test_joint_vectors_of_earlier_versions():
    """They were not smoothed, and are not when they are updated; those of several components are refused."""
    ring = [(i, (i + 1) % 40) for i in range(40)]
    settings = SETTINGS | {"dim": 16, "vectors": "joint"}
    apart = Graph.from_edges(*np.array([*ring, (40, 41)]).T)
    made = KernelNE(**settings).fit(apart).to_embedding()
    square = replace(made, axes=made.axes[:-1])
    with pytest.raises(InputError, match="has no axes of this version; embed the graph once more"):
        update_embedding(square, Graph.from_edges(*np.array([*ring, (40, 41), (0, 40)]).T))
    old = KernelNE(**settings).fit(Graph.from_edges(*np.array(ring).T)).to_embedding()
    frame = dict(old.provenance["frame"])
    assert frame.pop("smoothing") > 0
    provenance = {**old.provenance, "frame": frame}
    grown = Graph.from_edges(*np.array([*ring, (0, 20)]).T)
    rough, smooth = (
        update_embedding(each, grown, n_threads=1, random_state=0)
        for each in (replace(old, provenance=provenance), old)
    )
    again = np.flatnonzero((rough.vectors != old.vectors).any(axis=1))
    assert 4 <= len(again) < 40
    noise = [np.linalg.norm(np.diff(each.vectors[again], axis=0), axis=1).mean() for each in (rough, smooth)]
    assert noise[0] > 1.03 * noise[1]


def test_hashes_do_not_depend_on_order():
    one = Graph.from_edges([0, 0, 1], [1, 2, 2], [1.0, 2.0, 3.0])
    names = np.array([7, -1, 3])
    for row, others in enumerate(neighbourhoods(one, names)):
        turned = Graph.from_edges([2, 0, 2], [1, 1, 0], [3.0, 1.0, 2.0])
        assert neighbourhoods(turned, names)[row] == others
    assert len(set(neighbourhoods(one, names).tolist())) == 3


def test_fold_in_a_table_of_users_and_items():
    known = Embedding(np.eye(2), ["user_id:1", "item_id:1"])
    bought = pd.DataFrame({"user_id": [2], "item_id": [1]})
    for links in (
        bought,
        bought.astype(str),
        pd.DataFrame({"user_id": ["user_id:2"], "item_id": ["item_id:1"]}),
    ):
        made = fold_in(known, links)
        assert made.nodes.tolist() == ["user_id:1", "item_id:1", "user_id:2"]
        assert made["user_id:2"].tolist() == [0, 1]
    with pytest.raises(InputError, match=r"such as 'user_id:1' are made by bipartite=True \(--bipartite\)"):
        fold_in(known, [(2, 1)])


def test_fold_in(old):
    rng = np.random.default_rng(1)
    hidden = rng.choice(400, 20, replace=False)
    kept = ~np.isin(edges(), hidden).any(axis=1)
    graph = Graph.from_edges(*edges()[kept].T, nodes=np.setdiff1d(np.arange(400), hidden))
    known = MKernelNE(**SETTINGS).fit(graph).to_embedding()
    links = edges()[~kept]
    made = fold_in(known, links)
    assert len(made) == 400
    np.testing.assert_array_equal(made.vectors[: len(known)], known.vectors)
    model = LogisticRegression(max_iter=500).fit(known.vectors, data().labels.single[known.nodes])
    assert (model.predict(made[hidden]) == data().labels.single[hidden]).mean() >= 0.9
    np.testing.assert_allclose(
        np.linalg.norm(made[hidden], axis=1), np.linalg.norm(known.vectors[0]), rtol=1e-5
    )
    chain = fold_in(known, [(900, 901), (901, 902), (902, int(known.nodes[0]))])
    np.testing.assert_allclose(chain[900], chain[902], rtol=1e-5)
    with pytest.warns(UserWarning, match="2 new nodes are not linked to any known node"):
        assert not fold_in(known, [(900, 901)])[[900, 901]].any()
    with pytest.warns(UserWarning, match=r"none of the nodes is new.*update_embedding \(kernelne update\)"):
        assert fold_in(known, [(int(known.nodes[0]), int(known.nodes[1]))]) is known
    plain = fold_in(Embedding(known.vectors, known.nodes), links)
    np.testing.assert_array_equal(plain[hidden], made[hidden])
    # Folded-in nodes are changed ones for an update.
    new = update_embedding(made, data().graph, n_threads=1, random_state=0)
    assert new.provenance["update"]["new"] == 0
    assert new.provenance["update"]["changed"] >= 20


def test_the_estimator_folds_in():
    model = KernelNE(dim=8, walks_per_node=2, n_threads=1, random_state=0).fit(without(0.1))
    links = [(1000, 0), (1000, 1), (1001, 1000)]
    found, expected = model.transform(links), fold_in(model.to_embedding(), links)
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    assert found.nodes.tolist() == [*range(400), 1000, 1001]
    assert len(model.embedding_) == 400


def test_commands(tmp_path, old):
    from cli.running import process

    old.save(tmp_path / "v.npz")
    from kernelne import write_graph

    write_graph(data().graph, tmp_path / "now.edges")
    result = process("update", "v.npz", "now.edges", "-o", "new.npz", "-j", "1", "--seed", "0", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "0 new," in result.stdout
    expected = update_embedding(old, read_graph(tmp_path / "now.edges"), n_threads=1, random_state=0)
    np.testing.assert_array_equal(Embedding.load(tmp_path / "new.npz").vectors, expected.vectors)
    (tmp_path / "more.csv").write_text("source,target\n900,0\n900,1\n")
    result = process("fold-in", "v.npz", "more.csv", "-o", "more.npz", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "more.npz: 401 nodes × 32, 1 of them new\n"
    (tmp_path / "words.csv").write_text("source,target\nx,y\n")
    result = process("update", "v.npz", "words.csv", "-o", "bad.npz", cwd=tmp_path)
    assert result.returncode == 2
    assert "ids of the graph are strings" in result.stderr
    assert not (tmp_path / "bad.npz").exists()


def _rings(*sizes):
    starts = np.cumsum([0, *sizes[:-1]])
    return [
        (at + i, at + (i + 1) % size) for at, size in zip(starts, sizes, strict=True) for i in range(size)
    ]


def _outside(embedding):
    return made_outside(embedding.vectors, embedding.axes)


@pytest.mark.parametrize(
    ("links", "added"),
    [
        ([(0, 200), (200, 201), (201, 1)], [True, True]),  # the smaller ring becomes the larger
        ([(0, 100)], []),  # both become one
        ([(300, 301)], [True, True]),  # a new component
        ([(100, 400)], [False]),  # the larger ring grows
    ],
    ids=["grown", "joined", "new", "larger"],
)
def test_components_stay_in_their_directions(links, added):
    """An update does not turn a part of a component to where the largest one is, or away from it."""
    edges = _rings(90, 91)
    old = MKernelNE(**SETTINGS | {"dim": 16}, walks_per_node=40).fit(edges).to_embedding()
    np.testing.assert_array_equal(_outside(old), old.nodes < 90)
    new = update_embedding(old, edges + links, n_threads=1, random_state=0)
    known = np.isin(new.nodes, old.nodes)
    np.testing.assert_array_equal(_outside(new)[known], new.nodes[known] < 90)
    np.testing.assert_array_equal(_outside(new)[~known], added)


@pytest.mark.filterwarnings("ignore:.*have no edges:UserWarning")
@pytest.mark.parametrize("alone", [[], [(200, 201), (201, 202)]], ids=["a node", "three nodes"])
def test_who_joins_the_largest_component_looks_like_it(alone):
    """Whoever is small enough to be made anew as a whole turns to where its neighbours are."""
    ring = [(i, (i + k) % 200) for i in range(200) for k in (1, 2, 3)]
    nodes = np.arange(201 + len(alone))
    first = Graph.from_edges(*np.array(ring + alone).T, nodes=nodes)
    old = MKernelNE(**SETTINGS | {"dim": 16}, walks_per_node=60).fit(first).to_embedding()
    assert _outside(old)[200:].all()
    joined = Graph.from_edges(*np.array(ring + alone + [(200, i) for i in range(8)]).T, nodes=nodes)
    new = update_embedding(old, joined, n_threads=1, random_state=0)
    assert not _outside(new)[200:].any()
    unit = new.vectors / np.linalg.norm(new.vectors, axis=1, keepdims=True)
    near, far = unit[:8] @ unit[200], unit[50:70] @ unit[200]
    assert near.mean() > 0.6
    assert near.mean() > far.mean() + 0.3


def test_nodes_folded_in_without_a_place_count_as_new():
    old = MKernelNE(**SETTINGS | {"dim": 16}, walks_per_node=40).fit(_rings(90, 91)).to_embedding()
    with pytest.warns(UserWarning, match="zeros"):
        folded = fold_in(old, [(500, 501)])
    new = update_embedding(folded, [*_rings(90, 91), (500, 501)], n_threads=1, random_state=0)
    assert _outside(new)[np.isin(new.nodes, [500, 501])].all()
    assert new.vectors.any(axis=1).all()
