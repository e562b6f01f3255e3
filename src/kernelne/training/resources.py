"""What a run will need, told before it starts."""

from __future__ import annotations

import time

from kernelne._checks import available_bytes
from kernelne.errors import InputError
from kernelne.graph import Graph
from kernelne.training.config import TrainingConfig
from kernelne.training.cpu import backend as cpu

#: Interpreter, libraries and compiled code.
_PROCESS_BYTES = 270 * 2**20


def _new_bytes(graph: Graph, config: TrainingConfig, n_tables: int = 2) -> int:
    """What a run allocates: tables, sampling tables, each thread's scratch, deferred steps."""
    rows, columns, width = (
        config.walk_length + 16,
        config.walk_length + config.shared_negatives + 16,
        config.dim + 16,
    )
    scratch = 4 * ((rows + columns) * width + (3 + 2 * len(config.kernels)) * rows * columns)
    deferred = cpu.chunk_size(graph) * (rows + columns) * width * 4 if config.deterministic else 0
    thresholds = 0 if graph.weights is None else 4 * graph.neighbours.size
    # Visits while the noise table is built: three float64 numbers a node.
    return (
        n_tables * graph.n_nodes * config.dim * 4
        + 24 * graph.n_nodes
        + thresholds
        + deferred
        + config.n_threads * scratch
    )


def run_bytes(graph: Graph, config: TrainingConfig, n_tables: int = 2) -> int:
    """Peak memory of a run: what it allocates, the graph, the process itself."""
    arrays = (graph.offsets, graph.neighbours, graph.weights)
    return (
        _new_bytes(graph, config, n_tables) + sum(a.nbytes for a in arrays if a is not None) + _PROCESS_BYTES
    )


def check_memory(graph: Graph, config: TrainingConfig, n_tables: int = 2) -> None:
    """Refuse a run that cannot fit, before anything is allocated."""
    available, needed = available_bytes(), _new_bytes(graph, config, n_tables)
    if available is not None and needed > available:
        raise InputError(
            f"dim={config.dim}, walk_length={config.walk_length}: {graph.n_nodes:,} nodes need "
            f"{needed / 2**30:.1f} GiB and {available / 2**30:.1f} GiB are free: "
            f"dim={max(config.dim * available // needed, 1)} or less would fit"
        )


class _EnoughSeenError(Exception):
    pass


def run_seconds(graph: Graph, config: TrainingConfig, patience: float = 0.5) -> float:
    """Seconds a run would take on this machine, from training for a moment on the graph itself."""
    cpu.train(Graph.from_edges([0], [1]), config)  # compiles, or loads what was compiled
    marks: list[tuple[float, int]] = []

    def report(done: int, total: int, loss: float) -> None:
        marks.append((time.perf_counter(), done))
        if marks[-1][0] - marks[0][0] > patience:
            raise _EnoughSeenError

    start = time.perf_counter()
    try:
        cpu.train(graph, config, report)
    except _EnoughSeenError:
        (first_time, first_done), (last_time, last_done) = marks[0], marks[-1]
        speed = (last_done - first_done) / (last_time - first_time)
        return (first_time - start) + graph.n_nodes * config.walks_per_node / speed
    return time.perf_counter() - start
