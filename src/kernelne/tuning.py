"""Finding the parameters of an embedding that do best at a task: optuna's search, our models and scores."""

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

from kernelne._checks import check_count, check_number, check_seed
from kernelne.errors import InputError, KernelneError, MissingDependencyError, ParameterError, warn
from kernelne.estimators import KernelNE, MKernelNE
from kernelne.evaluation.classification import classify_nodes, classify_split, shuffle
from kernelne.evaluation.link_splits import split_links
from kernelne.evaluation.links import score_links
from kernelne.graph import Graph, as_graph
from kernelne.io.labels import Labels, by_id
from kernelne.progress import Progress, reporting

#: Parameters that may be fixed: those of both models, but for what the search sets itself.
FIXABLE = KernelNE().get_params().keys() & MKernelNE().get_params().keys() - {
    "backend", "deterministic", "random_state", "progress",
}  # fmt: skip

_MODELS = {"KernelNE": KernelNE, "MKernelNE": MKernelNE}
#: Kernels to choose among, and between which sigmas: alone, or three, at half, once and one and a half times.
_SIGMAS = {"gaussian": (0.5, 4.0), "schoenberg": (0.5, 4.0), "inverse_multiquadric": (0.1, 2.0)}
_KERNELS = ("auto", *_SIGMAS, "gaussian mixture", "schoenberg mixture")
_MIXTURE = (0.5, 1.0, 1.5)
_DIMS = (32, 64, 128, 256)
_WINDOW = (1, 10)
_BIASES = (0.25, 0.5, 1.0, 2.0, 4.0)
#: What the search tries first.
_DEFAULTS = {"kernels": "auto", "dim": 128, "window": 10, "p": 1.0, "q": 1.0}

_SECONDS = 300.0
_TEST_SHARE = 0.2  # of the labelled nodes or the edges, kept apart from all choosing
_REPEATS = 10
_FEWEST_NODES = 10


@dataclass(frozen=True)
class Trial:
    """One embedding: its model and parameters, its validation score (None: it failed), seconds, the error."""

    number: int
    model: str
    parameters: dict[str, Any]
    score: float | None
    seconds: float
    error: str | None = None

    def estimator(self, **more: Any) -> KernelNE | MKernelNE:
        """The estimator, not fitted; `more` parameters on top."""
        made: KernelNE | MKernelNE = _MODELS[self.model](**(self.parameters | more))
        return made

    def __str__(self) -> str:
        return " ".join([self.model, *(f"{name}={_short(value)}" for name, value in self.parameters.items())])


@dataclass(frozen=True)
class Tuning:
    """What `tune_embedding` found; `print` shows the best beside the default.

    measure       "micro-F1" or "AUC"
    trials        all, in order; the first is the default
    best          the one with the highest validation score, the earliest of several
    test_best     score of the best on what was kept apart from all choosing; None: not tested
    test_default  likewise, of the default
    seed          of the splits and of every training run
    interrupted   by Ctrl-C
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
        """The best estimator, not fitted, with the seed it was scored with."""
        return self.best.estimator(random_state=self.seed, deterministic=True)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Names of the columns, and the rows of the default and of the best."""
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
        """Plain values for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "best"} | {
            "best": self.best.number
        }


class _Task(Protocol):
    """What an estimator is scored by."""

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
    """Search kernels, sigma, dim, window, p and q for what does best at a task (needs kernelne[tune]).

    With labels the task is to tell them: micro-F1 of `classify_nodes`. Without, to tell hidden links: AUC of
    `score_links`. A fifth of the labelled nodes or of the edges is kept apart; only the default and the best
    are scored on it, at the end. The first trial is the default, MKernelNE(): the best is never below it in
    validation. Ctrl-C ends the search and keeps what was found. Trains on the CPU with `deterministic=True`,
    so that the same seed finds the same again if `n_trials` alone limits it.

    Parameters
    ----------
    graph: whatever `fit` takes.
    labels: Labels, a dict {node: label} or a pandas Series by its index; or one label a node, or an indicator
        matrix, in the order of the graph's nodes.
    n_trials: how many embeddings to train at most, the default among them.
    seconds: how long to search at most, the tests at the end included; a trial that would take longer is
        given up, never the first. None: 300 if `n_trials` is None too, else without limit.
    train_size: with labels, the share of those not kept apart that are trained on, as in `classify_nodes`.
    fixed: parameters of both models that are not to be searched but as given, such as {"dim": 64}.
    random_state: a whole number.
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
        raise ParameterError("fixed", min(strange), f"those that can be are {', '.join(sorted(FIXABLE))}")
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
    """With the scores of the default and of the best on what was kept apart."""
    try:
        finalists = {trial.number: trial for trial in (found.default, found.best)}
        scores = {n: search.fit_and(search.task.test, trial) for n, trial in finalists.items()}
    except KeyboardInterrupt:
        return replace(found, interrupted=True)
    except (KernelneError, MemoryError) as error:  # what was found is worth keeping
        warn(f"not tested: {str(error) or type(error).__name__}")
        return found
    return replace(found, test_default=scores[0], test_best=scores[found.best.number])


