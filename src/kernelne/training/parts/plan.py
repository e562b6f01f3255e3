"""How a graph is trained: without parts, or in how many, and where they are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelne._common.memory import available_bytes, gib, parse_size
from kernelne.errors import InputError, ParameterError
from kernelne.training.backend import Backend
from kernelne.training.config import TrainingConfig
from kernelne.training.cpu.memory import fixed_bytes
from kernelne.training.parts.backend import PartsBackend
from kernelne.training.parts.disk import OnDisk, shard_bytes
from kernelne.training.parts.memory import InMemory, pool_bytes
from kernelne.training.parts.pairs import PAIR_BYTES, pairs_per_walk
from kernelne.training.parts.schedule import FEWEST_EPISODES, make_schedule
from kernelne.training.parts.sweeps import held

if TYPE_CHECKING:
    from kernelne.graph import Graph

#: Where blocks run, by the name of the engine.
ENGINES = ("memory", "disk", "ray")
_PARTS, _MOST_PARTS = 8, 512


@dataclass(frozen=True)
class Engine:
    """What was asked for: engine, number of parts, memory (a size such as "8GB") and address of a cluster.

    folder: where files out of core are kept; None: in the folder of temporary files.
    """

    name: str | None = None
    parts: int | None = None
    memory: Any = None
    address: str | None = None
    folder: Path | None = None

    def check(self, backend: str) -> None:
        """Raise a ParameterError if the values do not go together."""
        if self.name is not None and self.name not in ENGINES:
            raise ParameterError("engine", self.name, f"must be one of {', '.join(ENGINES)}, or None")
        if self.memory is not None:
            self.bytes()
        if self.address is not None and self.name != "ray":
            raise ParameterError("address", self.address, 'is that of a cluster: needs engine="ray"')
        asked = {"engine": self.name, "parts": self.parts, "memory": self.memory}
        for name, value in asked.items():
            if value is not None and backend != "cpu":
                raise ParameterError(name, value, f'needs backend="cpu", not {backend!r}')

    @property
    def is_plain(self) -> bool:
        """Whether nothing was asked for."""
        return self.name is None and self.parts is None and self.memory is None

    def bytes(self) -> int | None:
        """Memory that may be used; None: as much as there is."""
        return available_bytes() if self.memory is None else parse_size("memory", self.memory)


@dataclass(frozen=True)
class Plan:
    """Where a graph is trained, in how many parts (None: not in parts), and all of it in one line.

    needed: memory at the peak in bytes; None: the backend tells it.
    """

    backend: Backend
    parts: int | None
    told: str
    needed: int | None = None


def make_plan(graph: Graph, config: TrainingConfig, asked: Engine, backend: Backend, n_tables: float) -> Plan:
    """Choose how to train; raises InputError if no number of parts is enough for the memory.

    backend: the one that trains without parts.
    """
    plainly = backend.run_bytes(graph, config, n_tables)
    name, parts, most = asked.name, asked.parts, asked.bytes()
    if name is None and parts is None and (asked.memory is None or most is None or plainly <= most):
        return Plan(backend, None, f"without parts, {gib(plainly)} of memory")
    if name is None:
        name = "memory" if parts is not None and asked.memory is None else "disk"
    if parts is not None:  # raises an error before anything is made ready
        make_schedule(replace(config, parts=parts), graph.n_nodes, graph.n_nodes * config.walks_per_node)
    if name == "ray":
        from kernelne.training.parts.cluster import OnRay

        cluster = OnRay(asked.address)
        parts = parts or max(2, min(cluster.n_parts(), graph.n_nodes))
        return Plan(PartsBackend(cluster), parts, f"{parts} parts on {cluster.told()}", plainly)
    if name == "memory":
        parts = parts or min(_PARTS, graph.n_nodes)
        needed = plainly + pool_bytes(graph.n_nodes, config.dim)
        told = f"{parts} parts, {gib(needed)} of memory"
        found: PartsBackend = PartsBackend(InMemory())
    else:
        parts = parts or _fitting(graph, config, most)
        needed = disk_bytes(graph, config, parts)
        told = (
            f"{parts} parts on disk, {gib(needed)} of memory and {gib(files_bytes(graph, config))} of files"
        )
        found = PartsBackend(OnDisk(asked.folder))
    if most is not None and needed > most:
        remedy = 'engine="disk" needs less' if name == "memory" else "give more parts, or None"
        raise InputError(
            f"parts={parts}: {graph.n_nodes:,} nodes need {gib(needed)} of memory and there are {gib(most)}: "
            f"{remedy}"
        )
    return Plan(found, parts, told, needed)


def disk_bytes(graph: Graph, config: TrainingConfig, parts: int) -> int:
    """Peak memory of training out of core in bytes; see docs/scale.md."""
    n, threads = graph.n_nodes, config.n_threads
    walks = n * config.walks_per_node // FEWEST_EPISODES * pairs_per_walk(config) * PAIR_BYTES
    # Places and noise distributions of all nodes, and what is needed while these are made.
    nodes = (8 + 8 + 24) * n
    n_held, n_blocks = held(threads, parts)
    blocks = n_held * 4 * config.dim * -(-n // parts) + n_blocks * walks // parts**2
    shards = min(shard_bytes(replace(config, parts=parts), n), 2 * walks)
    return fixed_bytes(graph) + nodes + max(blocks, shards)


def files_bytes(graph: Graph, config: TrainingConfig) -> int:
    """Space for files in bytes: both tables three times, and the pairs of an episode."""
    pairs = graph.n_nodes * config.walks_per_node // FEWEST_EPISODES * pairs_per_walk(config) * PAIR_BYTES
    return 6 * graph.n_nodes * config.dim * 4 + pairs


def _fitting(graph: Graph, config: TrainingConfig, most: int | None) -> int:
    """Return the smallest number of parts that fits in memory."""
    largest = min(_MOST_PARTS, graph.n_nodes)
    parts = min(2, largest)
    while most is not None and disk_bytes(graph, config, parts) > most:
        if parts == largest:
            raise InputError(
                f"memory={gib(most)}: {graph.n_nodes:,} nodes and {graph.n_edges:,} edges need "
                f"{gib(disk_bytes(graph, config, parts))} even in {parts} parts: give more memory"
                f"{', or a smaller n_threads' if config.n_threads > 1 else ''}"
            )
        parts = min(parts + max(1, parts // 8), largest)
    return parts
