"""Random graphs: what their parameters promise."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.stats import binom, chi2

from kernelne.datasets import load_dataset
from kernelne.datasets.generate import _chosen, _pair_at
from kernelne.errors import ParameterError


def _entries(graph):
    return np.repeat(np.arange(graph.n_nodes), graph.degrees), graph.neighbours


def _is_simple(graph):
    rows, columns = _entries(graph)
    return not graph.directed and graph.weights is None and not (rows == columns).any()


def _likely(found, n, p):
    """Whether a count is where all but one in a million of its kind are."""
    return binom.ppf(5e-7, n, p) <= found <= binom.ppf(1 - 5e-7, n, p)


def test_pairs_are_numbered():
    low, high = _pair_at(np.arange(10))
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == [
        (i, j) for j in range(1, 5) for i in range(j)
    ]
    # Far out, where float64 is not exact: the corners of the last columns of the largest graph.
    column = np.arange(499_999_000, 500_000_000)
    first = column * (column - 1) // 2
    for index, wanted in ((first, 0 * column), (first + column - 1, column - 1)):
        low, high = _pair_at(index)
        assert (high == column).all()
        assert (low == wanted).all()


def test_each_thing_is_chosen_alike():
    rng = np.random.default_rng(0)
    counts = np.bincount(np.concatenate([_chosen(40, 0.3, rng) for _ in range(5000)]), minlength=40)
    assert len(counts) == 40
    statistic = ((counts - 1500) ** 2 / (5000 * 0.3 * 0.7)).sum()
    assert statistic < chi2.ppf(1 - 1e-6, 40)
    sizes = np.array([len(_chosen(40, 0.3, rng)) for _ in range(5000)])
    assert abs(sizes.var() / (40 * 0.3 * 0.7) - 1) < 0.1  # on its own: the variance is binomial
    assert _chosen(7, 1.0, rng).tolist() == list(range(7))
    largest = 500_000_000 * 499_999_999 // 2
    for p in (1e-300, 1e-18):
        assert all(len(_chosen(largest, p, rng)) < 10 for _ in range(100))


@pytest.mark.parametrize(("n", "p"), [(2000, 0.01), (300, 0.5), (3, 0.9), (100_000, 1e-4)])
def test_erdos_renyi(n, p):
    graph = load_dataset(f"erdos_renyi:n={n},p={p},seed=3").graph
    assert graph.nodes.tolist() == list(range(n))
    assert _is_simple(graph)
    assert _likely(graph.n_edges, n * (n - 1) // 2, p)


def test_erdos_renyi_at_its_ends():
    assert load_dataset("erdos_renyi:n=1").graph.n_nodes == 1
    assert load_dataset("erdos_renyi:n=50,p=0").graph.n_edges == 0
    assert load_dataset("erdos_renyi:n=50,p=1").graph.n_edges == 50 * 49 // 2
    assert load_dataset("erdos_renyi").graph.n_nodes == 1000


def test_erdos_renyi_takes_time_by_edges_not_by_pairs():
    load_dataset("erdos_renyi:n=10")
    start = time.perf_counter()
    load_dataset("erdos_renyi:n=1e5,p=1e-4")
    assert time.perf_counter() - start < 5  # 0.1 s; 5e9 pairs would take minutes


@pytest.mark.parametrize(("n", "k"), [(1000, 4), (1003, 10), (50, 50), (30, 1)])
def test_planted(n, k):
    dataset = load_dataset(f"planted:n={n},k={k},p_in=0.3,p_out=0.02,seed=1")
    group = dataset.labels.single
    sizes = np.bincount(group)
    assert len(dataset.labels.classes) == len(sizes) == k
    assert sizes.max() - sizes.min() <= 1
    assert _is_simple(dataset.graph)
    rows, columns = _entries(dataset.graph)
    inside = int((group[rows] == group[columns]).sum()) // 2
    pairs_inside = int((sizes * (sizes - 1) // 2).sum())
    assert _likely(inside, pairs_inside, 0.3)
    assert _likely(dataset.graph.n_edges - inside, n * (n - 1) // 2 - pairs_inside, 0.02)
    assert all(group[: sizes[0]] == 0)


def test_planted_at_its_ends():
    graph = load_dataset("planted:n=12,k=3,p_in=1,p_out=0").graph
    assert graph.to_scipy().toarray().tolist() == (
        np.kron(np.eye(3), np.ones((4, 4))) - np.eye(12)
    ).tolist()  # fmt: skip
    graph = load_dataset("planted:n=12,k=3,p_in=0,p_out=1").graph
    assert graph.to_scipy().toarray().tolist() == (1 - np.kron(np.eye(3), np.ones((4, 4)))).tolist()


@pytest.mark.parametrize(
    ("n", "mu", "rest"),
    [
        (1000, 0.1, ""),
        (3000, 0.6, ""),
        (1000, 0.0, ""),
        (1000, 1.0, ""),
        (1000, 0.3, ",degree=20,tau1=2,tau2=1,min_size=10,max_size=50"),
    ],
)
def test_lfr(n, mu, rest):
    dataset = load_dataset(f"lfr:n={n},mu={mu},seed=2{rest}")
    graph, community = dataset.graph, dataset.labels.single
    assert _is_simple(graph)
    assert graph.n_nodes == n
    degree, smallest, largest = (20, 10, 50) if rest else (15, 20, 100)
    rows, columns = _entries(graph)
    outside = community[rows] != community[columns]
    assert outside.mean() == pytest.approx(mu, abs=0.015)
    if mu in (0, 1):
        assert outside.mean() == mu
    assert graph.degrees.mean() == pytest.approx(degree, rel=0.05)
    assert graph.degrees.max() <= 50
    assert graph.degrees.max() > 40
    sizes = np.bincount(community)
    assert smallest <= sizes.min()
    assert sizes.max() <= largest + 1
    # The share holds for each node, not only over all.
    shares = np.bincount(rows, outside, minlength=n) / np.maximum(graph.degrees, 1)
    assert np.abs(shares - mu).mean() < 0.06


def test_lfr_follows_its_power_laws():
    dataset = load_dataset("lfr:n=30000,tau1=2.5,tau2=1.5,max_size=1000,min_size=50,max_degree=300,degree=20")
    degrees, sizes = dataset.graph.degrees, np.bincount(dataset.labels.single)
    for values, tau in ((degrees[degrees >= 20], 2.5), (sizes, 1.5)):
        low, high = values.min(), values.max()
        # Of a power law between a and b, the logarithm of the density falls by tau a unit.
        edges = np.geomspace(low, high + 1, 6)
        counts = np.histogram(values, edges)[0] / np.diff(edges)
        slope = np.polyfit(np.log(edges[:-1] * edges[1:]) / 2, np.log(counts), 1)[0]
        assert slope == pytest.approx(-tau, abs=0.25)


def test_lfr_with_communities_too_small_for_its_degrees():
    dataset = load_dataset("lfr:n=200,mu=0,degree=18,max_degree=30,min_size=5,max_size=10")
    sizes = np.bincount(dataset.labels.single)
    assert (dataset.graph.degrees < sizes[dataset.labels.single]).all()  # mu=0: the rest has no place


@pytest.mark.parametrize("name", ["erdos_renyi:n=300", "planted:n=300", "lfr:n=300"])
def test_seeds(name):
    prints = {seed: load_dataset(f"{name},seed={seed}").graph.fingerprint for seed in (0, 1, 2**40)}
    assert len(set(prints.values())) == 3
    assert load_dataset(name).graph.fingerprint == prints[0]
    assert load_dataset(f"{name},seed={2**40}").graph.fingerprint == prints[2**40]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("erdos_renyi:n=0", "n=0: must be a whole number from 1 to 500000000"),
        ("erdos_renyi:n=3e9", "n=3000000000: must be"),
        ("erdos_renyi:n=1.5", "n='1.5': must be a whole number"),
        ("erdos_renyi:n=many", "n='many': must be a whole number"),
        ("erdos_renyi:n=nan", "n='nan': must be a whole number"),
        ("erdos_renyi:n=inf", "n='inf': must be a whole number"),
        ("erdos_renyi:n=", "n='': must be a whole number"),
        ("erdos_renyi:n", "n='': must be a whole number"),
        ("erdos_renyi:p=1.1", "p=1.1: must be a number from 0 to 1"),
        ("erdos_renyi:p=nan", "p=nan: must be a number from 0 to 1"),
        ("erdos_renyi:p=x", "p='x': must be a number"),
        ("erdos_renyi:seed=-1", "seed=-1: must be a whole number, at least 0"),
        ("erdos_renyi:m=3", "m='3': erdos_renyi has no such parameter; it takes n, p, seed"),
        ("erdos_renyi:n=3,n=4", "n='4': is given twice"),
        ("planted:n=3,k=4", "k=4: must be a whole number from 1 to n=3"),
        ("planted:p_in=-1", "p_in=-1"),
        ("planted:p_out=2", "p_out=2"),
        ("lfr:mu=2", "mu=2"),
        ("lfr:n=50", "max_degree=50: must be a whole number from 1 to n - 1 = 49"),
        ("lfr:tau1=0.5", "tau1=0.5: must be a number from 1 to 10"),
        ("lfr:tau2=nan", "tau2=nan"),
        ("lfr:min_size=1", "min_size=1: must be a whole number from 2 to n/2 = 500"),
        ("lfr:n=60,min_size=31", "min_size=31: must be a whole number from 2 to n/2 = 30"),
        ("lfr:max_size=10", "max_size=10: must be a whole number from min_size"),
        ("lfr:degree=1", "degree=1.0: must be from 2.59 "),
        ("lfr:degree=51", "degree=51.0: must be .* to max_degree=50"),
    ],
)
def test_bad_parameters(name, message):
    with pytest.raises(ParameterError, match=message):
        load_dataset(name)
