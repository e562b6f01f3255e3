"""The estimators in the manner of scikit-learn, on every kind of graph they accept."""

from __future__ import annotations

import json
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from kernelne import (
    Embedding,
    Graph,
    InputError,
    KernelNE,
    KernelneError,
    MissingDependencyError,
    MKernelNE,
    ParameterError,
    load_dataset,
)
from kernelne.model import combine_tables, defaults

EDGES = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
FAST = {"dim": 5, "walks_per_node": 3, "n_threads": 1, "random_state": 3}
# Three walks a node leave a mixture where it started, and the estimator says so.
pytestmark = pytest.mark.filterwarnings("ignore:the loss:UserWarning")
MODELS = [KernelNE(**FAST), MKernelNE(**FAST)]


@pytest.mark.parametrize("model", MODELS)
def test_fit_sets_what_it_says(model):
    model = clone(model)
    assert model.fit(EDGES) is model
    assert model.embedding_.shape == model.context_.shape == (6, 5)
    assert model.embedding_.dtype == np.float32
    tables = model.graph_, model.center_, model.context_
    if isinstance(model, KernelNE):
        assert model.center_ is model.embedding_
        assert model.chosen_ == {}
    else:
        how = model.chosen_["vectors"], model.chosen_["norm"]
        made = combine_tables.combine_in_frame(*tables, *how)[0]
        np.testing.assert_array_equal(model.embedding_, made)
        assert (model.embedding_ != model.center_).any()
    assert model.coefficients_.shape == (len(model.kernels_),)
    assert set(model.history_) == {"walks", "pairs", "loss", "learning_rate", "coefficients"}
    assert 0 < model.loss_ < 4
    assert model.history_["walks"][-1] == 18
    assert model.graph_.nodes.tolist() == list(range(6))
    np.testing.assert_array_equal(model.fit_transform(EDGES), model.embedding_)


@pytest.mark.parametrize("model", MODELS)
def test_every_container_gives_the_same_vectors(model):
    wanted = clone(model).fit(Graph.from_edges(*np.array(EDGES).T)).embedding_
    ordered = nx.Graph()
    ordered.add_nodes_from(range(6))
    ordered.add_edges_from(EDGES)
    dense = nx.to_numpy_array(ordered)
    for graph in (
        EDGES,
        np.array(EDGES),
        ordered,
        scipy.sparse.csr_array(dense),
        scipy.sparse.coo_matrix(dense),
    ):
        np.testing.assert_array_equal(clone(model).fit(graph).embedding_, wanted)


def test_clone_and_parameters():
    model = MKernelNE(kernels=(("schoenberg", 1.5),), coef_l2=0.3, dim=7)
    copy = clone(model).set_params(window=3)
    assert copy.get_params() == model.get_params() | {"window": 3}
    assert not hasattr(copy, "embedding_")


def test_parameters_are_keyword_only():
    for model in (KernelNE, MKernelNE):
        with pytest.raises(TypeError):
            model("gaussian")


@pytest.mark.parametrize("model", MODELS)
def test_not_fitted(model):
    with pytest.raises(NotFittedError):
        clone(model).to_embedding()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"dim": 0}, ["dim=0", "at least 1"]),
        ({"dim": 2.5}, ["dim=2.5"]),
        ({"dim": True}, ["dim=True"]),
        ({"window": 0}, ["window=0"]),
        ({"walk_length": -1}, ["walk_length=-1"]),
        ({"walks_per_node": "x"}, ["walks_per_node='x'"]),
        ({"n_negative": 0}, ["n_negative=0"]),
        ({"shared_negatives": 0}, ["shared_negatives=0"]),
        ({"p": 0}, ["p=0", "positive"]),
        ({"q": float("nan")}, ["q=nan"]),
        ({"learning_rate": 0}, ["learning_rate=0"]),
        ({"min_learning_rate": 1.0}, ["min_learning_rate=1.0", " learning_rate=0."]),
        ({"window_decay": 0}, ["window_decay=0", "positive"]),
        ({"window_decay": 1.5}, ["window_decay=1.5", "at most 1"]),
        ({"l2": -1}, ["l2=-1"]),
        ({"n_threads": 0}, ["n_threads=0"]),
        ({"deterministic": 1}, ["deterministic=1"]),
        ({"random_state": "seed"}, ["random_state='seed'"]),
        ({"random_state": -1}, ["random_state=-1"]),
        ({"backend": "tpu"}, ["backend='tpu'", "cpu, gpu"]),
        ({"backend": None}, ["backend=None", "cpu, gpu"]),
        ({"backend": "gpu", "deterministic": True}, ["deterministic=True", "backend='cpu'"]),
    ],
)
@pytest.mark.parametrize("model", MODELS)
def test_bad_parameters_are_told_at_fit(model, params, words):
    model = clone(model).set_params(**params)
    with pytest.raises(ParameterError) as caught:
        model.fit(EDGES)
    assert all(word in str(caught.value) for word in words)
    assert not hasattr(model, "embedding_")


