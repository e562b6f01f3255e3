"""NodeClassifier: predicts the labels of nodes without one from their vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from kernelne._common.checks import check_count, check_seed, check_vectors, ids_of
from kernelne._common.html import html_facts
from kernelne.errors import InputError, ParameterError
from kernelne.evaluation.classification import f1_scores, shuffle, top_k
from kernelne.evaluation.logistic import fit_classes, fit_towards, whiten
from kernelne.io.labels import Labels, by_id, given_labels

_ENOUGH = 1e-4  # see `fit_classes`
_CERTAIN = 30.0  # largest margin that is used: more would only be rounding
_BINS = 10  # of the calibration error
_SLOPES = 0.05, 50.0  # range in which the slope of the calibration is sought
_THRESHOLDS = np.linspace(0.05, 0.8, 76)


@dataclass(frozen=True)
class PredictionScores:
    """How good the predictions are, on nodes that were left out in turn; `print` shows them.

    accuracy           share of nodes whose labels are all right: none missing and none too many
    precision          share of predicted labels that are right
    micro_f1, macro_f1  of all decisions together, and mean over the classes
    calibration_error  how far a probability is from the share of nodes for which it holds, on average
    majority           accuracy of predicting the most frequent label for all
    n_nodes            number of labelled nodes
    kept               share of nodes with a label that reaches the threshold; accuracy, precision, F1 and
                       majority are theirs
    """

    accuracy: float
    precision: float
    micro_f1: float
    macro_f1: float
    calibration_error: float
    majority: float
    n_nodes: int
    kept: float = 1.0

    def __str__(self) -> str:
        if self.kept == 0:
            return f"the labels of none of {self.n_nodes:,} labelled nodes reach the threshold"
        kept = "" if self.kept == 1 else f"{100 * self.kept:.1f} % reach the threshold, of these "
        return (
            f"{kept}accuracy {self.accuracy:.3f} (most frequent label: {self.majority:.3f}), precision "
            f"{self.precision:.3f}, micro-F1 {self.micro_f1:.3f}, macro-F1 {self.macro_f1:.3f}, calibration "
            f"error {self.calibration_error:.3f} on {self.n_nodes:,} labelled nodes, each left out once"
        )

    def _repr_html_(self) -> str:
        return html_facts("left out once", asdict(self))


class NodeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts the labels of nodes from their vectors, with calibrated probabilities.

    The classifier is that of `classify_nodes`: one-vs-rest logistic regression, L2, C = 1. Labelled nodes are
    left out in turn; how the margins of those turned out gives the probabilities and `scores_`.

    Parameters
    ----------
    threshold: predict None for nodes whose best label has a lower probability; 0 predicts one for all. With
        several labels a node: the least probability of a predicted label, None chooses it by micro-F1.
    cv: number of parts into which the labelled nodes are divided to leave them out.
    random_state: the seed of this division, an integer.

    Attributes
    ----------
    classes_: (K,) the labels.
    scores_: how good the predictions are (PredictionScores).
    multilabel_: whether nodes may have several labels; `predict` then returns an indicator matrix.

    Examples
    --------
    >>> from kernelne import MKernelNE, NodeClassifier, load_dataset
    >>> data = load_dataset("karate")
    >>> embedding = MKernelNE(dim=16, random_state=0, n_threads=1).fit(data.graph).to_embedding()
    >>> known = {0: "Mr. Hi", 1: "Mr. Hi", 2: "Mr. Hi", 33: "Officer", 32: "Officer", 31: "Officer"}
    >>> model = NodeClassifier(cv=3).fit(embedding, known)
    >>> model.predict(embedding).shape, model.predict_proba(embedding).shape
    ((34,), (34, 2))
    """

    def __init__(self, *, threshold: float | None = None, cv: int = 5, random_state: int = 0) -> None:
        self.threshold = threshold
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from labelled nodes.

        X: an Embedding, or vectors (n, d).
        y: with an Embedding, Labels, a dict {node: label} or a pandas Series whose index holds the ids; nodes
            without a label (None, NaN, pandas.NA) are left out. With vectors one label a row, None if it has
            none; or an indicator matrix (n, classes) of 0 and 1, where rows without a label are left out.
            Instead of a label there may be a list or set of labels.
        """
        check_count("cv", self.cv)
        seed = check_seed(self.random_state)
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ParameterError(
                "threshold", self.threshold, "must be a probability between 0 and 1, or None"
            )
        table = check_vectors(X)
        rows, truth, classes = _labelled(y, ids_of(X), len(table))
        if truth.shape[1] < 2:
            raise InputError("labels: every node has the same: two classes at least are needed to tell apart")
        known = table[rows]
        n_parts = min(max(self.cv, 2), len(known))
        multilabel = bool((truth.sum(axis=1) > 1).any())
        left_out = np.empty(truth.shape, np.float64)
        order = shuffle(seed, 0, len(known))
        Z, penalty, back = whiten(_widened(known))
        for part in range(n_parts):
            test = order[part::n_parts]
            train = np.setdiff1d(order, test)
            left_out[test] = Z[test] @ _weights(Z[train], truth[train], penalty).T
        left_out = left_out.clip(-_CERTAIN, _CERTAIN)
        self._weights = _weights(Z, truth, penalty) @ back.T
        self._slope, self._shift = _calibrate(left_out, truth, multilabel)
        self.multilabel_, self.classes_, self.n_features_in_ = multilabel, classes, table.shape[1]
        chances = self._chances(left_out)
        self._least = self.threshold
        if multilabel and self.threshold is None:
            micro = [f1_scores(truth, self._told(chances, least))[0] for least in _THRESHOLDS]
            self._least = float(_THRESHOLDS[int(np.argmax(micro))])
        self.scores_ = self._score(chances, truth)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities (n, K) of the labels `classes_` for an Embedding or vectors (n, d).

        With one label a node those of a node sum to 1.
        """
        check_is_fitted(self, "classes_")
        table = check_vectors(X)
        if table.shape[1] != self.n_features_in_:
            raise InputError(f"X has {table.shape[1]} columns, the vectors of fit had {self.n_features_in_}")
        margins = _widened(table) @ self._weights.T
        return self._chances(margins.clip(-_CERTAIN, _CERTAIN))

    def predict(self, X: Any, n_labels: Any = None) -> NDArray[Any]:
        """Return the most probable labels (n,), None below the threshold; or an indicator (n, K) of labels.

        n_labels: how many labels nodes have, a number or (n,), where this is known and there are several.
        """
        chances = self.predict_proba(X)
        if n_labels is not None:
            counts = np.broadcast_to(np.asarray(n_labels), len(chances))
            if counts.dtype.kind not in "iu" or not ((counts >= 1) & (counts <= len(self.classes_))).all():
                raise ParameterError("n_labels", n_labels, f"must be from 1 to {len(self.classes_)}")
            return top_k(chances, counts)
        if self.multilabel_:
            return self._told(chances, float(self._least or 0.0))
        best: NDArray[Any] = self.classes_[chances.argmax(axis=1)]
        unsure = chances.max(axis=1) < (self.threshold or 0.0)
        if unsure.any():
            best = best.astype(object)
            best[unsure] = None
        return best

    def _chances(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        scaled = self._slope * margins + self._shift
        return np.asarray(expit(scaled) if self.multilabel_ else softmax(scaled, axis=1))

    def _told(self, chances: NDArray[np.float64], least: float) -> NDArray[np.bool_]:
        """Labels (n, K) of at least this probability; the best in any case, unless a threshold is given."""
        told = chances >= least
        if self.threshold is None:
            told[np.arange(len(told)), chances.argmax(axis=1)] = True
        return told

    def _score(self, chances: NDArray[np.float64], truth: NDArray[np.bool_]) -> PredictionScores:
        told = np.zeros(truth.shape, bool)
        told[np.arange(len(told)), chances.argmax(axis=1)] = True
        if self.multilabel_:
            told = self._told(chances, float(self._least or 0.0))
            error = calibration_error(chances.ravel(), truth.ravel())
        else:
            best = chances.argmax(axis=1)
            error = calibration_error(chances.max(axis=1), truth[np.arange(len(best)), best])
        sure = (chances >= self.threshold).any(axis=1) if self.threshold else np.ones(len(truth), bool)
        if not sure.any():
            nan = float("nan")
            return PredictionScores(nan, nan, nan, nan, error, nan, len(truth), 0.0)
        told, kept = told[sure], truth[sure]
        micro, macro = f1_scores(kept, told)
        common = np.arange(truth.shape[1]) == truth.sum(axis=0).argmax()
        exact = [float((guess == kept).all(axis=1).mean()) for guess in (told, common[None])]
        precision = float(kept[told].mean())
        return PredictionScores(
            exact[0], precision, micro, macro, error, exact[1], len(truth), float(sure.mean())
        )


def calibration_error(chances: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Expected calibration error: mean difference of probability and share that is right, in ten bins."""
    bins = np.minimum((chances * _BINS).astype(np.int64), _BINS - 1)
    gap = np.bincount(bins, chances - right, _BINS)
    return float(np.abs(gap).sum() / max(len(chances), 1))


def _labelled(
    y: Any, nodes: NDArray[Any] | None, n: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[Any]]:
    """Return the rows with labels (m,), their indicator (m, K), and the classes (K,)."""
    given = by_id(y, nodes)
    if isinstance(given, Labels):
        if nodes is None:
            raise InputError("y: these labels go by node id: give an Embedding as X")
        rows, truth = given.for_nodes(nodes)
        kept = truth.any(axis=0)
        return rows, truth[:, kept], given.classes[kept]
    try:
        table = np.asarray(given)
    except ValueError:  # lists of labels, of different lengths
        table = np.fromiter(given, object, len(given))
    if table.ndim == 2 and len(table) == n and np.isin(table, (0, 1)).all():
        truth = table.astype(bool)
        rows, kept = np.flatnonzero(truth.any(axis=1)), truth.any(axis=0)
        return rows, truth[rows][:, kept], np.flatnonzero(kept)
    if table.shape != (n,) and (isinstance(given, np.ndarray) or len(table) != n):
        raise InputError(f"y: shape {table.shape} for {n} vectors: give one label a row, None if it has none")
    named = given_labels(np.arange(n), list(given))
    return named.nodes, named.indicator, named.classes


def _widened(table: NDArray[Any]) -> NDArray[np.float64]:
    return np.column_stack([table, np.ones(len(table))]).astype(np.float64)


def _weights(Z: NDArray[np.float64], truth: NDArray[np.bool_], penalty: NDArray[np.float64]) -> NDArray[Any]:
    """Weights (K, r); a label that no node has, or all have, is told by the intercept alone."""
    return fit_classes(Z, np.where(truth, 1.0, -1.0), penalty, _ENOUGH)


def _calibrate(
    margins: NDArray[np.float64], truth: NDArray[np.bool_], multilabel: bool
) -> tuple[float, float]:
    """Slope and shift that make probabilities of margins of nodes that were left out."""
    if multilabel:

        def blocks() -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
            flat = margins.ravel()
            yield np.column_stack([flat, np.ones(flat.size)]), np.where(truth.ravel(), 1.0, -1.0)

        slope, shift = fit_towards(blocks, np.array([1.0, 0.0])).tolist()
        return slope, shift

    def loss(log_slope: float) -> float:
        return -float(log_softmax(np.exp(log_slope) * margins, axis=1)[truth].mean())

    found = minimize_scalar(loss, bounds=tuple(np.log(_SLOPES)), method="bounded")
    return float(np.exp(found.x)), 0.0
