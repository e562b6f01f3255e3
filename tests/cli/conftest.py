"""The command in this process, and small graphs to run it on."""

from __future__ import annotations

import numpy as np
import pytest

from cli.running import Result
from kernelne import Embedding, Graph, cli, load_dataset, write_graph


@pytest.fixture
def kernelne(capsys, monkeypatch):
    """The command in this process: the same function that the console script calls."""

    def call(*args, cwd):
        monkeypatch.chdir(cwd)
        code = cli.main(list(map(str, args)))
        return Result(code, *capsys.readouterr())

    return call


@pytest.fixture
def folder(tmp_path):
    """A folder with a ring of twelve nodes in it."""
    (tmp_path / "ring.edges").write_text("".join(f"{i} {(i + 1) % 12}\n" for i in range(12)))
    return tmp_path


@pytest.fixture(scope="session")
def town(tmp_path_factory):
    """A folder of three groups of 20 nodes, n0 to n59: edges, labels, and vectors that show the groups."""
    folder = tmp_path_factory.mktemp("town")
    made = load_dataset("planted:n=60,k=3,p_in=0.5,p_out=0.02,seed=1")
    names = [f"n{i}" for i in range(60)]
    write_graph(Graph.from_scipy(made.graph.to_scipy(), nodes=names), folder / "town.edges")
    groups = made.labels.single
    lines = [f"{name} {'abc'[group]}\n" for name, group in zip(names, groups, strict=True)]
    (folder / "town.labels").write_text("".join(lines))
    noise = np.random.default_rng(0).normal(scale=0.1, size=(60, 4))
    vectors = noise + np.eye(4)[groups] * 3
    # In another order than the graph's, as other programs write them.
    Embedding(vectors[::-1], names[::-1]).save(folder / "town.npz")
    return folder
