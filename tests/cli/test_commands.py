"""The command itself, `kernelne info` and `kernelne demo`."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import pytest

from cli.running import assert_refused
from kernelne import Embedding, __version__, cli
from kernelne.cli.datasets import app as datasets
from kernelne.cli.output import Run, print_table


def test_version(kernelne, tmp_path):
    result = kernelne("--version", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, f"kernelne {__version__}\n")


def test_help_names_every_command_and_no_arguments_show_it(kernelne, tmp_path):
    for args in (["--help"], []):
        text = kernelne(*args, cwd=tmp_path).stdout
        for command in [
            "embed",
            "info",
            "classify",
            "cluster",
            "links",
            "predict",
            "recommend",
            "similar",
            "plot",
            "compare",
            "tune",
            "explore",
            "demo",
            "datasets",
        ]:
            assert f" {command} " in text


def test_as_a_module(tmp_path):
    command = [sys.executable, "-m", "kernelne", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout.startswith(
        "kernelne "
    )


def test_info(kernelne, folder):
    (folder / "two.edges").write_text("0 1\n1 2\n2 2\n5 6\n1 0\n2 2\n")
    (folder / "nodes.txt").write_text("9\n")
    result = kernelne("info", "two.edges", "--nodes", "nodes.txt", "--json", "--dim", "16", cwd=folder)
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    expected = {
        "nodes": 6, "edges": 4, "directed": False, "components": 3, "largest_component": 3,
        "isolated_nodes": 1, "self_loops": 1, "repeated_edges_merged": 2, "dim": 16,
        "degree_min": 0, "degree_max": 2, "weighted": False,
    }  # fmt: skip
    assert {name: facts[name] for name in expected} == expected
    assert facts["estimated_memory_MiB"] > 0
    assert facts["estimated_seconds"] >= 0
    text = kernelne("info", "two.edges", cwd=folder).stdout
    assert re.search(r"^components +2$", text, re.M)


def test_bad_lines_are_told_and_left_out(kernelne, folder):
    (folder / "bad.edges").write_text("0 1\n1\n1 2\n")
    assert_refused(kernelne("info", "bad.edges", cwd=folder), folder, "bad.edges:2: expected 2 fields")
    result = kernelne("info", "bad.edges", "--skip-bad", "--json", cwd=folder)
    assert "warning: bad.edges: 1 line left out, 2: expected 2 fields" in result.stderr
    assert json.loads(result.stdout)["edges"] == 2
    assert_refused(kernelne("info", "karate", "--skip-bad", cwd=folder), folder, "--skip-bad", "dataset")


@pytest.mark.parametrize(
    ("options", "walks"),
    [([], 645), (["--walks-per-node", "40"], 40), (["--model", "kernelne"], 80)],
)
def test_info_counts_the_walks(kernelne, folder, options, walks):
    result = kernelne("info", "ring.edges", "--json", *options, cwd=folder)
    assert json.loads(result.stdout)["walks"] == 12 * walks


def test_demo(kernelne, tmp_path):
    result = kernelne("demo", "-o", "demo", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    score = float(re.search(r"(0\.\d+) ± .* majority class 0\.10", result.stdout).group(1))
    assert score > 0.94
    assert (tmp_path / "demo/digits.png").read_bytes()[1:4] == b"PNG"
    assert len(Embedding.load(tmp_path / "demo/digits.safetensors")) == 1797
    page = (tmp_path / "demo/explore.html").read_text("utf-8")
    assert '"facts":["1,797 nodes","12,340 edges","128 dimensions"]' in page
    again = kernelne("demo", "-o", "demo", cwd=tmp_path)
    assert again.returncode == 2
    assert "--overwrite" in again.stderr


def test_nothing_heavy_is_loaded_for_the_help(tmp_path):
    code = "import sys; from kernelne.cli import main; main(['classify', '--help']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "numpy", "sklearn", "pyarrow"} & set(loaded.stdout.split())


def test_a_table_on_a_terminal_shows_ids_as_they_are(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "dumb")
    print_table(
        ["node", "where", "score"], [["[red]", "here", "0.5"], ["b", "there too", "10.25"]], ["where"]
    )
    assert terminal.getvalue().splitlines() == [
        "node   where      score",
        "[red]  here         0.5",
        "b      there too  10.25",
    ]


def test_extras_are_named_in_the_help(kernelne, tmp_path):
    assert "kernelne[gpu]" in "".join(kernelne("embed", "--help", cwd=tmp_path).stdout.split())


#: A call of every command that nothing is wrong with, and what it does when all is checked.
WORK = {
    "embed town.edges -o out.npz": "kernelne.MKernelNE.fit",
    "info town.edges": "kernelne.training.summary.summarise",
    "classify town.npz town.labels": "kernelne.evaluation.classification._score_split",
    "predict town.npz town.labels -o out.csv --all": "kernelne.NodeClassifier.fit",
    "cluster town.npz --labels town.labels -o out.csv": "sklearn.cluster.KMeans.fit_predict",
    "links town.edges": "kernelne.MKernelNE.fit",
    "recommend town.edges town.npz n1": "kernelne.links.ranking.Ranking.best",
    "recommend town.edges town.npz --all -o out.csv": "kernelne.links.ranking.Ranking.best",
    "recommend town.edges town.npz n1 --trained": "kernelne.links.predictor.LinkPredictor._learn",
    "similar town.npz n1": "kernelne.Embedding.neighbours",
    "similar town.npz n1 --index": "kernelne.embedding.neighbours.NeighbourIndex.save",
    "explore town.npz -o out.html --no-keep-layout": "kernelne.view.kept.layout_nodes",
    "plot town.npz -o out.png --no-keep-layout": "kernelne.view.kept.layout_nodes",
    "compare town.edges": "kernelne.comparison.compare.compare_methods",
    "tune town.edges --links --trials 1": "kernelne.MKernelNE.fit",
    "convert town.edges out.graphml": "kernelne.io.graphs.read_write.atomic_output",
    "convert town.npz out.csv": "kernelne.Embedding.save",
    "update town.npz town.edges -o out.npz": "kernelne.growth.update.update_embedding",
    "fold-in town.npz town.edges -o out.npz": "kernelne.growth.update.fold_in",
    "demo -o out": "kernelne.cli.run_demo.digits",
    "datasets fetch citeseer": "kernelne.datasets.fetch._download",
    "datasets fetch dolphins --source town.edges": "kernelne.datasets.fetch._convert",
}
#: Those that only look things up.
NO_WORK = {"datasets list", "datasets path"}


def test_work_of_all_commands_is_known():
    groups = {"": cli.app, "datasets ": datasets}
    known = {
        group + (command.name or command.callback.__name__.replace("_", "-"))
        for group, app in groups.items()
        for command in app.registered_commands
    }
    assert {re.match(r"(datasets )?[\w-]+", call)[0] for call in WORK} | NO_WORK == known


@pytest.mark.parametrize("call", WORK)
@pytest.mark.parametrize("error", [MemoryError("no more"), OSError(28, "No space left", "here")])
def test_what_fails_at_work_exits_with_1(kernelne, town, tmp_path, monkeypatch, call, error):
    """And not with 2, which says that something given was wrong: a script would not try again."""
    needed = {"plot": "matplotlib", "tune": "optuna", "similar": "usearch", "datasets": "pooch"}
    pytest.importorskip(needed.get(call.split()[0], "kernelne"))
    for path in town.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setenv("KERNELNE_CACHE", str(tmp_path / "out" / "cache"))
    monkeypatch.delenv("KERNELNE_DATA", raising=False)
    before = {path.name for path in tmp_path.iterdir()}

    def fail(*args, **more):
        raise error

    monkeypatch.setattr(WORK[call], fail)
    result = kernelne(*call.split(), cwd=tmp_path)
    assert (result.returncode, Run.begun) == (1, True), result.stderr
    assert result.stderr.splitlines()[-1] in ("error: no more", "error: here: No space left")
    assert {path.name for path in tmp_path.iterdir()} - {"out"} == before
