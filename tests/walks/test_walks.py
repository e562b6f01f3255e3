"""Walks: the same whatever the batch, along edges only, as often as they should; visits and noise exact."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelne.graph import Graph
from kernelne.walks import sample as walk_sample
from kernelne.walks.negatives import AliasTable, alias_table, draw_alias
from kernelne.walks.sample import (
    COUNTED_ROUNDS,
    WalkPlan,
    expected_visits,
    sample_walks,
    start_node,
    start_nodes,
    walk_graph,
)

#: Fixed seeds: a test either always passes or always fails. Below this a fit is held to be wrong.
UNLIKELY = 1e-5

seeds = st.integers(0, 2**32)
sizes = st.integers(1, 12)


def _plan(seed, length, p=1.0, q=1.0):
    return WalkPlan(np.uint64(seed), length, 1 / p, 1 / q)


def _sample(graph, plan, first, count):
    """Walks first … first + count − 1, as rows that end in -1."""
    found, lengths = np.full((count, plan.length), -1, np.int64), np.zeros(count, np.int64)
    sample_walks(walk_graph(graph), plan, first, found, lengths)
    np.testing.assert_array_equal((found >= 0).sum(axis=1), lengths)
    return found


def _dense(graph):
    return graph.to_scipy().toarray().astype(float)


# ---------------------------------------------------------------------------------------------- starts


def _starts(n, seed, first, count):
    """Start nodes by way of walks of length 1."""
    return _sample(Graph.from_scipy(scipy.sparse.csr_array((n, n))), _plan(seed, 1), first, count)[:, 0]


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 7])
def test_every_round_starts_every_node_once(seed):
    for n in range(1, 201):
        for first_round in (0, 1, 10**9):
            starts = [start_node(np.uint64(seed), first_round * n + i, n) for i in range(n)]
            assert sorted(starts) == list(range(n))


@pytest.mark.parametrize("n", [65_536, 65_537, 1_000_003])
def test_every_round_of_a_large_graph_starts_every_node_once(n):
    np.testing.assert_array_equal(np.sort(_starts(n, 5, 3 * n, n)), np.arange(n))


@pytest.mark.parametrize("n", [1, 2, 7, 64, 1000, 2**31 + 5])
def test_starts_of_several_walks_are_those_of_each(n):
    for first in (0, n - 1, 5 * n + n // 2):
        starts = np.empty(40, np.int64)
        start_nodes(np.uint64(9), first, n, starts)
        np.testing.assert_array_equal(starts, [start_node(np.uint64(9), first + i, n) for i in range(40)])


@pytest.mark.parametrize("n", [2**31 - 1, 2**31 + 5, 10**12])
def test_starts_on_a_huge_graph_are_different_nodes_all_over(n):
    starts = [start_node(np.uint64(3), 7 * n + i, n) for i in range(2000)]
    assert len(set(starts)) == 2000
    assert 0 <= min(starts) < 0.01 * n
    assert 0.99 * n < max(starts) < n


def test_orders_differ_between_rounds_and_seeds():
    n = 50
    orders = {tuple(_starts(n, seed, r * n, n)) for seed in range(4) for r in range(25)}
    assert len(orders) == 100
    assert tuple(range(n)) not in orders


@pytest.mark.parametrize("n", [2, 3, 5, 7, 10])
def test_every_node_comes_first_second_and_last_equally_often(n):
    rounds = 20_000
    orders = _starts(n, 11, 0, rounds * n).reshape(rounds, n)
    for place in (0, 1, n - 1):
        seen = np.bincount(orders[:, place], minlength=n)
        assert scipy.stats.chisquare(seen).pvalue > UNLIKELY, (place, seen)


# ----------------------------------------------------------------------------------------------- steps


@given(
    seed=seeds,
    n=sizes,
    directed=st.booleans(),
    weighted=st.booleans(),
    length=st.integers(1, 9),
    first=st.integers(0, 2**40),
    cuts=st.lists(st.integers(0, 30), max_size=3),
    bias=st.sampled_from([(1, 1), (0.5, 2), (4, 0.25), (0.01, 1)]),
)
@settings(deadline=None, max_examples=60)
def test_walks_do_not_depend_on_the_batch(
    random_graph, seed, n, directed, weighted, length, first, cuts, bias
):
    graph = random_graph(seed, n, directed=directed, weighted=weighted)
    plan = _plan(seed, length, *bias)
    whole = _sample(graph, plan, first, 30)
    edges = [0, *sorted(cuts), 30]
    pieces = [_sample(graph, plan, first + a, b - a) for a, b in pairwise(edges)]
    np.testing.assert_array_equal(whole, np.concatenate(pieces))


@given(
    seed=seeds,
    n=sizes,
    directed=st.booleans(),
    weighted=st.booleans(),
    density=st.sampled_from([0, 0.1, 0.4]),
    first=st.integers(0, 2**40),
    bias=st.sampled_from([(1, 1), (0.5, 2), (4, 0.25), (100, 0.01)]),
)
@settings(deadline=None, max_examples=60)
def test_walks_follow_edges_and_end_only_at_sinks(
    random_graph, seed, n, directed, weighted, density, first, bias
):
    graph = random_graph(seed, n, directed=directed, weighted=weighted, density=density)
    matrix = _dense(graph)
    for w, walk in enumerate(_sample(graph, _plan(seed, 8, *bias), first, 20)):
        nodes = walk[walk >= 0]
        assert nodes[0] == start_node(np.uint64(seed), first + w, n)
        assert (matrix[nodes[:-1], nodes[1:]] > 0).all()
        assert nodes.size == 8 or not matrix[nodes[-1]].any()


def test_an_isolated_nodes_walk_is_itself(two_cliques):
    found = _sample(two_cliques, _plan(1, 6), 0, 11)
    alone = found[found[:, 0] == 10]
    np.testing.assert_array_equal(alone, [[10, -1, -1, -1, -1, -1]])
    assert (found[found[:, 0] != 10] >= 0).all()


def test_a_self_loop_alone_is_walked_to_the_end():
    graph = Graph.from_scipy(np.ones((1, 1)))
    for bias in ((1, 1), (100, 0.01), (0.01, 100)):
        np.testing.assert_array_equal(_sample(graph, _plan(1, 5, *bias), 0, 2), np.zeros((2, 5)))


def test_walks_differ_between_seeds_and_rounds(ring):
    found = [_sample(ring, _plan(seed, 10), r * 64, 64) for seed in range(3) for r in range(3)]
    assert len({walk.tobytes() for batch in found for walk in batch}) > 0.97 * 9 * 64


def test_what_lies_beyond_the_end_is_left_alone():
    graph = Graph.from_scipy(scipy.sparse.csr_array(([1.0], ([0], [1])), shape=(2, 2)), directed=True)
    found, lengths = np.full((2, 4), 77, np.int64), np.zeros(2, np.int64)
    sample_walks(walk_graph(graph), _plan(0, 4), 0, found, lengths)
    assert sorted(map(tuple, found)) == [(0, 1, 77, 77), (1, 77, 77, 77)]
    assert sorted(lengths) == [1, 2]


# ----------------------------------------------------------------------------------------- frequencies


def _biases(matrix, p, q, previous, v):
    """node2vec's α for every neighbour of v after previous → v, as in its paper (previous None: no bias)."""
    found = {}
    for x in np.flatnonzero(matrix[v]).tolist():
        near = previous is None or matrix[previous, x] > 0
        found[x] = 1 / p if x == previous else 1.0 if near else 1 / q
    return found


