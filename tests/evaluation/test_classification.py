"""Classification scores against scikit-learn's liblinear, and rules checked by hand."""

from __future__ import annotations

import gzip
import os
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from threadpoolctl import threadpool_info

from kernelne import Embedding, InputError, KernelNE, Labels, ParameterError, classify_nodes, read_graph
from kernelne.evaluation import classification
from kernelne.evaluation.classification import ClassificationScores

FOLDER = os.environ.get("KERNELNE_DATA")


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    return (data.data / 16).astype(np.float32), data.target


def _several_labels(n=600, n_labels=40, seed=0):
    """Vectors, and an indicator where a node has one to four labels; some are frequent, some rare."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, 20))
    appeal = vectors @ rng.normal(size=(20, n_labels)) / 3 + rng.gumbel(size=(n, n_labels))
    appeal -= np.linspace(0, 4, n_labels)
    rank = np.argsort(np.argsort(-appeal, axis=1), axis=1)
    return vectors, (rank < rng.integers(1, 5, n)[:, None]).astype(int)


def _liblinear_scores(X, truth, order, n_train):
    """What the paper's authors would compute: the k most probable labels under scikit-learn's classifiers."""
    train, test = order[:n_train], order[n_train:]
    model = OneVsRestClassifier(LogisticRegression(solver="liblinear", C=1.0, tol=1e-6))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Label .* is present in", UserWarning)
        model.fit(X[train], truth[train])
    rank = np.argsort(np.argsort(-model.predict_proba(X[test]), axis=1, kind="stable"), axis=1)
    guess = rank < truth[test].sum(axis=1)[:, None]
    return [f1_score(truth[test], guess, average=kind, zero_division=0) for kind in ("micro", "macro")]


def _assert_scores_are_liblinears(X, truth, share, n_repeats):
    ours = classify_nodes(X, truth, train_sizes=[share], n_repeats=n_repeats, random_state=4)
    orders = [np.random.default_rng([4, r]).permutation(len(X)) for r in range(n_repeats)]
    theirs = np.mean([_liblinear_scores(X, truth, order, int(share * len(X))) for order in orders], axis=0)
    np.testing.assert_allclose([ours.micro_mean[0], ours.macro_mean[0]], theirs, atol=0.002)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.5])
def test_scores_are_liblinears(digits, share):
    X, y = digits
    _assert_scores_are_liblinears(X, (y[:, None] == np.arange(10)).astype(int), share, 4)


@pytest.mark.parametrize("share", [0.03, 0.1, 0.5])
def test_scores_are_liblinears_with_several_labels(share):
    _assert_scores_are_liblinears(*_several_labels(), share, 6)


@pytest.mark.skipif(not FOLDER, reason="KERNELNE_DATA does not name the folder of the paper's graphs")
@pytest.mark.parametrize("name", ["citeseer", "ppi"])
@pytest.mark.filterwarnings("ignore:.*nodes have no edges")
def test_scores_are_liblinears_on_the_papers_graphs(name):
    with gzip.open(Path(FOLDER) / f"{name}.labels.gz", "rt") as lines:
        labels = [[int(label) for label in line.split()[1].split(",")] for line in lines]
    truth = np.array([np.isin(range(1 + max(map(max, labels))), row) for row in labels]).astype(int)
    graph = read_graph(Path(FOLDER) / f"{name}.edges.gz", nodes=np.arange(len(labels)))
    vectors = KernelNE(random_state=0).fit_transform(graph)
    for share in (0.02, 0.2):
        _assert_scores_are_liblinears(vectors, truth, share, 3)


def test_separable_and_huge_features_stay_finite():
    apart = np.repeat([[1e20, 0.0], [0.0, 1e20]], 30, axis=0)
    assert classify_nodes(apart, np.repeat([0, 1], 30), n_repeats=3).micro_f1.min() == 1.0


def test_a_node_with_k_labels_gets_its_k_best():
    rng = np.random.default_rng(0)
    truth = np.zeros((300, 3), bool)
    truth[np.arange(300), rng.integers(0, 3, 300)] = True
    truth[:100, 0] = True
    vectors = 20.0 * truth + rng.normal(0, 0.01, truth.shape)
    scores = classify_nodes(vectors, truth, train_sizes=[0.5], n_repeats=2)
    np.testing.assert_allclose(scores.micro_f1, 1.0)
    noise = classify_nodes(rng.normal(size=(300, 2)), truth, train_sizes=[0.5], n_repeats=2)
    assert noise.micro_f1.max() < 0.7


def test_labels_absent_from_training_are_never_guessed():
    labels = np.array(["common"] * 59 + ["rare"])
    vectors = np.random.default_rng(1).normal(size=(60, 4))
    scores = classify_nodes(vectors, labels, train_sizes=[0.5], n_repeats=6)
    assert set(np.round(scores.micro_f1.ravel(), 3)) <= {1.0, round(29 / 30, 3)}


def test_a_class_that_is_neither_found_nor_guessed_counts_zero():
    # One "rare" node: in training, and then not in the test part, or in the test part and never guessed.
    labels = np.array(["a"] * 30 + ["b"] * 30 + ["rare"])
    vectors = np.eye(3)[np.unique(labels, return_inverse=True)[1]] * 50
    scores = classify_nodes(vectors, labels, train_sizes=[0.5], n_repeats=20)
    tested = scores.micro_f1[0] < 1
    assert set(tested) == {True, False}
    np.testing.assert_allclose(scores.macro_f1[0, ~tested], 2 / 3)
    assert (scores.macro_f1[0, tested] < 2 / 3).all()


def test_more_labels_than_training_has_seen():
    truth = np.ones((40, 5), bool)
    truth[0, 1:] = False  # trained on this node alone, the other labels are guessed nevertheless
    vectors = np.random.default_rng(2).normal(size=(40, 3))
    scores = classify_nodes(vectors, truth, train_sizes=[1 / 40], n_repeats=200)
    assert scores.micro_f1.max() == 1.0
    assert scores.micro_f1.min() > 0.9


def test_a_label_that_all_have_comes_first():
    rng = np.random.default_rng(3)
    truth = np.column_stack([rng.random(50) < 0.5, np.ones(50, bool), rng.random(50) < 0.5])
    truth[:, 2] &= truth[:, 0]
    vectors = 50.0 * truth[:, [0, 2]]
    scores = classify_nodes(vectors, truth, train_sizes=[0.5], n_repeats=5)
    np.testing.assert_allclose(scores.micro_f1, 1.0)
    # Of one label each node is sure to get that one, however probable the other.
    scores = classify_nodes(vectors, truth[:, :2], train_sizes=[0.5], n_repeats=5)
    np.testing.assert_allclose(scores.micro_f1, 1.0)


def test_all_kinds_of_labels_are_the_same(digits):
    X, y = digits[0][:300], digits[1][:300]
    indicator = np.column_stack([y[:, None] == np.arange(10), np.zeros(300, bool)])  # nobody has the last
    strings = y.astype(str)
    kinds = [y, strings, strings.astype(object), list(strings), indicator, indicator.astype(float)]
    kinds.append(scipy.sparse.csr_array(indicator.astype(int)))
    first, *others = (classify_nodes(X, kind, train_sizes=[0.2], n_repeats=2) for kind in kinds)
    for other in others:
        np.testing.assert_allclose(other.micro_f1, first.micro_f1)
        np.testing.assert_allclose(other.macro_f1, first.macro_f1)


def test_vectors_without_content_give_the_most_frequent_class():
    labels = np.repeat([0, 1], [80, 20])
    scores = classify_nodes(np.zeros((100, 1)), labels, train_sizes=[0.5], n_repeats=20)
    assert abs(scores.micro_mean[0] - 0.8) < 0.03


def test_scores_depend_on_the_seed_alone(digits):
    X, y = digits
    first, again, other = (
        classify_nodes(
            X, y, train_sizes=[0.02, 0.1], n_repeats=4, random_state=seed, n_threads=threads
        ).micro_f1
        for seed, threads in ((1, 1), (1, 3), (2, None))
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    alone = classify_nodes(X, y, train_sizes=[0.1], n_repeats=2, random_state=1)
    np.testing.assert_array_equal(alone.micro_f1[0], first[1, :2])


def test_progress_is_told_and_can_stop(digits):
    X, y = digits
    calls, seen = [], []

    def note(done, total):
        calls.append((done, total, threading.current_thread()))
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} <= {1}

    classify_nodes(X, y, train_sizes=[0.02, 0.1], n_repeats=3, progress=note)
    here = threading.current_thread()
    assert calls == [(2, 6, here), (4, 6, here), (6, 6, here)]

    def stop(done, total):
        seen.append(done)
        raise KeyboardInterrupt

    before = threading.active_count()
    pools = [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()]
    with pytest.raises(KeyboardInterrupt):
        classify_nodes(X, y, train_sizes=[0.9], n_repeats=10_000, progress=stop)
    assert seen == [1]
    assert threading.active_count() == before
    assert [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()] == pools


def test_scores_are_summed_up():
    scores = ClassificationScores(
        (0.01, 0.5), np.array([[0.2, 0.4], [0.5, 0.5]]), np.array([[0, 1], [0.25] * 2])
    )
    np.testing.assert_allclose(scores.micro_mean, [0.3, 0.5])
    np.testing.assert_allclose(scores.micro_std, [0.1, 0.0])
    np.testing.assert_allclose(scores.macro_mean, [0.5, 0.25])
    np.testing.assert_allclose(scores.macro_std, [0.5, 0.0])
    assert str(scores).splitlines() == [
        "   train  micro-F1       macro-F1",
        "     1 %  0.300 ± 0.100  0.500 ± 0.500",
        "    50 %  0.500 ± 0.000  0.250 ± 0.000",
    ]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.zeros(4), r"shape \(4,\)"),
        (np.zeros((4, 2, 1)), "shape"),
        ([["a"], ["b"], ["c"], ["d"]], "give numbers"),
        ([[0.0], [np.nan], [1.0], [np.inf]], "row 1 .* not finite .2 such rows"),
    ],
)
def test_bad_vectors(vectors, message):
    with pytest.raises(InputError, match=message):
        classify_nodes(vectors, [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, 0], "3 labels for 4 vectors"),
        (5, r"shape \(\) for 4 vectors"),
        (np.zeros((4, 2, 2)), r"shape \(4, 2, 2\) for 4 vectors"),
        ([3, 3, 3, 3], "every node has the same"),
        (np.ones((4, 2)), "every node has the same"),
        ([["a", "b"], ["b"], ["a"], ["b"]], "MultiLabelBinarizer"),
        ([[1, 0], [0, 0], [0, 1], [0, 0]], "2 of 4 nodes have no label: leave them out"),
        ([[1, 0], [0, 2], [0, 1], [1, 0]], "0 and 1"),
        ([[1, 0], [0, np.nan], [0, 1], [1, 0]], "0 and 1"),
        ([[0], [1], [2], [3]], r"shape \(4, 1\): for one label a node give \(4,\)"),
        ([["a"], ["b"], ["a"], ["b"]], r"shape \(4, 1\): for one label a node give \(4,\)"),
        ([0.0, np.nan, 1.0, 1.0], r"labels\[1\] is nan"),
        (["a", None, "b", None], "2 of 4 nodes have None: leave these nodes out"),
    ],
)
def test_bad_labels(labels, message):
    with pytest.raises(InputError, match=message):
        classify_nodes(np.eye(4), labels)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("train_sizes", [], "such as"),
        ("train_sizes", 0.1, "such as"),
        ("train_sizes", [0.5, 10], "train_sizes=10: .*0.1, not 10"),
        ("train_sizes", [1.0], "below 1"),
        ("train_sizes", [0], "above 0"),
        ("train_sizes", [float("nan")], "above 0"),
        ("train_sizes", "0.5", "train_sizes='0'"),
        ("train_sizes", [0.2], "none of 4 nodes .* at least 1/4"),
        ("n_repeats", 0, "at least 1"),
        ("n_repeats", 2.0, "whole number"),
        ("n_repeats", True, "whole number"),
        ("n_threads", 0, "at least 1"),
        ("random_state", -1, "whole number"),
        ("random_state", "7", "whole number"),
        ("random_state", None, "whole number"),
        ("progress", True, "function"),
    ],
)
def test_bad_parameters(name, value, message):
    with pytest.raises(ParameterError, match=message) as caught:
        classify_nodes(np.eye(4), [0, 1, 0, 1], **({"train_sizes": [0.5]} | {name: value}))
    assert caught.value.name == name


def test_embedding_and_labels_meet_by_id():
    rng = np.random.default_rng(0)
    labels = Labels.from_values([f"n{i}" for i in range(40)], np.arange(40) % 2)
    vectors = 5.0 * (np.arange(44) % 2)[:, None] + rng.normal(size=(44, 2)) / 9
    order = rng.permutation(44)
    embedding = Embedding(vectors[order], [f"n{i}" for i in order])  # four of them without a label
    scores = classify_nodes(embedding, labels, n_repeats=2)
    assert (scores.micro_f1 == 1.0).all()
    with pytest.raises(InputError, match=r"give an Embedding, or labels\.indicator"):
        classify_nodes(vectors[:40], labels)


def test_threads_share_the_memory_there_is(monkeypatch):
    table, truth = np.zeros((100, 10)), np.zeros((100, 5), bool)
    each = 4 * (1000 + 6 * 500)
    for available, threads in ((20 * each, 10), (each, 1), (0, 1)):
        monkeypatch.setattr(classification, "available_bytes", lambda available=available: available)
        assert classification._threads_that_fit(table, truth) == threads
    monkeypatch.setattr(classification, "available_bytes", lambda: None)  # a system that does not tell
    assert classification._threads_that_fit(table, truth) >= 100
