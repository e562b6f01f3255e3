"""The data of a page: coordinates, classes, edges and nearest neighbours of the nodes, row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._common.checks import available_threads, check_count, check_seed, check_vectors, ids_of
from kernelne.embedding.neighbours import nearest
from kernelne.errors import InputError
from kernelne.graph import Graph, as_graph
from kernelne.graph.communities import louvain
from kernelne.graph.ops import as_undirected
from kernelne.io.files import PathLike
from kernelne.io.labels import as_labels
from kernelne.progress import Progress, reporting
from kernelne.training.cpu.threads import Workers
from kernelne.view.kept import kept_layout
from kernelne.view.layout import check_layout, chosen_method
from kernelne.view.near import find_cells
from kernelne.view.near import nearest_rows as near_by_cells

#: Default number of nearest neighbours of a node up to EXACT_UP_TO nodes, searched exactly, and beyond, where
#: the search is approximate and the page must stay small.
NEAREST, NEAREST_OF_MANY = 10, 5
EXACT_UP_TO = 100_000
#: Most edges listed for a node: a page must not hold all edges of a hub.
MOST_LINKS = 50
_BLOCK = 2**12  # nodes searched between two progress reports
_LAYOUT_NAMES = {"map": "map by neighbours", "pca": "PCA", "tsne": "t-SNE", "umap": "UMAP"}


@dataclass(frozen=True)
class Colouring:
    """Classes of nodes to colour by.

    classes  (K,) names of the classes
    codes    (n,) positions in `classes`, -1 for none; or, if nodes may have several classes, those of node i
             at codes[starts[i]:starts[i + 1]]
    values   (n,) integers whose ranges are the classes, or None
    ordered  whether the classes are ordered from low to high
    """

    key: str
    name: str
    classes: Sequence[Any]
    codes: NDArray[np.int64]
    starts: NDArray[np.int64] | None = None
    values: NDArray[np.int64] | None = None
    ordered: bool = False


class Nodes:
    """Node ids (n,), vectors (n, d) and, if given, the undirected graph, with rows in the same order."""

    def __init__(self, embedding: Any, graph: Any) -> None:
        ids = ids_of(embedding)
        given = None if graph is None else as_graph(graph)
        self.vectors = check_vectors(embedding, given if ids is None else None)
        self.graph = None if given is None else as_undirected(given)
        self.n_edges = 0 if given is None else given.n_edges
        if ids is not None:
            self.ids = ids
            if self.graph is not None:
                self.graph = _in_order(self.graph, embedding.index_of(self.graph.nodes), ids)
        else:
            self.ids = np.arange(len(self.vectors)) if self.graph is None else self.graph.nodes


def _in_order(graph: Graph, rows: NDArray[np.int64], ids: NDArray[Any]) -> Graph:
    """Return the graph with row g moved to rows[g]; rows (n,); ids (n,) are in the new order."""
    if len(rows) < len(ids):
        missing = np.delete(ids, rows).tolist()
        raise InputError(
            f"graph: {len(missing):,} of {len(ids):,} nodes of the embedding are not in it, such as "
            f"{missing[0]!r}; give the graph that was embedded, nodes without edges included"
        )
    if np.array_equal(rows, np.arange(len(rows))):
        return graph
    sources = np.repeat(rows, graph.degrees)
    targets = rows[graph.neighbours]
    moved = Graph.from_edges(sources, targets, graph.weights, nodes=np.arange(len(ids)), directed=True)
    return Graph(moved.offsets, moved.neighbours, moved.weights, False, ids)


@dataclass(frozen=True)
class Shown:
    """All data of a page.

    places   (n, 2) float32, coordinates between -1 and 1
    nearest  rows (n, k) and cosines (n, k), nearest first; or None
    links    starts (n + 1,) and ends: node i has edges to the rows ends[starts[i]:starts[i + 1]]; or None
    """

    title: str
    facts: list[str]
    ids: NDArray[Any]
    places: NDArray[np.float32]
    colourings: list[Colouring]
    nearest: tuple[NDArray[np.int64], NDArray[np.float64]] | None
    links: tuple[NDArray[np.int64], NDArray[np.int64]] | None

    @classmethod
    def gather(
        cls,
        embedding: Any,
        graph: Any,
        labels: Any,
        *,
        layout: Any,
        n_nearest: int | None,
        title: str | None,
        random_state: int,
        progress: Progress,
        beside: PathLike | None = None,
        backend: str = "cpu",
    ) -> Shown:
        """Compute the data from the arguments of `write_explorer`, which are checked first."""
        nodes = Nodes(embedding, graph)
        seed = check_seed(random_state)
        n, dim = nodes.vectors.shape
        if isinstance(layout, str):
            check_layout(layout, backend)
        else:
            given = check_vectors(layout)
            if given.shape != (n, 2):
                raise InputError(f"layout: coordinates of shape {given.shape} for {n} nodes: give ({n}, 2)")
        if n_nearest is None:
            n_nearest = NEAREST if n <= EXACT_UP_TO else NEAREST_OF_MANY
        elif n_nearest != 0:
            check_count("n_nearest", n_nearest)
        colourings = [] if labels is None else [label_colouring(labels, nodes.ids)]
        links = None
        if nodes.graph is not None:
            colourings += [community_colouring(nodes.graph, seed), degree_colouring(nodes.graph.degrees)]
            links = links_of(nodes.graph)
        if not colourings:
            colourings = [Colouring("all", "Nodes", ["all nodes"], np.zeros(n, np.int64))]
        facts = [_counted(n, "node")]
        if nodes.graph is not None:
            facts.append(_counted(nodes.n_edges, "edge"))
        facts.append(_counted(dim, "dimension"))
        if isinstance(layout, str):
            method = chosen_method(n, dim, layout)
            if method in _LAYOUT_NAMES:
                facts.append(_LAYOUT_NAMES[method])
            given = kept_layout(
                nodes.vectors, layout, seed, beside=beside, backend=backend, progress=progress
            )
        k = min(n_nearest, n - 1)
        near = nearest_rows(nodes.vectors, k, progress) if k else None
        return cls(title or "Node embedding", facts, nodes.ids, _in_square(given), colourings, near, links)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _in_square(places: NDArray[Any]) -> NDArray[np.float32]:
    """Return coordinates (n, 2) float32, shifted and scaled equally in x and y to lie between -1 and 1."""
    wide = places.astype(np.float64)
    low, high = wide.min(axis=0), wide.max(axis=0)
    half = (high - low).max() / 2
    inside: NDArray[np.float32] = ((wide - (low + high) / 2) / (half or 1.0)).astype(np.float32)
    return inside


def label_colouring(labels: Any, ids: NDArray[Any]) -> Colouring:
    """Return the colouring by label; a node may have several, or none."""
    rows, found = as_labels(labels, ids).among(ids)
    if not len(rows):
        raise InputError(f"labels: none of the {len(ids):,} nodes has a label")
    owners, columns = found.pairs
    if found.single is not None:
        codes = np.full(len(ids), -1)
        codes[rows] = columns
        return Colouring("label", "Label", found.classes.tolist(), codes)
    starts = np.zeros(len(ids) + 1, np.int64)
    np.cumsum(np.bincount(rows[owners], minlength=len(ids)), out=starts[1:])
    return Colouring("label", "Label", found.classes.tolist(), columns, starts)


def community_colouring(graph: Graph, seed: int) -> Colouring:
    """Return the colouring by Louvain community, the largest first."""
    codes = louvain(graph, random_state=seed)
    return Colouring("community", "Community", [str(i + 1) for i in range(int(codes.max()) + 1)], codes)


def degree_colouring(degrees: NDArray[np.int64]) -> Colouring:
    """Return the colouring by degree, in ranges that double: 0, 1, 2–3, 4–7 …"""
    codes = np.frexp(degrees.astype(np.float64))[1].astype(np.int64)
    ends = [2**power for power in range(int(codes.max()) + 1)]
    names = [f"{end // 2:,}–{end - 1:,}" if end > 2 else f"{end - 1}" for end in ends]
    return Colouring("degree", "Degree", names, codes, values=degrees, ordered=True)


def links_of(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return starts (n + 1,) and rows: the neighbours of each node, at most the 50 of highest weight."""
    sources = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    ends = graph.neighbours.astype(np.int64)
    if graph.weights is not None:
        ends = ends[np.lexsort((ends, -graph.weights, sources))]
    kept = np.arange(len(ends)) - graph.offsets[sources] < MOST_LINKS
    starts = np.concatenate([[0], np.cumsum(np.minimum(graph.degrees, MOST_LINKS))])
    return starts, ends[kept]


