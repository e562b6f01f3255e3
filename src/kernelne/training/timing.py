"""Time that a run needs, estimated beforehand."""

from __future__ import annotations

import time
from dataclasses import replace

from kernelne.graph import Graph
from kernelne.training.backend import Backend, train
from kernelne.training.config import TrainingConfig


def run_seconds(backend: Backend, graph: Graph, config: TrainingConfig, patience: float = 0.5) -> float:
    """Estimate the seconds of a run on this machine by training on the graph for `patience` seconds."""
    # Compile, or load compiled code, before the time is measured.
    train(backend, Graph.from_edges([0], [1]), replace(config, walks_per_node=1))
    marks: list[tuple[float, int]] = []

    def enough(done: int, total: int, loss: float) -> bool:
        marks.append((time.perf_counter(), done))
        return marks[-1][0] - marks[0][0] > patience

    start = time.perf_counter()
    prepared = backend.prepare(graph, config)
    backend.run(prepared, backend.start(prepared), None, enough)
    (first_time, first_done), (last_time, last_done) = marks[0], marks[-1]
    if last_done == prepared.n_walks:
        return time.perf_counter() - start
    speed = (last_done - first_done) / (last_time - first_time)
    return (first_time - start) + prepared.n_walks / speed
