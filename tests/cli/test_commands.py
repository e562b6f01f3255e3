"""The command itself, `kernelne info` and `kernelne demo`."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import pytest

from cli.running import assert_refused
from kernelne import Embedding, __version__
from kernelne.cli.output import print_table


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
    [([], 170 + 17), (["--walks-per-node", "40"], 40 + 4), (["--model", "kernelne"], 80)],
)
def test_info_counts_the_walks_of_the_pilot(kernelne, folder, options, walks):
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
