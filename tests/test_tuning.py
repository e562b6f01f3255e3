"""tune_embedding: what is searched, what is kept apart, and what ends the search."""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
import pytest

from kernelne import (
    Graph,
    InputError,
    KernelNE,
    Labels,
    MissingDependencyError,
    MKernelNE,
    ParameterError,
    load_dataset,
    tune_embedding,
    tuning,
)
from kernelne.evaluation.classification import classify_nodes, classify_split, shuffle

optuna = pytest.importorskip("optuna")

FAST = {"walks_per_node": 3, "n_threads": 1}


@pytest.fixture(scope="module")
def planted():
    return load_dataset("planted:n=120,k=3,p_in=0.3,p_out=0.02,seed=1")


@pytest.fixture(autouse=True)
def no_warnings_of_little():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the loss")
        yield


def plain(found):
    """All but how long it took."""
    facts = found.to_dict()
    for trial in facts["trials"]:
        del trial["seconds"]
    return json.loads(json.dumps(facts))


@pytest.mark.parametrize("by", ["labels", "links"])
def test_finds_no_less_than_the_default_and_repeats(planted, by):
    labels = planted.labels if by == "labels" else None
    told, settings = [], {"n_trials": 8, "fixed": FAST}
    loud = optuna.logging.get_verbosity()
    found = tune_embedding(
        planted.graph,
        labels,
        n_trials=8,
        fixed=FAST,
        random_state=3,
        progress=lambda *args: told.append(args),
    )
    assert optuna.logging.get_verbosity() == loud
    assert found.default is found.trials[0]
    assert (found.default.model, found.default.parameters) == ("MKernelNE", FAST)
    assert found.best.score == max(trial.score for trial in found.trials) >= found.default.score
    assert len({trial.model for trial in found.trials}) == 2
    assert all(trial.parameters["walks_per_node"] == 3 for trial in found.trials)
    assert [trial for trial, *_ in told] == list(found.trials)
    assert told[-1][1] == found.best
    assert told[-1][2] == 0.0
    assert 0.3 < found.test_default <= 1
    assert plain(tune_embedding(planted.graph, labels, n_trials=8, fixed=FAST, random_state=3)) == plain(
        found
    )
    other = tune_embedding(planted.graph, labels, **settings, random_state=4)
    assert plain(other)["trials"] != plain(found)["trials"]
    assert found.measure in str(found)


def test_the_best_is_what_its_estimator_makes(planted):
    found = tune_embedding(planted.graph, planted.labels, n_trials=5, fixed=FAST, random_state=1)
    task = tuning._Labels(planted.graph, planted.labels, 0.5, 1)
    assert task.validate(found.estimator()) == found.best.score
    assert task.test(found.estimator()) == found.test_best
    assert isinstance(found.estimator(), KernelNE if found.best.model == "KernelNE" else MKernelNE)


def test_nodes_of_the_test_are_never_validated_on(planted):
    """Their labels may be anything: no validation score changes, and only test scores do."""
    truth = planted.labels.single.copy()
    task = tuning._Labels(planted.graph, truth, 0.5, 0)
    assert len(task.kept) == 24
    assert sorted([*task.kept, *task.rest]) == list(range(120))
    vectors = np.eye(3)[truth] + 0.1
    assert task._classify(vectors) == 1.0
    wrong = truth.copy()
    wrong[task.kept] = (wrong[task.kept] + 1) % 3
    spoilt = tuning._Labels(planted.graph, wrong, 0.5, 0)
    assert spoilt._classify(vectors) == 1.0

    class Known:
        embedding_ = vectors

        def fit(self, graph):
            return self

    assert task.test(Known()) == 1.0
    assert spoilt.test(Known()) == 0.0


def test_hidden_links_of_the_test_are_in_no_validation_graph(planted):
    task = tuning._Links(planted.graph, 0)
    keys = [
        {tuple(split.graph.nodes[pair]) for pair in part.tolist()}
        for split, part in (
            (task.for_test, task.for_test.test_edges),
            (task.for_validation, task.for_validation.test_edges),
            (task.for_validation, task.for_validation.train_edges),
        )
    ]
    assert keys[0]
    assert not keys[0] & keys[1]
    assert not keys[0] & keys[2]


def test_several_labels_and_nodes_without(planted):
    indicator = planted.labels.indicator[:90].copy()
    indicator[::7, 0] = True
    labels = Labels(planted.labels.nodes[:90], planted.labels.classes, indicator)
    found = tune_embedding(planted.graph, labels, n_trials=2, fixed=FAST, train_size=0.3)
    assert 0 < found.best.score <= 1


def test_what_is_fixed_is_not_searched(planted):
    fixed = FAST | {"dim": 6, "window": 2, "p": 0.5, "q": 3.0, "vectors": "sum"}
    found = tune_embedding(planted.graph, None, n_trials=6, fixed=fixed)
    for trial in found.trials:
        assert trial.parameters.items() >= fixed.items()
        assert not trial.parameters.keys() - fixed.keys() - {"kernel", "kernels", "sigma"}
        assert trial.estimator().config()


