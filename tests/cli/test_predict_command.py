"""`kernelne predict`."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cli.running import assert_refused
from kernelne import Embedding, read_labels


@pytest.fixture
def proteins(tmp_path):
    """Vectors of ninety nodes in three groups, and the labels of sixty of them."""
    groups = np.arange(90) % 3
    vectors = 3 * np.eye(3)[groups] + np.random.default_rng(0).normal(size=(90, 3))
    Embedding(vectors, [f"P{i}" for i in range(90)]).save(tmp_path / "vectors.npz")
    lines = [f"P{i},{['kinase', 'channel', 'receptor'][i % 3]}\n" for i in range(60)]
    (tmp_path / "labels.csv").write_text("".join(lines))
    return tmp_path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predict(kernelne, proteins, suffix):
    result = kernelne("predict", "vectors.npz", "labels.csv", "-o", f"told.{suffix}", cwd=proteins)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("Left out in turn: accuracy 0.")
    assert "accuracy" not in result.stderr
    table = (pd.read_csv if suffix == "csv" else pd.read_parquet)(proteins / f"told.{suffix}")
    assert table.columns.tolist() == ["node", "label", "probability"]
    assert table["node"].tolist() == [f"P{i}" for i in range(60, 90)]
    right = table["label"] == [["kinase", "channel", "receptor"][i % 3] for i in range(60, 90)]
    assert right.mean() > 0.8
    assert table["probability"].between(1 / 3, 1).all()


def test_predict_for_all_and_above_a_threshold(kernelne, proteins):
    args = ["predict", "vectors.npz", "labels.csv", "-o", "told.csv", "--all", "--threshold", "0.9", "--json"]
    facts = json.loads(kernelne(*args, cwd=proteins).stdout)
    table = pd.read_csv(proteins / "told.csv")
    assert len(table) == 90
    assert facts["unknown_nodes"] == table["label"].isna().sum() == (table["probability"] < 0.9).sum() > 0
    assert facts["labelled_nodes"] == 60
    assert 0 < facts["kept_share"] < 1
    every = json.loads(kernelne(*args[:6], "--overwrite", "--json", cwd=proteins).stdout)
    assert every["kept_share"] == 1
    assert facts["accuracy"] > every["accuracy"]
    Embedding(np.random.default_rng(1).normal(size=(90, 2)), [f"P{i}" for i in range(90)]).save(
        proteins / "noise.npz"
    )
    noise = ["predict", "noise.npz", "labels.csv", "-o", "noise.csv", "--threshold", "0.99", "--overwrite"]
    told = kernelne(*noise, cwd=proteins).stdout
    assert "labels of none of 60 labelled nodes reach the threshold" in told
    assert json.loads(kernelne(*noise, "--json", cwd=proteins).stdout)["accuracy"] is None


def test_quiet_prints_the_scores_alone(kernelne, proteins):
    result = kernelne("predict", "vectors.npz", "labels.csv", "-o", "told.csv", "--quiet", cwd=proteins)
    assert result.stdout.startswith("Left out in turn: accuracy 0.")
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""


def test_the_probability_of_each_class(kernelne, proteins):
    (proteins / "fraud.csv").write_text(
        "".join(f"P{i},{['fraud', 'fine', 'odd'][i % 3]}\n" for i in range(60))
    )
    args = ["predict", "vectors.npz", "fraud.csv", "-o", "told.csv", "--probabilities"]
    assert kernelne(*args, cwd=proteins).returncode == 0
    table = pd.read_csv(proteins / "told.csv")
    chances = table[["P(fine)", "P(fraud)", "P(odd)"]]
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_allclose(chances.max(axis=1), table["probability"])
    assert (chances.idxmax(axis=1) == "P(" + table["label"] + ")").all()
    assert len(read_labels(proteins / "told.csv")) == 30


def test_several_labels_have_several_lines(kernelne, proteins):
    lines = [f"P{i}\t{['a', 'b', 'a,b'][i % 3]}\n" for i in range(60)]
    (proteins / "labels.tsv").write_text("".join(lines))
    result = kernelne("predict", "vectors.npz", "labels.tsv", "-o", "told.csv", cwd=proteins)
    assert result.returncode == 0, result.stderr
    assert "Labels: 60 nodes, 2 classes, 20 with several labels" in result.stderr
    table = pd.read_csv(proteins / "told.csv")
    assert set(table["node"]) == {f"P{i}" for i in range(60, 90)}
    both = table.groupby("node")["label"].apply(set)
    assert np.mean([both[f"P{i}"] == {"a", "b"} for i in range(62, 90, 3)]) > 0.6


def test_bad_input_is_refused(kernelne, proteins):
    (proteins / "all.csv").write_text("".join(f"P{i},{i % 2}\n" for i in range(90)))
    (proteins / "one.csv").write_text("P1,a\nP2,a\n")
    (proteins / "other.csv").write_text("X1,a\nP2,b\n")
    for labels, output, word in (
        ("labels.csv", "out.txt", ".parquet"),
        ("all.csv", "out.csv", "--all"),
        ("other.csv", "out.csv", "X1"),
        ("none.csv", "out.csv", "none.csv"),
    ):
        assert_refused(kernelne("predict", "vectors.npz", labels, "-o", output, cwd=proteins), proteins, word)
    result = kernelne("predict", "vectors.npz", "one.csv", "-o", "out.csv", cwd=proteins)
    assert_refused(result, proteins, "two classes")
