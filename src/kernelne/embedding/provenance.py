"""What an embedding tells of where it came from."""

from __future__ import annotations

import platform
from typing import Any

import numba
import numpy as np

from kernelne._version import __version__
from kernelne.graph import Graph


def describe_graph(graph: Graph) -> dict[str, Any]:
    """What provenance tells of the graph."""
    return {
        "fingerprint": graph.fingerprint,
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "directed": graph.directed,
        "weighted": graph.weights is not None,
    }


def versions() -> dict[str, str]:
    """What provenance tells of the software."""
    return {
        "kernelne": __version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
    }
