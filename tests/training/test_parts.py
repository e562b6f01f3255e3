"""Training in parts: the schedule, the pairs and steps of a block, and the same bits wherever blocks run."""

from __future__ import annotations

import tempfile
import threading
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from oracle import config, judge

from kernelne import InputError, KernelNE, MKernelNE, ParameterError, classify_nodes, load_dataset
from kernelne.errors import DivergenceError, OutputError
from kernelne.model.kernels import KERNELS
from kernelne.model.mixture import Moments
from kernelne.model.objective import WalkPairs
from kernelne.training.cpu import backend as cpu
from kernelne.training.parts import memory, sweeps
from kernelne.training.parts.backend import PartsBackend
from kernelne.training.parts.block import shared_negatives, train_block
from kernelne.training.parts.disk import OnDisk
from kernelne.training.parts.memory import InMemory
from kernelne.training.parts.pairs import Pairs, find_all, kept_weights, pairs_per_walk
from kernelne.training.parts.plan import Engine, disk_bytes, make_plan
from kernelne.training.parts.schedule import Block, make_schedule, nodes_of_part
from kernelne.walks.negatives import alias_table, draw_alias
from kernelne.walks.rng import PARTS, draw, stream_key
from kernelne.walks.sample import expected_visits, sample_walks, walk_graph

MIXTURE = (("gaussian", 1.0), ("schoenberg", 1.5))
SETTINGS = {"dim": 8, "walks_per_node": 20, "random_state": 7, "n_threads": 1}
PRECISION = 5e-5


@cache
def planted():
    return load_dataset("planted:n=120,k=3,p_in=0.2,p_out=0.02,seed=1").graph


def prepared(graph=None, executor=None, **changes):
    graph = planted() if graph is None else graph
    backend = PartsBackend(executor or InMemory())
    return backend, backend.prepare(graph, config(**({"parts": 4} | changes)))


# ---------------------------------------------------------------- schedule


@pytest.mark.parametrize(("n_parts", "n_nodes", "walks"), [(1, 5, 3), (4, 1000, 20), (7, 200_001, 10)])
def test_an_episode_trains_every_block_once(n_parts, n_nodes, walks):
    schedule = make_schedule(config(parts=n_parts), n_nodes, n_nodes * walks)
    assert schedule.n_episodes >= min(10, walks)
    rounds = list(schedule.rounds())
    subs = [sub for together in rounds for sub in together]
    assert len(subs) == schedule.n_episodes * n_parts
    for together in rounds:
        assert {sub.episode for sub in together} == {together[0].episode}
        step = together[0].episode * n_parts + together[0].number
        number = together[0].number
        assert len(together) == (1 if step < 4 else min(4 - number % 4, n_parts - number))
    for e in range(schedule.n_episodes):
        mine = [sub for sub in subs if sub.episode == e]
        blocks = [(block.center, block.context) for sub in mine for block in sub.blocks]
        assert sorted(blocks) == list(product(range(n_parts), repeat=2))
        assert mine[0].blocks[0].context == e % n_parts  # each episode starts with another
    for sub in subs:  # no two share a part
        for side in ("center", "context"):
            assert sorted(getattr(block, side) for block in sub.blocks) == list(range(n_parts))
    assert len({block.number for sub in subs for block in sub.blocks}) == len(subs) * n_parts
    ends = [0, *(sub.end for sub in subs)]
    assert (np.diff(ends) > 0).all()
    assert ends[-1] == n_nodes * walks
    assert [subs[e * n_parts].walks[0] for e in range(schedule.n_episodes)] + [ends[-1]] == [
        *(subs[e * n_parts].begin for e in range(schedule.n_episodes)),
        subs[-1].walks[1],
    ]
    rates = [block.rates for sub in subs for block in sub.blocks[:1]]
    assert [last for _, last in rates[:-1]] == [first for first, _ in rates[1:]]


def test_a_run_goes_on_where_it_ended():
    schedule = make_schedule(config(parts=3), 100, 1000)
    rounds = list(schedule.rounds())
    for k, together in enumerate(rounds):
        assert list(schedule.rounds(together[0].begin)) == rounds[k:]
        assert list(schedule.rounds(0, together[-1].end))[-1] == together


