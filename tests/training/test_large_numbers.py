"""Numbers beyond 32 bits: of walks, edges, entries of a table. Arrays that large are files of holes."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from oracle import config
from reference import Problem

from kernelne import Graph
from kernelne._common.jit import uncached
from kernelne.errors import InputError
from kernelne.io.graphs.shared import join_lists
from kernelne.training.cpu import backend as cpu
from kernelne.training.cpu.barrier import announce, make_barrier, next_block, take
from kernelne.training.cpu.memory import check, run_bytes
from kernelne.training.cpu.simd import gather_row
from kernelne.training.schedule import blocks
from kernelne.walks.negatives import AliasTable, draw_alias
from kernelne.walks.sample import WalkGraph, WalkPlan, pick_neighbour, sample_walks, walk_graph

BORDERS = [2**31, 2**32, 2**40]
MASK = 2**64 - 1


@cache
def ring():
    return Graph.from_edges(np.arange(12), (np.arange(12) + 1) % 12)


def no_times():
    return walk_graph(ring())[-2:]


@pytest.fixture
def holes(tmp_path):
    """Make an array of zeros that takes no space: a file that is one hole."""

    def make(shape, dtype):
        try:
            return np.memmap(tmp_path / f"{np.dtype(dtype)}-{shape}", dtype, "w+", shape=shape)
        except OSError as error:
            pytest.skip(f"no large files here: {error}")

    return make


# The generator in Python's integers, which do not overflow.


def _mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def _key(seed, stream, number):
    golden = 0x9E3779B97F4A7C15
    return _mix(_mix((seed + stream * golden) & MASK) ^ (number * golden & MASK))


def _draw(key, counter):
    return _mix((key + (counter + 1) * 0x9E3779B97F4A7C15) & MASK)


@pytest.mark.parametrize("border", BORDERS)
def test_walks_of_large_numbers_are_those_of_whole_numbers(border):
    plan, count = WalkPlan(np.uint64(5), 6, 1.0, 1.0), 40
    arrays = WalkGraph(
        ring().offsets, ring().neighbours, np.empty(0, np.uint32), np.empty(0, np.int64), *no_times()
    )
    walks, lengths = np.empty((count, 6), np.int64), np.empty(count, np.int64)
    first = border - count // 2
    sample_walks(arrays, plan, first, walks, lengths)
    for number, walk in enumerate(walks.tolist(), first):
        key = _key(5, 2, number)
        for step in range(1, 6):
            near = ring().neighbours[2 * walk[step - 1] : 2 * walk[step - 1] + 2]
            assert walk[step] == near[(_draw(key, step << 32) >> 32) * 2 >> 32]
    rounds = {number // 12: [] for number in range(first, first + count)}
    for number, start in enumerate(walks[:, 0].tolist(), first):
        rounds[number // 12].append(start)
    assert all(len(set(starts)) == len(starts) for starts in rounds.values())


@pytest.mark.parametrize("border", BORDERS)
def test_training_on_walks_of_large_numbers_is_the_oracles(border):
    problem = Problem.random(
        ring(),
        3,
        8,
        [("gaussian", 1.0)],
        length=5,
        window=2,
        n_shared=4,
        n_walks=2 * border,
        rates=(0.5, 0.01),
    )
    for walk in (border - 1, border):
        tables, _, _ = problem.train(walk, walk + 1)
        gradients, _ = problem.oracle(walk, problem.center.astype(float), problem.context.astype(float))
        rate = problem.rate(walk)
        assert rate == pytest.approx(0.255, rel=1e-6)  # half way
        for name in ("center", "context"):
            step = getattr(tables, name) - getattr(problem, name)
            np.testing.assert_allclose(step, -rate * getattr(gradients, name), atol=2e-6)


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_run_goes_on_beyond_the_border(deterministic):
    settings = config(walks_per_node=2**31 - 1, dim=8, n_threads=2, deterministic=deterministic)
    prepared = cpu.prepare(ring(), settings)
    assert prepared.n_walks == 12 * (2**31 - 1)
    state = cpu.start(prepared)
    before = state.center.copy()
    state.next_walk = 2**32 - 50
    state = cpu.run(prepared, state, 2**32 + 50)
    assert state.next_walk == 2**32 + 50
    assert state.history["walks"][-1] == 2**32 + 50
    assert state.history["pairs"].sum() == 100 * (2 * 9 * 10 // 2)  # all pairs of 10 nodes, both ways
    rate = settings.learning_rate_at(2**32 + 50, prepared.n_walks)
    assert state.history["learning_rate"][-1] == pytest.approx(rate)
    assert (state.center != before).any(axis=1).all()


def test_blocks_and_counters_have_64_bits():
    seen = list(blocks(2**40, 2**33, 2**35, 2**35 + 2**34))
    assert seen[0][0] == 2**35
    assert seen[-1][1] == 2**35 + 2**34
    assert all(end == begin for (_, end), (begin, _) in pairwise(seen))
    barrier = make_barrier()
    announce(barrier, 2**35, 2**36)
    assert next_block(barrier, 1) == (2**35, 2**36)
    assert [take(barrier, 2**34) for _ in range(3)] == [2**35, 2**35 + 2**34, 2**36]


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.5, 4.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_edges_beyond_the_border(holes, p, q, weighted):
    """Node 0 has 2³¹ neighbours, all of them itself; the others, behind them, lead to each other."""
    many = 2**31
    offsets = np.array([0, many, many + 2, many + 3, many + 4], np.int64)
    neighbours, thresholds = holes(many + 4, np.int32), np.empty(0, np.uint32)
    neighbours[many:] = [2, 3, 1, 1]
    if weighted:
        thresholds = holes(many + 4, np.uint32)
        thresholds[many - 1 :] = [2**32 - 1, 2**30, 2**32 - 1, 2**32 - 1, 2**32 - 1]
    graph = WalkGraph(offsets, neighbours, thresholds, np.array([1, 2, 3]), *no_times())
    walks, lengths = np.empty((3000, 8), np.int64), np.empty(3000, np.int64)
    sample_walks(graph, WalkPlan(np.uint64(1), 8, 1 / p, 1 / q), 0, walks, lengths)
    assert (lengths == 8).all()
    assert set(np.unique(walks)) == {1, 2, 3}
    assert ((walks[:, 1:] == 1) != (walks[:, :-1] == 1)).all()
    share = (walks[:, 1][walks[:, 0] == 1] == 2).mean()
    assert share == pytest.approx(0.25 if weighted else 0.5, abs=0.06)
    if not weighted:
        assert pick_neighbour(graph, 0, np.uint64(2**64 - 1)) == many - 1


def test_noise_of_more_nodes_than_32_bits_sign(holes):
    n = 2**31 + 5
    table = AliasTable(holes(n, np.uint32), holes(n, np.int64))
    table.other[n - 1] = n - 2
    assert draw_alias(table, np.uint64(0xFFFFFFFF00000000)) == n - 1
    assert draw_alias(table, np.uint64(0xFFFFFFFF00000001)) == n - 2


def test_rows_of_a_table_beyond_the_border(holes):
    table = holes((2**28 + 3, 8), np.float32)  # 2³¹ entries, 8 GiB
    table[-1] = np.arange(8)
    out = np.zeros((1, 16), np.float32)
    read = uncached()(lambda table, row, out: gather_row(table, row, out, 0))
    assert read(table, len(table) - 1, out) == np.sum(np.arange(8) ** 2)
    assert out[0, :8].tolist() == list(range(8))


def test_estimates_and_limits_of_huge_graphs():
    n, arcs = 3 * 10**9, 2**36
    graph = SimpleNamespace(
        n_nodes=n, weights=None, timed=None, offsets=SimpleNamespace(nbytes=8 * (n + 1)),
        neighbours=SimpleNamespace(size=arcs, nbytes=8 * arcs),
        nodes=SimpleNamespace(nbytes=8 * n, dtype=int),
    )  # fmt: skip
    assert run_bytes(graph, config(dim=2**20)) > 2 * n * 2**20 * 4
    with pytest.raises(InputError, match=r"4,294,967,296 nodes: training takes fewer than"):
        check(SimpleNamespace(n_nodes=2**32), config(), 2, 8)


def test_lists_of_words_have_64_bit_offsets():
    import pyarrow as pa

    words = pa.array(["a", "b", "c"], pa.large_string())
    made = join_lists(np.array([0, 2, 2, 3]), words)
    assert made.to_pylist() == ["a b", "", "c"]
    assert pa.types.is_large_string(made.type)
