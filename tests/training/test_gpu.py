"""The GPU's kernels, interpreted on the CPU by Triton: walks, noise, steps and whole runs, without a card."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from gpu_steps import (
    CPU_SCORES,
    PLANTED,
    assert_coefficients_step_as_on_the_cpu,
    assert_kernel_is_the_registrys,
    assert_trains_as_the_oracle,
    bare_graph,
    own_kernel,
    planted,
    runner,
    score,
    train,
    walks_of,
)
from oracle import config

from kernelne import KernelNE
from kernelne.errors import DivergenceError, InputError
from kernelne.graph import Graph
from kernelne.model.kernels import KERNELS
from kernelne.model.objective import walk_pairs
from kernelne.training import backend, schedule
from kernelne.training.cpu import backend as cpu
from kernelne.training.gpu import backend as gpu
from kernelne.training.gpu import launch
from kernelne.walks import sample as walk_sample

try:
    import torch
    import triton  # noqa: F401
except (ImportError, OSError, ValueError) as error:  # the last two: a build for CUDA without its libraries
    pytest.skip(f"torch and triton are needed: {error}", allow_module_level=True)
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("the kernels are compiled here: leave out -m gpu", allow_module_level=True)


HOST = torch.device("cpu")
MIXTURE = tuple((name, sigma) for name, sigma in zip(KERNELS, (1.0, 2.0, 0.5), strict=True))


def _trainer(graph, **changes):
    return runner(graph, config(**changes), HOST)


# ---------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("name", list(KERNELS))
def test_kernels_are_those_of_the_registry(name, sigma):
    assert_kernel_is_the_registrys(name, sigma, HOST)


def test_a_kernel_of_ones_own(random_graph):
    graph = random_graph(1, 30, directed=False, weighted=False, density=0.1)
    with own_kernel() as name:
        assert_kernel_is_the_registrys(name, 1.5, HOST)
        changes = {"kernels": ((name, 1.5), ("gaussian", 1.0)), "learn_coefficients": True}
        assert_trains_as_the_oracle(_trainer(graph, **changes), EXACT)


# ------------------------------------------------------------------------------------------------ walks


def _walker(graph, **changes):
    """A trainer that samples by these settings, its noise that of first-order walks: quicker to make."""
    trainer = _trainer(graph, **(changes | {"p": 1.0, "q": 1.0}))
    trainer.config = config(**changes)
    return trainer


def _on_cpu(graph, settings, first, count):
    """The CPU's walks; beyond the end of one, what was there before: zeros."""
    plan = walk_sample.WalkPlan(
        np.uint64(settings.seed), settings.walk_length, 1 / settings.p, 1 / settings.q
    )
    nodes, lengths = np.zeros((count, settings.walk_length), np.int64), np.zeros(count, np.int64)
    walk_sample.sample_walks(walk_sample.walk_graph(graph), plan, first, nodes, lengths)
    return nodes, lengths


def _on_gpu(trainer, first, count):
    """The GPU's walks, zeros beyond their ends."""
    trainer.sample(first, count, trainer.noise)
    rows, lengths = walks_of(trainer, count)
    nodes = rows[:, : trainer.config.walk_length]
    return np.where(np.arange(nodes.shape[1]) < lengths[:, None], nodes, 0), lengths


GRAPHS = {
    "undirected": ({"directed": False, "density": 0.15}, "walks do not end"),
    "isolated": ({"directed": False, "density": 0.03}, "some walks are one node long"),
    "directed": ({"directed": True, "density": 0.05}, "some walks end early"),
}


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 2.0), (4.0, 0.5)])
@pytest.mark.parametrize("kind", list(GRAPHS))
def test_walks_are_the_cpus(random_graph, kind, p, q):
    graph = random_graph(3, 41, weighted=False, **GRAPHS[kind][0])
    trainer = _walker(graph, p=p, q=q, walk_length=6, seed=11)
    expected, lengths = _on_cpu(graph, trainer.config, 7, 120)
    assert {"undirected": 6, "isolated": 1}.get(kind, 6) in lengths
    assert (lengths.min() < 6) == (kind != "undirected")
    assert kind != "directed" or set(range(2, 6)) & set(lengths)
    found, found_lengths = _on_gpu(trainer, 7, 120)
    np.testing.assert_array_equal(found_lengths, lengths)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [1, 2, 16, 17])
