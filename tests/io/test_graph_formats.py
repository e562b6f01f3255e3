"""Every file format of a graph: what is written comes back, other packages agree, and damage is named."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
import tracemalloc
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kernelne.errors import FileFormatError, InputError, ParameterError
from kernelne.graph import Graph, as_graph
from kernelne.graph.ids import plain_integers
from kernelne.io.graphs import mat5
from kernelne.io.graphs.read_write import check_lossless, read_graph, write_graph
from kernelne.io.graphs.registry import FORMATS
from kernelne.io.read_labels import read_labels
from kernelne.io.text import lines as text_lines
from kernelne.io.text.words import Words

WHOLE = [".graphml", ".gml", ".net", ".parquet", ".arrow", ".feather", ".kne"]
MATRICES = [".mtx", ".mat", ".metis", ".graph"]
#: As the suffix of a file says nothing of direction there.
SILENT = [".adjlist"]

ints = st.one_of(st.integers(0, 12), st.integers(-(2**63), 2**63 - 1))
texts = st.text(
    st.one_of(
        st.sampled_from("01 \t\n\r\"'&<>;#%*[]\\\ufeffé京\U0001f600"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=5,
)
reals = st.floats(2.0**-100, 2.0**100, width=32)
spaced = st.sampled_from(["New York", 'the "best"', "a&b", "<edge>", "]]>", "&amp;", "&#65;", "x,y", " ", ""])
#: What XML 1.0 cannot hold.
NOT_XML = {*map(chr, range(32)), "\ufffe", "\uffff"} - set("\t\n\r")


@st.composite
def graphs(draw: Any, ids: Any, weight: Any = reals, **fixed: Any) -> Graph:
    """A graph with isolated nodes, self-loops and repeated edges, its nodes in some order or sorted."""
    nodes = draw(st.lists(ids, min_size=1, max_size=8, unique=True))
    pairs = draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=14))
    if not fixed.get("loops", True):
        pairs = [(source, target) for source, target in pairs if source != target]
    weighted = fixed.get("weighted", draw(st.booleans()))
    weights = [draw(weight) for _ in pairs] if weighted and pairs else None
    sources, targets = zip(*pairs, strict=True) if pairs else ((), ())
    directed = fixed.get("directed", draw(st.booleans()))
    return Graph.from_edges(sources, targets, weights, nodes, directed)


def numbered(graph: Graph) -> Graph:
    return Graph.from_scipy(graph.to_scipy(), directed=graph.directed)


def there_and_back(graph: Graph, suffix: str, **options: Any) -> Graph:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"g{suffix}")
        write_graph(graph, path)
        return read_graph(path, **options)


def test_every_format_is_tested_here():
    edge_lists = {s for f in FORMATS if f.is_edge_list for s in f.suffixes}
    known = {s for f in FORMATS for s in f.suffixes}
    assert known - edge_lists == {*WHOLE, *MATRICES, *SILENT}


@pytest.mark.parametrize("suffix", [*WHOLE, ".graphml.gz", ".gml.zst", ".net.gz"])
@settings(deadline=None, max_examples=60)
@given(graph=graphs(ints) | graphs(texts) | graphs(spaced) | graphs(st.integers(0, 99).map(str)))
def test_ids_weights_direction_and_isolated_nodes_come_back(suffix, graph):
    if "graphml" in suffix:
        assume(not any(set(str(node)) & NOT_XML for node in graph.nodes))
    back = there_and_back(graph, suffix)
    assert back.nodes.tolist() == graph.nodes.tolist()
    assert back.fingerprint == graph.fingerprint


@settings(deadline=None, max_examples=60)
@given(
    graph=graphs(ints, weighted=False)
    | graphs(st.text("ab0é京\"'<&", min_size=1, max_size=3), weighted=False)
)
def test_adjacency_lists_come_back(graph):
    if graph.nodes.dtype == object and plain_integers(pa.array(graph.nodes.tolist())) is not None:
        with pytest.raises(InputError, match="would lose that ids are strings"):
            there_and_back(graph, ".adjlist")
    else:
        back = there_and_back(graph, ".adjlist", directed=graph.directed)
        assert back.fingerprint == graph.fingerprint


@pytest.mark.parametrize("suffix", MATRICES)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_matrices_come_back(suffix, data):
    fixed = {"directed": False, "loops": False} if suffix in (".metis", ".graph") else {}
    graph = numbered(data.draw(graphs(st.integers(0, 30), st.integers(2, 2**24), **fixed)))
    assert there_and_back(graph, suffix).fingerprint == graph.fingerprint


@settings(deadline=None, max_examples=40)
@given(graph=graphs(st.integers(0, 30)))
def test_real_weights_in_matrices_come_back(graph):
    graph = numbered(graph)
    for suffix in (".mtx.gz", ".mat"):
        assert there_and_back(graph, suffix).fingerprint == graph.fingerprint


def test_a_larger_graph_comes_back(random_graph):
    """More than a block of edges, and a row that is longer than one."""
    rng = np.random.default_rng(0)
    n, m = 60_000, 600_000
    sources, targets = rng.integers(0, n, (2, m))
    hub = np.arange(1, n)
    graph = Graph.from_edges(
        np.append(sources, 0 * hub), np.append(targets, hub), nodes=np.arange(n), drop_self_loops=True
    )
    for suffix in (".metis", ".adjlist.zst", ".mtx", ".net", ".parquet"):
        assert there_and_back(graph, suffix).fingerprint == graph.fingerprint, suffix


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_networkx_and_we_read_each_others_files(tmp_path, directed, weighted):
    weights = [0.5, 2, 1e-9] if weighted else None
    graph = Graph.from_edges(["a b", "c", "é"], ["c", "é", 'q"&<'], weights, ["zz"], directed)
    for suffix in ("graphml", "gml"):
        write_graph(graph, tmp_path / f"ours.{suffix}")
        read = getattr(nx, f"read_{suffix}")(tmp_path / f"ours.{suffix}")
        assert as_graph(read).fingerprint == graph.fingerprint, suffix
        getattr(nx, f"write_{suffix}")(graph.to_networkx(), tmp_path / f"theirs.{suffix}")
        assert read_graph(tmp_path / f"theirs.{suffix}").fingerprint == graph.fingerprint, suffix
    plain = Graph.from_edges([1, 2], [2, 3], [1.5, 2] if weighted else None, [9], directed)
    # To networkx, every edge of Pajek has a weight, labels are strings, and &#N; is nothing special.
    nx.write_pajek(plain.to_networkx(), tmp_path / "theirs.net")
    back = read_graph(tmp_path / "theirs.net", weighted=weighted)
    assert back.fingerprint == plain.fingerprint
    write_graph(plain, tmp_path / "ours.net")
    read = (nx.DiGraph if directed else nx.Graph)(nx.read_pajek(tmp_path / "ours.net"))
    assert nx.utils.edges_equal(read.edges(data="weight"), _as_strings(plain).edges(data="weight"))
    assert list(read) == ["9", "1", "2", "3"]


def _as_strings(graph: Graph) -> Any:
    return nx.relabel_nodes(graph.to_networkx(), str)


@pytest.mark.parametrize("directed", [False, True])
def test_networkx_and_we_read_each_others_adjacency_lists(tmp_path, directed):
    graph = Graph.from_edges([1, 2], [2, 3], nodes=[9], directed=directed)
    nx.write_adjlist(graph.to_networkx(), tmp_path / "theirs.adjlist")
    assert read_graph(tmp_path / "theirs.adjlist", directed=directed).fingerprint == graph.fingerprint
    write_graph(graph, tmp_path / "ours.adjlist")
    kind = nx.DiGraph if directed else nx.Graph
    read = nx.read_adjlist(tmp_path / "ours.adjlist", create_using=kind, nodetype=int)
    assert as_graph(read).fingerprint == graph.fingerprint


IGRAPH = """
import sys, igraph
for name in sys.argv[1:]:
    g = igraph.Graph.Read(name, format="pajek" if name.endswith("net") else None)
    key = next(k for k in ("label", "name", "id") if k in g.vs.attributes())
    print(name.rpartition(".")[2], g.is_directed(), g.vs[key], g.get_edgelist(), g.es["weight"])
