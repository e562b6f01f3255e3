"""Communities of a graph by Louvain's method, and the modularity of a partition."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from kernelne._common.checks import check_seed, encode_classes
from kernelne._common.jit import cached
from kernelne.errors import ParameterError
from kernelne.graph.ops import as_undirected

# A move must gain at least this share of the node's strength: smaller gains may be rounding and could cycle.
_LEAST_GAIN = 1e-10


def modularity(graph: Any, communities: ArrayLike, resolution: float = 1.0) -> float:
    """Newman's modularity of a partition: `communities` (n,), one value of any type per node.

    It is Σ over communities of inside/m - resolution · (volume/2m)², with weights; a self-loop adds twice its
    weight to the volume, direction is ignored, and a graph without edges has modularity 0.
    """
    matrix = _adjacency(graph)
    codes = encode_classes(communities, matrix.shape[0])
    gamma = _check_resolution(resolution)
    total = matrix.data.sum()
    if total == 0:
        return 0.0
    inside = matrix.data[np.repeat(codes, np.diff(matrix.indptr)) == codes[matrix.indices]].sum()
    volume = np.bincount(codes, matrix.sum(axis=1))
    return float(inside / total - gamma * np.square(volume / total).sum())


def louvain(graph: Any, *, resolution: float = 1.0, random_state: int = 0) -> NDArray[np.int64]:
    """Find communities by Louvain's method; returns (n,) int64, numbered from 0 by decreasing size.

    Nodes, in random order, join the neighbouring community that increases modularity most; a node is visited
    again after a neighbour has moved. Then communities become nodes, and so on until nothing changes. Weights
    are used, direction is ignored, an isolated node is its own community. A higher `resolution` gives smaller
    communities. The result depends on the seed: run several seeds and keep the highest `modularity`.
    """
    matrix = _adjacency(graph)
    gamma = _check_resolution(resolution)
    rng = np.random.default_rng(check_seed(random_state))
    membership = np.arange(matrix.shape[0])
    while True:
        queue = rng.permutation(matrix.shape[0])
        indices = (part.astype(np.int64, copy=False) for part in (matrix.indptr, matrix.indices))
        moved = _move_nodes(*indices, matrix.data, matrix.sum(axis=1), queue, gamma)
        communities = np.unique(moved, return_inverse=True)[1]
        membership = communities[membership]
        size = int(communities.max()) + 1
        if size == matrix.shape[0]:
            return _by_size(membership)
        rows = np.repeat(communities, np.diff(matrix.indptr))
        entries = (matrix.data, (rows, communities[matrix.indices]))
        matrix = scipy.sparse.coo_array(entries, shape=(size, size)).tocsr()


def _check_resolution(resolution: Any) -> float:
    good = isinstance(resolution, Real) and not isinstance(resolution, bool) and math.isfinite(resolution)
    if not good or resolution <= 0:
        raise ParameterError("resolution", resolution, "must be a positive number")
    return float(resolution)


def _adjacency(graph: Any) -> Any:
    """Return the symmetric (n, n) float64 csr_array; self-loops count twice, so row sums are strengths."""
    plain = as_undirected(graph)
    matrix = plain.to_scipy().astype(np.float64)
    rows = np.repeat(np.arange(plain.n_nodes), plain.degrees)
    matrix.data[rows == plain.neighbours] *= 2.0
    return matrix


def _by_size(membership: NDArray[np.int64]) -> NDArray[np.int64]:
    """Renumber communities by decreasing size, those of equal size by their first node."""
    _, first, codes, sizes = np.unique(membership, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(sizes.size, np.int64)
    rank[np.lexsort((first, -sizes))] = np.arange(sizes.size)
    return rank[codes]


@cached()
def _move_nodes(offsets, neighbours, weights, strength, queue, resolution):  # type: ignore[no-untyped-def]
    """Move single nodes from `queue` until it is empty; returns communities. Each node starts on its own.

    `queue` is a ring buffer of all nodes in some order; a node is queued again after a neighbour has moved.
    """
    n = len(strength)
    community = np.arange(n)
    volume = strength.copy()
    scale = resolution / max(strength.sum(), 1e-300)
    link = np.zeros(n)  # weight between the node and each community; zero except for those in `near`
    near = np.empty(n, np.int64)
    waiting = np.ones(n, np.bool_)
    head, n_waiting = 0, n
    while n_waiting > 0:
        v = queue[head]
        head = head + 1 if head + 1 < n else 0
        n_waiting -= 1
        waiting[v] = False
        n_near = 0
        for k in range(offsets[v], offsets[v + 1]):
            u = neighbours[k]
            if u != v:
                c = community[u]
                if link[c] == 0.0:
                    near[n_near] = c
                    n_near += 1
                link[c] += weights[k]
        home = community[v]
        volume[home] -= strength[v]
        best = home
        best_gain = link[home] - scale * strength[v] * volume[home] + _LEAST_GAIN * strength[v]
        for i in range(n_near):
            c = near[i]
            gain = link[c] - scale * strength[v] * volume[c]
            if gain > best_gain:
                best, best_gain = c, gain
            link[c] = 0.0
        volume[best] += strength[v]
        if best == home:
            continue
        community[v] = best
        for k in range(offsets[v], offsets[v + 1]):
            u = neighbours[k]
            if not waiting[u] and community[u] != best:
                waiting[u] = True
                queue[head + n_waiting if head + n_waiting < n else head + n_waiting - n] = u
                n_waiting += 1
    return community
