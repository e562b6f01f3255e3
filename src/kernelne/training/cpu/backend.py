"""Training on the CPU: blocks of walks shared out between threads, coefficients solved between blocks.

By default threads write to the tables without locks (Hogwild). In deterministic mode the steps of a small
chunk of walks are computed from the tables as they were at its start, then added in the order of the walks,
rows shared out between the threads: the same bits on any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne.graph import Graph
from kernelne.model.kernels import KERNELS
from kernelne.model.mixture import n_sums
from kernelne.training.config import TrainingConfig
from kernelne.training.course import NOISE_POWER, Course, Report, Trained, blocks, norm_limit
from kernelne.training.cpu.barrier import give_up, make_barrier
from kernelne.training.cpu.loop import Mixture, Scratch, Step, Tables, make_scratch, train_chunks, train_walks
from kernelne.walks.noise import AliasTable, alias_table
from kernelne.walks.rng import fill_uniform
from kernelne.walks.sample import WalkGraph, WalkPlan, expected_visits, walk_graph

_LARGEST_BLOCK = 65_536
#: Deterministic mode: walks computed from the same state, at most one for this many nodes. With one for every
#: 2.5 nodes scores suffer, with one for every 25 they do not.
_NODES_PER_CHUNK_WALK = 32
_LARGEST_CHUNK = 1024


def chunk_size(graph: Graph) -> int:
    """Walks of a chunk in deterministic mode."""
    return min(max(graph.n_nodes // _NODES_PER_CHUNK_WALK, 1), _LARGEST_CHUNK)


def train(graph: Graph, config: TrainingConfig, report: Report = lambda done, total, loss: None) -> Trained:
    """Train on `graph`; `report(walks done, walks in all, loss per pair)` is called after every block."""
    with _Trainer(graph, config) as trainer:
        return trainer.run(report)


class _Trainer(ExitStack):
    """The state of a run and the threads that work on it."""

    def __init__(self, graph: Graph, config: TrainingConfig) -> None:
        super().__init__()
        self.config = config
        self.n_walks = graph.n_nodes * config.walks_per_node
        seed = np.uint64(config.seed)
        self.graph: WalkGraph = walk_graph(graph)
        self.plan = WalkPlan(seed, config.walk_length, 1 / config.p, 1 / config.q)
        visits = expected_visits(self.graph, self.plan, config.walks_per_node)
        self.noise: AliasTable = alias_table(visits**NOISE_POWER)
        self.step = Step(
            window=config.window,
            n_negative=config.n_negative,
            n_shared=config.shared_negatives,
            l2=np.float32(config.l2),
            first_rate=float(config.learning_rate),
            last_rate=float(config.min_learning_rate),
            n_walks=self.n_walks,
            norm_limit=np.float32(norm_limit(config)),
        )
        self.kinds = np.array([list(KERNELS).index(name) for name, _ in config.kernels])
        self.sigmas = np.array([sigma for _, sigma in config.kernels], np.float32)
        n_kernels, spread = len(config.kernels), 0.5 / config.dim
        center = np.empty((graph.n_nodes, config.dim), np.float32)
        fill_uniform(center, seed, spread)
        coefficients = np.ones(n_kernels)
        if config.learn_coefficients:
            first = np.empty((1, n_kernels), np.float32)
            fill_uniform(first, ~seed, spread)
            coefficients = first[0].astype(np.float64)
        self.course = Course(config, self.n_walks, coefficients)
        self.scratch: list[Scratch] = [
            make_scratch(config.walk_length, config.shared_negatives, config.dim, n_kernels)
            for _ in range(config.n_threads)
        ]
        self.chunk = chunk_size(graph)
        self.tables = self._make_tables(center)
        self.barrier = make_barrier()
        self.pool = self.enter_context(ThreadPoolExecutor(max(config.n_threads - 1, 1)))

    def _make_tables(self, center: NDArray[np.float32]) -> Tables:
        slots = self.chunk if self.config.deterministic else 0
        rows, columns = (slots * x.size for x in (self.scratch[0].center_rows, self.scratch[0].context_rows))
        return Tables(
            center=center,
            context=np.zeros_like(center),
            deferred=self.config.deterministic,
            center_steps=np.empty((rows, self.config.dim), np.float32),
            center_rows=np.empty(rows, np.int64),
            context_steps=np.empty((columns, self.config.dim), np.float32),
            context_rows=np.empty(columns, np.int64),
        )

    def run(self, report: Report) -> Trained:
        # Longer walks make smaller blocks, so that progress and Ctrl-C do not wait.
        largest = max(_LARGEST_BLOCK * 100 // max(self.config.walk_length, 10) ** 2, 1)
        for first, last in blocks(self.n_walks, largest):
            coefficients = self.course.coefficients.astype(np.float32)
            mixture = Mixture(self.kinds, self.sigmas, coefficients, self.config.learn_coefficients)
            sums, n_bad = (self._deterministic_block if self.config.deterministic else self._block)(
                first, last, mixture
            )
            if last == self.n_walks:  # nobody will read the rows of the last steps
                n_bad += sum(
                    self._count_exploded(table) for table in (self.tables.center, self.tables.context)
                )
            report(last, self.n_walks, self.course.advance(first, last, sums, n_bad))
        return self.course.end(self.tables.center, self.tables.context)

    def _count_exploded(self, table: NDArray[np.float32]) -> int:
        squares = np.einsum("ij,ij->i", table, table)
        return int((~(squares < self.step.norm_limit)).sum())

    def _each_thread(self, work: Callable[[int], Any]) -> list[Any]:
        """work(0) … work(n_threads − 1) at once, the first on this thread, which so stays awake."""

        def careful(part: int) -> Any:
            try:
                return work(part)
            except BaseException:
                give_up(self.barrier)
                raise

        try:
            others = [self.pool.submit(careful, part) for part in range(1, self.config.n_threads)]
            return [careful(0), *(other.result() for other in others)]
        except BaseException:
            give_up(self.barrier)  # nobody may wait for a thread that is not coming
            raise

    def _block(self, first: int, last: int, mixture: Mixture) -> tuple[NDArray[np.float64], int]:
        """Train on walks first … last − 1: their sums, and how many rows were seen to have exploded."""
        n_threads = self.config.n_threads
        sums = np.zeros((n_threads, n_sums(len(self.sigmas))))

        def work(part: int) -> Any:
            low, high = (first + (last - first) * x // n_threads for x in (part, part + 1))
            return train_walks(
                low, high, self.graph, self.plan, self.noise, self.step, mixture, self.tables, 0,
                self.scratch[part], sums[part : part + 1],
            )  # fmt: skip

        n_bad = sum(self._each_thread(work))
        return sums.sum(axis=0), n_bad

    def _deterministic_block(
        self, first: int, last: int, mixture: Mixture
    ) -> tuple[NDArray[np.float64], int]:
        n_threads = self.config.n_threads
        sums = np.zeros(n_sums(len(self.sigmas)))
        chunk_sums = np.zeros((self.chunk, sums.size))

        def work(part: int) -> Any:
            return train_chunks(
                part, n_threads, self.barrier, first, last, self.graph, self.plan, self.noise, self.step,
                mixture, self.tables, self.scratch[part], chunk_sums, sums,
            )  # fmt: skip

        n_bad = sum(self._each_thread(work))
        return sums, n_bad
