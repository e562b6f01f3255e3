"""What is known of a pair of nodes from a graph and its embedding, as a row of numbers.

Distances, degrees and norms are taken relative to the graph and standardised by its own random pairs, so that
what was learned on a graph with edges held out carries over to the whole one. Counts of shared neighbours and
paths stay as they are: in a large graph hardly a random pair has any, which would be no measure for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelne._jit import cached
from kernelne.embedding import Embedding
from kernelne.graph import Graph
from kernelne.graph.ops import common_neighbours, loopless_degrees
from kernelne.model.kernels import KERNELS

_BLOCK = 2**14  # pairs at a time: 128 dimensions make 8 MB a table
#: Added to squared distances before the logarithm, in units of the spread: what is nearer is the same place.
_NEAR = 0.05
#: Paths through larger hubs say little of a pair, and finding them costs most.
_LARGEST_HUB = 1000


class LinkFeatures:
    """The numbers of any pairs of a graph's nodes.

    graph: undirected. embedding: of the same nodes in the same order. by_degree: whether degrees count for
    the `prior`. `reference` (k, 2): random pairs, by which the numbers are standardised.
    """

    def __init__(
        self, graph: Graph, embedding: Embedding, reference: NDArray[np.int64], by_degree: bool
    ) -> None:
        self.graph = graph
        self.by_degree = by_degree
        self.center = embedding.vectors if embedding.center is None else embedding.center
        self.context = embedding.context
        self.mixture = None
        if self.context is not None and embedding.kernels and embedding.coefficients is not None:
            self.mixture = list(zip(embedding.kernels, embedding.coefficients, strict=True))
        self.spread = float(self.center.var(axis=0, dtype=np.float64).sum()) or 1.0
        self.means = _neighbour_means(graph, self.center)
        self.n_neighbours = loopless_degrees(graph)
        degrees = np.log1p(self.n_neighbours.astype(np.float64))
        self.degrees = degrees - degrees.mean()
        self.norms = np.einsum("ij,ij->i", self.center, self.center, dtype=np.float64) / self.spread
        relative, _, closeness = self._numbers(reference)
        self.middle, self.scale = relative.mean(axis=0), relative.std(axis=0)
        self.scale[self.scale <= 1e-9 * (1.0 + np.abs(self.middle))] = 1.0
        self.unit = float(closeness.std()) or 1.0

    def tables(self, pairs: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
        """Tables (rows, columns) of pairs (k, 2), block by block: the numbers, and last the prior."""
        for first in range(0, len(pairs), _BLOCK):
            block = pairs[first : first + _BLOCK]
            relative, counts, closeness = self._numbers(block)
            prior = closeness / self.unit
            if self.by_degree:
                prior = prior + self.degrees[block[:, 0]] + self.degrees[block[:, 1]]
            table = np.column_stack([(relative - self.middle) / self.scale, counts, prior])
            yield table.round(
                9
            )  # so that (u, v) and (v, u), summed in another order, fall into the same leaf

    def table(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """The tables of at least one pair in one."""
        return np.concatenate(list(self.tables(pairs)))

    def _numbers(
        self, pairs: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Numbers to be standardised, counts, and closeness (k,): less the mean of the log distances."""
        u, v = pairs.T
        distances = {name: np.log(_NEAR + d / self.spread) for name, d in self._distances(u, v)}
        near = [distances[name] for name in ("centers", "context", "means") if name in distances]
        du, dv = self.degrees[u], self.degrees[v]
        offsets, neighbours = self.graph.offsets, self.graph.neighbours
        common, adamic_adar = common_neighbours(offsets, neighbours, self.n_neighbours, pairs)
        either = self.n_neighbours[u] + self.n_neighbours[v] - common
        paths = _paths_of_three(offsets, neighbours, u, v, np.argsort(u, kind="stable"), _LARGEST_HUB)
        relative = [
            *distances.values(),
            du + dv,
            du * dv,
            np.abs(du - dv),
            np.minimum(du, dv),
            np.minimum(self.norms[u], self.norms[v]),
            np.maximum(self.norms[u], self.norms[v]),
        ]
        if self.mixture is not None:
            relative.append(self._affinity(u, v))
        counts = [np.log1p(common), np.log1p(adamic_adar), common / np.maximum(either, 1.0), np.log1p(paths)]
        return (
            np.column_stack(relative).astype(np.float64),
            np.column_stack(counts),
            -np.asarray(np.mean(near, axis=0, dtype=np.float64)),
        )

    def _distances(self, u: NDArray[np.int64], v: NDArray[np.int64]) -> Iterator[tuple[str, NDArray[Any]]]:
        """Squared distances of the ends: to each other, to each other's neighbours, between neighbours."""
        yield "centers", _squares(self.center[u], self.center[v])
        if self.context is not None:
            there, back = self._across(u, v)
            yield "context", there + back
            yield "contexts", _squares(self.context[u], self.context[v])
        there, back = _squares(self.center[u], self.means[v]), _squares(self.means[u], self.center[v])
        yield "nearer", np.minimum(there, back)
        yield "farther", np.maximum(there, back)
        yield "means", _squares(self.means[u], self.means[v])

    def _across(self, u: NDArray[np.int64], v: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        assert self.context is not None
        return _squares(self.center[u], self.context[v]), _squares(self.context[u], self.center[v])

    def _affinity(self, u: NDArray[np.int64], v: NDArray[np.int64]) -> NDArray[np.float64]:
        """What the trained model itself makes of the pair: the mixture of kernels, both ways."""
        total = np.zeros(len(u))
        for distance in self._across(u, v):
            for (name, sigma), coefficient in self.mixture or ():
                total += coefficient * KERNELS[name](distance.astype(np.float64), sigma)[0]
        return total


def _squares(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    difference = a - b
    return np.asarray(np.einsum("ij,ij->i", difference, difference, dtype=np.float64))


def _neighbour_means(graph: Graph, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean vector of each node's neighbours, (n, d); its own where it has none."""
    adjacency = graph.to_scipy()
    sums = np.asarray(adjacency.sum(axis=1)).ravel()
    scaled = scipy.sparse.diags_array(np.divide(1.0, sums, where=sums > 0, out=np.zeros_like(sums)))
    means = np.asarray((scaled.astype(np.float32) @ adjacency) @ vectors)
    means[sums == 0] = vectors[sums == 0]
    return means


@cached()
def _paths_of_three(offsets, neighbours, u, v, order, largest):  # type: ignore[no-untyped-def]
    """For each pair the paths u – a – b – v over four nodes, each weighed 1/√(degree of a · degree of b).

    Nodes of more than `largest` neighbours are passed over as a and as b. `order` visits pairs of one u
    together: what two steps from u reach is found once for all of them.
    """
    n = offsets.size - 1
    reached = np.zeros(n)  # Σ 1/√degree over the a between u and this node
    touched = np.empty(n, np.int64)
    paths = np.zeros(u.size)
    last, n_touched = -1, 0
    for i in order:
        if u[i] != last:
            for t in range(n_touched):
                reached[touched[t]] = 0.0
            last, n_touched = u[i], 0
            for e in range(offsets[last], offsets[last + 1]):
                a = neighbours[e]
                degree = offsets[a + 1] - offsets[a]
                if degree > largest or a == last:
                    continue
                for f in range(offsets[a], offsets[a + 1]):
                    b = neighbours[f]
                    if b == a:
                        continue
                    if reached[b] == 0.0:
                        touched[n_touched] = b
                        n_touched += 1
                    reached[b] += 1.0 / np.sqrt(degree)
        end = v[i]
        own_degree = offsets[end + 1] - offsets[end]
        joined = False  # an edge u – v: then v itself is among the a, and is no step on the way to v
        for e in range(offsets[end], offsets[end + 1]):
            joined = joined or neighbours[e] == last
        through_end = 1.0 / np.sqrt(own_degree) if joined and own_degree <= largest else 0.0
        for e in range(offsets[end], offsets[end + 1]):
            b = neighbours[e]
            degree = offsets[b + 1] - offsets[b]
            if b != last and b != end and degree <= largest and reached[b] > 0.0:
                paths[i] += (reached[b] - through_end) / np.sqrt(degree)
    return paths
