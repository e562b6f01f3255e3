"""The paper's nine graphs, where their folder is given: counts, and converters that give them bit for bit."""

from __future__ import annotations

import io
import os
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from kernelne.datasets import fetch, fetch_dataset, list_datasets, load_dataset
from kernelne.datasets.registry import REGISTRY

FOLDER = os.environ.get(fetch.DATA)
pytestmark = pytest.mark.skipif(
    not FOLDER, reason="KERNELNE_DATA does not name the folder of the paper's graphs"
)

# nodes, edges, self-loops, classes, components, isolated nodes
COUNTS = {
    "citeseer": (3312, 4536, 124, 6, 438, 48),
    "cora": (2708, 5278, 0, 7, 78, 0),
    "dblp": (27199, 66832, 0, 4, 2115, 0),
    "ppi": (3890, 37845, 894, 50, 35, 30),
    "astroph": (17903, 196972, 59, 0, 1, 0),
    "hepth": (8638, 24806, 21, 0, 1, 0),
    "facebook": (4039, 88234, 0, 0, 1, 0),
    "gnutella": (8104, 26008, 0, 0, 1, 0),
    "dolphins": (62, 159, 0, 0, 1, 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    n_nodes, n_edges, n_loops, n_classes, n_components, n_isolated = COUNTS[name]
    dataset = load_dataset(name)
    plain = load_dataset(name, self_loops=False).graph
    assert dataset.graph.nodes.tolist() == list(range(n_nodes))
    assert (dataset.graph.n_edges, plain.n_edges, plain.n_nodes) == (n_edges + n_loops, n_edges, n_nodes)
    assert dataset.graph.to_scipy().diagonal().sum() == n_loops
    assert connected_components(plain.to_scipy(), directed=False)[0] == n_components
    assert (plain.degrees == 0).sum() == n_isolated
    assert len(COUNTS) == len(REGISTRY)
    if n_classes == 0:
        assert dataset.labels is None
    else:
        assert dataset.labels.classes.tolist() == list(range(n_classes))
        assert dataset.labels.nodes.tolist() == list(range(n_nodes))
        assert (dataset.labels.single is None) == (name == "ppi")
    listed = next(info for info in list_datasets() if info.name == name)
    assert listed.where == "data folder"
    assert (listed.n_nodes, listed.n_edges, listed.n_classes) == (n_nodes, n_edges + n_loops, n_classes)


def _snap(graph, rng):
    """Sparse ids, both directions, in any order, a smaller component beside."""
    ids = np.sort(rng.choice(10 * graph.n_nodes, graph.n_nodes, replace=False)) + 7
    entries = graph.to_scipy().tocoo()
    pairs = np.column_stack([ids[entries.row], ids[entries.col]])
    pairs = np.concatenate([pairs, [[0, 1], [1, 1], [3, 2]]])
    sink = io.BytesIO()
    np.savetxt(sink, rng.permutation(pairs), "%d\t%d", header="Undirected graph\nFromNodeId\tToNodeId")
    return sink.getvalue()


def _mat(graph, labels, soft, rng):
    network = graph.to_scipy().tocsc()
    network.data = rng.integers(1, 4, len(network.data)).astype(float)
    shares = labels.indicator * 0.4 + 0.1 if soft else labels.indicator.astype(float)
    if soft:
        shares[:, -1] = shares.max(axis=1)  # equal to the true one, and after it
    sink = io.BytesIO()
    groups = {"F": shares} if soft else {"group": scipy.sparse.csc_matrix(shares)}
    scipy.io.savemat(sink, {"network": scipy.sparse.csc_matrix(network), **groups}, do_compression=True)
    return sink.getvalue()


def _gml(graph, labels, rng):
    order = np.arange(graph.n_nodes) if labels is None else rng.permutation(graph.n_nodes)
    nodes = [
        f'node\n[\nid {i}\nlabel "{v if labels is not None else "name"}"\n'
        + ("" if labels is None else f'community "{labels.single[v]}"\n')
        + "]\n"
        for i, v in enumerate(order)
    ]
    place = np.argsort(order)
    entries = scipy.sparse.triu(graph.to_scipy()).tocoo()
    edges = [
        f"edge\n[\nsource {place[v]}\ntarget {place[u]}\n]\n"
        for u, v in zip(entries.row, entries.col, strict=True)
    ]
    return "".join(["graph\n[\n", *nodes, *rng.permutation(edges), "]\n"]).encode()


@pytest.mark.parametrize("name", COUNTS)
def test_an_original_gives_the_canonical_files(name, tmp_path, monkeypatch):
    """From a file in the form of the original, made of the canonical ones: the hashes must come out again."""
    monkeypatch.setenv(fetch.CACHE, str(tmp_path / "cache"))
    dataset, rng = load_dataset(name), np.random.default_rng(0)
    suffix = REGISTRY[name].source.split(" ")[0].rpartition("/")[2].removesuffix(".gz")
    if suffix.endswith(".txt"):
        original = _snap(dataset.graph, rng)
    elif suffix.endswith(".mat"):
        original = _mat(dataset.graph, dataset.labels, name == "dblp", rng)
    elif suffix.endswith(".zip"):
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w") as archive:
            archive.writestr(f"{name}.gml", _gml(dataset.graph, None, rng))
        original = sink.getvalue()
    else:
        original = _gml(dataset.graph, dataset.labels, rng)
    (tmp_path / suffix).write_bytes(original)
    assert fetch_dataset(name, source=tmp_path / suffix) == tmp_path / "cache" / f"{name}.edges.gz"
    monkeypatch.setenv(fetch.DATA, "")
    assert load_dataset(name).graph.fingerprint == dataset.graph.fingerprint