def test_time_ends_the_search_even_within_a_trial(planted, monkeypatch):
    start = time.monotonic()
    found = tune_embedding(planted.graph, planted.labels, seconds=2.0, fixed=FAST)
    assert time.monotonic() - start < 10
    assert found.test_best is not None
    assert not found.interrupted
    # From the second on a trial takes for ever: it is given up.
    fit = MKernelNE.fit
    calls = []

    def slow(self, graph, y=None):
        calls.append(self)
        while len(calls) == 2:
            self.progress(1, 2, 0.5)
            time.sleep(0.01)
        return fit(self, graph)

    monkeypatch.setattr(
        tuning, "_suggest", lambda trial, fixed: ("MKernelNE", FAST | {"dim": 4 + trial.number})
    )
    monkeypatch.setattr(MKernelNE, "fit", slow)
    found = tune_embedding(planted.graph, planted.labels, seconds=1.0)
    assert len(found.trials) == 1
    assert len(calls) == 3


def test_ctrl_c_keeps_the_best(planted):
    def press(trial, best, left):
        if trial.number == 1:
            raise KeyboardInterrupt

    found = tune_embedding(planted.graph, planted.labels, n_trials=50, fixed=FAST, progress=press)
    assert found.interrupted
    assert len(found.trials) == 2
    assert (found.test_best, found.test_default) == (None, None)
    assert "–" in str(found)


def test_what_cannot_be_tested_is_kept(planted, monkeypatch):
    def fail(self, estimator):
        raise MemoryError

    monkeypatch.setattr(tuning._Labels, "test", fail)
    with pytest.warns(UserWarning, match="the final test failed: MemoryError"):
        found = tune_embedding(planted.graph, planted.labels, n_trials=2, fixed=FAST)
    assert (found.test_best, found.test_default, found.interrupted) == (None, None, False)


def test_ctrl_c_before_the_default_is_done(planted, monkeypatch):
    def press(self, estimator):
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning._Labels, "validate", press)
    with pytest.raises(KeyboardInterrupt):
        tune_embedding(planted.graph, planted.labels, n_trials=5)


def test_what_fails_is_told_and_the_search_goes_on(planted, monkeypatch):
    validate = tuning._Labels.validate

    def failing(self, estimator):
        if len(seen) in (1, 2):
            raise InputError("no  luck") if len(seen) == 1 else MemoryError
        return validate(self, estimator)

    seen = []
    monkeypatch.setattr(tuning._Labels, "validate", failing)
    found = tune_embedding(
        planted.graph, planted.labels, n_trials=4, fixed=FAST, progress=lambda trial, *_: seen.append(trial)
    )
    assert [trial.error for trial in found.trials] == [None, "no luck", "MemoryError", None]
    assert [trial.score is None for trial in found.trials] == [False, True, True, False]
    seen[:] = [None]  # as if it were the second: now the first fails
    with pytest.raises(InputError, match="no  luck"):
        tune_embedding(planted.graph, planted.labels, n_trials=4)


def test_the_same_parameters_are_trained_once(planted, monkeypatch):
    calls = []
    validate = tuning._Labels.validate
    monkeypatch.setattr(tuning._Labels, "validate", lambda *args: calls.append(1) or validate(*args))
    monkeypatch.setattr(tuning, "_suggest", lambda trial, fixed: ("MKernelNE", dict(fixed)))
    found = tune_embedding(planted.graph, planted.labels, n_trials=5, fixed=FAST)
    assert (len(found.trials), len(calls)) == (5, 1)
    assert found.best.number == 0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_trials": 0}, ParameterError, "n_trials=0"),
        ({"seconds": -1}, ParameterError, "seconds=-1"),
        ({"fixed": {"sigma": 2.0}}, ParameterError, "fixed='sigma': must be one of dim"),
        ({"fixed": {"dim": 0}}, ParameterError, "dim=0"),
        ({"random_state": "x"}, ParameterError, "random_state"),
        ({"train_size": 1.0}, ParameterError, "train_sizes=1.0"),
        ({"labels": [0, 1]}, InputError, "labels: 2 for a graph of 120 nodes"),
        ({"labels": np.zeros(120)}, InputError, "every node has the same"),
        ({"labels": Labels.from_values([0, 1, 2], [0, 1, 1])}, InputError, "at least 10 are needed"),
    ],
)
def test_bad_parameters(planted, options, error, words):
    with pytest.raises(error, match=words):
        tune_embedding(planted.graph, **({"labels": planted.labels} | options))


def test_without_optuna(planted, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingDependencyError, match=r"\[tune\]"):
        tune_embedding(planted.graph, planted.labels)


def test_one_split_scores_as_all_do():
    """`classify_split` on a shuffle is that repeat of `classify_nodes`."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=80)
    vectors = rng.normal(size=(80, 5)) + np.eye(5)[labels]
    scores = classify_nodes(vectors, labels, train_sizes=[0.25], n_repeats=3, random_state=7)
    for repeat in range(3):
        order = shuffle(7, repeat, 80)
        micro, macro = classify_split(vectors, labels, order[:20], order[20:])
        assert (micro, macro) == (scores.micro_f1[0, repeat], scores.macro_f1[0, repeat])


def test_labels_of_a_series_go_by_id():
    pandas = pytest.importorskip("pandas")
    order = np.random.default_rng(0).permutation(30)
    graph = Graph.from_edges(order, np.roll(order, 1), nodes=order)
    series = pandas.Series(np.arange(30) % 3)
    task = tuning._Labels(graph, series, 0.5, 0)
    assert task.truth.argmax(axis=1).tolist() == (order[task.rows] % 3).tolist()
