"""What the tests of the trained baselines share: a graph whose groups are known, and steps in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelne.evaluation.classification import classify_nodes
from kernelne.graph import Graph
from kernelne.model.objective import walk_pairs

Floats = NDArray[np.float64]


def planted() -> tuple[Graph, NDArray[np.int64]]:
    """Four groups of 50 nodes, about 10 edges a node inside its group and 3 to others; and the groups."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 50)
    chance = np.where(labels[:, None] == labels, 10 / 50, 3 / 150)
    upper = np.triu(rng.random((200, 200)) < chance, 1)
    return Graph.from_scipy(scipy.sparse.csr_array(upper | upper.T)), labels


def assert_learns(model: Any, least: float = 0.8) -> None:
    """Groups are hard to read off what the model starts from, easy off what it learns: F1 above `least`."""
    graph, labels = planted()

    def score(vectors: Any) -> float:
        return float(classify_nodes(vectors, labels, train_sizes=(0.1,), n_repeats=5).micro_f1.mean())

    rates = {"learning_rate": model.learning_rate, "min_learning_rate": model.min_learning_rate}
    untrained = model.set_params(learning_rate=1e-30, min_learning_rate=0.0).fit(graph).embedding_
    assert score(untrained) < 0.45
    assert score(model.set_params(**rates).fit(graph).embedding_) > least


def crumbs() -> Graph:
    """A ring, two nodes with an edge, a node with a loop, a node alone: where steps overshoot most."""
    ring = np.arange(20)
    sources = np.concatenate([ring, [20, 22]])
    targets = np.concatenate([(ring + 1) % 20, [21, 22]])
    return Graph.from_edges(sources, targets, nodes=np.arange(24))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def walk_steps(
    walk: Any, noise: Any, center: Floats, context: Floats, *, window: int, n_negative: int, l2: float,
    rate: float, squared: bool,
) -> tuple[Floats, Floats, float]:  # fmt: skip
    """What one walk adds to the tables, and its loss: the formulas of `_skipgram` and `objective`."""
    pairs = walk_pairs(walk, noise, window=window, n_negative=n_negative)
    seen = np.bincount(np.concatenate([walk, noise]), minlength=len(center))
    damping = 1 / np.sqrt(seen[pairs.centers] * seen[pairs.contexts])
    a, b = context[pairs.contexts], center[pairs.centers]
    score, t = (a * b).sum(axis=1), pairs.targets
    if squared:
        loss, slope = (t - score) ** 2, 2 * (score - t)
    else:
        loss, slope = np.logaddexp(0, np.where(t == 1, -score, score)), sigmoid(score) - t
    pull = -(damping * pairs.weights * slope)[:, None]
    d_center, d_context = np.zeros_like(center), np.zeros_like(context)
    np.add.at(d_center, pairs.centers, pull * a)
    np.add.at(d_context, pairs.contexts, pull * b)
    np.add.at(d_center, pairs.center_rows, -l2 * pairs.center_decays[:, None] * center[pairs.center_rows])
    np.add.at(
        d_context, pairs.context_rows, -l2 * pairs.context_decays[:, None] * context[pairs.context_rows]
    )
    return rate * d_center, rate * d_context, float((pairs.weights * loss).sum())


def pair_steps(
    u: int, others: Any, center: Floats, context: Floats, rate: float, shift: float
) -> tuple[Floats, Floats, float]:
    """What one pair and its negatives add to the rows of center and of context, and their loss."""
    score = context[others] @ center[u] - shift
    target = np.arange(len(others)) == 0
    pull = rate * (target - sigmoid(score))
    d_center, d_context = np.zeros_like(center), np.zeros_like(context)
    d_center[u] = pull @ context[others]
    np.add.at(d_context, others, pull[:, None] * center[u])
    return d_center, d_context, float(np.logaddexp(0, np.where(target, -score, score)).sum())
