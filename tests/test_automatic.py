"""The default: what is filled in for a graph, and what two tables become."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_limits

from kernelne import Embedding, Graph, InputError, KernelNE, MKernelNE, ParameterError
from kernelne.estimators import estimator_of
from kernelne.model import combine_tables as making
from kernelne.model import defaults, joint_axes, neighbour_sums, smooth_rows
from kernelne.model.joint_axes import made_outside
from kernelne.training.backend import Prepared
from kernelne.training.cpu import backend as cpu
from kernelne.training.state import TrainingState

# Few walks leave a mixture where it started, and the estimator says so; some graphs have a node alone.
pytestmark = [
    pytest.mark.filterwarnings("ignore:the loss:UserWarning"),
    pytest.mark.filterwarnings("ignore:1 of:UserWarning"),
]

EDGES = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
FAST = {"dim": 4, "n_threads": 1, "random_state": 3}
PAIRS = (("schoenberg", 1.5), ("gaussian", 0.5))
#: A value for every parameter that can be left open, none of them a default of any kind.
PINNED = {
    "kernels": PAIRS, "coef_l2": 0.3, "coef_spread": 0.7, "walks_per_node": 7, "walk_length": 6, "l2": 0.004,
    "window_decay": 0.8, "n_negative": 3, "shared_negatives": 9, "learning_rate": 0.07, "vectors": "sum",
    "norm": 2.5,
}  # fmt: skip
OPEN = [name for name in PINNED if name != "kernels"]


def combine(*args, **options):
    return making.combine_in_frame(*args, **options)[0]


class Backend:
    """Stands for a module that trains: notes what it was asked for, returns tables drawn from the seed."""

    def __init__(self, loss=0.4):
        self.loss, self.configs, self.n_prepared = loss, [], 0

    def check(self, graph, config, n_tables, dim):
        pass

    def prepare(self, graph, config):
        self.n_prepared += 1
        return Prepared(config, graph.n_nodes, graph, None)

    def start(self, prepared):
        rng = np.random.default_rng(prepared.config.seed)
        tables = rng.normal(size=(2, prepared.n_nodes, prepared.config.dim)).astype(np.float32)
        return TrainingState(*tables, np.ones(len(prepared.config.kernels)))

    def run(self, prepared, state, until, on_block):
        self.configs.append(prepared.config)
        walks = np.array([1, prepared.n_walks // 2, prepared.n_walks])
        for done in walks:
            on_block(done, prepared.n_walks, self.loss)
        state.history = {"walks": walks, "pairs": np.ones(3), "loss": np.full(3, self.loss)}
        return state

    def fetch(self, state):
        return state


@pytest.fixture
def backend(monkeypatch):
    """A fake in place of the CPU's and the GPU's."""
    fake = Backend()
    monkeypatch.setattr(MKernelNE, "_backend", lambda self: fake)
    return fake


# What is left open


def test_there_is_a_value_for_every_parameter_that_can_be_left_open():
    left_open = {name for name, value in MKernelNE().get_params().items() if value is None}
    without_meaning = {"n_threads", "random_state", "progress", "checkpoint"}
    without_meaning |= {"engine", "parts", "memory", "address"}
    assert (
        left_open - without_meaning | {"kernels"} == set(defaults.AUTO) == set(defaults.PLAIN) == set(PINNED)
    )


def size(n_nodes, degree):
    """What the default reads of a graph all of whose nodes have the same degree."""
    neighbours = np.empty(round(n_nodes * degree), np.int8)
    return SimpleNamespace(
        n_nodes=n_nodes,
        neighbours=neighbours,
        memory_of_walks=degree and 1 / math.sqrt(degree),
        sides=None,
    )


def test_left_open_the_graph_decides():
    settled = defaults.settle(MKernelNE().get_params(), size(10_000, 100))
    chosen = {"walks_per_node": 75, "learning_rate": 0.42, "window_decay": 0.1, "l2": 0.0025, "norm": 1.88}
    chosen["coef_spread"] = 0.094
    assert {name: settled[name] for name in defaults.AUTO} == defaults.AUTO | chosen
    assert settled["kernels"] == tuple(("gaussian", sigma) for sigma in (1.25, 5.0))
    given = MKernelNE().get_params()
    assert settled.keys() == given.keys()
    assert all(settled[name] is given[name] for name in given.keys() - defaults.AUTO.keys())


def test_what_is_known_without_the_graph_is_for_a_small_sparse_one():
    known = defaults.settle(MKernelNE().get_params())
    assert known == defaults.settle(MKernelNE().get_params(), size(2_000, 4)) | {"norm": 3.5}


@pytest.mark.parametrize("n", [2_000, 50_000])
def test_walks_forget_faster_in_dense_graphs(n):
    degrees = [0, 1, 3, 4, 25, 49, 64, 100, 900]
    found = [defaults.settle(MKernelNE().get_params(), size(n, degree)) for degree in degrees]
    walks = [each["walks_per_node"] for each in found]
    assert walks == [50, 50, 50, 50, 50, 70, 75, 75, 75]
    rates = [each["learning_rate"] for each in found]
    assert rates == [0.2] * 5 + [0.22, 0.27, 0.42, 0.5]
    decays = [each["window_decay"] for each in found]
    assert decays == [0.05, 0.8, 0.58, 0.5, 0.2, 0.14, 0.12, 0.1, 0.05]
    assert [each["l2"] for each in found] == [0.01] * 5 + [0.0051, 0.0039, 0.0025, 0.00028]
    assert [each["coef_spread"] for each in found] == [1.5] * 5 + [0.39, 0.23, 0.094, 0.0012]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_window_is_what_a_walk_remembers(weighted, directed):
    """The root mean square of the singular values of D^-½ A D^-½."""
    rng = np.random.default_rng(3)
    matrix = (rng.random((60, 60)) < 0.1) * (rng.uniform(0.1, 5, (60, 60)) if weighted else 1.0)
    np.fill_diagonal(matrix, 0)
    matrix = matrix if directed else np.maximum(matrix, matrix.T)
    graph = Graph.from_scipy(scipy.sparse.csr_array(matrix), directed=directed)
    scales = [1 / np.sqrt(np.where((sums := matrix.sum(axis=axis)) > 0, sums, np.inf)) for axis in (1, 0)]
    values = np.linalg.svd(scales[0][:, None] * matrix * scales[1], compute_uv=False)
    found = MKernelNE().config(graph).window_decay
    assert found == pytest.approx(np.sqrt((values**2).mean()), rel=0.05)


@pytest.mark.parametrize(("n_negative", "l2"), [(0, 0.01), (5, 0.01), (11, 0.005), (59, 0.001)])
def test_many_negatives_are_not_penalised_more_than_few(n_negative, l2):
    assert defaults.settle(MKernelNE(n_negative=n_negative).get_params(), size(1_000, 4))["l2"] == l2


def test_large_graphs_have_fewer_walks_and_small_ones_more():
    sizes = [4, 10, 250, 1_000, 50_000, 400_000, 50_000_000]
    walks = [defaults.settle(MKernelNE().get_params(), size(n, 4))["walks_per_node"] for n in sizes]
    assert walks == [1118, 707, 141, 71, 50, 25, 5]
    rates = [defaults.settle(MKernelNE().get_params(), size(n, 4))["learning_rate"] for n in sizes]
    assert rates == [0.2, 0.2, 0.2, 0.2, 0.2, 0.4, 0.5]


def test_fewer_walks_take_longer_steps():
    for walks, rate in ((1, 0.5), (10, 0.5), (40, 0.25), (64, 0.16), (120, 0.083), (10**6, 1e-4)):
        settled = defaults.settle(MKernelNE(walks_per_node=walks).get_params(), size(2_000, 4))
        assert settled["learning_rate"] == rate


@pytest.mark.parametrize("kernels", [PAIRS, list(PAIRS), defaults.AUTO["kernels"]])
def test_with_kernels_given_the_rest_is_plain(kernels):
    settled = defaults.settle(MKernelNE(kernels=kernels).get_params(), size(10_000, 9))
    assert settled["kernels"] is kernels
    plain = {name: settled[name] for name in OPEN}
    assert plain == {name: defaults.PLAIN[name] for name in OPEN}
    assert (plain["walks_per_node"], plain["l2"]) == (80, 0.01)
    assert (plain["vectors"], plain["norm"]) == ("center", None)


@pytest.mark.parametrize("kernels", ["auto", PAIRS])
@pytest.mark.parametrize("name", OPEN)
def test_what_is_given_is_kept(name, kernels):
    before = defaults.settle(MKernelNE(kernels=kernels).get_params(), size(50, 4))
    after = defaults.settle(MKernelNE(kernels=kernels, **{name: PINNED[name]}).get_params(), size(50, 4))
    follows = {"learning_rate": after["learning_rate"]} if name == "walks_per_node" else {}
    assert after == before | follows | {name: PINNED[name]}
    assert before[name] != PINNED[name]


@pytest.mark.parametrize("name", [*OPEN, "kernels"])
def test_what_is_given_is_trained_with(backend, name):
    model = MKernelNE(**FAST, **{name: PINNED[name]}).fit(EDGES)
    assert name not in model.chosen_
    if name in ("vectors", "norm"):
        settled = {"vectors": "joint", "norm": 4.0} | {name: PINNED[name]}
        made = combine(model.graph_, model.center_, model.context_, **settled)
        np.testing.assert_array_equal(model.embedding_, made)
    else:
        assert getattr(backend.configs[-1], name) == PINNED[name]


def test_one_kernel_has_nothing_open():
    assert KernelNE(**FAST, walks_per_node=2).fit(EDGES).chosen_ == {}


def test_length_of_rows_shrinks_with_the_graph():
    sizes = [1, 10, 625, 2_000, 10_000, 160_000, 10**6, 10**9]
    lengths = [defaults._length(n) for n in sizes]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[:3] == [4.0] * 3
    assert lengths[-3:] == [1.0] * 3
    assert defaults._length(2_000) == pytest.approx(75 / 2_000**0.4, rel=0.005)
    assert defaults._length(100_000 // 3) == 1.16


# What was chosen


def test_chosen_is_what_was_open_and_what_training_used(backend):
    model = MKernelNE(**FAST).fit(EDGES)
    assert set(model.chosen_) == set(PINNED)
    (used,) = backend.configs
    for name in set(PINNED) - {"vectors", "norm"}:
        assert model.chosen_[name] == getattr(used, name), name
    assert model.to_embedding().provenance["parameters"]["l2"] == model.chosen_["l2"]
    assert model.kernels_ == model.chosen_["kernels"]
    assert np.linalg.norm(model.embedding_, axis=1).mean() == pytest.approx(model.chosen_["norm"], rel=1e-5)
    assert model.get_params() == MKernelNE(**FAST).get_params()


def test_chosen_leaves_out_what_was_given(backend):
    given = {name: PINNED[name] for name in ("walks_per_node", "vectors", "coef_l2")}
    assert set(MKernelNE(**FAST, **given).fit(EDGES).chosen_) == set(PINNED) - set(given)
    assert MKernelNE(**FAST, **PINNED).fit(EDGES).chosen_ == {}
    plain = MKernelNE(**FAST, kernels=PAIRS, l2=0.5).fit(EDGES).chosen_
    assert plain == {name: defaults.PLAIN[name] for name in OPEN if name not in ("l2", "norm")}


def test_the_gpu_is_given_the_same_choices(backend, monkeypatch):
    on_cpu = MKernelNE(**FAST).fit(EDGES)
    cpu_configs, backend.configs = backend.configs, []
    asked = []
    monkeypatch.setattr(MKernelNE, "_backend", lambda self: asked.append(self.backend) or backend)
    on_gpu = MKernelNE(**FAST, backend="gpu").fit(EDGES)
    assert set(asked) == {"gpu"}
    assert backend.configs == cpu_configs
    assert len(cpu_configs) == 1
    assert on_gpu.chosen_ == on_cpu.chosen_
    np.testing.assert_array_equal(on_gpu.embedding_, on_cpu.embedding_)
    assert on_gpu.to_embedding().provenance["backend"] == "gpu"


def test_the_same_seed_gives_the_same_bits(ring):
    params = {"dim": 8, "deterministic": True}
    first, second, other = (
        MKernelNE(**params, n_threads=threads, random_state=seed).fit(ring)
        for threads, seed in ((1, 5), (2, 5), (1, 6))
    )
    assert first.chosen_ == second.chosen_
    np.testing.assert_array_equal(first.embedding_, second.embedding_)
    assert (first.embedding_ != other.embedding_).any()


@pytest.mark.parametrize("vectors", [None, "concat"])
def test_provenance_makes_the_same_vectors(ring, monkeypatch, vectors):
    params = {"dim": 8, "n_threads": 1, "random_state": 5, "vectors": vectors}
    model = MKernelNE(**params).fit(ring)
    provenance = model.to_embedding().provenance
    configs = []
    monkeypatch.setattr(cpu, "run", _noting(cpu.run, configs))
    again = estimator_of(provenance).set_params(random_state=provenance["seed"], n_threads=1)
    again.fit(ring)
    assert len(configs) == 1
    assert again.chosen_ == {}
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    np.testing.assert_array_equal(again.context_, model.context_)


def _noting(run, configs):
    def noted(prepared, *more):
        configs.append(prepared.config)
        return run(prepared, *more)

    return noted


# The embedding made of two tables


@pytest.fixture(params=["undirected", "undirected weighted", "directed", "directed weighted"])
def graph(request):
    """Seven nodes, the last alone; with a self-loop and, if directed, a node that has only arcs to it."""
    ends = [0, 1, 2, 2, 3, 4, 4], [1, 2, 0, 3, 4, 5, 4]
    weights = [0.5, 3.0, 1.0, 0.25, 2.0, 7.0, 1.5] if "weighted" in request.param else None
    directed = not request.param.startswith("un")
    return Graph.from_edges(*ends, weights=weights, nodes=range(7), directed=directed)


def wanted(graph, center, context, vectors):
    """What the embedding should be but for its length, in float64."""
    center, context = center.astype(np.float64), context.astype(np.float64)
    if vectors == "center":
        return center
    if vectors == "concat":
        return np.column_stack([center, context])
    total = center + context
    if vectors == "sum":
        return total
    links = graph.to_scipy().toarray().astype(np.float64)
    if vectors == "joint" and graph.directed:
        links = links + links.T
    around = [np.zeros_like(center), np.zeros_like(context)]
    for node in range(graph.n_nodes):
        if links[node].any():
            for mean, table in zip(around, (center, context), strict=True):
                mean[node] = np.average(table, axis=0, weights=links[node])
    if vectors == "smooth":
        return total + around[0] + around[1]
    both = np.column_stack([center + 5 * around[1], context + 5 * around[0]])
    u, sizes, axes = np.linalg.svd(both, full_matrices=False)
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    sizes = sizes[0] * (sizes / sizes[0]) ** 0.85
    return smoothed(graph, links, (u * sizes * signs)[:, : center.shape[1]])


def smoothed(graph, links, rows):
    """The rows smoothed over nodes an even number of steps away, in float64."""
    steps = links / np.maximum(links.sum(axis=1, keepdims=True), 1e-300)
    chances = links / np.sqrt(np.outer(*(links.sum(axis=a) for a in (1, 0))) + 1e-300)
    weight = min(16 * (np.square(chances).sum() / len(links)) ** 2, 0.95)
    n_terms = max(round(math.log(0.5) / math.log(weight)), 1) if weight >= 0.3 else 0
    terms = [rows]
    for _ in range(n_terms):
        terms.append(float(f"{weight:.3g}") * (steps @ (steps @ terms[-1])))
    return sum(terms)


@pytest.mark.parametrize("norm", [None, 1.7])
@pytest.mark.parametrize("vectors", making.VECTORS)
def test_combine_is_its_formula(graph, vectors, norm):
    tables = np.random.default_rng(1).normal(size=(2, 7, 3)).astype(np.float32)
    before = tables.tobytes()
    made = combine(graph, *tables, vectors, norm)
    assert tables.tobytes() == before
    expected = wanted(graph, *tables, vectors)
    if norm is not None:
        expected *= norm / np.linalg.norm(expected, axis=1).mean()
        assert np.linalg.norm(made, axis=1).mean() == pytest.approx(norm, rel=1e-6)
        assert not np.shares_memory(made, tables)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("vectors", making.VECTORS)
def test_the_trained_tables_stay_as_trained(vectors, monkeypatch):
    kept = []
    real = cpu.run

    def run(*args):
        trained = real(*args)
        kept.append((trained.center.tobytes(), trained.context.tobytes()))
        return trained

    monkeypatch.setattr(cpu, "run", run)
    model = MKernelNE(**FAST, walks_per_node=3, vectors=vectors).fit(EDGES)
    assert (model.center_.tobytes(), model.context_.tobytes()) == kept[-1]
    assert model.embedding_.tobytes() != kept[-1][0]


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8])
def test_blocks_change_nothing(graph, rows, monkeypatch):
    tables = np.random.default_rng(2).normal(size=(2, 7, 3)).astype(np.float32)
    whole, joint = (combine(graph, *tables, vectors, 2.0) for vectors in ("smooth", "joint"))
    monkeypatch.setattr(neighbour_sums, "BLOCK_NODES", rows)
    np.testing.assert_array_equal(combine(graph, *tables, "smooth", 2.0), whole)
    np.testing.assert_allclose(combine(graph, *tables, "joint", 2.0), joint, atol=1e-5)


def test_directions_of_some_nodes_do_for_all(ring, monkeypatch):
    tables = np.random.default_rng(2).normal(size=(2, 64, 3)).astype(np.float32) * np.float32([9, 3, 1])
    whole = combine(ring, *tables, "joint", None)
    monkeypatch.setattr(making, "_DIRECTIONS_FROM", 32)
    some = combine(ring, *tables, "joint", None)
    assert (whole != some).any()
    assert np.corrcoef((some @ some.T).ravel(), (whole @ whole.T).ravel())[0, 1] > 0.9


@pytest.fixture
def rough(monkeypatch):
    """Rows are not smoothed."""
    monkeypatch.setattr(smooth_rows, "_MOST", 0.0)


@pytest.mark.parametrize("dim", [2, 15, 16, 40])
def test_joint_rows_have_one_length_unless_columns_are_few(ring, dim, rough, monkeypatch):
    tables = np.random.default_rng(6).normal(size=(2, 64, dim)).astype(np.float32)
    made = combine(ring, *tables, "joint", 3.0)
    lengths = np.linalg.norm(made, axis=1)
    assert lengths.mean() == pytest.approx(3.0, rel=1e-5)
    assert (lengths.std() < 1e-5) == (dim >= 16)
    monkeypatch.setattr(joint_axes, "EQUAL_FROM", 1000)
    plain = combine(ring, *tables, "joint", 3.0)
    rows = [table / np.linalg.norm(table, axis=1)[:, None] for table in (made, plain)]
    np.testing.assert_allclose(rows[0] @ rows[0].T, rows[1] @ rows[1].T, atol=1e-5)


def test_joint_keeps_two_roles_apart_and_is_smooth_where_there_is_one(ring, rough):
    rng = np.random.default_rng(5)
    one, other = rng.normal(size=(2, 64, 3)).astype(np.float32)

    def cosines(table):
        return table @ table.T / np.outer(*2 * [np.linalg.norm(table, axis=1)])

    def powered(table):
        u, sizes, axes = np.linalg.svd(table, full_matrices=False)
        return u * sizes**0.85 @ axes

    near = combine(ring, one, 0 * one, "smooth", None) - one
    alike = combine(ring, one, one, "joint", None)
    np.testing.assert_allclose(cosines(alike), cosines(powered(one + 5 * near)), rtol=1e-4, atol=1e-5)
    opposite = combine(ring, other, -other, "joint", None)
    assert np.linalg.norm(opposite, axis=1).min() > 0
    assert not combine(ring, other, -other, "smooth", None).any()


def _components(sizes, seed=0):
    """Rings of these sizes, apart from each other, the nodes in an order at random."""
    starts = np.cumsum([0, *sizes[:-1]])
    edges = [
        (at + i, at + (i + 1) % size) for at, size in zip(starts, sizes, strict=True) for i in range(size)
    ]
    names = np.random.default_rng(seed).permutation(sum(sizes))
    component = np.empty(sum(sizes), int)
    component[names] = np.repeat(np.arange(len(sizes)), sizes)
    sources, targets = names[np.array(edges)].T
    return Graph.from_edges(sources, targets, nodes=range(sum(sizes))), component


@pytest.mark.parametrize("slabs", [1, 3])
@pytest.mark.parametrize("sizes", [[60, 30, 9, 3, 3, 1], [40, 40, 20], [5] * 20], ids=str)
def test_components_are_orthogonal_to_what_holds_most_of_the_largest(sizes, slabs, rough):
    dim = 16
    graph, component = _components(sizes)
    # Of low rank, so that there are directions left for the others.
    rng = np.random.default_rng(1)
    low = rng.normal(size=(2, graph.n_nodes, 6)) @ rng.normal(size=(6, dim))
    tables = (low + 0.05 * rng.normal(size=low.shape)).astype(np.float32)
    made, frame = making.combine_in_frame(graph, *tables, "joint", 2.0, None, slabs)
    largest = component == (component[0] if sizes[1] == sizes[0] else 0)  # of equal ones, the first node's
    inside, outside = made[largest].astype(float), made[~largest].astype(float)
    _, kept, directions = np.linalg.svd(inside, full_matrices=False)
    held = min(int(np.searchsorted(np.cumsum(kept**2), 0.98 * (kept**2).sum())) + 1, dim // 2)
    np.testing.assert_allclose(outside @ directions[:held].T, 0, atol=1e-3)
    # Lengths grow with the component, but for what all rows outside have in common, which none has inside.
    common = frame.axes[-1, dim:] * frame.scale
    assert np.linalg.norm(common) == pytest.approx(0.5 * frame.scale, rel=1e-5)
    np.testing.assert_allclose(inside @ common, 0, atol=1e-4)
    np.testing.assert_allclose(outside @ common, common @ common, rtol=1e-4)
    of_component = np.bincount(component)[component][~largest]
    bounds = np.sqrt(max(sizes) / of_component)  # in a component as large as the largest they are the same
    lengths = frame.scale * np.minimum(0.6 * np.minimum(of_component, 10) ** 0.75, bounds)
    np.testing.assert_allclose(np.linalg.norm(outside - common, axis=1), lengths, rtol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(inside, axis=1), frame.scale, rtol=1e-4)
    assert np.linalg.norm(made, axis=1).mean() == pytest.approx(2.0, rel=1e-5)
    # Some rows are made as all are, and the vectors tell how.
    assert frame.axes.shape == (2 * dim + 1, 2 * dim)
    rows = np.array([3, 0, 7])
    some = making.combine_some(graph, *tables, "joint", frame, rows)
    np.testing.assert_allclose(some, made[rows], atol=1e-5)
    np.testing.assert_array_equal(made_outside(made, frame.axes), ~largest)
    # A graph of one component needs no second axes.
    connected = Graph.from_edges(*np.array([(i, i + 1) for i in range(graph.n_nodes - 1)]).T)
    assert making.combine_in_frame(connected, *tables, "joint", 2.0)[1].axes.shape == (2 * dim, dim)


@pytest.mark.parametrize(("dim", "alike"), [(16, True), (50, True), (128, True), (15, False)])
@pytest.mark.parametrize("slabs", [1, 3])
def test_columns_of_joint_vectors_vary_alike(dim, alike, slabs):
    """Scaling them to one variance does not raise the noise in the smallest directions."""
    graph, _ = _components([900])
    rng = np.random.default_rng(5)
    sizes = np.arange(1, dim + 1.0) ** -1
    center = (rng.normal(size=(900, dim)) * sizes) @ np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    tables = np.stack([center, center + 0.01 * rng.normal(size=center.shape)]).astype(np.float32)
    made, _ = making.combine_in_frame(graph, *tables, "joint", 2.0, None, slabs)
    spreads = made.std(axis=0)
    assert (spreads.max() / spreads.min() < 1.5) == alike
    singular = np.linalg.svd(made - made.mean(axis=0), compute_uv=False)
    assert singular[0] > 4 * singular[-1]


@pytest.mark.parametrize("slabs", [1, 3])
def test_bits_do_not_depend_on_the_threads_of_blas(slabs):
    graph, _ = _components([9_000, 90])
    tables = np.random.default_rng(4).normal(size=(2, graph.n_nodes, 128)).astype(np.float32)
    made = []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            made.append(making.combine_in_frame(graph, *tables, "joint", 2.0, None, slabs)[0])
    np.testing.assert_array_equal(*made)


@pytest.mark.parametrize("slabs", [1, 2])
def test_the_largest_component_may_lie_between_the_sampled_rows(monkeypatch, slabs):
    """Every fourth row is sampled, and the largest component holds none of these."""
    monkeypatch.setattr(making, "_DIRECTIONS_FROM", 16)
    tables = np.random.default_rng(3).normal(size=(2, 64, 16)).astype(np.float32)
    graph = Graph.from_edges([1, 5, 9], [5, 9, 13], nodes=range(64))
    made, frame = making.combine_in_frame(graph, *tables, "joint", 1.0, None, slabs)
    assert np.isfinite(made).all()
    inside = np.array([1, 5, 9, 13])
    others = np.setdiff1d(np.arange(64), inside)
    assert np.abs(made[others] @ made[inside].T).max() < np.abs(made[inside] @ made[inside].T).max() / 2
    assert frame.axes.shape == (33, 32)


def test_axes_of_older_files_make_all_rows_alike():
    graph, _ = _components([9, 4])
    tables = np.random.default_rng(2).normal(size=(2, 13, 16)).astype(np.float32)
    frame = making.combine_in_frame(graph, *tables, "joint", 1.0)[1]
    old = frame._replace(axes=frame.axes[:-1, :16])
    rows = np.arange(13)
    made, before = (making.combine_some(graph, *tables, "joint", f, rows) for f in (frame, old))
    differ = np.abs(made - before).max(axis=1) > 1e-3
    assert differ.sum() == 4


@pytest.mark.parametrize("scale", [1e-44, 1e-38, 3e38])
def test_smoothing_knows_no_unit_of_weight(scale):
    # Sums of such weights lie beyond float32; walks do not mind, so smoothing must not.
    ends = [0, 0, 0, 1], [1, 2, 3, 2]
    tables = 10 * np.random.default_rng(3).normal(size=(2, 4, 3)).astype(np.float32)
    plain, scaled = (
        combine(Graph.from_edges(*ends, weights=4 * [weight]), *tables, "smooth", None)
        for weight in (2.0, scale)
    )
    np.testing.assert_allclose(scaled, plain, rtol=1e-5)


@pytest.mark.parametrize("vectors", making.VECTORS)
def test_vectors_of_nothing_stay_nothing(vectors):
    made = combine(Graph.from_edges([0], [1]), *np.zeros((2, 2, 3), np.float32), vectors, 2.0)
    assert not made.any()


@pytest.mark.parametrize("model", [KernelNE, MKernelNE])
def test_both_tables_side_by_side_have_the_columns_asked_for(model):
    fitted = model(**FAST | {"dim": 6}, walks_per_node=2, vectors="concat").fit(EDGES)
    assert fitted.embedding_.shape == (6, 6)
    assert fitted.center_.shape == fitted.context_.shape == (6, 3)
    embedding = fitted.to_embedding()
    assert embedding.provenance["parameters"]["dim"] == embedding.dim == 6
    assert embedding.center.tobytes() == fitted.center_.tobytes()


@pytest.mark.parametrize(
    "tables",
    [{"center": (2, 2)}, {"context": (2, 2)}, {"center": (2, 2), "context": (2, 4)},
     {"center": (2, 3), "context": (2, 3)}, {"center": (1, 2), "context": (1, 2)}],
)  # fmt: skip
def test_tables_that_make_no_whole_are_refused(tables):
    made = {name: np.ones(shape, np.float32) for name, shape in tables.items()}
    with pytest.raises(InputError, match=r"c.* has shape .* vectors have \(2, 4\)"):
        Embedding(np.ones((2, 4), np.float32), [0, 1], **made)


@pytest.mark.parametrize("model", [KernelNE, MKernelNE])
def test_one_kernel_takes_vectors_and_norm_too(model):
    fitted = model(**FAST, walks_per_node=2, vectors="smooth", norm=3).fit(EDGES)
    made = combine(fitted.graph_, fitted.center_, fitted.context_, "smooth", 3)
    np.testing.assert_array_equal(fitted.embedding_, made)
    assert fitted.to_embedding().provenance["parameters"]["norm"] == 3


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"vectors": "both"}, ["vectors='both'", "must be one of center, sum, concat, smooth"]),
        ({"vectors": 1}, ["vectors=1", "must be one of"]),
        ({"vectors": "concat", "dim": 5}, ["dim=5", "must be even"]),
        ({"vectors": "concat", "dim": np.int64(5)}, ["dim=", "must be even"]),
        ({"vectors": "concat", "dim": 0}, ["dim=0", "at least 1"]),
        ({"vectors": "concat", "dim": 2.5}, ["dim=2.5", "whole number"]),
        ({"norm": 0}, ["norm=0", "positive"]),
        ({"norm": -1.5}, ["norm=-1.5", "positive"]),
        ({"norm": math.nan}, ["norm=nan", "positive"]),
        ({"norm": math.inf}, ["norm=inf", "positive"]),
        ({"norm": True}, ["norm=True", "positive"]),
        ({"norm": "2"}, ["norm='2'", "positive"]),
    ],
)
@pytest.mark.parametrize("model", [KernelNE, MKernelNE])
def test_bad_output_is_told_before_training(model, params, words, monkeypatch):
    monkeypatch.setattr(cpu, "prepare", None)
    with pytest.raises(ParameterError) as caught:
        model(**FAST | params).fit(EDGES)
    assert all(word in str(caught.value) for word in words)
    assert caught.value.name in params


@pytest.mark.parametrize("norm", [2, np.int64(2), np.float32(2)])
def test_any_number_will_do_as_norm(norm):
    model = MKernelNE(**FAST, walks_per_node=2, norm=norm).fit(EDGES)
    assert np.linalg.norm(model.embedding_, axis=1).mean() == pytest.approx(2, rel=1e-5)
    assert model.to_embedding().provenance["parameters"]["norm"] == 2


def test_rows_can_be_left_as_trained_with_automatic_kernels(ring):
    """None leaves the length to the graph there, so that there is a word for it."""
    params = {"dim": 8, "walks_per_node": 20, "n_threads": 1, "random_state": 1, "vectors": "center"}
    model = MKernelNE(**params, norm="trained").fit(ring)
    np.testing.assert_array_equal(model.embedding_, model.center_)
    assert "norm" not in model.chosen_
    assert (MKernelNE(**params).fit(ring).embedding_ != model.center_).any()
    again = estimator_of(model.to_embedding().provenance).set_params(n_threads=1, random_state=1)
    np.testing.assert_array_equal(again.fit(ring).embedding_, model.embedding_)


def test_the_embedding_is_made_when_it_is_asked_for(ring, monkeypatch):
    """`fit` holds the two tables and no more; what is made of them is kept."""
    made = []
    real = making.combine_in_frame
    monkeypatch.setattr(making, "combine_in_frame", lambda *args: made.append(1) or real(*args))
    model = MKernelNE(dim=8, walks_per_node=20, random_state=1).fit(ring)
    assert not made
    assert model.embedding_ is model.embedding_
    assert len(made) == 1
    assert model.fit(ring).embedding_ is not None
    assert len(made) == 2


@pytest.mark.parametrize(
    ("model", "tables"),
    [
        (KernelNE(), 2),
        (KernelNE(norm=1.0), 3),
        (KernelNE(vectors="sum"), 3),
        (KernelNE(vectors="concat"), 4),
        (MKernelNE(kernels=PAIRS), 2),
        (KernelNE(norm="trained"), 2),
        (MKernelNE(), 3.5),
        (MKernelNE(vectors="center", norm="trained"), 2),
        (MKernelNE(vectors="center"), 3),  # the graph will say how long its rows are
    ],
)
def test_memory_counts_the_tables_of_the_embedding(model, tables):
    assert model.n_tables() == tables


# The paper's models


def test_the_papers_own_steps_of_the_coefficients():
    ours, strict = MKernelNE.paper().config(), MKernelNE.paper("schoenberg", strict=True, l2=0.5).config()
    assert (ours.coef_l2, ours.coef_spread) == (0.02, 1.5)
    assert (strict.coef_l2, strict.coef_spread, strict.l2) == (0.1, 0.0, 0.5)


def test_the_papers_models():
    assert KernelNE.paper().config().kernels == (("gaussian", 2.0),)
    assert KernelNE.paper("schoenberg").config().kernels == (("schoenberg", 2.0),)
    assert KernelNE.paper().get_params() == KernelNE().get_params()
    assert MKernelNE.paper().kernels == tuple(("gaussian", sigma) for sigma in (1.0, 2.0, 3.0))
    assert MKernelNE.paper("schoenberg").kernels == tuple(("schoenberg", sigma) for sigma in (1.0, 1.5, 2.0))


def test_the_papers_models_leave_nothing_to_the_graph(backend):
    model = MKernelNE.paper(**FAST).fit(EDGES)
    assert len(backend.configs) == 1
    assert backend.configs[0].l2 == 0.01
    assert backend.configs[0].walks_per_node == 80
    assert model.embedding_ is model.center_


def test_the_paper_has_narrower_gaussians_for_ppi():
    assert MKernelNE.paper(dataset="ppi").kernels == tuple(("gaussian", sigma) for sigma in (0.5, 1.0, 1.5))
    assert MKernelNE.paper(dataset="cora").kernels == MKernelNE.paper().kernels
    assert MKernelNE.paper("schoenberg", "ppi").kernels == MKernelNE.paper("schoenberg").kernels


def test_changes_to_the_papers_models():
    assert KernelNE.paper("schoenberg", sigma=1.0, dim=9).get_params().items() >= {
        ("kernel", "schoenberg"), ("sigma", 1.0), ("dim", 9),
    }  # fmt: skip
    model = MKernelNE.paper("schoenberg", coef_spread=0.0, random_state=4)
    assert (model.coef_spread, model.random_state) == (0.0, 4)
    with pytest.raises(TypeError, match="no_such"):
        MKernelNE.paper(no_such=1)


@pytest.mark.parametrize("model", [KernelNE, MKernelNE])
@pytest.mark.parametrize("kernel", ["inverse_multiquadric", "cubic", None])
def test_kernels_that_the_paper_does_not_have(model, kernel):
    with pytest.raises(ParameterError, match="must be gaussian or schoenberg, the paper's kernels") as caught:
        model.paper(kernel)
    assert f"kernel={kernel!r}" in str(caught.value)