def _step_probabilities(matrix, p, q, previous, v):
    """The exact distribution of the next node."""
    shares = {x: matrix[v, x] * bias for x, bias in _biases(matrix, p, q, previous, v).items()}
    return {x: share / sum(shares.values()) for x, share in shares.items()}


def _acceptance(matrix, p, q, previous, v):
    """Chance that a proposal of the sampler is taken, the excess of the edge back apart."""
    ceiling = max(1, 1 / q)
    biases = _biases(matrix, p, q, previous, v).items()
    return sum(matrix[v, x] / matrix[v].sum() * min(ceiling, bias) / ceiling for x, bias in biases)


def _small_graph(directed, weighted):
    """Eight nodes: a clique with a tail and self-loops; when directed also a way in only and a sink."""
    matrix = np.zeros((8, 8))
    edges = [(0, 1), (0, 2), (1, 2), (2, 3), (0, 3), (3, 4), (4, 5), (5, 6), (6, 4), (1, 1), (5, 5), (7, 0)]
    for at, (a, b) in enumerate(edges):
        matrix[a, b] = [0.02, 1, 0.3, 5, 2][at % 5] if weighted else 1
        if not directed or at % 3 == 0:
            matrix[b, a] = matrix[a, b]
    return Graph.from_scipy(matrix, directed=directed)


