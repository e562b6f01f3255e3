"""What all baselines have in common: the manners of KernelNE, on every kind of graph."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from kernelne import Embedding, Graph, InputError, ParameterError, baselines
from kernelne.baselines import _base
from kernelne.graph import as_graph
from kernelne.graph.ops import count_isolated

EDGES = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
#: What makes a method quick enough to be tried on graphs of a few nodes.
QUICK = {
    "dim": 6,
    "walks_per_node": 3,
    "samples_per_node": 10,
    "n_clusters": 2,
    "n_communities": 2,
    "n_iterations": 5,
    "n_threads": 1,
    "random_state": 3,
}


def quick(name: str, **changes):
    known = getattr(baselines, name)().get_params()
    return getattr(baselines, name)(**{k: v for k, v in (QUICK | changes).items() if k in known})


each_method = pytest.mark.parametrize("name", baselines.__all__)


def fitted(model, graph):
    """Fit; there is a warning where nodes are isolated, and only there."""
    isolated = count_isolated(as_graph(graph))
    with pytest.warns(UserWarning, match="no edges") if isolated else contextlib.nullcontext():
        return model.fit(graph)


@each_method
def test_fit_sets_what_it_says(name):
    model = quick(name)
    assert model.fit(EDGES, y="ignored") is model
    assert model.embedding_.shape == (6, 6)
    assert model.embedding_.dtype == np.float32
    assert model.embedding_.flags.c_contiguous
    assert np.isfinite(model.embedding_).all()
    assert model.graph_.nodes.tolist() == list(range(6))
    assert model.seed_ == 3
    assert model.seconds_ > 0
    np.testing.assert_array_equal(model.fit_transform(EDGES), model.embedding_)


@each_method
def test_every_container_gives_the_same_vectors(name):
    wanted = quick(name).fit_transform(Graph.from_edges(*np.array(EDGES).T))
    ordered = nx.Graph()
    ordered.add_nodes_from(range(6))
    ordered.add_edges_from(EDGES)
    for graph in (EDGES, np.array(EDGES), ordered, scipy.sparse.csr_array(nx.to_numpy_array(ordered))):
        np.testing.assert_array_equal(quick(name).fit_transform(graph), wanted)


@each_method
def test_seed(name, ring):
    first, again, other, unseeded = (
        quick(name, random_state=seed).fit(ring) for seed in (1, np.int64(1), 2, None)
    )
    np.testing.assert_array_equal(first.embedding_, again.embedding_)
    assert not np.array_equal(first.embedding_, other.embedding_)
    np.testing.assert_array_equal(
        quick(name, random_state=unseeded.seed_).fit_transform(ring), unseeded.embedding_
    )


@each_method
def test_constructor_only_stores(name):
    method = getattr(baselines, name)
    with pytest.raises(TypeError):
        method(128)
    model = method(dim="nonsense")
    assert model.get_params()["dim"] == "nonsense"
    assert clone(model).get_params() == model.get_params()
    assert method().dim == 128
    with pytest.raises(NotFittedError):
        model.to_embedding()


@each_method
def test_bad_parameters_are_told_at_fit(name):
    bad = {"dim": (0, 2.5, True, None), "n_threads": (0, "two"), "random_state": (-1, "seed")}
    method = getattr(baselines, name)
    bad |= dict.fromkeys(method._counts, (0, -3, "x"))
    bad |= {parameter: (-1, float("nan"), "x") for parameter in method._numbers}
    bad |= dict.fromkeys(method._flags, (1, None))
    for parameter, values in bad.items():
        for value in values:
            model = quick(name, **{parameter: value})
            with pytest.raises(ParameterError, match=f"{parameter}="):
                model.fit(EDGES)
            assert not hasattr(model, "embedding_")


@each_method
def test_bad_graphs(name):
    for graph in ("file.txt", 3, np.zeros((4, 5)), []):
        with pytest.raises(InputError):
            quick(name).fit(graph)


@each_method
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_kinds_of_graphs(name, directed, weighted, random_graph):
    # The sparse ones are disconnected, and have nodes without edges, or without edges that leave them.
    for n, density in ((30, 0.3), (40, 0.03)):
        graph = random_graph(5, n, directed=directed, weighted=weighted, density=density)
        vectors = fitted(quick(name), graph).embedding_
        assert np.isfinite(vectors).all()
        assert len(np.unique(vectors, axis=0)) > n // 3


@each_method
def test_tiny_graphs(name):
    for graph in ([(0, 1)], [(0, 0)], [(0, 1), (2, 3)], Graph.from_edges([0], [1], nodes=[0, 1, 2])):
        model = fitted(quick(name, dim=16), graph)
        assert model.embedding_.shape == (model.graph_.n_nodes, 16)
        assert np.isfinite(model.embedding_).all()


@each_method
def test_a_graph_without_edges(name):
    graph = Graph.from_edges([], [], nodes=[1, 2, 3])
    with pytest.warns(UserWarning, match="3 of 3 nodes have no edges"):
        assert np.isfinite(quick(name).fit_transform(graph)).all()


@each_method
def test_isolated_nodes_are_told(name, two_cliques):
    with pytest.warns(UserWarning, match="1 of 11 nodes have no edges"):
        quick(name).fit(two_cliques)


@each_method
def test_memory_is_looked_at_first(name, ring, monkeypatch):
    model = quick(name)
    needed = model.memory_bytes(ring)
    assert needed >= 4 * 64 * model.dim
    monkeypatch.setattr(_base, "available_bytes", lambda: needed - 1)
    monkeypatch.setattr(type(model), "_embed", None)
    with pytest.raises(InputError, match=f"{name} needs .* GiB for 64 nodes"):
        model.fit(ring)


@each_method
def test_progress(name, ring, capsys):
    seen = []
    vectors = quick(name, progress=lambda *report: seen.append(report)).fit_transform(ring)
    assert seen
    assert all(0 < done <= total for done, total, _ in seen)
    assert seen[-1][0] == seen[-1][1]
    np.testing.assert_array_equal(quick(name, progress=False).fit_transform(ring), vectors)
    assert not any(capsys.readouterr())


@each_method
def test_to_embedding_can_be_saved(name, tmp_path):
    graph = Graph.from_edges(["ann", "bob", "eve"], ["bob", "eve", "dan"])
    model = quick(name, dim=np.int64(6)).fit(graph)
    model.to_embedding().save(tmp_path / "vectors.safetensors")
    found = Embedding.load(tmp_path / "vectors.safetensors")
    np.testing.assert_array_equal(found["dan"], model.embedding_[graph.index_of(["dan"])[0]])
    assert found.provenance["model"] == name
    assert found.provenance["seed"] == 3
    assert found.provenance["graph"]["edges"] == 3
    assert found.provenance["parameters"]["dim"] == 6
    assert "progress" not in found.provenance["parameters"]


@pytest.fixture(scope="module")
def planted():
    """Four groups of 40 nodes, each joined to a quarter of its own and to one in a hundred of the others."""
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(4), 40)
    chance = np.where(group[:, None] == group, 0.25, 0.01)
    matrix = np.triu(rng.random((160, 160)) < chance, 1)
    return Graph.from_scipy(scipy.sparse.csr_array(matrix | matrix.T)), group


def _guessed(vectors, group):
    """How many are put into the right group by a classifier that has seen half of them."""
    train = np.arange(len(group)) % 2 == 0
    seen = LogisticRegression().fit(vectors[train], group[train])
    return float(seen.score(vectors[~train], group[~train]))


@each_method
def test_planted_groups_are_found(name, planted):
    graph, group = planted
    method = getattr(baselines, name)
    small = {"dim": 16, "n_clusters": 4, "n_communities": 4, "random_state": 0, "n_threads": 1}
    model = method(**{k: v for k, v in small.items() if k in method().get_params()})
    assert _guessed(np.random.default_rng(0).standard_normal((160, 16)), group) < 0.5
    assert _guessed(model.fit_transform(graph), group) > 0.9


def test_names():
    assert sorted(baselines.__all__) == dir(baselines)
    with pytest.raises(AttributeError, match="no_such_name"):
        baselines.no_such_name  # noqa: B018
    code = "import sys, kernelne.baselines; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "sklearn", "numpy"} & set(run.stdout.split())
