"""Runs as data: from any state to any walk, in parts as at once, on walks that are prepared once."""

from __future__ import annotations

import copy
from itertools import pairwise

import numpy as np
import pytest
from reference import config, train

from kernelne import MKernelNE
from kernelne.errors import DivergenceError, ParameterError
from kernelne.model.kernels import KERNELS
from kernelne.training import backend
from kernelne.training.cpu import backend as cpu
from kernelne.training.cpu.barrier import next_block, take, wait_for_all
from kernelne.training.cpu.threads import Workers
from kernelne.training.schedule import blocks

THREE = {"kernels": tuple((name, 1.5) for name in KERNELS), "learn_coefficients": True}


def same(found, expected):
    for name in ("center", "context", "coefficients"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.history.keys() == expected.history.keys()
    for name, values in expected.history.items():
        np.testing.assert_array_equal(found.history[name], values, err_msg=name)
    assert found.next_walk == expected.next_walk
    assert found.loss == expected.loss or np.isnan(found.loss)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        THREE,
        THREE | {"deterministic": True, "n_threads": 2},
        {"p": 0.5, "q": 2.0, "dim": 37},
    ],
)
@pytest.mark.parametrize("stops", [(1,), (3, 200, 201), (639,)])
def test_a_run_in_parts_is_one_run(ring, changes, stops):
    """Ended by `on_block`, its state copied as through a file, and gone on with on walks prepared anew."""
    settings = config(**changes)
    whole = train(ring, settings)
    prepared = cpu.prepare(ring, settings)
    state = cpu.start(prepared)
    for stop in stops:
        state = cpu.run(prepared, state, None, lambda done, total, loss, stop=stop: done >= stop)
        assert stop <= state.next_walk <= prepared.n_walks
        assert state.history["walks"][-1] == state.next_walk
        state, prepared = copy.deepcopy(state), cpu.prepare(ring, settings)
    same(cpu.run(prepared, state), whole)


@pytest.mark.parametrize("until", [0, 1, 2, 37, 640, 10_000])
def test_a_run_ends_at_any_walk(ring, until):
    prepared = cpu.prepare(ring, config(**THREE))
    start = cpu.start(prepared)
    before = start.center.copy()
    state = cpu.run(prepared, start, until)
    assert state.next_walk == min(until, 640)
    assert (state.center == before).all() == (until == 0)
    state = cpu.run(prepared, state)
    assert state.next_walk == 640
    assert state.history["walks"].tolist() == sorted(set(state.history["walks"].tolist()))
    # The same walks from the same start: only the coefficients were stepped once more.
    np.testing.assert_allclose(state.center, train(ring, config(**THREE)).center, atol=0.1)


def test_nothing_is_left_to_do_after_the_last_walk(ring):
    prepared = cpu.prepare(ring, config())
    state = cpu.run(prepared, cpu.start(prepared))
    center = state.center.copy()
    calls = []
    again = cpu.run(prepared, state, None, lambda *told: calls.append(told))
    assert not calls
    np.testing.assert_array_equal(again.center, center)


@pytest.mark.parametrize("begin", [0, 1, 5, 64, 399])
@pytest.mark.parametrize("until", [None, 64, 100, 400])
def test_blocks_between_walks_are_those_of_the_whole_run(begin, until):
    whole = list(blocks(400, 16))
    some = list(blocks(400, 16, begin, until))
    end = 400 if until is None else until
    if begin >= end:
        assert not some
        return
    assert (some[0][0], some[-1][1]) == (begin, end)
    assert all(last == first for (_, last), (first, _) in pairwise(some))
    inner = {first for first, _ in some[1:]}
    assert inner == {first for first, _ in whole if begin < first < end}


def test_a_fit_that_fails_leaves_the_estimator_as_it_was(ring, two_cliques):
    model = MKernelNE(dim=8, walks_per_node=20, n_threads=1, random_state=1, progress=False).fit(ring)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    embedding = model.embedding_
    model.set_params(learning_rate=1e20)
    with pytest.raises(DivergenceError), pytest.warns(UserWarning, match="no edges"):
        model.fit(two_cliques)
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    assert model.embedding_ is embedding
    fresh = MKernelNE(dim=8, walks_per_node=20, learning_rate=1e20, progress=False)
    with pytest.raises(DivergenceError):
        fresh.fit(ring)
    assert not [name for name in vars(fresh) if name.endswith("_")]
    assert not hasattr(fresh, "embedding_")


def test_what_progress_returns_does_not_end_a_run(ring):
    model = MKernelNE(dim=8, walks_per_node=20, n_threads=1, random_state=1, progress=lambda *told: True)
    assert model.fit(ring).history_["walks"][-1] == 64 * 20


def test_the_registry_is_the_only_place_that_names_backends():
    assert backend.backend_names() == ("cpu", "gpu")
    assert backend.load_backend("cpu") is cpu
    with pytest.raises(ParameterError, match="must be one of cpu, gpu"):
        backend.load_backend("tpu")


def test_workers_work_again_after_one_of_them_failed():
    """Threads that wait for each other are let go, and the next work finds them waiting for all again."""
    workers = Workers(3)

    def meet(part):
        return bool(wait_for_all(workers.barrier, 3))

    assert workers.each(meet) == [True] * 3

    def fails(part):
        if part == 1:
            raise RuntimeError("here")
        return meet(part)

    with pytest.raises(RuntimeError, match="here"):
        workers.each(fails)
    assert workers.each(meet) == [True] * 3


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_a_team_takes_every_walk_once(n_threads):
    workers, taken = Workers(n_threads), [[] for _ in range(n_threads)]

    def work(part):
        while True:
            first, last = next_block(workers.barrier, n_threads)
            if first == last:
                return
            while (walk := take(workers.barrier, 3)) < last:
                taken[part] += range(walk, min(walk + 3, last))
            if not wait_for_all(workers.barrier, n_threads) or part == 0:
                return

    for _ in range(2):  # the threads are there for the next run
        with workers.team(work) as train:
            for first, last in [(0, 10), (10, 11), (11, 500)]:
                train(first, last)
                assert sorted(walk for each in taken for walk in each) == list(range(last))
        taken = [[] for _ in range(n_threads)]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_what_a_thread_of_a_team_raises_is_raised(failing):
    workers = Workers(3)

    def work(part):
        if part == failing:
            raise KeyboardInterrupt
        next_block(workers.barrier, 3)

    with pytest.raises(KeyboardInterrupt), workers.team(work) as train:
        train(0, 10)
    with pytest.raises(ZeroDivisionError), workers.team(lambda part: next_block(workers.barrier, 3)):
        raise ZeroDivisionError
    assert workers.each(lambda part: bool(wait_for_all(workers.barrier, 3))) == [True] * 3
