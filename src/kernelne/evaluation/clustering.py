"""Clusters of nodes by k-means on their vectors, against given classes or the graph's own communities."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelne.errors import InputError, ParameterError
from kernelne.evaluation.communities import as_undirected, check_seed, encode_classes, louvain, modularity
from kernelne.evaluation.links import check_vectors


@dataclass(frozen=True, eq=False)
class ClusterScores:
    """Clusters and how good they are; None where there was nothing to compare with.

    Attributes
    ----------
    assignment: (n,) int64, the cluster of each node, from 0.
    n_clusters: how many were asked for.
    nmi, ari: normalised mutual information and adjusted Rand index, against classes or communities.
    modularity: of the clusters in the graph.
    """

    assignment: NDArray[np.int64]
    n_clusters: int
    nmi: float | None
    ari: float | None
    modularity: float | None


def cluster_nodes(
    vectors: ArrayLike,
    *,
    n_clusters: int | None = None,
    labels: ArrayLike | None = None,
    graph: Any = None,
    n_init: int = 10,
    random_state: int = 0,
) -> ClusterScores:
    """k-means, the best of `n_init` starts, on vectors (n, d).

    labels: one class a node, (n,) of any kind; where there are none, the Louvain communities of `graph` under
    `random_state` stand for them. Row i of vectors and labels is node i of the graph. `n_clusters` is the
    number of these classes or communities unless given.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    table = check_vectors(vectors)
    seed = check_seed(random_state)
    plain = None if graph is None else as_undirected(graph)
    if plain is not None and plain.n_nodes != len(table):
        raise InputError(f"vectors: {len(table)} rows for a graph of {plain.n_nodes} nodes: give one a node")
    truth = None
    if labels is not None:
        truth = encode_classes(labels, len(table), "labels")
    elif plain is not None:
        truth = louvain(plain, random_state=seed)
    if n_clusters is None:
        if truth is None:
            raise ParameterError("n_clusters", None, "give a number, or labels or a graph to take it from")
        n_clusters = int(truth.max()) + 1
    _check_count("n_clusters", n_clusters, len(table))
    _check_count("n_init", n_init)
    means = KMeans(int(n_clusters), n_init=int(n_init), random_state=seed)
    assignment = means.fit_predict(table).astype(np.int64)
    return ClusterScores(
        assignment,
        int(n_clusters),
        None if truth is None else float(normalized_mutual_info_score(truth, assignment)),
        None if truth is None else float(adjusted_rand_score(truth, assignment)),
        None if plain is None else modularity(plain, assignment),
    )


def _check_count(name: str, value: Any, most: int | None = None) -> None:
    good = isinstance(value, Integral) and not isinstance(value, bool)
    if not good or value < 1 or (most is not None and value > most):
        limit = "at least 1" if most is None else f"from 1 to {most}, the number of nodes"
        raise ParameterError(name, value, f"must be a whole number, {limit}")
