"""Training on the CPU: threads share the walks of a block, and coefficients are updated between blocks.

By default threads write to the tables without locks (Hogwild). In deterministic mode the steps of a small
chunk of walks are computed from the tables as they are at its start, then added in the order of the walks,
each thread adding those of its own rows: the result has the same bits on any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelne._common.variants import variant
from kernelne.errors import ParameterError
from kernelne.model.kernels import kinds_of, own_key
from kernelne.model.mixture import n_sums
from kernelne.training.backend import OnBlock, Prepared, go_on
from kernelne.training.config import TrainingConfig
from kernelne.training.cpu.loop import Mixture, Step, Tables
from kernelne.training.cpu.memory import check, chunk_size, run_bytes
from kernelne.training.cpu.scratch import Scratch, aligned, make_scratch
from kernelne.training.cpu.threads import Workers
from kernelne.training.schedule import NOISE_POWER, Recorder, blocks, norm_limit
from kernelne.training.state import TrainingState
from kernelne.walks.negatives import AliasTable, alias_table
from kernelne.walks.rng import fill_uniform
from kernelne.walks.sample import WalkGraph, WalkPlan, expected_visits, walk_graph

if TYPE_CHECKING:
    from kernelne.graph import Graph

__all__ = ["check", "check_machine", "fetch", "keep", "prepare", "run", "run_bytes", "start"]

_LARGEST_BLOCK = 65_536
#: Numbers of 8 bytes between what two threads write: two cache lines, as some CPUs fetch them in pairs.
_APART = 16


def check_machine() -> None:
    """Do nothing: every machine has a CPU."""


def prepare(graph: Graph, config: TrainingConfig, starts: NDArray[np.int64] | None = None) -> Prepared:
    """Compute the thresholds of weighted steps and the noise distribution, and create the threads.

    starts: rows of the nodes from which walks start (None: all).
    """
    walked = checked_walk_graph(graph, config, starts)
    visits = expected_visits(walked, walk_plan(config), config.walks_per_node)
    noise: AliasTable = alias_table(visits**NOISE_POWER)
    n_starts = graph.n_nodes if starts is None else len(starts)
    return Prepared(config, graph.n_nodes, walked, noise, Workers(config.n_threads), n_starts)


def checked_walk_graph(
    graph: Graph, config: TrainingConfig, starts: NDArray[np.int64] | None = None
) -> WalkGraph:
    """Return the arrays that sampling reads; raises ParameterError if it cannot sample such walks."""
    if graph.timed is not None and (config.p, config.q) != (1.0, 1.0):
        raise ParameterError("p, q", (config.p, config.q), "walks in the order of time need p = q = 1")
    return walk_graph(graph, starts)


def walk_plan(config: TrainingConfig) -> WalkPlan:
    return WalkPlan(np.uint64(config.seed), config.walk_length, 1 / config.p, 1 / config.q)


def start(prepared: Prepared) -> TrainingState:
    """Return center uniform in ±0.5/dim, context zero, coefficients 1, or uniform as well if learned."""
    config = prepared.config
    center, context = (aligned(prepared.n_nodes, config.dim) for _ in range(2))
    fill_uniform(center, np.uint64(config.seed), 0.5 / config.dim)
    return TrainingState(center, context, start_coefficients(config))


def start_coefficients(config: TrainingConfig) -> NDArray[np.float64]:
    """Return coefficients of 1, or uniform in ±0.5/dim if they are learned."""
    if not config.learn_coefficients:
        return np.ones(len(config.kernels))
    first = np.empty((1, len(config.kernels)), np.float32)
    fill_uniform(first, ~np.uint64(config.seed), 0.5 / config.dim)
    return np.asarray(first[0], np.float64)


def fetch(state: TrainingState) -> TrainingState:
    return state


keep = fetch


#: Trains on walks first … last − 1; returns their sums, as `model.mixture.Moments` unpacks them, and the
#: number of exploded rows.
TrainBlock = Callable[[int, int], tuple[NDArray[np.float64], int]]


class PairLoss(Protocol):
    """The loss that a run minimises: the one of the kernels, or of another method."""

    def training(self, run: WalkRun) -> AbstractContextManager[TrainBlock]:
        """Have the threads ready, and give the function that trains on a block."""


class WalkRun:
    """The data that the threads of a run share: walks, settings, tables, and a scratch for each thread."""

    def __init__(self, prepared: Prepared, state: TrainingState) -> None:
        config: TrainingConfig = prepared.config
        self.config = config
        self.state = state
        self.graph: WalkGraph = prepared.graph
        self.noise: AliasTable = prepared.noise
        self.workers: Workers = prepared.workers
        self.plan = walk_plan(config)
        self.step = Step(
            window=config.window,
            window_decay=config.window_decay,
            forward=config.forward,
            n_negative=config.n_negative,
            n_shared=config.shared_negatives,
            l2=np.float32(config.l2),
            first_rate=float(config.learning_rate),
            last_rate=float(config.min_learning_rate),
            n_walks=prepared.n_walks,
            norm_limit=np.float32(norm_limit(config)),
        )
        self.scratch: list[Scratch] = [
            make_scratch(config.walk_length, config.shared_negatives, config.dim, len(config.kernels))
            for _ in range(config.n_threads)
        ]
        self.chunk = chunk_size(prepared.n_nodes)
        slots = self.chunk if config.deterministic else 0
        rows, columns = (slots * x.size for x in (self.scratch[0].center_rows, self.scratch[0].context_rows))
        self.tables = Tables(
            center=state.center,
            context=state.context,
            deferred=config.deterministic,
            center_steps=aligned(rows, config.dim),
            center_rows=np.empty(rows, np.int64),
            context_steps=aligned(columns, config.dim),
            context_rows=np.empty(columns, np.int64),
            center_order=np.empty(rows, np.int64),
            context_order=np.empty(columns, np.int64),
            ends=np.zeros((2, config.n_threads, config.n_threads + 1 + _APART), np.int64),
        )

    def count_exploded(self) -> int:
        """Number of exploded rows in both tables; the loop itself checks a row only when it reads it."""
        n_exploded = 0
        for table in (self.tables.center, self.tables.context):
            squares = np.einsum("ij,ij->i", table, table)
            n_exploded += int((~(squares < self.step.norm_limit)).sum())
        return n_exploded


class KernelLoss:
    """The loss of KernelNE and MKernelNE: a mixture of kernels of squared distances."""

    def __init__(self, config: TrainingConfig) -> None:
        self.kinds = np.array(kinds_of(name for name, _ in config.kernels))
        self.sigmas = np.array([sigma for _, sigma in config.kernels], np.float32)
        self.learned = config.learn_coefficients
        self.loop = variant("kernelne.training.cpu.loop", own_key(name for name, _ in config.kernels))

    @contextmanager
    def training(self, run: WalkRun) -> Iterator[TrainBlock]:
        config, width = run.config, n_sums(len(self.sigmas))
        coefficients = np.empty(len(self.sigmas), np.float32)
        mixture = Mixture(self.kinds, self.sigmas, coefficients, self.learned)
        # A row per thread, apart from others, or in deterministic mode per walk of a chunk, added in order.
        own = np.zeros((config.n_threads, 1, width + _APART))[:, :, :width]
        walk_sums = np.zeros((run.chunk, width)) if config.deterministic else None
        total, n_bad = np.zeros(width), np.zeros((config.n_threads, _APART), np.int64)

        def work(part: int) -> None:
            self.loop.train_part(
                part, config.n_threads, run.workers.barrier, run.graph, run.plan, run.noise, run.step,
                mixture, run.tables, run.scratch[part], own[part] if walk_sums is None else walk_sums, total,
                n_bad[part],
            )  # fmt: skip

        with run.workers.team(work) as train:

            def train_block(first: int, last: int) -> tuple[NDArray[np.float64], int]:
                coefficients[:] = run.state.coefficients
                for each in (own, total, n_bad):
                    each[...] = 0
                train(first, last)
                return total.copy() if walk_sums is not None else own.sum(axis=(0, 1)), int(n_bad.sum())

            yield train_block


def run(
    prepared: Prepared,
    state: TrainingState,
    until: int | None = None,
    on_block: OnBlock = go_on,
    loss: PairLoss | None = None,
) -> TrainingState:
    """Train from `state` on; `loss`: the loss of another method (None: the loss of the kernels)."""
    config, n_walks = prepared.config, prepared.n_walks
    walking, recorder = WalkRun(prepared, state), Recorder(config, n_walks, state)
    loss = loss or KernelLoss(config)
    # Blocks of longer walks are smaller, so that progress is shown and Ctrl-C works without delay.
    largest = max(_LARGEST_BLOCK * 100 // max(config.walk_length, 10) ** 2, 1)
    with loss.training(walking) as train_block:
        for first, last in blocks(n_walks, largest, state.next_walk, until):
            sums, n_exploded = train_block(first, last)
            if last == n_walks:  # the rows of the last steps are not read again
                n_exploded += walking.count_exploded()
            if on_block(last, n_walks, recorder.advance(first, last, sums, n_exploded)):
                break
    return recorder.end()
