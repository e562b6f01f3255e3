"""How long methods take, estimated beforehand from the size of the graph and a short timing of this machine.

The constants below are seconds on one core of an AMD EPYC (Zen 4), from the timings of all methods on the
paper's nine graphs (experiments/results: baselines, table7). They are multiplied by the time that a short
training takes on this machine, in units of the time that it takes on that core. On the nine graphs, of 2,708
to 100,000 nodes, estimates are within a factor of two of what was measured; the exception is HOPE on a random
graph without structure, where eigenvectors converge slowly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelne import baselines
from kernelne._common.checks import available_threads
from kernelne.estimators import KernelNE, MKernelNE
from kernelne.graph import Graph
from kernelne.training.backend import load_backend
from kernelne.training.timing import run_seconds

#: Seconds for each kernel value of a walk and column.
_VALUE = 8.2e-11
#: Columns that take as long as all work that does not depend on their number.
_COLUMNS = 32
#: Time of a walk by its loss; KernelNE with one kernel is 1.
_LOSSES: dict[Any, float] = {baselines.WeightedMF: 1.15, baselines.GEMSEC: 1.9}
_SKIP_GRAM = 1.35
#: Walks with p or q other than 1 take longer.
_SECOND_ORDER = 1.5
#: Each further kernel of a mixture adds a tenth.
_KERNEL = 0.1
#: Seconds for each sample and column.
_SAMPLES: dict[Any, float] = {baselines.LINE: 3.9e-9, baselines.VERSE: 3.0e-9}
#: Seconds for each node, and for each entry of the adjacency matrix, with 128 columns.
_SPARSE: dict[Any, tuple[float, float]] = {
    baselines.HOPE: (6.7e-5, 1.8e-6),
    baselines.ProNE: (5.0e-5, 4.5e-7),
    baselines.MNMF: (5.0e-4, 3.9e-5),
}
#: Seconds for each entry of NetMF's matrix, n².
_SQUARE = 5.5e-8
#: Bytes of a table that add as much time as the work itself, as rows are no longer in the cache; at most this
#: many times as much.
_CACHE, _SLOWEST = 25e6, 4.0


class Clock:
    """The speed of this machine, with all threads and with one, relative to the core of the constants."""

    def __init__(self, n_threads: int | None) -> None:
        threads = available_threads() if n_threads is None else n_threads
        self.one = _measure(1)
        self.all = self.one if threads == 1 else _measure(threads)

    def seconds(self, estimator: Any, graph: Graph) -> float | None:
        """Estimate the time of `fit`; None for an estimator that is not of this package."""
        kind = type(estimator)
        if kind in _SPARSE or kind is baselines.NetMF:
            return self.one * core_seconds(estimator, graph)
        known = isinstance(estimator, KernelNE | MKernelNE | baselines.DeepWalk | baselines.Node2Vec)
        return self.all * core_seconds(estimator, graph) if known or kind in {**_LOSSES, **_SAMPLES} else None


def _measure(n_threads: int) -> float:
    """Return the time of a short training on a ring, relative to that of the constants."""
    n, degree = 3000, 5
    sources = np.tile(np.arange(n), degree)
    ring = Graph.from_edges(sources, (sources + np.repeat(np.arange(1, degree + 1), n)) % n)
    model = KernelNE.paper("gaussian", n_threads=n_threads, random_state=0)
    measured = run_seconds(load_backend("cpu"), ring, model.config(ring), patience=0.2)
    return measured / core_seconds(model, ring)


def core_seconds(estimator: Any, graph: Graph) -> float:
    """Return the time of `fit` on the core of the constants."""
    n, dim, kind = graph.n_nodes, int(estimator.dim), type(estimator)
    slow = min(1 + 4 * n * dim / _CACHE, _SLOWEST)
    columns = dim + _COLUMNS
    if kind is baselines.NetMF:
        return _SQUARE * n**2
    if kind in _SPARSE:
        node, entry = _SPARSE[kind]
        return slow * columns / (128 + _COLUMNS) * (node * n + entry * graph.neighbours.size)
    if kind in _SAMPLES:
        return _SAMPLES[kind] * slow * n * int(estimator.samples_per_node) * columns
    model = estimator.config(graph) if isinstance(estimator, KernelNE | MKernelNE) else estimator
    values = model.walk_length * (model.walk_length + model.shared_negatives)
    loss = _LOSSES.get(kind, _SKIP_GRAM)
    if isinstance(estimator, KernelNE | MKernelNE):
        loss = 1 + _KERNEL * (len(model.kernels) - 1)
    order = 1.0 if model.p == model.q == 1 else _SECOND_ORDER
    return _VALUE * loss * order * (3 + slow) / 4 * n * int(model.walks_per_node * values) * columns