@pytest.mark.parametrize("kernels", ["Auto", "gaussian", ""])
def test_a_word_for_kernels_is_auto(kernels):
    with pytest.raises(ParameterError, match=f'^kernels={kernels!r}: give "auto", or '):
        MKernelNE(kernels=kernels).config()


@pytest.mark.parametrize("vectors", ["center", "concat"])
def test_too_little_memory_names_the_columns_asked_for(monkeypatch, vectors):
    """Tables have half of them where both are put side by side."""
    monkeypatch.setattr("kernelne.training.cpu.memory.available_bytes", lambda: 40_000)
    with pytest.raises(InputError, match=r"^dim=128, walk_length=10, .*: 6 nodes need .* would fit$"):
        KernelNE(vectors=vectors, n_threads=1).check(EDGES)


@pytest.mark.parametrize("package", ["torch", "triton"])
def test_a_gpu_needs_packages_of_its_own(monkeypatch, package):
    for module in ("gpu.backend", "gpu.loop", "gpu.walks"):
        monkeypatch.delitem(sys.modules, f"kernelne.training.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    for action in ("fit", "check"):
        with pytest.raises(MissingDependencyError) as caught:
            getattr(KernelNE(backend="gpu", **FAST), action)(EDGES)
        assert str(caught.value) == (
            "this needs torch and triton: pip install torch triton, or in a clone of kernelne "
            "pip install -e '.[gpu]'"
        )


def test_without_a_gpu_it_is_said_so(monkeypatch):
    torch = pytest.importorskip("torch", exc_type=ImportError)
    pytest.importorskip("triton", exc_type=ImportError)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(KernelneError, match=r"no CUDA GPU is visible.*use backend='cpu'") as caught:
        KernelNE(backend="gpu", **FAST).fit(EDGES)
    assert "\n" not in str(caught.value)


def test_bad_kernels_are_told_at_fit():
    for model in (KernelNE(kernel="cubic"), KernelNE(sigma=0), MKernelNE(kernels=()), MKernelNE(coef_l2=-1)):
        with pytest.raises(ParameterError):
            model.fit(EDGES)


def test_a_path_is_no_graph():
    with pytest.raises(InputError, match="read_graph"):
        KernelNE().fit("edges.txt")


def test_random_state():
    first, second = (KernelNE(**FAST | {"random_state": None}).fit(EDGES) for _ in range(2))
    assert first.seed_ != second.seed_
    assert (first.embedding_ != second.embedding_).any()
    again = KernelNE(**FAST | {"random_state": first.seed_}).fit(EDGES)
    np.testing.assert_array_equal(again.embedding_, first.embedding_)
    for kind in (np.random.default_rng, np.random.RandomState):
        a, b = (KernelNE(**FAST | {"random_state": kind(7)}).fit(EDGES) for _ in range(2))
        np.testing.assert_array_equal(a.embedding_, b.embedding_)


def test_isolated_nodes_are_warned_of_and_stay_finite():
    graph = Graph.from_edges(["a"], ["b"], nodes=["lonely"])
    with pytest.warns(UserWarning, match="1 of 3 nodes have no edges"):
        model = KernelNE(**FAST).fit(graph)
    assert np.isfinite(model.embedding_).all()
    assert np.abs(model.to_embedding()["lonely"]).max() <= 0.5 / 5


def test_to_embedding_keeps_ids_tables_and_provenance(tmp_path):
    graph = Graph.from_edges(["x", "y"], ["y", "zürich"])
    model = MKernelNE(**FAST).fit(graph)
    model.to_embedding().save(tmp_path / "e.safetensors")
    loaded = Embedding.load(tmp_path / "e.safetensors")
    assert loaded.nodes.tolist() == ["x", "y", "zürich"]
    np.testing.assert_array_equal(loaded["zürich"], model.embedding_[2])
    np.testing.assert_array_equal(loaded.context, model.context_)
    np.testing.assert_array_equal(loaded.coefficients, model.coefficients_)
    assert loaded.kernels == model.kernels_
    assert loaded.provenance["model"] == "MKernelNE"
    assert loaded.provenance["seed"] == 3
    assert loaded.provenance["graph"]["fingerprint"] == graph.fingerprint
    # What was left open stands there as it was settled, and is said to have been chosen.
    parameters, chosen = dict(loaded.provenance["parameters"]), dict(loaded.provenance["chosen"])
    assert chosen == json.loads(json.dumps(model.chosen_))
    assert parameters["coef_l2"] == defaults.AUTO["coef_l2"]
    assert set(chosen) == {name for name in defaults.AUTO if name not in FAST}
    assert chosen.items() <= parameters.items()
    assert parameters["walks_per_node"] == FAST["walks_per_node"]
    assert None not in parameters.values()
    # The provenance is enough to make the same vectors again.
    parameters.pop("learn_coefficients")
    again = MKernelNE(**parameters, random_state=loaded.provenance["seed"]).fit(graph)
    np.testing.assert_array_equal(again.embedding_, model.embedding_)


def test_progress_function_is_called():
    seen = []
    KernelNE(**FAST, progress=lambda done, total, loss: seen.append((done, total, loss))).fit(EDGES)
    assert [done for done, _, _ in seen] == sorted({done for done, _, _ in seen})
    assert seen[-1][:2] == (18, 18)
    assert all(np.isfinite(loss) for _, _, loss in seen)


def test_quiet_when_not_a_terminal(capfd):
    KernelNE(**FAST).fit(EDGES)
    assert capfd.readouterr() == ("", "")


def test_memory_is_predicted_before_anything_is_allocated():
    with pytest.raises(InputError, match=r"dim=2000000000, .* GiB .* would fit"):
        KernelNE(dim=2_000_000_000).fit(EDGES)


def test_a_sink_that_others_lead_to_is_not_isolated():
    graph = Graph.from_edges([0, 1], [1, 2], directed=True)
    KernelNE(**FAST | {"walks_per_node": 400}).fit(graph)


def test_the_loss_is_that_of_the_last_walks_with_pairs():
    # The walks that start at the sink have no pairs; whether the last is one of them must not matter.
    graph = Graph.from_edges([0, 1], [1, 2], directed=True)
    losses = [
        KernelNE(**FAST | {"walks_per_node": 200, "random_state": s}).fit(graph).loss_ for s in range(8)
    ]
    assert min(losses) > 0.1
    assert max(losses) < 2 * min(losses)


def test_nothing_to_learn_is_warned_of():
    with pytest.warns(UserWarning, match="no walk has two nodes"):
        model = KernelNE(**FAST, walk_length=1).fit(EDGES)
    assert model.to_embedding().provenance["loss"] is None


def test_next_to_nothing_learned_is_warned_of():
    with pytest.warns(UserWarning, match="all alike"):
        MKernelNE(**FAST, learning_rate=0.01).fit(np.random.default_rng(0).integers(0, 300, (3000, 2)))
    with pytest.warns(UserWarning, match="all alike"):
        KernelNE(**FAST | {"walks_per_node": 50}, sigma=50.0, l2=1.0).fit(EDGES)


def test_many_negatives_do_not_let_vectors_collapse():
    graph = load_dataset("planted:n=400,k=4,p_in=0.2,p_out=0.02,seed=1").graph
    for n_negative in (5, 20, 60):
        model = MKernelNE(n_negative=n_negative, shared_negatives=30, dim=16, random_state=0).fit(graph)
        same = model.embedding_.reshape(4, 100, 16)
        spread = np.linalg.norm(same - same.mean(axis=1, keepdims=True), axis=2).mean()
        assert np.linalg.norm(model.embedding_ - model.embedding_.mean(axis=0), axis=1).mean() > 2 * spread
