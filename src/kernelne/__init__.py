"""kernelne: node embeddings by kernel factorisation of random walks."""

from kernelne._version import __version__
from kernelne.embedding import Embedding
from kernelne.errors import (
    DivergenceError,
    FileFormatError,
    InputError,
    KernelneError,
    MissingDependencyError,
    OutputError,
    ParameterError,
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
    "__version__",
    "classify_nodes",
    "read_graph",
    "write_graph",
]
