"""What the shell is told at Tab, by the protocols of bash, zsh and fish."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cli.running import process
from kernelne import load_dataset, split_links
from kernelne.cli import completion
from kernelne.comparison import compare
from kernelne.datasets import list_datasets
from kernelne.embedding import neighbours
from kernelne.evaluation import links
from kernelne.model import combine_tables, kernels
from kernelne.training.backend import backend_names
from kernelne.training.parts.plan import ENGINES
from kernelne.view import layout  # fmt: skip

SHELLS = ("bash", "zsh", "fish")


def offered(line, cwd, shell="bash"):
    """What `kernelne` says when a shell asks how the line may go on."""
    words = line.split(" ")
    asked = {
        "_KERNELNE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    found = process(cwd=cwd, env=os.environ | asked)
    assert found.stderr == ""
    assert found.returncode == 0
    return found.stdout


def test_the_names_are_those_of_the_library():
    assert tuple(info.name for info in list_datasets()) == completion.DATASETS
    assert tuple(name.lower() for name in compare.METHODS) == completion.METHODS
    assert tuple(kernels.KERNELS) == completion.KERNELS
    assert completion.LAYOUTS == layout.LAYOUTS
    assert tuple(neighbours.METRICS) == completion.METRICS
    assert completion.VECTORS == combine_tables.VECTORS
    assert backend_names() == completion.BACKENDS
    assert completion.ENGINES == ENGINES
    assert tuple(links.OPERATORS) == completion.OPERATORS
    for name in completion.NON_EDGES:
        split_links(load_dataset("erdos_renyi:n=60,p=0.1").graph, non_edges=name)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kernelne ex", ["explore"]),
        ("kernelne embed ring.edges --kern", ["--kernels", "--kernel"]),
        ("kernelne embed ring.edges --kernel s", ["schoenberg"]),
        ("kernelne embed ring.edges --kernels a", ["auto"]),
        ("kernelne embed ring.edges --vectors s", ["sum", "smooth"]),
        ("kernelne embed ring.edges --backend g", ["gpu"]),
        ("kernelne info ka", ["karate"]),
        ("kernelne classify v.npz di", ["digits"]),
        ("kernelne links karate --operator l", ["l2", "l1"]),
        ("kernelne links karate --non-edges d", ["degree"]),
        ("kernelne explore v.npz --layout ", ["auto", "map", "pca", "tsne", "umap"]),
        ("kernelne plot v.npz --graph lf", ["lfr"]),
        ("kernelne similar v.npz 1 --metric e", ["euclidean"]),
        ("kernelne compare karate --methods prone,mn", ["prone,mnmf"]),
        ("kernelne compare karate --methods prone,p", []),
        ("kernelne convert lesm", ["lesmis"]),
        ("kernelne datasets fetch c", ["citeseer", "cora"]),
    ],
)
def test_options_and_arguments_are_completed(folder, line, expected):
    assert offered(line, folder).split() == expected


def test_files_stand_beside_datasets_and_are_left_to_the_shell_where_none_is_meant(folder):
    for name in ("digits.csv", "dune", ".hidden", "d x.csv"):
        (folder / name).mkdir() if name == "dune" else (folder / name).touch()
    assert offered("kernelne embed d", folder).split() == [
        "dblp",
        "dolphins",
        "digits",
        "digits.csv",
        "dune/",
    ]
    everything = offered("kernelne embed ", folder).split()
    assert everything == [*completion.DATASETS, "digits.csv", "dune/", "ring.edges"]
    assert offered("kernelne embed ri", folder).split() == []


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_is_told(folder, shell):
    assert "karate" in offered("kernelne embed kar", folder, shell)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_shown_and_installed(tmp_path, shell):
    # The shell is named, because there may be none above the tests.
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1", "HOME": str(tmp_path)}
    shown = process("--show-completion", shell, cwd=tmp_path, env=environment)
    assert shown.returncode == 0, shown.stderr
    assert f"_KERNELNE_COMPLETE=complete_{shell}" in shown.stdout
    installed = process("--install-completion", shell, cwd=tmp_path, env=environment)
    assert installed.returncode == 0, installed.stderr
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(f"_KERNELNE_COMPLETE=complete_{shell}" in text for text in written)


def test_completion_is_light(folder):
    code = "import os, sys; from kernelne.cli import main\ntry: main([])\nfinally: print(*sys.modules)"
    asked = {"_KERNELNE_COMPLETE": "complete_bash", "COMP_WORDS": "kernelne embed ", "COMP_CWORD": "2"}
    command = [sys.executable, "-c", code]
    found = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | asked, cwd=folder
    )
    loaded = found.stdout.split()
    assert "karate" in loaded
    assert not {"numba", "sklearn", "pyarrow", "numpy", "scipy"} & set(loaded)
