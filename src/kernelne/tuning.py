"""Search for the parameters of an embedding that score best at a task, with optuna."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelne._common.checks import check_count, check_number, check_seed
from kernelne.errors import InputError, KernelneError, MissingDependencyError, ParameterError, warn
from kernelne.estimators import KernelNE, MKernelNE
from kernelne.evaluation.classification import classify_nodes, classify_split, shuffle
from kernelne.evaluation.link_splits import split_links
from kernelne.evaluation.links import score_links
from kernelne.graph import Graph, as_graph
from kernelne.io.labels import Labels, by_id
from kernelne.progress import Progress, reporting

#: Parameters that may be fixed: those of both models, except those that the search sets itself.
FIXABLE = KernelNE().get_params().keys() & MKernelNE().get_params().keys() - {
    "checkpoint", "checkpoint_every", "engine", "parts", "memory", "address",
    "backend", "deterministic", "random_state", "progress",
}  # fmt: skip

_MODELS = {"KernelNE": KernelNE, "MKernelNE": MKernelNE}
#: Kernels to search and their ranges of sigma; a mixture has three kernels, at 0.5, 1 and 1.5 times sigma.
_SIGMAS = {"gaussian": (0.5, 4.0), "schoenberg": (0.5, 4.0), "inverse_multiquadric": (0.1, 2.0)}
_KERNELS = ("auto", *_SIGMAS, "gaussian mixture", "schoenberg mixture")
_MIXTURE = (0.5, 1.0, 1.5)
_DIMS = (32, 64, 128, 256)
_WINDOW = (1, 10)
_BIASES = (0.25, 0.5, 1.0, 2.0, 4.0)
#: Parameters of the first trial.
_DEFAULTS = {"kernels": "auto", "dim": 128, "window": 10, "p": 1.0, "q": 1.0}

_SECONDS = 300.0
_TEST_SHARE = 0.2  # share of the labelled nodes or of the edges, used in the final test only
_REPEATS = 10
_FEWEST_NODES = 10


@dataclass(frozen=True)
class Trial:
    """One embedding: model, parameters, validation score (None: it failed), seconds, and the error."""

    number: int
    model: str
    parameters: dict[str, Any]
    score: float | None
    seconds: float
    error: str | None = None

    def estimator(self, **more: Any) -> KernelNE | MKernelNE:
        """Return the unfitted estimator; `more` adds or replaces parameters."""
        made: KernelNE | MKernelNE = _MODELS[self.model](**(self.parameters | more))
        return made

    def __str__(self) -> str:
        return " ".join([self.model, *(f"{name}={_short(value)}" for name, value in self.parameters.items())])


@dataclass(frozen=True)
class Tuning:
    """Result of `tune_embedding`; `print` shows the best trial and the default.

    measure       "micro-F1" or "AUC"
    trials        all trials, in order; the first is the default
    best          the trial with the highest validation score, the first in case of a tie
    test_best     test score of the best trial, on data that the search did not use; None: not tested
    test_default  test score of the default
    seed          seed of the splits and of every training run
    interrupted   whether the search was stopped by Ctrl-C
    """

    measure: str
    trials: tuple[Trial, ...]
    best: Trial
    test_best: float | None
    test_default: float | None
    seed: int
    interrupted: bool

    @property
    def default(self) -> Trial:
        return self.trials[0]

    def estimator(self) -> KernelNE | MKernelNE:
        """Return the best estimator, unfitted, with the seed it was scored with."""
        return self.best.estimator(random_state=self.seed, deterministic=True)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the column names, and the rows of the default and of the best trial."""
        rows = [
            [name, *("–" if score is None else f"{score:.4f}" for score in (trial.score, test)), str(trial)]
            for name, trial, test in (
                ("default", self.default, self.test_default),
                ("best", self.best, self.test_best),
            )
        ]
        return ["", f"{self.measure}, validation", "test", "parameters"], rows

    def __str__(self) -> str:
        columns, rows = self.table()
        widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in (columns, *rows))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "best"} | {
            "best": self.best.number
        }


class _Task(Protocol):
    """A task that scores an estimator."""

    measure: str

    def validate(self, estimator: Any) -> float: ...

    def test(self, estimator: Any) -> float: ...