@pytest.mark.parametrize("seed", [0, 2**64 - 3])
@pytest.mark.parametrize("first", [0, 2**33 + 5])
def test_large_numbers_and_small_graphs_walk_alike(n, seed, first):
    graph = Graph.from_scipy(np.ones((n, n)))
    trainer = _trainer(graph, walk_length=3, walks_per_node=40, seed=seed)
    found, _ = _on_gpu(trainer, first, 2 * n)
    np.testing.assert_array_equal(found, _on_cpu(graph, trainer.config, first, 2 * n)[0])
    for row in range(2):  # every round visits every node
        start = (-first) % n + row * n
        nodes = _on_gpu(trainer, first + start, n)[0][:, 0]
        assert sorted(nodes.tolist()) == list(range(n))


def test_a_block_of_walks_is_cut_anywhere(random_graph):
    trainer = _trainer(random_graph(3, 41, directed=True, weighted=False), walk_length=4)
    whole = _on_gpu(trainer, 0, 200)[0].copy()
    np.testing.assert_array_equal(_on_gpu(trainer, 130, 70)[0], whole[130:])


def _node2vec(matrix, p, q, previous, v):
    """Where a walk steps from v after `previous` (or None): the definition, (n,)."""
    bias = np.ones(len(matrix))
    if previous is not None:
        bias = np.where(matrix[previous] > 0, 1.0, 1 / q)
        bias[previous] = 1 / p
    return matrix[v] * bias / (matrix[v] * bias).sum()


def _fit(nodes, matrix, p, q):
    """p-value of chi-square: do steps after the first two nodes follow these weights, p and q?"""
    n, first_order = len(matrix), p == q == 1.0
    before = np.zeros_like(nodes[:, 1:-1]) if first_order else nodes[:, :-2]
    counts = np.zeros((n, n, n))
    np.add.at(counts, (before, nodes[:, 1:-1], nodes[:, 2:]), 1)
    statistic, freedom = 0.0, 0
    for previous, v in np.argwhere(counts.sum(axis=2) > 0):
        expected = counts[previous, v].sum() * _node2vec(matrix, p, q, None if first_order else previous, v)
        often = expected >= 5
        if often.sum() > 1:
            statistic += ((counts[previous, v] - expected)[often] ** 2 / expected[often]).sum()
            freedom += often.sum() - 1
    assert freedom > 20
    return scipy.stats.chi2.sf(statistic, freedom)


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 2.0), (4.0, 0.5)])
def test_weighted_walks_follow_weights(random_graph, monkeypatch, p, q):
    monkeypatch.setattr(gpu, "_SAMPLED_TOGETHER", 4096)
    graph = random_graph(5, 9, directed=False, weighted=True, density=0.5)
    trainer = _walker(graph, p=p, q=q, walk_length=6, walks_per_node=800)
    nodes, lengths = _on_gpu(trainer, 0, 4096)
    assert (lengths == 6).all()
    matrix = graph.to_scipy().toarray().astype(float)
    assert (matrix[nodes[:, :-1], nodes[:, 1:]] > 0).all()
    assert (nodes == _on_cpu(graph, trainer.config, 0, 4096)[0]).all(axis=1).mean() > 0.999
    assert _fit(nodes, matrix, p, q) > 1e-3
    assert _fit(nodes, (matrix > 0).astype(float), p, q) < 1e-9
    assert p == 1 or _fit(nodes, matrix, q, p) < 1e-9


