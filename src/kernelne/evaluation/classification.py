"""Node classification as the paper does it: one-vs-rest logistic regression on the raw vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numba
import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from kernelne._common.checks import check_count, check_seed, check_vectors, encode_labels, ids_of
from kernelne._common.html import html_table
from kernelne._common.memory import available_bytes
from kernelne.errors import InputError, ParameterError
from kernelne.evaluation.logistic import fit_classes, whiten
from kernelne.io.labels import Labels, by_id

_ENOUGH_FOR_RANKS = 1e-3  # see `fit_classes`
_CERTAIN = 1e30  # the margin of a label that every training node has; minus that if none has it


@dataclass(frozen=True, eq=False)
class ClassificationScores:
    """F1 of every split; `print` shows mean ± standard deviation by share.

    train_sizes          shares of the nodes that were trained on
    micro_f1, macro_f1   float64 (shares, repeats)
    """

    train_sizes: tuple[float, ...]
    micro_f1: NDArray[np.float64]
    macro_f1: NDArray[np.float64]

    @property
    def micro_mean(self) -> NDArray[np.float64]:
        """(shares,)"""
        return np.asarray(self.micro_f1.mean(axis=1))

    @property
    def micro_std(self) -> NDArray[np.float64]:
        """(shares,), over the splits, divided by their number."""
        return np.asarray(self.micro_f1.std(axis=1))

    @property
    def macro_mean(self) -> NDArray[np.float64]:
        """(shares,)"""
        return np.asarray(self.macro_f1.mean(axis=1))

    @property
    def macro_std(self) -> NDArray[np.float64]:
        """(shares,), over the splits, divided by their number."""
        return np.asarray(self.macro_f1.std(axis=1))

    def __str__(self) -> str:
        columns = (self.train_sizes, self.micro_mean, self.micro_std, self.macro_mean, self.macro_std)
        lines = [
            f"{100 * share:6.4g} %  {micro:.3f} ± {micro_sd:.3f}  {macro:.3f} ± {macro_sd:.3f}"
            for share, micro, micro_sd, macro, macro_sd in zip(*columns, strict=True)
        ]
        return "\n".join(["   train  micro-F1       macro-F1", *lines])

    def _repr_html_(self) -> str:
        columns = (self.train_sizes, self.micro_mean, self.micro_std, self.macro_mean, self.macro_std)
        rows = [
            (f"{100 * share:.4g} %", f"{micro:.3f} ± {micro_sd:.3f}", f"{macro:.3f} ± {macro_sd:.3f}")
            for share, micro, micro_sd, macro, macro_sd in zip(*columns, strict=True)
        ]
        return html_table(["train", "micro-F1", "macro-F1"], rows)


def classify_nodes(
    vectors: Any,
    labels: Any,
    *,
    train_sizes: Iterable[float] = (0.1, 0.5, 0.9),
    n_repeats: int = 50,
    random_state: int = 0,
    n_threads: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> ClassificationScores:
    """Micro- and macro-F1 of one-vs-rest logistic regression (L2, C = 1, as liblinear) over random splits.

    Parameters
    ----------
    vectors: (n, d), finite; or an Embedding.
    labels: one label a node, (n,) of any kind; or an indicator matrix (n, classes) of 0 and 1, dense or
        sparse, where nodes have one label or several. A column that no node has is no class. Or, with an
        Embedding, Labels, a dict {node: label} or a pandas Series whose index holds the ids: matched by node
        id, nodes without a label left out.
    train_sizes: shares of the nodes. The first int(share · n) of a shuffle train, the others are tested.
    n_repeats: shuffles. All shares use the same ones.
    random_state: a whole number; it alone decides the shuffles.
    n_threads: None for all cores this process may use. Scores do not depend on it.
    progress: called with (splits done, splits in all) whenever a shuffle is done.

    A test node with k labels gets its k most probable ones. A label that no training node has comes after all
    others, one that all have before. Micro-F1 counts all decisions together; macro-F1 is the mean over all
    classes, where one that is neither found nor guessed in the test part counts 0, as in scikit-learn's
    `f1_score` with indicator matrices. So a class with a single node counts 0 in every split.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelne import classify_nodes
    >>> labels = np.repeat(["a", "b", "c"], 20)
    >>> vectors = 9 * (labels[:, None] == ["a", "b", "c"])
    >>> print(classify_nodes(vectors, labels, train_sizes=[0.25, 0.5], n_repeats=10))
       train  micro-F1       macro-F1
        25 %  1.000 ± 0.000  1.000 ± 0.000
        50 %  1.000 ± 0.000  1.000 ± 0.000
    """
    table = check_vectors(vectors)
    nodes = ids_of(vectors)
    labels = by_id(labels, nodes)
    if isinstance(labels, Labels):
        if nodes is None:
            raise InputError(
                "labels: Labels go by node id: give an Embedding, or labels.indicator in the order of vectors"
            )
        rows, labels = labels.for_nodes(nodes)
        table = table[rows]
    truth = _indicator(labels, len(table))
    shares, sizes = _check_shares(train_sizes, len(table))
    check_count("n_repeats", n_repeats)
    check_count("n_threads", 1 if n_threads is None else n_threads)
    seed = check_seed(random_state)
    if progress is not None and not callable(progress):
        raise ParameterError("progress", progress, "must be None or a function of (done, in all)")

    scores = []
    # A thread for a shuffle is faster than several for each small product, and no sum depends on how many.
    n_threads = min(int(n_threads or numba.config.NUMBA_NUM_THREADS), _threads_that_fit(table, truth))
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads) as pool:
        Z, penalty = _features(table)

        def score(repeat: int) -> list[tuple[float, float]]:
            order = shuffle(seed, repeat, len(Z))
            rows, known = Z[order], truth[order]
            return [_score_split(rows, known, penalty, n_train) for n_train in sizes]

        for repeat, found in enumerate(pool.map(score, range(n_repeats)), 1):
            scores.append(found)
            if progress is not None:
                progress(repeat * len(sizes), n_repeats * len(sizes))
    micro, macro = np.array(scores).T
    return ClassificationScores(shares, micro, macro)


def classify_split(
    vectors: Any, labels: Any, train: NDArray[np.int64], test: NDArray[np.int64]
) -> tuple[float, float]:
    """Micro- and macro-F1 on the rows `test` (b,) of what `classify_nodes` learns from the rows `train` (a,).

    vectors (n, d) and labels as for `classify_nodes`, one a row.
    """
    table = check_vectors(vectors)
    truth = _indicator(labels, len(table))
    order = np.concatenate([train, test])
    with threadpool_limits(1, "blas"):
        Z, penalty = _features(table)
        return _score_split(Z[order], truth[order], penalty, len(train))


def shuffle(seed: int, repeat: int, n: int) -> NDArray[np.int64]:
    """The order (n,) that `classify_nodes` puts nodes in for this repeat: the first ones train."""
    return np.random.default_rng([seed, repeat]).permutation(n)


def _features(table: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Z and penalty of `whiten` for vectors and a column of ones."""
    wide, penalty, _ = whiten(np.column_stack([table, np.ones(len(table))]))
    return wide.astype(np.float32), penalty.astype(np.float32)