def test_parts_are_random_and_even():
    _, ready = prepared(parts=7)
    places, bounds = ready.graph.find.places, ready.graph.schedule.bounds
    assert sorted(places) == list(range(120))
    parts = [nodes_of_part(places, bounds, part) for part in range(7)]
    assert {len(part) for part in parts} <= {120 // 7, 120 // 7 + 1}
    for part, nodes in enumerate(parts):
        np.testing.assert_array_equal(places[nodes], np.arange(bounds[part], bounds[part + 1]))
        assert len({node % 3 for node in nodes.tolist()}) == 3  # of all groups
    _, other = prepared(parts=7, seed=2)
    assert (other.graph.find.places != places).mean() > 0.5


# ---------------------------------------------------------------- pairs


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("window", [1, 3, 10])
def test_pairs_are_those_of_the_walks(random_graph, window, forward):
    graph = random_graph(3, 30, directed=True, weighted=True, density=0.08)
    _, ready = prepared(graph, parts=3, window=window, walk_length=6, p=0.5, forward=forward)
    find, bounds = ready.graph.find, ready.graph.schedule.bounds
    walks, lengths = np.zeros((50, 6), np.int64), np.zeros(50, np.int64)
    sample_walks(find.graph, find.plan, 10, walks, lengths)
    expected = {block: [] for block in range(9)}
    part_of = np.searchsorted(bounds, find.places, side="right") - 1
    for walk, length in zip(walks, lengths, strict=True):
        for a, b in product(range(length), repeat=2):
            if 0 < (b - a if forward else abs(a - b)) <= window:
                i, j = part_of[walk[a]], part_of[walk[b]]
                rows = find.places[walk[a]] - bounds[i], find.places[walk[b]] - bounds[j]
                expected[i * 3 + j].append((*rows, abs(a - b)))
    pairs, starts = find_all(find, 10, 60)
    for block in range(9):
        here = slice(starts[block], starts[block + 1])
        contexts = pairs.contexts[here]
        steps = (contexts >> 26) + 1
        found = list(zip(pairs.centers[here], contexts & (2**26 - 1), steps, strict=True))
        assert [tuple(map(int, pair)) for pair in found] == [tuple(map(int, p)) for p in expected[block]]
    expected = sum(0 < abs(a - b) <= window for a, b in product(range(6), repeat=2))
    assert pairs_per_walk(ready.config) == expected


@pytest.mark.parametrize("decay", [0.22, 0.6])
def test_of_light_pairs_some_are_kept_and_weigh_more(decay):
    """Whatever is drawn, the weight of the pairs at each number of steps is that of all, but for chance."""
    _, ready = prepared(parts=3, window_decay=decay)
    length, n_walks = ready.config.walk_length, 3000
    pairs, _ = find_all(ready.graph.find, 0, n_walks)
    found = np.bincount(pairs.contexts >> 26, minlength=length - 1)
    assert abs(found.sum() / (n_walks * pairs_per_walk(ready.config)) - 1) < 0.02
    steps = np.arange(length - 1)
    all_pairs = 2 * (length - 1 - steps) * n_walks
    weights = kept_weights(ready.config)
    assert weights.min() == 0.25
    heavy = decay**steps >= 0.25
    np.testing.assert_array_equal(found[heavy], all_pairs[heavy])
    wanted = all_pairs * decay**steps
    spread = np.sqrt(wanted * weights)  # of a number of independent events, each of this weight
    assert (np.abs(found * weights - wanted) <= 5 * spread + 1).all()


def test_negatives_are_drawn_from_the_part_by_visits():
    _, ready = prepared()
    visits = expected_visits(walk_graph(planted()), cpu.walk_plan(ready.config), 10)
    for part in range(4):
        nodes = nodes_of_part(ready.graph.find.places, ready.graph.schedule.bounds, part)
        keep, other = ready.noise[part]
        chance = np.bincount(np.arange(keep.size), keep / 2.0**32, keep.size)
        chance += np.bincount(other, 1 - keep / 2.0**32, keep.size)
        np.testing.assert_allclose(
            chance / chance.sum(), visits[nodes] ** 0.75 / (visits[nodes] ** 0.75).sum(), atol=1e-6
        )


# ---------------------------------------------------------------- the steps of a block


def _batches(centers, n_contexts):
    """Where mini-batches of ordered pairs begin and end, by the rule.

    At most 16 centers, and one pair for 32 rows of contexts, from 8 to 32.
    """
    start, most = 0, min(max(n_contexts // 32, 8), 32)
    while start < len(centers):
        end, n_centers = start, 0
        while end < min(start + most, len(centers)):
            n_centers += end == start or centers[end] != centers[end - 1]
            if n_centers > 16:
                break
            end += 1
        yield start, end
        start = end


@pytest.mark.parametrize("seed", range(12))
def test_a_block_takes_the_steps_of_the_oracle(seed):
    rng = np.random.default_rng(seed)
    dim, n_pairs = [1, 8, 37, 128][seed % 4], int(rng.integers(1, 300))
    kernels = tuple((name, float(rng.choice([0.5, 1.0, 2.0]))) for name in rng.permutation(list(KERNELS)))
    settings = config(
        kernels=kernels[: 1 + seed % 3], learn_coefficients=True, dim=dim, parts=[1, 3, 8][seed % 3],
        window_decay=[1.0, 0.5][seed % 2], n_negative=int(rng.integers(1, 7)), l2=0.05,
        shared_negatives=int(rng.integers(1, 20)), seed=seed,
    )  # fmt: skip
    rows = [3, 9, 60][seed % 3], [13, 700, 1200][seed // 4]
    center, context = (
        rng.normal(0, 0.3 / max(1, dim / 16) ** 0.5, (n, dim)).astype(np.float32) for n in rows
    )
    coefficients = rng.uniform(-1, 1, len(settings.kernels)).astype(np.float32).astype(float)
    steps = rng.integers(1, 9, n_pairs)
    pairs = Pairs(
        rng.integers(rows[0], size=n_pairs).astype(np.uint32),
        (rng.integers(rows[1], size=n_pairs) | (steps - 1) << 26).astype(np.uint32),
    )
    noise = alias_table(rng.random(rows[1]) + 0.1)
    # Small steps: large ones would amplify the rounding of those before.
    block = Block(5, 1, 2, (0.002, 0.001))
    exact_center, exact_context = center.astype(float), context.astype(float)
    found = center.copy(), context.copy()
    given = Pairs(*(column.copy() for column in pairs))
    trained = train_block(block, settings, coefficients, pairs, noise, *found)
    np.testing.assert_array_equal(pairs, given)
    order = np.argsort(pairs.centers, kind="stable")
    pairs, steps = Pairs(pairs.centers[order], pairs.contexts[order]), steps[order]
    key, m = np.uint64(stream_key(np.uint64(seed), PARTS, 5)), shared_negatives(settings)
    total = [0.0, 0.0, 0.0, 0.0]
    for number, (start, end) in enumerate(_batches(pairs.centers, rows[1])):
        negatives = [draw_alias(noise, np.uint64(draw(key, number * m + r))) for r in range(m)]
        rate = 0.002 - 0.001 * start / n_pairs
        c = pairs.centers[start:end].astype(np.int64)
        u = (pairs.contexts[start:end] & (2**26 - 1)).astype(np.int64)
        w = np.maximum(settings.window_decay ** (steps[start:end] - 1.0), 0.25)
        each = WalkPairs(
            centers=np.concatenate([c, np.repeat(c, m)]),
            contexts=np.concatenate([u, np.tile(negatives, end - start)]),
            targets=np.repeat([1.0, 0.0], [end - start, m * (end - start)]),
            weights=np.concatenate([w, np.repeat(settings.n_negative * w / m, m)]),
            center_rows=c, center_decays=w,
            context_rows=np.concatenate([u, negatives]),
            context_decays=np.concatenate([w, np.full(m, settings.n_negative * w.sum() / m)]),
            n_pairs=w.sum(),
        )  # fmt: skip
        gradients, moments = judge(each, exact_center, exact_context, coefficients, settings.kernels, 0.05)
        exact_center -= rate * gradients.center
        exact_context -= rate * gradients.context
        total = [a + b for a, b in zip(total, moments, strict=True)]
    for table, exact, before in ((found[0], exact_center, center), (found[1], exact_context, context)):
        size = np.abs(exact - before).max()
        assert np.abs(table - exact).max() < 2e-4 * size + 4 * n_pairs * 2.0**-24 * np.abs(exact).max()
    sums = Moments.unpack(trained.sums, len(settings.kernels))
    for ours, exact in zip(sums, total, strict=True):
        np.testing.assert_allclose(ours, exact, rtol=2e-4, atol=2e-4 * np.abs(exact).max())
    assert trained.n_exploded == 0


# ---------------------------------------------------------------- the same bits everywhere


def _same(one, other):
    for name in ("center_", "context_", "coefficients_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name, values in one.history_.items():
        np.testing.assert_array_equal(values, other.history_[name])


@pytest.mark.filterwarnings("ignore:the loss")
@pytest.mark.parametrize("changes", [{}, {"kernels": MIXTURE, "parts": 5}, {"p": 0.25, "q": 4.0, "dim": 7}])
def test_the_bits_do_not_depend_on_engine_threads_or_memory(random_graph, monkeypatch, changes):
    graph = random_graph(4, 100, directed="p" in changes, weighted="p" in changes, density=0.15)
    kind = MKernelNE if "kernels" in changes else KernelNE
    given = SETTINGS | {"parts": 4} | changes
    one = kind(**given).fit(graph)
    _same(kind(**given | {"n_threads": 3}).fit(graph), one)
    on_disk = kind(**given, engine="disk").fit(graph)
    _same(on_disk, one)
    np.testing.assert_array_equal(on_disk.embedding_, one.embedding_)
    for table in (on_disk.center_, on_disk.context_, on_disk.embedding_):
        assert isinstance(table, np.memmap)  # none of them need fit in memory
    _same(kind(**given | {"n_threads": 3}, engine="disk").fit(graph), one)
    monkeypatch.setattr(memory, "_LEAST_POOL", 1)  # room for one sub-episode at a time
    _same(kind(**given).fit(graph), one)
    assert (kind(**given | {"parts": 3}).fit(graph).center_ != one.center_).any()
    assert np.isfinite(one.embedding_).all()


def test_parts_of_kernels_of_ones_own(own_kernel):
    given = SETTINGS | {"kernels": ((own_kernel, 1.0), ("gaussian", 1.0)), "parts": 3}
    made = MKernelNE(**given).fit(planted())
    assert made.loss_ < 1.0
    _same(MKernelNE(**given, engine="disk").fit(planted()), made)


def test_nothing_is_left_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    model = KernelNE(**SETTINGS, parts=3, engine="disk")
    model.fit(planted())
    assert isinstance(model.center_, np.memmap)
    assert model.center_.shape == (120, 8)
    del model
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("work", ["_read_center", "_read_context", "_read_pairs", "_visit", "_write_context"])
def test_a_failure_in_any_thread_ends_the_run(monkeypatch, work, n_threads):
    """No thread waits for what will never come."""
    original, seen = getattr(sweeps._Sweep, work), []

    def fail(self, *given):
        seen.append(given[0])
        if len(seen) == 50:
            raise OSError(28, "No space left on device")
        original(self, *given)

    monkeypatch.setattr(sweeps._Sweep, work, fail)
    before = set(threading.enumerate())
    with pytest.raises(OutputError, match="cannot be written: No space left on device"):
        KernelNE(**SETTINGS | {"parts": 5, "n_threads": n_threads}, engine="disk").fit(planted())
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("n_parts", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_visits_of_a_round(n_parts, size):
    """Every block once, after those that share its center or its context, and each part for a while only."""
    if size > n_parts:
        return
    trained, contexts = [], {}
    for v, visit in enumerate(sweeps.visits_of(n_parts, size)):
        for d in visit.subs:
            trained.append((visit.center, d))
            contexts.setdefault((visit.center + d) % n_parts, []).append(v)
    assert sorted(trained) == list(product(range(n_parts), range(size)))
    for at, (i, d) in enumerate(trained):
        if d:
            assert {(i, d - 1), ((i + 1) % n_parts, d - 1)} <= set(trained[:at])
    for uses in contexts.values():
        assert uses == list(range(uses[0], uses[0] + size))


def test_start_is_that_of_a_run_without_parts():
    backend, ready = prepared(learn_coefficients=True, kernels=MIXTURE)
    plain = cpu.start(cpu.prepare(planted(), replace(ready.config, parts=None)))
    found = backend.fetch(backend.start(ready))
    np.testing.assert_array_equal(found.center, plain.center)
    np.testing.assert_array_equal(found.context, plain.context)


def test_vectors_that_explode_are_found():
    with pytest.raises(DivergenceError, match="training diverged"):
        KernelNE(**SETTINGS | {"parts": 3}, learning_rate=1e6, l2=1.0).fit(planted())


# ---------------------------------------------------------------- checkpoints


class CrashError(Exception):
    pass


def crash_at(share):
    def tell(done, total, loss):
        if done >= share * total:
            raise CrashError

    return tell


@pytest.mark.parametrize("engines", [("memory", "memory"), ("disk", "disk"), ("memory", "disk")])
def test_a_run_that_crashes_goes_on_with_any_engine(tmp_path, engines):
    settings = SETTINGS | {"kernels": MIXTURE, "parts": 4}
    whole = MKernelNE(**settings).fit(planted())
    kept = {"checkpoint": tmp_path / "run", "checkpoint_every": 1e-9}
    for k, share in enumerate((0.05, 0.3, 0.9)):
        engine = engines[k % 2]
        with pytest.raises(CrashError):
            MKernelNE(**settings, **kept, engine=engine, progress=crash_at(share)).fit(planted())
        names = [p.name for p in (tmp_path / "run").iterdir() if not p.name.startswith(".")]
        assert len(names) == 9  # both tables in four parts, and the file that names them
    seen = []
    last = MKernelNE(**settings, **kept, engine=engines[1], progress=lambda done, *_: seen.append(done))
    _same(last.fit(planted()), whole)
    assert seen[0] > 0.8 * 2400
    _same(MKernelNE(**settings, **kept, engine=engines[0], progress=crash_at(0)).fit(planted()), whole)
    with pytest.raises(InputError, match=r"parts 4 \(now 5\)"):
        MKernelNE(**settings | {"parts": 5}, **kept).fit(planted())
    assert not list((tmp_path / "run").glob(".work-*"))


@pytest.mark.parametrize("damage", ["flipped", "missing"])
def test_a_damaged_part_is_found(tmp_path, damage):
    settings = SETTINGS | {"parts": 4, "checkpoint": tmp_path / "run", "checkpoint_every": 1e-9}
    with pytest.raises(CrashError):
        KernelNE(**settings, progress=crash_at(0.5)).fit(planted())
    (file,) = (tmp_path / "run").glob("*context-2.part")
    data = bytearray(file.read_bytes())
    data[100] ^= 1
    file.write_bytes(data) if damage == "flipped" else file.unlink()
    with (
        pytest.raises(InputError, match="no checkpoint in it can be read"),
        pytest.warns(UserWarning, match="part 2 of the table context is damaged|No such file"),
    ):
        KernelNE(**settings).fit(planted())


# ---------------------------------------------------------------- plans


def test_the_plan_follows_from_the_memory():
    graph = load_dataset("erdos_renyi:n=20000,p=0.0005,seed=1").graph
    settings = config(dim=1024, walks_per_node=60)

    def plan(**asked):
        return make_plan(graph, settings, Engine(**asked), cpu, 3.25)

    plainly = cpu.run_bytes(graph, settings, 3.25)
    assert plan().parts is plan(memory="4GB").parts is None
    assert plan(parts=5).parts == 5
    small, smaller = disk_bytes(graph, settings, 4), disk_bytes(graph, settings, 12)
    assert smaller < small < plainly
    few, many = plan(memory=small), plan(memory=smaller)
    assert isinstance(many.backend.executor, OnDisk)
    assert (few.parts, many.parts) == (4, 12)
    assert (few.needed, many.needed) == (small, smaller)
    assert "12 parts on disk" in many.told
    with pytest.raises(InputError, match=r"20,000 nodes and .* edges need .* even in 512 parts"):
        plan(memory="200MB")
    with pytest.raises(InputError, match=r"parts=2: 20,000 nodes need .* give more parts"):
        plan(memory=small, parts=2, name="disk")
    with pytest.raises(InputError, match='engine="disk" needs less'):
        plan(memory=small, parts=2, name="memory")


def test_parameters():
    for changes, message in (
        ({"engine": "tape"}, "engine='tape': must be one of memory, disk, ray"),
        ({"parts": 0}, "parts=0: must be a whole number, at least 1"),
        ({"parts": 121}, "parts=121: must be at most 120, the number of nodes"),
        ({"memory": "much"}, "memory='much': must be a size such as 8GiB"),
        ({"address": "auto"}, "address='auto': is that of a cluster: needs engine=\"ray\""),
        ({"parts": 2, "backend": "gpu"}, "parts=2: needs backend=\"cpu\", not 'gpu'"),
        ({"parts": 2, "window": 99, "walk_length": 99}, "window=99: must be at most 64 with parts"),
    ):
        with pytest.raises(ParameterError) as caught:
            KernelNE(**SETTINGS | changes).fit(planted())
        assert message in str(caught.value)


def test_provenance_tells_the_parts():
    made = KernelNE(**SETTINGS, parts=3).fit(planted()).to_embedding()
    assert made.provenance["parameters"]["parts"] == 3


def test_scores_are_those_of_a_run_without_parts():
    data = load_dataset("planted:n=600,k=6,p_in=0.04,p_out=0.004,seed=3")
    scores = []
    for parts in (None, 8):
        found = [
            classify_nodes(
                MKernelNE(dim=32, parts=parts, random_state=seed, n_threads=1).fit(data.graph).embedding_,
                data.labels.indicator, train_sizes=[0.1, 0.5], n_repeats=5, random_state=0,
            ).micro_f1.mean(axis=1)
            for seed in range(2)
        ]  # fmt: skip
        scores.append(np.mean(found, axis=0))
    assert scores[0][1] > 0.6
    assert (scores[1] > scores[0] - 0.02).all()
