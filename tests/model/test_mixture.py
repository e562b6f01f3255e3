"""The coefficients' step: the minimiser it claims, the paper's step in the small, stable in the large."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelne.model.mixture import Moments, least_sum, n_sums, step_coefficients


class Pairs:
    """Weighted pairs with their kernel values: what a block has seen, before it is summed up."""

    def __init__(self, seed, n_kernels, n_positive=20, n_noise=35):
        rng = np.random.default_rng(seed)
        self.k = rng.random((n_positive + n_noise, n_kernels)) ** 2
        self.t = np.repeat([1.0, 0.0], [n_positive, n_noise])
        self.weights = np.where(self.t == 1, 1.0, rng.uniform(0.5, 5, self.t.size))
        self.n_pairs = n_positive
        self.start = rng.uniform(-1, 1, n_kernels)

    def moments(self, times=1.0):
        weighted = self.weights[:, None] * self.k
        return Moments(times * self.n_pairs, 0.0, times * (self.t @ weighted), times * (self.k.T @ weighted))

    def objective(self, c, rate, coef_l2, coef_spread, times=1.0):
        """As the module's docstring has it, pair by pair."""
        loss = sum(w * (t - c @ k) ** 2 for w, t, k in zip(self.weights, self.t, self.k, strict=True))
        spread = coef_spread / 2 * ((c - c.mean()) ** 2).sum()
        loss += self.n_pairs * (coef_l2 / 2 * (c @ c) + spread)
        return rate * times * loss + ((c - self.start) ** 2).sum() / 2


rates = st.sampled_from([1e-4, 0.025, 1.0])
penalties = st.sampled_from([0.0, 0.1, 3.0])


@given(
    seed=st.integers(0, 1000),
    n_kernels=st.integers(1, 5),
    rate=rates,
    coef_l2=penalties,
    coef_spread=penalties,
)
@settings(deadline=None, max_examples=60)
def test_the_objective_is_flat_at_the_step(
    assert_gradient_matches_finite_diff, seed, n_kernels, rate, coef_l2, coef_spread
):
    pairs = Pairs(seed, n_kernels)
    c = step_coefficients(pairs.start, pairs.moments(), rate, coef_l2, coef_spread)
    assert c.shape == (n_kernels,)
    assert_gradient_matches_finite_diff(
        lambda x: pairs.objective(x, rate, coef_l2, coef_spread), c, np.zeros(n_kernels), step=1e-3, atol=1e-6
    )
    assert pairs.objective(c, rate, coef_l2, coef_spread) < pairs.objective(
        pairs.start, rate, coef_l2, coef_spread
    )


@given(seed=st.integers(0, 1000), n_kernels=st.integers(1, 5), coef_l2=penalties, coef_spread=penalties)
@settings(deadline=None, max_examples=60)
def test_small_steps_are_the_papers(seed, n_kernels, coef_l2, coef_spread):
    """2(t − c·k)k − βc for every pair; equal coefficients feel no pull towards each other."""
    pairs, rate = Pairs(seed, n_kernels), 1e-7
    pairs.start = np.full(n_kernels, 0.3)
    step = (step_coefficients(pairs.start, pairs.moments(), rate, coef_l2, coef_spread) - pairs.start) / rate
    paper = -pairs.n_pairs * coef_l2 * pairs.start
    for w, t, k in zip(pairs.weights, pairs.t, pairs.k, strict=True):
        paper = paper + w * 2 * (t - pairs.start @ k) * k
    np.testing.assert_allclose(step, paper, rtol=1e-4, atol=1e-4)


def test_unequal_coefficients_are_drawn_together():
    pairs = Pairs(0, 3)
    pairs.k[:] = 0.0  # nothing to fit
    c = step_coefficients(pairs.start, pairs.moments(), 0.01, 0.1, 0.4)
    assert np.ptp(c) / np.ptp(pairs.start) < abs(c.mean() / pairs.start.mean()) < 1


