"""Weights of logistic regressions against liblinear's, and against what a minimum is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from kernelne.evaluation.logistic import fit_classes, fit_towards, whiten


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    return data.data / 16, data.target


def _weights(X, y, C=1.0):
    """Of least ‖w‖²/2 + C · Σ log(1 + exp(∓xᵢ·w))."""
    Z, penalty, back = whiten(np.asarray(X, np.float64))
    return back @ fit_classes(Z, np.where(y, 1.0, -1.0)[:, None], penalty / C, 1e-7)[0]


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e3])
@pytest.mark.parametrize(("rows", "C"), [(400, 1.0), (400, 50.0), (40, 1.0)])
def test_weights_are_liblinears(digits, rows, C, scale):
    X, y = scale * digits[0][:rows], digits[1][:rows] == 3
    model = LogisticRegression(solver="liblinear", C=C, tol=1e-12, fit_intercept=False, max_iter=10_000)
    wanted = model.fit(X, y).coef_[0]
    np.testing.assert_allclose(_weights(X, y, C), wanted, atol=1e-5 * np.abs(wanted).max())


def _heavy_tailed(rng):
    return rng.standard_cauchy((300, 10))


def _of_all_sizes(rng):
    return rng.normal(size=(300, 10)) * 10.0 ** np.arange(-5, 5)


def _tiny(rng):
    return rng.normal(size=(300, 10)) * 1e-10


def _wide(rng):
    return rng.normal(size=(20, 100)) * 5


def _of_low_rank(rng):
    return np.repeat(rng.normal(size=(200, 2)), 5, axis=1)


@pytest.mark.parametrize("make", [_heavy_tailed, _of_all_sizes, _tiny, _wide, _of_low_rank])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_the_gradient_is_zero_at_the_weights(make, C):
    rng = np.random.default_rng(5)
    X = make(rng)
    y = X[:, 0] + np.median(np.abs(X[:, 0])) * rng.normal(size=len(X)) > 0
    _assert_fitted(X, y, C)


def _assert_fitted(X, y, C):
    w = _weights(X, y, C)
    sign = np.where(y, 1.0, -1.0)
    gradient = w - C * X.T @ (sign * expit(-sign * (X @ w)))
    assert np.linalg.norm(gradient) < 1e-6 * np.linalg.norm(C * X.T @ sign / 2)


def test_whole_newton_steps_would_run_away():
    X = np.array([[7989.0, 1108.0], [-1394.0, -3.0], [63.0, -30.0], [5094.0, -376.0]])
    _assert_fitted(X, np.array([False, True, True, False]), 1e3)


def test_separable_and_huge_features_stay_finite():
    X = np.array([[1e6], [-1e6], [2e6], [-2e6]])
    w = _weights(X, np.array([True, False, True, False]))
    assert np.isfinite(w).all()
    assert w[0] > 0


def test_classes_do_not_meddle(digits):
    X, y = digits
    Z, penalty, _ = whiten(X)
    sign = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    together = fit_classes(Z, sign, penalty, 1e-7)
    alone = [fit_classes(Z, sign[:, [c]], penalty, 1e-7)[0] for c in range(10)]
    np.testing.assert_allclose(together, alone, atol=1e-6 * np.abs(together).max())


@pytest.mark.parametrize("make", [_heavy_tailed, _of_all_sizes, _tiny, _wide, _of_low_rank])
@pytest.mark.parametrize("firmness", [1e-3, 1.0, 1e3])
def test_towards_a_prior(make, firmness):
    rng = np.random.default_rng(5)
    X = make(rng)
    sign = np.where(X[:, 0] + np.median(np.abs(X[:, 0])) * rng.normal(size=len(X)) > 0, 1.0, -1.0)
    prior = rng.normal(size=X.shape[1]) / (1 + np.abs(X).max(axis=0))

    def gradient(w):
        return firmness * (w - prior) - X.T @ (sign * expit(-sign * (X @ w)))

    w = fit_towards(lambda: [(X, sign)], prior, firmness)
    assert np.linalg.norm(gradient(w)) <= 1e-4 * np.linalg.norm(gradient(prior))
    parts = [(X[i : i + 7], sign[i : i + 7]) for i in range(0, len(X), 7)]
    in_parts = fit_towards(lambda: iter(parts), prior, firmness)
    np.testing.assert_allclose(in_parts, w, atol=1e-3 * np.abs(w).max())


def test_no_prior_is_liblinears(digits):
    X, y = digits[0][:400], digits[1][:400] == 3
    model = LogisticRegression(solver="liblinear", tol=1e-12, fit_intercept=False, max_iter=10_000)
    wanted = model.fit(X, y).coef_[0]
    found = fit_towards(lambda: [(X, np.where(y, 1.0, -1.0))], np.zeros(X.shape[1]))
    np.testing.assert_allclose(found, wanted, atol=5e-3 * np.abs(wanted).max())


def test_what_is_known_already_stays():
    prior = np.array([1.0, 2.0])
    np.testing.assert_array_equal(fit_towards(list, prior), prior)
