"""Small built-in graphs: karate, lesmis and digits."""

from __future__ import annotations

import numpy as np

from kernelne._common.fork import fork_safe_openmp
from kernelne.errors import MissingDependencyError
from kernelne.graph import Graph
from kernelne.io.labels import Labels

_NEIGHBOURS = 10

# Each member and the members with a higher number he met outside the club, numbered from 0.
_KARATE = (
    "0 1 2 3 4 5 6 7 8 10 11 12 13 17 19 21 31|1 2 3 7 13 17 19 21 30|2 3 7 8 9 13 27 28 32|3 7 12 13|4 6 10|"
    "5 6 10 16|6 16|8 30 32 33|9 33|13 33|14 32 33|15 32 33|18 32 33|19 33|20 32 33|22 32 33|"
    "23 25 27 29 32 33|24 25 27 31|25 31|26 29 33|27 33|28 31 33|29 32 33|30 32 33|31 32 33|32 33"
)
_OFFICERS = {9, 14, 15, 18, 20, *range(22, 34)}


def karate() -> tuple[Graph, Labels]:
    """Zachary's karate club: 34 members, 78 friendships, and whom each followed when the club split."""
    rows = [np.array(row.split(), np.int64) for row in _KARATE.split("|")]
    sources = np.concatenate([np.full(len(row) - 1, row[0]) for row in rows])
    members = np.arange(34)
    clubs = ["Officer" if member in _OFFICERS else "Mr. Hi" for member in members]
    graph = Graph.from_edges(sources, np.concatenate([row[1:] for row in rows]), nodes=members)
    return graph, Labels.from_values(members, clubs)


def lesmis() -> tuple[Graph, None]:
    """Les Misérables: 77 characters by name; the weight is the number of chapters two appear in together."""
    try:
        import networkx
    except ImportError:
        raise MissingDependencyError("networkx", "graphs") from None
    return Graph.from_networkx(networkx.les_miserables_graph()), None


def digits() -> tuple[Graph, Labels]:
    """Scikit-learn's 1,797 images of handwritten digits, each joined to its 10 nearest, and the digits."""
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    images = load_digits()
    with fork_safe_openmp():
        near = kneighbors_graph(images.data, _NEIGHBOURS, mode="connectivity")
    graph = Graph.from_scipy(near.maximum(near.T))
    return graph, Labels.from_values(graph.nodes, images.target.astype(np.int64))