class _OutOfTimeError(Exception):
    """Raised within a training run that would take too long."""


class _Search:
    """Trials so far, and the time there is for more."""

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
        """When to stop, so that there is time to test the default and the best."""
        return self.deadline - self.trials[0].seconds - self.best.seconds

    def left(self, limit: float) -> float:
        """Seconds, about, for the rest of the search; nan if nothing limits it."""
        mean = sum(trial.seconds for trial in self.trials) / len(self.trials)
        left = min(mean * (limit - len(self.trials)), self._end() - time.monotonic())
        return max(left, 0.0) if math.isfinite(left) else math.nan

    def run(self, model: str, parameters: dict[str, Any]) -> Trial | None:
        """One trial; None if there was no time for it. What fails is told, but for the first."""
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
        """The score of the trial's estimator; _OutOfTimeError if it may stop and has to."""

        def report(done: int, total: int, loss: float) -> None:
            shown(done, total, loss)
            if may_stop and not self.has_time():
                raise _OutOfTimeError

        with reporting(self.training_progress) as shown, warnings.catch_warnings():
            if self.trials:  # the first has told of what all will
                warnings.simplefilter("ignore", UserWarning)
            return score(trial.estimator(random_state=self.seed, deterministic=True, progress=report))


class _Labels:
    """Micro-F1 of a logistic regression, over shuffles of the nodes that are not kept apart for the test."""

    measure = "micro-F1"

    def __init__(self, graph: Graph, labels: Any, train_size: float, seed: int) -> None:
        self.graph, self.train_size, self.seed = graph, train_size, seed
        rows: NDArray[np.int64] = np.arange(graph.n_nodes)
        labels = by_id(labels, graph.nodes)
        if isinstance(labels, Labels):
            rows, labels = labels.for_nodes(graph.nodes)
        self.truth = labels.toarray() if hasattr(labels, "toarray") else np.asarray(labels)
        if len(self.truth) != len(rows):
            raise InputError(f"labels: {len(self.truth)} for a graph of {len(rows)} nodes: give one a node")
        if len(rows) < _FEWEST_NODES:
            raise InputError(f"labels: {len(rows)} nodes have one: at least {_FEWEST_NODES} are needed")
        order = shuffle(seed, _REPEATS, len(rows))  # a shuffle that no repeat uses
        n_test = max(round(_TEST_SHARE * len(rows)), 1)
        self.rows, self.kept, self.rest = rows, order[:n_test], np.sort(order[n_test:])
        self._classify(np.zeros((graph.n_nodes, 1)))  # what is wrong with labels shows before training

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
    """AUC of hidden links: for the test hidden from the graph, for validation from what is left of it."""

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
    """The model and parameters that optuna asks for; what is as by default is left out."""
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
    """So that a command line is short, and trains just what was scored."""
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
    """Without what optuna says on its way; its loudness is as it was afterwards."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
