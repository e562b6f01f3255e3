"""kernelne: node embeddings by kernel factorisation of random walks.

Names are imported on first use, so that `import kernelne` is fast and reading a file needs no compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernelne._version import __version__

if TYPE_CHECKING:
    from kernelne.comparison.compare import compare_methods
    from kernelne.datasets import load_dataset
    from kernelne.embedding import Embedding
    from kernelne.embedding.node_vectors import NodeVectors
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
    from kernelne.evaluation.link_splits import split_links
    from kernelne.evaluation.links import score_links
    from kernelne.evaluation.node_classifier import NodeClassifier
    from kernelne.graph import Graph
    from kernelne.graph.communities import louvain
    from kernelne.growth.follow import follow_edges
    from kernelne.growth.update import fold_in, update_embedding
    from kernelne.io.graphs.read_write import read_graph, write_graph
    from kernelne.io.labels import Labels
    from kernelne.io.read_labels import read_labels
    from kernelne.links.predictor import LinkPredictor
    from kernelne.links.ranking import rank_links, recommend_links
    from kernelne.model.own_kernels import register_kernel
    from kernelne.tuning import tune_embedding
    from kernelne.view.explorer import write_explorer
    from kernelne.view.plot import plot_map

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
    "NodeClassifier",
    "NodeVectors",
    "OutputError",
    "ParameterError",
    "UnknownNodeError",
    "__version__",
    "classify_nodes",
    "cluster_nodes",
    "compare_methods",
    "fold_in",
    "follow_edges",
    "load_dataset",
    "louvain",
    "plot_map",
    "rank_links",
    "read_graph",
    "read_labels",
    "recommend_links",
    "register_kernel",
    "score_links",
    "split_links",
    "tune_embedding",
    "update_embedding",
    "write_explorer",
    "write_graph",
]

_HOMES = {
    "Embedding": "embedding",
    "Graph": "graph",
    "KernelNE": "estimators",
    "Labels": "io.labels",
    "LinkPredictor": "links.predictor",
    "MKernelNE": "estimators",
    "NodeClassifier": "evaluation.node_classifier",
    "NodeVectors": "embedding.node_vectors",
    "classify_nodes": "evaluation.classification",
    "cluster_nodes": "evaluation.clustering",
    "compare_methods": "comparison.compare",
    "fold_in": "growth.update",
    "follow_edges": "growth.follow",
    "load_dataset": "datasets",
    "louvain": "graph.communities",
    "plot_map": "view.plot",
    "rank_links": "links.ranking",
    "recommend_links": "links.ranking",
    "register_kernel": "model.own_kernels",
    "read_graph": "io.graphs.read_write",
    "read_labels": "io.read_labels",
    "score_links": "evaluation.links",
    "split_links": "evaluation.link_splits",
    "tune_embedding": "tuning",
    "update_embedding": "growth.update",
    "write_explorer": "view.explorer",
    "write_graph": "io.graphs.read_write",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'kernelne' has no attribute {name!r}")
    return getattr(import_module(f"kernelne.{_HOMES.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
