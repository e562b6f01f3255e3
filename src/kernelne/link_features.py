"""What is known of a pair of nodes from a graph and its embedding, as a row of numbers.

Every number is taken relative to its graph: logarithms less their mean, distances in units of the spread of
the vectors; and `LinkFeatures.table` standardises it by the graph's own random pairs, so that what was
learned on a graph with edges held out carries over to the whole one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelne._jit import cached
from kernelne.embedding import Embedding
from kernelne.evaluation.links import control_scores
from kernelne.graph import Graph
from kernelne.kernels import KERNELS

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
        self.spread = float(self.center.var(axis=0).sum()) or 1.0
        self.means = _neighbour_means(graph, self.center)
        degrees = np.log1p(graph.degrees.astype(np.float64))
        self.degrees = degrees - degrees.mean()
        self.norms = np.square(self.center).sum(axis=1) / self.spread
        raw, closeness = self._raw(reference)
        self.middle, self.scale = raw.mean(axis=0), raw.std(axis=0)
        self.scale[self.scale == 0] = 1.0
        self.unit = float(closeness.std()) or 1.0

    def table(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """(k, columns) of pairs (k, 2): standardised numbers, and last the prior."""
        blocks = [self._block(pairs[i : i + _BLOCK]) for i in range(0, len(pairs), _BLOCK)]
        return np.concatenate(blocks) if blocks else np.empty((0, self.middle.size + 1))

    def _block(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        raw, closeness = self._raw(pairs)
        prior = closeness / self.unit
        if self.by_degree:
            prior = prior + self.degrees[pairs[:, 0]] + self.degrees[pairs[:, 1]]
        return np.column_stack([(raw - self.middle) / self.scale, prior])

    def _raw(self, pairs: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Numbers (k, columns) in their own units, and closeness (k,): the mean of three log distances."""
        parts = [self._numbers(pairs[i : i + _BLOCK]) for i in range(0, len(pairs), _BLOCK)]
        raw, closeness = (np.concatenate(part) for part in zip(*parts, strict=True))
        return raw, closeness

    def _numbers(self, pairs: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        u, v = pairs.T
        distances = {name: np.log(_NEAR + d / self.spread) for name, d in self._distances(u, v)}
        near = [distances[name] for name in ("centers", "context", "means") if name in distances]
        du, dv = self.degrees[u], self.degrees[v]
        control = control_scores(self.graph, pairs)
        common = control["common_neighbours"]
        either = self.graph.degrees[u] + self.graph.degrees[v] - common
        paths = _paths_of_three(
            self.graph.offsets, self.graph.neighbours, u, v, np.argsort(u, kind="stable"), _LARGEST_HUB
        )
        columns = [
            *distances.values(),
            du + dv,
            du * dv,
            np.abs(du - dv),
            np.minimum(du, dv),
            np.minimum(self.norms[u], self.norms[v]),
            np.maximum(self.norms[u], self.norms[v]),
            np.log1p(common),
            np.log1p(control["adamic_adar"]),
            common / np.maximum(either, 1.0),
            np.log1p(paths),
        ]
        if self.mixture is not None:
            columns.append(self._affinity(u, v))
        return np.column_stack(columns).astype(np.float64), -np.mean(near, axis=0)

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
    return np.asarray(np.einsum("ij,ij->i", difference, difference))


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
    """For each pair the paths u – a – b – v, each weighed 1/√(degree of a · degree of b).

    `order` visits pairs of one u together: what two steps from u reach is found once for all of them.
    """
    n = offsets.size - 1
    weights = np.zeros(n)
    touched = np.empty(n, np.int64)
    paths = np.zeros(u.size)
    last = -1
    n_touched = 0
    for i in order:
        if u[i] != last:
            last = u[i]
            for t in range(n_touched):
                weights[touched[t]] = 0.0
            n_touched = 0
            for e in range(offsets[last], offsets[last + 1]):
                a = neighbours[e]
                degree = offsets[a + 1] - offsets[a]
                if degree > largest or a == last:
                    continue
                for f in range(offsets[a], offsets[a + 1]):
                    b = neighbours[f]
                    if weights[b] == 0.0:
                        touched[n_touched] = b
                        n_touched += 1
                    weights[b] += 1.0 / np.sqrt(degree)
        for e in range(offsets[v[i]], offsets[v[i] + 1]):
            b = neighbours[e]
            if b != last and weights[b] > 0.0:
                paths[i] += weights[b] / np.sqrt(offsets[b + 1] - offsets[b])
    return paths