def nearest_rows(
    vectors: NDArray[Any], k: int, progress: Progress = False
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the k nearest rows of each by cosine (n, k) int64, without itself, and cosines (n, k) float64.

    The search is exact up to EXACT_UP_TO nodes; beyond, a few of the nearest may be missed. A vector of zeros
    has cosine 0 with all.
    """
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    table = (vectors / np.where(largest > 0, largest, 1)).astype(np.float32)  # avoids overflow
    n = len(table)
    if n > EXACT_UP_TO:
        return _nearest_of_many(table, k, progress)
    rows, cosines = np.empty((n, k), np.int64), np.empty((n, k))
    with reporting(progress, "nearest neighbours", "nodes") as report:
        for start in range(0, n, _BLOCK):
            own = np.arange(start, min(start + _BLOCK, n))
            rows[own], cosines[own] = nearest(table, k, "cosine", own=own)
            report(start + len(own), n, math.nan)
    return rows, cosines


def _nearest_of_many(
    table: NDArray[np.float32], k: int, progress: Progress
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """As `nearest_rows`, approximately: rows of length one that are near are those of high cosine."""
    lengths = np.sqrt(np.einsum("ij,ij->i", table, table))[:, None]
    table /= np.where(lengths > 0, lengths, 1)
    workers = Workers(available_threads())
    cells = find_cells(table, 0, workers)
    with reporting(progress, "nearest neighbours", "nodes") as report:
        near, apart = near_by_cells(table[cells.order], k, workers, report, cells)
    rows, cosines = np.empty(near.shape, np.int64), np.empty(near.shape)
    # A cell may have too few rows around it: then the node itself stands for those that are missing.
    missing = near < 0
    rows[cells.order] = np.where(missing, cells.order[:, None], cells.order[near])
    zero = lengths[:, 0] == 0
    cosines[cells.order] = np.where(missing, 1.0, 1 - apart.astype(np.float64) / 2).clip(-1, 1)
    cosines[zero[:, None] | zero[rows]] = 0.0
    return rows, cosines
