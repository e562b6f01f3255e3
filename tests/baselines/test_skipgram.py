"""The loop over walks with inner products, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from skipgram_reference import walk_steps

from kernelne.baselines._clusters import Clusters, pull
from kernelne.baselines._skipgram import LOGISTIC, SQUARED, Walking, train_inner_products
from kernelne.training.cpu.barrier import announce, make_barrier
from kernelne.training.cpu.loop import Step, Tables
from kernelne.training.cpu.scratch import make_scratch
from kernelne.walks.negatives import alias_table, draw_alias
from kernelne.walks.rng import NOISE, draw, stream_key
from kernelne.walks.sample import WalkPlan, sample_walks, walk_graph

RATE = 0.02


@njit
def _pull(vector, row, reach, center, clusters):
    return pull(vector, row, reach, center, clusters)


def _problem(random_graph, seed, *, n, dim, length, window, n_shared, l2):
    rng = np.random.default_rng(seed)
    graph = random_graph(seed, n, directed=bool(seed % 2), weighted=bool(seed % 3), density=0.4)
    step = Step(window, 1.0, False, 5, n_shared, np.float32(l2), RATE, RATE, 1000, np.float32(1e6))
    plan = WalkPlan(np.uint64(seed), length, 1.0, 1.0)
    walking = Walking(walk_graph(graph), plan, alias_table(rng.random(n) + 0.1), step)
    center, context = rng.normal(0, 1.5 / np.sqrt(dim), (2, n, dim)).astype(np.float32)
    no_steps, no_rows = np.empty((0, dim), np.float32), np.empty(0, np.int64)
    no_ends = np.zeros((2, 1, 2), np.int64)
    tables = Tables(center, context, False, no_steps, no_rows, no_steps, no_rows, no_rows, no_rows, no_ends)
    return walking, tables, make_scratch(length, n_shared, dim, 1)


def _train(first, last, walking, kind, clusters, tables, scratch):
    """Train on walks first … last − 1; returns pairs, loss and the number of exploded rows."""
    barrier, sums = make_barrier(), np.zeros(3)
    announce(barrier, first, last)
    train_inner_products(0, 1, barrier, walking, kind, clusters, tables, scratch, sums)
    return tuple(sums)


def _drawn(walking, walk):
    """The nodes and the negatives of a walk, as training draws them."""
    nodes, lengths = np.zeros((1, walking.plan.length), np.int64), np.zeros(1, np.int64)
    sample_walks(walking.graph, walking.plan, walk, nodes, lengths)
    key = np.uint64(stream_key(walking.plan.seed, NOISE, walk))
    noise = [draw_alias(walking.noise, np.uint64(draw(key, r))) for r in range(walking.step.n_shared)]
    return nodes[0, : lengths[0]], np.array(noise)


@given(
    seed=st.integers(0, 2**20),
    walk=st.integers(0, 999),
    n=st.integers(1, 12),
    dim=st.one_of(st.integers(1, 40), st.sampled_from([128, 130])),
    length=st.integers(1, 12),
    window=st.integers(1, 14),
    n_shared=st.integers(1, 20),
    l2=st.sampled_from([0.0, 0.05]),
    squared=st.booleans(),
)
@settings(deadline=None, max_examples=150)
def test_one_walk_is_one_step(random_graph, seed, walk, squared, **shape):
    walking, tables, scratch = _problem(random_graph, seed, **shape)
    before = [table.astype(float) for table in tables[:2]]
    nodes, noise = _drawn(walking, walk)
    nothing = Clusters(np.empty((0, shape["dim"]), np.float32), 1.0)
    kind = SQUARED if squared else LOGISTIC
    pairs, loss, n_bad = _train(walk, walk + 1, walking, kind, nothing, tables, scratch)
    if nodes.size < 2:
        assert (pairs, loss, n_bad) == (0, 0.0, 0)
        return
    *exact, exact_loss = walk_steps(
        nodes,
        noise,
        *before,
        window=shape["window"],
        n_negative=5,
        l2=shape["l2"],
        rate=RATE,
        squared=squared,
    )
    assert n_bad == 0
    assert (
        pairs == sum(min(abs(i - j), 99) <= shape["window"] for i in range(nodes.size) for j in range(i)) * 2
    )
    assert loss == pytest.approx(exact_loss, rel=1e-4)
    for table, old, change in zip(tables[:2], before, exact, strict=True):
        np.testing.assert_allclose(table - old, change, rtol=0, atol=1e-4 * np.abs(change).max() + 1e-5)


def test_walks_of_a_batch_follow_each_other(random_graph):
    """Forty walks: every step starts from what the walk before has left."""
    walking, tables, scratch = _problem(
        random_graph, 5, n=12, dim=20, length=6, window=3, n_shared=4, l2=0.01
    )
    center, context = (table.astype(float) for table in tables[:2])
    nothing = Clusters(np.empty((0, 20), np.float32), 1.0)
    for walk in range(40):
        nodes, noise = _drawn(walking, walk)
        if nodes.size > 1:
            steps = walk_steps(
                nodes, noise, center, context, window=3, n_negative=5, l2=0.01, rate=RATE, squared=False
            )
            center, context = center + steps[0], context + steps[1]
    _train(0, 40, walking, LOGISTIC, nothing, tables, scratch)
    np.testing.assert_allclose(tables.center, center, rtol=0, atol=1e-4)
    np.testing.assert_allclose(tables.context, context, rtol=0, atol=1e-4)


def test_a_pull_is_a_step_down_the_distance(assert_gradient_matches_finite_diff):
    rng = np.random.default_rng(0)
    vectors, centers = rng.normal(size=(4, 6)), rng.normal(size=(3, 6))

    def distance(at):
        return float(np.linalg.norm(at - centers, axis=1).min())

    table, moved = vectors.astype(np.float32), centers.astype(np.float32)
    found = _pull(table[2].copy(), 2, np.float32(0.5), table, moved)
    assert found == pytest.approx(distance(vectors[2]), rel=1e-5)
    change = table[2].astype(float) - vectors[2]
    assert_gradient_matches_finite_diff(distance, vectors[2], change / -0.5, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose((moved - centers).sum(axis=0), -change, atol=1e-5)
    assert (np.abs(moved - centers).sum(axis=1) > 1e-6).sum() == 1
    np.testing.assert_array_equal(table[[0, 1, 3]], vectors.astype(np.float32)[[0, 1, 3]])


def test_a_vector_on_its_center_stays():
    table, centers = np.ones((1, 3), np.float32), np.ones((1, 3), np.float32)
    assert _pull(table[0].copy(), 0, np.float32(1.0), table, centers) == 0.0
    assert (table == 1).all()
    assert (centers == 1).all()