def test_rare_steps_are_drawn_rightly(monkeypatch):
    """From the hub of a windmill back to the sail one came from: of all darts one in a hundred counts."""
    monkeypatch.setattr(gpu, "_SAMPLED_TOGETHER", 512)
    rim = np.arange(1, 151)
    graph = Graph.from_edges(np.r_[rim * 0, rim[::2]], np.r_[rim, rim[1::2]])
    nodes, _ = _on_gpu(_walker(graph, p=300.0, q=300.0, walk_length=3, walks_per_node=2), 0, 302)
    first, hub, last = nodes[nodes[:, 1] == 0].T
    share = 1 / (1 + 149 / 300)  # the other node of the sail, of all that the hub leads to
    assert len(hub) > 100
    assert abs(((first - 1) // 2 == (last - 1) // 2)[first != last].mean() - share) < 0.1


def test_light_rows_keep_their_weights_beside_heavy_ones():
    weights = [1e30, 3e30, 1e30, 1e-20, 2e-20, 5e-20]
    graph = Graph.from_edges([0, 0, 1, 3, 3, 3], [1, 2, 2, 4, 5, 6], weights=weights)
    found = gpu.to_device(graph, HOST).thresholds.numpy().view(np.uint32)
    expected = walk_sample.walk_graph(graph).thresholds
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=0, atol=2.0)


def test_shares_that_rounding_makes_negative_are_none(monkeypatch):
    """A GPU adds up in parallel: a cumulative sum may come out lower than the one before it."""
    cumsum = torch.cumsum
    monkeypatch.setattr(torch, "cumsum", lambda values, dim: cumsum(values, dim) - 1e-9 * (values < 1e-9))
    graph = Graph.from_edges([0, 0, 0], [1, 2, 3], weights=[1e-12, 1.0, 1.0], directed=True)
    found = gpu.to_device(graph, HOST).thresholds.numpy().view(np.uint32)
    assert found[0] == 0  # not the bits of a negative number, with which node 1 would be every step
    assert found[1] == pytest.approx(2**31, rel=1e-6)


# ------------------------------------------------------------------------------------------------ noise


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("directed", "density"), [(False, 0.03), (True, 0.1)])
@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.5, 2.0)])
def test_visits_are_the_cpus(random_graph, directed, density, weighted, p, q):
    graph = random_graph(8, 40, directed=directed, weighted=weighted, density=density)
    trainer = _trainer(graph, p=p, q=q, walk_length=7, walks_per_node=3, seed=2)
    plan = walk_sample.WalkPlan(np.uint64(2), 7, 1 / p, 1 / q)
    expected = walk_sample.expected_visits(walk_sample.walk_graph(graph), plan, 3)
    assert expected.min() < 0.5 * expected.max()
    # A weighted walk that steps on another edge, once in a while, counts elsewhere.
    exact = p == 1 or not weighted
    rtol = 1e-5 if exact else 0.05
    np.testing.assert_allclose(trainer.visits().numpy(), expected, rtol=rtol)
    noise = expected**schedule.NOISE_POWER
    np.testing.assert_allclose(_alias_shares(trainer.noise), noise / noise.sum(), rtol=rtol)


def _alias_shares(table):
    """The distribution that an alias table draws from."""
    kept = (table.keep.numpy().view(np.uint32) + 1.0) / 2**32
    return (kept + np.bincount(table.other.numpy(), 1 - kept, kept.size)) / kept.size


ALIAS = {
    "random": np.random.default_rng(0).random(1000) ** 4,
    "zeros": np.array([0.0, 3.0, 0.0, 1.0, 0.0]),
    "one": np.array([7.0]),
    "equal": np.full(13, 0.3),
    "huge": np.r_[np.ones(500), 1e12, np.ones(3)],
    "ties": np.tile([0.5, 1.5], 10),
    "integers": np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 30),
    "few kinds": np.repeat(np.array([3.0, 1.0, 7.0]) ** 0.75, [40, 300, 11]),
    "ascending": np.arange(1.0, 200.0),
}


@pytest.mark.parametrize("kind", list(ALIAS))
def test_alias_table_is_exact(kind):
    weights = ALIAS[kind]
    found = _alias_shares(gpu.alias_table(torch.from_numpy(weights)))
    np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-7, atol=2.0**-31 / weights.size)


@pytest.mark.parametrize("kind", list(ALIAS))
def test_alias_table_bears_sums_that_do_not_ascend(kind, monkeypatch):
    """A card adds up in parallel: where next to nothing is added, a sum may come out an ulp lower."""
    rng, cumsum = np.random.default_rng(0), torch.cumsum

    def in_parallel(values, dim):
        return cumsum(values, dim) * torch.from_numpy(1 + 2.0**-52 * rng.integers(-2, 3, len(values)))

    monkeypatch.setattr(torch, "cumsum", in_parallel)
    found = _alias_shares(gpu.alias_table(torch.from_numpy(ALIAS[kind])))
    exact = ALIAS[kind] / ALIAS[kind].sum()
    np.testing.assert_allclose(found, exact, rtol=1e-7, atol=1e-9 / exact.size)


