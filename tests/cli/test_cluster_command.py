"""`kernelne cluster`: clusters of vectors, compared and written."""

from __future__ import annotations

import json

import pytest

from cli.running import assert_refused
from kernelne import Embedding, read_graph, read_labels


def test_against_labels(kernelne, town):
    result = kernelne("cluster", "town.npz", "--labels", "town.labels", "--json", cwd=town)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        "nodes": 60, "clusters": 3, "compared_with": "labels", "compared_nodes": 60, "nmi": 1.0, "ari": 1.0,
        "modularity": None, "seed": 0,
    }  # fmt: skip


def test_against_communities(kernelne, town):
    args = ["cluster", "town.npz", "--graph", "town.edges"]
    facts = json.loads(kernelne(*args, "--json", cwd=town).stdout)
    # Right only if vectors and graph, which have other orders, were brought together by id.
    assert (facts["clusters"], facts["compared_with"], facts["nmi"]) == (3, "communities", 1.0)
    assert facts["modularity"] > 0.5
    text = kernelne(*args, cwd=town).stdout
    assert (
        "compared with          communities\ncompared nodes         60\nnmi                    1.0\n" in text
    )


def test_with_both_labels_count_and_modularity_is_told(kernelne, town):
    args = ["--graph", "town.edges", "--labels", "town.labels", "--n-clusters", "2", "--json"]
    facts = json.loads(kernelne("cluster", "town.npz", *args, cwd=town).stdout)
    assert (facts["clusters"], facts["compared_with"]) == (2, "labels")
    assert 0.5 < facts["nmi"] < 1
    assert facts["modularity"] > 0


def test_clusters_are_written(kernelne, town, tmp_path):
    args = ["cluster", town / "town.npz", "--n-clusters", "3", "-o", "out.csv"]
    result = kernelne(*args, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "nmi" not in result.stdout
    text = (tmp_path / "out.csv").read_text()
    assert text.startswith("id,cluster\n")
    found = read_labels(tmp_path / "out.csv")
    assert found.nodes.tolist() == Embedding.load(town / "town.npz").nodes.tolist()
    truth = read_labels(town / "town.labels")
    groups = dict(zip(truth.nodes, truth.single, strict=True))
    pairs = {(groups[node], cluster) for node, cluster in zip(found.nodes, found.single, strict=True)}
    assert len(pairs) == 3
    (tmp_path / "old.csv").write_text("precious")
    refused = kernelne(*args[:-1], "old.csv", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr
    assert (tmp_path / "old.csv").read_text() == "precious"
    assert kernelne(*args[:-1], "old.csv", "--overwrite", cwd=tmp_path).returncode == 0
    assert (tmp_path / "old.csv").read_text() == text


def test_ids_that_hold_commas_and_quotes(kernelne, tmp_path):
    names = ["a,b", 'say "x"', "plain", "[red]"]
    Embedding([[0.0], [0.1], [5.0], [5.1]], names).save(tmp_path / "names.npz")
    result = kernelne("cluster", "names.npz", "--n-clusters", "2", "-o", "out.csv", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert read_labels(tmp_path / "out.csv").nodes.tolist() == names


def test_integer_ids_stay_bare(kernelne, tmp_path):
    Embedding([[0.0], [5.0]], [7, 8]).save(tmp_path / "two.npz")
    kernelne("cluster", "two.npz", "--n-clusters", "1", "-o", "out.csv", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_text() == "id,cluster\n7,0\n8,0\n"


BAD = {
    "--labels=town.labels --n-clusters=61": ["--n-clusters=61", "60"],
    "--n-clusters=0": ["--n-clusters"],
    "--n-clusters=2 -o out.txt": ["out.txt", ".csv"],
    "--n-clusters=2 -o no/folder/out.csv": ["no/folder"],
    "--labels=none.labels": ["none.labels", "no such file"],
    "--graph=none.edges": ["none.edges", "no such file"],
    "--graph=karate": ["town.npz is not an embedding of karate: it lacks node 0"],
    "": ["--n-clusters", "--labels", "--graph"],
}


@pytest.mark.parametrize("options", BAD)
def test_bad_options(kernelne, town, options):
    result = kernelne("cluster", "town.npz", *options.split(), "--quiet", cwd=town)
    assert_refused(result, town, *BAD[options])


def test_labels_that_miss_nodes_or_have_several(kernelne, town, tmp_path):
    lines = (town / "town.labels").read_text().splitlines(keepends=True)
    (tmp_path / "some.labels").write_text("".join(lines[4:]))
    (tmp_path / "several.labels").write_text("".join(lines) + "n3 z\n")
    (tmp_path / "more.labels").write_text("".join(lines) + "n99 z\n")
    for labels, words in (
        ("several.labels", ["several.labels: some nodes have several labels"]),
        ("more.labels", ["more.labels", "n99", "--skip-unknown"]),
    ):
        args = ["cluster", town / "town.npz", "--labels", labels, "-o", "out.csv"]
        assert_refused(kernelne(*args, cwd=tmp_path), tmp_path, *words)
    args = ["cluster", town / "town.npz", "--labels", "more.labels", "--skip-unknown"]
    assert kernelne(*args, cwd=tmp_path).returncode == 0
    # Nodes without label are clustered, too, and not compared.
    args = ["cluster", town / "town.npz", "--labels", "some.labels", "-o", "some.csv", "--json"]
    result = kernelne(*args, cwd=tmp_path)
    assert "Clustering 60 nodes × 4, 56 of them labelled" in result.stderr
    facts = json.loads(result.stdout)
    assert (facts["nodes"], facts["compared_nodes"], facts["nmi"]) == (60, 56, 1.0)
    assert len((tmp_path / "some.csv").read_text().splitlines()) == 61


def test_graph_with_fewer_nodes(kernelne, town, tmp_path):
    (tmp_path / "part.edges").write_text("n1 n2\nn2 n3\n")
    args = ["cluster", town / "town.npz", "--graph", "part.edges"]
    assert_refused(kernelne(*args, cwd=tmp_path), tmp_path, "57 of 60", "not in the graph", "--nodes")
    names = "".join(f"n{i}\n" for i in range(60))
    (tmp_path / "nodes.txt").write_text(names)
    assert kernelne(*args, "--nodes", "nodes.txt", cwd=tmp_path).returncode == 0


def test_the_output_is_no_input(kernelne, tmp_path):
    Embedding([[0.0], [5.0]], [7, 8]).save(tmp_path / "two.csv")
    before = (tmp_path / "two.csv").read_text()
    args = ["cluster", "two.csv", "--n-clusters", "1", "-o", "two.csv", "--overwrite"]
    assert_refused(kernelne(*args, cwd=tmp_path), tmp_path, "is the input")
    assert (tmp_path / "two.csv").read_text() == before


def test_an_embedding_of_another_graph(kernelne, town, tmp_path):
    lines = (town / "town.edges").read_text().splitlines(keepends=True)
    (tmp_path / "town.edges").write_text("".join(lines[1:]) + lines[0])
    graph = read_graph(tmp_path / "town.edges")
    vectors = Embedding.load(town / "town.npz")[graph.nodes]
    for fingerprint, warned in ((graph.fingerprint, False), ("0" * 40, True)):
        made = Embedding(vectors, graph.nodes, provenance={"graph": {"fingerprint": fingerprint}})
        made.save(tmp_path / "made.npz", overwrite=True)
        result = kernelne("cluster", "made.npz", "--graph", "town.edges", cwd=tmp_path)
        assert result.returncode == 0
        assert ("warning: made.npz was made of another graph" in result.stderr) == warned
