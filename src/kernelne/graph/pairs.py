"""Edges to hide and pairs without an edge, drawn at random, for learning and testing link prediction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelne._jit import cached
from kernelne.errors import InputError
from kernelne.graph.graph import Graph
from kernelne.graph.ops import as_undirected, contains, edges_of, remove_edges

_MOST_ROUNDS = 500


def hide_edges(graph: Graph, share: float, rng: np.random.Generator) -> tuple[Graph, NDArray[np.int64]]:
    """A graph without some of its edges, and these (k, 2), u < v: at most this share, chosen at random.

    Directions aside its components stay connected. At most half of the edges that could go are taken: with
    all gone, trees would be left, which look like nothing the graph was.
    """
    edges, _ = edges_of(as_undirected(graph))
    order = rng.permutation(len(edges))
    spare = order[spare_edges(edges, order, graph.n_nodes)]
    hidden = edges[np.sort(spare[: min(round(share * len(edges)), len(spare) // 2)])]
    return remove_edges(graph, hidden), hidden


def draw_non_edges(
    graph: Graph, edges: NDArray[np.int64], kind: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    """As many pairs without an edge as `edges` (k, 2), some of the graph's; kinds as in `split_links`."""
    known = edges_of(graph)[0]
    if kind == "uniform":
        return uniform_non_edges(known, len(edges), graph.n_nodes, rng)
    return pair_anew(edges, np.sort(known @ (graph.n_nodes, 1)), graph.n_nodes, rng)


@cached()
def spare_edges(edges, order, n):  # type: ignore[no-untyped-def]
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


def uniform_non_edges(
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


def pair_anew(
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
        wrong[again] = (ends[:, 0] == ends[:, 1]) | contains(taken, keys[again])
        ordered = np.sort(keys)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]
        bad = np.flatnonzero(wrong | contains(repeated, keys))
        if not bad.size:
            return pairs
        again = np.union1d(bad, rng.integers(len(pairs), size=bad.size))
    raise InputError(
        f"no {len(edges)} non-edges found with the degrees of as many edges ({bad.size} missing): the graph "
        'is too small or too dense; use non_edges="uniform"'
    )
