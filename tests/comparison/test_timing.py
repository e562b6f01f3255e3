"""Estimated times: near those that were measured, and what follows from them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kernelne import Graph, KernelNE, MKernelNE, ParameterError, compare_methods, load_dataset
from kernelne.baselines import HOPE, Node2Vec
from kernelne.comparison import compare, timing
from kernelne.comparison.compare import METHODS
from kernelne.comparison.results import MethodResult

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
SIZES = {
    "citeseer": (3312, 9196),
    "cora": (2708, 10556),
    "dblp": (27199, 133664),
    "ppi": (3890, 76584),
    "astroph": (17903, 394003),
    "hepth": (8638, 49633),
    "facebook": (4039, 176468),
    "gnutella": (8104, 52016),
    "erdos_renyi": (100000, 999878),
}
NAMES = {"M-NMF": "MNMF", "no kernel": "WeightedMF"}


def graph_of(nodes, arcs):
    """A directed graph of this size: estimates need no more."""
    ends = np.arange(arcs)
    offsets = np.linspace(0, arcs, nodes + 1).astype(np.int64)
    return Graph(offsets, (ends % nodes).astype(np.int32), None, True, np.arange(nodes))


def measured():
    """Yield (method, graph, seconds) on one core, as kept by experiments/baselines.py and table7.py."""
    for line in (RESULTS / "baselines.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["key"]["task"] == "time" and row.get("wall_seconds"):
            key = row["key"]
            yield NAMES.get(key["method"], key["method"]), key["graph"], min(row["wall_seconds"])
    for line in (RESULTS / "table7.jsonl").read_text().splitlines():
        row = json.loads(line)
        yield row["key"]["model"], row["key"]["graph"], min(row["wall_seconds"])


@pytest.mark.skipif(not RESULTS.exists(), reason="the results are not part of the source distribution")
def test_estimates_are_within_a_factor_of_two():
    graphs = {name: graph_of(*size) for name, size in SIZES.items()}
    wrong, n = [], 0
    for method, graph, seconds in measured():
        model = METHODS[method](dim=128, n_threads=1)
        ratio = timing.core_seconds(model, graphs[graph]) / seconds
        n += 1
        if not 0.5 < ratio < 2:
            wrong.append((method, graph))
    assert n > 110
    assert wrong == [("HOPE", "erdos_renyi")]


def test_more_of_anything_takes_longer():
    graph, larger = graph_of(2000, 20_000), graph_of(8000, 80_000)
    for name, make in METHODS.items():
        once = timing.core_seconds(make(dim=64), graph)
        assert timing.core_seconds(make(dim=64), larger) > 3 * once, name
        assert timing.core_seconds(make(dim=128), graph) > once or name == "NetMF", name
    assert timing.core_seconds(Node2Vec(p=0.5), graph) > timing.core_seconds(Node2Vec(), graph)
    few, many = (KernelNE(walks_per_node=walks) for walks in (5, 50))
    assert timing.core_seconds(many, graph) == pytest.approx(10 * timing.core_seconds(few, graph))


class Foreign:
    dim = 3


def test_the_clock_of_this_machine():
    clock = timing.Clock(n_threads=1)
    assert 0.05 < clock.one == clock.all < 200
    graph = graph_of(1000, 10_000)
    for make in METHODS.values():
        assert clock.seconds(make(), graph) > 0
    assert clock.seconds(Foreign(), graph) is None


@pytest.fixture
def steady(monkeypatch):
    """A machine of known speed, and the names of the methods that were run."""
    ran = []

    def run(name, order):
        ran.append(name)
        return MethodResult(name, {"auc": [0.5 + len(ran) / 10], "average_precision": [0.5]}, 2.0, 2**20)

    monkeypatch.setattr(compare, "_run", run)
    monkeypatch.setattr(timing, "_measure", lambda n_threads: 1.0 / n_threads)
    return ran


def test_slow_methods_are_skipped_and_say_so(steady):
    graph = load_dataset("planted:n=300,k=3,p_in=0.2,p_out=0.02,seed=1").graph
    told = []
    found = compare_methods(
        graph, methods=["MKernelNE", "HOPE", "LINE"], max_seconds=0.3, n_threads=1, plan=told.append
    )
    (estimates,) = told
    assert list(estimates) == ["MKernelNE", "HOPE", "LINE"]
    assert estimates["HOPE"] < 0.3 < estimates["LINE"]
    results = {result.method: result for result in found.results}
    assert "LINE" not in steady
    assert results["LINE"].error.startswith("skipped: about ")
    assert results["LINE"].error.endswith("the limit is 0.3 s")
    assert "LINE: skipped" in str(found)
    assert results["HOPE"].estimated_seconds == estimates["HOPE"]
    assert found.to_dict()["results"][0]["estimated_seconds"] > 0


def test_estimators_of_others_are_not_skipped(steady, monkeypatch):
    monkeypatch.setattr(timing.Clock, "seconds", lambda self, estimator, graph: None)
    graph = load_dataset("karate").graph
    found = compare_methods(graph, methods={"mine": HOPE()}, max_seconds=1e-9)
    assert found.results[0].error is None


def test_all_fits_are_counted(steady):
    data = load_dataset("planted:n=300,k=3,p_in=0.2,p_out=0.02,seed=1")
    told = []
    settings = {"methods": ["GEMSEC"], "n_threads": 1, "plan": told.append, "max_seconds": 1e-9}
    compare_methods(data.graph, **settings)
    compare_methods(data.graph, n_splits=3, **settings)
    compare_methods(data.graph, data.labels, n_repeats=1, train_sizes=[0.5], **settings)
    once, thrice, chosen = (plan["GEMSEC"] for plan in told)
    assert thrice == pytest.approx(3 * once)
    assert chosen == pytest.approx(7 * once)
    assert not steady


def test_links_have_a_spread_over_splits(steady):
    found = compare_methods(load_dataset("karate").graph, methods=["HOPE"], n_splits=3)
    (result,) = found.results
    np.testing.assert_allclose(result.scores["auc"], [0.6, 0.7, 0.8])
    assert result.seconds == 2.0
    assert "0.700 ± 0.082" in str(found)
    assert all(len(control.scores["auc"]) == 3 for control in found.controls)
    assert len(set(found.controls[0].scores["auc"])) > 1


def test_nothing_is_timed_unless_it_is_asked_for(steady, monkeypatch):
    monkeypatch.setattr(timing, "_measure", lambda n_threads: pytest.fail("timed"))
    found = compare_methods(load_dataset("karate").graph, methods=["HOPE"])
    assert found.results[0].estimated_seconds is None


@pytest.mark.parametrize(
    "change", [{"max_seconds": 0}, {"n_splits": 0}, {"n_splits": 2, "random_state": 2**32 - 1}]
)
def test_bad_parameters(change):
    with pytest.raises(ParameterError, match=next(iter(change)) if len(change) == 1 else "random_state"):
        compare_methods(load_dataset("karate").graph, methods={"m": MKernelNE()}, **change)
