"""kernelne: node embeddings by kernel factorisation of random walks.

Names are loaded when first used, so that `import kernelne` is quick and reading a file needs no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernelne._version import __version__

if TYPE_CHECKING:
    from kernelne.embedding import Embedding
    from kernelne.errors import (
        DivergenceError,
        FileFormatError,
        InputError,
        KernelneError,
        MissingDependencyError,
        OutputError,
        ParameterError,
        UnknownNodeError,
    )
    from kernelne.estimators import KernelNE, MKernelNE
    from kernelne.evaluation.classification import classify_nodes
    from kernelne.graph import Graph
    from kernelne.io import read_graph, write_graph

__all__ = [
    "DivergenceError",
    "Embedding",
    "FileFormatError",
    "Graph",
    "InputError",
    "KernelNE",
    "KernelneError",
    "MKernelNE",
    "MissingDependencyError",
    "OutputError",
    "ParameterError",
    "UnknownNodeError",
    "__version__",
    "classify_nodes",
    "read_graph",
    "write_graph",
]

_HOMES = {
    "Embedding": "embedding",
    "Graph": "graph",
    "KernelNE": "estimators",
    "MKernelNE": "estimators",
    "classify_nodes": "evaluation.classification",
    "read_graph": "io",
    "write_graph": "io",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'kernelne' has no attribute {name!r}")
    return getattr(import_module(f"kernelne.{_HOMES.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
