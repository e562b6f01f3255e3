"""Memory that a run on the CPU needs, estimated beforehand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kernelne._common.memory import available_bytes, gib
from kernelne.errors import InputError
from kernelne.training.config import TrainingConfig

if TYPE_CHECKING:
    from kernelne.graph import Graph

#: Memory of interpreter, libraries and compiled code.
_PROCESS_BYTES = 340 * 2**20

#: Deterministic mode: a chunk has at most one walk for this many nodes. With one walk for every 2.5 nodes
#: scores are lower, with one for every 25 they are not.
_NODES_PER_CHUNK_WALK = 32
_LARGEST_CHUNK = 1024
#: Chunks of more walks are a multiple of this, so that as many threads, or 2, 4 or 8, have equal shares.
_SHARED_BY = 16


def chunk_size(n_nodes: int) -> int:
    """Number of walks in a chunk of deterministic mode."""
    size = min(max(n_nodes // _NODES_PER_CHUNK_WALK, 1), _LARGEST_CHUNK)
    return size - size % _SHARED_BY if size > _SHARED_BY else size


def _new_bytes(graph: Graph, config: TrainingConfig, n_tables: float) -> int:
    """Bytes that a run allocates: tables, sampling tables, each thread's scratch, deferred steps."""
    rows, columns, width = (
        config.walk_length + 16,
        config.walk_length + config.shared_negatives + 16,
        config.dim + 16,
    )
    scratch = 4 * ((rows + columns) * width + (3 + 2 * len(config.kernels)) * rows * columns)
    deferred = chunk_size(graph.n_nodes) * (rows + columns) * width * 4 if config.deterministic else 0
    thresholds = 0 if graph.weights is None else 4 * graph.neighbours.size
    # While the noise distribution is built: three float64 numbers per node.
    return (
        int(n_tables * graph.n_nodes * config.dim * 4)
        + 24 * graph.n_nodes
        + thresholds
        + deferred
        + config.n_threads * scratch
    )


def run_bytes(graph: Graph, config: TrainingConfig, n_tables: float = 2) -> int:
    """Peak memory of a run in bytes: its allocations, the graph and the process itself."""
    return _new_bytes(graph, config, n_tables) + fixed_bytes(graph)


def fixed_bytes(graph: Graph) -> int:
    """Memory of the graph and of the process itself, in bytes."""
    arrays = (graph.offsets, graph.neighbours, graph.weights, *(graph.timed or ()))
    # String ids are Python objects, and appear a second time as text when they are looked up or written.
    objects = isinstance(graph.nodes, np.ndarray) and graph.nodes.dtype == object
    ids = 160 * graph.n_nodes if objects else graph.nodes.nbytes
    return sum(int(a.nbytes) for a in arrays if a is not None) + int(ids) + _PROCESS_BYTES


def check(graph: Graph, config: TrainingConfig, n_tables: float, dim: int) -> None:
    """Raise InputError if a run does not fit in memory, before anything is allocated."""
    if graph.n_nodes >= 2**32:  # 32 random bits choose among them
        raise InputError(f"{graph.n_nodes:,} nodes: training takes fewer than 4,294,967,296")
    available, needed = available_bytes(), _new_bytes(graph, config, n_tables)
    if available is None or needed <= available:
        return
    told = {"dim": dim, "walk_length": config.walk_length, "n_threads": config.n_threads}
    told["shared_negatives"] = config.shared_negatives
    if config.deterministic:
        told["deterministic"] = True
    # The parameters any one of which would do; dim is told as it was asked for, though a table may have half.
    fitting = []
    for name in ("dim", "walk_length", "shared_negatives", "n_threads"):
        most = _largest(graph, config, n_tables, name, available)
        if most:
            most = most * told[name] // getattr(config, name)
            fitting.append(f"{name}={most}{' or less' if most > 1 else ''}")
    if (
        config.deterministic
        and _new_bytes(graph, replace(config, deterministic=False), n_tables) <= available
    ):
        fitting.append("deterministic=False")
    remedy = (
        f"{', or '.join(fitting)} would fit" if fitting else "none of them alone can be made small enough"
    )
    raise InputError(
        f"{', '.join(f'{name}={value}' for name, value in told.items())}: {graph.n_nodes:,} nodes need "
        f"{gib(needed)} and {gib(available)} are free: {remedy}"
    )


def _largest(graph: Graph, config: TrainingConfig, n_tables: float, name: str, available: int) -> int:
    """Return the largest value of a parameter with which a run fits, 0 if none does."""
    low, high = 0, getattr(config, name)
    while high - low > 1:
        middle = (low + high) // 2
        fits = _new_bytes(graph, replace(config, **{name: middle}), n_tables) <= available
        low, high = (middle, high) if fits else (low, middle)
    return low
