"""Sample edges to hide and pairs without an edge, to train and test link prediction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.errors import InputError
from kernelne.graph.graph import Graph
from kernelne.graph.ops import as_undirected, contains, edges_of, remove_edges

_MOST_ROUNDS = 500


def hide_edges(graph: Graph, share: float, rng: np.random.Generator) -> tuple[Graph, NDArray[np.int64]]:
    """Remove at most `share` of the edges at random; returns the graph and the removed edges (k, 2), u < v.

    Components stay connected (ignoring direction). At most half of the removable edges are removed: without
    all of them only trees would remain, which do not resemble the graph.
    """
    edges, _ = edges_of(as_undirected(graph))
    order = rng.permutation(len(edges))
    spare = order[spare_edges(edges, order, graph.n_nodes)]
    hidden = edges[np.sort(spare[: min(round(share * len(edges)), len(spare) // 2)])]
    return remove_edges(graph, hidden), hidden


def draw_non_edges(
    graph: Graph, edges: NDArray[np.int64], kind: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Sample k pairs without an edge for k `edges` (k, 2) of the graph; `kind` as in `split_links`."""
    known = edges_of(graph)[0]
    if kind == "uniform":
        return uniform_non_edges(known, len(edges), graph.n_nodes, rng)
    return pair_anew(edges, np.sort(known @ (graph.n_nodes, 1)), graph.n_nodes, rng)


def directed_pairs(
    graph: Graph, edges: NDArray[np.int64], absent: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the arcs of a directed graph along `edges`, and as many pairs that are none.

    The latter are half `absent` pairs, in either direction, and half reversed arcs, as far as there are any.
    """
    n = graph.n_nodes
    both: NDArray[np.int64] = np.concatenate([edges, edges[:, ::-1]])
    keys = np.sort(np.repeat(np.arange(n), graph.degrees) * n + graph.neighbours)
    there = contains(keys, both @ (n, 1))
    reversed_arcs = rng.permutation(both[~there])[: len(edges) // 2]
    turned = np.where((rng.random(len(absent)) < 0.5)[:, None], absent, absent[:, ::-1])
    arcs = both[there]
    return arcs, np.concatenate([reversed_arcs, turned[: len(arcs) - len(reversed_arcs)]])


@cached()
def spare_edges(edges, order, n):  # type: ignore[no-untyped-def]
    """Whether each edge in `order` can be removed after all removable edges before it, keeping components.

    The others are the spanning forest that Kruskal's method finds from the end of the order.
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


def uniform_non_edges(
    edges: NDArray[np.int64], size: int, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Sample `size` distinct non-edges (size, 2), u < v, uniformly and in random order.

    Pairs are numbered row by row in the upper triangle; the number of the non-edge of rank r is r plus the
    number of edges before it.
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
    """Sample `size` distinct integers below `total`, in random order, in O(size) time and memory."""
    if total < 4 * size:
        return rng.permutation(total)[:size]
    drawn = np.empty(0, np.int64)
    while len(drawn) < size:
        drawn = np.concatenate([drawn, rng.integers(total, size=2 * size)])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:size]


def pair_anew(
    edges: NDArray[np.int64], taken: NDArray[np.int64], n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Pair the nodes of `edges` anew: distinct pairs u < v, keys u · n + v not in `taken` (sorted).

    Invalid pairs are shuffled together with as many random others until all are valid.
    """
    pairs = edges.copy()
    keys = np.empty(len(pairs), np.int64)
    wrong = np.zeros(len(pairs), bool)
    again = np.arange(len(pairs))
    for _ in range(_MOST_ROUNDS):
        ends = np.sort(rng.permutation(pairs[again].ravel()).reshape(-1, 2), axis=1)
        pairs[again] = ends
        keys[again] = ends @ (n, 1)
        wrong[again] = (ends[:, 0] == ends[:, 1]) | contains(taken, keys[again])
        ordered = np.sort(keys)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]
        bad = np.flatnonzero(wrong | contains(repeated, keys))
        if not bad.size:
            return pairs
        again = np.union1d(bad, rng.integers(len(pairs), size=bad.size))
    raise InputError(
        f"cannot sample {len(edges)} non-edges with the degrees of the edges ({bad.size} missing): the graph "
        'is too small or too dense; use non_edges="uniform"'
    )
