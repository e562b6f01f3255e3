"""kernelne: node embeddings by kernel factorisation of random walks.

Names are loaded when first used, so that `import kernelne` is quick and reading a file needs no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernelne._version import __version__

if TYPE_CHECKING:
    from kernelne.comparison import compare_methods
    from kernelne.datasets import load_dataset
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
    from kernelne.evaluation.clustering import cluster_nodes
    from kernelne.evaluation.communities import louvain
    from kernelne.evaluation.link_splits import split_links
    from kernelne.evaluation.links import score_links
    from kernelne.explorer import write_explorer
    from kernelne.graph import Graph
    from kernelne.io import read_graph, write_graph
    from kernelne.labels import Labels, read_labels
    from kernelne.link_predictor import LinkPredictor
    from kernelne.node_vectors import NodeVectors
    from kernelne.plotting import plot_map
    from kernelne.tuning import tune_embedding

__all__ = [
    "DivergenceError",
    "Embedding",
    "FileFormatError",
    "Graph",
    "InputError",
    "KernelNE",
    "KernelneError",
    "Labels",
    "LinkPredictor",
    "MKernelNE",
    "MissingDependencyError",
    "NodeVectors",
    "OutputError",
    "ParameterError",
    "UnknownNodeError",
    "__version__",
    "classify_nodes",
    "cluster_nodes",
    "compare_methods",
    "load_dataset",
    "louvain",
    "plot_map",
    "read_graph",
    "read_labels",
    "score_links",
    "split_links",
    "tune_embedding",
    "write_explorer",
    "write_graph",
]

_HOMES = {
    "Embedding": "embedding",
    "Graph": "graph",
    "KernelNE": "estimators",
    "Labels": "labels",
    "LinkPredictor": "link_predictor",
    "MKernelNE": "estimators",
    "NodeVectors": "node_vectors",
    "classify_nodes": "evaluation.classification",
    "cluster_nodes": "evaluation.clustering",
    "compare_methods": "comparison",
    "load_dataset": "datasets",
    "louvain": "evaluation.communities",
    "plot_map": "plotting",
    "read_graph": "io",
    "read_labels": "labels",
    "score_links": "evaluation.links",
    "split_links": "evaluation.link_splits",
    "tune_embedding": "tuning",
    "write_explorer": "explorer",
    "write_graph": "io",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'kernelne' has no attribute {name!r}")
    return getattr(import_module(f"kernelne.{_HOMES.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
