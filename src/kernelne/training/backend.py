"""The interface of a backend, and the registry of all backends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kernelne.errors import ParameterError
from kernelne.training.config import TrainingConfig
from kernelne.training.state import TrainingState

if TYPE_CHECKING:
    from kernelne.graph import Graph

#: Called after every block with (walks done, total walks, loss per pair); the run stops if it returns True.
OnBlock = Callable[[int, int, float], bool | None]


def go_on(done: int, total: int, loss: float) -> None:
    """An `OnBlock` that does nothing."""


@dataclass(frozen=True)
class Prepared:
    """A graph prepared by a backend, shared by all runs with the same walks.

    config: settings of the run.
    n_nodes: number of nodes of the graph.
    n_starts: number of nodes from which walks start; None: all.
    graph, noise, workers: objects of the backend: the graph as sampling reads it, the alias table of the
        noise distribution, the threads.
    """

    config: TrainingConfig
    n_nodes: int
    graph: Any
    noise: Any
    workers: Any = None
    n_starts: int | None = None

    @property
    def n_walks(self) -> int:
        """Number of walks of a whole run."""
        return (self.n_nodes if self.n_starts is None else self.n_starts) * self.config.walks_per_node


class Backend(Protocol):
    """The functions of a backend, which is a module. The tables of a state stay in the backend's memory."""

    def check_machine(self) -> None:
        """Raise KernelneError if this machine does not have the device that the backend needs."""

    def check(self, graph: Graph, config: TrainingConfig, n_tables: float, dim: int) -> None:
        """Raise InputError if a run would need more memory than is free.

        n_tables: memory for tables at the peak, in units of one trained table, the embedding included.
        dim: number of columns of the embedding, for the error message.
        """

    def run_bytes(self, graph: Graph, config: TrainingConfig, n_tables: float) -> int:
        """Peak memory of a run in bytes, the graph and the process included."""

    def prepare(self, graph: Graph, config: TrainingConfig) -> Prepared:
        """Prepare a graph for runs."""

    def start(self, prepared: Prepared) -> TrainingState:
        """Return the initial state of a run, drawn with its seed."""

    def run(
        self,
        prepared: Prepared,
        state: TrainingState,
        until: int | None = None,
        on_block: OnBlock = go_on,
    ) -> TrainingState:
        """Train on the walks from `state.next_walk` to `until` - 1 (None: to the last).

        If `on_block` stops a run between two blocks and it is continued from there, the result has the same
        bits as one run, provided that the backend is reproducible. An `until` within a block ends the block
        there; the coefficients are then updated once more than in one run.
        """

    def keep(self, state: TrainingState) -> TrainingState:
        """Return what a checkpoint keeps of a state: NumPy arrays, or tables in parts. The run goes on."""

    def fetch(self, state: TrainingState) -> TrainingState:
        """Return the state with its tables as NumPy arrays; the run has ended."""


class _Entry(NamedTuple):
    module: str
    repeats_on_threads: bool  # whether `deterministic=True` is supported


#: The backend is never chosen by the hardware, so that results do not depend on the machine.
_BACKENDS = {
    "cpu": _Entry("kernelne.training.cpu.backend", True),
    "gpu": _Entry("kernelne.training.gpu.backend", False),
}


def backend_names() -> tuple[str, ...]:
    return tuple(_BACKENDS)


def check_backend(name: Any, deterministic: bool) -> None:
    """Raise ParameterError if the backend does not exist or does not support `deterministic`."""
    if not isinstance(name, str) or name not in _BACKENDS:
        raise ParameterError("backend", name, f"must be one of {', '.join(_BACKENDS)}")
    if deterministic and not _BACKENDS[name].repeats_on_threads:
        able = " or ".join(f"backend={n!r}" for n, entry in _BACKENDS.items() if entry.repeats_on_threads)
        raise ParameterError(
            "deterministic", True, f"backend={name!r} adds steps in no fixed order; use {able} instead"
        )


def load_backend(name: str) -> Backend:
    """Return the backend with this name; raises MissingDependencyError if it needs missing packages."""
    check_backend(name, False)
    backend: Any = import_module(_BACKENDS[name].module)
    return backend  # type: ignore[no-any-return]


def train(backend: Backend, graph: Graph, config: TrainingConfig, on_block: OnBlock = go_on) -> TrainingState:
    """Prepare, train on all walks, and return the final state."""
    prepared = backend.prepare(graph, config)
    return backend.fetch(backend.run(prepared, backend.start(prepared), None, on_block))
