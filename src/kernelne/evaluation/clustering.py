"""k-means clustering of nodes by their vectors, compared with classes or with Louvain communities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._common.checks import check_count, check_seed, check_vectors, encode_labels, ids_of
from kernelne._common.fork import fork_safe_openmp
from kernelne._common.html import html_facts
from kernelne.errors import InputError, ParameterError
from kernelne.graph.communities import louvain, modularity
from kernelne.graph.ops import as_undirected
from kernelne.io.labels import Labels, by_id


@dataclass(frozen=True, eq=False)
class ClusterScores:
    """Clusters and their scores; a score is None if there was nothing to compare with.

    Attributes
    ----------
    assignment: (n,) int64, the cluster of each node, from 0.
    n_clusters: number of clusters requested.
    nmi, ari: normalised mutual information and adjusted Rand index, against classes or communities.
    n_compared: number of nodes that nmi and ari are computed over: those with a label.
    modularity: modularity of the clusters in the graph.
    """

    assignment: NDArray[np.int64]
    n_clusters: int
    nmi: float | None
    ari: float | None
    modularity: float | None
    n_compared: int | None = None

    def __repr__(self) -> str:
        scores = {"NMI": self.nmi, "ARI": self.ari, "modularity": self.modularity}
        told = "".join(f", {name} {value:.3f}" for name, value in scores.items() if value is not None)
        return f"<ClusterScores: {self.n_clusters:,} clusters of {len(self.assignment):,} nodes{told}>"

    def _repr_html_(self) -> str:
        names = ("n_clusters", "nmi", "ari", "modularity", "n_compared")
        return html_facts("clusters", {name: getattr(self, name) for name in names})


def cluster_nodes(
    vectors: Any,
    *,
    n_clusters: int | None = None,
    labels: Any = None,
    graph: Any = None,
    n_init: int = 10,
    random_state: int = 0,
) -> ClusterScores:
    """Cluster vectors, an array (n, d) or an Embedding, by k-means, the best of `n_init` starts.

    labels: one class per node, (n,) of any dtype; or Labels, which may lack some nodes: these are clustered
    but not compared. Without labels, the Louvain communities of `graph` (seed `random_state`) are used.
    Row i of arrays is node i of the graph; an Embedding and Labels are matched by node id. `n_clusters`
    defaults to the number of classes or communities.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    seed = check_seed(random_state)
    plain = None if graph is None else as_undirected(graph)
    table = check_vectors(vectors, plain)
    rows = np.arange(len(table))
    truth = None
    nodes = ids_of(vectors) if plain is None else plain.nodes
    labels = by_id(labels, nodes)
    if isinstance(labels, Labels):
        if nodes is None:
            raise InputError("labels: Labels go by node id: give an Embedding or a graph, or labels.single")
        rows, truth = labels.single_for(nodes)
        if not len(rows):
            raise InputError("labels: none of the nodes has a label")
    elif labels is not None:
        truth = encode_labels(labels, len(table))
    elif plain is not None:
        truth = louvain(plain, random_state=seed)
    if n_clusters is None:
        if truth is None:
            raise ParameterError("n_clusters", None, "give a number, or labels or a graph to take it from")
        n_clusters = len(np.unique(truth))
    check_count("n_clusters", n_clusters, len(table))
    check_count("n_init", n_init)
    means = KMeans(int(n_clusters), n_init=int(n_init), random_state=seed)
    with fork_safe_openmp():
        assignment = means.fit_predict(table).astype(np.int64)
    return ClusterScores(
        assignment,
        int(n_clusters),
        None if truth is None else float(normalized_mutual_info_score(truth, assignment[rows])),
        None if truth is None else float(adjusted_rand_score(truth, assignment[rows])),
        None if plain is None else modularity(plain, assignment),
        None if truth is None else len(rows),
    )
