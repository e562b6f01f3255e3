"""Classification scores against scikit-learn's liblinear, and rules checked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier

from kernelne import InputError, ParameterError, classify_nodes
from kernelne.evaluation.classification import fit_logistic


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    return (data.data / 16).astype(np.float32), data.target


def _liblinear_scores(X, y, order, n_train):
    model = OneVsRestClassifier(LogisticRegression(solver="liblinear", C=1.0, tol=1e-6))
    model.fit(X[order[:n_train]], y[order[:n_train]])
    guess = model.predict(X[order[n_train:]])
    truth = y[order[n_train:]]
    return f1_score(truth, guess, average="micro"), f1_score(truth, guess, average="macro")


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_scores_are_liblinears(digits, share):
    X, y = digits
    ours = classify_nodes(X, y, train_sizes=[share], n_repeats=3, random_state=4)
    orders = [np.random.default_rng([4, r]).permutation(y.size) for r in range(3)]
    theirs = [_liblinear_scores(X, y, order, int(share * y.size)) for order in orders]
    np.testing.assert_allclose(ours.micro_f1[0], [micro for micro, _ in theirs], atol=0.002)
    np.testing.assert_allclose(ours.macro_f1[0], [macro for _, macro in theirs], atol=0.002)


def test_weights_are_the_minimum(digits):
    X, y = digits[0][:400].astype(float), digits[1][:400] == 3
    w = fit_logistic(X, y, C=2.0)
    sign = np.where(y, 1.0, -1.0)
    gradient = w - 2.0 * X.T @ (sign / (1 + np.exp(sign * (X @ w))))
    start = np.linalg.norm(X.T @ sign)
    assert np.linalg.norm(gradient) < 1e-3 * start


def test_separable_and_huge_features_stay_finite():
    X = np.array([[1e6], [-1e6], [2e6], [-2e6]])
    assert np.isfinite(fit_logistic(X, np.array([True, False, True, False]))).all()


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


def test_scores_depend_on_the_seed_alone(digits):
    X, y = digits
    first, again, other = (
        classify_nodes(X, y, train_sizes=[0.02], n_repeats=2, random_state=seed).micro_f1
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_bad_input():
    with pytest.raises(InputError, match="3 labels for 4 vectors"):
        classify_nodes(np.zeros((4, 2)), [0, 1, 0])
    with pytest.raises(ParameterError, match="train_sizes"):
        classify_nodes(np.zeros((4, 2)), [0, 1, 0, 1], train_sizes=[1.0])