def test_negatives_are_drawn_from_the_table(two_cliques, monkeypatch):
    monkeypatch.setattr(gpu, "_SAMPLED_TOGETHER", 2048)
    trainer = _trainer(two_cliques, shared_negatives=20, walk_length=2, walks_per_node=200)
    weights = np.arange(11.0) ** 2
    trainer.sample(0, 2048, gpu.alias_table(torch.from_numpy(weights)))
    drawn = np.bincount(walks_of(trainer, 2048)[0][:, 2:].ravel(), minlength=11)
    assert drawn[0] == 0
    assert scipy.stats.chisquare(drawn[1:], drawn.sum() * weights[1:] / weights.sum()).pvalue > 1e-3


# ------------------------------------------------------------------------------------------------ steps

#: float32 against float64; and where tiles or walks follow each other at a rate that hardly moves the tables.
EXACT, IN_TURN = 2e-5, 3e-3
SLOW = {"learning_rate": 1e-5, "min_learning_rate": 1e-6, "l2": 0.3}


@pytest.mark.parametrize("dim", [5, 16, 20, 70, 130])
@pytest.mark.parametrize("kernel", MIXTURE)
def test_a_walk_is_one_step_of_the_oracle(random_graph, kernel, dim):
    graph = random_graph(1, 30, directed=False, weighted=False, density=0.1)
    assert_trains_as_the_oracle(_trainer(graph, kernels=(kernel,), dim=dim, shared_negatives=14), EXACT)


@pytest.mark.parametrize(
    "changes",
    [
        {"kernels": MIXTURE, "learn_coefficients": True},
        {"kernels": MIXTURE[:2], "learn_coefficients": True, "dim": 70, "window": 2},
        {"kernels": MIXTURE[2:] + MIXTURE[2:], "learn_coefficients": True, "p": 0.5},
        {"kernels": MIXTURE[1:2], "learn_coefficients": True, "n_negative": 1},
        {"window": 3, "l2": 0.3},
        {"window": 4, "window_decay": 0.5, "l2": 0.3, "kernels": MIXTURE, "learn_coefficients": True},
        {"window": 4, "forward": True, "l2": 0.3},
        {"window": 4, "forward": True, "window_decay": 0.5, "l2": 0.3},
        {"window": 2**31 - 1, "l2": 0.3},
        {"window": 1, "shared_negatives": 1},
        {"walk_length": 2, "l2": 0.0},
        {"walk_length": 16, "shared_negatives": 16, "n_negative": 40},
        {"walk_length": 1},
    ],
)
def test_mixtures_and_windows(random_graph, changes):
    graph = random_graph(1, 30, directed=False, weighted=True, density=0.1)
    assert_trains_as_the_oracle(_trainer(graph, **changes), EXACT)


@pytest.mark.parametrize("shared_negatives", [1, 14, 40])
@pytest.mark.parametrize(("walk_length", "window"), [(10, 10), (17, 4), (40, 12), (40, 60)])
@pytest.mark.parametrize("window_decay", [1.0, 0.9])
def test_a_walk_of_several_tiles(random_graph, walk_length, window, window_decay, shared_negatives):
    graph = random_graph(1, 90, directed=False, weighted=False, density=0.05)
    shape = {"walk_length": walk_length, "window": window, "shared_negatives": shared_negatives}
    shape["window_decay"] = window_decay
    shape["n_negative"] = 1 if shared_negatives == 1 else 5  # all on one negative: too steep
    trainer = _trainer(graph, **shape, kernels=MIXTURE, learn_coefficients=True, dim=20, **SLOW)
    assert_trains_as_the_oracle(trainer, IN_TURN)


def test_walks_that_end_early(random_graph):
    """Nothing beyond the end of a walk is trained on; walks of one node train nothing."""
    graph = random_graph(3, 60, directed=True, weighted=False, density=0.02)
    trainer = _trainer(graph, walk_length=20, window=7, **SLOW)
    trainer.rows.fill_(59)
    assert_trains_as_the_oracle(trainer, IN_TURN, first=0, count=16)
    lengths = walks_of(trainer, 16)[1]
    assert {1, 2, 20} <= set(lengths.tolist())


