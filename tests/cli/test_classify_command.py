"""`kernelne classify`: scores of vectors against labels."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cli.running import assert_refused
from kernelne import Embedding, classify_nodes, read_labels


def test_json_has_the_scores_of_classify_nodes(kernelne, town):
    args = ["--train-sizes", "10,50", "--repeats", "3", "--seed", "4", "--json"]
    result = kernelne("classify", "town.npz", "town.labels", *args, cwd=town)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    scores = found.pop("scores")
    assert found == {"nodes": 60, "without_label": 0, "classes": 3, "repeats": 3, "seed": 4}
    embedding = Embedding.load(town / "town.npz")
    rows, truth = read_labels(town / "town.labels").for_nodes(embedding.nodes)
    expected = classify_nodes(
        embedding.vectors[rows], truth, train_sizes=[0.1, 0.5], n_repeats=3, random_state=4
    )
    assert [row["train_share"] for row in scores] == [0.1, 0.5]
    for i, row in enumerate(scores):
        assert row["micro_f1"] == pytest.approx(expected.micro_f1[i].mean())
        assert row["macro_f1"] == pytest.approx(expected.macro_f1[i].mean())
        assert row["micro_f1_sd"] == pytest.approx(expected.micro_f1[i].std())
        assert row["macro_f1_sd"] == pytest.approx(expected.macro_f1[i].std())
    assert scores[1]["micro_f1"] > 0.95 > 0.5 > scores[1]["majority_micro_f1"]


def test_the_majority_is_that_of_the_labels(kernelne, town, tmp_path):
    lines = "".join(f"n{i} {'rare' if i < 15 else 'usual'}\n" for i in range(60))
    (tmp_path / "skewed.labels").write_text(lines)
    args = ["--train-sizes", "50", "--repeats", "40", "--json"]
    result = kernelne("classify", town / "town.npz", "skewed.labels", *args, cwd=tmp_path)
    [row] = json.loads(result.stdout)["scores"]
    assert row["majority_micro_f1"] == pytest.approx(0.75, abs=0.02)
    assert row["majority_macro_f1"] == pytest.approx(0.75 / 1.75, abs=0.02)  # only one class is ever found


def test_table(kernelne, town):
    result = kernelne("classify", "town.npz", "town.labels", "--repeats", "2", cwd=town)
    assert result.returncode == 0, result.stderr
    header, *rows, note = result.stdout.splitlines()
    assert note == "± is the standard deviation over splits"
    assert header.split() == ["trained", "on", "micro-F1", "macro-F1", "majority:", "micro-F1", "macro-F1"]
    assert [row.split(" %")[0] for row in rows] == ["5", "10", "50", "90"]  # 1 % of 60 nodes is none
    assert all(len(row) == len(header) for row in rows)
    assert rows[-1].split(" %")[1].split()[:3] == ["1.000", "±", "0.000"]
    assert "Labels: 60 nodes, 3 classes\n" in result.stderr


def test_quiet_leaves_the_table_alone(kernelne, town):
    result = kernelne("classify", "town.npz", "town.labels", "--repeats", "1", "--quiet", cwd=town)
    assert result.stderr == ""
    assert "±" not in result.stdout  # of one split there is no deviation
    assert len(result.stdout.splitlines()) == 5


def test_nodes_without_label_are_left_out_and_counted(kernelne, town, tmp_path):
    lines = (town / "town.labels").read_text().splitlines(keepends=True)
    (tmp_path / "some.labels").write_text("".join(lines[5:]))
    args = ["--train-sizes", "50", "--repeats", "1"]
    result = kernelne("classify", town / "town.npz", "some.labels", *args, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Labels: 55 nodes, 3 classes; 5 without label left out" in result.stderr
    result = kernelne("classify", town / "town.npz", "some.labels", *args, "--json", cwd=tmp_path)
    found = json.loads(result.stdout)
    assert (found["nodes"], found["without_label"]) == (55, 5)


def test_labels_of_unknown_nodes(kernelne, town, tmp_path):
    text = (town / "town.labels").read_text() + "n61 a\nn62 b\n"
    (tmp_path / "more.labels").write_text(text)
    result = kernelne("classify", town / "town.npz", "more.labels", cwd=tmp_path)
    assert_refused(result, tmp_path, "more.labels: 2 of 62", "n61", "(--skip-unknown leaves them out)")
    assert "header" not in result.stderr  # n61 is not in the first line
    args = ["--skip-unknown", "--train-sizes", "50", "--json"]
    result = kernelne("classify", town / "town.npz", "more.labels", *args, cwd=tmp_path)
    assert json.loads(result.stdout)["nodes"] == 60


def test_labels_of_another_graph(kernelne, town, tmp_path):
    (tmp_path / "other.labels").write_text("x a\ny b\n")
    args = ["classify", town / "town.npz", "other.labels", "--skip-unknown"]
    assert_refused(kernelne(*args, cwd=tmp_path), tmp_path, "other.labels", "none of its 2 nodes")


def test_several_labels_a_node(kernelne, town, tmp_path):
    lines = (town / "town.labels").read_text().splitlines()
    (tmp_path / "several.labels").write_text("".join(f"{line},all\n" for line in lines))
    args = ["--train-sizes", "50", "--repeats", "2", "--json"]
    result = kernelne("classify", town / "town.npz", "several.labels", *args, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["classes"] == 4
    assert found["scores"][0]["micro_f1"] > 0.95


def test_labels_of_a_dataset(kernelne, tmp_path):
    vectors = np.random.default_rng(0).normal(size=(34, 3))
    Embedding(vectors, np.arange(34)).save(tmp_path / "club.npz")
    args = ["--train-sizes", "50", "--repeats", "1", "--json"]
    result = kernelne("classify", "club.npz", "karate", *args, cwd=tmp_path)
    assert json.loads(result.stdout)["classes"] == 2
    # A file of that name wins.
    (tmp_path / "karate").write_text("".join(f"{i} {i % 3}\n" for i in range(34)))
    result = kernelne("classify", "club.npz", "karate", *args, cwd=tmp_path)
    assert json.loads(result.stdout)["classes"] == 3
    result = kernelne("classify", "club.npz", "erdos_renyi:n=34", cwd=tmp_path)
    assert_refused(result, tmp_path, "erdos_renyi", "no labels")


@pytest.mark.parametrize("shares", ["0", "100", "-5", "ten", "", "10,,50", "nan", "1"])
def test_bad_shares(kernelne, town, shares):
    result = kernelne("classify", "town.npz", "town.labels", f"--train-sizes={shares}", "--quiet", cwd=town)
    words = ["--train-sizes='1'", "1 % leaves none of 60 nodes"] if shares == "1" else ["train"]
    assert_refused(result, town, *words)
    assert result.stdout == ""


@pytest.mark.parametrize("option", ["--repeats=0", "--seed=-1", "--repeats=x"])
def test_bad_options(kernelne, town, option):
    result = kernelne("classify", "town.npz", "town.labels", option, cwd=town)
    assert_refused(result, town, option.split("=")[0])


def test_bad_files(kernelne, town, tmp_path):
    (tmp_path / "bad.labels").write_text("n0 a\nn1\n")
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    for embedding, labels, words in (
        ("none.npz", town / "town.labels", ["none.npz", "no such file"]),
        (town / "town.npz", "none.labels", ["none.labels", "no such file"]),
        (town / "town.npz", "none", ["none: there is no such file", "dataset"]),
        (town / "town.npz", "bad.labels", ["bad.labels:2"]),
        ("bad.npz", town / "town.labels", ["bad.npz"]),
    ):
        assert_refused(kernelne("classify", embedding, labels, cwd=tmp_path), tmp_path, *words)


def test_one_class_is_refused(kernelne, town, tmp_path):
    (tmp_path / "one.labels").write_text("".join(f"n{i} a\n" for i in range(60)))
    result = kernelne("classify", town / "town.npz", "one.labels", "--quiet", cwd=tmp_path)
    assert_refused(result, tmp_path, "two classes")


def test_how_labels_are_read(kernelne, town, tmp_path):
    lines = (town / "town.labels").read_text().replace(" ", "|")
    (tmp_path / "piped.labels").write_text("who|what\n" + lines)
    args = ["classify", town / "town.npz", "piped.labels", "--labels-separator", "|", "--quiet", "--json"]
    args += ["--train-sizes", "50", "--repeats", "1"]
    result = kernelne(*args, cwd=tmp_path)
    assert_refused(result, tmp_path, "are these column names, or a node and its label?", "--labels-header")
    result = kernelne(*args, "--labels-header", cwd=tmp_path)
    assert json.loads(result.stdout)["nodes"] == 60, result.stderr
    args[4] = "||"
    assert_refused(kernelne(*args, cwd=tmp_path), tmp_path, "--labels-separator='||'")
    result = kernelne("classify", town / "town.npz", "karate", "--no-labels-header", cwd=tmp_path)
    assert_refused(result, tmp_path, "--labels-header=False", "karate is the name of a dataset")


def test_empty_cells_are_nodes_without_label(kernelne, town, tmp_path):
    lines = (town / "town.labels").read_text().replace(" ", ",").splitlines()
    lines[:4] = [f"n{i}," for i in range(4)]
    (tmp_path / "some.csv").write_text("\n".join(["id,label", *lines]))
    args = ["--train-sizes", "50", "--repeats", "1", "--json"]
    result = kernelne("classify", town / "town.npz", "some.csv", *args, cwd=tmp_path)
    found = json.loads(result.stdout)
    assert (found["nodes"], found["without_label"]) == (56, 4)
