"""The base class of KernelNE and MKernelNE: checks the parameters, trains, and stores the result."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelne._common.checks import available_threads, seed_of
from kernelne._common.estimator import Estimator, check_is_fitted
from kernelne.embedding import Embedding
from kernelne.embedding.provenance import describe_graph, versions
from kernelne.errors import warn
from kernelne.graph import Graph, as_graph
from kernelne.graph.ops import count_isolated, neighbourhoods
from kernelne.growth.update import fold_in, update_embedding
from kernelne.model import combine_tables, defaults
from kernelne.model.joint_axes import SHORT
from kernelne.model.kernels import own_hashes
from kernelne.progress import reporting
from kernelne.training.backend import Backend, OnBlock, check_backend, load_backend, train
from kernelne.training.checkpoint import Checkpoint, Interrupted, train_on
from kernelne.training.config import TrainingConfig
from kernelne.training.part_files import room_on_disk
from kernelne.training.parts.plan import Engine, Plan, make_plan
from kernelne.training.schedule import warn_of_little
from kernelne.training.state import TrainingState


class WalkEmbedder(Estimator):
    """Base class of the estimators. Subclasses store their parameters and define `_kernels`."""

    _embedding: NDArray[np.float32] | None
    #: Whether `fit` ends with what there is if a signal stops it, and how it was stopped.
    keeps_partial = False
    _updated: Any = None
    stopped: Interrupted | None = None

    def _kernels(self, settled: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
        raise NotImplementedError

    def _settle(self, graph: Graph | None = None) -> dict[str, Any]:
        """Return the parameters, with defaults for those that are None."""
        return defaults.settle(self.get_params(deep=False), graph)

    def config(self, graph: Graph | None = None) -> TrainingConfig:
        """Check the parameters and return them as a TrainingConfig, for this graph if it is given."""
        params = self._settle(graph)
        self._kept()
        combine_tables.check_options(params["vectors"], params["norm"], params["dim"])
        check_backend(params["backend"], params["deterministic"])
        self._engine().check(params["backend"])
        given = {name: params[name] for name in TrainingConfig.__dataclass_fields__ if name in params}
        given |= {"kernels": self._kernels(params), "seed": seed_of(params["random_state"])}
        given = {"coef_l2": 0.0, "coef_spread": 0.0} | given
        given["learn_coefficients"] = "kernels" in params
        if given["n_threads"] is None:
            given["n_threads"] = available_threads()
        config = TrainingConfig(**given)
        return replace(config, dim=config.dim // 2) if params["vectors"] == "concat" else config

    def check(self, graph: Any) -> Graph:
        """Raise the errors that `fit` would raise before training; returns the graph."""
        checked = as_graph(graph)
        self._check(checked)
        return checked

    def _check(self, graph: Graph) -> tuple[TrainingConfig, Plan]:
        """Return the settings for a graph and how it is trained; raises an error if it does not fit."""
        config, plan = self.config(graph), self.plan(graph)
        config = replace(config, parts=plan.parts)
        plan.backend.check(graph, config, self.n_tables(), int(self.dim))
        return config, plan

    def plan(self, graph: Graph) -> Plan:
        """Return how a graph is trained: without parts, or in how many, and where."""
        asked = self._engine()
        if asked.is_plain:
            return Plan(self._backend(), None, "without parts")
        return make_plan(graph, self.config(graph), asked, self._backend(), self.n_tables())

    def _engine(self) -> Engine:
        kept = self._kept()
        folder = None if kept is None else kept.folder
        return Engine(self.engine, self.parts, self.memory, self.address, folder)

    def n_tables(self) -> float:
        """Memory at the peak in units of one trained table, `embedding_` included."""
        settled = self._settle()
        return combine_tables.n_tables(settled["vectors"], settled["norm"])

    def fit(self, graph: Any, y: Any = None) -> Self:
        """Learn the vectors of a graph's nodes.

        graph: a Graph, a SciPy sparse matrix, a graph of networkx, igraph, rustworkx or torch_geometric, a
            table of edges (pandas, polars, pyarrow; see `Graph.from_table`), or an array of edges of shape
            (m, 2) or (m, 3).
        y: ignored, present for compatibility with scikit-learn.

        If `fit` raises an error, the estimator is not changed.
        """
        self.config()  # raises errors in the parameters before the graph is read
        checked = as_graph(graph)
        config, plan = self._check(checked)
        chosen = self._chosen(checked)
        kept, state = self._kept(), None
        if kept is not None:
            config, state = kept.load(checked, config, self.random_state is None)
        n_isolated = count_isolated(checked)
        if n_isolated:
            warn(f"{n_isolated} of {checked.n_nodes} nodes have no edges: their vectors stay random")
        start = time.perf_counter()
        state, stopped = self._train(plan, checked, config, kept, state)
        if stopped is not None and not self.keeps_partial:
            raise stopped
        seconds = time.perf_counter() - start
        warn_of_little(state, config)
        self.chosen_ = chosen
        self.seconds_ = seconds
        self.graph_: Graph = checked
        self.seed_ = config.seed
        self.kernels_ = config.kernels
        self.center_: NDArray[np.float32] = state.center
        self.context_: NDArray[np.float32] = state.context
        self.coefficients_ = state.coefficients
        self.history_ = state.history
        self.loss_ = state.loss
        self.stopped = stopped
        self._embedding = self._updated = None
        self._trained_with = asdict(config) | {
            name: self._settle(checked)[name] for name in ("dim", "vectors", "norm")
        }
        if config.parts is None:
            del self._trained_with["parts"]
        self._own_kernels = own_hashes(name for name, _ in config.kernels)
        self._trained_with |= {"model": type(self).__name__, "backend": self.backend}
        return self

    def _chosen(self, graph: Graph) -> dict[str, Any]:
        """Return the values of the parameters that were not given."""
        given = self.get_params(deep=False)
        return {name: value for name, value in self._settle(graph).items() if value is not given[name]}

    def _kept(self) -> Checkpoint | None:
        """Return where the state of the run is kept."""
        if self.checkpoint is None:
            return None
        return Checkpoint.at(self.checkpoint, self.checkpoint_every, type(self).__name__)

    def _train(
        self,
        plan: Plan,
        graph: Graph,
        config: TrainingConfig,
        kept: Checkpoint | None,
        state: TrainingState | None,
    ) -> tuple[TrainingState, Interrupted | None]:
        report: OnBlock
        with reporting(self.progress) as report:
            if kept is None and not self.keeps_partial:
                return train(plan.backend, graph, config, report), None
            return train_on(plan.backend, graph, config, report, kept, state)

    @property
    def embedding_(self) -> NDArray[np.float32]:
        """float32 (n, dim); row i belongs to graph_.nodes[i]. Computed from both tables on first access."""
        if not hasattr(self, "center_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet: call fit first")
        if self._embedding is None:
            how = (self._trained_with["vectors"], self._trained_with["norm"])
            n, width = self.center_.shape
            shape, folder = (n, width * (1 + (how[0] == "concat"))), self.checkpoint
            # Where the tables did not fit in memory, the vectors may not fit, either.
            mapped = isinstance(self.center_, np.memmap)
            out = room_on_disk(shape, None if folder is None else Path(folder)) if mapped else None
            # A slab is as large as four parts of one table, less than training took. It depends on the parts
            # alone, so that the bits are those of any engine.
            slabs = -(-self._trained_with.get("parts", 1) // 4)
            chosen = "norm" in self.chosen_
            made = combine_tables.combine_in_frame(
                self.graph_, self.center_, self.context_, *how, out, slabs, chosen
            )
            self._embedding, self._frame = made
            if chosen and self._frame.grouped:
                self.chosen_["norm"] = self._trained_with["norm"] = min(how[1], SHORT)
        return self._embedding

    def transform(self, edges: Any) -> Embedding:
        """Return the embedding with vectors of new nodes, found from their links: see `fold_in`.

        The estimator is not changed.
        """
        check_is_fitted(self, "center_")
        return fold_in(self.to_embedding(), edges)

    def update(self, graph: Any) -> Self:
        """Update the vectors for a graph that has changed: see `update_embedding`. Returns the estimator.

        Walks start around what has changed; the space, the settings and the coefficients stay the same.
        """
        check_is_fitted(self, "center_")
        checked, start = as_graph(graph), time.perf_counter()
        options = {"deterministic": self.deterministic, "random_state": self.random_state}
        made = update_embedding(
            self.to_embedding(), checked, n_threads=self.n_threads, progress=self.progress, **options
        )
        assert made.center is not None
        assert made.context is not None
        self.graph_, self.center_, self.context_ = checked, made.center, made.context
        self._embedding, self.seconds_ = made.vectors, time.perf_counter() - start
        self._updated = made.provenance.get("update")
        return self

    def check_backend(self) -> None:
        """Raise the error that `fit` would raise if the device or its packages are missing."""
        self._backend().check_machine()
        if self.engine == "ray":
            from kernelne.training.parts.cluster import import_ray

            import_ray()

    def _backend(self) -> Backend:
        return load_backend(self.backend)

    def fit_transform(self, graph: Any, y: Any = None) -> NDArray[np.float32]:
        """Fit, and return the vectors: float32 (n, dim); row i belongs to `graph.nodes[i]`."""
        return self.fit(graph, y).embedding_

    def to_embedding(self) -> Embedding:
        """Return the vectors, node ids and provenance as an Embedding, which can be saved."""
        check_is_fitted(self, "center_")
        vectors = self.embedding_  # makes the frame
        return Embedding(
            vectors,
            self.graph_.nodes,
            provenance=self._provenance(),
            center=self.center_,
            context=self.context_,
            kernels=self.kernels_,
            coefficients=self.coefficients_,
            axes=self._frame.axes,
            neighbourhoods=neighbourhoods(self.graph_, np.arange(self.graph_.n_nodes)),
        )

    def _provenance(self) -> dict[str, Any]:
        parameters = dict(self._trained_with)
        return {
            "model": parameters.pop("model"),
            "seed": parameters.pop("seed"),
            "parameters": parameters,
            "chosen": dict(self.chosen_),
            **({"own_kernels": dict(self._own_kernels)} if self._own_kernels else {}),
            "graph": describe_graph(self.graph_),
            "backend": parameters.pop("backend"),
            "frame": {name: getattr(self._frame, name) for name in ("weight", "scale", "smoothing")},
            "seconds": round(self.seconds_, 3),
            "loss": None if math.isnan(self.loss_) else self.loss_,
            **({} if self._updated is None else {"update": self._updated}),
            **({} if self.stopped is None else {"stopped_after": float(f"{self.stopped.done:.4g}")}),
            "versions": versions(),
        }