@pytest.mark.parametrize(
    ("n", "walks"), [(1, 1), (49, 1), (75, 3), (625, 25), (3312, 57), (10_000, 100), (10**6, 1000)]
)
def test_walks_in_flight_are_few_in_small_graphs(n, walks):
    assert launch.walks_in_flight(n) == walks


def test_programs_share_the_walks_out(random_graph):
    graph = random_graph(2, 80, directed=False, weighted=False, density=0.05)
    trainer = _trainer(graph, kernels=MIXTURE[:2], learn_coefficients=True, **SLOW)
    assert trainer.programs == 3
    assert_trains_as_the_oracle(trainer, IN_TURN, first=100, count=11)


@pytest.mark.parametrize(("count", "every"), [(11, 2), (11, 3), (7, 1)])
def test_large_blocks_sum_up_some_walks_for_all(random_graph, monkeypatch, count, every):
    monkeypatch.setattr(gpu, "_SUMMED_WALKS", count // every)
    monkeypatch.setattr(gpu, "_LARGEST_STRIDE", 3)
    graph = random_graph(2, 80, directed=False, weighted=False, density=0.05)
    trainer = _trainer(graph, kernels=MIXTURE, learn_coefficients=True, **SLOW)
    assert_trains_as_the_oracle(trainer, IN_TURN, first=100, count=count, every=every)


# ----------------------------------------------------------------------------------------- coefficients


@pytest.mark.parametrize("kernel", [("gaussian", 0.001), ("gaussian", 1000.0), ("schoenberg", 1000.0)])
@pytest.mark.parametrize("changes", [{}, {"shared_negatives": 1}, {"window": 1, "walk_length": 40}])
def test_gradients_fit_into_half_precision(kernel, changes):
    """All rows alike and a value off by 2: as steep as it gets."""
    settings = config(kernels=(kernel,), **changes)
    walk, noise = np.arange(settings.walk_length), -1 - np.arange(settings.shared_negatives)
    pairs = walk_pairs(walk, noise, window=settings.window, n_negative=settings.n_negative)
    slope = abs(KERNELS[kernel[0]](np.float64(0.0), kernel[1])[1])
    ends = np.concatenate([pairs.centers, pairs.contexts + 1000])
    most = np.bincount(ends + 1000, np.tile(4 * 2 * slope * pairs.weights, 2)).max()
    unit = launch.unit(settings)
    assert math.frexp(unit)[0] == 0.5
    assert 0.1 <= most / unit <= launch.LARGEST_GRADIENT  # far from 65,504 and from 2⁻¹⁴


@pytest.mark.parametrize("n_kernels", [1, 2, 3, 5])
@pytest.mark.parametrize("floor", [-np.inf, 5.0])
def test_coefficients_step_as_on_the_cpu(n_kernels, floor):
    assert_coefficients_step_as_on_the_cpu(n_kernels, floor, HOST)


def test_a_block_without_pairs_leaves_the_coefficients():
    assert_coefficients_step_as_on_the_cpu(3, 5.0, HOST, n_pairs=0)


# ------------------------------------------------------------------------------------------------- runs


@pytest.fixture
def few_blocks(monkeypatch):
    """Sampling walks one by one is slow here."""
    monkeypatch.setattr(schedule, "_BLOCKS", 6)


def test_a_run_is_the_cpus(random_graph, few_blocks):
    """With the same negatives and one program a run leaves what a thread leaves, from the same start."""
    graph = random_graph(6, 24, directed=False, weighted=False, density=0.15)
    shape = {"dim": 7, "walks_per_node": 3, "walk_length": 6, "window": 3, "shared_negatives": 5}
    settings = config(kernels=MIXTURE[1:], learn_coefficients=True, learning_rate=0.1, q=2.0, **shape)
    ours, theirs = cpu.prepare(graph, settings), gpu.prepare(graph, settings, HOST)
    noise = gpu.Noise(*(torch.from_numpy(part.view(np.int32)) for part in ours.noise))
    theirs = dataclasses.replace(theirs, noise=noise)
    here, there = cpu.start(ours), gpu.start(theirs)
    np.testing.assert_array_equal(there.center.numpy(), here.center)
    np.testing.assert_array_equal(there.coefficients, here.coefficients)
    start = here.center.copy()
    expected, found = cpu.run(ours, here), gpu.fetch(gpu.run(theirs, there))
    moved = np.abs(expected.center - start).max()
    assert moved > 0.1
    for name in ("center", "context"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=0, atol=1e-4 * moved)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, rtol=1e-4)
    assert found.history.keys() == expected.history.keys()
    for name, values in expected.history.items():
        np.testing.assert_allclose(found.history[name], values, rtol=1e-4, err_msg=name)
        assert found.history[name].dtype == values.dtype
    assert found.loss == pytest.approx(expected.loss, rel=1e-4)
    assert found.center.dtype == found.context.dtype == np.float32


