"""What can be asked of a graph: its edges, degrees, isolated nodes, the graph without directions or edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._jit import cached
from kernelne.graph.graph import Graph, as_graph


def as_undirected(graph: Any) -> Graph:
    """The same nodes and edges without direction: u → v and v → u become one edge, their weights add."""
    given: Graph = as_graph(graph)
    if not given.directed:
        return given
    rows = np.arange(given.n_nodes)
    sources = np.repeat(rows, given.degrees)
    plain = Graph.from_edges(sources, given.neighbours, given.weights, nodes=rows)
    return Graph(plain.offsets, plain.neighbours, plain.weights, False, given.nodes)


def isolated_nodes(graph: Graph) -> NDArray[np.bool_]:
    """(n_nodes,) whether a node has no edge."""
    isolated: NDArray[np.bool_] = graph.degrees == 0
    isolated[graph.neighbours] = False
    return isolated


def count_isolated(graph: Graph) -> int:
    """Nodes that no edge leaves or reaches."""
    alone = graph.degrees == 0
    alone[graph.neighbours] = False
    return int(alone.sum())


def edges_of(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
    """Edges (m, 2) of an undirected graph as rows u < v in ascending order, without loops; weights (m,)."""
    rows = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    keep = rows < graph.neighbours
    edges = np.column_stack([rows[keep], graph.neighbours[keep]]).astype(np.int64, copy=False)
    return edges, None if graph.weights is None else graph.weights[keep]


def remove_edges(graph: Graph, edges: NDArray[np.int64]) -> Graph:
    """A graph without the edges (k, 2) given as rows u < v, in both directions; all else stays."""
    n = graph.n_nodes
    rows = np.repeat(np.arange(n), graph.degrees)
    keys = np.minimum(rows, graph.neighbours) * n + np.maximum(rows, graph.neighbours)
    keep = ~contains(np.sort(edges @ (n, 1)), keys)
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(rows[keep], minlength=n), out=offsets[1:])
    weights = None if graph.weights is None else graph.weights[keep]
    return Graph(offsets, graph.neighbours[keep], weights, graph.directed, graph.nodes)


def loopless_degrees(graph: Graph) -> NDArray[np.int64]:
    """How many other nodes each node is joined to."""
    sources = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    return np.bincount(sources[sources != graph.neighbours], minlength=graph.n_nodes)


@cached()
def common_neighbours(offsets, neighbours, degrees, pairs):  # type: ignore[no-untyped-def]
    """For each pair the number of common neighbours, and the sum of their 1/log degree."""
    common = np.zeros(len(pairs))
    weighed = np.zeros(len(pairs))
    for i in range(len(pairs)):
        u, v = pairs[i]
        if offsets[u + 1] - offsets[u] > offsets[v + 1] - offsets[v]:
            u, v = v, u
        # The longer list, that of a hub perhaps, is not read but searched.
        start, stop = offsets[v], offsets[v + 1]
        for k in range(offsets[u], offsets[u + 1]):
            z = neighbours[k]
            start += np.searchsorted(neighbours[start:stop], z)
            if start == stop:
                break
            if neighbours[start] == z and z != u and z != v:
                common[i] += 1.0
                if degrees[z] > 1:  # always, unless the pair is a node with itself
                    weighed[i] += 1.0 / np.log(degrees[z])
    return common, weighed


def contains(ordered: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the keys are in a sorted array."""
    if not ordered.size:
        return np.zeros(len(keys), bool)
    places = np.searchsorted(ordered, keys)
    return np.asarray(ordered[np.minimum(places, len(ordered) - 1)] == keys)
