"""What a run will need, told before it starts."""

from __future__ import annotations

import time
from pathlib import Path

from kernelne.errors import InputError
from kernelne.graph import Graph
from kernelne.training import cpu
from kernelne.training.config import TrainingConfig

#: Interpreter, libraries and compiled code.
_PROCESS_BYTES = 270 * 2**20


def run_bytes(graph: Graph, config: TrainingConfig) -> int:
    """Peak memory of a run: two tables, the graph and its sampling tables, the process itself."""
    n, entries = graph.n_nodes, graph.neighbours.size
    tables = 2 * n * config.dim * 4
    adjacency = graph.offsets.nbytes + graph.neighbours.nbytes
    weighted = 0 if graph.weights is None else 8 * entries
    # Visits while the noise table is built: three float64 arrays; then four bytes twice.
    return tables + adjacency + weighted + 24 * n + _PROCESS_BYTES


def available_bytes() -> int | None:
    """Memory that can be had without swapping, where the system tells."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def check_memory(graph: Graph, config: TrainingConfig) -> None:
    """Refuse a run that cannot fit, before anything is allocated."""
    available = available_bytes()
    # The graph and the process are there already.
    tables = 2 * graph.n_nodes * config.dim * 4 + 24 * graph.n_nodes
    if available is not None and tables > available:
        fits = max((available // graph.n_nodes - 24) // 8, 0)
        raise InputError(
            f"dim={config.dim}: {graph.n_nodes:,} nodes need {tables / 2**30:.1f} GiB and "
            f"{available / 2**30:.1f} GiB are free: dim={fits} would fit"
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
