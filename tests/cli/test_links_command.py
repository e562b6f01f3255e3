"""`kernelne links` and `kernelne recommend`."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cli.running import FAST, assert_refused
from kernelne import Embedding, read_graph

# A few walks leave a mixture where it started, and the estimator says so.
pytestmark = pytest.mark.filterwarnings("ignore:the loss:UserWarning")
MODEL = ["--walks-per-node", "40", "--dim", "8"]
NAMES = ["embedding", "link_predictor", "degree_product", "common_neighbours", "adamic_adar"]


def test_links(kernelne, town):
    args = ["links", "town.edges", *MODEL, "--test-share", "0.3", "--splits", "2", "--json"]
    result = kernelne(*args, cwd=town)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    scores = {row["name"]: row for row in found.pop("scores")}
    assert list(scores) == NAMES
    for row in scores.values():
        assert 0 < row["auc"] <= 1
        assert 0 < row["average_precision"] <= 1
        assert 0 < row["auc_sd"] < 0.2  # two splits, not one twice
    # Groups are dense: vectors and common neighbours tell, degrees do not.
    assert min(scores[name]["auc"] for name in NAMES if name != "degree_product") > 0.75
    assert scores["degree_product"]["auc"] < 0.65
    assert found["hidden_edges"] == round(0.3 * found["edges"])
    expected = {
        "model": "MKernelNE", "nodes": 60, "test_share": 0.3, "non_edges": "uniform", "splits": 2,
        "operator": "l2", "seed": 0,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    assert {"dim": 8, "walks_per_node": 40, "p": 1.0}.items() <= found["parameters"].items()
    assert "Split 2 of 2" in result.stderr


def test_links_table_and_options(kernelne, town):
    args = ["--model", "kernelne", "--operator", "hadamard", "--non-edges", "degree", "--seed", "3"]
    result = kernelne("links", "town.edges", *MODEL, *args, "--quiet", cwd=town)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    header, *rows = result.stdout.splitlines()
    assert header.split() == ["ranked", "by", "AUC", "average", "precision"]
    assert [row.split("  ")[0] for row in rows] == [
        "KernelNE, hadamard", "link predictor", "degree product", "common neighbours", "Adamic–Adar",
    ]  # fmt: skip
    assert "±" not in result.stdout  # one split has no deviation
    # One thread repeats.
    again = ["links", "town.edges", *MODEL, *args, "--quiet", "-j", "1"]
    assert kernelne(*again, cwd=town).stdout == kernelne(*again, cwd=town).stdout


BAD_LINKS = {
    "--operator=cosine": ["cosine", "hadamard"],
    "--test-share=0": ["--test-share=0.0: "],
    "--test-share=1.5": ["--test-share=1.5: "],
    "--test-share=half": ["--test-share"],
    "--non-edges=all": ["--non-edges='all': ", "degree"],
    "--splits=0": ["--splits"],
    "--seed=-1": ["--seed"],
    "--seed=4294967295 --splits=2": ["--seed=4294967295", "2 splits"],
    "--dim=0": ["--dim=0: "],
    "--sigma=2": ["--sigma", "kernelne"],
    "--nodes=none.txt": ["none.txt"],
}


@pytest.mark.parametrize("option", BAD_LINKS)
def test_bad_options_of_links(kernelne, town, option):
    result = kernelne("links", "town.edges", *option.split(), "--quiet", cwd=town)
    assert_refused(result, town, *BAD_LINKS[option])
    assert result.stdout == ""


def test_links_of_bad_graphs(kernelne, tmp_path):
    (tmp_path / "path.edges").write_text("0 1\n1 2\n2 3\n")
    result = kernelne("links", "path.edges", "--quiet", cwd=tmp_path)
    assert_refused(result, tmp_path, "tree")
    assert_refused(kernelne("links", "none.edges", cwd=tmp_path), tmp_path, "none.edges")


@pytest.fixture(scope="module")
def club(tmp_path_factory):
    """A folder with an embedding of the karate club in it."""
    from kernelne import MKernelNE, load_dataset

    folder = tmp_path_factory.mktemp("club")
    model = MKernelNE(dim=8, walks_per_node=40, random_state=1, n_threads=1).fit(load_dataset("karate").graph)
    model.to_embedding().save(folder / "club.npz")
    return folder


def test_recommend(kernelne, club):
    found = json.loads(
        kernelne("recommend", "karate", "club.npz", "16", "-k", "4", "--json", cwd=club).stdout
    )
    scores = [row["score"] for row in found["recommended"]]
    assert (found["node"], len(scores)) == (16, 4)
    assert scores == sorted(scores, reverse=True)
    assert {row["node"] for row in found["recommended"]}.isdisjoint({16, 5, 6})
    header, *rows = kernelne("recommend", "karate", "club.npz", "16", "0", cwd=club).stdout.splitlines()
    assert header.split() == ["to", "node", "score"]
    assert [int(row.split()[1]) for row in rows[:4]] == [row["node"] for row in found["recommended"]]
    assert [row.split()[0] for row in rows] == ["16"] * 10 + ["0"] * 10


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_recommend_to_many(kernelne, club, tmp_path, suffix):
    (tmp_path / "some.txt").write_text("16\n\n0\n")
    (tmp_path / "from.txt").write_text("1\n2\n30\n31\n32\n33\n")
    args = ["recommend", "karate", club / "club.npz", "-k", "3", "-o", f"out.{suffix}"]
    assert_refused(kernelne(*args[:-2], "--all", cwd=tmp_path), tmp_path, "-o OUT")
    result = kernelne(*args, "--for", "some.txt", "--candidates", "from.txt", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    read = pd.read_csv if suffix == "csv" else pd.read_parquet
    table = read(tmp_path / f"out.{suffix}")
    assert table.columns.tolist() == ["node", "recommended", "rank", "score"]
    assert table["node"].tolist() == [16] * 3 + [0] * 3
    assert table["rank"].tolist() == [1, 2, 3] * 2
    assert set(table["recommended"]) <= {30, 31, 32, 33, 1, 2}
    before = (tmp_path / f"out.{suffix}").read_bytes()
    assert kernelne(*args, "--all", cwd=tmp_path).returncode == 2  # it is there already
    assert (tmp_path / f"out.{suffix}").read_bytes() == before
    assert kernelne(*args, "--all", "--overwrite", "--to-prefix", "3", cwd=tmp_path).returncode == 0
    table = read(tmp_path / f"out.{suffix}")
    assert set(table["node"]) == set(range(34))
    assert {str(each)[0] for each in table["recommended"]} == {"3"}


def test_recommendations_to_few_of_a_file_are_printed(kernelne, club, tmp_path):
    (tmp_path / "some.txt").write_text("16\n0\n")
    args = ["recommend", "karate", club / "club.npz", "-k", "3"]
    for more in ([], ["--json"]):
        told = kernelne(*args, "16", "0", *more, cwd=tmp_path)
        assert kernelne(*args, "--for", "some.txt", *more, cwd=tmp_path) == told
        assert told.returncode == 0
    (tmp_path / "many.txt").write_text("".join(f"{node}\n" for node in range(21)))
    refused = kernelne(*args, "--for", "many.txt", cwd=tmp_path)
    assert_refused(refused, tmp_path, "give -o OUT", "more than 20 nodes")


def test_recommend_keeps_the_order_of_nodes_and_tells_of_prefixes(kernelne, tmp_path):
    rng = np.random.default_rng(0)
    pairs = {(u, i) for u, i in zip(rng.integers(0, 12, 80), rng.integers(0, 15, 80), strict=True)}
    (tmp_path / "shop.csv").write_text("user_id,item_id\n" + "".join(f"{u},{i}\n" for u, i in sorted(pairs)))
    embed = ["embed", "shop.csv", "--bipartite", "-o", "v.npz", *FAST, "--quiet"]
    assert kernelne(*embed, cwd=tmp_path).returncode == 0
    args = ["recommend", "shop.csv", "v.npz", "--bipartite", "-k", "1"]
    asked = ["user_id:3", "item_id:2", "user_id:1"]
    found = json.loads(kernelne(*args, *asked, "--json", cwd=tmp_path).stdout)
    assert [each["node"] for each in found] == asked
    told = "no node '5' in this embedding; close ids: 'item_id:5', 'user_id:5'"
    assert_refused(kernelne(*args, "5", cwd=tmp_path), tmp_path, told)


def test_recommend_refuses_what_does_not_go_together(kernelne, club, tmp_path):
    (tmp_path / "words.txt").write_text("ann\n")
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "header.txt").write_text("id\n3\n")
    for args, word in (
        ([], "--all"),
        (["1", "--all"], "give only one of NODE"),
        (["1", "--for", "words.txt"], "give only one of NODE"),
        (["1", "--candidates", "words.txt", "--to-prefix", "x"], "--to-prefix"),
        (["1", "--candidates", "words.txt"], "words.txt:1: no node 'ann'; the ids are integers"),
        (["1", "--candidates", "words.txt", "--skip-unknown"], "none of its 1 ids"),
        (["1", "--candidates", "header.txt"], "header.txt:1: no node 'id'"),
        (["1", "--candidates", "header.txt"], "is it a header?"),
        (["1", "--candidates", "empty.txt"], "no node ids"),
        (["1", "--to-prefix", "x"], "no node id starts"),
        (["1", "--predictor", "p.safetensors"], "--predictor='p.safetensors': needs --trained"),
        (["1", "--trained", "--predictor", "p.txt"], ".safetensors"),
        (["--all", "-o", "out.txt"], ".parquet"),
        (["--for", "none.txt", "-o", "out.csv"], "none.txt"),
    ):
        assert_refused(
            kernelne("recommend", "karate", club / "club.npz", *args, cwd=tmp_path), tmp_path, word
        )


def test_recommend_items_to_users(kernelne, tmp_path):
    rng = np.random.default_rng(0)
    pairs = {(u, i) for u, i in zip(rng.integers(0, 12, 80), rng.integers(0, 15, 80), strict=True)}
    (tmp_path / "shop.csv").write_text("user,item\n" + "".join(f"u{u},i{i}\n" for u, i in sorted(pairs)))
    graph = read_graph(tmp_path / "shop.csv")
    Embedding(rng.normal(size=(graph.n_nodes, 4)), graph.nodes).save(tmp_path / "shop.npz")
    (tmp_path / "items.txt").write_text("i1\ni2\ni99\n")
    for args in (["--all", "--to-prefix", "i"], ["--from-prefix", "u"],
                 ["--all", "--candidates", "items.txt", "--skip-unknown"]):  # fmt: skip
        result = kernelne(
            "recommend", "shop.csv", "shop.npz", *args, "-o", "new.csv", "--overwrite", cwd=tmp_path
        )
        assert result.returncode == 0, result.stderr
        assert ("1 of 3 ids are unknown" in result.stderr) == ("items.txt" in args)
        table = pd.read_csv(tmp_path / "new.csv")
        assert set(table["node"].str[0]) == {"u"}
        assert set(table["recommended"].str[0]) == {"i"}
        assert table.columns.tolist() == ["node", "recommended", "rank", "score"]


def test_recommend_trained(kernelne, club):
    result = kernelne("recommend", "karate", "club.npz", "16", "-k", "4", "--json", "--trained", cwd=club)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["node"] == 16
    assert len(found["recommended"]) == 4
    chances = [row["probability"] for row in found["recommended"]]
    assert chances == sorted(chances, reverse=True)
    assert 0 <= chances[-1] <= chances[0] <= 1
    assert {row["node"] for row in found["recommended"]}.isdisjoint({16, 5, 6})  # itself and its friends
    args = ["recommend", "karate", "club.npz", "16", "--trained", "--predictor", "p.safetensors"]
    first = kernelne(*args, cwd=club)
    assert "Wrote p.safetensors" in first.stderr
    again = kernelne(*args, cwd=club)
    assert (again.stdout, "Wrote" in again.stderr) == (first.stdout, False)
    many = kernelne(
        "recommend", "karate", "club.npz", "--all", "-k", "2", "-o", "all.csv", *args[4:], cwd=club
    )
    assert many.returncode == 0, many.stderr
    assert len((club / "all.csv").read_text().splitlines()) == 1 + 2 * 34
    assert pd.read_csv(club / "all.csv").columns.tolist()[-1] == "probability"
    header, *rows = kernelne(*args, cwd=club).stdout.splitlines()
    assert header.split() == ["node", "probability"]
    assert len(rows) == 10
    assert [int(row.split()[0]) for row in rows[:4]] == [row["node"] for row in found["recommended"]]


def test_recommend_by_name(kernelne, town, tmp_path):
    embedded = kernelne("embed", town / "town.edges", "-o", "out.safetensors", *FAST, cwd=tmp_path)
    assert embedded.returncode == 0, embedded.stderr
    args = ["recommend", town / "town.edges", "out.safetensors", "n5", "-k", "3", "--json"]
    found = json.loads(kernelne(*args, cwd=tmp_path).stdout)
    assert found["node"] == "n5"
    assert all(row["node"].startswith("n") for row in found["recommended"])


def test_recommend_for_unknown_nodes(kernelne, club, town):
    for node, words in (("99", ["99", "close ids: 33"]), ("bob", ["'bob'", "integers"])):
        assert_refused(kernelne("recommend", "karate", "club.npz", node, cwd=club), club, *words)
    result = kernelne("recommend", "town.edges", "town.npz", "n05", cwd=town)
    assert_refused(result, town, "'n05'", "close ids", "'n5'")


def test_recommend_needs_a_graph_and_an_embedding_of_the_same_nodes(kernelne, club, town, tmp_path):
    result = kernelne("recommend", town / "town.edges", club / "club.npz", "1", cwd=tmp_path)
    assert_refused(result, tmp_path, "club.npz is not an embedding of", "town.edges: it lacks node 'n0'")
    Embedding([[0.0], [1.0], [2.0]], [0, 1, 77]).save(tmp_path / "three.npz")
    (tmp_path / "two.edges").write_text("0 1\n")
    result = kernelne("recommend", "two.edges", "three.npz", "1", cwd=tmp_path)
    assert_refused(result, tmp_path, "1 of 3 nodes of the embedding", "77")


def test_recommend_from_bad_files(kernelne, club, tmp_path):
    for graph, embedding, word in (
        ("none.edges", club / "club.npz", "none.edges"),
        ("karate", "none.npz", "none.npz"),
        ("karate", club / "club.npz", "-k"),
    ):
        options = ["-k", "0"] if word == "-k" else []
        result = kernelne("recommend", graph, embedding, "1", *options, cwd=tmp_path)
        assert_refused(result, tmp_path, word)


def test_recommend_repeats(kernelne, town, tmp_path):
    embedded = kernelne("embed", town / "town.edges", "-o", "out.npz", *FAST, cwd=tmp_path)
    assert embedded.returncode == 0, embedded.stderr
    args = ["recommend", town / "town.edges", "out.npz", "n5", "--json", "--quiet", "--trained"]
    runs = [kernelne(*args, *more, cwd=tmp_path).stdout for more in (["--deterministic", "-j", "1"],
            ["--deterministic", "-j", "2"])]  # fmt: skip
    assert runs[0] == runs[1] != ""
    assert_refused(kernelne(*args, "-j", "0", cwd=tmp_path), town, "--n-threads=0")


def test_recommend_from_an_embedding_of_another_graph(kernelne, club, tmp_path):
    edges = [f"{i} {(i + 1) % 34}\n" for i in range(34)]
    (tmp_path / "ring.edges").write_text("".join(edges))
    result = kernelne("recommend", "ring.edges", club / "club.npz", "1", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "warning: the embedding was made of another graph" in result.stderr
    assert "another graph" not in kernelne("recommend", "karate", "club.npz", "1", cwd=club).stderr


def test_recommend_for_a_node_without_edges(kernelne, club, tmp_path):
    (tmp_path / "ring.edges").write_text("".join(f"{i} {(i + 1) % 12}\n" for i in range(12)))
    (tmp_path / "nodes.txt").write_text("".join(f"{i}\n" for i in range(13)))
    args = ["ring.edges", "--nodes", "nodes.txt"]
    kernelne("embed", *args, "-o", "ring.npz", *FAST, cwd=tmp_path)
    for node, told in (("12", True), ("3", False)):
        result = kernelne("recommend", args[0], "ring.npz", node, *args[1:], cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert (f"note: {node} has no edges" in result.stderr) == told
