"""Hiding edges and drawing pairs that have none: what link predictors learn from and are tested on."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from kernelne._csr import mirror
from kernelne._ids import code_dtype
from kernelne._jit import cached
from kernelne.errors import InputError, ParameterError
from kernelne.evaluation.communities import as_undirected, check_seed
from kernelne.graph import Graph

_MOST_ROUNDS = 500


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """A graph with edges hidden, and the pairs to learn from and to test on.

    Attributes
    ----------
    graph: the residual graph, to be embedded: undirected, connected, ids in the order they had.
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
    """Hide edges of the giant component and draw non-edges: the same seed gives the same split.

    Self-loops are dropped and directions ignored (u → v and v → u become one edge, their weights add). Edges
    are visited in random order and hidden unless that disconnects what is left, until there are
    round(test_share · edges); a warning says so when fewer can go. Non-edges are pairs of the giant component
    that no edge joins, all different: drawn "uniform" over pairs, or by "degree": the ends of the edges they
    stand against are paired anew at random, so that a node's degree alone tells nothing.
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
        absent = _uniform_non_edges(edges, len(edges), len(nodes), rng)
    else:
        absent = _degree_non_edges(test, train, nodes, rng)
    residual = _graph_of(nodes, train, None if weights is None else weights[~hidden])
    return LinkSplit(residual, train, absent[len(test) :], test, absent[: len(test)])


def edges_of(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
    """Edges (m, 2) of an undirected graph as rows u < v in ascending order, without loops; weights (m,)."""
    rows = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    keep = rows < graph.neighbours
    edges = np.column_stack([rows[keep], graph.neighbours[keep]]).astype(np.int64, copy=False)
    return edges, None if graph.weights is None else graph.weights[keep]


def hide_edges(graph: Graph, share: float, rng: np.random.Generator) -> tuple[Graph, NDArray[np.int64]]:
    """A graph without some of its edges, and these (k, 2), u < v: at most this share, chosen at random.

    Directions aside its components stay connected. At most half of the edges that could go are taken: with
    all gone, trees would be left, which look like nothing the graph was.
    """
    edges, _ = edges_of(as_undirected(graph))
    order = rng.permutation(len(edges))
    spare = order[_spare_edges(edges, order, graph.n_nodes)]
    hidden = edges[np.sort(spare[: min(round(share * len(edges)), len(spare) // 2)])]
    return remove_edges(graph, hidden), hidden


def remove_edges(graph: Graph, edges: NDArray[np.int64]) -> Graph:
    """A graph without the edges (k, 2) given as rows u < v, in both directions; all else stays."""
    n = graph.n_nodes
    rows = np.repeat(np.arange(n), graph.degrees)
    keys = np.minimum(rows, graph.neighbours) * n + np.maximum(rows, graph.neighbours)
    keep = ~_contains(np.sort(edges @ (n, 1)), keys)
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(rows[keep], minlength=n), out=offsets[1:])
    weights = None if graph.weights is None else graph.weights[keep]
    return Graph(offsets, graph.neighbours[keep], weights, graph.directed, graph.nodes)


def draw_non_edges(
    graph: Graph, edges: NDArray[np.int64], kind: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    """As many pairs without an edge as `edges` (k, 2), some of the graph's; kinds as in `split_links`."""
    known = edges_of(graph)[0]
    if kind == "uniform":
        return _uniform_non_edges(known, len(edges), graph.n_nodes, rng)
    return _pair_anew(edges, np.sort(known @ (graph.n_nodes, 1)), graph.n_nodes, rng)


def _giant_component(graph: Graph) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.float32] | None]:
    """Ids (n,), edges (m, 2) with u < v in ascending order, and weights (m,) of the largest component."""
    _, component = connected_components(graph.to_scipy(), directed=False)
    inside = component == np.argmax(np.bincount(component))
    edges, weights = edges_of(graph)
    keep = inside[edges[:, 0]]
    if not keep.any():
        raise InputError("the graph has no edges but self-loops: there are no links to predict")
    place = np.cumsum(inside) - 1
    return graph.nodes[inside], place[edges[keep]], None if weights is None else weights[keep]


def _graph_of(nodes: NDArray[Any], edges: NDArray[np.int64], weights: NDArray[np.float32] | None) -> Graph:
    """The undirected graph of edges with u < v in ascending order."""
    offsets = np.zeros(len(nodes) + 1, np.int64)
    np.cumsum(np.bincount(edges[:, 0], minlength=len(nodes)), out=offsets[1:])
    values = np.empty(0, np.float32) if weights is None else weights
    offsets, neighbours, values = mirror(offsets, edges[:, 1].astype(code_dtype(len(nodes))), values)
    return Graph(offsets, neighbours, None if weights is None else values, False, nodes)


