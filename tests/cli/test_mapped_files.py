"""Commands on a graph and vectors that stay in their files give what they give of those in memory."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from kernelne import Embedding, read_graph, write_graph
from kernelne.cli import predict as predict_module
from kernelne.graph.string_ids import StringIds
from kernelne.io.embeddings import registry


@pytest.fixture
def mapped(town, tmp_path, monkeypatch):
    """Copies of the town's files that can be mapped; all vectors are."""
    for name in ("town.edges", "town.labels"):
        shutil.copy(town / name, tmp_path)
    Embedding.load(town / "town.npz").save(tmp_path / "town.safetensors")
    write_graph(read_graph(town / "town.edges"), tmp_path / "town.kne")
    monkeypatch.setattr(registry, "LARGE", 0.0)
    assert isinstance(Embedding.load(tmp_path / "town.safetensors").nodes, StringIds)
    assert isinstance(read_graph(tmp_path / "town.kne").nodes, StringIds)
    return tmp_path


@pytest.mark.parametrize(
    "call",
    [
        "similar VECTORS n1 n7 -k 3",
        "similar VECTORS n1 --metric euclidean --labels town.labels --json",
        "recommend GRAPH VECTORS n1 n30 -k 4",
        "recommend GRAPH VECTORS --all -k 4 -o out.csv",
        "recommend GRAPH VECTORS --from-prefix n1 -o out.csv",
        "predict VECTORS few.labels -o out.csv --probabilities",
        "predict VECTORS town.labels -o out.csv --all --threshold 0.9",
        "classify VECTORS town.labels",
        "info GRAPH",
        "cluster VECTORS --labels town.labels -o out.csv",
        "convert GRAPH out.graphml",
        "links GRAPH --walks-per-node 2 --dim 8 --seed 1 -j 1",
        "embed GRAPH -o out.csv --walks-per-node 2 --dim 8 --seed 1 -j 1 --quiet",
        "fold-in VECTORS GRAPH -o out.csv",
    ],
)
def test_commands_say_the_same(kernelne, mapped, monkeypatch, call):
    lines = (mapped / "town.labels").read_text().splitlines()[::2]
    (mapped / "few.labels").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(predict_module, "_BLOCK", 40)
    found = []
    for graph, large in (("town.edges", 1e9), ("town.kne", 0.0)):
        monkeypatch.setattr(registry, "LARGE", large)
        words = call.replace("GRAPH", graph).replace("VECTORS", "town.safetensors").split()
        result = kernelne(*words, cwd=mapped)
        assert result.returncode == 0, result.stderr
        outputs = sorted(mapped.glob("out*"))
        told = [line for line in result.stdout.splitlines() if "seconds" not in line]
        found.append((told, [path.read_text() for path in outputs]))
        for path in outputs:
            path.unlink()
    if call.startswith("recommend"):  # products of parts are rounded in another way
        assert [len(text.split()) for text in found[0][1]] == [len(text.split()) for text in found[1][1]]
    assert found[0] == found[1]


def test_predictions_in_blocks_are_those_of_all(kernelne, mapped, monkeypatch):
    texts = set()
    for block in (2**24, 100, 1):
        monkeypatch.setattr(predict_module, "_BLOCK", block)
        call = "predict town.safetensors town.labels --all -o out.csv --overwrite --quiet"
        assert kernelne(*call.split(), cwd=mapped).returncode == 0
        texts.add((mapped / "out.csv").read_text())
    rows = [text.splitlines() for text in texts]
    assert {len(each) for each in rows} == {61}
    assert len({tuple(line.rpartition(",")[0] for line in each) for each in rows}) == 1
    values = np.array([[float(line.rpartition(",")[2]) for line in each[1:]] for each in rows])
    assert np.ptp(values, axis=0).max() < 1e-9
