"""`kernelne convert`, and edges from standard input."""

from __future__ import annotations

import gzip
import io
import json
import sys
from itertools import pairwise

import numpy as np
import pytest

from cli.running import FAST, assert_refused, process
from kernelne import Embedding, Graph, read_graph, write_graph
from kernelne.io.graphs.registry import FORMATS


@pytest.fixture
def feed(monkeypatch):
    """Put bytes on standard input."""

    def feed(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return feed


@pytest.fixture
def named(tmp_path):
    """A directed, weighted graph with names and an isolated node, as graph.graphml."""
    graph = Graph.from_edges(["a b", "é"], ["é", "<c>"], [0.5, 2], ["x"], directed=True)
    write_graph(graph, tmp_path / "graph.graphml")
    return graph


def test_a_graph_goes_round(kernelne, named, tmp_path):
    names = ["graph.graphml", "a.gml", "b.net.gz", "c.parquet", "d.feather", "e.graphml.zst"]
    for source, target in pairwise(names):
        result = kernelne("convert", source, target, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (0, f"{target}\n"), result.stderr
        assert result.stderr.startswith("Graph: 4 nodes, 2 edges, directed, weighted, such as a b – é")
    assert read_graph(tmp_path / names[-1]).fingerprint == named.fingerprint
    assert kernelne("convert", "a.gml", "quiet.gml", "--quiet", cwd=tmp_path) == (0, "", "")


def test_a_direction_that_the_file_does_not_tell_is_told(kernelne, tmp_path):
    note = "note: the format does not store the direction of edges: read the file with --directed"
    for directed in (True, False):
        graph = Graph.from_edges([0, 1], [1, 2], directed=directed)
        write_graph(graph, tmp_path / "in.gml", overwrite=True)
        for found in FORMATS:
            if directed and found.name == "METIS":
                continue  # which refuses it
            target = f"out{found.suffixes[0]}"
            result = kernelne("convert", "in.gml", target, "--overwrite", cwd=tmp_path)
            assert result.returncode == 0, result.stderr
            lost = read_graph(tmp_path / target).directed != directed
            assert (note in result.stderr) == lost, target
            quiet = kernelne("convert", "in.gml", target, "--overwrite", "--quiet", cwd=tmp_path)
            assert quiet == (0, "", "")


def test_what_would_be_lost_is_refused_unless_told(kernelne, named, tmp_path):
    for target, word in {
        "out.mtx": "node ids",
        "out.adjlist": "weights",
        "out.tsv": "1 nodes without edges",
    }.items():
        result = kernelne("convert", "graph.graphml", target, cwd=tmp_path)
        assert_refused(result, tmp_path, target, f"would lose {word}", "--lossy")
    result = kernelne("convert", "graph.graphml", "out.mtx", "--lossy", cwd=tmp_path)
    assert result.returncode == 0
    assert read_graph(tmp_path / "out.mtx").n_nodes == 4
    result = kernelne("convert", "graph.graphml", "out.tsv", "--lossy", cwd=tmp_path)
    assert result.returncode == 0
    assert "warning: 1 nodes without edges are left out of out.tsv" in result.stderr
    assert (
        "note: the format does not store the direction of edges: read the file with --directed"
        in result.stderr
    )
    back = read_graph(tmp_path / "out.tsv", directed=True, nodes=named.nodes)
    assert back.fingerprint == named.fingerprint


def test_options_say_how_to_read(kernelne, folder):
    (folder / "g.txt").write_text("n1;n2;3\nn2;n3;4\n")
    (folder / "ids.txt").write_text("lonely\n")
    options = ["--directed", "--separator", ";", "--unweighted", "--no-header", "--nodes", "ids.txt"]
    assert kernelne("convert", "g.txt", "g.gml", *options, cwd=folder).returncode == 0
    expected = Graph.from_edges(["n1", "n2"], ["n2", "n3"], nodes=["lonely"], directed=True)
    assert read_graph(folder / "g.gml").fingerprint == expected.fingerprint
    (folder / "odd.data").write_bytes((folder / "g.gml").read_bytes())
    assert (
        kernelne("convert", "odd.data", "h.net", "--format", "gml", "--undirected", cwd=folder).returncode
        == 0
    )
    assert not read_graph(folder / "h.net").directed
    result = kernelne("convert", "odd.data", "out.net", "--format", "xlsx", cwd=folder)
    assert_refused(result, folder, "--format='xlsx'", "known formats are txt")
    result = kernelne("convert", "odd.data", "out.net", cwd=folder)
    assert_refused(result, folder, "odd.data", "unknown suffix", "--format")
    result = kernelne("convert", "g.gml", "out.net", "--separator", ",", cwd=folder)
    assert_refused(result, folder, "--separator", "not to GML")


def test_refusals(kernelne, folder, named):
    refuse = [
        (["graph.graphml", "out.xlsx"], "unknown suffix"),
        (["graph.graphml", "graph.graphml"], "is the input"),
        (["missing.gml", "out.gml"], "there is no such file"),
        (["graph.graphml", "nowhere/out.gml"], "there is no folder nowhere"),
        (["graph.graphml", "out.npz"], "one is a graph, the other an embedding"),
    ]
    for args, word in refuse:
        assert_refused(kernelne("convert", *args, cwd=folder), folder, word)
    (folder / "there.gml").write_text("old")
    result = kernelne("convert", "graph.graphml", "there.gml", cwd=folder)
    assert_refused(result, folder, "already exists", "--overwrite")
    assert (folder / "there.gml").read_text() == "old"
    assert kernelne("convert", "graph.graphml", "there.gml", "--overwrite", cwd=folder).returncode == 0
    (folder / "bad.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 9\n")
    result = kernelne("convert", "bad.mtx", "out.gml", cwd=folder)
    assert_refused(result, folder, "bad.mtx:3: expected indices from 1 to 2 (found '1 9')")


def test_datasets_can_be_written(kernelne, tmp_path):
    assert kernelne("convert", "karate", "karate.mtx", cwd=tmp_path).returncode == 0
    assert read_graph(tmp_path / "karate.mtx").n_edges == 78


def test_embeddings_go_round(kernelne, tmp_path):
    plain = Embedding(np.random.default_rng(0).normal(size=(3, 2)), ["a", "b", "c"])
    plain.save(tmp_path / "v.npz")
    names = ["v.npz", "a.emb", "b.csv", "c.parquet", "d.csv", "e.safetensors", "f.npy"]
    for source, target in pairwise(names):
        assert kernelne("convert", source, target, cwd=tmp_path).returncode == 0, (source, target)
    back = Embedding.load(tmp_path / "f.npy")
    assert back.nodes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(back.vectors, plain.vectors)


def test_what_an_embedding_would_lose_is_refused_unless_told(kernelne, tmp_path):
    table = np.ones((2, 2))
    full = Embedding(table, ["a", "b"], {"model": "x"}, table, table, [("gaussian", 1.0)], [1.0])
    full.save(tmp_path / "v.safetensors")
    result = kernelne("convert", "v.safetensors", "out.csv", cwd=tmp_path)
    lost = "center and context and kernels and coefficients and provenance"
    assert_refused(result, tmp_path, ".csv would lose", lost, "--lossy")
    result = kernelne("convert", "v.safetensors", "out.parquet", cwd=tmp_path)
    assert_refused(result, tmp_path, "would lose center and context and kernels and coefficients:")
    assert kernelne("convert", "v.safetensors", "v.npz", cwd=tmp_path).returncode == 0
    assert kernelne("convert", "v.safetensors", "v.emb", "--lossy", cwd=tmp_path).returncode == 0
    result = kernelne("convert", "v.emb", "out.npz", "--directed", cwd=tmp_path)
    assert_refused(result, tmp_path, "--directed", "v.emb is an embedding")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_edges_from_standard_input(kernelne, folder, feed, pack):
    edges = (folder / "ring.edges").read_bytes()
    feed(pack(edges))
    result = kernelne("info", "-", "--json", cwd=folder)
    assert json.loads(result.stdout)["nodes"] == 12
    feed(pack(edges))
    assert kernelne("embed", "-", "-o", "out.npz", *FAST, "--quiet", cwd=folder).returncode == 0
    assert Embedding.load(folder / "out.npz").nodes.tolist() == list(range(12))
    feed(pack(edges))
    assert kernelne("convert", "-", "ring.gml", "--directed", cwd=folder).returncode == 0
    assert (
        read_graph(folder / "ring.gml").fingerprint
        == read_graph(folder / "ring.edges", directed=True).fingerprint
    )


def test_other_formats_from_standard_input(kernelne, folder, feed, named):
    for name in ("graphml", "parquet", "mat"):
        graph = Graph.from_edges([0], [1], directed=True) if name == "mat" else named
        write_graph(graph, folder / f"x.{name}")
        feed((folder / f"x.{name}").read_bytes())
        result = kernelne("convert", "-", f"from_{name}.gml", "--format", name, cwd=folder)
        assert result.returncode == 0, result.stderr
        assert read_graph(folder / f"from_{name}.gml").fingerprint == graph.fingerprint


def test_errors_and_warnings_of_standard_input(kernelne, folder, feed):
    feed(b"1 2\n3\n")
    assert_refused(kernelne("info", "-", cwd=folder), folder, "standard input:2: expected 2 fields", "'3'")
    feed(b"")
    assert_refused(kernelne("info", "-", cwd=folder), folder, "standard input: no edges in the file")
    feed(b"gene A,gene B\nx,y\n")
    result = kernelne("info", "-", "--json", "--separator", ",", cwd=folder)
    assert_refused(result, folder, "standard input:1: are these column names, or an edge?")
    feed(b"1 2\n")
    result = kernelne("info", "-", "--format", "nonsense", cwd=folder)
    assert_refused(result, folder, "--format='nonsense'")


def test_a_pipe(folder):
    result = process("convert", "-", "out.graphml", "--quiet", cwd=folder, input="a b\nb c\n")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert read_graph(folder / "out.graphml").n_edges == 2


def test_what_a_format_cannot_hold_is_refused(kernelne, tmp_path):
    (tmp_path / "loop.edges").write_text("1 2\n2 2\n")
    result = kernelne("convert", "loop.edges", "out.metis", "--lossy", "--quiet", cwd=tmp_path)
    assert_refused(result, tmp_path, "cannot store self-loops, node 2")
