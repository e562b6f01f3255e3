"""The loop of methods that compare the nodes of walks by inner products: skip-gram and factorisation.

It is KernelNE's loop (`training.cpu.loop`) with another loss. A walk is one mini-batch with its own
negatives, shared by its pairs. With s = ⟨context, center⟩ and target t, 1 for a pair of the walk and 0 for a
negative, the loss of a pair and its derivative are

    logistic   −t · log σ(s) − (1 − t) · log σ(−s)      σ(s) − t
    squared    (t − s)²                                 2 (s − t)

Unlike with kernels the gradient is not bounded, and all steps of a walk start from the same values: the step
of a node that occurs m times would be m times too long, and in components of a few nodes the vectors would
explode. Therefore a pair has the weight 1/√(m m′) if its two nodes occur m and m′ times in the walk and its
negatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.baselines._clusters import Clusters, gather
from kernelne.model import kernels
from kernelne.model.mixture import n_sums
from kernelne.training.cpu.backend import TrainBlock, WalkRun
from kernelne.training.cpu.barrier import next_block, take, wait_for_all
from kernelne.training.cpu.evaluate import FAST, compiled
from kernelne.training.cpu.loop import Step, sample_batch, walks_at_once, weigh_pairs
from kernelne.training.cpu.rows import measure, read_rows, write_rows
from kernelne.training.cpu.scratch import BATCH
from kernelne.walks.negatives import AliasTable
from kernelne.walks.sample import WalkGraph, WalkPlan

LOGISTIC, SQUARED = 0, 1


_HALF, _ONE, _TWO, _ZERO = np.float32(0.5), np.float32(1.0), np.float32(2.0), np.float32(0.0)


class Walking(NamedTuple):
    """The input of the loop over walks: graph, parameters of the walks, noise distribution, settings."""

    graph: WalkGraph
    plan: WalkPlan
    noise: AliasTable
    step: Step


@compiled
def _count_repeats(n_contexts: Any, rows: Any, damping: Any) -> None:
    """Compute 1/√m for every column; the first columns are the positions of the walk."""
    for i in range(n_contexts):
        m = 0
        for j in range(n_contexts):
            m += rows[i] == rows[j]
        damping[i] = _ONE / np.sqrt(np.float32(m))


@compiled
def _weigh_logistic(rate: Any, norm: Any, norms: Any, damping: Any, w: Any, targets: Any, out: Any) -> Any:
    """Replace squared distances from one center by the weights of its gradient; returns the loss."""
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
    """Replace the distances by the weights of the gradient; returns the loss.

    `write_rows` adds w · (other − own) for every pair, which is the gradient of kernels of a distance. Here
    the gradient is w · other: the decay is changed to make up for the difference.
    """
    columns = s.D.shape[1]
    damping = s.values[0, :columns]  # unused, as there are no kernels
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
    """Learning rate of a walk; it changes linearly from the first walk to the last."""
    return np.float32(step.first_rate + (step.last_rate - step.first_rate) * (walk / step.n_walks))


@compiled
def _step_walk(
    b: Any, ahead: Any, rate: Any, n_pairs: Any, loss_kind: Any, step: Any, tables: Any, s: Any
) -> Any:
    """Train on walk b of the batch; returns its loss and the number of exploded rows.

    ahead: the walk that comes next.
    """
    length = s.lengths[b]
    n_contexts = length + step.n_shared
    n_bad = read_rows(b, rate, n_pairs, step, tables, s)
    measure(length, n_contexts, step.window, ahead, 0, tables, s)
    loss = _weigh(length, n_contexts, rate, loss_kind, s)
    write_rows(length, n_contexts, step.window, 0, tables, s)
    return loss, n_bad


@cached(error_model="numpy", fastmath=FAST, _nrt=False)
def train_inner_products(
    part: Any, n_parts: Any, barrier: Any, walking: Any, loss_kind: Any, clusters: Any, tables: Any, s: Any,
    sums: Any,
) -> None:  # fmt: skip
    """Train on one thread's part of the next block (part 0), or of all blocks until there are no more.

    `sums` collects the pairs, their loss, and the number of exploded rows.
    """
    step, n_pairs = walking.step, 0.0 + s.pairs.sum()
    while True:
        first, last = next_block(barrier, n_parts)
        if first == last:
            return
        at_once = walks_at_once(first, last, n_parts)
        low = take(barrier, at_once)
        while low < last:
            high = min(low + at_once, last)
            for start in range(low, high, BATCH):
                size = min(BATCH, high - start)
                sample_batch(start, size, walking.graph, walking.plan, walking.noise, s)
                for b in range(size):
                    if s.lengths[b] < 2:
                        continue
                    if s.lengths[b] != s.known[0]:
                        n_pairs = weigh_pairs(s.lengths[b], step, s)
                    rate = _rate_of(start + b, step)
                    loss, bad = _step_walk(b, min(b + 1, size - 1), rate, n_pairs, loss_kind, step, tables, s)
                    loss += gather(b, rate, (start + b) / step.n_walks, clusters, tables.center, s)
                    sums[0] += n_pairs
                    sums[1] += loss
                    sums[2] += bad
            low = take(barrier, at_once)
        if not wait_for_all(barrier, n_parts) or part == 0:
            return


class InnerProductLoss:
    """The pair loss of a method that compares nodes by inner products, for `training.cpu.backend.run`.

    kind: LOGISTIC or SQUARED.
    clusters: clusters that attract the vectors, or None.
    """

    def __init__(self, kind: int, clusters: Clusters | None = None) -> None:
        self.kind = kind
        self.clusters = clusters

    @contextmanager
    def training(self, run: WalkRun) -> Iterator[TrainBlock]:
        walking = Walking(run.graph, run.plan, run.noise, run.step)
        clusters = self.clusters or Clusters(run.tables.center[:0], 1.0)
        found = np.zeros((run.config.n_threads, 16))  # on cache lines of their own

        def work(part: int) -> None:
            train_inner_products(
                part, run.config.n_threads, run.workers.barrier, walking, self.kind, clusters, run.tables,
                run.scratch[part], found[part],
            )  # fmt: skip

        with run.workers.team(work) as train:

            def train_block(first: int, last: int) -> tuple[NDArray[np.float64], int]:
                found[...] = 0.0
                train(first, last)
                sums = np.zeros(n_sums(1))
                sums[:2] = found[:, :2].sum(axis=0)
                return sums, int(found[:, 2].sum())

            yield train_block