def _choose_hidden(
    edges: NDArray[np.int64], n: int, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which edges (m,) to hide: the first of a random order that can go without cutting the graph."""
    m = len(edges)
    wanted = round(share * m)
    if m == n - 1:
        raise InputError(f"the giant component is a tree of {n} nodes: no edge can be hidden without a cut")
    if wanted == 0:
        raise ParameterError("test_share", share, f"hides none of {m} edges: give more")
    order = rng.permutation(m)
    spare = order[_spare_edges(edges, order, n)]
    if len(spare) < wanted:
        warnings.warn(
            f"test_share={share}: {wanted} of {m} edges asked for, {len(spare)} hidden: all that can go "
            "without disconnecting the graph",
            stacklevel=3,
        )
    hidden = np.zeros(m, bool)
    hidden[spare[:wanted]] = True
    return hidden


@cached()
def _spare_edges(edges, order, n):  # type: ignore[no-untyped-def]
    """For each place in `order`: can its edge go, all those before it that can being gone?

    Those that cannot are the spanning tree that Kruskal's method finds from the end of the order.
    """
    parent = np.arange(n)
    spare = np.ones(len(order), np.bool_)
    for i in range(len(order) - 1, -1, -1):
        a, b = edges[order[i]]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a != b:
            parent[a] = b
            spare[i] = False
    return spare


def _uniform_non_edges(
    edges: NDArray[np.int64], size: int, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """`size` different pairs (size, 2) that are no edges, u < v, in random order, each as likely as any.

    Pairs are numbered row by row of the upper triangle; the non-edge of rank r has as number r plus the
    edges that come before it.
    """
    m = len(edges)
    n_absent = n * (n - 1) // 2 - m
    if n_absent < size:
        raise InputError(
            f"{size} non-edges are needed, but only {n_absent} pairs of the {n} nodes have no edge"
        )
    rows = np.arange(n)
    starts = rows * (2 * n - rows - 3) // 2 - 1  # pair (u, v) is number starts[u] + v
    numbers = np.sort(starts[edges[:, 0]] + edges[:, 1])
    ranks = _distinct(n_absent, size, rng)
    pairs = ranks + np.searchsorted(numbers - np.arange(m), ranks, side="right")
    sources = np.searchsorted(starts + rows + 1, pairs, side="right") - 1
    return np.column_stack([sources, pairs - starts[sources]])


def _distinct(total: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`size` different numbers below `total`, in random order, in time and memory O(size)."""
    if total < 4 * size:
        return rng.permutation(total)[:size]
    drawn = np.empty(0, np.int64)
    while len(drawn) < size:
        drawn = np.concatenate([drawn, rng.integers(total, size=2 * size)])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:size]


def _degree_non_edges(
    test: NDArray[np.int64], train: NDArray[np.int64], nodes: NDArray[Any], rng: np.random.Generator
) -> NDArray[np.int64]:
    """The ends of the test edges, then those of the others, paired anew: (m, 2), u < v, none an edge."""
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
        parts.append(_pair_anew(part, taken, n, rng))
        taken = np.sort(np.concatenate([taken, parts[-1] @ (n, 1)]))
    return np.concatenate(parts)


def _pair_anew(
    edges: NDArray[np.int64], taken: NDArray[np.int64], n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The ends of `edges` in other pairs, u < v, none twice, none with a key u · n + v in `taken` (sorted).

    Bad pairs are broken up together with as many others, chosen at random, until there are none.
    """
    pairs = edges.copy()
    keys = np.empty(len(pairs), np.int64)
    wrong = np.zeros(len(pairs), bool)
    again = np.arange(len(pairs))
    for _ in range(_MOST_ROUNDS):
        ends = np.sort(rng.permutation(pairs[again].ravel()).reshape(-1, 2), axis=1)
        pairs[again] = ends
        keys[again] = ends @ (n, 1)
        wrong[again] = (ends[:, 0] == ends[:, 1]) | _contains(taken, keys[again])
        ordered = np.sort(keys)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]
        bad = np.flatnonzero(wrong | _contains(repeated, keys))
        if not bad.size:
            return pairs
        again = np.union1d(bad, rng.integers(len(pairs), size=bad.size))
    raise InputError(
        f"no {len(edges)} non-edges found with the degrees of as many edges ({bad.size} missing): the graph "
        'is too small or too dense; use non_edges="uniform"'
    )


def _contains(ordered: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the keys are in a sorted array."""
    if not ordered.size:
        return np.zeros(len(keys), bool)
    places = np.searchsorted(ordered, keys)
    return np.asarray(ordered[np.minimum(places, len(ordered) - 1)] == keys)
