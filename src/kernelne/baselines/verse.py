"""VERSE: vectors whose inner products distinguish the ends of walks with restarts from random nodes."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.baselines._base import Baseline
from kernelne.baselines._pairs import BATCH, LARGEST_BLOCK, make_drawn, step_pairs
from kernelne.baselines._threads import Totals, run_blocks
from kernelne.baselines._walking import check_rates
from kernelne.errors import ParameterError
from kernelne.graph import Graph, as_graph
from kernelne.progress import Progress, Report
from kernelne.training.cpu.evaluate import FAST, compiled
from kernelne.walks.rng import NOISE, STEP, below, draw, fill_uniform, stream_key
from kernelne.walks.sample import WalkGraph, pick_neighbour, start_node, walk_graph

_LOW = np.uint64(0xFFFFFFFF)


class Plan(NamedTuple):
    """Parameters of the sampled pairs and of the learning rate."""

    seed: np.uint64
    go_on: np.uint64  # α in units of 2⁻³²
    n_samples: int
    first_rate: float
    last_rate: float


@compiled
def walk_ends(first: Any, size: Any, graph: Any, plan: Any, d: Any) -> None:
    """Sample the end nodes of walks from the sources that continue with probability α: personalised PageRank.

    All walks first, first + 1, … take their first step, then their second, …, so that their memory accesses
    overlap. A walk also ends at a node without neighbours.
    """
    for b in range(size):
        d.others[b, 0] = d.sources[b]
        d.moving[b] = True
    n_moving, step = size, 0
    while n_moving:
        for b in range(size):
            if not d.moving[b]:
                continue
            v = d.others[b, 0]
            bits = draw(stream_key(plan.seed, STEP, first + b), step)
            # The lower half of the bits decides whether the walk continues, the upper draws the neighbour.
            if graph.offsets[v] == graph.offsets[v + 1] or (bits & _LOW) >= plan.go_on:
                d.moving[b] = False
                n_moving -= 1
            else:
                d.others[b, 0] = graph.neighbours[pick_neighbour(graph, v, bits)]
        step += 1


@cached(error_model="numpy", fastmath=FAST, _nrt=False)
def train_similar(first: Any, last: Any, graph: Any, plan: Any, vectors: Any, d: Any) -> Any:
    """Train on samples first … last − 1; returns their number, their loss and the number of exploded rows."""
    n, all_loss, n_bad = vectors.shape[0], 0.0, 0
    shift = np.float32(np.log(n))
    for start in range(first, last, BATCH):
        size = min(BATCH, last - start)
        for b in range(size):
            d.sources[b] = start_node(plan.seed, start + b, n)
            key = stream_key(plan.seed, NOISE, start + b)
            for r in range(1, d.others.shape[1]):
                d.others[b, r] = below(draw(key, r), n)
        walk_ends(start, size, graph, plan, d)
        rate = np.float32(plan.first_rate + (plan.last_rate - plan.first_rate) * (start / plan.n_samples))
        loss, bad = step_pairs(size, rate, shift, vectors, vectors, d)
        all_loss += loss
        n_bad += bad
    return last - first, all_loss, n_bad


class VERSE(Baseline):
    """Tsitsulin, Mottin, Karras and Müller, "VERSE: Versatile Graph Embeddings from Similarity Measures",
    WWW 2018.

    There is one table of vectors. σ(⟨u, v⟩ − log n) distinguishes nodes v that personalised PageRank draws
    for u, all u equally often, from nodes drawn uniformly. The shift log n is not in the paper's text but
    needed for its scores: if the vectors of u and an unrelated node are orthogonal, its probability is then
    about 1/n instead of 1/2.

    Parameters
    ----------
    alpha: probability that a walk continues; below 1.
    samples_per_node: number of pairs sampled for each node.
    dim, n_negative, learning_rate, min_learning_rate, n_threads, random_state: as in KernelNE.
    progress: as in KernelNE, with samples in place of walks.

    Attributes
    ----------
    embedding_, graph_, seed_, seconds_: as in every baseline. With n_threads=1 results are reproducible.

    Examples
    --------
    >>> from kernelne.baselines import VERSE
    >>> VERSE(dim=8, random_state=1).fit_transform([(0, 1), (1, 2), (2, 0), (2, 3)]).shape
    (4, 8)
    """

    _counts: ClassVar[tuple[str, ...]] = ("samples_per_node", "n_negative")
    _numbers: ClassVar[dict[str, bool]] = {
        "alpha": False,
        "learning_rate": True,
        "min_learning_rate": False,
    }
    _unit: ClassVar[str] = "samples"

    def __init__(
        self,
        *,
        alpha: float = 0.85,
        samples_per_node: int = 2000,
        dim: int = 128,
        n_negative: int = 5,
        learning_rate: float = 0.025,
        min_learning_rate: float = 1e-4,
        n_threads: int | None = None,
        random_state: Any = None,
        progress: Progress = None,
    ) -> None:
        self.alpha = alpha
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
        if self.alpha > 0.9999:
            raise ParameterError("alpha", self.alpha, "must be at most 0.9999, or walks do not end")

    def memory_bytes(self, graph: Any) -> int:
        checked: Graph = as_graph(graph)
        thresholds = 0 if checked.weights is None else 4 * checked.neighbours.size
        return 4 * checked.n_nodes * self.dim + thresholds

    def _embed(self, graph: Graph, seed: int, report: Report) -> NDArray[np.float32]:
        plan = Plan(
            np.uint64(seed),
            np.uint64(self.alpha * 2.0**32),
            graph.n_nodes * int(self.samples_per_node),
            float(self.learning_rate),
            float(self.min_learning_rate),
        )
        compact: WalkGraph = walk_graph(graph)
        dim = int(self.dim)
        vectors = np.empty((graph.n_nodes, dim), np.float32)
        fill_uniform(vectors, plan.seed, 0.5 / dim)
        drawn = [make_drawn(int(self.n_negative), dim) for _ in range(self._threads())]

        def work(part: int, first: int, last: int) -> Totals:
            done: Totals = train_similar(first, last, compact, plan, vectors, drawn[part])
            return done

        run_blocks(plan.n_samples, LARGEST_BLOCK, self._threads(), work, report)
        return vectors