def test_a_run_learns_and_reports(two_cliques, few_blocks):
    heard = []
    settings = config(
        kernels=MIXTURE[:2], learn_coefficients=True, walks_per_node=10, walk_length=4, learning_rate=0.2
    )
    trained = train(two_cliques, settings, lambda *told: heard.append(told), device=HOST)
    done, totals, losses = zip(*heard, strict=True)
    assert set(totals) == {110}
    assert list(done) == trained.history["walks"].tolist()
    assert done[-1] == 110
    np.testing.assert_array_equal(losses, trained.history["loss"])
    assert trained.loss < 0.9 * losses[0]
    assert (np.abs(trained.coefficients) > 2 * 0.5 / settings.dim).any()
    assert trained.history["coefficients"].shape == (len(heard), 2)
    assert trained.center.shape == trained.context.shape == (11, 16)
    assert np.abs(trained.center[10]).max() <= 0.5 / 16  # node 10 is alone


@pytest.mark.parametrize("stop_at", [20])
def test_a_run_in_parts_is_one_run(two_cliques, few_blocks, monkeypatch, stop_at):
    """Ended between blocks, its tables brought to the host and back, as by a file."""
    monkeypatch.setattr(gpu, "_LOOKED_AT_TOGETHER", 1)
    settings = config(kernels=MIXTURE[:2], learn_coefficients=True, walks_per_node=4, walk_length=3)
    whole = train(two_cliques, settings, device=HOST)
    prepared = gpu.prepare(two_cliques, settings, HOST)
    state = gpu.fetch(gpu.run(prepared, gpu.start(prepared), None, lambda done, *_: done >= stop_at))
    assert stop_at <= state.next_walk < prepared.n_walks
    state = gpu.fetch(gpu.run(prepared, state))
    assert state.next_walk == prepared.n_walks
    for name in ("center", "context", "coefficients"):
        np.testing.assert_array_equal(getattr(state, name), getattr(whole, name))
    for name, values in whole.history.items():
        np.testing.assert_array_equal(state.history[name], values)


def test_seeds_fix_a_run(two_cliques, few_blocks):
    settings = {"walks_per_node": 1, "walk_length": 3, "shared_negatives": 2}
    runs = [train(two_cliques, config(seed=seed, **settings), device=HOST) for seed in (3, 3, 4)]
    np.testing.assert_array_equal(runs[0].center, runs[1].center)
    assert (runs[0].center != runs[2].center).all()


@pytest.mark.filterwarnings("ignore:(overflow|invalid value|divide by zero) encountered:RuntimeWarning")
def test_divergence_is_told_when_it_happens(two_cliques, few_blocks):
    settings = config(learning_rate=1e20, walks_per_node=8, walk_length=5, shared_negatives=3)
    with pytest.raises(DivergenceError, match=r"learning_rate=1e\+20") as caught:
        train(two_cliques, settings, device=HOST)
    assert " 88 of 88" not in str(caught.value)


def test_tables_that_explode_at_the_end_are_noticed(two_cliques, few_blocks, monkeypatch):
    monkeypatch.setattr(gpu, "norm_limit", lambda config: 1e-6)
    with pytest.raises(DivergenceError, match=r" 11 of 11"):
        train(two_cliques, config(walks_per_node=1, walk_length=3), device=HOST)


@pytest.mark.parametrize("weighted", [False, True])
def test_without_edges_nothing_is_trained(weighted):
    graph = bare_graph(np.zeros((5, 5)))
    graph.weights = np.zeros(0, np.float32) if weighted else None
    trained = train(graph, config(walks_per_node=2, shared_negatives=3), device=HOST)
    assert np.isnan(trained.loss)
    assert not trained.context.any()
    assert 0 < np.abs(trained.center).max() <= 0.5 / 16


