"""Whole runs on the CPU: repeatable bits, blocks, schedule, divergence, and graphs with nothing to learn."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from reference import config, train

from kernelne.errors import DivergenceError
from kernelne.graph import Graph
from kernelne.model.kernels import KERNELS
from kernelne.model.mixture import least_sum
from kernelne.training.cpu import backend as cpu
from kernelne.training.cpu import loop, scratch
from kernelne.training.schedule import blocks
from memory import SideBySide

THREE = tuple((name, 1.5) for name in KERNELS)


def _digest(trained):
    parts = (trained.center, trained.context, trained.coefficients, *trained.history.values())
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def _start(graph, **changes):
    """The tables training starts from: a rate too small to move a float32."""
    return train(graph, config(**(changes | {"learning_rate": 1e-30, "min_learning_rate": 0.0})))


# ------------------------------------------------------------------------------------------------ bits


@pytest.fixture(scope="module")
def hundred(random_graph):
    """100 nodes by (directed, weighted), enough for chunks of several walks."""
    return {
        (directed, weighted): random_graph(4, 100, directed=directed, weighted=weighted, density=0.04)
        for directed in (False, True)
        for weighted in (False, True)
    }


DETERMINISTIC_RUNS = [
    ((False, False), {}),
    ((False, True), {"p": 0.25, "q": 4.0}),
    ((True, True), {"kernels": THREE, "learn_coefficients": True, "dim": 7}),
    ((True, False), {"p": 2.0, "q": 0.5, "dim": 37, "walk_length": 5, "shared_negatives": 3}),
]


@pytest.mark.parametrize(("kind", "changes"), DETERMINISTIC_RUNS)
def test_deterministic_bits_do_not_depend_on_threads(hundred, kind, changes):
    digests = {
        _digest(train(hundred[kind], config(deterministic=True, n_threads=n_threads, **changes)))
        for n_threads in (1, 2, 3, 3)
    }
    assert len(digests) == 1


def test_deterministic_bits_are_the_same_in_another_process(ring):
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from reference import config, train
from test_cpu import THREE, _digest
from kernelne.graph import Graph
nodes = np.arange(64)
graph = Graph.from_edges(np.tile(nodes, 2), np.concatenate([(nodes + 1) % 64, (nodes + 2) % 64]))
print(_digest(train(graph, config(kernels=THREE, learn_coefficients=True, deterministic=True, n_threads=2))))
"""
    here = str(Path(__file__).parent)
    other = subprocess.run([sys.executable, "-c", code, here], capture_output=True, text=True, check=False)
    assert other.returncode == 0, other.stderr
    mine = train(ring, config(kernels=THREE, learn_coefficients=True, deterministic=True))
    assert other.stdout.strip() == _digest(mine)


@pytest.mark.parametrize("changes", [{}, {"kernels": THREE, "learn_coefficients": True, "p": 0.5}])
def test_one_thread_is_repeatable(ring, changes):
    assert _digest(train(ring, config(**changes))) == _digest(train(ring, config(**changes)))


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(
    "shape",
    [
        {"dim": 8, "walk_length": 2, "shared_negatives": 1, "kernels": THREE[:2]},
        {"dim": 8, "walk_length": 10, "shared_negatives": 20},
    ],
)
def test_bits_do_not_depend_on_where_memory_lies(two_cliques, monkeypatch, deterministic, shape):
    """LLVM's loops look whether their arrays are close, and take another way, with other rounding, if so."""

    def run(numpy):
        monkeypatch.setattr(scratch, "np", numpy)
        monkeypatch.setattr(cpu, "np", numpy)
        return _digest(train(two_cliques, config(walks_per_node=2, deterministic=deterministic, **shape)))

    expected = run(np)
    counted = SideBySide()
    assert run(counted) == expected
    rng = np.random.default_rng(0)
    digests = {run(SideBySide(counted.sizes, rng.permutation(len(counted.sizes)))) for _ in range(60)}
    assert digests == {expected}


@pytest.mark.parametrize("deterministic", [False, True])
def test_seeds_matter(ring, deterministic):
    digests = {
        _digest(train(ring, config(seed=seed, deterministic=deterministic))) for seed in (0, 1, 2, 2**64 - 1)
    }
    assert len(digests) == 4


