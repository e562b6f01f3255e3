"""NodeClassifier: the labels of classify_nodes, calibrated probabilities, unknown nodes, several labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from kernelne import Embedding, InputError, Labels, NodeClassifier, ParameterError, classify_nodes
from kernelne.evaluation.classification import f1_scores, shuffle
from kernelne.evaluation.node_classifier import calibration_error


@pytest.fixture(scope="module")
def clouds():
    """Three overlapping clouds of points, and the names of their classes."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 900)
    vectors = rng.normal(size=(900, 8)) + 1.3 * np.eye(8)[codes]
    return vectors, np.array(["ann", "bob", "cem"], object)[codes]


def test_labels_are_those_of_scikit_learn(clouds):
    vectors, names = clouds
    model = NodeClassifier().fit(vectors[:300], names[:300])
    wide = np.column_stack([vectors, np.ones(len(vectors))])
    margins = [
        LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8).fit(wide[:300], names[:300] == name)
        .decision_function(wide[300:]) for name in model.classes_
    ]  # fmt: skip
    same = model.classes_[np.argmax(margins, axis=0)] == model.predict(vectors[300:])
    assert same.mean() > 0.998


def test_no_worse_than_classify_nodes(clouds):
    vectors, names = clouds
    scores = classify_nodes(vectors, names, train_sizes=[0.3], n_repeats=1, random_state=5)
    order = shuffle(5, 0, len(vectors))
    train, test = order[:270], order[270:]
    told = NodeClassifier().fit(vectors[train], names[train]).predict(vectors[test])
    assert (told == names[test]).mean() == pytest.approx(scores.micro_f1[0, 0], abs=0.003)


def test_probabilities_hold(clouds):
    vectors, names = clouds
    known = np.where(np.arange(900) < 300, names, None)
    model = NodeClassifier().fit(vectors, known)
    chances = model.predict_proba(vectors[300:])
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    right = model.predict(vectors[300:]) == names[300:]
    assert calibration_error(chances.max(axis=1), right) < 0.05
    assert model.scores_.n_nodes == 300
    assert model.scores_.accuracy == pytest.approx(right.mean(), abs=0.06)
    assert model.scores_.majority < 0.45 < model.scores_.accuracy
    assert "calibration error" in str(model.scores_)


def test_unsure_nodes_are_unknown(clouds):
    vectors, names = clouds
    model = NodeClassifier(threshold=0.8).fit(vectors, names)
    told, chances = model.predict(vectors), model.predict_proba(vectors)
    np.testing.assert_array_equal(np.equal(told, None), chances.max(axis=1) < 0.8)
    sure = ~np.equal(told, None)
    assert 0 < sure.mean() < 1
    assert (told[sure] == names[sure]).mean() > (
        NodeClassifier().fit(vectors, names).predict(vectors) == names
    ).mean()


@pytest.mark.parametrize("kind", ["dict", "series", "labels"])
def test_labels_go_by_id(clouds, kind):
    vectors, names = clouds
    nodes = np.random.default_rng(1).permutation(900) + 7
    embedding = Embedding(vectors, nodes)
    some = np.arange(0, 900, 3)[::-1]
    given = {
        "dict": dict(zip(nodes[some].tolist(), names[some].tolist(), strict=True)),
        "series": pd.Series(names[some], nodes[some]),
        "labels": Labels.from_values(nodes[some], names[some]),
    }[kind]
    found = NodeClassifier().fit(embedding, given)
    direct = NodeClassifier().fit(vectors, [n if i % 3 == 0 else None for i, n in enumerate(names)])
    np.testing.assert_allclose(found.predict_proba(embedding), direct.predict_proba(vectors), atol=1e-6)