"""


@pytest.mark.parametrize("directed", [False, True])
def test_igraph_reads_what_we_write(tmp_path, directed):
    # GPL: igraph is only ever imported by a process of its own.
    if subprocess.run([sys.executable, "-c", "import igraph"], capture_output=True, check=False).returncode:
        pytest.skip("igraph is not installed")
    graph = Graph.from_edges(["a b", "c"], ["c", "d"], [0.5, 2], ["x"], directed)
    names = []
    for suffix in (".graphml", ".gml", ".net"):
        names.append(str(tmp_path / f"g{suffix}"))
        write_graph(graph, names[-1])
    told = subprocess.run(
        [sys.executable, "-c", IGRAPH, *names], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for line, kind in zip(told, ("graphml", "gml", "net"), strict=True):
        assert line == f"{kind} {directed} {['x', 'a b', 'c', 'd']} [(1, 2), (2, 3)] [0.5, 2.0]"


def test_scipy_and_we_read_each_others_matrices(tmp_path):
    matrix = scipy.sparse.coo_array(np.array([[0, 1.5, 0], [0, 2, 0], [3, 0, 0]]))
    scipy.io.mmwrite(tmp_path / "general.mtx", matrix)
    graph = read_graph(tmp_path / "general.mtx")
    assert graph.directed
    assert graph.nodes.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(graph.to_scipy().toarray(), matrix.toarray())
    both = matrix + matrix.T
    scipy.io.mmwrite(tmp_path / "symmetric.mtx", both)
    assert "symmetric" in (tmp_path / "symmetric.mtx").read_text()
    scipy.io.mmwrite(tmp_path / "both.mtx", both, symmetry="general")
    for name, directed in (("symmetric.mtx", None), ("both.mtx", False)):
        graph = read_graph(tmp_path / name, directed=directed)
        assert not graph.directed
        np.testing.assert_array_equal(graph.to_scipy().toarray(), both.toarray())
    assert read_graph(tmp_path / "both.mtx").directed
    with pytest.raises(FileFormatError, match=r"general\.mtx:4: .*has no mirror image \(found '1 2 1\.5"):
        read_graph(tmp_path / "general.mtx", directed=False)
    with pytest.raises(ParameterError, match=r"directed=True: .*says that its edges are undirected"):
        read_graph(tmp_path / "symmetric.mtx", directed=True)
    write_graph(graph, tmp_path / "ours.mtx")
    np.testing.assert_array_equal(scipy.io.mmread(tmp_path / "ours.mtx").toarray(), both.toarray())
    write_graph(graph, tmp_path / "ours.mat")
    np.testing.assert_array_equal(
        scipy.io.loadmat(tmp_path / "ours.mat")["network"].toarray(), both.toarray()
    )


def test_mat_as_the_field_ships_it(tmp_path):
    network = scipy.sparse.csc_matrix(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], float))
    group = scipy.sparse.csc_matrix(np.array([[1, 0], [1, 1], [0, 0]], float))
    scipy.io.savemat(tmp_path / "graph.mat", {"network": network, "group": group, "other": "text"})
    graph, labels = read_graph(tmp_path / "graph.mat"), read_labels(tmp_path / "graph.mat")
    assert repr(graph) == "<Graph: 3 nodes, 2 edges, undirected, unweighted>"
    assert labels.nodes.tolist() == [0, 1]
    assert labels.indicator.tolist() == [[True, False], [True, True]]
    scipy.io.savemat(tmp_path / "single.mat", {"network": network.toarray(), "group": np.array([3, 1, 3])})
    assert read_graph(tmp_path / "single.mat").fingerprint == graph.fingerprint
    labels = read_labels(tmp_path / "single.mat")
    assert labels.classes.tolist() == [1, 3]
    assert labels.single.tolist() == [1, 0, 1]
    with pytest.raises(ParameterError, match="header=True: applies to text files"):
        read_labels(tmp_path / "single.mat", header=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"A": np.eye(2)}, "no variable 'network'; the file has: A"),
        ({"network": np.ones((2, 3))}, r"must be square, its shape is \(2, 3\)"),
        ({"network": "text"}, "must be a numeric matrix, it is char"),
        ({"network": {"a": 1}}, "must be a numeric matrix, it is struct"),
        ({"network": np.array([["a", "x"], [1, 2]], object)}, "must be a numeric matrix, it is cell"),
        ({"network": np.eye(2) * 1j}, "must contain real numbers"),
        ({"network": -np.eye(2)}, r"'network'\(1, 1\) is -1.0: weights must be finite"),
        ({"network": np.eye(2) * np.nan}, r"'network'\(1, 1\) is nan"),
        (
            {"network": np.array([[0, 1.0], [0, 0]]), "directed": False},
            r"'network'\(1, 2\) has no mirror image",
        ),
    ],
)
def test_bad_mat_files(tmp_path, content, message):
    scipy.io.savemat(tmp_path / "g.mat", content)
    with pytest.raises(FileFormatError, match=message):
        read_graph(tmp_path / "g.mat")


MUTATE = """
import sys
from contextlib import suppress
from pathlib import Path
import numpy as np
import scipy.io, scipy.sparse
from kernelne import read_graph, read_labels
from kernelne.errors import InputError