def test_modes_and_threads_learn_the_same_thing(ring):
    """Not the same bits, but the same loss."""
    losses = [
        train(ring, config(deterministic=deterministic, n_threads=n_threads)).history["loss"][-20:].mean()
        for deterministic, n_threads in ((False, 1), (False, 2), (True, 2))
    ]
    assert max(losses) < 1.1 * min(losses)


# -------------------------------------------------------------------------------------------- schedule


@pytest.mark.parametrize("n_walks", [*range(1, 60), 199, 200, 201, 399, 400, 5000, 123_457, 26_000_000])
def test_blocks_cover_every_walk_once(n_walks):
    ranges = list(blocks(n_walks, 65_536))
    assert ranges[0][0] == 0
    assert ranges[-1][1] == n_walks
    assert all(last == first for (_, last), (first, _) in pairwise(ranges))
    assert all(first < last <= first + 65_536 for first, last in ranges)
    assert len(ranges) <= max(410, n_walks // 60_000)


def test_report_counts_up_to_the_total_and_history_keeps_it(ring):
    calls = []
    trained = train(ring, config(), lambda *call: calls.append(call))
    done, totals, losses = zip(*calls, strict=True)
    assert all(a < b for a, b in pairwise(done))
    assert set(totals) == {640}
    assert done[-1] == 640
    assert {len(record) for record in trained.history.values()} == {len(calls)}
    np.testing.assert_array_equal(trained.history["walks"], done)
    np.testing.assert_array_equal(trained.history["loss"], losses)
    assert trained.history["coefficients"].shape == (len(calls), 1)


def test_the_learning_rate_ends_at_its_floor(ring):
    rates = train(ring, config(learning_rate=0.05, min_learning_rate=0.001)).history["learning_rate"]
    assert (np.diff(rates) < 0).all()
    assert rates[0] < 0.05
    assert rates[-1] == pytest.approx(0.001)


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("changes", [{}, {"kernels": THREE, "learn_coefficients": True}])
def test_the_loss_falls(ring, deterministic, changes):
    loss = train(ring, config(walks_per_node=40, deterministic=deterministic, **changes)).history["loss"]
    assert np.isfinite(loss).all()
    assert loss[-20:].mean() < 0.7 * loss[:3].mean()


def test_a_single_kernel_keeps_its_coefficient(ring):
    trained = train(ring, config())
    np.testing.assert_array_equal(trained.coefficients, [1.0])
    np.testing.assert_array_equal(trained.history["coefficients"], 1.0)


@pytest.mark.parametrize("kernels", [THREE, (("gaussian", 1.0), ("gaussian", 2.0), ("gaussian", 3.0))])
def test_coefficients_are_learned(ring, kernels):
    trained = train(ring, config(kernels=kernels, learn_coefficients=True, walks_per_node=60))
    start = _start(ring, kernels=kernels, learn_coefficients=True).coefficients
    # Tiny and random, then lifted alike to the floor under their sum.
    assert 0 < np.ptp(start) <= 1 / 16
    assert start.sum() == pytest.approx(least_sum(config().n_negative))
    assert 0.3 < trained.coefficients.sum() < 2
    np.testing.assert_array_equal(trained.history["coefficients"][-1], trained.coefficients)


def test_a_mixture_of_one_learns_its_coefficient(ring):
    """c₁·k with c₁ learned is not the kernel itself: what is reported must be what was used."""
    trained = train(ring, config(learn_coefficients=True, walks_per_node=40))
    assert trained.coefficients[0] > 0.1


def test_frozen_mixtures_use_coefficients_of_one(ring):
    trained = train(ring, config(kernels=THREE))
    np.testing.assert_array_equal(trained.coefficients, np.ones(3))


# --------------------------------------------------------------------------------------------- trouble


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("mixture", [False, True])
@pytest.mark.parametrize(
    "changes", [{"l2": 1e4}, {"learning_rate": 1e6}, {"l2": 1e30}, {"learning_rate": 1e30}]
)
def test_divergence_is_seen_early_and_says_what_to_lower(ring, deterministic, mixture, changes):
    reports = []
    if mixture:
        changes = changes | {"kernels": THREE, "learn_coefficients": True}
    with pytest.raises(DivergenceError, match="training diverged between walks") as error:
        train(ring, config(deterministic=deterministic, **changes), lambda *call: reports.append(call))
    learning_rate, l2 = changes.get("learning_rate", 0.025), changes.get("l2", 1e-2)
    assert f"learning_rate={learning_rate}" in str(error.value)
    assert f"l2={l2}" in str(error.value)
    assert "of 640" in str(error.value)
    assert len(reports) <= 40
    assert all(np.isfinite(loss) for _, _, loss in reports)


@pytest.mark.parametrize("name", list(KERNELS))
@pytest.mark.parametrize("sigma", [0.05, 0.2, 0.5])
def test_short_walks_after_long_ones_are_not_taken_for_divergence(name, sigma):
    """A path into a sink: walks of every length share their scratch memory."""
    graph = Graph.from_scipy(np.diag(np.ones(12), 1), directed=True)
    for seed in range(10):
        trained = train(graph, config(kernels=((name, sigma),), seed=seed))
        assert np.isfinite(trained.center).all()


# ----------------------------------------------------------------------------------------------- edges


@pytest.mark.parametrize("deterministic", [False, True])
def test_isolated_nodes_keep_their_start(two_cliques, deterministic):
    trained, start = (
        run(two_cliques, deterministic=deterministic)
        for run in (lambda graph, **changes: train(graph, config(**changes)), _start)
    )
    np.testing.assert_array_equal(trained.center[10], start.center[10])
    assert (trained.center[:10] != start.center[:10]).any(axis=1).all()


def test_tables_start_as_the_paper_says(ring):
    start = _start(ring, dim=32)
    assert start.center.dtype == start.context.dtype == np.float32
    assert np.abs(start.center).max() <= 0.5 / 32
    assert np.abs(start.center).max() > 0.49 / 32
    assert np.abs(start.context).max() < 1e-20


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("n_threads", [1, 5])
def test_more_threads_than_walks(deterministic, n_threads):
    graph = Graph.from_scipy(1 - np.eye(2))
    trained = train(graph, config(walks_per_node=1, n_threads=n_threads, deterministic=deterministic))
    assert trained.history["walks"][-1] == 2
    assert np.isfinite(trained.center).all()
    assert trained.context.any()


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("matrix", [np.zeros((1, 1)), np.zeros((4, 4))])
def test_without_edges_the_start_is_the_result(matrix, deterministic):
    graph = Graph.from_scipy(matrix)
    for changes in ({}, {"kernels": THREE, "learn_coefficients": True}):
        trained = train(graph, config(deterministic=deterministic, **changes))
        start = _start(graph, deterministic=deterministic, **changes)
        np.testing.assert_array_equal(trained.center, start.center)
        np.testing.assert_array_equal(trained.coefficients, start.coefficients)
        assert not trained.context.any()
        assert np.isnan(trained.history["loss"]).all()
        assert np.isnan(trained.loss)


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("dim", [1, 3])
def test_one_node_with_a_self_loop(deterministic, dim):
    trained = train(Graph.from_scipy(np.ones((1, 1))), config(dim=dim, deterministic=deterministic))
    assert np.isfinite(trained.center).all()
    assert trained.context.any()


def test_walks_of_one_node_train_nothing(ring):
    trained = train(ring, config(walk_length=1))
    np.testing.assert_array_equal(trained.center, _start(ring).center)
    assert not trained.context.any()


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_thread_that_fails_keeps_nobody_waiting(ring, monkeypatch, failing):
    """In deterministic mode threads wait for each other: when one is interrupted the others must return."""
    real = loop.train_part

    def fails(part, *args):
        if part == failing:
            raise KeyboardInterrupt
        return real(part, *args)

    train(ring, config(deterministic=True, n_threads=3))
    monkeypatch.setattr(loop, "train_part", fails)
    result = []

    def run():
        try:
            train(ring, config(deterministic=True, n_threads=3))
        except KeyboardInterrupt:
            result.append("interrupted")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout=20)
    assert result == ["interrupted"]


def test_divergence_in_the_last_steps_is_seen():
    graph = Graph.from_edges([0], [1], directed=True)
    changes = {"walks_per_node": 1, "learning_rate": 1e10, "min_learning_rate": 1e10, "dim": 4}
    with pytest.raises(DivergenceError, match="learning_rate"):
        train(graph, config(**changes))
