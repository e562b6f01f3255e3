"""`kernelne compare`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from cli.running import assert_refused
from kernelne.comparison import compare

FEW = ["--methods", "prone,HOPE", "--dim", "8", "-j", "1", "--repeats", "2"]


def test_compare_with_labels(kernelne, town, tmp_path):
    plot = tmp_path / "plot.svg"
    args = ["compare", "town.edges", "--labels", "town.labels", *FEW, "-o", plot]
    result = kernelne(*args, cwd=town)
    assert result.returncode == 0, result.stderr
    header, *rows, explained = result.stdout.splitlines()
    assert explained == "± is the standard deviation over splits"
    assert header.startswith("method ")
    for column in ("micro-F1 10 %", "macro-F1 10 %", "micro-F1 50 %", "macro-F1 50 %", "seconds", "peak MiB"):
        assert column in header
    assert sorted(row.split("  ")[0] for row in rows) == ["HOPE", "ProNE", "most frequent labels"]
    scores = [float(row[len("most frequent labels") :].split()[0]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    told = result.stderr.splitlines()
    assert [line.split()[0] for line in told] == [
        "Graph:", "Scored", "Estimated", "ProNE", "HOPE", "Written:",
    ]  # fmt: skip
    assert "3 classes; methods: 2" in told[1]
    assert re.search(r"about 0\.\d s \(ProNE 0\.\d s, HOPE 0\.\d s\)$", told[2])
    assert "<svg" in plot.read_text()
    again = kernelne(*args, cwd=town)
    assert_refused(again, town, "plot.svg", "--overwrite")


def test_compare_links_as_json(kernelne, tmp_path):
    args = [
        "compare",
        "karate",
        "--links",
        "--methods",
        "ProNE",
        "--dim",
        "8",
        "-j",
        "1",
        "--json",
        "--quiet",
    ]
    result = kernelne(*args, "--seed", "3", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "ProNE" not in result.stderr
    found = json.loads(result.stdout)
    expected = {"nodes": 34, "edges": 78, "dim": 8, "seed": 3, "task": "links", "sorted_by": "auc"}
    assert {name: found[name] for name in expected} == expected
    (row,) = found["results"]
    assert row["method"] == "ProNE"
    assert 0 < row["auc"] <= 1
    assert row["seconds"] > 0
    assert row["peak_memory_MiB"] > 10
    assert {"method", "auc"} <= set(found["controls"][0])


def _answer(monkeypatch, results):
    """No process is started: these are the results."""
    monkeypatch.setattr(compare, "_run", lambda name, order: results[name])


def test_a_failure_has_its_line_and_the_others_go_on(kernelne, tmp_path, monkeypatch):
    scores = {name: [0.5, 0.7] for name in ("micro_f1_10", "macro_f1_10", "micro_f1_50", "macro_f1_50")}
    results = {
        "NetMF": compare.MethodResult("NetMF", error="NetMF needs 900.0 GiB"),
        "GEMSEC": compare.MethodResult(
            "GEMSEC", scores, 1.0, 2**20, chosen={"n_clusters": [5, 10]}, warnings=("mind this",)
        ),
    }
    _answer(monkeypatch, results)
    result = kernelne("compare", "karate", "--methods", "netmf, gemsec", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "NetMF: NetMF needs 900.0 GiB"
    assert "NetMF            failed: NetMF needs" in result.stderr
    assert "n_clusters 5 / 10" in result.stderr
    assert "warning: GEMSEC: mind this" in result.stderr
    assert "micro-F1 10 % 0.600 ± 0.100" in result.stderr  # karate brings its labels along
    result = kernelne("compare", "karate", "--methods", "netmf", "-o", "out.png", "--json", cwd=tmp_path)
    assert result.returncode == 1
    assert "error: no method could be scored" in result.stderr
    assert json.loads(result.stdout)["results"][0]["error"] == "NetMF needs 900.0 GiB"
    assert not any(tmp_path.iterdir())


def test_what_would_take_too_long_is_skipped(kernelne, tmp_path):
    args = [
        "compare",
        "karate",
        "--links",
        "--methods",
        "line,netmf",
        "--dim",
        "8",
        "-j",
        "1",
        "--splits",
        "2",
    ]
    # Far from both estimates, which are multiplied by the time of a short training here: 11 and 0.06 ms on
    # the core of the constants.
    result = kernelne(*args, "--time", "0.001s", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert re.search(
        r"^LINE +skipped: about \d+ s estimated, the limit is 0.001 s$", result.stderr, re.MULTILINE
    )
    assert result.stdout.splitlines()[-1].startswith("LINE: skipped")
    assert re.search(r"^NetMF +0\.\d+ ± 0", result.stdout, re.MULTILINE)


BAD = {
    "--time=soon": ["--time='soon'", "5m"],
    "--splits=0": ["--splits"],
    "--methods=DeepRun": ["--methods='DeepRun': known are MKernelNE"],
    "--methods=": ["--methods=''"],
    "--links --labels=town.labels": ["--labels='town.labels'", "--links"],
    "--labels=none.labels": ["none.labels"],
    "--dim=0": ["--dim=0: "],
    "--n-threads=0": ["--n-threads=0: "],
    "--seed=-1": ["--seed"],
    "--repeats=0": ["--repeats"],
    "--output=out.gif": ["out.gif", ".svg"],
    "--output=none/out.png": ["none"],
    "--nodes=none.txt": ["none.txt"],
}


@pytest.mark.parametrize("option", BAD)
def test_bad_options(kernelne, town, option):
    result = kernelne("compare", "town.edges", *option.split(), "--quiet", cwd=town)
    assert_refused(result, town, *BAD[option])
    assert result.stdout == ""


def test_a_plot_without_matplotlib_is_refused_before_the_work(kernelne, town, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = kernelne("compare", "town.edges", "-o", "out.png", cwd=town)
    assert_refused(result, town, "matplotlib", "[plot]")


def test_labels_of_other_nodes(kernelne, town, tmp_path):
    (tmp_path / "some.labels").write_text("n1 a\nn2 b\nx9 a\n")
    args = ["compare", town / "town.edges", "--labels", "some.labels"]
    assert_refused(kernelne(*args, cwd=tmp_path), tmp_path, "some.labels", "x9", "--skip-unknown")


@pytest.mark.skipif(os.name == "nt", reason="sends signals")
def test_ctrl_c(tmp_path):
    command = [
        sys.executable,
        "-m",
        "kernelne",
        "compare",
        "erdos_renyi:n=20000,p=0.001",
        "--methods",
        "line",
    ]
    process = subprocess.Popen(
        [*command, "-o", "out.png", "-j", "1"], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        while "methods: 1" not in process.stderr.readline():
            assert process.poll() is None
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the child gets it too
        told = process.stderr.read()
        assert process.wait(60) == 130
        assert told.splitlines()[-1] == "interrupted: nothing was written"
        assert "Traceback" not in told
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert not any(tmp_path.iterdir())