@pytest.mark.parametrize("times", [1e3, 1e8, 1e14])
@pytest.mark.parametrize("penalty", [(0.0, 0.0), (0.1, 0.3)])
@pytest.mark.parametrize("twins", [False, True])
def test_huge_blocks_do_not_overshoot(times, penalty, twins):
    """Also for two kernels that are the same, where the pairs alone do not say which gets how much."""
    pairs = Pairs(1, 3)
    if twins:
        pairs.k[:, 1] = pairs.k[:, 0]
    c = step_coefficients(pairs.start, pairs.moments(times), 0.025, *penalty)
    assert np.isfinite(c).all()
    assert np.abs(c).max() < 5
    again = step_coefficients(c, pairs.moments(times), 0.025, *penalty)
    np.testing.assert_allclose(again, c, atol=0.1)
    best = pairs.objective(c, 0.025, *penalty, times)
    for shift in 0.2 * np.eye(3):
        for moved in (c + shift, c - shift):
            assert pairs.objective(moved, 0.025, *penalty, times) > best


def test_nothing_seen_changes_nothing():
    start = np.array([0.5, -0.2])
    nothing = Moments(0.0, 0.0, np.zeros(2), np.zeros((2, 2)))
    np.testing.assert_array_equal(step_coefficients(start, nothing, 0.025, 0.1, 0.3), start)


@pytest.mark.parametrize("n_kernels", [1, 2, 3, 5])
def test_moments_are_unpacked_from_the_flat_layout(n_kernels):
    rng = np.random.default_rng(0)
    linear, quadratic = rng.random(n_kernels), rng.random((n_kernels, n_kernels))
    quadratic += quadratic.T
    flat = np.concatenate([[7.0, 3.5], linear, np.tril(quadratic).reshape(-1)])
    assert flat.size == n_sums(n_kernels)
    moments = Moments.unpack(flat, n_kernels)
    assert (moments.n_pairs, moments.loss) == (7.0, 3.5)
    np.testing.assert_array_equal(moments.linear, linear)
    np.testing.assert_array_equal(moments.quadratic, quadratic)


@given(seed=st.integers(0, 1000), n_kernels=st.integers(1, 5), floor=st.floats(-2, 3))
@settings(deadline=None, max_examples=60)
def test_a_floor_under_the_sum_is_kept_at_the_least_cost(seed, n_kernels, floor):
    """Above the floor nothing changes; on it, the gradient is the same for all coefficients (Lagrange)."""
    pairs = Pairs(seed, n_kernels)
    rate, coef_l2, coef_spread = 0.025, 0.1, 0.4
    free = step_coefficients(pairs.start, pairs.moments(), rate, coef_l2, coef_spread)
    c = step_coefficients(pairs.start, pairs.moments(), rate, coef_l2, coef_spread, floor)
    if free.sum() >= floor:
        np.testing.assert_array_equal(c, free)
        return
    assert c.sum() == pytest.approx(floor, abs=1e-9)
    m = pairs.moments()
    pull = 2 * m.quadratic @ c - 2 * m.linear
    gradient = rate * (pull + m.n_pairs * (coef_l2 * c + coef_spread * (c - c.mean()))) + c - pairs.start
    np.testing.assert_allclose(gradient, gradient.mean(), atol=1e-6 * max(1, np.abs(gradient).max()))


@pytest.mark.parametrize("n_negative", [1, 2, 5, 6, 20, 120, 10_000])
def test_the_least_sum_repels_vectors_that_are_all_alike_as_much_as_they_decay(n_negative):
    contexts, least = 1 + n_negative, least_sum(n_negative)
    repelled = least * (least * contexts - 1)
    assert repelled / contexts > 1 / 81 - 1e-9
    assert (abs(repelled / contexts - 1 / 81) < 1e-9) == (n_negative >= 5)
    assert 1 / contexts < least <= 4 / 3 / min(contexts, 6)
