"""Features of node pairs, computed from a graph and its embedding.

Distances, degrees and norms are standardised by the mean and standard deviation over random pairs of the same
graph, so that a model trained on a graph with edges held out can be applied to the whole graph. Counts of
common neighbours and of paths are not standardised: in a large graph almost no random pair has any, so their
standard deviation over random pairs is no useful scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.embedding import Embedding
from kernelne.graph import Graph
from kernelne.graph.ops import as_undirected, common_neighbours, loopless_degrees
from kernelne.model.kernels import KERNELS

_BLOCK = 2**14  # pairs per block: 8 MB per table at 128 dimensions
#: Added to squared distances before the logarithm, in units of the spread: smaller distances count as equal.
_NEAR = 0.05
#: Paths through nodes of higher degree say little about a pair and are the most expensive to find.
_LARGEST_HUB = 1000


class Standard(NamedTuple):
    """Mean and standard deviation (f,) of the features over random pairs, and that of the closeness."""

    middle: NDArray[np.float64]
    scale: NDArray[np.float64]
    unit: float


class LinkFeatures:
    """Computes the features of node pairs.

    graph: the graph; if it is directed, pairs (u, v) and (v, u) have different features. embedding: an
    embedding of its nodes, in the same order. reference: (k, 2) random pairs, used to standardise the
    features, or the Standard of other ones. by_degree: whether degrees are part of the prior.
    """

    def __init__(
        self,
        given: Graph,
        embedding: Embedding,
        reference: NDArray[np.int64] | Standard,
        by_degree: bool,
    ) -> None:
        self.graph = graph = as_undirected(given)
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
        self.out_degrees = self.in_degrees = self.degrees
        self.directed = given.directed
        if given.directed:
            arcs = given.degrees, np.bincount(given.neighbours, minlength=given.n_nodes)
            self.out_degrees, self.in_degrees = (np.log1p(each) - np.log1p(each).mean() for each in arcs)
        self.norms = np.einsum("ij,ij->i", self.center, self.center, dtype=np.float64) / self.spread
        self.standard = reference if isinstance(reference, Standard) else self._standard(reference)

    def _standard(self, pairs: NDArray[np.int64]) -> Standard:
        relative, _, closeness = self._numbers(pairs)
        middle, scale = relative.mean(axis=0), relative.std(axis=0)
        scale[scale <= 1e-9 * (1.0 + np.abs(middle))] = 1.0
        return Standard(middle, scale, float(closeness.std()) or 1.0)

    def tables(self, pairs: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
        """Yield the features of pairs (k, 2), block by block: (rows, columns), the prior last."""
        for first in range(0, len(pairs), _BLOCK):
            block = pairs[first : first + _BLOCK]
            relative, counts, closeness = self._numbers(block)
            prior = closeness / self.standard.unit
            if self.by_degree:
                prior = prior + self.out_degrees[block[:, 0]] + self.in_degrees[block[:, 1]]
            table = np.column_stack([(relative - self.standard.middle) / self.standard.scale, counts, prior])
            # (u, v) and (v, u) are summed in a different order: rounded, they fall into the same leaf.
            yield table.round(9)

    def table(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the features of pairs (k, 2), k ≥ 1, as one array (k, columns)."""
        return np.concatenate(list(self.tables(pairs)))

    def _numbers(
        self, pairs: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return features to standardise, counts, and closeness (k,): minus the mean of the log distances."""
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
            relative += [sum(self._affinities(u, v))]
        if self.directed:
            relative += self._directions(u, v)
        counts = [np.log1p(common), np.log1p(adamic_adar), common / np.maximum(either, 1.0), np.log1p(paths)]
        return (
            np.column_stack(relative).astype(np.float64),
            np.column_stack(counts),
            -np.asarray(np.mean(near, axis=0, dtype=np.float64)),
        )

    def _distances(self, u: NDArray[np.int64], v: NDArray[np.int64]) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield squared distances between u and v, to each other's neighbours, and between neighbours."""
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

    def _affinities(self, u: NDArray[np.int64], v: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
        """Yield the affinity of pairs in the trained model, the mixture of kernels: from u to v, and back."""
        for distance in self._across(u, v):
            yield np.sum(
                [c * KERNELS[name](distance, sigma)[0] for (name, sigma), c in self.mixture or ()], axis=0
            )

    def _directions(self, u: NDArray[np.int64], v: NDArray[np.int64]) -> list[NDArray[Any]]:
        """Return what tells an arc from u to v and one from v to u apart."""
        told = [each[ends] for each in (self.out_degrees, self.in_degrees) for ends in (u, v)]
        if self.context is not None:
            told += [np.log(_NEAR + distance / self.spread) for distance in self._across(u, v)]
        if self.mixture is not None:
            there, back = self._affinities(u, v)
            told += [there, there - back]
        return told


def _squares(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    difference = a - b
    return np.asarray(np.einsum("ij,ij->i", difference, difference, dtype=np.float64))


def _neighbour_means(graph: Graph, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean vector of each node's neighbours, (n, d); for a node without any, its own vector."""
    adjacency = graph.to_scipy()
    sums = np.asarray(adjacency.sum(axis=1)).ravel()
    scaled = scipy.sparse.diags_array(np.divide(1.0, sums, where=sums > 0, out=np.zeros_like(sums)))
    means = np.asarray((scaled.astype(np.float32) @ adjacency) @ vectors)
    means[sums == 0] = vectors[sums == 0]
    return means


@cached()
def _paths_of_three(offsets, neighbours, u, v, order, largest):  # type: ignore[no-untyped-def]
    """Sum, for each pair, the paths u – a – b – v over four nodes, weighted 1/√(degree of a · degree of b).

    Nodes with more than `largest` neighbours are skipped as a and as b. `order` visits the pairs with the
    same u together, so that the nodes two steps from u are computed once for all of them.
    """
    n = offsets.size - 1
    reached = np.zeros(n)  # Σ 1/√degree over the nodes a between u and this node
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
        joined = False  # whether u – v is an edge: then v itself is among the nodes a and must not be counted
        for e in range(offsets[end], offsets[end + 1]):
            joined = joined or neighbours[e] == last
        through_end = 1.0 / np.sqrt(own_degree) if joined and own_degree <= largest else 0.0
        for e in range(offsets[end], offsets[end + 1]):
            b = neighbours[e]
            degree = offsets[b + 1] - offsets[b]
            if b != last and b != end and degree <= largest and reached[b] > 0.0:
                paths[i] += (reached[b] - through_end) / np.sqrt(degree)
    return paths
