"""What the baselines that train on random walks share: their parameters and what these need in memory."""

from __future__ import annotations

from typing import Any, ClassVar

from kernelne.baselines._base import Baseline
from kernelne.errors import ParameterError
from kernelne.graph import Graph, as_graph


def check_rates(learning_rate: float, min_learning_rate: float) -> None:
    if min_learning_rate > learning_rate:
        raise ParameterError(
            "min_learning_rate", min_learning_rate, f"must not exceed learning_rate={learning_rate}"
        )


def tables_bytes(graph: Graph, dim: int) -> int:
    """Two tables, and while the noise is prepared three float64 numbers a node."""
    thresholds = 0 if graph.weights is None else 4 * graph.neighbours.size
    return graph.n_nodes * (2 * 4 * dim + 24) + thresholds


class WalkBaseline(Baseline):
    """A baseline with the parameters of the walks, all as in KernelNE; p = q = 1 unless it stores others."""

    p: float = 1.0
    q: float = 1.0

    _counts: ClassVar[tuple[str, ...]] = (
        "walks_per_node",
        "walk_length",
        "window",
        "n_negative",
        "shared_negatives",
    )
    _numbers: ClassVar[dict[str, bool]] = {"learning_rate": True, "min_learning_rate": False}

    def _check(self) -> None:
        check_rates(self.learning_rate, self.min_learning_rate)

    def memory_bytes(self, graph: Any) -> int:
        checked: Graph = as_graph(graph)
        rows = 2 * self.walk_length + self.shared_negatives + 48
        scratch = 4 * rows * (self.dim + 16 + 5 * (self.walk_length + 16))
        return int(tables_bytes(checked, self.dim) + self._threads() * scratch)
