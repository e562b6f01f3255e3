"""Files made to do harm: they are read or refused, in little time and memory, and say so in one line."""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np
import pytest

from kernelne import Embedding, Graph, read_graph, read_labels
from kernelne.errors import FileFormatError, InputError, UnknownNodeError

#: Bytes of a text that takes minutes if the time grows with the square of its length.
LONG = 200_000
BOUND = 2.0  # seconds of a core: a tenth of it is used


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory):
    """The readers are compiled before anything is timed."""
    folder = tmp_path_factory.mktemp("compiled")
    texts = {".txt": "1 2\n", ".csv": "a,b\n", ".adjlist": "1 2\n", ".metis": "1 0\n\n"}
    texts[".net"] = "*Vertices 2\n1 a\n2 b\n*Edges\n1 2\n"
    for suffix, text in texts.items():
        (folder / f"g{suffix}").write_text(text)
        read_graph(folder / f"g{suffix}")
    (folder / "g.txt").write_text("a x\nb y\n")
    read_labels(folder / "g.txt")


def refused_in_time(read, path, error=InputError):
    start = time.process_time()
    with pytest.raises(error) as caught:
        read(path)
    assert time.process_time() - start < BOUND
    return str(caught.value)


# Patterns whose time must not grow with the square of the text


@pytest.mark.parametrize("piece", ["1", "1.", "a", '"', "node [ ", "node", "[", " \n", "#\n", "\x0b"])
def test_gml_is_read_in_linear_time(tmp_path, piece):
    path = tmp_path / "g.gml"
    for head in ("", "graph [ node [ id "):
        path.write_text(head + piece * (LONG // len(piece)) + "x")
        refused_in_time(read_graph, path)


@pytest.mark.parametrize("suffix", [".graphml", ".net", ".adjlist", ".metis", ".mtx", ".txt", ".csv"])
@pytest.mark.parametrize("piece", ["1", "&a", "<a ", "*Edges\n", "\t", "\n", "a,"])
def test_other_graphs_are_read_in_linear_time(tmp_path, suffix, piece):
    heads = {".net": "*Vertices 1\n1 ", ".graphml": '<graphml><graph><node id="', ".txt": "a b\n"}
    path = tmp_path / f"g{suffix}"
    path.write_text(heads.get(suffix, "") + piece * (LONG // len(piece)) + "x")
    start = time.process_time()
    with suppress(InputError):
        read_graph(path)
    assert time.process_time() - start < BOUND


@pytest.mark.parametrize(("suffix", "head"), [(".csv", "id,0\na,"), (".emb", "1 1\na ")])
@pytest.mark.parametrize("end", ["x", "e", ".1.1", ""])
def test_vectors_as_text_are_read_in_linear_time(tmp_path, suffix, head, end):
    path = tmp_path / f"e{suffix}"
    path.write_text(f"{head}{'1' * 100_000}{end}\n")  # longer ones are refused by the csv module
    told = refused_in_time(Embedding.load, path, FileFormatError)
    assert "not a finite number" in told


@pytest.mark.parametrize("between", ["\t", ",", ";", " "])
@pytest.mark.parametrize("read", [read_graph, read_labels])
def test_a_line_of_very_many_fields_is_refused(tmp_path, between, read):
    path = tmp_path / "g.txt"
    path.write_text(between.join(["from_a", *["b"] * (LONG // 2)]) + "\n")
    assert "fields" in refused_in_time(read, path, FileFormatError)


def test_columns_are_told_in_linear_time():
    names = [f"{word}_{i}" for i in range(5_000) for word in ("from", "to")]
    start = time.process_time()
    with pytest.raises(InputError, match="source and target"):
        Graph.from_table({name: [1, 2] for name in names})
    assert time.process_time() - start < BOUND


def test_blank_lines_are_skipped_fast(tmp_path):
    for name, blank in (("g.txt", b"\n"), ("h.txt", b" # \n"), ("i.txt", b"\t \r\n")):
        (tmp_path / name).write_bytes(blank * (10_000_000 // len(blank)) + b"1 2\n")
        start = time.process_time()
        assert read_graph(tmp_path / name).n_edges == 1
        assert time.process_time() - start < 2 * BOUND


def test_hints_for_unknown_ids_take_no_time_for_long_ids():
    rng = np.random.default_rng(0)
    ids = ["".join(rng.choice(list("ab"), 30_000)) for _ in range(4)]
    graph = Graph.from_edges(ids[:3], ids[1:])
    refused_in_time(graph.index_of, [ids[0][::-1]], UnknownNodeError)
    refused_in_time(graph.index_of, ["ab" * 90], UnknownNodeError)
