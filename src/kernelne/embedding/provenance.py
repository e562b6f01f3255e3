"""The parts of an embedding's provenance that describe the graph and the software."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from typing import Any

import numba
import numpy as np

from kernelne._version import __version__
from kernelne.graph import Graph
from kernelne.model.kernels import own_hashes


def describe_graph(graph: Graph) -> dict[str, Any]:
    """Return the provenance of the graph."""
    return {
        "fingerprint": graph.fingerprint,
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "directed": graph.directed,
        "weighted": graph.weights is not None,
    }


def changed_kernels(provenance: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Return the names of own kernels that are other functions now than in the training."""
    trained = provenance.get("own_kernels")
    known = trained if isinstance(trained, Mapping) else {}
    return [name for name, key in own_hashes(names).items() if known.get(name, key) != key]


def versions() -> dict[str, str]:
    """Return the versions of the software."""
    return {
        "kernelne": __version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
    }