path = Path(sys.argv[1])
rng = np.random.default_rng(0)
network = np.array([[0, 1.5, 0], [1.5, 0, 2], [0, 2, 0]])
n_read = 0
sparse = scipy.sparse.csc_matrix(network)
for matrix in (network, sparse, sparse > 0, scipy.sparse.csc_matrix((3, 3))):
    for packed in (False, True):
        content = {"network": matrix, "group": np.array([1, 2, 1]), "directed": False, "text": "x"}
        scipy.io.savemat(path, content, do_compression=packed)
        whole = path.read_bytes()
        for trial in range(150):
            data = bytearray(whole)
            for place in rng.integers(124, len(data) - 4, size=rng.integers(1, 4)):
                if trial % 2:
                    data[place] = rng.integers(256)
                else:
                    place = place // 4 * 4
                    word = rng.choice([0, 1, 7, 8, 9, 14, 15, 16, 200, 30000, 2**31 - 1, 2**32 - 1, 5 << 16])
                    data[place : place + 4] = int(word).to_bytes(4, "little")
            path.write_bytes(data)
            for read in (read_graph, read_labels):
                with suppress(InputError):
                    read(path)
                    n_read += 1
print("done", n_read > 0)
"""


def test_a_damaged_mat_file_never_ends_the_process(tmp_path):
    """In a process of its own, because a crash, not an exception, is what is looked for."""
    command = [sys.executable, "-W", "ignore", "-c", MUTATE, str(tmp_path / "g.mat")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "done True\n"), result.stderr[-2000:]


@pytest.mark.parametrize("kind", [8, 10, 14, 15, 200, 30000])
def test_types_that_no_element_of_a_mat_file_has(tmp_path, kind):
    """SciPy's reader crashes on these: every element of the matrix in turn has one."""
    path = tmp_path / "g.mat"
    scipy.io.savemat(path, {"network": scipy.sparse.csc_matrix(np.array([[0, 1.0], [1, 0]]))})
    whole = path.read_bytes()
    place = 128 + 8
    n_elements = 0
    while place < len(whole):
        first, size = np.frombuffer(whole, "<u4", 2, place).tolist()
        data = bytearray(whole)
        data[place : place + 2] = kind.to_bytes(2, "little")
        path.write_bytes(data)
        with pytest.raises(FileFormatError, match="not a readable MATLAB file"):
            read_graph(path)
        place += 8 if first >> 16 else 8 + -(-size // 8) * 8
        n_elements += 1
    assert n_elements == 6  # flags, shape, name, rows, starts of columns, values


def test_a_small_mat_file_asks_for_little_memory(tmp_path):
    network = scipy.sparse.csc_matrix(np.array([[0, 1.0], [1, 0]]))
    long = scipy.sparse.csc_matrix((2**31 - 1, 1))
    content = {"network": network, "directed": scipy.sparse.csc_matrix((2**31 - 1, 4)), "group": long}
    scipy.io.savemat(tmp_path / "bomb.mat", content, do_compression=True)
    scipy.io.savemat(tmp_path / "only.mat", {"group": long})
    zeros = {"network": scipy.sparse.csc_matrix(np.eye(2)), "group": np.zeros((2, 2**20), np.uint8)}
    scipy.io.savemat(tmp_path / "zeros.mat", zeros, do_compression=True)
    tracemalloc.start()
    assert not read_graph(tmp_path / "bomb.mat").directed
    with pytest.raises(FileFormatError, match=r"'group' has shape \(2147483647, 1\), .* has 2 rows"):
        read_labels(tmp_path / "bomb.mat")
    with pytest.raises(FileFormatError, match="2147483647 nodes are declared"):
        read_labels(tmp_path / "only.mat")
    with pytest.raises(FileFormatError, match="no labels"):
        read_labels(tmp_path / "zeros.mat")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**26


def test_what_would_not_fit_of_a_mat_file_is_not_unpacked(tmp_path, monkeypatch):
    scipy.io.savemat(tmp_path / "g.mat", {"network": np.zeros((1000, 1000))}, do_compression=True)
    assert read_graph(tmp_path / "g.mat").n_nodes == 1000
    monkeypatch.setattr(mat5, "available_bytes", lambda: 10**6)
    with pytest.raises(FileFormatError, match="unpacked, does not fit in memory"):
        read_graph(tmp_path / "g.mat")


def mat_file(parts: list[tuple[int, str, list[Any]]], order: str) -> bytes:
    """A MAT-file of one variable, whose elements are of these types and values."""
    body = b""
    for kind, dtype, values in parts:
        data = np.array(values, order + dtype).tobytes()
        body += np.array([kind, len(data)], order + "u4").tobytes() + data + bytes(-len(data) % 8)
    head = b"MATLAB 5.0".ljust(124) + np.array([0x0100, 0x4D49], order + "u2").tobytes()
    return head + np.array([14, len(body)], order + "u4").tobytes() + body


def test_mat_files_of_other_machines_and_versions(tmp_path):
    path = tmp_path / "g.mat"
    network = np.array([[0, 1.5, 0], [0, 0, 300], [0, 0, 0]])
    expected = Graph.from_edges([0, 1], [1, 2], [1.5, 300], directed=True).fingerprint
    for order in "<>":
        # Values in single precision, room for more entries than there are.
        parts = [(6, "u4", [5, 4]), (5, "i4", [3, 3]), (1, "i1", list(b"network")), (5, "i4", [0, 1, 0, 0])]
        parts += [(5, "i4", [0, 0, 1, 2]), (7, "f4", [1.5, 300, 0, 0])]
        path.write_bytes(mat_file(parts, order))
        np.testing.assert_array_equal(scipy.io.loadmat(path)["network"].toarray(), network)
        assert read_graph(path).fingerprint == expected, order
        # Logical values are bytes, though MATLAB says that they are doubles.
        parts[0], parts[3], parts[5] = (6, "u4", [0x205, 2]), (5, "i4", [0, 1]), (9, "u1", [1, 1])
        path.write_bytes(mat_file(parts, order))
        np.testing.assert_array_equal(scipy.io.loadmat(path)["network"].toarray(), network > 0)
        assert read_graph(path).fingerprint == Graph.from_edges([0, 1], [1, 2], directed=True).fingerprint
    scipy.io.savemat(path, {"network": network}, format="4")
    with pytest.raises(FileFormatError, match="is of version 4: save it in MATLAB with -v7"):
        read_graph(path)
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400))
    with pytest.raises(FileFormatError, match=r"is of version 7.3 \(HDF5\): save it in MATLAB with -v7"):
        read_graph(path)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_every_type_of_numbers_in_mat_files(tmp_path, packed, dtype):
    dense = np.array([[0, 1, 0], [0, 1, 7], [0, 0, 0]]).astype(dtype)
    expected = Graph.from_scipy(dense.astype(float), directed=True).fingerprint
    for network in (dense, scipy.sparse.csc_matrix(dense)):
        scipy.io.savemat(tmp_path / "g.mat", {"network": network}, do_compression=packed)
        assert read_graph(tmp_path / "g.mat").fingerprint == expected
    empty = scipy.sparse.csc_matrix((3, 3), dtype=dtype)
    scipy.io.savemat(tmp_path / "g.mat", {"network": empty}, do_compression=packed)
    assert read_graph(tmp_path / "g.mat").n_edges == 0


