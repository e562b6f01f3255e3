"""The loop of the methods that walk and compare nodes by inner products: skip-gram, and plain factorisation.

It is KernelNE's loop (`training.loop`) with another pair function. A walk is one mini-batch with negatives of
its own, shared by its pairs. With s = ⟨context, center⟩ and target t, 1 for a pair of the walk and 0 for a
negative, the loss of a pair and its derivative are

    logistic   −t · log σ(s) − (1 − t) · log σ(−s)      σ(s) − t
    squared    (t − s)²                                 2 (s − t)

Unlike a kernel these have no bounded gradient, and all steps of a walk start from the same values: a node met
m times would go m times too far, and in components of a few nodes the vectors would explode. So a pair counts
1/√(m m′) where its two nodes are among the walk and its negatives m and m′ times.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._jit import cached
from kernelne.baselines._clusters import Clusters, gather
from kernelne.baselines._threads import NORM_LIMIT, Totals, run_blocks
from kernelne.graph import Graph
from kernelne.model import kernels
from kernelne.progress import Report
from kernelne.training.course import NOISE_POWER
from kernelne.training.cpu.loop import (
    BATCH,
    FAST,
    Scratch,
    Step,
    Tables,
    compiled,
    make_scratch,
    measure,
    prefetch_walk,
    read_rows,
    sample_batch,
    weigh_pairs,
    write_rows,
)
from kernelne.walks.noise import AliasTable, alias_table
from kernelne.walks.rng import fill_uniform
from kernelne.walks.sample import WalkGraph, WalkPlan, expected_visits, walk_graph

LOGISTIC, SQUARED = 0, 1


_LARGEST_BLOCK = 65_536
_HALF, _ONE, _TWO, _ZERO = np.float32(0.5), np.float32(1.0), np.float32(2.0), np.float32(0.0)


class Walking(NamedTuple):
    """All that a loop over walks reads: the graph, which walks, which negatives, how long the steps are."""

    graph: WalkGraph
    plan: WalkPlan
    noise: AliasTable
    step: Step


@compiled
def _count_repeats(n_contexts: Any, rows: Any, damping: Any) -> None:
    """1/√m for every column, of which the first are also those of the positions."""
    for i in range(n_contexts):
        m = 0
        for j in range(n_contexts):
            m += rows[i] == rows[j]
        damping[i] = _ONE / np.sqrt(np.float32(m))


@compiled
def _weigh_logistic(rate: Any, norm: Any, norms: Any, damping: Any, w: Any, targets: Any, out: Any) -> Any:
    """Turn squared distances from one center into the weights of its gradient; returns the loss."""
    loss = _ZERO
    for t in range(out.size):
        score = _HALF * (norm + norms[t] - out[t])
        small = kernels.exp(-abs(score))  # never overflows
        chance = (_ONE if score > _ZERO else small) / (_ONE + small)
        # log(1 + e^−s) for a pair, log(1 + e^s) for a negative
        wrong = score * (_ONE - _TWO * targets[t])
        loss += w[t] * (max(wrong, _ZERO) + kernels.log(_ONE + small))
        out[t] = rate * damping[t] * w[t] * (targets[t] - chance)
    return loss


@compiled
def _weigh_squared(rate: Any, norm: Any, norms: Any, damping: Any, w: Any, targets: Any, out: Any) -> Any:
    loss = _ZERO
    for t in range(out.size):
        miss = targets[t] - _HALF * (norm + norms[t] - out[t])
        loss += w[t] * miss * miss
        out[t] = _TWO * rate * damping[t] * w[t] * miss
    return loss


@compiled
def _weigh(length: Any, n_contexts: Any, rate: Any, loss_kind: Any, s: Any) -> Any:
    """Weights of the gradient, in place of the distances; returns the loss.

    `write_rows` adds w · (other − own) for every pair, as kernels of a distance need. Here it is w · other:
    the decay makes up for the difference.
    """
    columns = s.D.shape[1]
    damping = s.values[0, :columns]  # no kernel needs the place
    _count_repeats(n_contexts, s.context_rows, damping)
    loss = 0.0
    for i in range(length):
        here = slice(i * columns, (i + 1) * columns)
        w, targets, out = s.weights[here], s.targets[here], s.D[i]
        own = rate * damping[i]
        if loss_kind == LOGISTIC:
            loss += _weigh_logistic(own, s.center_norms[i], s.context_norms, damping, w, targets, out)
        else:
            loss += _weigh_squared(own, s.center_norms[i], s.context_norms, damping, w, targets, out)
        total = _ZERO
        for t in range(columns):
            total += out[t]
            s.context_decay[t] -= out[t]
        s.center_decay[i] -= total
    return loss


@compiled
def _rate_of(walk: Any, step: Any) -> Any:
    """The learning rate of a walk: a straight line from the first to the last."""
    return np.float32(step.first_rate + (step.last_rate - step.first_rate) * (walk / step.n_walks))


@compiled
def _step_walk(b: Any, rate: Any, n_pairs: Any, loss_kind: Any, step: Any, tables: Any, s: Any) -> Any:
    """Train on walk b of the batch; returns its loss and how many rows have exploded."""
    length = s.lengths[b]
    n_contexts = length + step.n_shared
    n_bad = read_rows(b, rate, n_pairs, step, tables, s)
    measure(length, n_contexts, step.window, s)
    loss = _weigh(length, n_contexts, rate, loss_kind, s)
    write_rows(length, n_contexts, step.window, 0, tables, s)
    return loss, n_bad


@cached(error_model="numpy", fastmath=FAST, _nrt=False)
def train_walks(
    first: Any, last: Any, walking: Any, loss_kind: Any, clusters: Any, tables: Any, s: Any
) -> Any:
    """Train on walks first … last − 1; returns pairs, their loss, and rows seen to have exploded."""
    step = walking.step
    length_known, n_pairs, n_bad, all_pairs, all_loss = 0, 0, 0, 0, 0.0
    for start in range(first, last, BATCH):
        size = min(BATCH, last - start)
        sample_batch(start, size, walking.graph, walking.plan, walking.noise, s)
        for b in range(size):
            if b + 1 < size:
                prefetch_walk(b + 1, tables, s)
            if s.lengths[b] < 2:
                continue
            if s.lengths[b] != length_known:
                length_known = s.lengths[b]
                n_pairs = weigh_pairs(length_known, step, s)
            rate = _rate_of(start + b, step)
            loss, bad = _step_walk(b, rate, n_pairs, loss_kind, step, tables, s)
            loss += gather(b, rate, (start + b) / step.n_walks, clusters, tables.center, s)
            n_bad += bad
            all_pairs += n_pairs
            all_loss += loss
    return all_pairs, all_loss, n_bad


class Trainer:
    """The state of a run: what it reads, its tables, and a scratch for every thread.

    params: an estimator with the parameters of `WalkBaseline`.
    """

    def __init__(self, graph: Graph, params: Any, seed: int, n_threads: int, l2: float = 0.0) -> None:
        self.n_walks = graph.n_nodes * int(params.walks_per_node)
        self.n_threads = n_threads
        self.seed = np.uint64(seed)
        length, n_shared, dim = int(params.walk_length), int(params.shared_negatives), int(params.dim)
        plan = WalkPlan(self.seed, length, 1 / float(params.p), 1 / float(params.q))
        compact = walk_graph(graph)
        visits = expected_visits(compact, plan, int(params.walks_per_node))
        step = Step(
            window=int(params.window),
            n_negative=int(params.n_negative),
            n_shared=n_shared,
            l2=np.float32(l2),
            first_rate=float(params.learning_rate),
            last_rate=float(params.min_learning_rate),
            n_walks=self.n_walks,
            norm_limit=np.float32(NORM_LIMIT),
        )
        self.walking = Walking(compact, plan, alias_table(visits**NOISE_POWER), step)
        self.tables = start_tables(graph.n_nodes, dim, self.seed)
        self.scratch: list[Scratch] = [make_scratch(length, n_shared, dim, 1) for _ in range(n_threads)]

    def run(self, report: Report, loss_kind: int, clusters: Clusters | None = None) -> NDArray[np.float32]:
        """Train on all walks; returns the center table."""
        clusters = clusters or Clusters(self.tables.center[:0], 1.0)

        def work(part: int, first: int, last: int) -> Totals:
            done: Totals = train_walks(
                first, last, self.walking, loss_kind, clusters, self.tables, self.scratch[part]
            )
            return done

        # Longer walks make smaller blocks, so that progress and Ctrl-C do not wait.
        largest = max(_LARGEST_BLOCK * 100 // max(self.walking.plan.length, 10) ** 2, 1)
        run_blocks(self.n_walks, largest, self.n_threads, work, report)
        return self.tables.center


def start_tables(n: int, dim: int, seed: np.uint64) -> Tables:
    """center uniform in ±0.5/dim, context zero, as skip-gram starts."""
    center = np.empty((n, dim), np.float32)
    fill_uniform(center, seed, 0.5 / dim)
    nothing, nowhere = np.empty((0, dim), np.float32), np.empty(0, np.int64)
    return Tables(center, np.zeros_like(center), False, nothing, nowhere, nothing, nowhere)
