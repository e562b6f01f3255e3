"""What training tests share: the loop run on chosen walks, and the oracle on the same walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oracle import config, judge

from kernelne._common.jit import cached
from kernelne.graph import Graph
from kernelne.model.kernels import KERNELS
from kernelne.model.mixture import Moments, n_sums
from kernelne.model.objective import Gradients, WalkPairs, walk_pairs
from kernelne.training.backend import OnBlock, go_on
from kernelne.training.backend import train as train_by
from kernelne.training.config import TrainingConfig
from kernelne.training.cpu import backend as cpu
from kernelne.training.cpu import loop
from kernelne.training.cpu.evaluate import FAST
from kernelne.training.cpu.loop import Mixture, Step, Tables
from kernelne.training.cpu.scratch import Scratch, make_scratch
from kernelne.training.state import TrainingState
from kernelne.walks.negatives import alias_table, draw_alias
from kernelne.walks.rng import NOISE, draw, stream_key
from kernelne.walks.sample import WalkPlan, sample_walks, walk_graph

__all__ = ["Problem", "config"]

#: The loop over walks by itself, which a run has only as a part of `train_part`.
train_walks = cached(error_model="numpy", fastmath=FAST, _nrt=False)(loop.train_walks.py_func)


@dataclass(repr=False)
class Problem:
    """A graph, settings and tables: enough to train on any walk twice, by the loop and by the oracle."""

    graph: Graph
    kernels: list[tuple[str, float]]
    coefficients: NDArray[np.float64]
    center: NDArray[np.float32]
    context: NDArray[np.float32]
    length: int
    window: int
    n_shared: int
    n_negative: int = 5
    l2: float = 0.01
    rates: tuple[float, float] = (0.025, 0.001)
    n_walks: int = 1000
    seed: int = 1
    bias: tuple[float, float] = (1.0, 1.0)
    window_decay: float = 1.0
    forward: bool = False

    def __post_init__(self) -> None:
        self.plan = WalkPlan(np.uint64(self.seed), self.length, 1.0 / self.bias[0], 1.0 / self.bias[1])
        self.walk_graph = walk_graph(self.graph)
        # Any noise does, as long as the loop and the oracle draw from the same.
        self.noise = alias_table(np.random.default_rng(self.seed).random(self.graph.n_nodes) + 0.1)

    @classmethod
    def random(
        cls, graph: Graph, seed: int, dim: int, kernels: list[tuple[str, float]], **settings: object
    ) -> Problem:
        """Tables with entries of order 0.3, less when there are many: squared distances up to about 3."""
        rng = np.random.default_rng(seed)
        size = 0.3 * min(1.0, 4 / np.sqrt(dim))
        center, context = (rng.normal(0, size, (graph.n_nodes, dim)).astype(np.float32) for _ in range(2))
        # One kernel has coefficient 1; the values are float32 so that both sides compute with the same.
        c = rng.uniform(-1, 1, len(kernels)).astype(np.float32)
        return cls(graph, kernels, c.astype(float), center, context, seed=seed, **settings)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        shown = (
            "kernels",
            "coefficients",
            "length",
            "window",
            "window_decay",
            "forward",
            "n_shared",
            "n_negative",
            "l2",
            "seed",
            "bias",
        )
        settings = ", ".join(f"{name}={getattr(self, name)}" for name in shown)
        return f"<Problem: {self.graph}, dim={self.center.shape[1]}, {settings}>"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """For Hypothesis, which would write out the tables."""
        printer.text(repr(self))

    def draw(self, walk: int) -> WalkPairs:
        """The pairs of one walk, its nodes and its negatives drawn as training draws them."""
        nodes, lengths = np.zeros((1, self.length), np.int64), np.zeros(1, np.int64)
        sample_walks(self.walk_graph, self.plan, walk, nodes, lengths)
        key = np.uint64(stream_key(self.plan.seed, NOISE, walk))
        noise = [draw_alias(self.noise, np.uint64(draw(key, r))) for r in range(self.n_shared)]
        return walk_pairs(
            nodes[0, : lengths[0]],
            noise,
            window=self.window,
            n_negative=self.n_negative,
            window_decay=self.window_decay,
            forward=self.forward,
        )

    def rate(self, walk: int) -> float:
        return self.rates[0] + (self.rates[1] - self.rates[0]) * walk / self.n_walks

    def oracle(
        self, walk: int, center: NDArray[np.float64], context: NDArray[np.float64]
    ) -> tuple[Gradients, Moments]:
        """Gradients of one walk's loss, and the sums training collects of it: the loss without the decay."""
        return judge(self.draw(walk), center, context, self.coefficients, self.kernels, self.l2)

    def train(
        self, first: int, last: int, *, deferred: bool = False, scratch: Scratch | None = None
    ) -> tuple[Tables, NDArray[np.float64], int]:
        """The loop on walks first … last − 1: the tables after it, the sums, and how many rows exploded."""
        n_kernels, dim = len(self.kernels), self.center.shape[1]
        scratch = scratch or make_scratch(self.length, self.n_shared, dim, n_kernels)
        slots = last - first if deferred else 0
        rows, columns = slots * scratch.center_rows.size, slots * scratch.context_rows.size
        tables = Tables(
            self.center.copy(), self.context.copy(), deferred,
            np.full((rows, dim), np.nan, np.float32), np.full(rows, -1),
            np.full((columns, dim), np.nan, np.float32), np.full(columns, -1),
            np.full(rows, -1), np.full(columns, -1), np.zeros((2, 3, 4), np.int64),
        )  # fmt: skip
        step = Step(
            self.window,
            self.window_decay,
            self.forward,
            self.n_negative,
            self.n_shared,
            np.float32(self.l2),
            *self.rates,
            self.n_walks,
            np.float32(1e6),
        )
        mixture = Mixture(
            np.array([list(KERNELS).index(name) for name, _ in self.kernels]),
            np.array([sigma for _, sigma in self.kernels], np.float32),
            self.coefficients.astype(np.float32),
            learned=True,
        )
        sums = np.zeros((max(slots, 1), n_sums(n_kernels)))
        n_bad = train_walks(
            first, last, self.walk_graph, self.plan, self.noise, step, mixture, tables, 0, scratch, sums
        )
        return tables, sums, n_bad


def train(graph: Graph, settings: TrainingConfig, on_block: OnBlock = go_on) -> TrainingState:
    """A whole run on the CPU."""
    return train_by(cpu, graph, settings, on_block)
