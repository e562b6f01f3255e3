"""`kernelne tune`: the search, its file, and a command line that can be pasted."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys

import pytest
import typer

from cli.running import assert_refused
from kernelne import Embedding, KernelNE, MKernelNE, cli, tuning
from kernelne.cli.inputs import given_estimator, parse_time
from kernelne.cli.options import READING, default_of
from kernelne.cli.tune import embed_command

pytest.importorskip("optuna")
FAST = ["--walks-per-node", "2", "--n-threads", "1", "--trials", "3"]


def parsed(command):
    """What `kernelne embed` is called with by this command line."""
    kernelne, embed, *words = shlex.split(command)
    assert (kernelne, embed) == ("kernelne", "embed")
    return typer.main.get_command(cli.app).commands["embed"].make_context("embed", words).params


def unset(**given):
    """Options of reading that were not given, but for these."""
    return {name: default_of(kind) for name, kind in READING.items()} | given


@pytest.mark.parametrize(
    "estimator",
    [
        MKernelNE(),
        MKernelNE(random_state=0, deterministic=True, n_threads=2),
        MKernelNE(kernels=[("gaussian", 0.386), ("schoenberg", 1e-3)], dim=32, p=0.25, q=4.0, window=3),
        MKernelNE(vectors="smooth", norm=1.5, walks_per_node=7, coef_l2=0.5, coef_spread=0.0),
        KernelNE(kernel="inverse_multiquadric", sigma=0.221, vectors="smooth", l2=1e-5, random_state=2**40),
    ],
)
def test_the_command_says_what_the_estimator_is(estimator):
    params = parsed(embed_command("graph.edges", unset(), estimator))
    assert given_estimator(params).get_params() == estimator.get_params()
    assert params["graph"] == "graph.edges"
    assert params["output"].name == "graph.safetensors"


@pytest.mark.parametrize(
    "graph", ["my graph's.edges.gz", "-odd.txt", "a;rm -rf x", "planted:n=60,k=3", "Zoë.csv"]
)
def test_the_command_says_how_the_graph_is_read(graph):
    for given in (
        unset(),
        unset(
            directed=True,
            weighted=False,
            header=False,
            separator="\t",
            nodes="no des.txt",
            drop_self_loops=True,
        ),
        unset(weighted=True, header=True, separator=";"),
    ):
        params = parsed(embed_command(graph, given, MKernelNE()))
        assert params["graph"] == graph
        assert {name: params[name] and str(params[name]) for name in READING} == {
            name: given[name] and str(given[name]) for name in READING
        }
        assert "/" not in str(params["output"])


def test_every_option_of_reading_is_one_of_embed():
    values = {"nodes": "ids.txt", "separator": "\t", "format": "gml", "half_life": "30d"}
    values |= {"source": "from account", "target": "2", "weight": "w", "time": "day"}
    for name, kind in READING.items():
        for value in [values[name]] if name in values else {True, False, default_of(kind)}:
            params = parsed(embed_command("graph.edges", unset(**{name: value}), MKernelNE()))
            assert (params[name] if value is None else type(value)(params[name])) == value, name
            assert {n: params[n] for n in READING if n != name} == {
                n: v for n, v in unset().items() if n != name
            }


def test_by_labels(kernelne, town, tmp_path):
    args = ["tune", town / "town.edges", "--labels", town / "town.labels", *FAST, "-o", "out.json"]
    result = kernelne(*args, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    head, default, best, command = result.stdout.splitlines()
    assert head.split() == ["micro-F1,", "validation", "test"]
    assert float(best.split()[1]) >= float(default.split()[1])
    told = [line for line in result.stderr.splitlines() if line.startswith("trial ")]
    assert len(told) == 3
    assert "left" in told[0]
    assert "A new study" not in result.stderr
    facts = json.loads((tmp_path / "out.json").read_text())
    assert facts["command"] == command
    assert len(facts["trials"]) == 3
    assert facts["trials"][facts["best"]]["score"] == max(trial["score"] for trial in facts["trials"])
    # The command can be pasted, and makes what was scored.
    made = kernelne(*shlex.split(command)[1:], cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    embedding = Embedding.load(tmp_path / "town.safetensors")
    best = tuning.Trial(**facts["trials"][facts["best"]])
    assert embedding.provenance["model"] == best.model
    assert embedding.provenance["seed"] == facts["seed"]
    again = kernelne(*args, cwd=tmp_path)
    assert again.returncode == 2
    assert "--overwrite" in again.stderr


def test_by_links_as_json_and_again_the_same(kernelne, town, tmp_path):
    args = ["tune", town / "town.edges", "--links", *FAST, "--seed", "5", "--json", "--quiet", "--dim", "8"]
    first, second = (json.loads(kernelne(*args, cwd=tmp_path).stdout) for _ in range(2))
    for facts in (first, second):
        assert facts["measure"] == "AUC"
        for trial in facts["trials"]:
            assert trial["parameters"]["dim"] == 8
            del trial["seconds"]
    assert first == second


def test_labels_of_a_dataset_are_its_own(kernelne, tmp_path):
    result = kernelne("tune", "karate", *FAST, "--quiet", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "micro-F1" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_time():
    for text, seconds in {"90": 90, "90s": 90, "5m": 300, "1h30m": 5400, "0.5m": 30, "1H2M3S": 3723}.items():
        assert parse_time(text) == seconds


BAD = {
    "": ["--labels", "--links"],
    "--labels town.labels --links": ["--labels", "--links"],
    "--links --time 5x": ["--time='5x'", "1h30m"],
    "--links --time 0": ["--time"],
    "--links --trials 0": ["--trials"],
    "--links -o out.txt": ["out.txt", ".json"],
    "--links --dim 0": ["--dim=0"],
    "--labels town.labels --train-size 100": ["--train-size"],
    "--labels none": ["none: there is no such file"],
}


@pytest.mark.parametrize("options", BAD)
def test_bad_options(kernelne, town, options):
    result = kernelne("tune", "town.edges", *options.split(), "--quiet", cwd=town)
    assert_refused(result, town, *BAD[options])


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_keeps_the_best_so_far(tmp_path):
    command = [sys.executable, "-m", "kernelne", "tune", "karate", "--labels", "karate", "-o", "best.json"]
    command += ["--walks-per-node", "2", "--n-threads", "1", "--trials", "1000000"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    told = [process.stderr.readline() for _ in range(4)]  # the graph, and some trials
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 0, (told, rest)
    assert "interrupted: this is the best so far" in rest
    assert json.loads((tmp_path / "best.json").read_text())["command"].startswith("kernelne embed")