def _assert_steps_fit(graph, p, q, found):
    """All steps of walks, grouped by the last two nodes, by one chi-square test over all groups."""
    matrix = _dense(graph)
    seen = defaultdict(Counter)
    for walk in found.tolist():
        previous, v = None, walk[0]
        for x in walk[1:]:
            if x < 0:
                break
            seen[previous, v][x] += 1
            previous, v = v, x
    statistic, freedom, worst = 0.0, 0, (0.0, None)
    for (previous, v), counts in seen.items():
        exact = _step_probabilities(matrix, p, q, previous, v)
        assert set(counts) <= set(exact)
        total = sum(counts.values())
        # Nodes too rare for the test are taken together.
        usual = [x for x in exact if exact[x] * total >= 5]
        rest = 1 - sum(exact[x] for x in usual)
        expected = [*(exact[x] * total for x in usual), rest * total]
        observed = [*(counts[x] for x in usual), sum(counts[x] for x in exact if x not in usual)]
        part = sum((o - e) ** 2 / max(e, 5) for o, e in zip(observed, expected, strict=True))
        statistic += part
        freedom += max(len(usual) + (rest * total >= 5) - 1, 0)
        worst = max(worst, (part, (previous, v, dict(counts), exact)), key=lambda pair: pair[0])
    assert freedom > 5
    assert scipy.stats.chi2.sf(statistic, freedom) > UNLIKELY, worst


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("p", "q"), [(1, 1), (0.5, 2), (4, 0.25), (0.01, 1), (1, 100), (100, 0.01), (100, 100), (0.1, 50), (2, 1)]
)
def test_steps_have_node2vecs_frequencies(directed, weighted, p, q):
    graph = _small_graph(directed, weighted)
    _assert_steps_fit(graph, p, q, _sample(graph, _plan(20, 12, p, q), 0, 12_000))


@pytest.mark.parametrize(("p", "q", "directed"), [(100, 0.01, False), (1, 100, True), (100, 100, False)])
def test_the_cases_above_reach_the_exact_scan(p, q, directed):
    """Where nearly every proposal is refused, a good part of the steps are taken by the scan."""
    matrix = _dense(_small_graph(directed, False))
    steps = [(a, v) for a in range(8) for v in np.flatnonzero(matrix[a]) if matrix[v].any()]
    refused = [(1 - _acceptance(matrix, p, q, a, v)) ** walk_sample._MAX_REJECTIONS for a, v in steps]
    assert max(refused) > 0.4


@pytest.mark.parametrize("weights", [[1e-3, 1, 1e3, 0.5], [1, 1, 1, 1.5], [1e-6, 1e-6, 1e-6, 1]])
def test_first_order_steps_are_drawn_by_weight(weights):
    """A hub whose arcs lead to sinks: every walk from it is one draw."""
    matrix = scipy.sparse.csr_array((weights, ([0] * 4, [1, 2, 3, 4])), shape=(5, 5))
    found = _sample(Graph.from_scipy(matrix, directed=True), _plan(3, 2), 0, 5 * 40_000)
    drawn = np.bincount(found[found[:, 0] == 0, 1], minlength=5)[1:]
    assert drawn.sum() == 40_000
    share = np.array(weights) / sum(weights)
    for count, chance in zip(drawn, share, strict=True):
        assert scipy.stats.binomtest(int(count), 40_000, chance).pvalue > UNLIKELY


# ---------------------------------------------------------------------------------------------- visits


