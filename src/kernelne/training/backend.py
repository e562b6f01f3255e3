"""What a backend is, and which there are: the one place that knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kernelne.errors import ParameterError
from kernelne.training.config import TrainingConfig
from kernelne.training.state import TrainingState

if TYPE_CHECKING:
    from kernelne.graph import Graph

#: Called after every block with (walks done, walks in all, loss per pair); True ends the run there.
OnBlock = Callable[[int, int, float], bool | None]


def go_on(done: int, total: int, loss: float) -> None:
    """An `OnBlock` that does nothing."""


@dataclass(frozen=True)
class Prepared:
    """What a backend made of a graph for walks of one kind, shared by all runs on it.

    config: of the run. n_nodes: of the graph.
    graph, noise, workers: the backend's own: the graph as walks read it, the table that negatives are drawn
        from, what works in parallel.
    """

    config: TrainingConfig
    n_nodes: int
    graph: Any
    noise: Any
    workers: Any = None

    @property
    def n_walks(self) -> int:
        """Walks of a whole run."""
        return self.n_nodes * self.config.walks_per_node

    def adapt(self, config: TrainingConfig) -> Prepared:
        """The same walks and negatives for a run with other kernels, decay or number of walks."""
        for name in ("seed", "walk_length", "p", "q", "n_threads"):
            if getattr(config, name) != getattr(self.config, name):
                raise ValueError(f"{name} differs: these walks must be prepared anew")
        return replace(self, config=config)


class Backend(Protocol):
    """Functions that train; a module is one. The tables of a state stay where the backend keeps them."""

    def check_machine(self) -> None:
        """Raise KernelneError if this machine lacks what the backend needs."""

    def check(self, graph: Graph, config: TrainingConfig, n_tables: float, dim: int) -> None:
        """Raise what a run would raise for want of memory.

        n_tables: tables as wide as those trained that are held at the peak, the embedding included. dim: the
        columns of the embedding, to be named in the message.
        """

    def run_bytes(self, graph: Graph, config: TrainingConfig, n_tables: float) -> int:
        """Peak memory of a run, the graph and the process included, in bytes."""

    def prepare(self, graph: Graph, config: TrainingConfig) -> Prepared:
        """Make a graph ready for runs."""

    def start(self, prepared: Prepared) -> TrainingState:
        """The state that a run starts from, by its seed."""

    def run(
        self,
        prepared: Prepared,
        state: TrainingState,
        until: int | None = None,
        on_block: OnBlock = go_on,
    ) -> TrainingState:
        """Train on the walks from `state.next_walk` to `until` - 1 (None: to the last).

        A run that `on_block` ended between two blocks and one that went on from there give together the bits
        of one run, where the backend gives the same bits twice at all. An `until` inside a block ends the
        block there, after which coefficients are stepped once more than in one run.
        """

    def fetch(self, state: TrainingState) -> TrainingState:
        """The state with tables that are NumPy arrays."""


class _Entry(NamedTuple):
    module: str
    repeats_on_threads: bool  # whether `deterministic=True` can be had


#: Never chosen by what the machine has, so that results do not depend on it.
_BACKENDS = {
    "cpu": _Entry("kernelne.training.cpu.backend", True),
    "gpu": _Entry("kernelne.training.gpu.backend", False),
}


def backend_names() -> tuple[str, ...]:
    return tuple(_BACKENDS)


def check_backend(name: Any, deterministic: bool) -> None:
    """Raise ParameterError for a backend that does not exist, or cannot do what is asked of it."""
    if not isinstance(name, str) or name not in _BACKENDS:
        raise ParameterError("backend", name, f"must be one of {', '.join(_BACKENDS)}")
    if deterministic and not _BACKENDS[name].repeats_on_threads:
        able = " or ".join(f"backend={n!r}" for n, entry in _BACKENDS.items() if entry.repeats_on_threads)
        raise ParameterError(
            "deterministic", True, f"backend={name!r} adds steps in no fixed order; use {able} for this"
        )


def load_backend(name: str) -> Backend:
    """The backend of that name; MissingDependencyError where it needs packages that are not installed."""
    check_backend(name, False)
    backend: Any = import_module(_BACKENDS[name].module)
    return backend  # type: ignore[no-any-return]


def train(backend: Backend, graph: Graph, config: TrainingConfig, on_block: OnBlock = go_on) -> TrainingState:
    """A whole run."""
    prepared = backend.prepare(graph, config)
    return backend.fetch(backend.run(prepared, backend.start(prepared), None, on_block))
