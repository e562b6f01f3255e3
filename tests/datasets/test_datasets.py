"""Names of graphs, and the small graphs that come along."""

from __future__ import annotations

import doctest
import sys
from pathlib import Path

import networkx
import numpy as np
import pytest

from kernelne.datasets import dataset_path, fetch, fetch_dataset, list_datasets, load_dataset
from kernelne.datasets.registry import REGISTRY
from kernelne.errors import MissingDependencyError, ParameterError
from kernelne.graph import Graph

DOCS = Path(__file__).parents[2] / "docs" / "datasets.md"


@pytest.fixture(autouse=True)
def _nothing_kept(tmp_path, monkeypatch):
    monkeypatch.delenv(fetch.DATA, raising=False)
    monkeypatch.setenv(fetch.CACHE, str(tmp_path))


def _same(one, other):
    return (one.to_scipy() != other.to_scipy()).nnz == 0


def test_karate_is_that_of_networkx():
    dataset = load_dataset("karate")
    club = networkx.karate_club_graph()
    assert dataset.graph.weights is None
    assert _same(dataset.graph, Graph.from_networkx(club, weight="none"))
    factions = dataset.labels.classes[dataset.labels.single]
    assert factions.tolist() == [club.nodes[member]["club"] for member in range(34)]


def test_lesmis(monkeypatch):
    dataset = load_dataset("lesmis")
    assert (dataset.graph.n_nodes, dataset.graph.n_edges, dataset.labels) == (77, 254, None)
    row, column = dataset.graph.index_of(["Valjean", "Cosette"])
    assert dataset.graph.to_scipy()[row, column] == 31
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingDependencyError, match=r"networkx.*\[graphs\]"):
        load_dataset("lesmis")


def test_digits():
    dataset = load_dataset("digits")
    assert dataset.graph.degrees.min() >= 10
    assert dataset.labels.classes.tolist() == list(range(10))
    digits = dataset.labels.single
    rows = np.repeat(np.arange(dataset.graph.n_nodes), dataset.graph.degrees)
    assert (digits[rows] == digits[dataset.graph.neighbours]).mean() > 0.95  # alike are near


def test_the_list_tells_what_would_be_loaded():
    listed = {info.name: info for info in list_datasets()}
    assert set(listed) == {*REGISTRY, "karate", "lesmis", "digits", "erdos_renyi", "planted", "lfr"}
    for name in ("karate", "lesmis", "digits"):
        dataset = load_dataset(name)
        labels = dataset.labels
        found = dataset.graph.n_nodes, dataset.graph.n_edges, 0 if labels is None else len(labels.classes)
        assert found == (listed[name].n_nodes, listed[name].n_edges, listed[name].n_classes)
        assert dataset.description == listed[name].description
        assert dataset.citation
        assert dataset.source
    assert {name for name, info in listed.items() if info.where == "by hand"} == {"cora"}
    assert {name for name, info in listed.items() if info.where == "to fetch"} == {*REGISTRY} - {"cora"}
    assert {name for name, info in listed.items() if info.where == "generated"} == {
        "erdos_renyi", "planted", "lfr",
    }  # fmt: skip


@pytest.mark.parametrize("use", [load_dataset, fetch_dataset, dataset_path])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cara", r"dataset='cara': did you mean cora or karate\? known datasets are citeseer, cora"),
        ("Citeseer", "did you mean citeseer"),
        ("erdos_reny", "did you mean erdos_renyi"),
        ("qqq", "dataset='qqq': known datasets are"),
        ("", "known datasets are"),
    ],
)
def test_unknown_names(use, name, message):
    with pytest.raises(ParameterError, match=message):
        use(name)


def test_names_that_have_no_file_or_no_parameters():
    for use in (fetch_dataset, dataset_path):
        for name in ("karate", "lfr", "planted:n=10", "cora:n=10"):
            with pytest.raises(ParameterError, match=f"dataset='{name}': has no file.*citeseer"):
                use(name)
    with pytest.raises(ParameterError, match="dataset='karate:n=3': only erdos_renyi, planted, lfr"):
        load_dataset("karate:n=3")


@pytest.mark.skipif(not DOCS.exists(), reason="the docs are not in this copy")
def test_examples_of_the_docs():
    results = doctest.testfile(
        str(DOCS), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert results.attempted > 3
    assert results.failed == 0
