"""Graphs that were not used to find the rules of the default, chosen before the search began.

Ten labelled graphs from four sources: planted partitions, LFR graphs, nearest-neighbour graphs of
scikit-learn's data sets, and graphs of networkx. Seeds are part of the names. Do not tune on these graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelne import Graph
from kernelne.datasets import load_dataset

#: The parameters for all graphs.
SEEDS = (11, 12, 13)
_NEIGHBOURS = 10


def _generated(name: str) -> tuple[Graph, Any]:
    dataset = load_dataset(name)
    return dataset.graph, dataset.labels.indicator


def _nearest(name: str) -> tuple[Graph, Any]:
    """Link every sample to its nearest neighbours, by standardised features."""
    import sklearn.datasets
    from sklearn.neighbors import kneighbors_graph
    from sklearn.preprocessing import StandardScaler

    samples = getattr(sklearn.datasets, f"load_{name}")()
    graph = kneighbors_graph(StandardScaler().fit_transform(samples.data), _NEIGHBOURS)
    return Graph.from_scipy(graph.maximum(graph.T)), samples.target


def _networkx(name: str) -> tuple[Graph, Any]:
    """Return a networkx graph, unweighted, with its known groups."""
    import networkx as nx

    if name == "karate":
        graph = nx.karate_club_graph()
        labels = [graph.nodes[v]["club"] for v in graph]
    elif name == "caveman":
        graph = nx.relaxed_caveman_graph(60, 20, 0.25, seed=5)
        labels = [v // 20 for v in graph]
    else:
        graph = nx.gaussian_random_partition_graph(2000, 50, 10, 0.2, 0.005, seed=6)
        groups = graph.graph["partition"]
        labels = [next(k for k, group in enumerate(groups) if v in group) for v in graph]
    return Graph.from_networkx(graph, weight="unweighted"), np.array(labels)


CHECKS: dict[str, Callable[[], tuple[Graph, Any]]] = {
    "planted, easy": lambda: _generated("planted:n=2000,k=10,p_in=0.05,p_out=0.0028,seed=1"),
    "planted, hard": lambda: _generated("planted:n=5000,k=20,p_in=0.032,p_out=0.0017,seed=2"),
    "lfr 0.3": lambda: _generated("lfr:n=3000,mu=0.3,seed=3"),
    "lfr 0.6": lambda: _generated("lfr:n=3000,mu=0.6,seed=4"),
    "digits": lambda: _nearest("digits"),
    "wine": lambda: _nearest("wine"),
    "breast cancer": lambda: _nearest("breast_cancer"),
    "karate": lambda: _networkx("karate"),
    "caveman": lambda: _networkx("caveman"),
    "gaussian partition": lambda: _networkx("gaussian partition"),
}
