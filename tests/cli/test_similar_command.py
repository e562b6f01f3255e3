"""`kernelne similar`: nearest nodes in a table or as JSON, with an index or without."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest

from cli.running import assert_refused
from kernelne import Embedding


@pytest.fixture
def here(town, tmp_path):
    for name in ("town.npz", "town.labels"):
        shutil.copy(town / name, tmp_path)
    return tmp_path


def test_one_node(kernelne, town):
    result = kernelne("similar", "town.npz", "n7", "-k", "3", cwd=town)
    assert result.returncode == 0, result.stderr
    head, *lines = result.stdout.splitlines()
    assert head.split() == ["node", "similarity"]
    near = Embedding.load(town / "town.npz").neighbours("n7", k=3)
    assert [line.split() for line in lines] == [[node, f"{score:.4f}"] for node, score in near]
    assert result.stderr == ""


def test_several_nodes_with_labels(kernelne, town):
    args = ["similar", "town.npz", "n7", "n8", "-k", "2", "--labels", "town.labels", "--metric", "euclidean"]
    head, *lines = kernelne(*args, cwd=town).stdout.splitlines()
    assert head.split() == ["to", "node", "label", "distance"]
    assert [line.split()[0] for line in lines] == ["n7", "n7", "n8", "n8"]
    own = dict(line.split() for line in (town / "town.labels").read_text().splitlines())
    for line in lines:
        to, node, label, _ = line.split()
        assert own[to] == own[node] == label


def test_json(kernelne, town):
    args = ["similar", "town.npz", "n7", "-k", "2", "--json", "--labels", "town.labels"]
    facts = json.loads(kernelne(*args, cwd=town).stdout)
    assert (facts["metric"], facts["exact"]) == ("cosine", True)
    (only,) = facts["similar"]
    assert only["node"] == "n7"
    near = Embedding.load(town / "town.npz").neighbours("n7", k=2)
    assert [(n["node"], n["similarity"]) for n in only["neighbours"]] == near
    assert all(n["labels"] in (["a"], ["b"], ["c"]) for n in only["neighbours"])


def test_among(kernelne, town, tmp_path):
    (tmp_path / "some.txt").write_text("n3\n\nn40\n")
    args = ["similar", town / "town.npz", "n3", "--json"]
    result = kernelne(*args, "--among", "some.txt", cwd=tmp_path)
    found = json.loads(result.stdout)["similar"][0]["neighbours"]
    assert [row["node"] for row in found] == ["n40"]
    (tmp_path / "some.txt").write_text("nobody\n")
    assert_refused(kernelne(*args, "--among", "some.txt", cwd=tmp_path), tmp_path, "nobody")
    result = kernelne(*args, "--among", "some.txt", "--index", cwd=tmp_path)
    assert_refused(result, tmp_path, "cannot be combined with --index")


def test_integer_ids(kernelne, tmp_path):
    Embedding(np.eye(3), [10, -20, 30]).save(tmp_path / "v.npz")
    result = kernelne("similar", "v.npz", "--json", "--", "-20", cwd=tmp_path)
    facts = json.loads(result.stdout)["similar"][0]
    assert facts["node"] == -20
    assert {n["node"] for n in facts["neighbours"]} == {10, 30}
    for other in ("1_0", "010", "+10", "１０"):
        assert "no node" in kernelne("similar", "v.npz", other, cwd=tmp_path).stderr


def test_index(kernelne, here):
    pytest.importorskip("usearch")
    plain = kernelne("similar", "town.npz", "n7", cwd=here)
    made = kernelne("similar", "town.npz", "n7", "--index", cwd=here)
    assert (made.returncode, made.stdout) == (0, plain.stdout)
    assert "Indexing 60 nodes" in made.stderr
    assert (here / "town.npz.cosine.usearch").exists()
    used = kernelne("similar", "town.npz", "n7", "--index", "--json", cwd=here)  # it is there: not made again
    assert (used.stderr, json.loads(used.stdout)["exact"]) == ("", False)
    asked = kernelne("similar", "town.npz", "n7", "--exact", "--json", cwd=here)
    assert json.loads(asked.stdout)["exact"] is True
    # Another embedding under the same name: the index is of no use, and renewed if one is asked for.
    Embedding(np.eye(60), [f"n{i}" for i in range(60)]).save(here / "town.npz", overwrite=True)
    stale = kernelne("similar", "town.npz", "n7", "--json", cwd=here)
    assert (json.loads(stale.stdout)["exact"], stale.stderr) == (True, "")
    assert "Indexing" in kernelne("similar", "town.npz", "n7", "--index", cwd=here).stderr


def test_without_usearch(kernelne, here, monkeypatch):
    (here / "town.npz.cosine.usearch").write_text("whatever")
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    result = kernelne("similar", "town.npz", "n7", cwd=here)
    assert (result.returncode, result.stderr) == (0, "")  # an index that nobody asked for is not looked at
    (here / "town.npz.cosine.usearch").unlink()
    refused = kernelne("similar", "town.npz", "n7", "--index", "--quiet", cwd=here)
    assert_refused(refused, here, "[search]")


BAD = {
    "n99": ["no node 'n99'", "close ids: 'n9'"],
    "n1 bob": ["'bob'"],
    "n1 -k 0": ["-k"],
    "n1 --metric dot": ["--metric='dot'", "cosine, euclidean"],
    "n1 --index --exact": ["--index", "--exact"],
    "n1 --labels none.labels": ["none.labels", "no such file"],
    "": ["NODE"],
}


@pytest.mark.parametrize("options", BAD)
def test_bad_options(kernelne, town, options):
    assert_refused(kernelne("similar", "town.npz", *options.split(), cwd=town), town, *BAD[options])
