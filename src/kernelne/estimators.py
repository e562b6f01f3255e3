"""KernelNE and MKernelNE: check the parameters, call the stages, keep what was learned."""

from __future__ import annotations

import math
import os
import platform
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib import import_module
from typing import Any, Self

import numba
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from kernelne._version import __version__
from kernelne.embedding import Embedding
from kernelne.errors import ParameterError, warn
from kernelne.graph import Graph, as_graph
from kernelne.graph.ops import count_isolated
from kernelne.model import defaults, vectors
from kernelne.model.kernels import check_kernels
from kernelne.progress import Progress, reporting
from kernelne.training import pilot, resources
from kernelne.training.config import TrainingConfig
from kernelne.training.course import Trained

#: Where training runs: never chosen by what the machine has, so that results do not depend on it.
BACKENDS = ("cpu", "gpu")


class _WalkEmbedder(BaseEstimator):  # type: ignore[misc]
    """What the estimators share. Subclasses store their parameters and say what the kernels are."""

    def _kernels(self, settled: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
        raise NotImplementedError

    def config(self) -> TrainingConfig:
        """The parameters, checked, as training takes them."""
        params = defaults.settle(self.get_params(deep=False))
        vectors.check_vector_options(params["vectors"], params["norm"], params["dim"])
        given = {name: params[name] for name in TrainingConfig.__dataclass_fields__ if name in params}
        given |= {"kernels": self._kernels(params), "seed": seed_of(params["random_state"])}
        given = {"coef_l2": 0.0, "coef_spread": 0.0} | given
        given["learn_coefficients"] = "kernels" in params
        if params["backend"] not in BACKENDS:
            raise ParameterError("backend", params["backend"], f"must be one of {', '.join(BACKENDS)}")
        if params["backend"] == "gpu" and params["deterministic"]:
            raise ParameterError(
                "deterministic",
                True,
                "backend='gpu' adds steps in no fixed order; use backend='cpu' for this",
            )
        if given["n_threads"] is None:
            given["n_threads"] = available_threads()
        config = TrainingConfig(**given)
        return replace(config, dim=config.dim // 2) if params["vectors"] == "concat" else config

    def check(self, graph: Any, config: TrainingConfig | None = None) -> Graph:
        """Raise now what `fit` would raise before training; returns the graph."""
        checked, config = as_graph(graph), config or self.config()
        if self.backend == "cpu":
            resources.check_memory(checked, config, self.n_tables())
        else:
            self._backend().check_memory(checked, config)
        return checked

    def n_tables(self) -> int:
        """Tables (n, dim) that `fit` holds at its peak."""
        return vectors.n_tables(defaults.settle(self.get_params(deep=False)))

    def n_walks(self) -> int:
        """Walks from each node in `fit`, at most: those of the pilot, if there is one, and of the run."""
        config = self.config()
        piloted = defaults.is_automatic(self.get_params(deep=False).get("kernels"))
        return config.walks_per_node + (pilot.pilot_walks(config) if piloted else 0)

    def fit(self, graph: Any, y: Any = None) -> Self:
        """Learn the vectors of a graph's nodes.

        graph: a Graph, a SciPy sparse matrix, a graph of networkx, igraph, rustworkx or torch_geometric, a
            table of edges (pandas, polars, pyarrow; see `Graph.from_table`), or edges (m, 2) or (m, 3).
        y: ignored, for scikit-learn's sake.
        """
        config = self.config()
        checked = self.check(graph, config)
        n_isolated = count_isolated(checked)
        if n_isolated:
            warn(f"{n_isolated} of {checked.n_nodes} nodes have no edges: their vectors stay random")
        start = time.perf_counter()
        params = self.get_params(deep=False)
        settled = defaults.settle(params, checked)
        self.chosen_ = {name: value for name, value in settled.items() if value is not params[name]}
        with reporting(self.progress) as report:
            if defaults.is_automatic(params.get("kernels")):
                train = self._backend().train
                config, found, report = pilot.pilot(checked, config, params, train, report)
                self.chosen_ |= found
            trained: Trained = self._backend().train(checked, config, report)
        _warn_of_little(trained.loss, config)
        self.seconds_ = time.perf_counter() - start
        self.graph_: Graph = checked
        self.seed_ = config.seed
        self.kernels_ = config.kernels
        self.center_: NDArray[np.float32] = trained.center
        self.context_: NDArray[np.float32] = trained.context
        self.embedding_: NDArray[np.float32] = vectors.combine(
            checked, trained.center, trained.context, settled["vectors"], settled["norm"]
        )
        self.coefficients_ = trained.coefficients
        self.history_ = trained.history
        self.loss_ = trained.loss
        self._provenance = asdict(config) | {name: settled[name] for name in ("dim", "vectors", "norm")}
        self._provenance |= {"model": type(self).__name__, "backend": self.backend}
        return self

    def check_backend(self) -> None:
        """Raise now what `fit` would raise for want of a GPU or the packages for it."""
        if self.backend == "gpu":
            self._backend().find_device()

    def _backend(self) -> Any:
        """The module that trains; that of the GPU needs packages of its own: imported only if asked for."""
        return import_module(f"kernelne.training.{self.backend}.backend")

    def fit_transform(self, graph: Any, y: Any = None) -> NDArray[np.float32]:
        """`fit`, then the vectors: float32 (n, dim), row i belongs to `graph.nodes[i]`."""
        return self.fit(graph, y).embedding_

    def to_embedding(self) -> Embedding:
        """What was learned, with node ids and provenance, ready to be saved."""
        check_is_fitted(self, "embedding_")
        return Embedding(
            self.embedding_,
            self.graph_.nodes,
            provenance=_provenance(self),
            center=self.center_,
            context=self.context_,
            kernels=self.kernels_,
            coefficients=self.coefficients_,
        )


class KernelNE(_WalkEmbedder):
    """Node embeddings by one kernel.

    Parameters
    ----------
    kernel: "gaussian", "schoenberg" or "inverse_multiquadric".
    sigma: bandwidth of the kernel; smaller is narrower for the Gaussian, larger for Schoenberg's.
    dim: columns of the embedding.
    walks_per_node, walk_length: every node starts so many random walks of so many nodes each.
    window: nodes at most so many steps apart on a walk are each other's context.
    n_negative: random nodes that each pair is weighed against.
    p, q: node2vec's return and in-out parameters; 1, 1 walks by the edges' weights alone.
    learning_rate, min_learning_rate: the rate at the start and, after falling in a straight line, at the end.
    l2: decay of the vectors, λ.
    shared_negatives: negatives drawn for a walk, shared by its pairs; fewer are faster, more are smoother.
    vectors: what becomes the embedding: the "center" table; the "sum" of both; "smooth", that sum plus the
        mean of the neighbours' sums; or "concat", both side by side, each with dim / 2 columns.
    norm: mean length of the embedding's rows; None leaves it as trained.
    backend: "cpu", or "gpu" for one NVIDIA GPU (needs kernelne[gpu]).
    n_threads: None for all cores this process may use; without meaning on a GPU.
    deterministic: the same bits for the same `random_state` on any number of threads; slower.
    random_state: an integer, a NumPy generator, or None for a new seed every time (kept in `seed_`).
    progress: None shows a bar on a terminal when it takes long; True, False, or a function called with
        (walks done, walks in all, loss per pair).

    Attributes
    ----------
    embedding_: float32 (n, dim); row i belongs to graph_.nodes[i].
    center_, context_: float32, the two tables as trained.
    chosen_: parameters that were left open, and what was taken for them.
    coefficients_: float64 (number of kernels,).
    history_: arrays by name, an entry for every block: walks, pairs, loss, learning_rate, coefficients.
    loss_: per pair, over the last walks.
    graph_, kernels_, seed_, seconds_: what was trained on, with what, from which seed, how long.

    Examples
    --------
    >>> from kernelne import KernelNE
    >>> edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
    >>> KernelNE(dim=8, random_state=1).fit(edges).embedding_.shape
    (6, 8)
    """

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        sigma: float = 2.0,
        dim: int = 128,
        walks_per_node: int = 80,
        walk_length: int = 10,
        window: int = 10,
        n_negative: int = 5,
        p: float = 1.0,
        q: float = 1.0,
        learning_rate: float = 0.025,
        min_learning_rate: float = 1e-4,
        l2: float = 1e-2,
        shared_negatives: int = 14,
        vectors: str = "center",
        norm: float | None = None,
        backend: str = "cpu",
        n_threads: int | None = None,
        deterministic: bool = False,
        random_state: Any = None,
        progress: Progress = None,
    ) -> None:
        self.kernel = kernel
        self.sigma = sigma
        self.dim = dim
        self.walks_per_node = walks_per_node
        self.walk_length = walk_length
        self.window = window
        self.n_negative = n_negative
        self.p = p
        self.q = q
        self.learning_rate = learning_rate
        self.min_learning_rate = min_learning_rate
        self.l2 = l2
        self.shared_negatives = shared_negatives
        self.vectors = vectors
        self.norm = norm
        self.backend = backend
        self.n_threads = n_threads
        self.deterministic = deterministic
        self.random_state = random_state
        self.progress = progress

    def _kernels(self, settled: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
        return check_kernels([(self.kernel, self.sigma)], "kernel, sigma")

    @classmethod
    def paper(cls, kernel: str = "gaussian", **changes: Any) -> Self:
        """The paper's model of that name ("gaussian" or "schoenberg", both with sigma 2); changes on top."""
        _check_paper("kernel", kernel, ("gaussian", "schoenberg"))
        settings: dict[str, Any] = {"kernel": kernel, "sigma": 2.0}
        return cls(**(settings | changes))


class MKernelNE(_WalkEmbedder):
    """Node embeddings by a mixture of kernels whose coefficients are learned.

    Parameters
    ----------
    kernels: (name, sigma) pairs, names as in KernelNE. "auto" leaves them and all parameters that are None to
        the graph: a pilot run on a tenth of the walks decides, never a label (`chosen_` says what). With
        kernels given, parameters that are None are KernelNE's, or as said here.
    coef_l2: decay of the coefficients, β; None: 0.02.
    coef_spread: pull of the coefficients towards each other, γ, with a floor under their sum that keeps the
        vectors from collapsing; 0 leaves them free, as in the paper; None: 1.5.

    All other parameters and attributes are KernelNE's.

    Examples
    --------
    >>> from kernelne import MKernelNE
    >>> edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
    >>> model = MKernelNE(kernels=[("gaussian", 1), ("schoenberg", 2)], dim=8, random_state=1).fit(edges)
    >>> model.coefficients_.shape
    (2,)
    """

    def __init__(
        self,
        *,
        kernels: Any = "auto",
        coef_l2: float | None = None,
        coef_spread: float | None = None,
        dim: int = 128,
        walks_per_node: int | None = None,
        walk_length: int | None = None,
        window: int = 10,
        n_negative: int = 5,
        p: float = 1.0,
        q: float = 1.0,
        learning_rate: float = 0.025,
        min_learning_rate: float = 1e-4,
        l2: float | None = None,
        shared_negatives: int = 14,
        vectors: str | None = None,
        norm: float | None = None,
        backend: str = "cpu",
        n_threads: int | None = None,
        deterministic: bool = False,
        random_state: Any = None,
        progress: Progress = None,
    ) -> None:
        self.kernels = kernels
        self.coef_l2 = coef_l2
        self.coef_spread = coef_spread
        self.dim = dim
        self.walks_per_node = walks_per_node
        self.walk_length = walk_length
        self.window = window
        self.n_negative = n_negative
        self.p = p
        self.q = q
        self.learning_rate = learning_rate
        self.min_learning_rate = min_learning_rate
        self.l2 = l2
        self.shared_negatives = shared_negatives
        self.vectors = vectors
        self.norm = norm
        self.backend = backend
        self.n_threads = n_threads
        self.deterministic = deterministic
        self.random_state = random_state
        self.progress = progress

    def _kernels(self, settled: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
        kernels = settled["kernels"]
        if isinstance(kernels, str):
            raise ParameterError(
                "kernels", kernels, 'give "auto", or (name, sigma) pairs such as [("gaussian", 1.0)]'
            )
        return check_kernels(kernels)

    @classmethod
    def paper(cls, kernel: str = "gaussian", dataset: str | None = None, **changes: Any) -> Self:
        """The paper's mixture of that name, "gaussian" or "schoenberg"; changes on top.

        Gaussians have sigma 1, 2, 3, and 0.5, 1, 1.5 for dataset="ppi"; Schoenberg's 1, 1.5, 2.
        """
        _check_paper("kernel", kernel, ("gaussian", "schoenberg"))
        sigmas = (1.0, 1.5, 2.0) if kernel == "schoenberg" else (1.0, 2.0, 3.0)
        if kernel == "gaussian" and str(dataset).lower() == "ppi":
            sigmas = (0.5, 1.0, 1.5)
        settings: dict[str, Any] = {"kernels": tuple((kernel, sigma) for sigma in sigmas)}
        return cls(**(settings | changes))


def _check_paper(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ParameterError(name, value, f"the paper has {' and '.join(known)}")


def estimator_of(provenance: Mapping[str, Any]) -> KernelNE | MKernelNE | None:
    """The estimator an embedding was made with, seed and threads left open; None if it does not say."""
    model = {"KernelNE": KernelNE, "MKernelNE": MKernelNE}.get(str(provenance.get("model")))
    parameters = provenance.get("parameters")
    if model is None or not isinstance(parameters, Mapping) or "kernels" not in parameters:
        return None
    estimator: KernelNE | MKernelNE = model()
    known = estimator.get_params().keys() - {"n_threads"}
    estimator.set_params(**{name: value for name, value in parameters.items() if name in known})
    if isinstance(estimator, KernelNE):
        ((kernel, sigma),) = check_kernels(parameters["kernels"])
        estimator.set_params(kernel=kernel, sigma=sigma)
    return estimator


def available_threads() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _warn_of_little(loss: float, config: TrainingConfig) -> None:
    """Say so when nothing, or next to nothing, was learned."""
    if math.isnan(loss):
        warn("no walk had two nodes to pair: the vectors are the random start")
    # A constant kernel of 1/(1 + n_negative) scores this: pull and push cancel, and the decay wins.
    elif config.learn_coefficients and loss > 0.999 * config.n_negative / (1 + config.n_negative):
        warn(
            f"the loss, {loss:.4f}, is that of vectors which are all alike: too few walks for a small graph, "
            "or too little structure for these kernels; try more walks_per_node, KernelNE or a smaller l2"
        )


def seed_of(random_state: Any) -> int:
    """64 bits from whatever scikit-learn users pass as random_state."""
    if random_state is None:
        return secrets.randbits(64)
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if 0 <= random_state < 2**64:
            return int(random_state)
    elif isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**64, dtype=np.uint64))
    elif isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**64, dtype=np.uint64))
    raise ParameterError(
        "random_state",
        random_state,
        "must be None, an integer from 0 to 2**64 - 1, or a NumPy random generator",
    )


def _provenance(estimator: _WalkEmbedder) -> dict[str, Any]:
    parameters = dict(estimator._provenance)
    return {
        "model": parameters.pop("model"),
        "seed": parameters.pop("seed"),
        "parameters": parameters,
        "chosen": dict(estimator.chosen_),
        "graph": describe_graph(estimator.graph_),
        "backend": parameters.pop("backend"),
        "seconds": round(estimator.seconds_, 3),
        "loss": None if math.isnan(estimator.loss_) else estimator.loss_,
        "versions": versions(),
    }


def describe_graph(graph: Graph) -> dict[str, Any]:
    """What provenance tells of the graph."""
    return {
        "fingerprint": graph.fingerprint,
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "directed": graph.directed,
        "weighted": graph.weights is not None,
    }


def versions() -> dict[str, str]:
    """What provenance tells of the software."""
    return {
        "kernelne": __version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
    }
