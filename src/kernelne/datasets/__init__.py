"""Load graphs by name: the paper's graphs, small built-in ones, and generated random ones."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelne.datasets import bundled, fetch, generate
from kernelne.datasets.registry import REGISTRY
from kernelne.errors import InputError, ParameterError
from kernelne.graph import Graph
from kernelne.io.labels import Labels
from kernelne.io.read_labels import read_labels

__all__ = ["Dataset", "DatasetInfo", "dataset_path", "fetch_dataset", "list_datasets", "load_dataset"]


@dataclass(frozen=True)
class Dataset:
    """A graph, its labels if it has any, a description, a citation, and its source."""

    name: str
    graph: Graph
    labels: Labels | None
    description: str
    citation: str
    source: str


@dataclass(frozen=True)
class DatasetInfo:
    """A dataset in the list: numbers of nodes, edges and classes (None: they depend on parameters).

    where: "data folder" (KERNELNE_DATA), "cache", "to fetch", "by hand", "built in" or "generated"
    """

    name: str
    n_nodes: int | None
    n_edges: int | None
    n_classes: int | None
    where: str
    description: str


@dataclass(frozen=True)
class _Made:
    """A built-in graph that needs no file."""

    make: Callable[[], tuple[Graph, Labels | None]]
    n_nodes: int
    n_edges: int
    n_classes: int
    description: str
    citation: str
    source: str


_SMALL = {
    "karate": _Made(
        bundled.karate, 34, 78, 2, "friends in a karate club, by whom they followed when it split",
        "Zachary, An Information Flow Model for Conflict and Fission, J. Anthropological Research 33, 1977",
        "the package",
    ),
    "lesmis": _Made(
        bundled.lesmis, 77, 254, 0, "characters of Les Misérables, weighted by chapters together",
        "Knuth, The Stanford GraphBase, 1993", "networkx.les_miserables_graph",
    ),
    "digits": _Made(
        bundled.digits, 1797, 12340, 10, "images of handwritten digits, each linked to its ten nearest",
        "Alpaydin, Kaynak, Cascading Classifiers, Kybernetika 34, 1998", "sklearn.datasets.load_digits",
    ),
}  # fmt: skip
_RANDOM = {
    "erdos_renyi": ("a random graph: n, p, seed", "Gilbert, Random Graphs, Ann. Math. Stat. 30, 1959"),
    "planted": (
        "groups, denser within: n, k, p_in, p_out, seed",
        "Condon, Karp, Algorithms for graph partitioning on the planted partition model, 2001",
    ),
    "lfr": (
        "communities: n, mu, degree, max_degree, tau1, tau2, min_size, max_size, seed",
        "Lancichinetti, Fortunato, Radicchi, Benchmark graphs for community detection, Phys. Rev. E 78, 2008",
    ),
}


def load_dataset(name: str, *, self_loops: bool = True) -> Dataset:
    """Load a graph by name, with its labels if it has any; `list_datasets` returns the names.

    The paper's graphs are searched in the folder KERNELNE_DATA, then in the cache (KERNELNE_CACHE or the
    user's cache folder), then fetched; a file with a wrong hash is never used. Four of them have self-loops,
    which the paper keeps: `self_loops=False` leaves them out.

    Random graphs take parameters after their name, as `erdos_renyi:n=1000,p=0.01,seed=0`.

    >>> load_dataset("karate").graph
    <Graph: 34 nodes, 78 edges, undirected, unweighted>
    >>> load_dataset("planted:n=60,k=3,p_in=0.5,p_out=0.01").labels
    <Labels of 60 nodes, 3 classes>
    """
    base, colon, given = str(name).partition(":")
    if base in generate.GENERATORS:
        graph, labels = generate.generate(base, given)
        description, citation = _RANDOM[base]
        return Dataset(name, graph, labels, description, citation, "generated")
    if colon:
        raise ParameterError("dataset", name, f"only {', '.join(generate.GENERATORS)} take parameters")
    if name in _SMALL:
        made = _SMALL[name]
        graph, labels = made.make()
        return Dataset(name, graph, labels, made.description, made.citation, made.source)
    _check_known(name)
    entry = REGISTRY[name]
    found = fetch.find(name)
    files = fetch.fetch(name) if found is None else found[1]
    texts = {part: fetch.read_verified(files[part], entry.sha256[part]) for part in files}
    ends = np.fromstring(texts["edges"], np.int64, sep=" ").reshape(-1, 2)
    if self_loops and "selfloops" in texts:
        loops = np.fromstring(texts["selfloops"], np.int64, sep=" ")
        ends = np.concatenate([ends, np.column_stack([loops, loops])])
    graph = Graph.from_edges(ends[:, 0], ends[:, 1], nodes=np.arange(entry.n_nodes))
    labels = read_labels(files["labels"]) if "labels" in files else None
    return Dataset(name, graph, labels, entry.description, entry.citation, entry.source)


def list_datasets() -> list[DatasetInfo]:
    """Return all datasets, with the sizes `load_dataset` gives by default; files are not opened."""
    listed = []
    for name, entry in REGISTRY.items():
        found = fetch.find(name)
        where = found[0] if found else "to fetch" if entry.fetched else "by hand"
        counts = entry.n_nodes, entry.n_edges + entry.n_loops, entry.n_classes
        listed.append(DatasetInfo(name, *counts, where, entry.description))
    for name, made in _SMALL.items():
        counts = made.n_nodes, made.n_edges, made.n_classes
        listed.append(DatasetInfo(name, *counts, "built in", made.description))
    for name, (description, _) in _RANDOM.items():
        listed.append(DatasetInfo(name, None, None, None, "generated", description))
    return listed


def dataset_path(name: str) -> Path:
    """Return the local, verified edge file (without self-loops) of one of the paper's graphs."""
    _check_file(name)
    found = fetch.find(name)
    if found is None:
        raise InputError(
            f"{name} has not been fetched: use fetch_dataset({name!r}) (kernelne datasets fetch {name})"
        )
    return _verified_edges(name, found[1])


def fetch_dataset(name: str, *, source: str | os.PathLike[str] | None = None) -> Path:
    """Fetch one of the paper's graphs unless it is present; returns the path of its edge file.

    A damaged file in the cache is replaced. `source` is the path of the original file if you already have it:
    it is converted, and nothing is downloaded.
    """
    _check_file(name)
    found = fetch.find(name) if source is None else None
    if found is not None:
        try:
            return _verified_edges(name, found[1])
        except InputError:
            if found[0] != "cache":
                raise
    return fetch.fetch(name, source)["edges"]


def _verified_edges(name: str, files: dict[str, Path]) -> Path:
    for part, path in files.items():
        fetch.read_verified(path, REGISTRY[name].sha256[part])
    return files["edges"]


def _check_known(name: str) -> None:
    known = [*REGISTRY, *_SMALL, *_RANDOM]
    if name not in known:
        close = difflib.get_close_matches(str(name).lower(), known, n=3)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise ParameterError("dataset", name, f"{hint}known datasets are {', '.join(known)}")


def _check_file(name: str) -> None:
    base = str(name).partition(":")[0]
    _check_known(base)
    if base not in REGISTRY or base != name:
        raise ParameterError("dataset", name, f"has no file; datasets with files are {', '.join(REGISTRY)}")
