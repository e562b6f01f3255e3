"""Scores of link prediction: the paper's logistic regression on pairs, rankings, and controls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelne._common.checks import check_vectors
from kernelne._common.html import html_facts
from kernelne.errors import InputError, ParameterError
from kernelne.evaluation.link_splits import LinkSplit
from kernelne.evaluation.logistic import fit_towards
from kernelne.graph.ops import as_undirected, common_neighbours, loopless_degrees

_BLOCK = 2**22  # numbers in a block of features: 32 MB

#: What is computed of the vectors of the two ends, coordinate by coordinate.
OPERATORS: dict[str, Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]] = {
    "l2": lambda a, b: np.square(a - b),
    "l1": lambda a, b: np.abs(a - b),
    "hadamard": lambda a, b: a * b,
    "average": lambda a, b: (a + b) / 2,
}


@dataclass(frozen=True)
class LinkScores:
    """How well edges are ranked above non-edges; 0.5 is chance for both, with as many of each."""

    auc: float
    average_precision: float

    def _repr_html_(self) -> str:
        return html_facts("links", asdict(self))


def _check_pairs(pairs: ArrayLike, n: int) -> NDArray[np.int64]:
    array = np.asarray(pairs)
    if array.size == 0 and array.dtype.kind == "f":  # an empty list
        array = array.reshape(-1, 2).astype(np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise InputError(f"pairs: shape {array.shape} of {array.dtype}: give row numbers of shape (k, 2)")
    if array.size and not 0 <= array.min() <= array.max() < n:
        raise InputError(f"pairs: rows {array.min()} to {array.max()}: must lie between 0 and {n - 1}")
    return array.astype(np.int64, copy=False)


def _check_operator(operator: str) -> None:
    if operator not in OPERATORS:
        raise ParameterError("operator", operator, f"must be one of {', '.join(OPERATORS)}")


def pair_features(vectors: ArrayLike, pairs: ArrayLike, operator: str = "l2") -> NDArray[Any]:
    """Features (k, d) of pairs (k, 2) of rows of vectors (n, d); float32 for float32 vectors, else float64.

    Coordinate by coordinate, for ends a and b: "l2" (a - b)², the paper's; "l1" |a - b|; "hadamard" a · b;
    "average" (a + b) / 2.
    """
    _check_operator(operator)
    table = check_vectors(vectors)
    rows = _check_pairs(pairs, len(table))
    return OPERATORS[operator](table[rows[:, 0]], table[rows[:, 1]])


def score_links(vectors: Any, split: LinkSplit, *, operator: str = "l2") -> LinkScores:
    """Scores on the test pairs of a logistic regression (L2, C = 1) fitted on the training pairs.

    vectors: an Embedding of `split.graph`, or an array (n, d), row i for its node i. Features are those of
    `pair_features`, raw; the intercept is penalised like the rest, as in liblinear.
    """
    _check_operator(operator)
    if not isinstance(split, LinkSplit):
        raise InputError(f"split: {split!r} is no split: give split_links(graph), and vectors of its .graph")
    table = check_vectors(vectors, split.graph)
    pairs = np.concatenate([split.train_edges, split.train_non_edges])
    sign = np.repeat([1.0, -1.0], [len(split.train_edges), len(split.train_non_edges)])

    def blocks() -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        return ((X, sign[rows]) for X, rows in _blocks(table, pairs, operator))

    w = fit_towards(blocks, np.zeros(table.shape[1] + 1))
    edges, non_edges = (
        np.concatenate([X @ w for X, _ in _blocks(table, test, operator)])
        for test in (split.test_edges, split.test_non_edges)
    )
    return rank_scores(edges, non_edges)


def _blocks(
    table: NDArray[Any], pairs: NDArray[np.int64], operator: str
) -> Iterator[tuple[NDArray[np.float64], slice]]:
    """Features (rows, d + 1) of a block of pairs, the last column ones; and which pairs they are.

    All at once they would be gigabytes for a million edges.
    """
    size = max(1, _BLOCK // (table.shape[1] + 1))
    for start in range(0, len(pairs), size):
        part = pairs[start : start + size]
        X = np.ones((len(part), table.shape[1] + 1))
        X[:, :-1] = OPERATORS[operator](table[part[:, 0]], table[part[:, 1]])
        yield X, slice(start, start + size)


def rank_scores(scores_edges: ArrayLike, scores_non_edges: ArrayLike) -> LinkScores:
    """Scores of a ranking by numbers (k,) given to edges and (l,) given to non-edges; higher is likelier.

    AUC is the chance that an edge is above a non-edge, a tie counting one half; average precision, as in
    scikit-learn, is the mean precision at each edge.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    parts = [np.asarray(part, np.float64) for part in (scores_edges, scores_non_edges)]
    for name, part in zip(("scores_edges", "scores_non_edges"), parts, strict=True):
        if part.ndim != 1 or not part.size or not np.isfinite(part).all():
            raise InputError(f"{name}: shape {part.shape}: give finite numbers, one a pair, at least one")
    truth = np.repeat([True, False], [part.size for part in parts])
    scores = np.concatenate(parts)
    return LinkScores(float(roc_auc_score(truth, scores)), float(average_precision_score(truth, scores)))


def control_scores(graph: Any, pairs: ArrayLike) -> dict[str, NDArray[np.float64]]:
    """What needs no embedding: for pairs (k, 2) of rows, (k,) float64 each, by name.

    "degree_product", "common_neighbours" and "adamic_adar" (common neighbours, each weighed 1/log degree).
    Weights, directions and self-loops are ignored. An embedding that predicts links should beat these.
    """
    plain = as_undirected(graph)
    rows = _check_pairs(pairs, plain.n_nodes)
    degrees = loopless_degrees(plain)
    common, adamic_adar = common_neighbours(plain.offsets, plain.neighbours, degrees, rows)
    product = degrees[rows[:, 0]].astype(np.float64) * degrees[rows[:, 1]]
    return {"degree_product": product, "common_neighbours": common, "adamic_adar": adamic_adar}
