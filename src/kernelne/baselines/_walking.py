"""Base class of the baselines that train on random walks: their parameters and their memory."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kernelne.baselines._base import Baseline
from kernelne.errors import ParameterError
from kernelne.graph import Graph, as_graph
from kernelne.progress import Report
from kernelne.training.config import TrainingConfig
from kernelne.training.cpu import backend as cpu


def check_rates(learning_rate: float, min_learning_rate: float) -> None:
    if min_learning_rate > learning_rate:
        raise ParameterError(
            "min_learning_rate", min_learning_rate, f"must not exceed learning_rate={learning_rate}"
        )


def tables_bytes(graph: Graph, dim: int) -> int:
    """Bytes of two tables and, while the noise distribution is built, of three float64 numbers per node."""
    thresholds = 0 if graph.weights is None else 4 * graph.neighbours.size
    return graph.n_nodes * (2 * 4 * dim + 24) + thresholds


class WalkBaseline(Baseline):
    """A baseline with KernelNE's parameters of the walks; p = q = 1 unless a subclass stores others."""

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

    def _config(self, seed: int, l2: float) -> TrainingConfig:
        """Return the settings of a run; the kernel in it is ignored by other losses."""
        return TrainingConfig(
            kernels=(("gaussian", 1.0),), learn_coefficients=False, dim=self.dim,
            walks_per_node=self.walks_per_node, walk_length=self.walk_length, window=self.window,
            n_negative=self.n_negative, shared_negatives=self.shared_negatives, p=self.p, q=self.q,
            learning_rate=self.learning_rate, min_learning_rate=self.min_learning_rate, l2=l2, coef_l2=0.0,
            coef_spread=0.0, deterministic=False, n_threads=self._threads(), seed=seed,
        )  # fmt: skip

    def _train(
        self, graph: Graph, seed: int, report: Report, loss: cpu.PairLoss, l2: float = 0.0
    ) -> NDArray[np.float32]:
        """Train on all walks with KernelNE's CPU backend; returns the center table."""
        prepared = cpu.prepare(graph, self._config(seed, l2))
        vectors: NDArray[np.float32] = cpu.run(prepared, cpu.start(prepared), None, report, loss).center
        return vectors

    def memory_bytes(self, graph: Any) -> int:
        checked: Graph = as_graph(graph)
        rows = 2 * self.walk_length + self.shared_negatives + 48
        scratch = 4 * rows * (self.dim + 16 + 5 * (self.walk_length + 16))
        return int(tables_bytes(checked, self.dim) + self._threads() * scratch)