def tune_embedding(
    graph: Any,
    labels: Any = None,
    *,
    n_trials: int | None = None,
    seconds: float | None = None,
    train_size: float = 0.5,
    fixed: Mapping[str, Any] | None = None,
    random_state: int = 0,
    progress: Callable[[Trial, Trial, float], Any] | None = None,
    training_progress: Progress = None,
) -> Tuning:
    """Search kernels, sigma, dim, window, p and q for the best score at a task (needs kernelne[tune]).

    With labels the task is node classification, scored by the micro-F1 of `classify_nodes`; without, it is
    link prediction, scored by the AUC of `score_links`. A fifth of the labelled nodes or of the edges is held
    out for the test; only the default and the best trial are scored on it, at the end. The first trial is the
    default, MKernelNE(), so the best validation score is never below that of the default. Ctrl-C ends the
    search and returns the trials so far. Training runs on the CPU with `deterministic=True`, so that the same
    seed gives the same result if `n_trials` is the only limit.

    Parameters
    ----------
    graph: any graph that `fit` accepts.
    labels: Labels, a dict {node: label} or a pandas Series by its index; or one label per node, or an
        indicator matrix, in the order of the graph's nodes.
    n_trials: maximum number of embeddings to train, including the default.
    seconds: maximum time for the search, including the final tests; a trial that would take longer is
        stopped, except the first. None: 300 if `n_trials` is None too, otherwise no limit.
    train_size: with labels, share of the nodes not held out for the test that the classifier is trained on,
        as in `classify_nodes`.
    fixed: parameters of both models to keep fixed instead of searching them, such as {"dim": 64}.
    random_state: the seed, an integer.
    progress: called after each trial with (Trial, best Trial, seconds left or nan).
    training_progress: as `progress` of MKernelNE, for each training run.
    """
    optuna = _optuna()
    if n_trials is not None:
        check_count("n_trials", n_trials)
    if seconds is not None:
        check_number("seconds", seconds, positive=True)
    elif n_trials is None:
        seconds = _SECONDS
    seed = check_seed(random_state)
    given = dict(fixed or {})
    if strange := given.keys() - FIXABLE:
        raise ParameterError("fixed", min(strange), f"must be one of {', '.join(sorted(FIXABLE))}")
    MKernelNE(**given).config()
    checked = as_graph(graph)
    task: _Task = _Links(checked, seed) if labels is None else _Labels(checked, labels, train_size, seed)
    limit = math.inf if n_trials is None else int(n_trials)
    search = _Search(task, seed, time.monotonic() + (seconds or math.inf), training_progress)
    interrupted = False
    try:
        with _quiet(optuna):
            study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
            study.enqueue_trial({name: value for name, value in _DEFAULTS.items() if name not in given})
            while len(search.trials) < limit and (not search.trials or search.has_time()):
                asked = study.ask()
                trial = search.run(*_suggest(asked, given))
                if trial is None:
                    break
                state = optuna.trial.TrialState.FAIL if trial.score is None else None
                study.tell(asked, trial.score, state=state)
                if progress is not None:
                    progress(trial, search.best, search.left(limit))
    except KeyboardInterrupt:
        if not search.trials:
            raise
        interrupted = True
    found = Tuning(task.measure, tuple(search.trials), search.best, None, None, seed, interrupted)
    return found if interrupted else _tested(found, search)


def _tested(found: Tuning, search: _Search) -> Tuning:
    """Return `found` with the test scores of the default and of the best trial."""
    try:
        finalists = {trial.number: trial for trial in (found.default, found.best)}
        scores = {n: search.fit_and(search.task.test, trial) for n, trial in finalists.items()}
    except KeyboardInterrupt:
        return replace(found, interrupted=True)
    except (KernelneError, MemoryError) as error:  # the result of the search is still useful
        warn(f"the final test failed: {str(error) or type(error).__name__}")
        return found
    return replace(found, test_default=scores[0], test_best=scores[found.best.number])


class _OutOfTimeError(Exception):
    """Raised during a training run to stop it when time is up."""


class _Search:
    """Runs trials, and tracks them and the time left."""

    def __init__(self, task: _Task, seed: int, deadline: float, training_progress: Progress) -> None:
        self.task, self.seed, self.deadline = task, seed, deadline
        self.training_progress = training_progress
        self.trials: list[Trial] = []

    @property
    def best(self) -> Trial:
        return max(self.trials, key=lambda trial: -math.inf if trial.score is None else trial.score)

    def has_time(self) -> bool:
        return time.monotonic() < self._end()

    def _end(self) -> float:
        """Return the time to stop at, so that there is time left to test the default and the best trial."""
        return self.deadline - self.trials[0].seconds - self.best.seconds

    def left(self, limit: float) -> float:
        """Return the estimated seconds left of the search; nan if it has no limit."""
        mean = sum(trial.seconds for trial in self.trials) / len(self.trials)
        left = min(mean * (limit - len(self.trials)), self._end() - time.monotonic())
        return max(left, 0.0) if math.isfinite(left) else math.nan

    def run(self, model: str, parameters: dict[str, Any]) -> Trial | None:
        """Run one trial; None if time ran out. Errors are kept in the trial, but the first trial raises."""
        start = time.monotonic()
        trial = Trial(len(self.trials), model, parameters, None, 0.0)
        same = [t for t in self.trials if (t.model, t.parameters) == (model, parameters)]
        try:
            score = same[0].score if same else self.fit_and(self.task.validate, trial, bool(self.trials))
            trial = replace(trial, score=score, error=same[0].error if same else None)
        except _OutOfTimeError:
            return None
        except (KernelneError, MemoryError) as error:
            if not self.trials:
                raise
            trial = replace(trial, error=" ".join(str(error).split()) or type(error).__name__)
        self.trials.append(replace(trial, seconds=round(time.monotonic() - start, 3)))
        return self.trials[-1]

    def fit_and(self, score: Callable[[Any], float], trial: Trial, may_stop: bool = False) -> float:
        """Return the score of the trial's estimator; raise _OutOfTimeError if `may_stop` and time is up."""

        def report(done: int, total: int, loss: float) -> None:
            shown(done, total, loss)
            if may_stop and not self.has_time():
                raise _OutOfTimeError

        with reporting(self.training_progress) as shown, warnings.catch_warnings():
            if self.trials:  # the first trial has issued the warnings already
                warnings.simplefilter("ignore", UserWarning)
            return score(trial.estimator(random_state=self.seed, deterministic=True, progress=report))


