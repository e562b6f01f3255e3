"""LINE: vectors whose inner products distinguish edges, and neighbours of nodes, from random pairs."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.baselines._base import Baseline
from kernelne.baselines._pairs import BATCH, LARGEST_BLOCK, make_drawn, step_pairs
from kernelne.baselines._threads import Totals, run_blocks
from kernelne.baselines._walking import check_rates, tables_bytes
from kernelne.errors import ParameterError
from kernelne.graph import Graph, as_graph
from kernelne.progress import Progress, Report
from kernelne.training.cpu.evaluate import FAST
from kernelne.training.schedule import NOISE_POWER
from kernelne.walks.negatives import AliasTable, alias_table, draw_alias
from kernelne.walks.rng import NOISE, STEP, below, draw, fill_uniform, stream_key

ORDERS = ("first", "second", "both")


class Edges(NamedTuple):
    """The distributions of the samples: entries of the adjacency matrix by weight, and negatives."""

    sources: NDArray[Any]
    targets: NDArray[Any]
    by_weight: AliasTable  # empty if the graph has no weights
    noise: AliasTable
    seed: np.uint64


class Schedule(NamedTuple):
    n_samples: int
    first_rate: float
    last_rate: float


@cached(error_model="numpy", fastmath=FAST, _nrt=False)
def train_edges(first: Any, last: Any, edges: Any, schedule: Any, center: Any, context: Any, d: Any) -> Any:
    """Train on samples first … last − 1; returns their number, their loss and the number of exploded rows."""
    all_loss, n_bad = 0.0, 0
    for start in range(first, last, BATCH):
        size = min(BATCH, last - start)
        for b in range(size):
            bits = draw(stream_key(edges.seed, STEP, start + b), 0)
            weighted = edges.by_weight.keep.size > 0
            e = draw_alias(edges.by_weight, bits) if weighted else below(bits, edges.sources.size)
            d.sources[b] = edges.sources[e]
            d.others[b, 0] = edges.targets[e]
            key = stream_key(edges.seed, NOISE, start + b)
            for r in range(1, d.others.shape[1]):
                d.others[b, r] = draw_alias(edges.noise, draw(key, r))
        done = start / schedule.n_samples
        rate = np.float32(schedule.first_rate + (schedule.last_rate - schedule.first_rate) * done)
        loss, bad = step_pairs(size, rate, np.float32(0.0), center, context, d)
        all_loss += loss
        n_bad += bad
    return last - first, all_loss, n_bad


class LINE(Baseline):
    """Tang, Qu, Wang, Zhang, Yan and Mei, "LINE: Large-scale Information Network Embedding", WWW 2015.

    First order: σ(⟨u, v⟩) is the probability of an edge. Second order: nodes with the same neighbours have
    similar vectors; neighbours have a table of their own, the contexts. Edges are sampled by weight,
    negatives in proportion to degree^0.75. "both" concatenates the two, half of the columns each, with rows
    scaled to length 1 as in the authors' code.

    Parameters
    ----------
    order: "first", "second" or "both".
    samples_per_node: number of edges sampled for each order, in multiples of the number of nodes.
    dim, n_negative, learning_rate, min_learning_rate, n_threads, random_state: as in KernelNE.
    progress: as in KernelNE, with samples in place of walks.

    Attributes
    ----------
    embedding_, graph_, seed_, seconds_: as in every baseline. With n_threads=1 results are reproducible.

    Examples
    --------
    >>> from kernelne.baselines import LINE
    >>> LINE(dim=8, random_state=1).fit_transform([(0, 1), (1, 2), (2, 0), (2, 3)]).shape
    (4, 8)
    """

    _counts: ClassVar[tuple[str, ...]] = ("samples_per_node", "n_negative")
    _numbers: ClassVar[dict[str, bool]] = {"learning_rate": True, "min_learning_rate": False}
    _unit: ClassVar[str] = "samples"

    def __init__(
        self,
        *,
        order: str = "both",
        samples_per_node: int = 2000,
        dim: int = 128,
        n_negative: int = 5,
        learning_rate: float = 0.025,
        min_learning_rate: float = 1e-4,
        n_threads: int | None = None,
        random_state: Any = None,
        progress: Progress = None,
    ) -> None:
        self.order = order
        self.samples_per_node = samples_per_node
        self.dim = dim
        self.n_negative = n_negative
        self.learning_rate = learning_rate
        self.min_learning_rate = min_learning_rate
        self.n_threads = n_threads
        self.random_state = random_state
        self.progress = progress

    def _check(self) -> None:
        check_rates(self.learning_rate, self.min_learning_rate)
        if self.order not in ORDERS:
            raise ParameterError("order", self.order, f"must be one of {', '.join(ORDERS)}")
        if self.order == "both" and self.dim < 2:
            raise ParameterError("dim", self.dim, "must be at least 2 with order='both': half for each")

    def memory_bytes(self, graph: Any) -> int:
        checked: Graph = as_graph(graph)
        # The source of every entry and, if the graph has weights, an alias table.
        each = 4 if checked.weights is None else 28
        return tables_bytes(checked, self.dim) + each * checked.neighbours.size

    def _embed(self, graph: Graph, seed: int, report: Report) -> NDArray[np.float32]:
        dim = int(self.dim)
        orders = {"first": dim - dim // 2, "second": dim // 2} if self.order == "both" else {self.order: dim}
        n_samples = graph.n_nodes * int(self.samples_per_node)
        parts = []
        for number, (order, columns) in enumerate(orders.items()):

            def count(done: int, total: int, loss: float, before: int = number * n_samples) -> None:
                report(before + done, total * len(orders), loss)

            # The two orders must not be trained on the same samples.
            own_seed = np.uint64(seed) if order == "first" else ~np.uint64(seed)
            parts.append(self._train(graph, columns, order == "first", own_seed, count))
        return parts[0] if len(parts) == 1 else np.hstack([_unit_rows(part) for part in parts])

    def _train(
        self, graph: Graph, dim: int, shared: bool, seed: np.uint64, report: Report
    ) -> NDArray[np.float32]:
        """Return the vectors (n, dim) of one order; `shared`: centers and contexts share one table."""
        center = np.empty((graph.n_nodes, dim), np.float32)
        fill_uniform(center, seed, 0.5 / dim)
        if not graph.n_edges:
            return center
        context = center if shared else np.zeros_like(center)
        edges = _make_edges(graph, seed)
        n_samples = graph.n_nodes * int(self.samples_per_node)
        schedule = Schedule(n_samples, float(self.learning_rate), float(self.min_learning_rate))
        drawn = [make_drawn(int(self.n_negative), dim) for _ in range(self._threads())]

        def work(part: int, first: int, last: int) -> Totals:
            done: Totals = train_edges(first, last, edges, schedule, center, context, drawn[part])
            return done

        run_blocks(n_samples, LARGEST_BLOCK, self._threads(), work, report)
        return center


def _make_edges(graph: Graph, seed: np.uint64) -> Edges:
    sources = np.repeat(np.arange(graph.n_nodes, dtype=graph.neighbours.dtype), graph.degrees)
    weights = None if graph.weights is None else graph.weights.astype(np.float64)
    nothing = AliasTable(np.empty(0, np.uint32), np.empty(0, np.int32))
    # Both ends of an arc count, otherwise nodes without outgoing arcs would never be negatives.
    degrees = sum(np.bincount(ends, weights, graph.n_nodes) for ends in (sources, graph.neighbours))
    return Edges(
        sources,
        graph.neighbours,
        nothing if weights is None else alias_table(weights),
        alias_table(np.asarray(degrees, np.float64) ** NOISE_POWER),
        seed,
    )


def _unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to length 1 in place; zero rows stay zero."""
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    vectors /= np.where(norms > 0, norms, 1)
    return vectors
