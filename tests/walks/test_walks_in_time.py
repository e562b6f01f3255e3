"""Walks in the order of time: never back in time, all later arcs by their weights, no pairs but theirs."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelne import Graph, KernelNE, ParameterError
from kernelne.graph.ops import remove_edges
from kernelne.walks.sample import WalkPlan, expected_visits, sample_walks, walk_graph

UNLIKELY = 1e-4


def _graph(seed, n=6, m=40, directed=True, weighted=True):
    rng = np.random.default_rng(seed)
    table = {"u": rng.integers(0, n, m), "v": rng.integers(0, n, m), "t": rng.integers(0, 9, m)}
    if weighted:
        table["weight"] = rng.choice([0.1, 1.0, 3.0], m)
    weight = "weight" if weighted else False
    graph = Graph.from_table(
        table, source="u", target="v", weight=weight, time="t", nodes=np.arange(n), directed=directed
    )
    arcs = [
        (u, v, t, w)
        for u, v, t, w in zip(
            table["u"], table["v"], table["t"], table.get("weight", np.ones(m)), strict=True
        )
    ]
    if not directed:
        arcs += [(v, u, t, w) for u, v, t, w in arcs if u != v]
    return graph, arcs


def _walks(graph, length, count, seed=1):
    walks, lengths = np.full((count, length), -1), np.zeros(count, np.int64)
    sample_walks(walk_graph(graph), WalkPlan(np.uint64(seed), length, 1.0, 1.0), 0, walks, lengths)
    return [walk[:size].tolist() for walk, size in zip(walks, lengths, strict=True)]


@given(seed=st.integers(0, 1000), directed=st.booleans(), weighted=st.booleans())
@settings(deadline=None, max_examples=40)
def test_a_walk_never_goes_back_in_time(seed, directed, weighted):
    graph, arcs = _graph(seed, directed=directed, weighted=weighted)
    times = defaultdict(list)
    for u, v, t, _ in arcs:
        times[u, v].append(t)
    for walk in _walks(graph, 8, 60):
        now = -np.inf
        for u, v in pairwise(walk):
            later = [t for t in times[u, v] if t >= now]
            assert later, (walk, u, v, now)
            now = min(later)  # the earliest possible: if this fails, so do all others
        if len(walk) < 8:
            latest = {u: max(t for a, _, t, _ in arcs if a == u) for u in {a for a, *_ in arcs}}
            possible = times[walk[-2], walk[-1]] if len(walk) > 1 else [np.inf]
            assert latest.get(walk[-1], -np.inf) < max(possible)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_steps_have_their_exact_probabilities(directed, weighted):
    """Walks of three nodes against all ways to walk them."""
    graph, arcs = _graph(3, n=5, m=16, directed=directed, weighted=weighted)
    exact = defaultdict(Counter)
    for start in range(5):
        first = [each for each in arcs if each[0] == start]
        for _, v, t, w in first:
            share = w / sum(each[3] for each in first)
            second = [each for each in arcs if each[0] == v and each[2] >= t]
            if not second:
                exact[start][v, -1] += share
            for _, x, _, w2 in second:
                exact[start][v, x] += share * w2 / sum(each[3] for each in second)
    seen = defaultdict(Counter)
    for walk in _walks(graph, 3, 60_000):
        if len(walk) > 1:
            seen[walk[0]][walk[1], walk[2] if len(walk) > 2 else -1] += 1
    statistic, freedom = 0.0, 0
    for start, shares in exact.items():
        assert set(seen[start]) <= set(shares)
        total = sum(seen[start].values())
        usual = [way for way, share in shares.items() if share * total >= 5]
        statistic += sum((seen[start][w] - shares[w] * total) ** 2 / (shares[w] * total) for w in usual)
        freedom += len(usual) - 1
    assert freedom > 5
    assert scipy.stats.chi2.sf(statistic, freedom) > UNLIKELY


def test_visits_are_those_of_the_walks():
    graph, _ = _graph(5)
    plan = WalkPlan(np.uint64(2), 5, 1.0, 1.0)
    visits = expected_visits(walk_graph(graph), plan, 10)
    counted = Counter(node for walk in _walks(graph, 5, 60, seed=2) for node in walk)
    np.testing.assert_allclose(visits, [counted[node] / 10 for node in range(6)])


def test_hidden_edges_are_hidden_in_time_too():
    graph, arcs = _graph(7, directed=False)
    hidden = np.array([[0, 1], [2, 4]])
    rest = remove_edges(graph, hidden)
    kept = [each for each in arcs if (min(each[:2]), max(each[:2])) not in {(0, 1), (2, 4)}]
    sources = np.repeat(np.arange(6), np.diff(rest.timed.offsets))
    found = sorted(zip(sources, rest.timed.neighbours, rest.timed.times, strict=True))
    assert found == sorted(each[:3] for each in kept)
    for row in range(6):
        weight = sum(each[3] for each in kept if each[0] == row)
        if weight:
            assert rest.timed.totals[rest.timed.offsets[row + 1] - 1] == pytest.approx(weight)


def test_training_respects_time():
    graph, _ = _graph(11, n=30, m=200, weighted=False)
    model = KernelNE(dim=8, random_state=0, n_threads=1).fit(graph)
    again = KernelNE(dim=8, random_state=0, n_threads=2, deterministic=True).fit(graph)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(again.embedding_).all()
    plain = Graph(graph.offsets, graph.neighbours, graph.weights, graph.directed, graph.nodes)
    other = KernelNE(dim=8, random_state=0, n_threads=1).fit(plain)
    assert not np.array_equal(model.embedding_, other.embedding_)
    assert model.history_["pairs"].sum() < other.history_["pairs"].sum()  # walks end where time does
    with pytest.raises(ParameterError, match="order of time need p = q = 1"):
        KernelNE(dim=8, q=2.0).fit(graph)