class _Labels:
    """Micro-F1 of a logistic regression, averaged over shuffles of the nodes not held out for the test."""

    measure = "micro-F1"

    def __init__(self, graph: Graph, labels: Any, train_size: float, seed: int) -> None:
        self.graph, self.train_size, self.seed = graph, train_size, seed
        rows: NDArray[np.int64] = np.arange(graph.n_nodes)
        labels = by_id(labels, graph.nodes)
        if isinstance(labels, Labels):
            rows, labels = labels.for_nodes(graph.nodes)
        self.truth = labels.toarray() if hasattr(labels, "toarray") else np.asarray(labels)
        if len(self.truth) != len(rows):
            raise InputError(f"labels: {len(self.truth)} for a graph of {len(rows)} nodes: give one per node")
        if len(rows) < _FEWEST_NODES:
            raise InputError(f"labels: {len(rows)} nodes have a label: at least {_FEWEST_NODES} are needed")
        order = shuffle(seed, _REPEATS, len(rows))  # a shuffle that no repeat uses
        n_test = max(round(_TEST_SHARE * len(rows)), 1)
        self.rows, self.kept, self.rest = rows, order[:n_test], np.sort(order[n_test:])
        self._classify(np.zeros((graph.n_nodes, 1)))  # raises errors in the labels before training

    def _classify(self, vectors: NDArray[Any]) -> float:
        scores = classify_nodes(
            vectors[self.rows[self.rest]], self.truth[self.rest], train_sizes=[self.train_size],
            n_repeats=_REPEATS, random_state=self.seed,
        )  # fmt: skip
        return float(scores.micro_mean[0])

    def validate(self, estimator: Any) -> float:
        return self._classify(estimator.fit(self.graph).embedding_)

    def test(self, estimator: Any) -> float:
        vectors = estimator.fit(self.graph).embedding_[self.rows]
        n_train = int(self.train_size * len(self.rest))
        shuffles = (self.rest[shuffle(self.seed, repeat, len(self.rest))] for repeat in range(_REPEATS))
        scores = [classify_split(vectors, self.truth, some[:n_train], self.kept)[0] for some in shuffles]
        return float(np.mean(scores))


class _Links:
    """AUC of hidden edges: test edges are hidden from the graph, validation edges from the residual graph."""

    measure = "AUC"

    def __init__(self, graph: Graph, seed: int) -> None:
        self.for_test = split_links(graph, test_share=_TEST_SHARE, random_state=seed)
        self.for_validation = split_links(self.for_test.graph, test_share=_TEST_SHARE, random_state=seed)

    def validate(self, estimator: Any) -> float:
        return self._score(estimator, self.for_validation)

    def test(self, estimator: Any) -> float:
        return self._score(estimator, self.for_test)

    def _score(self, estimator: Any, split: Any) -> float:
        return score_links(estimator.fit(split.graph).embedding_, split).auc


def _suggest(trial: Any, fixed: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the model and parameters that optuna suggests, without those at their default."""
    kernels = trial.suggest_categorical("kernels", _KERNELS)
    found: dict[str, Any] = {}
    if kernels != "auto":
        name = kernels.removesuffix(" mixture")
        sigma = _three_digits(trial.suggest_float(f"sigma of {name}", *_SIGMAS[name], log=True))
        if kernels == name:
            found |= {"kernel": name, "sigma": sigma}
        else:
            found["kernels"] = [(name, _three_digits(factor * sigma)) for factor in _MIXTURE]
        if "vectors" not in fixed:
            found["vectors"] = trial.suggest_categorical("vectors", ("smooth", "center"))
    asked: dict[str, Any] = {}
    if "window" not in fixed:
        asked["window"] = trial.suggest_int("window", *_WINDOW)
    for name, choices in (("dim", _DIMS), ("p", _BIASES), ("q", _BIASES)):
        if name not in fixed:
            asked[name] = trial.suggest_categorical(name, choices)
    found |= {name: value for name, value in asked.items() if value != _DEFAULTS[name]}
    return "KernelNE" if "kernel" in found else "MKernelNE", found | dict(fixed)


def _three_digits(value: float) -> float:
    """Round to three digits, so that a short command line trains exactly the embedding that was scored."""
    return float(f"{value:.3g}")


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(f"{name}:{sigma:g}" for name, sigma in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise MissingDependencyError("optuna", "tune") from None
    return optuna


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Silence optuna's log; restore its verbosity afterwards."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