def test_several_labels(clouds):
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(1500, 6))
    truth = vectors @ rng.normal(size=(6, 5)) + rng.normal(size=(1500, 5)) > 1.5
    given = np.where((np.arange(1500) < 700)[:, None], truth, False)
    model = NodeClassifier().fit(vectors, given.astype(int))
    rest = np.flatnonzero((np.arange(1500) >= 700) & truth.any(axis=1))
    told = model.predict(vectors[rest])
    assert model.multilabel_
    assert told.shape == (len(rest), 5)
    assert told.any(axis=1).all()
    micro, _ = f1_scores(truth[rest], told)
    assert micro == pytest.approx(model.scores_.micro_f1, abs=0.06)
    assert micro > 0.6
    assert calibration_error(model.predict_proba(vectors[700:]).ravel(), truth[700:].ravel()) < 0.1
    counts = truth[rest].sum(axis=1)
    np.testing.assert_array_equal(model.predict(vectors[rest], counts).sum(axis=1), counts)
    assert f1_scores(truth[rest], model.predict(vectors[rest], counts))[0] > micro - 0.01


@pytest.mark.parametrize("kind", ["dict", "series", "rows"])
def test_lists_of_labels(clouds, kind):
    vectors, names = clouds
    lists = [{name, "odd"} if i % 7 == 0 else [name] for i, name in enumerate(names)]
    lists[3] = None
    table = np.column_stack([names == "ann", names == "bob", names == "cem", np.arange(900) % 7 == 0])
    table[3] = False
    nodes = [f"n{i}" for i in range(900)]
    embedding = Embedding(vectors, nodes)
    series = pd.Series(lists, nodes)
    given = {"dict": series.to_dict(), "series": series, "rows": lists}[kind]
    model = NodeClassifier().fit(vectors if kind == "rows" else embedding, given)
    assert model.classes_.tolist() == ["ann", "bob", "cem", "odd"]
    direct = NodeClassifier().fit(vectors, table).predict_proba(vectors)
    np.testing.assert_allclose(model.predict_proba(embedding), direct, atol=1e-6)


def test_sure_labels_are_precise():
    """A higher threshold misses labels, so that accuracy may fall: precision tells what it gains."""
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(1500, 6))
    truth = vectors @ rng.normal(size=(6, 5)) + rng.normal(size=(1500, 5)) > 1.5
    every, sure = (NodeClassifier(threshold=least).fit(vectors, truth).scores_ for least in (None, 0.95))
    assert sure.precision > 0.95 > every.precision > 0.6
    assert sure.accuracy < sure.precision
    assert f"precision {sure.precision:.3f}" in str(sure)
    names = np.array(["a", "b"], object)[truth[:, 0].astype(int)]
    single = NodeClassifier(threshold=0.9).fit(vectors, names).scores_
    assert single.precision == single.accuracy


def test_few_nodes_and_rare_labels():
    vectors = np.eye(6)
    model = NodeClassifier(cv=10).fit(vectors, ["a", "a", "b", "b", "c", None])
    assert model.predict(vectors).shape == (6,)
    assert np.isfinite(model.predict_proba(vectors)).all()


def test_it_is_an_estimator(clouds):
    vectors, names = clouds
    model = clone(NodeClassifier(threshold=0.3, cv=3, random_state=4))
    assert model.get_params() == {"threshold": 0.3, "cv": 3, "random_state": 4}
    first, again = (model.fit(vectors, names).predict_proba(vectors) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert model.set_params(threshold=None).fit(vectors, names).score(vectors, names) > 0.6


def test_bad_arguments_are_refused(clouds):
    vectors, names = clouds
    for given, word in (
        ({"threshold": 2.0}, "threshold=2.0"),
        ({"cv": 0}, "cv=0"),
        ({"random_state": -1}, "random_state"),
    ):
        with pytest.raises(ParameterError, match=word):
            NodeClassifier(**given).fit(vectors, names)
    with pytest.raises(InputError, match="two classes"):
        NodeClassifier().fit(vectors, ["a"] * 900)
    with pytest.raises(InputError, match="no node has a label"):
        NodeClassifier().fit(vectors, [None] * 900)
    with pytest.raises(InputError, match="one label a row"):
        NodeClassifier().fit(vectors, names[:5])
    with pytest.raises(InputError, match="by node id"):
        NodeClassifier().fit(vectors, {1: "a", 2: "b"})
    model = NodeClassifier().fit(vectors, names)
    with pytest.raises(InputError, match="columns"):
        model.predict(vectors[:, :3])
    with pytest.raises(ParameterError, match="n_labels"):
        model.predict(vectors, 9)