def test_damaged_mat_files_are_one_error(tmp_path):
    scipy.io.savemat(tmp_path / "g.mat", {"network": scipy.sparse.csc_matrix(np.eye(4))})
    whole = (tmp_path / "g.mat").read_bytes()
    for size in (0, 10, 128, 140, len(whole) - 9):
        (tmp_path / "g.mat").write_bytes(whole[:size])
        with pytest.raises(FileFormatError):
            read_graph(tmp_path / "g.mat")
    # Row indices beyond the matrix, and a shape beyond the file.
    place = whole.index(np.arange(4, dtype="<i4").tobytes())
    (tmp_path / "g.mat").write_bytes(
        whole[:place] + np.array([0, 1, 2, 9**9], "<i4").tobytes() + whole[place + 16 :]
    )
    with pytest.raises(FileFormatError, match="not a readable MATLAB file"):
        read_graph(tmp_path / "g.mat")
    # Columns of a matrix without entries that end beyond it: SciPy's own check does not see them.
    parts = [(6, "u4", [5, 1]), (5, "i4", [3, 3]), (1, "i1", list(b"network")), (5, "i4", [])]
    for starts in ([0, 0, 5 << 24, 0], [0, 1, 1, 1], [0, 0, 0, -1], [1, 1, 1, 1], [-1, 0, 0, 0]):
        (tmp_path / "g.mat").write_bytes(mat_file([*parts, (5, "i4", starts), (9, "f8", [])], "<"))
        with pytest.raises(FileFormatError, match="column pointers of a sparse matrix do not match"):
            read_graph(tmp_path / "g.mat")
    place = whole.index(np.array([4, 4], "<i4").tobytes())
    (tmp_path / "g.mat").write_bytes(
        whole[:place] + np.array([2**30] * 2, "<i4").tobytes() + whole[place + 8 :]
    )
    with pytest.raises(FileFormatError, match="the file is too small for it"):
        read_graph(tmp_path / "g.mat")


MTX = "%%MatrixMarket matrix coordinate pattern general\n"
NET = '*Vertices 2\n1 "a"\n2 "b"\n'
XML = '<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
ONE = "<graph><node id='a'/>"
KLINGON = XML.replace("?>", " encoding='klingon'?>")


