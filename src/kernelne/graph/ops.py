"""Functions of a graph: edges, degrees, isolated nodes, the graph without directions or some edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.errors import InputError
from kernelne.graph.edges import edge_table, writable_ids
from kernelne.graph.graph import Graph, as_graph
from kernelne.graph.times import without_pairs

_BLOCK = 2**22  # entries


def as_undirected(graph: Any) -> Graph:
    """Return the graph without directions: u → v and v → u become one edge, their weights are added."""
    given: Graph = as_graph(graph)
    if not given.directed:
        return given
    rows = np.arange(given.n_nodes)
    sources = np.repeat(rows, given.degrees)
    plain = Graph.from_edges(sources, given.neighbours, given.weights, nodes=rows)
    return Graph(plain.offsets, plain.neighbours, plain.weights, False, given.nodes)


def isolated_nodes(graph: Graph) -> NDArray[np.bool_]:
    """Return a mask (n_nodes,) of the nodes without edges."""
    isolated: NDArray[np.bool_] = graph.degrees == 0
    if graph.directed:
        for start in range(0, len(graph.neighbours), _BLOCK):  # as NumPy copies row numbers to use them
            isolated[graph.neighbours[start : start + _BLOCK]] = False
    return isolated


def count_isolated(graph: Graph) -> int:
    """Count the nodes that have neither outgoing nor incoming edges."""
    return int(np.count_nonzero(isolated_nodes(graph)))


def edges_of(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
    """Return the edges (m, 2) of an undirected graph, rows u < v, sorted, no self-loops, and weights (m,)."""
    rows = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    keep = rows < graph.neighbours
    edges = np.column_stack([rows[keep], graph.neighbours[keep]]).astype(np.int64, copy=False)
    return edges, None if graph.weights is None else graph.weights[keep]


def remove_edges(graph: Graph, edges: NDArray[np.int64]) -> Graph:
    """Return the graph without `edges` (k, 2), rows u < v, removed in both directions; nodes are kept."""
    n = graph.n_nodes
    gone = np.sort(edges @ (n, 1))

    def left_out(rows: NDArray[Any], neighbours: NDArray[Any]) -> NDArray[np.bool_]:
        return contains(gone, np.minimum(rows, neighbours) * n + np.maximum(rows, neighbours))

    rows = np.repeat(np.arange(n), graph.degrees)
    keep = ~left_out(rows, graph.neighbours)
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(rows[keep], minlength=n), out=offsets[1:])
    weights = None if graph.weights is None else graph.weights[keep]
    timed = None if graph.timed is None else without_pairs(graph.timed, left_out)
    return Graph(offsets, graph.neighbours[keep], weights, graph.directed, graph.nodes, timed=timed)


def within(graph: Graph, rows: NDArray[np.int64], steps: int) -> NDArray[np.bool_]:
    """Return whether each node is at most so many steps from one of `rows`, along or against arcs."""
    inside = np.zeros(graph.n_nodes, bool)
    inside[rows] = True
    arcs = graph.to_scipy()
    for _ in range(steps):
        reached = inside.astype(np.float32)
        found = (arcs @ reached > 0) | (arcs.T @ reached > 0 if graph.directed else False)
        if not (found & ~inside).any():
            break
        inside |= found
    return inside


def among(graph: Graph, rows: NDArray[np.int64]) -> Graph:
    """Return the graph of some nodes, given in ascending order, and the edges between them."""
    arcs = graph.to_scipy()[rows][:, rows]
    weights = None if graph.weights is None else arcs.data
    return Graph(arcs.indptr.astype(np.int64), arcs.indices, weights, graph.directed, graph.nodes[rows])


def add_edges(graph: Graph, more: Graph) -> Graph:
    """Return the graph with the nodes and edges of another one, which is directed if it is.

    New nodes come after the others. Integers are taken as texts if the ids of the graph are texts. Weights
    are added; edges without a weight weigh 1 in a graph that has weights, else weights are left out.
    """
    tables, ids = [edge_table(each) for each in (graph, more)], [writable_ids(g) for g in (graph, more)]
    kind = ids[0].type
    if kind != ids[1].type and pa.types.is_integer(kind):
        raise InputError("ids of the graph are integers, those of the new edges strings: make them alike")
    nodes = pa.concat_arrays([ids[0], ids[1].cast(kind)]).unique()
    ends = [
        pa.chunked_array([chunk for table in tables for chunk in table[name].cast(kind).chunks], kind)
        for name in ("source", "target")
    ]
    weights = None
    if graph.weights is not None:
        weighted = [table.num_columns == 3 for table in tables]
        parts = zip(tables, weighted, strict=True)
        weights = np.concatenate([t["weight"].to_numpy() if own else np.ones(len(t)) for t, own in parts])
    return Graph.from_edges(ends[0], ends[1], weights, nodes, graph.directed)


def loopless_degrees(graph: Graph) -> NDArray[np.int64]:
    """Return the number of neighbours of each node, not counting itself."""
    sources = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    return np.bincount(sources[sources != graph.neighbours], minlength=graph.n_nodes)


@cached()
def common_neighbours(offsets, neighbours, degrees, pairs):  # type: ignore[no-untyped-def]
    """Return, for each pair, the number of common neighbours and the sum of 1/log(degree) over them."""
    common = np.zeros(len(pairs))
    weighed = np.zeros(len(pairs))
    for i in range(len(pairs)):
        u, v = pairs[i]
        if offsets[u + 1] - offsets[u] > offsets[v + 1] - offsets[v]:
            u, v = v, u
        # The longer list, possibly that of a hub, is searched instead of scanned.
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
    """Return a mask of the keys that are in a sorted array."""
    if not ordered.size:
        return np.zeros(len(keys), bool)
    places = np.searchsorted(ordered, keys)
    return np.asarray(ordered[np.minimum(places, len(ordered) - 1)] == keys)


def neighbourhoods(graph: Graph, names: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a hash (n,) of each node's neighbours and the weights of its edges, whatever their order.

    names: (n,) the number by which each node is known, -1 for one that is not known.
    """
    weights = np.empty(0, np.float32) if graph.weights is None else graph.weights
    made = np.zeros(graph.n_nodes, np.uint64)
    _hash_rows(graph.offsets, graph.neighbours, weights.view(np.uint32), names, made)
    return made.view(np.int64)


@cached()
def _hash_rows(offsets, neighbours, weights, names, made):  # type: ignore[no-untyped-def]
    for row in range(made.size):
        total = np.uint64(0)
        for entry in range(offsets[row], offsets[row + 1]):
            x = np.uint64(names[neighbours[entry]] + 2) * np.uint64(0x9E3779B97F4A7C15)
            if weights.size:
                x += np.uint64(weights[entry]) * np.uint64(0xD1B54A32D192ED03)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            total += x ^ (x >> np.uint64(31))
        made[row] = total
