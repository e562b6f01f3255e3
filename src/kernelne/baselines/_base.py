"""Base class of all baselines: it checks parameters and memory, measures the time and stores the vectors."""

from __future__ import annotations

import time
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from kernelne._common.checks import available_threads, check_count, check_number, seed_of
from kernelne._common.estimator import Estimator, check_is_fitted
from kernelne._common.fork import fork_safe_openmp
from kernelne._common.memory import available_bytes
from kernelne.embedding import Embedding
from kernelne.embedding.provenance import describe_graph, versions
from kernelne.errors import DivergenceError, InputError, ParameterError, warn
from kernelne.graph import Graph, as_graph
from kernelne.graph.ops import count_isolated
from kernelne.progress import Report, reporting

#: Parameters that are not stored in the provenance.
_CIRCUMSTANCES = {"random_state", "progress", "n_threads"}


class Baseline(Estimator):
    """Base class of node embeddings by other methods, with the interface of KernelNE.

    A subclass stores its parameters, among them dim, n_threads, random_state and progress; lists the names of
    those to check in `_counts`, `_numbers` and `_flags`; and defines `memory_bytes` and `_embed`.

    Attributes
    ----------
    embedding_: float32 (n, dim); row i belongs to graph_.nodes[i].
    graph_, seed_, seconds_: graph, seed and duration of the fit.
    """

    #: Parameters that are integers from 1; `dim` is always checked.
    _counts: ClassVar[tuple[str, ...]] = ()
    #: Parameters that are numbers: True if they must be positive, False if they may be zero.
    _numbers: ClassVar[dict[str, bool]] = {}
    #: Parameters that are True or False.
    _flags: ClassVar[tuple[str, ...]] = ()
    #: Name of the work and unit of what is counted, for the display of progress.
    _task: ClassVar[str] = "training"
    _unit: ClassVar[str] = "walks"

    def memory_bytes(self, graph: Any) -> int:
        """Memory that `fit` allocates at its peak, in bytes, without the graph itself."""
        raise NotImplementedError

    def _embed(self, graph: Graph, seed: int, report: Report) -> NDArray[Any]:
        """Return vectors (n, dim); must call `report(done, total, loss)` regularly, with loss nan if none."""
        raise NotImplementedError

    def _check(self) -> None:
        """Raise a ParameterError for invalid combinations of parameters; called after the simple checks."""

    def check(self, graph: Any) -> Graph:
        """Raise the errors that `fit` would raise before training; returns the graph."""
        for name in ("dim", *self._counts):
            check_count(name, getattr(self, name))
        if self.n_threads is not None:
            check_count("n_threads", self.n_threads)
        for name, positive in self._numbers.items():
            check_number(name, getattr(self, name), positive=positive)
        for name in self._flags:
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(name, getattr(self, name), "must be True or False")
        self._check()
        checked: Graph = as_graph(graph)
        self._check_memory(checked)
        return checked

    def _check_memory(self, graph: Graph) -> None:
        available, needed = available_bytes(), self.memory_bytes(graph)
        if available is not None and needed > available:
            raise InputError(
                f"{type(self).__name__} needs {needed / 2**30:.1f} GiB for {graph.n_nodes:,} nodes and "
                f"{graph.n_edges:,} edges at dim={self.dim}, and {available / 2**30:.1f} GiB are free: "
                "use a smaller graph or a machine with more memory"
            )

    def fit(self, graph: Any, y: Any = None) -> Self:
        """Learn the vectors of a graph's nodes.

        graph: a Graph, a SciPy sparse matrix, a networkx graph, or an array of edges (m, 2) or (m, 3).
        y: ignored, present for compatibility with scikit-learn.
        """
        seed = seed_of(self.random_state)
        checked = self.check(graph)
        if n_isolated := count_isolated(checked):
            message = f"{n_isolated} of {checked.n_nodes} nodes have no edges: their vectors are meaningless"
            warn(message)
        start = time.perf_counter()
        shown = reporting(self.progress, self._task, self._unit)
        with shown as report, threadpool_limits(self._threads()), fork_safe_openmp():
            vectors = np.ascontiguousarray(self._embed(checked, seed, report), dtype=np.float32)
        self.seconds_ = time.perf_counter() - start
        if not np.isfinite(vectors).all():
            raise DivergenceError(f"{type(self).__name__}: the vectors are not finite after training")
        self.embedding_: NDArray[np.float32] = vectors
        self.graph_ = checked
        self.seed_ = seed
        return self

    def _threads(self) -> int:
        return available_threads() if self.n_threads is None else int(self.n_threads)

    def fit_transform(self, graph: Any, y: Any = None) -> NDArray[np.float32]:
        """Fit, and return the vectors: float32 (n, dim); row i belongs to `graph.nodes[i]`."""
        return self.fit(graph, y).embedding_

    def to_embedding(self) -> Embedding:
        """Return the vectors, node ids and provenance as an Embedding, which can be saved."""
        check_is_fitted(self, "embedding_")
        params = self.get_params(deep=False)
        provenance = {
            "model": type(self).__name__,
            "seed": self.seed_,
            "parameters": {name: params[name] for name in params if name not in _CIRCUMSTANCES},
            "graph": describe_graph(self.graph_),
            "seconds": round(self.seconds_, 3),
            "versions": versions(),
        }
        return Embedding(self.embedding_, self.graph_.nodes, provenance=provenance)


def pad_columns(vectors: NDArray[Any], dim: int) -> NDArray[np.float32]:
    """Pad vectors (n, k), k ≤ dim, with zeros to float32 (n, dim): n nodes span at most n dimensions."""
    padded = np.zeros((len(vectors), dim), np.float32)
    padded[:, : vectors.shape[1]] = vectors
    return padded


def unit_rows(vectors: NDArray[Any]) -> NDArray[Any]:
    """Scale rows to length 1; rows of length 0 stay zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0))
