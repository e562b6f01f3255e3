"""The default that finds its own way: what is filled in, what the pilot decides, what two tables become."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernelne import Embedding, Graph, InputError, KernelNE, MKernelNE, ParameterError
from kernelne.estimators import estimator_of
from kernelne.model import combine_tables as making
from kernelne.model import defaults
from kernelne.training import pilot
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
    "vectors": "sum", "norm": 2.5,
}  # fmt: skip
OPEN = [name for name in PINNED if name != "kernels"]


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
    without_meaning = {"n_threads", "random_state", "progress"}
    assert (
        left_open - without_meaning | {"kernels"} == set(defaults.AUTO) == set(defaults.PLAIN) == set(PINNED)
    )


def test_left_open_the_graph_decides():
    settled = defaults.settle(MKernelNE().get_params(), 10_000)
    assert {name: settled[name] for name in defaults.AUTO} == defaults.AUTO | {"norm": 2.0}
    assert settled["kernels"] == tuple(("gaussian", sigma) for sigma in (1.0, 2.0, 3.0))
    assert (settled["walks_per_node"], settled["vectors"]) == (170, "smooth")
    given = MKernelNE().get_params()
    assert settled.keys() == given.keys()
    assert all(settled[name] is given[name] for name in given.keys() - defaults.AUTO.keys())


@pytest.mark.parametrize("kernels", [PAIRS, list(PAIRS), defaults.AUTO["kernels"]])
def test_with_kernels_given_the_rest_is_plain(kernels):
    settled = defaults.settle(MKernelNE(kernels=kernels).get_params(), 10_000)
    assert settled["kernels"] is kernels
    plain = {name: settled[name] for name in OPEN}
    assert plain == {name: defaults.PLAIN[name] for name in OPEN}
    assert (plain["walks_per_node"], plain["l2"]) == (80, 0.01)
    assert (plain["vectors"], plain["norm"]) == ("center", None)


@pytest.mark.parametrize("kernels", ["auto", PAIRS])
@pytest.mark.parametrize("name", OPEN)
def test_what_is_given_is_kept(name, kernels):
    before = defaults.settle(MKernelNE(kernels=kernels).get_params(), 50)
    after = defaults.settle(MKernelNE(kernels=kernels, **{name: PINNED[name]}).get_params(), 50)
    assert after == before | {name: PINNED[name]}
    assert before[name] != PINNED[name]


@pytest.mark.parametrize("name", [*OPEN, "kernels"])
def test_what_is_given_is_trained_with(backend, name):
    model = MKernelNE(**FAST, **{name: PINNED[name]}).fit(EDGES)
    assert name not in model.chosen_
    if name in ("vectors", "norm"):
        settled = {"vectors": "smooth", "norm": 4.0} | {name: PINNED[name]}
        made = making.combine(model.graph_, model.center_, model.context_, **settled)
        np.testing.assert_array_equal(model.embedding_, made)
    else:
        assert getattr(backend.configs[-1], name) == PINNED[name]


def test_with_kernels_given_there_is_no_pilot(backend):
    model = MKernelNE(**FAST, kernels=PAIRS).fit(EDGES)
    assert len(backend.configs) == 1
    assert "signal" not in model.chosen_


def test_one_kernel_has_nothing_open(monkeypatch):
    monkeypatch.setattr("kernelne.estimators.pilot", None)
    assert KernelNE(**FAST, walks_per_node=2).fit(EDGES).chosen_ == {}


def test_length_of_rows_shrinks_with_the_graph():
    sizes = [1, 10, 625, 2_000, 10_000, 160_000, 10**6, 10**9]
    lengths = [defaults._length(n) for n in sizes]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[:3] == [4.0] * 3
    assert lengths[-3:] == [1.0] * 3
    assert defaults._length(2_000) == pytest.approx(20 / 2_000**0.25, rel=0.005)
    assert defaults._length(10_000) == 2.0


# The pilot


def run_pilot(loss, **changes):
    model = MKernelNE(**FAST | changes)
    config, fake = model.config(), Backend(loss)
    prepared = Prepared(config, 5, None, None)
    settings, found, _ = pilot.pilot(fake, prepared, model.get_params(), lambda done, total, loss: None)
    return config, settings, found, fake.configs


def test_decay_grows_with_what_walks_tell():
    alike = 5 / 6  # the loss of vectors all alike, with five negatives
    losses = [math.nan, 2 * alike, alike, 0.75 * alike, 0.5 * alike, 0.25 * alike, 0.0, -1.0]
    found = [run_pilot(loss)[2] for loss in losses]
    assert [f["signal"] for f in found] == [0, 0, 0, 0.25, 0.5, 0.75, 1, 1]
    decays = [f["l2"] for f in found]
    straight = [0.003, 0.003, 0.003, 0.00475, 0.0065, 0.00825, 0.01, 0.01]
    assert decays == pytest.approx(straight, rel=0.02)
    assert sorted(set(decays)) == decays[2:-1]


def test_the_widest_kernel_goes_where_walks_tell_much():
    alike = 5 / 6
    for loss, n_kernels in ((math.nan, 3), (alike, 3), (0.76 * alike, 3), (0.74 * alike, 2), (0.0, 2)):
        config, settings, found, _ = run_pilot(loss)
        assert found["kernels"] == settings.kernels == config.kernels[:n_kernels]
        assert config.kernels == defaults.AUTO["kernels"]


def test_three_kernels_have_fewer_walks():
    assert run_pilot(0.1)[1].walks_per_node == defaults.AUTO["walks_per_node"] == 170
    _, settings, found, _ = run_pilot(0.8)
    assert settings.walks_per_node == found["walks_per_node"] == 160
    assert run_pilot(0.8, walks_per_node=12)[1].walks_per_node == 12


def test_a_decay_that_is_given_stays():
    config, settings, found, _ = run_pilot(0.1, l2=0.004)
    assert config.l2 == settings.l2 == 0.004
    assert "l2" not in found


def test_the_loss_of_vectors_all_alike_follows_the_negatives():
    assert run_pilot(0.5, n_negative=1)[2]["signal"] == 0
    assert run_pilot(0.5, n_negative=9)[2]["signal"] == round(1 - 0.5 / 0.9, 3)


@pytest.mark.parametrize(("walks", "few"), [(160, 16), (47, 5), (3, 1), (1, 1)])
def test_the_pilot_has_a_tenth_of_the_walks_and_changes_nothing_else(walks, few):
    config, settings, found, (first,) = run_pilot(0.3, walks_per_node=walks)
    changed = {"walks_per_node": few}
    assert vars(first) == vars(config) | changed
    assert vars(settings) == vars(config) | {"l2": found["l2"], "kernels": found["kernels"]}
    assert found["l2"] > config.l2 == defaults.AUTO["l2"]


def test_progress_runs_on_through_pilot_and_run():
    seen = []
    model = MKernelNE(**FAST, walks_per_node=40, progress=lambda *told: seen.append(told)).fit(EDGES)
    done = [told[0] for told in seen]
    assert done == sorted(set(done))
    assert {told[1] for told in seen} == {6 * 4 + 6 * 40}
    assert 6 * 4 in done  # the end of the pilot
    assert done[-1] == 6 * 4 + 6 * 40
    assert seen[-1][2] == pytest.approx(model.history_["loss"][-1])
    assert model.history_["walks"][-1] == 6 * 40


@pytest.mark.parametrize(("params", "walks"), [({}, 187), ({"walks_per_node": 3}, 4)])
def test_walks_of_pilot_and_run_are_counted(params, walks):
    model = MKernelNE(**params)
    assert model.n_walks() == walks
    assert model.set_params(kernels=[("gaussian", 1.0)]).n_walks() == params.get("walks_per_node", 80)


# What was chosen


def test_chosen_is_what_was_open_and_what_training_used(backend):
    model = MKernelNE(**FAST).fit(EDGES)
    assert set(model.chosen_) == {*PINNED, "signal"}
    used = backend.configs[-1]
    for name in set(PINNED) - {"vectors", "norm"}:
        assert model.chosen_[name] == getattr(used, name), name
    assert model.chosen_["signal"] == round(1 - 0.4 * 6 / 5, 3)
    assert model.chosen_["l2"] > defaults.AUTO["l2"]
    assert model.to_embedding().provenance["parameters"]["l2"] == model.chosen_["l2"]
    assert model.kernels_ == model.chosen_["kernels"]
    assert np.linalg.norm(model.embedding_, axis=1).mean() == pytest.approx(model.chosen_["norm"], rel=1e-5)
    assert model.get_params() == MKernelNE(**FAST).get_params()


def test_chosen_leaves_out_what_was_given(backend):
    given = {name: PINNED[name] for name in ("walks_per_node", "vectors", "coef_l2")}
    assert set(MKernelNE(**FAST, **given).fit(EDGES).chosen_) == {*PINNED, "signal"} - set(given)
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
    assert len(cpu_configs) == 2
    assert backend.n_prepared == 2  # once a fit: the pilot is a run on the same walks
    assert on_gpu.chosen_ == on_cpu.chosen_
    np.testing.assert_array_equal(on_gpu.embedding_, on_cpu.embedding_)
    assert on_gpu.to_embedding().provenance["backend"] == "gpu"


def test_the_same_seed_gives_the_same_bits(ring):
    params = {"dim": 8, "walks_per_node": 500, "deterministic": True}
    first, second, other = (
        MKernelNE(**params, n_threads=threads, random_state=seed).fit(ring)
        for threads, seed in ((1, 5), (2, 5), (1, 6))
    )
    assert first.chosen_ == second.chosen_
    assert first.chosen_["signal"] > 0
    np.testing.assert_array_equal(first.embedding_, second.embedding_)
    assert (first.embedding_ != other.embedding_).any()


@pytest.mark.parametrize("vectors", [None, "concat"])
def test_provenance_makes_the_same_vectors_without_a_pilot(ring, monkeypatch, vectors):
    params = {"dim": 8, "walks_per_node": 500, "n_threads": 1, "random_state": 5, "vectors": vectors}
    model = MKernelNE(**params).fit(ring)
    assert model.chosen_["l2"] != defaults.AUTO["l2"]
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
    made = total.copy()
    for node in range(graph.n_nodes):
        if links[node].any():
            made[node] += np.average(total, axis=0, weights=links[node])
    return made


@pytest.mark.parametrize("norm", [None, 1.7])
@pytest.mark.parametrize("vectors", making.VECTORS)
def test_combine_is_its_formula(graph, vectors, norm):
    tables = np.random.default_rng(1).normal(size=(2, 7, 3)).astype(np.float32)
    before = tables.tobytes()
    made = making.combine(graph, *tables, vectors, norm)
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
    whole = making.combine(graph, *tables, "smooth", 2.0)
    monkeypatch.setattr(making, "_BLOCK_ROWS", rows)
    np.testing.assert_array_equal(making.combine(graph, *tables, "smooth", 2.0), whole)


@pytest.mark.parametrize("scale", [1e-44, 1e-38, 3e38])
def test_smoothing_knows_no_unit_of_weight(scale):
    # Sums of such weights lie beyond float32; walks do not mind, so smoothing must not.
    ends = [0, 0, 0, 1], [1, 2, 3, 2]
    tables = 10 * np.random.default_rng(3).normal(size=(2, 4, 3)).astype(np.float32)
    plain, scaled = (
        making.combine(Graph.from_edges(*ends, weights=4 * [weight]), *tables, "smooth", None)
        for weight in (2.0, scale)
    )
    np.testing.assert_allclose(scaled, plain, rtol=1e-5)


@pytest.mark.parametrize("vectors", making.VECTORS)
def test_vectors_of_nothing_stay_nothing(vectors):
    made = making.combine(Graph.from_edges([0], [1]), *np.zeros((2, 2, 3), np.float32), vectors, 2.0)
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
    made = making.combine(fitted.graph_, fitted.center_, fitted.context_, "smooth", 3)
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
    monkeypatch.setattr(making, "combine", lambda *args, real=making.combine: made.append(1) or real(*args))
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
        (MKernelNE(), 3.25),
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