@pytest.mark.parametrize(
    ("suffix", "content", "message", "line"),
    [
        ("mtx", "1 1 1\n", "expected %%MatrixMarket", 1),
        ("mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n", "expected coordinate", 1),
        ("mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 0\n", "expected %%MatrixMarket", 1),
        ("mtx", "%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n", "a general or a symmetric", 1),
        ("mtx", MTX, "numbers of rows, columns", None),
        ("mtx", MTX + "% c\n2 2\n", "numbers of rows, columns", 3),
        ("mtx", MTX + "99999999999 99999999999 0\n", "numbers of rows, columns", 2),
        ("mtx", MTX + "2 3 0\n", "not square", 2),
        ("mtx", MTX + "2000000000 2000000000 1\n1 2\n", "2000000000 nodes are declared", 2),
        ("metis", f"{'9' * 5000} 1\n", "numbers of nodes and edges", 1),
        ("net", "\n*Vertices 2000000000\n*Edges\n1 2\n", "2000000000 nodes are declared", 2),
        ("net", f"*Vertices 2\n{'9' * 5000}\n", "a vertex from 1 to 2", 2),
        ("mtx", MTX + "2 2 2\n1 2\n", "2 entries are declared, but there are 1", 2),
        ("mtx", MTX + "2 2 1\n1 2\n2 1\n", "1 entries are declared, but there are 2", 2),
        ("mtx", MTX + "2 2 1\n% c\n1 3\n", "indices from 1 to 2", 4),
        ("mtx", MTX + "2 2 1\n0 1\n", "indices from 1 to 2", 3),
        ("mtx", MTX + "2 2 1\n1 x\n", "expected two indices", 3),
        ("mtx", MTX + "2 2 1\n1\n", "expected 2 fields", 3),
        ("mtx", MTX.replace("pattern", "real") + "2 2 1\n1 2 -1\n", "expected a weight", 3),
        ("metis", "", "the file is empty", None),
        ("metis", "% c\n", "numbers of nodes and edges", None),
        ("metis", "% c\n2 x\n", "numbers of nodes and edges", 2),
        ("metis", "2 1 7\n2\n1\n", "three digits", 1),
        ("metis", "2 1\n2\n", "2 nodes are declared, but 1 lines follow", 1),
        ("metis", "% c\n2 1\n2\n1\n\n1\n", "but there are more lines", 6),
        ("metis", "2 1\n2\n3\n", "from 1 to 2", 3),
        ("metis", "2 1\n2\nx\n", "from 1 to 2", 3),
        ("metis", "3 1\n2\n1\n1\n", "node 1 is a neighbour of node 3, but not the other way", 4),
        ("metis", "2 5\n2\n1\n", "5 edges are declared, but there are 1", 1),
        ("metis", "2 1 1\n2 3\n1\n", "pairs of a neighbour and a weight", 3),
        ("metis", "2 1 1\n2 3\n1 4\n", "not the other way with this weight", 2),
        ("metis", "2 1 10\n1 2\n\n", "1 weights of the node, .* found a blank line for node 2", 1),
        ("net", "1 2\n", "expected \\*Vertices", 1),
        ("net", "1 2\n*Vertices 1\n", "expected \\*Vertices", 1),
        ("net", "*Vertices x\n", "expected \\*Vertices", 1),
        ("net", NET + "*Matrix\n0 1\n", "expected one of", 4),
        ("net", "*Edges\n1 2\n", "expected \\*Vertices before", 1),
        ("net", NET + NET, "a second", 4),
        ("net", '*Vertices 1\n2 "a"\n', "a vertex from 1 to 1", 2),
        ("net", '*Vertices 2\n1 "a\n', "a vertex from 1 to 2", 2),
        ("net", "*Vertices 2\n1 a\n1 b\n", "appears twice", 3),
        ("net", "*Vertices 2\n1 a\n2 a\n", "the same label", 1),
        ("net", NET + "*Edges\n% c\n1 3\n", "a vertex from 1 to 2", 6),
        ("net", NET + "*Edges\n1\n", "expected two vertices", 5),
        ("net", NET + "*Edges\n1 2 x\n", "expected a weight", 5),
        ("net", NET + "*Arcslist\n1 2 0\n", "a vertex from 1 to 2", 5),
        ("gml", "1", "expected a key", 1),
        ("gml", "node [ id 1 ]", "expected graph", 1),
        ("gml", "graph [\n node [ id 1 ]\n", "truncated", 2),
        ("gml", "graph [\n node [ id ]\n]", "pairs of a key and a number", 2),
        ("gml", "graph [\n node [ id x ]\n]", "an integer .id", 2),
        ("gml", "graph [\n node [ label ] ]", "pairs", 2),
        ("gml", "graph [\n node [ id 1 label [ ] ] id ]", "a number, a string", 2),
        ("gml", 'graph [\n node [ id "1" ]\n]', "an integer 'id'", 2),
        ("gml", "graph [\n node [ label 1 ]\n]", "an integer 'id'", 2),
        ("gml", "graph [ node [ id 1 ]\nnode [ id 1 ] ]", "a second node with the id 1", 2),
        ("gml", "graph [ node [ id 1 ]\nedge [ source 1 target 2 ] ]", "no node has the id 2", 2),
        ("gml", "graph [ node [ id 1 ]\nedge [ source 1 ] ]", "an integer 'target'", 2),
        ("gml", "graph [ node [ id 1 ]\nedge [ source 1 target 1 weight -2 ] ]", "expected a weight", 2),
        ("gml", "graph [ node [ id 1 ] ]\ngraph [ ]", "a second graph", 2),
        ("gml", "graph [ node [ id 99999999999999999999 ] ]", "64 bits", None),
        ("gml", "graph [ ]", "no nodes", None),
        ("gml", "graph [ node [ id 1 ] ] ]", "expected a key", 1),
        ("graphml", XML, "not well-formed", 3),
        ("graphml", XML + "</graphml>", "no <graph>", None),
        ("graphml", "<html/>", "is a web page", None),
        ("graphml", "<svg/>", "expected <graphml>", 1),
        ("graphml", XML + "<graph><node/></graph></graphml>", "an attribute 'id'", 3),
        ("graphml", XML + "<node id='1'/></graphml>", "inside <graph>", 3),
        ("graphml", XML + "<graph>\n<node id='a'/>\n<node id='a'/></graph></graphml>", "a second node", 5),
        ("graphml", XML + f"{ONE}\n<edge source='a' target='b'/></graph></graphml>", "no node has", 4),
        ("graphml", XML + "<graph/>\n<graph/></graphml>", "a second graph", 4),
        ("graphml", XML + "<graph><node id='a'>\n<graph/></node></graph></graphml>", "nested graphs", 4),
        ("graphml", XML + "<graph>\n<hyperedge/></graph></graphml>", "hyperedges", 4),
        ("graphml", XML + "<graph edgedefault='x'/></graphml>", "directed or undirected", 3),
        ("graphml", XML + "<graph/></graphml>", "no nodes", None),
        ("graphml", KLINGON, "not (readable|well-formed) XML: .*", None),
        ("adjlist", "# only\n\n", "no nodes", None),
        ("adjlist", b"a \xff\n", "not UTF-8", 1),
        ("parquet", b"PAR1", "not a readable table", None),
        ("arrow", b"ARROW1\0\0", "not a readable table", None),
        ("feather", b"", "the file is empty", None),
        ("mat", b"MATLAB 5.0 MAT-file", "not a readable MATLAB file", None),
    ],
)  # fmt: skip
def test_malformed_files_are_one_error_with_the_line(tmp_path, suffix, content, message, line):
    path = tmp_path / f"g.{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileFormatError, match=message) as caught:
        read_graph(path)
    assert caught.value.line == line, caught.value
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def weighted_graphml(weight: str) -> str:
    key = '<key id="w" for="edge" attr.name="weight" attr.type="double"><default>3</default></key>'
    return (
        f'{XML}{key}<graph edgedefault="undirected"><node id="a"/><node id="b"/>\n'
        f'<edge source="a" target="b">{weight}</edge><edge source="a" target="a"/></graph></graphml>'
    )


def test_weights_of_graphml(tmp_path):
    path = tmp_path / "g.graphml"
    path.write_text(weighted_graphml('<data key="w"> 2.5 </data><data key="x">9</data>'))
    assert read_graph(path).to_scipy().toarray().tolist() == [[3, 2.5], [2.5, 0]]
    assert read_graph(path, weighted=False).weights is None
    for bad in ("x", "-1", "inf", "nan", ""):
        path.write_text(weighted_graphml(f'<data key="w">{bad}</data>'))
        with pytest.raises(FileFormatError, match="expected a weight") as caught:
            read_graph(path)
        assert caught.value.line == 4
    path.write_text(XML + '<graph><node id="a"/></graph></graphml>')
    with pytest.raises(FileFormatError, match="no weights in the file"):
        read_graph(path, weighted=True)