def _score_split(
    Z: NDArray[np.float32], truth: NDArray[np.bool_], penalty: NDArray[np.float32], n_train: int
) -> tuple[float, float]:
    """Micro- and macro-F1 on all but the first n_train rows, learned from those."""
    train, rest = truth[:n_train], truth[n_train:]
    count = train.sum(axis=0)
    learned = (count > 0) & (count < n_train)
    place = 1 + np.arange(count.size)  # so that no two are equal
    margins = np.empty(rest.shape, np.float32)
    margins[:] = np.where(count > 0, _CERTAIN / place, -_CERTAIN * place)
    sign = np.where(train[:, learned], np.float32(1.0), np.float32(-1.0))
    margins[:, learned] = Z[n_train:] @ fit_classes(Z[:n_train], sign, penalty, _ENOUGH_FOR_RANKS).T
    return f1_scores(rest, top_k(margins, rest.sum(axis=1)))


def top_k(margins: NDArray[Any], k: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The k[i] highest of row i."""
    chosen = np.zeros(margins.shape, bool)
    for number in np.unique(k):
        rows = np.flatnonzero(k == number)
        best = np.argpartition(margins[rows], -number, axis=1)[:, -number:]
        chosen[rows[:, None], best] = True
    return chosen


def f1_scores(truth: NDArray[np.bool_], guess: NDArray[np.bool_]) -> tuple[float, float]:
    """Micro- and macro-F1 of guesses (n, K)."""
    hits = (truth & guess).sum(axis=0)
    sizes = truth.sum(axis=0) + guess.sum(axis=0)
    return float(2 * hits.sum() / sizes.sum()), float((2 * hits / np.maximum(sizes, 1)).mean())


def _indicator(labels: Any, n: int) -> NDArray[np.bool_]:
    """Labels as a boolean (n, classes) matrix: every row and every column has something in it."""
    try:
        array = labels.toarray() if scipy.sparse.issparse(labels) else np.asarray(labels)
    except ValueError:  # rows of different lengths
        raise InputError(
            "labels: give one label a node, or an indicator matrix (nodes, classes) of 0 and 1 where nodes "
            "have several: sklearn.preprocessing.MultiLabelBinarizer makes one from lists"
        ) from None
    if array.ndim not in (1, 2) or len(array) != n:
        found = f"{len(array)} labels" if array.ndim in (1, 2) else f"shape {array.shape}"
        raise InputError(f"labels: {found} for {n} vectors: give one a row")
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype != bool:
        raise InputError(f"labels: shape {array.shape}: for one label a node give ({n},), as labels[:, 0]")
    truth = _one_label(array, n) if array.ndim == 1 else _checked_indicator(array)
    if truth.all(axis=0).all():
        raise InputError("labels: every node has the same: two classes at least are needed to tell apart")
    return truth


def _one_label(array: NDArray[Any], n: int) -> NDArray[np.bool_]:
    codes = encode_labels(array, n)
    return np.asarray(codes[:, None] == np.arange(codes.max() + 1))


def _checked_indicator(array: NDArray[Any]) -> NDArray[np.bool_]:
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise InputError(
            "labels: an indicator matrix (nodes, classes) holds 0 and 1; for one label a node give a list"
        )
    truth = array.astype(bool)
    if none := int((~truth.any(axis=1)).sum()):
        raise InputError(
            f"labels: {none} of {len(truth)} nodes have no label: leave them out, as in "
            "known = labels.any(axis=1); classify_nodes(vectors[known], labels[known])"
        )
    return np.asarray(truth[:, truth.any(axis=0)])


def _threads_that_fit(table: NDArray[Any], truth: NDArray[np.bool_]) -> int:
    """How many shuffles can be worked on at once in half of the free memory; at least one."""
    available = available_bytes()
    # A copy of the table, and about six numbers for each node and class.
    each = 4 * (table.size + 6 * truth.size)
    return truth.size if available is None else max(int(available // 2 // each), 1)


def _check_shares(train_sizes: Any, n: int) -> tuple[tuple[float, ...], list[int]]:
    """Shares, and how many of n nodes train for each."""
    shares = tuple(train_sizes) if isinstance(train_sizes, Iterable) else ()
    if not shares:
        raise ParameterError("train_sizes", train_sizes, "must be a list of shares, such as [0.1, 0.5]")
    for share in shares:
        if not isinstance(share, Real) or not 0 < float(share) < 1:
            remedy = "each must be a share above 0 and below 1: 0.1, not 10, for ten percent"
            raise ParameterError("train_sizes", share, remedy)
        if not 1 <= int(float(share) * n) < n:
            remedy = f"leaves none of {n} nodes to train on, or to test: at least 1/{n}, at most {n - 1}/{n}"
            raise ParameterError("train_sizes", share, remedy)
    return tuple(float(share) for share in shares), [int(float(share) * n) for share in shares]
