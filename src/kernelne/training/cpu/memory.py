"""Memory that a run on the CPU needs, estimated beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelne._checks import available_bytes
from kernelne.errors import InputError
from kernelne.training.config import TrainingConfig

if TYPE_CHECKING:
    from kernelne.graph import Graph

#: Memory of interpreter, libraries and compiled code.
_PROCESS_BYTES = 270 * 2**20

#: Deterministic mode: a chunk has at most one walk for this many nodes. With one walk for every 2.5 nodes
#: scores are lower, with one for every 25 they are not.
_NODES_PER_CHUNK_WALK = 32
_LARGEST_CHUNK = 1024


def chunk_size(n_nodes: int) -> int:
    """Number of walks in a chunk of deterministic mode."""
    return min(max(n_nodes // _NODES_PER_CHUNK_WALK, 1), _LARGEST_CHUNK)


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
    arrays = (graph.offsets, graph.neighbours, graph.weights)
    return (
        _new_bytes(graph, config, n_tables) + sum(a.nbytes for a in arrays if a is not None) + _PROCESS_BYTES
    )


def check(graph: Graph, config: TrainingConfig, n_tables: float, dim: int) -> None:
    """Raise InputError if a run does not fit in memory, before anything is allocated."""
    available, needed = available_bytes(), _new_bytes(graph, config, n_tables)
    if available is not None and needed > available:
        raise InputError(
            f"dim={dim}, walk_length={config.walk_length}: {graph.n_nodes:,} nodes need "
            f"{needed / 2**30:.1f} GiB and {available / 2**30:.1f} GiB are free: "
            f"dim={max(dim * available // needed, 1)} or less would fit"
        )