def test_xml_expands_and_opens_nothing(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden")
    laughs = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
    body = "<graphml><graph><node id='&l9;'/></graph></graphml>"
    for doctype in (
        f'<!DOCTYPE graphml [<!ENTITY l0 "ha">{laughs}]>',
        f'<!DOCTYPE graphml [<!ENTITY l9 SYSTEM "{secret}">]>',
        f'<!DOCTYPE graphml [<!ENTITY % p SYSTEM "{secret}"> %p;]>',
    ):
        (tmp_path / "g.graphml").write_text(f'<?xml version="1.0"?>\n{doctype}\n{body}')
        with pytest.raises(FileFormatError, match=r"g\.graphml:2: defines an entity, which is never"):
            read_graph(tmp_path / "g.graphml")
    # A document type that defines none, as older writers have it, is no harm, and is not fetched.
    text = '<!DOCTYPE graphml SYSTEM "http://127.0.0.1:9/graphml.dtd">\n'
    text += '<graphml><graph><node id="a"/></graph></graphml>'
    (tmp_path / "g.graphml").write_text(text)
    assert read_graph(tmp_path / "g.graphml").nodes.tolist() == ["a"]
    (tmp_path / "g.graphml").write_text(text.replace('"a"', '"&who;"'))
    with pytest.raises(FileFormatError, match="entity"):
        read_graph(tmp_path / "g.graphml")


def test_directed_and_undirected_edges_in_one_file(tmp_path):
    expected = Graph.from_edges([0, 1, 2, 2], [1, 2, 1, 2], [1, 2, 2, 3], directed=True)
    edges = '<edge source="0" target="1"/>'
    edges += '<edge source="1" target="2" directed="false"><data key="w">2</data></edge>'
    edges += '<edge source="2" target="2" directed="false"><data key="w">3</data></edge>'
    key = '<key id="w" for="edge" attr.name="weight" attr.type="double"/>'
    nodes = "".join(f'<node id="{i}"/>' for i in range(3))
    text = f'{XML}{key}<graph edgedefault="directed">{nodes}{edges}</graph></graphml>'
    (tmp_path / "g.graphml").write_text(text)
    (tmp_path / "g.net").write_text("*Vertices 3\n1 0\n2 1\n3 2\n*Arcs\n1 2 1 c Blue\n*Edges\n2 3 2\n3 3 3\n")
    for name in ("g.graphml", "g.net"):
        assert read_graph(tmp_path / name).fingerprint == expected.fingerprint, name
        plain = read_graph(tmp_path / name, directed=False)
        undirected = Graph.from_edges([0, 1, 2], [1, 2, 2], [1, 2, 3])
        assert plain.fingerprint == undirected.fingerprint, name  # an edge counts once
        assert plain.n_merged == 0


def test_booleans_of_graphml(tmp_path):
    path = tmp_path / "g.graphml"
    for text, directed in {"1": True, "true": True, " true ": True, "0": False, "false": False}.items():
        for default in ("directed", "undirected"):
            path.write_text(
                f'{XML}<graph edgedefault="{default}"><node id="a"/><node id="b"/>'
                f'<edge source="a" target="b" directed="{text}"/></graph></graphml>'
            )
            assert read_graph(path).directed == directed, (text, default)
    for text in ("True", "yes", "", "2"):
        path.write_text(
            f"{XML}<graph><node id='a'/>\n<edge source='a' target='a' directed='{text}'/></graph></graphml>"
        )
        with pytest.raises(FileFormatError, match="expected directed true or false") as caught:
            read_graph(path)
        assert caught.value.line == 4


def test_pajek_in_its_variants(tmp_path):
    path = tmp_path / "g.net"
    path.write_text(
        '%c\r\n*Network title\r\n*vertices 3 2\r\n 1 "a b" 0.1 0.2 ellipse\r\n2 c\r\n3 "&#269;"\r\n'
        "*ARCSLIST\r\n1 2 3\r\n"
    )
    graph = read_graph(path)
    assert graph.nodes.tolist() == ["a b", "c", "č"]
    assert graph.directed
    assert graph.to_scipy().toarray().tolist() == [[0, 1, 1], [0, 0, 0], [0, 0, 0]]
    path.write_text("*Vertices 3\n*Edgeslist\n1 2 3\n*Edges\n2 3\n")
    assert read_graph(path).fingerprint == Graph.from_edges([1, 1, 2], [2, 3, 3]).fingerprint
    path.write_text('*Vertices 2\n1 "a"\n*Edges :1 "relation"\n1 2\n')
    with pytest.warns(UserWarning, match="only 1 of 2 vertices have labels: ids are 1 … 2"):
        assert read_graph(path).nodes.tolist() == [1, 2]
    path.write_text(NET + "*Arcs\n*Edges\n1 2\n")
    assert not read_graph(path).directed
    path.write_text(NET + "*Edges\n1 2\n1 1 4\n")
    assert read_graph(path).to_scipy().toarray().tolist() == [[4, 1], [1, 0]]


def test_gml_in_its_variants(tmp_path):
    path = tmp_path / "g.gml"
    path.write_text(
        'Creator "x"\n# a comment ]\ngraph\n[\n  comment "two\nlines ["\n'
        "  node [ id +5 graphics [ x 1.5 id 7 ] ]\n"
        "  node [ id -6 ] edge [ source 5 target -6 value 2.5E0 ]\n edge [ source 5 target 5 ] ]"
    )
    graph = read_graph(path)
    assert graph.nodes.tolist() == [5, -6]
    assert graph.to_scipy().toarray().tolist() == [[1, 2.5], [2.5, 0]]
    path.write_text(
        '  # first ]\ngraph [\n\t# "open\n  node [\n    # c\n    id 1 ]\r\n  # d\r\n\n #\n'
        " node [ id 2 ]\n  ]\n #e"
    )
    assert read_graph(path).nodes.tolist() == [1, 2]
    path.write_text("graph [ node [ id 1 # c\n ] ]")  # only a line of its own is a comment
    with pytest.raises(FileFormatError, match="expected a key"):
        read_graph(path)
    path.write_text('graph [ node [ id 1 label "x" ] node [ id 2 label "x" ] ]')
    with pytest.warns(UserWarning, match='several nodes have the label "x": the ids are used instead'):
        assert read_graph(path).nodes.tolist() == [1, 2]
    path.write_text("graph [ node [ id 0 label 10 ] node [ id 1 label 20 ] ]")
    assert read_graph(path).nodes.tolist() == [10, 20]
    path.write_text('graph [ node [ id 0 label "&lt;&#x41;&nosuch;&" ] ]')
    assert read_graph(path).nodes.tolist() == ["<A&nosuch;&"]


def test_metis_in_its_variants(tmp_path):
    path = tmp_path / "g.graph"
    path.write_text("%c\n 3 2 111 2\n7 8 9 2 5\n%c\n7 8 9 1 5 3 6\n7 8 9 2 6\n\n \n")
    graph = read_graph(path)
    assert graph.to_scipy().toarray().tolist() == [[0, 5, 0], [5, 0, 6], [0, 6, 0]]
    path.write_text("3 1\n\n3\n2\n")
    assert read_graph(path).fingerprint == Graph.from_edges([1], [2], nodes=[0, 1, 2]).fingerprint
    path.write_text("2 2\n1 2\n1\n")  # a self-loop, as other programs write it
    assert read_graph(path).n_edges == 2


def test_adjacency_lists_with_comments(tmp_path):
    (tmp_path / "g.adjlist").write_text("#x\n a b # c\n\nd\r\na e\n")
    graph = read_graph(tmp_path / "g.adjlist")
    assert graph.nodes.tolist() == ["a", "d", "b", "e"]
    assert graph.n_edges == 2


def test_what_a_format_cannot_hold_is_refused_unless_told(tmp_path):
    named = Graph.from_edges(["a", "b"], ["b", "c"], [1, 2], ["x"])
    for suffix, lost in {
        ".mtx": "node ids",
        ".metis": "node ids",
        ".mat": "node ids",
        ".adjlist": "weights",
    }.items():
        path = tmp_path / f"g{suffix}"
        with pytest.raises(InputError, match=rf"would lose {lost}.*pass lossy=True \(--lossy\)"):
            write_graph(named, path)
        assert not path.exists()
        write_graph(named, path, lossy=True)
        back = read_graph(path)
        assert (back.n_nodes, back.n_edges) == (4, 2)
    with pytest.raises(InputError, match="would lose 1 nodes without edges"):
        check_lossless(named, "g.tsv")
    directed = Graph.from_edges([0], [1], directed=True)
    with pytest.raises(InputError, match="METIS files are undirected"):
        write_graph(directed, tmp_path / "h.metis")
    with pytest.raises(InputError, match="cannot store self-loops, node 1 has one"):
        write_graph(Graph.from_edges([0, 1], [1, 1]), tmp_path / "h.metis")
    with pytest.raises(InputError, match=r"integer weights, one is 0\.5"):
        write_graph(Graph.from_edges([0, 1], [1, 2], [1, 0.5]), tmp_path / "h.metis")
    for weight in (2.0**63, 1e30):
        with pytest.raises(InputError, match=r"weights below 2\*\*63, one is"):
            write_graph(Graph.from_edges([0, 1], [1, 2], [weight, 3]), tmp_path / "h.metis")
    with pytest.raises(InputError, match=r"the id 'a\\x00' contains a character that XML cannot represent"):
        write_graph(Graph.from_edges(["a\0"], ["b"]), tmp_path / "h.graphml")
    for bad in ("a b", "", "a#b"):
        with pytest.raises(InputError, match=r"\.adjlist cannot store it"):
            write_graph(Graph.from_edges([bad], ["b"]), tmp_path / "h.adjlist")
    tuples = Graph.from_networkx(nx.Graph([((1, 2), 3)]))
    for suffix in (*WHOLE, *MATRICES, *SILENT):
        with pytest.raises(InputError, match="all ints or all strs"):
            write_graph(tuples, tmp_path / f"h{suffix}")
    assert not list(tmp_path.glob("h.*"))


def test_options_that_every_format_takes(tmp_path):
    graph = Graph.from_edges(["a", "b", "b"], ["b", "c", "b"], [1, 2, 3], directed=True)
    (tmp_path / "ids.txt").write_text("1\nc\n")
    for suffix in WHOLE:
        path = tmp_path / f"g{suffix}"
        write_graph(graph, path)
        assert read_graph(path, nodes=["z", "b"]).nodes.tolist() == ["z", "b", "a", "c"]
        assert read_graph(path, nodes=tmp_path / "ids.txt").nodes.tolist() == ["1", "c", "a", "b"]
        assert read_graph(path, drop_self_loops=True).n_edges == 2
        assert read_graph(path, weighted=False).weights is None
        assert not read_graph(path, directed=False).directed
        with pytest.raises(InputError, match="mix ints and strs"):
            read_graph(path, nodes=[1])
        for name, value in {"header": True, "separator": ","}.items():
            with pytest.raises(ParameterError, match=f"{name}=.*applies to edge lists"):
                read_graph(path, **{name: value})


def test_format_in_place_of_a_suffix(tmp_path):
    graph = Graph.from_edges([1, 2], [2, 3], directed=True)
    write_graph(graph, tmp_path / "noname", format="graphml")
    assert read_graph(tmp_path / "noname", format=".GraphML").fingerprint == graph.fingerprint
    write_graph(graph, tmp_path / "x.gz", format="gml")
    assert gzip.decompress((tmp_path / "x.gz").read_bytes()).startswith(b"graph [")
    assert read_graph(tmp_path / "x.gz", format="gml").fingerprint == graph.fingerprint
    with pytest.raises(ParameterError, match="format='xlsx': known formats are txt tsv csv"):
        read_graph(tmp_path / "noname", format="xlsx")
    for name in ("g.parquet.gz", "g.mat.zst"):
        with pytest.raises(FileFormatError, match=r"with \.gz or \.zst are not supported"):
            write_graph(graph, tmp_path / name)


def test_tables_of_others(tmp_path):
    table = pa.table({"w": ["x", "y"], "From": pa.array([1, 2], pa.uint16()), "TO": [2, 3]})
    pq.write_table(table, tmp_path / "g.parquet")
    with pytest.raises(FileFormatError, match="the column 'w' holds string, not weights"):
        read_graph(tmp_path / "g.parquet")
    pq.write_table(table.append_column("weight", [[1.5, 2.0]]), tmp_path / "g.parquet")
    graph = read_graph(tmp_path / "g.parquet", directed=True)
    assert graph.fingerprint == Graph.from_edges([1, 2], [2, 3], [1.5, 2], directed=True).fingerprint
    with pa.OSFile(str(tmp_path / "g.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as out:
        out.write_table(table)
    with pytest.raises(FileFormatError, match="the column 'w'"):
        read_graph(tmp_path / "g.arrow")
    for bad, message in (
        (pa.table({"a": [1]}), "at least two columns"),
        (pa.table({"a": [1, None], "b": [1, 2]}), "an id is missing"),
        (pa.table({"a": [1.5], "b": [1]}), "ids must be ints or strs, not double"),
        (pa.table({"a": [1], "b": [1], "weight": pa.array([None], pa.float64())}), "a weight is missing"),
        (table.replace_schema_metadata({"kernelne_graph": '{"node_rows": 7}'}), "kernelne_graph is"),
        (table.replace_schema_metadata({"kernelne_graph": "x"}), "Expecting value"),
        (table.replace_schema_metadata({"kernelne_graph": '{"node_rows": 1}'}), "have no target"),
        (table.replace_schema_metadata({"kernelne_graph": "[" * 200_000}), "recursion"),
    ):
        pq.write_table(bad, tmp_path / "bad.parquet")
        with pytest.raises(FileFormatError, match=message):
            read_graph(tmp_path / "bad.parquet")


def test_wide_tables_say_what_they_leave_out(tmp_path):
    table = pa.table({"source": [1, 2], "target": [2, 3], "year": [5, 6], "kind": ["x", "y"]})
    pq.write_table(table, tmp_path / "g.parquet")
    with pytest.warns(UserWarning, match=r"not used: 'year', 'kind'; weight=NAME \(--weight NAME\)"):
        assert read_graph(tmp_path / "g.parquet").weights is None
    assert read_graph(tmp_path / "g.parquet", weighted=False).weights is None
    pq.write_table(table.drop_columns("year"), tmp_path / "g.parquet")
    assert read_graph(tmp_path / "g.parquet", weighted=False).weights is None  # whatever the third column is


def test_nodes_beyond_the_integers_of_a_table(tmp_path):
    small = pa.int32()
    table = pa.table({"source": pa.array([4, 2, 4], small), "target": pa.array([None, None, 2], small)})
    pq.write_table(
        table.replace_schema_metadata({"kernelne_graph": '{"node_rows": 2}'}), tmp_path / "g.parquet"
    )
    for nodes in ([2**40], np.array([2**40]), pa.array([2**40])):
        assert read_graph(tmp_path / "g.parquet", nodes=nodes).nodes.tolist() == [2**40, 4, 2]
    assert read_graph(tmp_path / "g.parquet", nodes=pa.array([2], small)).nodes.tolist() == [2, 4]


def test_a_snap_file_as_it_comes(tmp_path):
    (tmp_path / "ca-X.txt").write_text(
        "# Undirected graph\n# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n7\t3\n3\t9\n"
    )
    assert repr(read_graph(tmp_path / "ca-X.txt")) == "<Graph: 3 nodes, 2 edges, undirected, unweighted>"


@given(st.text(st.sampled_from("ab1 \t\r\n%é"), max_size=60))
@settings(deadline=None)
def test_words_are_those_of_python(text):
    data = np.frombuffer(bytearray(text.encode()), np.uint8)
    words = Words("x", data, "%")
    lines = [line for line in text.split("\n") if not line.lstrip(" \t").startswith("%")]
    if text.endswith("\n") and lines and not text.rpartition("\n")[2]:
        lines.pop()  # the end of the last line starts none
    expected = [
        (row, word)
        for row, line in enumerate(lines)
        for word in line.replace("\r", " ").replace("\t", " ").split(" ")
        if word
    ]
    assert list(zip(words.rows.tolist(), words.strings().to_pylist(), strict=True)) == expected
    assert words.n_rows == (len(lines) if text else 0)
    for k, (_, word) in enumerate(expected):
        assert words.text(k) == word


def test_no_reader_is_quadratic(tmp_path):
    """Twice the edges take about twice the time: far less than four times would be."""
    import time

    def seconds(suffix: str, m: int) -> float:
        i = np.arange(m)
        path = tmp_path / f"{m}{suffix}"
        write_graph(Graph.from_edges(i, i + 1, i % 7 + 1.0), path)
        times = []
        for _ in range(3):
            start = time.process_time()
            read_graph(path)
            times.append(time.process_time() - start)
        return min(times)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for suffix in (".gml", ".graphml", ".net", ".mtx"):
            seconds(suffix, 10)
            assert seconds(suffix, 40_000) < 8 * seconds(suffix, 10_000) + 0.1, suffix


@pytest.mark.parametrize("suffix", [*WHOLE, *MATRICES, *SILENT])
def test_damage_is_never_more_than_one_error(tmp_path, suffix):
    """Files cut short, and files with a few bytes changed, are read or refused, and nothing else happens."""
    ids = [0, 1, 2, 3] if suffix in MATRICES else ["a", "b c" if suffix in WHOLE else "b", "é", "zz"]
    weights = None if suffix in SILENT else [2, 3, 4]
    graph = Graph.from_edges([ids[0], ids[1], ids[2]], [ids[1], ids[2], ids[3]], weights, ids)
    path = tmp_path / f"g{suffix}"
    write_graph(graph, path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for trial in range(200):
        data = bytearray(whole[: rng.integers(len(whole))] if trial % 2 else whole)
        for place in rng.integers(len(data), size=rng.integers(3)) if data else []:
            data[place] = rng.integers(256) if trial % 3 else ord(rng.choice(list('0 9\n-"[]<&*%')))
        path.write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(InputError):
                read_graph(path)


# Files that do not fit in memory


@pytest.mark.parametrize("suffix", [".graphml", ".gml", ".net", ".adjlist", ".metis"])
@pytest.mark.parametrize("compression", ["", ".gz", ".zst"])
def test_what_would_not_fit_is_refused_before_it_is_unpacked(tmp_path, monkeypatch, suffix, compression):
    path = tmp_path / f"bomb{suffix}{compression}"
    how = {"": None, ".gz": "gzip", ".zst": "zstd"}[compression]
    with pa.output_stream(path, compression=how) as out:
        for _ in range(200):
            out.write(b" " * 2**20)
    monkeypatch.setattr(text_lines, "available_bytes", lambda: 6 * 2**24)
    text = "the file is" if how is None else "the file, unpacked, is"
    tracemalloc.start()
    with pytest.raises(FileFormatError, match=rf"{text} larger than 0.02 GiB.* 0.09 GiB are free; as"):
        read_graph(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**27


def test_a_file_that_just_fits_is_read(tmp_path, monkeypatch):
    write_graph(Graph.from_edges([0], [1]), tmp_path / "g.gml.gz")
    size = len(gzip.decompress((tmp_path / "g.gml.gz").read_bytes()))
    monkeypatch.setattr(text_lines, "available_bytes", lambda: 6 * size)
    assert read_graph(tmp_path / "g.gml.gz").n_edges == 1
    monkeypatch.setattr(text_lines, "available_bytes", lambda: 6 * size - 1)
    with pytest.raises(FileFormatError, match="unpacked"):
        read_graph(tmp_path / "g.gml.gz")
    monkeypatch.setattr(text_lines, "available_bytes", lambda: None)  # where the system does not tell
    assert read_graph(tmp_path / "g.gml.gz").n_edges == 1
