"""Training in parts as a backend: the same functions as training on the CPU without parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelne.model.kernels import KERNELS
from kernelne.model.mixture import Moments, step_coefficients
from kernelne.training.backend import OnBlock, Prepared, go_on
from kernelne.training.config import TrainingConfig
from kernelne.training.cpu import memory as plain
from kernelne.training.cpu.backend import checked_walk_graph, start_coefficients, walk_plan
from kernelne.training.parts.executor import Executor, Table, Task
from kernelne.training.parts.pairs import make_finder
from kernelne.training.parts.schedule import Schedule, make_schedule, nodes_of_part, places_of_nodes
from kernelne.training.schedule import NOISE_POWER, Recorder, coefficient_floor
from kernelne.training.state import TrainingState
from kernelne.walks.negatives import AliasTable, alias_table
from kernelne.walks.rng import fill_uniform_rows
from kernelne.walks.sample import expected_visits

if TYPE_CHECKING:
    from kernelne.graph import Graph

#: Rows that are put into the order of the nodes at a time, and pairs of the first step of the coefficients.
_ROWS, _FIRST_PAIRS = 2**16, 1000.0


@dataclass
class PartsBackend:
    """A backend whose blocks are run by an executor; its tables stay in parts until `fetch`."""

    executor: Executor
    _task: Task | None = None

    def check_machine(self) -> None:
        """Do nothing: every machine has a CPU."""

    def check(self, graph: Graph, config: TrainingConfig, n_tables: float, dim: int) -> None:
        """Do nothing: the plan was made so that the run fits."""

    def run_bytes(self, graph: Graph, config: TrainingConfig, n_tables: float) -> int:
        return plain.run_bytes(graph, config, n_tables)

    def prepare(self, graph: Graph, config: TrainingConfig) -> Prepared:
        """Divide the nodes into parts, and compute the noise distribution of each part."""
        walked = checked_walk_graph(graph, config)
        schedule = make_schedule(config, graph.n_nodes, graph.n_nodes * config.walks_per_node)
        plan, places = walk_plan(config), places_of_nodes(schedule)
        visits = expected_visits(walked, plan, config.walks_per_node)
        noise = [_noise_of(visits[nodes]) for nodes in _nodes(places, schedule)]
        find = make_finder(walked, plan, config, places, schedule.bounds)
        self._task = Task(config, schedule, find, noise)
        return Prepared(config, graph.n_nodes, self._task, noise)

    def start(self, prepared: Prepared) -> TrainingState:
        """Return the tables that a run without parts starts from, in parts, and coefficients.

        The coefficients are those after the first pairs: while all vectors are alike, every kernel is the
        same for all pairs.
        """
        config, task = prepared.config, prepared.graph
        center = self.executor.adopt(_first_centers(task))
        shapes = [(int(rows), config.dim) for rows in np.diff(task.schedule.bounds)]
        context = self.executor.adopt(np.zeros(shape, np.float32) for shape in shapes)
        coefficients = start_coefficients(config)
        if config.learn_coefficients:
            k = np.array([KERNELS[name](np.float64(0.0), sigma)[0] for name, sigma in config.kernels])
            first, n_contexts = _FIRST_PAIRS, 1 + config.n_negative
            moments = Moments(first, 0.0, first * k, first * n_contexts * np.outer(k, k))
            coefficients = step_coefficients(
                coefficients, moments, config.learning_rate, config.coef_l2, config.coef_spread,
                coefficient_floor(config),
            )  # fmt: skip
        return TrainingState(center, context, coefficients)

    def run(
        self,
        prepared: Prepared,
        state: TrainingState,
        until: int | None = None,
        on_block: OnBlock = go_on,
    ) -> TrainingState:
        """Train from `state` on; `on_block` is called, and can stop a run, after each round."""
        task: Task = prepared.graph
        # Those of a checkpoint are files that will be removed.
        state.center, state.context = (self.executor.adopt(table) for table in (state.center, state.context))
        n_walks, recorder = prepared.n_walks, Recorder(prepared.config, prepared.n_walks, state)
        with self.executor.training(task, state) as train:
            for together in task.schedule.rounds(state.next_walk, until):
                trained = train(together, state.coefficients)
                begin, end = together[0].begin, together[-1].end
                sums = np.sum([each.sums for each in trained], axis=0)
                n_exploded = sum(each.n_exploded for each in trained)
                if on_block(end, n_walks, recorder.advance(begin, end, sums, n_exploded)):
                    break
        return recorder.end()

    def keep(self, state: TrainingState) -> TrainingState:
        return state

    def fetch(self, state: TrainingState) -> TrainingState:
        """Return the state with its tables in the order of the nodes; those in parts are let go."""
        task = self._task
        assert task is not None
        for name in ("center", "context"):
            made = self.executor.room((task.schedule.n_nodes, task.config.dim))
            _assemble(getattr(state, name), task.find.places, task.schedule.bounds, made)
            setattr(state, name, made)
        return state


def _nodes(places: NDArray[Any], schedule: Schedule) -> Iterator[NDArray[np.int64]]:
    return (nodes_of_part(places, schedule.bounds, part) for part in range(schedule.n_parts))


def _noise_of(visits: NDArray[np.float64]) -> AliasTable:
    """Distribution of the negatives of a part. Nodes without visits are drawn if there are no others."""
    weights = visits**NOISE_POWER
    return alias_table(weights if weights.any() else np.ones_like(weights))


def _first_centers(task: Task) -> Iterator[NDArray[np.float32]]:
    config = task.config
    for nodes in _nodes(task.find.places, task.schedule):
        part = np.empty((len(nodes), config.dim), np.float32)
        fill_uniform_rows(part, nodes, np.uint64(config.seed), 0.5 / config.dim)
        yield part


def _assemble(parts: Table, places: NDArray[Any], bounds: NDArray[np.int64], made: Any) -> None:
    """Write the rows of all parts in the order of the nodes; every part is read from front to back."""
    tables, following = [parts[i] for i in range(len(parts))], np.zeros(len(parts), np.int64)
    for first in range(0, len(places), _ROWS):
        here = places[first : first + _ROWS]
        part_of = np.searchsorted(bounds, here, side="right") - 1
        for i, table in enumerate(tables):
            rows = np.flatnonzero(part_of == i)
            made[first + rows] = table[following[i] : following[i] + rows.size]
            following[i] += rows.size
