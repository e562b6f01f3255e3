"""Read graphs of other packages, recognised by their attributes without importing them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne.errors import InputError, MissingDependencyError, warn
from kernelne.graph.csr import half
from kernelne.graph.ids import code_dtype
from kernelne.graph.tables import is_number, is_table


class Rows(NamedTuple):
    """A graph: unique node ids (a list or an array), edges between their rows, weights or None."""

    ids: Any
    sources: NDArray[Any]
    targets: NDArray[Any]
    weights: NDArray[np.float64] | None
    directed: bool


def reader_of(obj: Any) -> Callable[[Any], Rows] | None:
    """Return the function that reads this object as a graph; None if its type is not known."""
    if is_table(obj):  # its columns may have the same names as the attributes below
        return None
    for read, names in (
        (read_networkx, ("nodes", "edges", "is_directed")),
        (read_igraph, ("get_edgelist", "vs", "es", "is_directed")),
        (read_rustworkx, ("edge_list", "edges", "nodes", "node_indices")),
        (read_torch_geometric, ("edge_index", "num_nodes")),
        (_refuse_hetero, ("edge_types", "node_types")),
    ):
        if all(hasattr(obj, name) for name in names):
            return read
    return None


def read_networkx(g: Any, weight: str = "weight") -> Rows:
    """Read a networkx graph; edges without the attribute `weight` have weight 1.

    If no edge has it the graph is unweighted, with a warning if edges have other numeric attributes.
    """
    ids = list(g.nodes)
    absent = object()
    edges = list(g.edges(data=weight, default=absent))
    row = {node: i for i, node in enumerate(ids)}
    dtype = code_dtype(len(ids))
    sources = np.fromiter((row[u] for u, _, _ in edges), dtype, len(edges))
    targets = np.fromiter((row[v] for _, v, _ in edges), dtype, len(edges))
    weights = None
    if any(value is not absent for _, _, value in edges):
        weights = np.fromiter(
            (1.0 if value is absent else _number(u, v, value, weight) for u, v, value in edges),
            np.float64,
        )
    elif edges and weight == "weight":  # otherwise the caller chose the name
        attributes = next(iter(g.edges(data=True)))[2]
        numbers = [name for name, value in attributes.items() if is_number(value)]
        if numbers:
            warn(
                f"no edge has the attribute 'weight', so the graph is unweighted; not used: "
                f"{', '.join(map(repr, numbers))}; Graph.from_networkx(g, weight=NAME) takes one of them"
            )
    return Rows(ids, sources, targets, weights, g.is_directed())


def read_igraph(g: Any) -> Rows:
    """Read an igraph graph; ids are the vertex attribute `name`, else 0 … n - 1, weights the edge attribute
    `weight`.
    """
    pairs = g.get_edgelist()
    ends = np.fromiter(chain.from_iterable(pairs), np.int64, 2 * len(pairs)).reshape(-1, 2)
    ids = g.vs["name"] if "name" in g.vs.attributes() else np.arange(g.vcount())
    _check_different(ids, "the attribute 'name' of vertices")
    weights = None
    if "weight" in g.es.attributes():
        weights = np.fromiter(
            (_number(u, v, value, "weight") for (u, v), value in zip(pairs, g.es["weight"], strict=True)),
            np.float64,
        )
    return Rows(ids, ends[:, 0], ends[:, 1], weights, g.is_directed())


def read_rustworkx(g: Any) -> Rows:
    """Read a rustworkx graph; ids are the node payloads if all are strings or all integers, and unique.

    Otherwise ids are the node indices. The payload of an edge is its weight if it is a number, or a mapping
    with the key `weight`; other edges have weight 1.
    """
    indices = np.asarray(g.node_indices(), np.int64)
    payloads = list(g.nodes())
    kinds = set(map(type, payloads))
    usable = kinds in ({str}, {int}) and len(set(payloads)) == len(payloads)
    ends = np.asarray(g.edge_list(), np.int64).reshape(-1, 2)
    row = np.zeros(int(indices.max(initial=-1)) + 1, np.int64)
    row[indices] = np.arange(len(indices))
    sources, targets = row[ends[:, 0]], row[ends[:, 1]]
    values = [p.get("weight") if isinstance(p, Mapping) else p for p in g.edges()]
    numbers = [float(v) if v is not None and is_number(v) else None for v in values]
    weights = None
    if any(number is not None for number in numbers):
        weights = np.fromiter((1.0 if number is None else number for number in numbers), np.float64)
    # Only a directed graph distinguishes incoming from outgoing edges.
    return Rows(payloads if usable else indices, sources, targets, weights, hasattr(g, "predecessors"))


def read_torch_geometric(data: Any) -> Rows:
    """Read a torch_geometric Data; ids are 0 … n - 1, weights `edge_weight`, or `edge_attr` of one column.

    The graph is undirected if every edge is present in both directions with the same weight.
    """
    if data.edge_index is None or data.num_nodes is None:
        raise InputError("this Data has no edges: edge_index and num_nodes are required")
    n = int(data.num_nodes)
    sources, targets = _host(data.edge_index).astype(np.int64)
    ends = np.concatenate([sources, targets])
    if ((ends < 0) | (ends >= n)).any():
        raise InputError(f"edge_index contains nodes outside 0 … {n - 1} (num_nodes={n})")
    weights = None
    for name in ("edge_weight", "edge_attr"):
        given = getattr(data, name, None)
        values = None if given is None else _host(given)
        if weights is None and values is not None and values.size == len(sources):
            weights = values.reshape(-1).astype(np.float64)
    kept = half(sources, targets, weights, n)
    if isinstance(kept, int):
        return Rows(np.arange(n), sources, targets, weights, True)
    return Rows(np.arange(n), sources[kept], targets[kept], None if weights is None else weights[kept], False)


def _refuse_hetero(data: Any) -> Rows:
    raise InputError("heterogeneous graphs are not supported: pass data.to_homogeneous()")


def _host(tensor: Any) -> NDArray[Any]:
    """Copy a tensor from any device to a NumPy array."""
    return np.asarray(tensor.detach().cpu() if hasattr(tensor, "detach") else tensor)


def _number(u: Any, v: Any, value: Any, attribute: str) -> float:
    try:
        if not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise InputError(f"edge ({u!r}, {v!r}): {attribute} is {value!r}, not a number")


def _check_different(ids: Any, what: str) -> None:
    try:
        counts = Counter(ids)
    except TypeError as error:
        raise InputError(f"{what}: node ids must be hashable ({error})") from None
    if len(counts) < len(ids):
        raise InputError(f"{what}: {counts.most_common(1)[0][0]!r} appears more than once; make them unique")


def make_networkx(graph: Any) -> Any:
    """Return a Graph as a networkx Graph or DiGraph."""
    try:
        import networkx
    except ImportError:
        raise MissingDependencyError("networkx", "graphs") from None
    g = networkx.DiGraph() if graph.directed else networkx.Graph()
    g.add_nodes_from(graph.nodes.tolist())
    sources = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    once = np.full(len(sources), True) if graph.directed else sources <= graph.neighbours
    ends = [graph.nodes[rows[once]].tolist() for rows in (sources, graph.neighbours)]
    if graph.weights is None:
        g.add_edges_from(zip(*ends, strict=True))
    else:
        g.add_weighted_edges_from(zip(*ends, graph.weights[once].tolist(), strict=True))
    return g
