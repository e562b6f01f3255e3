"""Files made to do harm: they are read or refused, in little time and memory, and say so in one line."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

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


# Files that unpack to more than there is


def bomb(path, line: bytes, size: int) -> None:
    how = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
    with pa.output_stream(path, compression=how) as out:
        for _ in range(size >> 20):
            out.write(line * (2**20 // len(line)))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("read", [read_graph, read_labels])
@pytest.mark.parametrize("line", [b"\n", b" \t\n", b"a b\n"])
def test_lines_that_unpack_without_end_are_refused(tmp_path, monkeypatch, suffix, read, line):
    path = tmp_path / f"bomb.txt{suffix}"
    bomb(path, line, 2**26)
    monkeypatch.setenv("KERNELNE_MEMORY", "4MiB")
    tracemalloc.start()
    with pytest.raises(FileFormatError, match=r"are free|free memory.*KERNELNE_MEMORY=SIZE"):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**25


def test_columns_that_leave_no_memory_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "g.txt"
    bomb(path, b"12 13\n", 2**23)
    monkeypatch.setenv("KERNELNE_MEMORY", "8M")
    with pytest.raises(FileFormatError, match=r"needs more than .* GiB of memory, and 0.01 GiB are free"):
        read_graph(path)
    monkeypatch.setenv("KERNELNE_MEMORY", "unlimited")
    assert read_graph(path).n_nodes == 2


def test_rows_of_a_table_that_take_no_space_in_its_file(tmp_path, monkeypatch):
    column = pa.array(np.zeros(10**6, np.int64))
    pq.write_table(pa.table({"source": column, "target": column}), tmp_path / "g.parquet")
    assert (tmp_path / "g.parquet").stat().st_size < 10_000
    monkeypatch.setenv("KERNELNE_MEMORY", "4 MB")
    with pytest.raises(FileFormatError, match=r"g.parquet: needs at least .* KERNELNE_MEMORY=SIZE"):
        read_graph(tmp_path / "g.parquet")


@pytest.mark.parametrize("text", ['<graphml><graph><node id="', "<!--", "<graphml><a ", "<?a "])
def test_a_huge_token_of_xml_is_refused_early(tmp_path, text):
    path = tmp_path / "g.graphml"
    path.write_text(text + "a" * 30_000_000)
    told = refused_in_time(read_graph, path, FileFormatError)
    assert "longer than 1048576 bytes" in told


def test_long_text_between_tags_is_read(tmp_path):
    rest = '<graph><node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>'
    (tmp_path / "g.graphml").write_text(f"<graphml><desc>{'long ' * 10**6}</desc>{rest}")
    assert read_graph(tmp_path / "g.graphml").n_edges == 1


def test_a_signal_ends_the_reading_of_xml(tmp_path):
    """The parser is asked in pieces, between which Python handles signals.

    The handler ends the process itself: an exception would be lost if the signal came in a callback of
    Python's own.
    """
    (tmp_path / "g.graphml").write_text(f"<graphml><desc>{'<a></a>' * 5 * 10**6}</desc></graphml>")
    code = "import os, signal, kernelne\nsignal.signal(signal.SIGALRM, lambda *_: os._exit(7))\n"
    code += "from kernelne.io.graphs import graphml\nsignal.setitimer(signal.ITIMER_REAL, 0.3)\n"
    code += "kernelne.read_graph('g.graphml')"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=60)
    assert result.returncode == 7


# Tables and matrices that lie


@pytest.mark.parametrize("lie", [-1, 2**30, 2**40, 2**62])
def test_arrow_streams_with_a_wrong_length(tmp_path, lie):
    table = pa.table({"source": np.arange(100), "target": np.arange(1, 101)})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data = bytearray(sink.getvalue())
    length = struct.pack("<q", 1600)  # of the body: 2 columns of 100 numbers
    assert data.count(length) == 1
    data[(place := data.index(length)) : place + 8] = struct.pack("<q", lie)
    (tmp_path / "g.arrow").write_bytes(data)
    with pytest.raises(FileFormatError, match="not a readable table"):
        read_graph(tmp_path / "g.arrow")


@pytest.mark.parametrize("name", ["g.graphml.gz", "g.gml.zst", "g.metis.gz"])
def test_corrupt_compressed_files_leak_nothing(tmp_path, name):
    bomb(tmp_path / name, b"<a/>\n", 2**20)
    data = bytearray((tmp_path / name).read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    (tmp_path / name).write_bytes(data)
    before = None
    for trial in range(12):
        with pytest.raises(FileFormatError, match="corrupt or truncated"):
            read_graph(tmp_path / name)
        if trial == 3:
            before = _resident()
    assert _resident() - before < 2**25  # each leaked 2**24


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("make", ["csr_array", "csc_array", "csr_matrix", "coo_array", "lil_array"])
@pytest.mark.parametrize("index", [-5, 3, 10**6])
def test_matrices_with_an_index_outside_are_refused(make, index):
    matrix = getattr(scipy.sparse, make)(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], np.float32))
    if make == "lil_array":
        matrix.rows[0] = [index]
    else:
        (matrix.coords[0] if make == "coo_array" else matrix.indices)[0] = index
    with pytest.raises(InputError, match="the adjacency matrix is damaged"):
        Graph.from_scipy(matrix)


@pytest.mark.parametrize("dtype", ["float16", ">f4", ">f8", ">i4", "longdouble", "bool", "uint8"])
@pytest.mark.parametrize("sparse", [True, False])
def test_numbers_of_any_kind_make_a_graph(dtype, sparse):
    dense = np.array([[0, 1], [1, 0]]).astype(dtype)
    if sparse:
        made = scipy.sparse.csr_array(np.array([[0.0, 1], [1, 0]]))
        made.data = made.data.astype(dtype)
        dense = made
    assert Graph.from_scipy(dense).n_edges == 1


def test_objects_make_no_graph():
    for matrix in (np.array([[0, 1], [1, 0]], object), np.array([["a", "b"], ["c", "d"]])):
        with pytest.raises(InputError, match="must contain real numbers, not"):
            Graph.from_scipy(matrix)


def test_weights_beyond_float32_name_file_and_line(tmp_path):
    (tmp_path / "g.txt").write_text("a b 1\nb c 1e39\n")
    with pytest.raises(FileFormatError, match=r"g\.txt:2: expected a weight.*fits float32.*'b c 1e39'"):
        read_graph(tmp_path / "g.txt")


@pytest.mark.parametrize("text", ['"q, r",x"sf,y\n', '"q, r",x%"s",ys",y\ny\n', '"q\n', '"q, r",x\x1b,y\n'])
def test_labels_with_an_open_quote(tmp_path, text):
    """Found by mutation."""
    (tmp_path / "l.csv").write_text(text)
    with suppress(FileFormatError):
        read_labels(tmp_path / "l.csv")
