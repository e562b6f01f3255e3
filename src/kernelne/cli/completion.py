"""Shell completion of the values of options and arguments.

The names are copied here because importing the modules that define them takes a second, for which the shell
would wait. A test compares the copies with the originals.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

Completion = Callable[[str], list[str]]

DATASETS = (
    "citeseer", "cora", "dblp", "ppi", "astroph", "hepth", "facebook", "gnutella", "dolphins",
    "karate", "lesmis", "digits", "erdos_renyi", "planted", "lfr",
)  # fmt: skip
METHODS = (
    "mkernelne", "kernelne-gauss", "kernelne-sch", "mkernelne-gauss", "mkernelne-sch", "weightedmf",
    "deepwalk", "node2vec", "line", "hope", "netmf", "verse", "prone", "gemsec", "mnmf",
)  # fmt: skip
KERNELS = ("gaussian", "schoenberg", "inverse_multiquadric")
LAYOUTS = ("auto", "map", "pca", "tsne", "umap")
METRICS = ("cosine", "euclidean")
VECTORS = ("center", "sum", "concat", "smooth", "joint")
OPERATORS = ("l2", "l1", "hadamard", "average")
NON_EDGES = ("uniform", "degree")
BACKENDS = ("cpu", "gpu")
ENGINES = ("memory", "disk", "ray")


def one_of(*names: str) -> Completion:
    """Return a function that completes to these names."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def graph_or_labels(incomplete: str) -> list[str]:
    """Complete to datasets and files; if no dataset matches, the shell completes files by itself.

    Files whose names need quoting are also left to the shell.
    """
    datasets = one_of(*DATASETS)(incomplete)
    try:
        with os.scandir() as entries:
            files = sorted(entry.name + "/" * entry.is_dir() for entry in entries)
    except OSError:
        files = []
    plain = [name for name in files if re.fullmatch(r"\w[\w@%+=,./-]*", name)]
    return datasets + one_of(*plain)(incomplete) if datasets else []


def methods(incomplete: str) -> list[str]:
    """Complete a list of methods separated by commas, each at most once."""
    given, comma, last = incomplete.rpartition(",")
    rest = [name for name in METHODS if name not in given.split(",")]
    return [given + comma + name for name in one_of(*rest)(last)]
