"""Methods side by side: alike scores, failures that stay where they are, processes that end."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator

from kernelne import (
    Graph,
    InputError,
    KernelNE,
    Labels,
    MissingDependencyError,
    MKernelNE,
    ParameterError,
    classify_nodes,
    compare_methods,
    load_dataset,
    score_links,
    split_links,
)
from kernelne.baselines import GEMSEC, HOPE, ProNE
from kernelne.comparison import compare, worker
from kernelne.comparison.compare import METHODS, find_method
from kernelne.comparison.results import Comparison, MethodResult, draw_comparison, measure_label
from kernelne.evaluation.classification import shuffle


class Broken(BaseEstimator):
    """Fails on all graphs in one of several ways."""

    def __init__(self, how):
        self.how = how

    def fit(self, graph):
        if graph.n_nodes == 12:
            return self  # the ring that methods are warmed up on
        print("printed, and no part of the answer")
        if self.how == "raise":
            raise RuntimeError("what a pity")
        if self.how == "memory":
            raise MemoryError
        if self.how == "exit":
            sys.exit(3)
        if self.how == "abort":
            os.write(2, b"aborted\nlast words\n")
            os._exit(4)
        if self.how == "nan":
            self.embedding_ = np.full((graph.n_nodes, 2), np.nan)
            return self
        os.kill(os.getpid(), signal.SIGKILL)
        return self


@pytest.fixture(scope="module")
def groups():
    return load_dataset("planted:n=120,k=3,p_in=0.3,p_out=0.02,seed=1")


def test_labels_are_scored_as_by_hand_and_failures_stay_alone(groups):
    seen = []
    methods = {
        "killed": Broken("kill"),
        "raised": Broken("raise"),
        "full": Broken("memory"),
        "left": Broken("exit"),
        "aborted": Broken("abort"),
        "nan": Broken("nan"),
        "good": HOPE(dim=8, random_state=3, n_threads=1),
    }
    found = compare_methods(
        groups.graph, groups.labels, methods=methods, n_repeats=3, train_sizes=[0.2], n_threads=1,
        progress=seen.append,
    )  # fmt: skip
    assert [result.method for result in seen] == list(methods)
    assert found.results[0].method == "good"
    errors = {result.method: result.error for result in found.results}
    assert errors.pop("good") is None
    assert "signal 9" in errors["killed"]
    assert errors["raised"] == "RuntimeError: what a pity"
    assert errors["full"] == "MemoryError"
    assert errors["left"] == "SystemExit: 3"
    assert errors["aborted"] == "its process ended with exit code 4: last words"
    assert "not finite" in errors["nan"]
    good = found.results[0]
    vectors = HOPE(dim=8, random_state=3, n_threads=1).fit_transform(groups.graph)
    expected = classify_nodes(vectors, groups.labels.indicator, train_sizes=[0.2], n_repeats=3)
    np.testing.assert_allclose(good.scores["micro_f1_20"], expected.micro_f1[0], atol=0.02)
    np.testing.assert_allclose(good.scores["macro_f1_20"], expected.macro_f1[0], atol=0.02)
    assert 0 < good.seconds < 10
    assert 50 * 2**20 < good.peak_bytes < 4 * 2**30
    (control,) = found.controls
    assert control.mean("micro_f1_20") < 0.5 < good.mean("micro_f1_20")
    assert str(found).splitlines()[1].startswith("good ")
    assert "raised: RuntimeError: what a pity" in str(found)


def test_links_are_scored_as_by_hand(groups):
    found = compare_methods(groups.graph, methods=["prone"], dim=8, random_state=5, n_threads=1)
    assert (found.task, found.measures) == ("links", ("auc", "average_precision"))
    split = split_links(groups.graph, random_state=5)
    vectors = ProNE(dim=8, random_state=5, n_threads=1).fit_transform(split.graph)
    expected = score_links(vectors, split)
    assert found.results[0].mean("auc") == pytest.approx(expected.auc, abs=0.01)
    assert found.results[0].mean("average_precision") == pytest.approx(expected.average_precision, abs=0.01)
    names = {control.method for control in found.controls}
    assert names == {"degree product", "common neighbours", "Adamic–Adar"}
    plain = found.to_dict()
    assert plain["sorted_by"] == "auc"
    assert plain["results"][0]["method"] == "ProNE"
    assert plain["results"][0]["error"] is None


def _task(groups, **changes):
    settings = {"train_sizes": (0.1, 0.5), "n_repeats": 4, "random_state": 2, "n_threads": 1} | changes
    return worker.LabelTask(groups.graph, np.arange(120), groups.labels.single, **settings)


class Staged:
    """Vectors that show the groups where the parameter is 7, and noise elsewhere."""

    def set_params(self, k):
        self.k = k
        return self

    def fit(self, graph):
        noise = np.random.default_rng(self.k).normal(size=(graph.n_nodes, 3))
        self.embedding_ = noise + (9 * np.eye(3)[self.truth] if self.k == 7 else 0)
        return self


def test_a_parameter_is_chosen_by_the_training_labels(groups):
    staged = Staged()
    staged.truth = groups.labels.single
    found = worker._fit_each(staged, _task(groups), "k", (3, 7, 5))
    assert found["chosen"] == {"k": [7, 7]}
    assert min(found["scores"]["micro_f1_50"]) > 0.95
    assert len(found["scores"]["macro_f1_10"]) == 4
    assert found["seconds"] > 0


def test_test_labels_play_no_part_in_the_choice(groups):
    task = _task(groups, train_sizes=(0.5,), n_repeats=1)
    vectors = np.random.default_rng(0).normal(size=(120, 4))
    truth = groups.labels.single.copy()
    truth[shuffle(2, 0, 120)[60:]] = 0  # those that are tested
    other = worker.LabelTask(groups.graph, task.rows, truth, (0.5,), 1, 2, 1)
    np.testing.assert_array_equal(task.validate(vectors), other.validate(vectors))


def test_labels_that_are_too_few_choose_the_first(groups):
    staged = Staged()
    staged.truth = groups.labels.single
    task = _task(groups, train_sizes=(0.01,), n_repeats=3)
    assert np.isnan(task.validate(np.ones((120, 2)))).all()
    assert worker._fit_each(staged, task, "k", (3, 7))["chosen"] == {"k": [3]}


def test_gemsec_is_chosen_only_by_name(groups, monkeypatch):
    orders = []

    def note(name, order):
        orders.append(order)
        return MethodResult(name, error="not run")

    monkeypatch.setattr("kernelne.comparison.compare._run", note)
    compare_methods(groups.graph, groups.labels, methods=["GEMSEC", "mnmf", "LINE"], n_repeats=1)
    compare_methods(groups.graph, groups.labels, methods={"GEMSEC": GEMSEC()}, n_repeats=1)
    club = load_dataset("karate")
    compare_methods(club.graph, club.labels, methods="gemsec", n_repeats=1)
    assert [order.choose for order in orders] == [
        ("n_clusters", (25, 5, 10, 15, 50, 75, 100)),
        ("n_communities", (20, 5, 15, 25, 50, 75, 100)),
        None,
        None,
        ("n_clusters", (25, 5, 10, 15)),
    ]
    assert orders[0].estimator.random_state == 0


def test_every_method_has_its_name():
    assert len(METHODS) == 15
    for name, make in METHODS.items():
        made = make(dim=4, random_state=1, n_threads=1, progress=False)
        assert type(made).__name__ == name.partition("-")[0]
        assert find_method(name.upper()) == name
    assert METHODS["MKernelNE-Sch"](dim=4).kernels[0] == ("schoenberg", 1.0)


def test_labels_of_some_nodes_and_matrices_of_labels(groups, monkeypatch):
    tasks = []
    monkeypatch.setattr(
        "kernelne.comparison.compare._run",
        lambda name, order: tasks.append(order.task) or MethodResult(name, error=""),
    )
    some = Labels.from_values(groups.graph.nodes[5:50], groups.labels.single[5:50])
    for labels in (some, scipy.sparse.csr_array(groups.labels.indicator), groups.labels.single.tolist()):
        compare_methods(groups.graph, labels, methods="hope", n_repeats=1)
    assert tasks[0].rows.tolist() == list(range(5, 50))
    assert [task.truth.shape for task in tasks] == [(45, 2), (120, 3), (120,)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"methods": ["DeepRun"]}, "methods='DeepRun': known are MKernelNE, "),
        ({"methods": []}, "methods"),
        ({"dim": 0}, "dim=0"),
        ({"n_threads": 0}, "n_threads=0"),
        ({"random_state": -1}, "random_state=-1"),
        ({"labels": None, "test_share": 2}, "test_share=2"),
        ({"train_sizes": 0.5}, "train_sizes=0.5"),
        ({"train_sizes": [0.001]}, "train_sizes=0.001"),
        ({"n_repeats": 0}, "n_repeats=0"),
    ],
)
def test_bad_parameters(groups, change, words):
    given = {"labels": groups.labels, "methods": ["HOPE"]} | change
    with pytest.raises(ParameterError, match=words.replace("[", r"\[")):
        compare_methods(groups.graph, **given)


def test_bad_labels(groups):
    with pytest.raises(InputError, match="3 labels for 120"):
        compare_methods(groups.graph, [1, 2, 1], methods=["HOPE"])


def test_warm_up_takes_the_kind_of_graph_and_forgives(random_graph):
    seen = []

    class Note:
        def fit(self, graph):
            seen.append((graph.directed, graph.weights is not None))
            raise RuntimeError

    for directed in (False, True):
        for weighted in (False, True):
            graph = random_graph(0, 5, directed=directed, weighted=weighted)
            worker._warm_up(Note(), graph)
            assert seen.pop() == (directed, weighted)


def test_names_for_people():
    names = ["micro_f1_10", "macro_f1_0.5", "auc", "average_precision"]
    assert [*map(measure_label, names)] == ["micro-F1 10 %", "macro-F1 0.5 %", "AUC", "average precision"]


def _made():
    good = MethodResult("good", {"auc": [0.9], "average_precision": [0.8]}, 1.5, 2**28)
    fast = MethodResult("fast", {"auc": [0.7], "average_precision": [0.8]}, 0.01, None)
    bad = MethodResult("bad", error="no memory")
    control = MethodResult("degree product", {"auc": [0.8], "average_precision": [0.6]})
    return Comparison("links", ("auc", "average_precision"), (good, fast, bad), (control,))


def test_the_table_holds_controls_and_leaves_out_what_failed():
    assert str(_made()).splitlines() == [
        "method            AUC  average precision  seconds  peak MiB",
        "good            0.900              0.800     1.50       256",
        "degree product  0.800              0.600        –         –",
        "fast            0.700              0.800     0.01         –",
        "bad: no memory",
    ]


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_plot_is_written_whole(tmp_path, kind):
    path = tmp_path / f"plot.{kind}"
    draw_comparison(_made(), path, "links")
    start = path.read_bytes()[:200]
    assert start[1:4] == b"PNG" if kind == "png" else b"<?xml" in start
    with pytest.raises(InputError, match="overwrite"):
        draw_comparison(_made(), path)
    with pytest.raises(ParameterError, match=r"\.png or \.svg"):
        draw_comparison(_made(), tmp_path / "plot.gif")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_plot_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"\[plot\]"):
        draw_comparison(_made(), tmp_path / "plot.png")
    assert not any(tmp_path.iterdir())


class Sleeper(BaseEstimator):
    """Tells its process, and never ends."""

    def __init__(self, path):
        self.path = path

    def fit(self, graph):
        if graph.n_nodes != 12:
            with open(self.path + ".new", "w") as file:
                file.write(str(os.getpid()))
            os.rename(self.path + ".new", self.path)
            time.sleep(600)
        return self


_SCRIPT = """
import sys
from kernelne import compare_methods, load_dataset
from test_compare import Sleeper
compare_methods(load_dataset("karate").graph, methods={"sleeper": Sleeper(sys.argv[1])})
"""


@pytest.mark.skipif(os.name == "nt", reason="sends signals")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_comparison(tmp_path, ending):
    # A script without the guard that multiprocessing would need.
    script, told = tmp_path / "script.py", tmp_path / "pid"
    script.write_text(_SCRIPT)
    paths = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    environment = os.environ | {"PYTHONPATH": paths}
    parent = subprocess.Popen(
        [sys.executable, script, told], env=environment, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        _wait_for(told.exists)
        process = int(told.read_text())
        parent.send_signal(ending)
        assert parent.wait(30) != 0
        _wait_for(lambda: not _alive(process))
    finally:
        parent.kill()
        parent.wait()


def _wait_for(condition):
    end = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def _alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().split()[2] != "Z"  # an orphan that nobody has waited for yet
    except FileNotFoundError:
        return False


def test_estimators_are_fitted_as_they_are(groups):
    few = KernelNE(dim=4, walks_per_node=1, random_state=1, n_threads=1)
    found = compare_methods(groups.graph, groups.labels, methods={"few walks": few}, n_repeats=2)
    (result,) = found.results
    assert result.error is None
    assert result.chosen == {}
    assert not hasattr(few, "embedding_")


def _sent(order):
    stream = io.BytesIO()
    order.write(stream)
    stream.seek(0)
    read = worker.Order.read(stream)
    assert stream.read() == b""
    return read


def _assert_same_graph(graph, sent):
    for name in ("offsets", "neighbours", "weights"):
        ours, theirs = getattr(graph, name), getattr(sent, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    assert sent.directed == graph.directed
    assert sent.nodes.tolist() == list(range(graph.n_nodes))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_order_arrives_as_it_was(random_graph, directed, weighted):
    graph = random_graph(0, 30, directed=directed, weighted=weighted, density=0.1)
    truth = np.asfortranarray(np.eye(3, dtype=bool)[np.arange(9) % 3])
    task = worker.LabelTask(graph, np.arange(9), truth, (0.1, 1 / 3), np.int64(4), 2**63, None)
    model = MKernelNE.paper("schoenberg", dim=np.int32(4), random_state=2**64 - 1, norm=np.float64(0.1))
    sent = _sent(worker.Order(model, task, ("dim", (4, 2))))
    _assert_same_graph(graph, sent.task.graph)
    assert (sent.task.train_sizes, sent.task.n_repeats, sent.task.random_state) == ([0.1, 1 / 3], 4, 2**63)
    assert sent.task.n_threads is None
    assert sent.choose == ["dim", [4, 2]]
    np.testing.assert_array_equal(sent.task.rows, task.rows)
    np.testing.assert_array_equal(sent.task.truth, truth)
    assert type(sent.estimator) is MKernelNE
    assert sent.estimator.config() == model.config()
    split = split_links(graph, test_share=0.2)
    sent = _sent(worker.Order(model, worker.LinkTask(split)))
    assert sent.choose is None
    _assert_same_graph(split.graph, sent.task.graph)
    for name in ("train_edges", "train_non_edges", "test_edges", "test_non_edges"):
        np.testing.assert_array_equal(getattr(sent.task.split, name), getattr(split, name))


def test_times_of_arcs_are_sent(groups):
    columns = {"source": [0, 1, 2, 0], "target": [1, 2, 0, 1], "time": [3.0, 1.0, 2.0, 5.0]}
    graph = Graph.from_table(columns, time="time")
    assert graph.timed is not None
    task = worker.LabelTask(graph, np.arange(3), np.arange(3), (0.5,), 1, 0, 1)
    sent = _sent(worker.Order(HOPE(), task)).task.graph.timed
    for ours, theirs in zip(graph.timed, sent, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_python_objects_are_not_sent(groups):
    truth = np.array(["a", "b"] * 60, dtype=object)
    task = worker.LabelTask(groups.graph, np.arange(120), truth, (0.5,), 1, 0, 1)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        worker.Order(HOPE(), task).write(io.BytesIO())


def test_labels_of_any_kind_are_sent(groups):
    kinds = [list(groups.labels.single), np.array(["x", "ÿ", "z"], dtype=object)[groups.labels.single]]
    ours = {"methods": {"hope": HOPE(dim=8, random_state=0, n_threads=1)}, "n_repeats": 1, "n_threads": 1}
    codes, strings = (compare_methods(groups.graph, kind, **ours).results[0] for kind in kinds)
    assert codes.error is None
    assert codes.scores == strings.scores


def test_labels_of_a_series_go_by_id():
    pandas = pytest.importorskip("pandas")
    order = np.random.default_rng(0).permutation(30)
    graph = Graph.from_edges(order, np.roll(order, 1), nodes=order)
    settings = {"random_state": 0, "n_threads": 1}
    _, (task,) = compare._prepare_labels(graph, pandas.Series(np.arange(30) % 3), [0.5], 1, settings)
    classes = task.truth.argmax(axis=1) if task.truth.ndim == 2 else task.truth
    assert classes.tolist() == (order[task.rows] % 3).tolist()


class Script(Broken):
    __module__ = "__main__"


class Bare:
    def fit(self, graph):
        return self


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (
            Script("raise"),
            r"methods\['mine'\]=Script\(how='raise'\): .*: define it .* a module .*, not in the running",
        ),
        (type("Local", (Broken,), {})("raise"), "test_compare:Local, cannot be imported"),
        (Bare(), r"get_params\(\)"),
        (KernelNE, r"get_params\(\)"),
        (KernelNE(progress=print), r"methods\['mine'\]\.progress=<built-in function print>: .*JSON"),
        (KernelNE(random_state=np.random.default_rng(0)), "random_state"),
        (MKernelNE(kernels=(("gaussian", np.ones(2)),)), "kernels"),
        (Broken({1: 2}), "how={1: 2}"),
    ],
)
def test_estimators_that_no_process_can_make_are_refused_at_once(groups, monkeypatch, estimator, words):
    monkeypatch.setattr("kernelne.comparison.compare._run", lambda name, order: pytest.fail("was run"))
    with pytest.raises(ParameterError, match=words):
        compare_methods(groups.graph, groups.labels, methods={"good": HOPE(), "mine": estimator})