@given(
    seed=seeds,
    n=sizes,
    directed=st.booleans(),
    weighted=st.booleans(),
    density=st.sampled_from([0, 0.1, 0.5]),
    length=st.integers(1, 12),
)
@settings(deadline=None, max_examples=60)
def test_first_order_visits_are_exact(random_graph, seed, n, directed, weighted, density, length):
    graph = random_graph(seed, n, directed=directed, weighted=weighted, density=density)
    matrix = _dense(graph)
    sums = matrix.sum(axis=1, keepdims=True)
    transition = np.divide(matrix, sums, out=np.zeros_like(matrix), where=sums > 0)
    exact = sum(np.linalg.matrix_power(transition.T, step) @ np.ones(n) for step in range(length))
    found = expected_visits(walk_graph(graph), _plan(seed, length), 3)
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6)


def test_first_order_visits_agree_with_the_walks(two_cliques):
    rounds = 3000
    plan = _plan(2, 7)
    found = _sample(two_cliques, plan, 0, rounds * 11)
    counted = np.bincount(found[found >= 0], minlength=11) / rounds
    np.testing.assert_allclose(expected_visits(walk_graph(two_cliques), plan, 80), counted, rtol=0.02)


@pytest.mark.parametrize("walks_per_node", [1, 3, COUNTED_ROUNDS, 80])
@pytest.mark.parametrize("directed", [False, True])
def test_second_order_visits_are_those_of_the_first_rounds(walks_per_node, directed):
    graph, rounds = _small_graph(directed, True), min(walks_per_node, COUNTED_ROUNDS)
    plan = _plan(9, 10, 0.5, 2)
    found = _sample(graph, plan, 0, rounds * 8)
    counted = np.bincount(found[found >= 0], minlength=8) / rounds
    np.testing.assert_allclose(expected_visits(walk_graph(graph), plan, walks_per_node), counted)


def test_visits_tick_between_parts(ring):
    for p, parts in ((1.0, 9), (0.5, COUNTED_ROUNDS)):
        ticks = []
        expected_visits(walk_graph(ring), _plan(1, 10, p), 80, lambda ticks=ticks: ticks.append(0))
        assert len(ticks) == parts


# ---------------------------------------------------------------------------------------- alias tables


def _implied(table: AliasTable):
    """The distribution that drawing from the table has, slot by slot."""
    kept = (table.keep.astype(float) + 1) / 2**32
    n = table.keep.size
    return (kept + np.bincount(table.other, 1 - kept, minlength=n)) / n


def _assert_alias_exact(weights):
    weights = np.asarray(weights, float)
    before = weights.copy()
    table = alias_table(weights)
    np.testing.assert_array_equal(weights, before)
    np.testing.assert_allclose(_implied(table), weights / weights.sum(), rtol=1e-6, atol=1e-9)


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1e3)), min_size=1, max_size=60).filter(any))
@settings(deadline=None, max_examples=200)
def test_alias_table_is_exact(weights):
    _assert_alias_exact(weights)


@pytest.mark.parametrize(
    "weights",
    [
        [3.0],
        [1.0, 0.0],
        [0.0, 1.0],
        [1.0] * 7,
        [0.0] * 50 + [1.0],
        [1.0] + [0.0] * 50,
        10.0 ** np.linspace(-30, 30, 61),
        10.0 ** np.linspace(30, -30, 61),
        2.0 ** -np.arange(40),
        np.arange(10_000) ** 0.75,
        np.random.default_rng(0).pareto(0.8, 100_000),
    ],
)
def test_alias_table_is_exact_for_uneven_weights(weights):
    _assert_alias_exact(weights)


def test_alias_draws_have_the_frequencies():
    weights = np.array([5.0, 0.0, 1.0, 0.2, 3.0, 3.0, 0.01])
    table = alias_table(weights)
    bits = np.random.default_rng(4).integers(0, 2**64, 40_000, np.uint64)
    drawn = np.bincount([draw_alias(table, b) for b in bits], minlength=7)
    assert drawn[1] == 0
    some = weights > 0
    expected = weights[some] / weights.sum() * bits.size
    assert scipy.stats.chisquare(drawn[some], expected).pvalue > UNLIKELY
