"""The oracle: pairs against brute force, gradients against differences, the loss against the paper."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelne.model.kernels import KERNELS
from kernelne.model.objective import loss_and_gradients, walk_pairs

MIXTURES = [
    *(([(name, sigma)], [1.0]) for name in KERNELS for sigma in (0.5, 1.0, 2.0)),
    ([("gaussian", 1.0), ("gaussian", 2.0), ("gaussian", 3.0)], [0.9, 0.2, -0.4]),
    ([(name, 1.5) for name in KERNELS], [-0.3, 0.7, 0.5]),
]
#: (walk, noise, window): repeated nodes, negatives that are contexts too, narrow windows, lengths 2 and 1.
WALKS = [
    ([0, 1, 2, 3], [4, 5], 10),
    ([0, 1, 0, 1, 1, 2], [3, 4, 4], 2),
    ([2, 3, 4], [3, 3, 2, 0], 1),
    ([1, 5], [5], 3),
    ([3, 3], [3], 1),
    ([4], [0, 1], 5),
]


def _tables(seed=0, n=6, dim=3):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 0.6, (n, dim)), rng.normal(0, 0.6, (n, dim))


@pytest.mark.parametrize(("walk", "noise", "window"), WALKS)
@pytest.mark.parametrize(("kernels", "coefficients"), MIXTURES)
@pytest.mark.parametrize(("l2", "coef_l2"), [(0.0, 0.0), (0.3, 0.7)])
def test_gradients_match_finite_differences(
    walk, noise, window, kernels, coefficients, l2, coef_l2, assert_gradient_matches_finite_diff
):
    center, context = _tables()
    c = np.array(coefficients)
    pairs = walk_pairs(walk, noise, window=window, n_negative=5)

    def loss(center, context, c):
        return loss_and_gradients(center, context, c, kernels, pairs, l2=l2, coef_l2=coef_l2)[0]

    _, gradients = loss_and_gradients(center, context, c, kernels, pairs, l2=l2, coef_l2=coef_l2)
    check = assert_gradient_matches_finite_diff
    check(lambda x: loss(x, context, c), center, gradients.center, atol=1e-7)
    check(lambda x: loss(center, x, c), context, gradients.context, atol=1e-7)
    check(lambda x: loss(center, context, x), c, gradients.coefficients, atol=1e-7)


def test_gradients_vanish_for_rows_no_pair_touches():
    center, context = _tables()
    pairs = walk_pairs([0, 1, 2], [3], window=1, n_negative=5)
    _, gradients = loss_and_gradients(
        center, context, np.ones(1), [("gaussian", 1.0)], pairs, l2=0.1, coef_l2=0.1
    )
    assert not gradients.center[3:].any()
    assert not gradients.context[4:].any()
    assert gradients.center[:3].all()
    assert gradients.context[:4].all()


def _paper_pairs(walk, window, forward=False):
    """Every (center, context, distance) of a walk, as the paper's loop visits them, or those ahead."""
    return [
        (walk[i], walk[j], abs(i - j))
        for i in range(len(walk))
        for j in range(len(walk))
        if i != j and (1 if forward else -window) <= j - i <= window
    ]


@given(
    walk=st.lists(st.integers(0, 5), min_size=1, max_size=9),
    noise=st.lists(st.integers(0, 5), min_size=1, max_size=5),
    window=st.integers(1, 10),
    n_negative=st.integers(1, 7),
    decay=st.sampled_from([1.0, 0.5, 0.3]),
    forward=st.booleans(),
)
@settings(deadline=None, max_examples=200)
def test_pairs_and_their_weights_match_brute_force(walk, noise, window, n_negative, decay, forward):
    settings = {"window": window, "n_negative": n_negative, "window_decay": decay, "forward": forward}
    pairs = walk_pairs(walk, noise, **settings)
    positive, negative = {}, {}
    center_decay, context_decay = np.zeros(6), np.zeros(6)
    visited = _paper_pairs(walk, window, forward)
    for v, u, gap in visited:
        weight = decay ** (gap - 1)
        positive[v, u] = positive.get((v, u), 0.0) + weight
        center_decay[v] += weight
        context_decay[u] += weight
        for r in noise:  # n_negative draws from the noise of the walk, in expectation
            negative[v, r] = negative.get((v, r), 0.0) + weight * n_negative / len(noise)
            context_decay[r] += weight * n_negative / len(noise)
    found = {0.0: {}, 1.0: {}}
    for v, u, target, weight in zip(pairs.centers, pairs.contexts, pairs.targets, pairs.weights, strict=True):
        if weight:
            found[target][v, u] = found[target].get((v, u), 0.0) + weight
    assert found[1.0] == pytest.approx(positive)
    assert found[0.0] == pytest.approx(negative)
    assert pairs.n_pairs == pytest.approx(sum(decay ** (gap - 1) for *_, gap in visited))
    np.testing.assert_allclose(np.bincount(pairs.center_rows, pairs.center_decays, 6), center_decay)
    np.testing.assert_allclose(np.bincount(pairs.context_rows, pairs.context_decays, 6), context_decay)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize(("walk", "window"), [([0, 1, 2, 1, 3], 2), ([0, 0, 1], 1), ([3, 2], 5)])
def test_expected_loss_is_the_papers_pair_by_pair(m, walk, window):
    """Over all draws of m shared negatives, against METHOD §1 pair by pair with n_negative draws each."""
    n_negative, l2, coef_l2 = 5, 0.2, 0.3
    kernels, c = [("gaussian", 1.0), ("schoenberg", 2.0)], np.array([0.8, -0.3])
    center, context = _tables(1, n=4)
    share = np.array([0.1, 0.2, 0.3, 0.4])

    def k(u, v):
        D = sum((context[u, x] - center[v, x]) ** 2 for x in range(3))
        return sum(c[i] * KERNELS[name](D, sigma)[0] for i, (name, sigma) in enumerate(kernels))

    paper = 0.0
    for v, u, _ in _paper_pairs(walk, window):
        paper += (1 - k(u, v)) ** 2 + coef_l2 / 2 * (c @ c)
        paper += l2 / 2 * (center[v] @ center[v] + context[u] @ context[u])
        for r in range(4):
            paper += n_negative * share[r] * (k(r, v) ** 2 + l2 / 2 * (context[r] @ context[r]))
    expected = 0.0
    for noise in itertools.product(range(4), repeat=m):
        pairs = walk_pairs(walk, noise, window=window, n_negative=n_negative)
        loss, _ = loss_and_gradients(center, context, c, kernels, pairs, l2=l2, coef_l2=coef_l2)
        expected += share[list(noise)].prod() * loss
    assert expected == pytest.approx(paper, rel=1e-10)


def test_a_step_down_the_gradient_pulls_contexts_near_and_pushes_negatives_away():
    center, context = _tables()
    pairs = walk_pairs([0, 1], [2], window=1, n_negative=5)
    kernels, c = [("gaussian", 2.0)], np.ones(1)
    loss, gradients = loss_and_gradients(center, context, c, kernels, pairs, l2=0.0, coef_l2=0.0)
    stepped_context = context.copy()
    stepped_context[1] -= 0.01 * gradients.context[1]
    stepped_context[2] -= 0.01 * gradients.context[2]
    before, after = (((table - center[0]) ** 2).sum(axis=1) for table in (context, stepped_context))
    assert after[1] < before[1]
    assert after[2] > before[2]
    assert loss_and_gradients(center, stepped_context, c, kernels, pairs, l2=0.0, coef_l2=0.0)[0] < loss
