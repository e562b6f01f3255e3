"""The compiled loop against the float64 oracle: steps, loss and moments, on any graph, mixture and shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from reference import Problem

from kernelne.graph import Graph
from kernelne.model.kernels import KERNELS
from kernelne.model.mixture import Moments
from kernelne.training.cpu.loop import apply_steps, sort_steps
from kernelne.training.cpu.scratch import make_scratch
from kernelne.walks.rng import fill_uniform

#: float32 against float64: this much of the largest entry of a walk's step, or of a sum.
PRECISION = 5e-5

kernel = st.tuples(st.sampled_from(list(KERNELS)), st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0]))
dims = st.one_of(st.integers(1, 70), st.sampled_from([128, 130]))


@njit
def _apply(table, steps, rows, order, ends, n_parts):
    """What n_parts threads do with the steps of a chunk, one thread after another."""
    for part in range(n_parts):
        first, last = rows.size * part // n_parts, rows.size * (part + 1) // n_parts
        sort_steps(rows, first, last, n_parts, order, ends[part])
    for part in range(n_parts):
        apply_steps(table, steps, rows, order, ends, part, n_parts)


@st.composite
def problems(draw, random_graph):
    """Any small graph, mixture and shape; tables with entries of order 0.3."""
    graph = random_graph(
        draw(st.integers(0, 2**20)),
        draw(st.integers(1, 12)),
        directed=draw(st.booleans()),
        weighted=draw(st.booleans()),
        density=draw(st.sampled_from([0.1, 0.3, 0.7])),
    )
    return Problem.random(
        graph,
        draw(st.integers(0, 2**20)),
        draw(dims),
        draw(st.lists(kernel, min_size=1, max_size=4)),
        length=draw(st.integers(1, 13)),
        window=draw(st.integers(1, 15)),
        window_decay=draw(st.sampled_from([1.0, 0.9, 0.5, 0.1])),
        forward=draw(st.booleans()),
        n_shared=draw(st.integers(1, 20)),
        n_negative=draw(st.integers(1, 6)),
        l2=draw(st.sampled_from([0.0, 0.01, 0.3])),
        bias=draw(st.sampled_from([(1.0, 1.0), (0.5, 2.0)])),
    )


def _assert_close_to_largest(found, exact, rounding=0.0):
    """Within PRECISION of the largest entry, and the rounding of the tables steps were added to."""
    atol = PRECISION * np.abs(exact).max(initial=0.0) + rounding
    np.testing.assert_allclose(found, exact, rtol=0, atol=atol)


def _assert_step(found, before, exact, n_additions, size=0.0):
    """found − before against exact; every addition to a float32 table rounds.

    It may round twice: a step is a sum and a multiple of the row, which the compiler may add one by one.
    size: of the steps of a row without their signs; where they cancel, their rounding does not.
    """
    rounding = 2 * n_additions * 2.0**-24 * np.abs(found).max() + PRECISION * size
    _assert_close_to_largest(found.astype(float) - before, exact, rounding)


def _steps_by_row(steps, rows, n):
    """The sum in float64 of the deferred steps for each of n rows."""
    total = np.zeros((n, steps.shape[1]))
    np.add.at(total, rows[rows >= 0], steps[rows >= 0])
    return total


def _assert_sums(sums, moments, n_kernels):
    found = Moments.unpack(sums, n_kernels)
    assert found.n_pairs == pytest.approx(moments.n_pairs, rel=1e-6)
    assert found.loss == pytest.approx(moments.loss, rel=PRECISION, abs=1e-9)
    if n_kernels > 1:  # A single kernel has no coefficient to solve for, and its moments stay zero.
        for sums_found, exact in ((found.linear, moments.linear), (found.quadratic, moments.quadratic)):
            atol = PRECISION * np.abs(exact).max() + 1e-12
            np.testing.assert_allclose(sums_found, exact, rtol=0, atol=atol)


@given(data=st.data(), walk=st.integers(0, 999))
@settings(deadline=None, max_examples=300)
def test_one_walk_is_one_step_of_the_oracle(random_graph, data, walk):
    problem = data.draw(problems(random_graph))
    gradients, moments = problem.oracle(walk, problem.center.astype(float), problem.context.astype(float))
    exact = -problem.rate(walk) * gradients.center, -problem.rate(walk) * gradients.context
    tables, sums, n_bad = problem.train(walk, walk + 1, deferred=True)
    n = problem.graph.n_nodes
    _assert_close_to_largest(_steps_by_row(tables.center_steps, tables.center_rows, n), exact[0])
    _assert_close_to_largest(_steps_by_row(tables.context_steps, tables.context_rows, n), exact[1])
    _assert_sums(sums[0], moments, len(problem.kernels))
    np.testing.assert_array_equal(tables.center, problem.center)
    np.testing.assert_array_equal(tables.context, problem.context)
    at_once, same_sums, same_n_bad = problem.train(walk, walk + 1)
    n_additions = problem.length + problem.n_shared
    sizes = [
        _steps_by_row(np.abs(steps), rows, n).max(initial=0.0)
        for steps, rows in (
            (tables.center_steps, tables.center_rows),
            (tables.context_steps, tables.context_rows),
        )
    ]
    _assert_step(at_once.center, problem.center, exact[0], n_additions, sizes[0])
    _assert_step(at_once.context, problem.context, exact[1], n_additions, sizes[1])
    np.testing.assert_allclose(sums, same_sums, rtol=1e-6)
    assert n_bad == same_n_bad == 0


@given(data=st.data(), first=st.integers(0, 900), count=st.integers(2, 40))
@settings(deadline=None, max_examples=60)
def test_walks_are_trained_one_after_another(random_graph, data, first, count):
    problem = data.draw(problems(random_graph))
    # Steps on a handful of nodes are large enough to be chaotic, which would amplify the rounding.
    problem = replace(problem, rates=tuple(rate / 20 for rate in problem.rates))
    tables, sums, _ = problem.train(first, first + count)
    center, context = problem.center.astype(float), problem.context.astype(float)
    n_pairs, loss = 0, 0.0
    for walk in range(first, first + count):
        gradients, moments = problem.oracle(walk, center, context)
        center -= problem.rate(walk) * gradients.center
        context -= problem.rate(walk) * gradients.context
        n_pairs += moments.n_pairs
        loss += moments.loss
    for found, exact in ((tables.center, center), (tables.context, context)):
        np.testing.assert_allclose(found, exact, rtol=0, atol=5e-5 * max(1, np.abs(exact).max()))
    assert sums[0, 0] == pytest.approx(n_pairs, rel=1e-6)
    assert sums[0, 1] == pytest.approx(loss, rel=1e-3, abs=1e-9)


@given(data=st.data(), first=st.integers(0, 900), count=st.integers(1, 40))
@settings(deadline=None, max_examples=60)
def test_deferred_steps_are_all_taken_from_the_starting_tables(random_graph, data, first, count):
    problem = data.draw(problems(random_graph))
    tables, sums, _ = problem.train(first, first + count, deferred=True)
    starts = problem.center.astype(float), problem.context.astype(float)
    exact = [np.zeros_like(start) for start in starts]
    for at, walk in enumerate(range(first, first + count)):
        gradients, moments = problem.oracle(walk, *starts)
        exact[0] -= problem.rate(walk) * gradients.center
        exact[1] -= problem.rate(walk) * gradients.context
        _assert_sums(sums[at], moments, len(problem.kernels))
    t = tables
    _apply(t.center, t.center_steps, t.center_rows, t.center_order, t.ends[0], 3)
    _apply(t.context, t.context_steps, t.context_rows, t.context_order, t.ends[1], 3)
    n_additions = count * (problem.length + problem.n_shared)
    _assert_step(tables.center, starts[0], exact[0], n_additions)
    _assert_step(tables.context, starts[1], exact[1], n_additions)


def _path_to_a_sink(n):
    """0 → 1 → … → n − 1: walks of every length up to n."""
    return Graph.from_scipy(np.diag(np.ones(n - 1), 1), directed=True)


@pytest.mark.parametrize("name", list(KERNELS))
@pytest.mark.parametrize("n_shared", [1, 3, 20])
@pytest.mark.parametrize("sigma", [0.1, 1.0])
def test_walks_of_mixed_lengths_share_scratch(name, n_shared, sigma):
    """Nothing of a longer walk may be left behind for a shorter one: not even a NaN of weight zero."""
    problem = Problem.random(
        _path_to_a_sink(13), 3, 24, [(name, sigma)], length=13, window=13, n_shared=n_shared, rates=(0.5, 0.5)
    )
    problem.center /= 20 / sigma
    problem.context /= 20 / sigma
    scratch = make_scratch(problem.length, problem.n_shared, 24, 1)
    for walk in range(26):
        tables, sums, n_bad = problem.train(walk, walk + 1, scratch=scratch)
        gradients, moments = problem.oracle(walk, problem.center.astype(float), problem.context.astype(float))
        _assert_sums(sums[0], moments, 1)
        _assert_step(tables.center, problem.center, -problem.rate(walk) * gradients.center, 40)
        _assert_step(tables.context, problem.context, -problem.rate(walk) * gradients.context, 40)
        assert n_bad == 0


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("dim", [1, 17])
def test_a_single_node(loop, dim):
    graph = Graph.from_scipy(np.full((1, 1), float(loop)))
    problem = Problem.random(graph, 2, dim, [("gaussian", 1.0)], length=5, window=2, n_shared=3)
    tables, sums, _ = problem.train(0, 4)
    assert (sums[0, 0] > 0) == loop
    assert (tables.center != problem.center).all() == loop
    center, context = problem.center.astype(float), problem.context.astype(float)
    for walk in range(4):
        gradients, _ = problem.oracle(walk, center, context)
        center -= problem.rate(walk) * gradients.center
        context -= problem.rate(walk) * gradients.context
    np.testing.assert_allclose(tables.center, center, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(tables.context, context, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("deferred", [False, True])
def test_without_edges_nothing_is_trained(deferred):
    graph = Graph.from_scipy(np.zeros((5, 5)))
    problem = Problem.random(
        graph, 2, 8, [("schoenberg", 1.0), ("gaussian", 1.0)], length=5, window=2, n_shared=3
    )
    tables, sums, n_bad = problem.train(0, 40, deferred=deferred)
    assert not sums.any()
    assert n_bad == 0
    np.testing.assert_array_equal(tables.center, problem.center)
    np.testing.assert_array_equal(tables.context, problem.context)
    assert (tables.center_rows == -1).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 2e3])
@pytest.mark.parametrize("table", ["center", "context"])
def test_exploded_rows_are_counted(ring, table, bad):
    problem = Problem.random(ring, 2, 8, [("gaussian", 1.0)], length=5, window=2, n_shared=3)
    getattr(problem, table)[:, 3] = bad
    _, _, n_bad = problem.train(0, 1)
    assert n_bad == (5 if table == "center" else 5 + 3)  # the walk, and for the context its negatives


def test_uniform_start_is_keyed_by_seed_and_row():
    small, large, other = (np.empty((n, 7), np.float32) for n in (40, 4000, 40))
    fill_uniform(small, np.uint64(5), 0.25)
    fill_uniform(large, np.uint64(5), 0.25)
    fill_uniform(other, np.uint64(6), 0.25)
    np.testing.assert_array_equal(small, large[:40])
    assert (small != other).all()
    assert np.abs(large).max() <= 0.25
    assert np.abs(large).max() > 0.249
    assert abs(large.mean()) < 0.005
    assert large.std() == pytest.approx(0.5 / np.sqrt(12), rel=0.02)
    assert np.unique(large).size > 0.99 * large.size