def test_a_graph_on_the_device_may_be_given(two_cliques):
    settings = config(walks_per_node=1, walk_length=3, shared_negatives=2)
    there = gpu.to_device(two_cliques, HOST)
    expected = train(two_cliques, settings, device=HOST)
    np.testing.assert_array_equal(train(there, settings, device=HOST).center, expected.center)


def test_a_graph_too_large_for_the_card_is_refused(two_cliques, monkeypatch):
    needed = gpu.run_bytes(two_cliques, config())
    for name, value in (("is_available", True), ("current_device", 0)):
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (needed, 2 * needed))
    gpu.check(two_cliques, config(), 2, 16)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (needed - 1, 2 * needed))
    with pytest.raises(InputError, match=r"dim=16: 11 nodes and 42 arcs need 0\.1 GiB") as caught:
        gpu.check(two_cliques, config(), 2, 16)
    assert "\n" not in str(caught.value)


def test_estimators_train_on_the_gpu_when_asked(two_cliques, few_blocks, monkeypatch):
    monkeypatch.setattr(gpu, "find_device", lambda: HOST)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2**40, 2**40))
    settings = {"dim": 8, "walks_per_node": 1, "walk_length": 3, "shared_negatives": 2, "random_state": 3}
    with pytest.warns(UserWarning, match="1 of 11 nodes have no edges"):
        model = KernelNE(backend="gpu", progress=False, **settings).fit(two_cliques)
    embedding = model.to_embedding()
    assert embedding.provenance["backend"] == "gpu"
    np.testing.assert_array_equal(embedding.vectors, train(two_cliques, model.config()).center)


def test_the_gpu_needs_no_other_backends_packages():
    """Where a card is, Numba may be missing."""
    code = "import sys, kernelne.training.gpu.backend; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(result.stdout.split())
    assert not loaded & {"numba", "pyarrow", "sklearn", "safetensors", "typer", "rich"}
    parts = {
        "errors",
        "_common",
        "_common.checks",
        "_common.variants",
        "_version",
        "model",
        "model.kernels",
        "model.mixture",
        "training",
    }
    parts |= {f"training.{name}" for name in ("backend", "config", "schedule", "state", "gpu")}
    parts |= {f"training.gpu.{name}" for name in ("arrays", "backend", "launch", "mixture", "walks")}
    assert {name for name in loaded if name.startswith("kernelne.")} == {f"kernelne.{p}" for p in parts}


@pytest.mark.parametrize("model", list(CPU_SCORES))
def test_the_scores_a_card_must_reach_are_the_cpus(model):
    """The machine with the card may lack Numba, so its tests know the CPU's scores from here."""
    kernels, expected = CPU_SCORES[model]
    graph, labels = planted()
    trained = backend.train(cpu, graph, config(**kernels, **PLANTED))
    assert score(trained.center, labels) == pytest.approx(expected, abs=0.01)


# ------------------------------------------------------------------------------------------ compilation


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The kernels' PTX for an H100 or H200, by name; the shapes are those of a run on a card."""
    environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("triton"))}
    del environment["TRITON_INTERPRET"]
    script = Path(__file__).with_name("compile_gpu.py")
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment)
    if "Cannot find ptxas" in result.stderr:
        pytest.skip("Triton came without ptxas, its assembler")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_kernels_compile_for_a_card(compiled):
    assert len([name for name in compiled if name.startswith("walks")]) == 4
    assert compiled.keys() >= {"one kernel", "mixture", "long walks, huge tables", "coefficients"}


@pytest.mark.parametrize("name", ["one kernel", "mixture", "long walks, huge tables"])
def test_training_is_compiled_to_what_makes_it_fast(compiled, name):
    added = re.findall(r"(?:atom|red)\.global\S*\.add\.(\S+)", compiled[name])
    assert "v4.f32" in added  # steps are added four columns at a time, only a mixture's moments one by one
    assert set(added) - {"v4.f32"} == ({"f32"} if name == "mixture" else set())
    assert added.count("f32") <= 1
    assert set(re.findall(r"mma\.sync\S*", compiled[name])) == {
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    }
    assert ("prefetch.global.L2" in compiled[name]) == (name != "long walks, huge tables")
    assert "max.NaN.f32" in compiled[name]  # else an exploded row would look like distance 0
