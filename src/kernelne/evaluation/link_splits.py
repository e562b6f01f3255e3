"""Hide edges and sample non-edges, to train and test link prediction."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from kernelne._common.checks import check_seed
from kernelne.errors import InputError, ParameterError, warn
from kernelne.graph import Graph
from kernelne.graph.csr import mirror
from kernelne.graph.ids import code_dtype
from kernelne.graph.ops import as_undirected, edges_of
from kernelne.graph.pairs import pair_anew, spare_edges, uniform_non_edges


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """A graph with edges hidden, and the pairs to train and to test on.

    Attributes
    ----------
    graph: the residual graph, to be embedded: undirected and connected, node ids in their original order.
    train_edges, train_non_edges: (k, 2) int64 rows of `graph`, u < v: all its edges, and as many non-edges.
    test_edges, test_non_edges: (k, 2) int64, likewise: the hidden edges, and as many other non-edges.
    """

    graph: Graph
    train_edges: NDArray[np.int64]
    train_non_edges: NDArray[np.int64]
    test_edges: NDArray[np.int64]
    test_non_edges: NDArray[np.int64]


def split_links(
    graph: Any, *, test_share: float = 0.5, non_edges: str = "uniform", random_state: int = 0
) -> LinkSplit:
    """Hide edges of the giant component and sample non-edges; the same seed gives the same split.

    Self-loops are dropped and directions ignored (u → v and v → u become one edge, their weights add). Edges
    are visited in random order and hidden unless that disconnects the remaining graph, until
    round(test_share · edges) are hidden; a warning is issued if fewer can be. Non-edges are distinct pairs of
    nodes of the giant component without an edge. They are sampled "uniform" over pairs, or by "degree": the
    ends of the edges are re-paired at random, so that degrees alone do not separate edges from non-edges.
    """
    if not isinstance(test_share, Real) or not 0 < test_share < 1:
        raise ParameterError("test_share", test_share, "must lie between 0 and 1, both excluded")
    if non_edges not in ("uniform", "degree"):
        raise ParameterError("non_edges", non_edges, 'must be "uniform" or "degree"')
    rng = np.random.default_rng(check_seed(random_state))
    nodes, edges, weights = _giant_component(as_undirected(graph))
    hidden = _choose_hidden(edges, len(nodes), float(test_share), rng)
    test, train = edges[hidden], edges[~hidden]
    if non_edges == "uniform":
        absent = uniform_non_edges(edges, len(edges), len(nodes), rng)
    else:
        absent = _degree_non_edges(test, train, nodes, rng)
    residual = _graph_of(nodes, train, None if weights is None else weights[~hidden])
    return LinkSplit(residual, train, absent[len(test) :], test, absent[: len(test)])


def _giant_component(graph: Graph) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.float32] | None]:
    """Return node ids (n,), sorted edges (m, 2), u < v, and weights (m,) of the giant component."""
    _, component = connected_components(graph.to_scipy(), directed=False)
    inside = component == np.argmax(np.bincount(component))
    edges, weights = edges_of(graph)
    keep = inside[edges[:, 0]]
    if not keep.any():
        raise InputError("the graph has no edges but self-loops: there are no links to predict")
    place = np.cumsum(inside) - 1
    return graph.nodes[inside], place[edges[keep]], None if weights is None else weights[keep]


def _graph_of(nodes: NDArray[Any], edges: NDArray[np.int64], weights: NDArray[np.float32] | None) -> Graph:
    """Return the undirected graph of edges (m, 2), u < v, in ascending order."""
    offsets = np.zeros(len(nodes) + 1, np.int64)
    np.cumsum(np.bincount(edges[:, 0], minlength=len(nodes)), out=offsets[1:])
    values = np.empty(0, np.float32) if weights is None else weights
    offsets, neighbours, values = mirror(offsets, edges[:, 1].astype(code_dtype(len(nodes))), values)
    return Graph(offsets, neighbours, None if weights is None else values, False, nodes)


def _choose_hidden(
    edges: NDArray[np.int64], n: int, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return a mask (m,) of edges to hide: the first in random order that leave the graph connected."""
    m = len(edges)
    wanted = round(share * m)
    if m == n - 1:
        raise InputError(f"the giant component is a tree of {n} nodes: hiding any edge disconnects it")
    if wanted == 0:
        raise ParameterError("test_share", share, f"hides none of {m} edges: use a larger share")
    order = rng.permutation(m)
    spare = order[spare_edges(edges, order, n)]
    if len(spare) < wanted:
        warn(
            f"test_share={share}: {wanted} of {m} edges requested, {len(spare)} hidden: hiding more would "
            "disconnect the graph"
        )
    hidden = np.zeros(m, bool)
    hidden[spare[:wanted]] = True
    return hidden


def _degree_non_edges(
    test: NDArray[np.int64], train: NDArray[np.int64], nodes: NDArray[Any], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Re-pair the ends of the test edges, then of the training edges: non-edges (m, 2), u < v."""
    n = len(nodes)
    edges = np.concatenate([test, train])
    degrees = np.bincount(edges.ravel(), minlength=n)
    hub = int(np.argmax(degrees))
    if 2 * degrees[hub] > n - 1:
        raise InputError(
            f"node {nodes[hub]} has edges to {degrees[hub]} of {n - 1} others: too few are left for as many "
            'non-edges; use non_edges="uniform"'
        )
    taken = np.sort(edges[:, 0] * n + edges[:, 1])
    parts = []
    for part in (test, train):
        parts.append(pair_anew(part, taken, n, rng))
        taken = np.sort(np.concatenate([taken, parts[-1] @ (n, 1)]))
    return np.concatenate(parts)
