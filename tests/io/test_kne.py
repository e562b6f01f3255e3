"""Graphs that stay in their file: .kne is mapped, gives the same graph, and is not believed."""

from __future__ import annotations

import json
import os
import zlib

import numpy as np
import pytest

from kernelne import Embedding, Graph, KernelNE, read_graph, write_graph
from kernelne.errors import FileFormatError, InputError, ParameterError
from kernelne.graph.ops import isolated_nodes
from kernelne.graph.string_ids import StringIds
from kernelne.io.graphs import kne


def example(names=False, weighted=False, directed=False, first=True, seed=0):
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 40, (2, 150))
    listed = [99, 7] if first else None
    if names:
        ends = np.array([f"é {i}" for i in range(40)], object)[ends]
        listed = ["zz", "é 7"] if first else None
    weights = rng.choice([0.1, 1 / 3, 7e5], 150) if weighted else None
    return Graph.from_edges(*ends, weights, nodes=listed, directed=directed)


def pieces(path):
    """The header's facts, and where each section starts and how long it is."""
    data = path.read_bytes()
    told = json.loads(data[8 : kne.HEADER - 16])
    known = {name: told[name] for name in kne.Counts._fields}
    found, start = {}, kne.HEADER
    for name, (kind, length) in kne.Counts(**known).sections().items():
        found[name] = (start, length * kind.itemsize)
        start += -(-length * kind.itemsize // 64) * 64
    assert start == len(data)
    return told, found


def rewrite(path, told=None, **arrays):
    """Change facts and sections, with checksums that are right."""
    facts, found = pieces(path)
    data = bytearray(path.read_bytes())
    for name, array in arrays.items():
        start, size = found[name]
        content = array.tobytes()
        assert len(content) == size
        data[start : start + size] = content
        facts["crc32"][name] = zlib.crc32(content)
    data[: kne.HEADER] = kne.make_header(facts | (told or {}))
    path.write_bytes(data)


def arrays_of(graph):
    return graph.offsets.copy(), graph.neighbours.copy()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "g.kne"
    write_graph(example(), path)
    return path


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_a_graph_comes_back_the_same(tmp_path, names, weighted, directed, first):
    graph = example(names, weighted, directed, first)
    write_graph(graph, tmp_path / "g.kne")
    back = read_graph(tmp_path / "g.kne")
    assert back.fingerprint == graph.fingerprint
    assert (back.n_merged, back.n_edges, back.directed) == (graph.n_merged, graph.n_edges, directed)
    assert back.nodes.tolist() == graph.nodes.tolist()
    assert isinstance(back.nodes, StringIds if names else np.ndarray)
    for array in (back.offsets, back.neighbours):
        assert not array.flags.writeable
        while type(array) is np.ndarray:
            array = array.base  # nothing was copied
        assert isinstance(array, np.memmap)
    rows = [5, 3]
    assert back.index_of(graph.nodes[rows]).tolist() == rows
    assert np.array_equal(isolated_nodes(back), isolated_nodes(graph))
    write_graph(back, tmp_path / "h.kne")
    assert (tmp_path / "h.kne").read_bytes() == (tmp_path / "g.kne").read_bytes()
    write_graph(back, tmp_path / "h.parquet")
    assert read_graph(tmp_path / "h.parquet").fingerprint == graph.fingerprint


@pytest.mark.parametrize("names", [False, True])
def test_training_has_the_same_bits(tmp_path, names):
    graph = example(names, weighted=True, first=False)
    write_graph(graph, tmp_path / "g.kne")
    model = KernelNE(dim=8, walks_per_node=2, random_state=1, n_threads=1, vectors="joint")
    one = model.fit(graph).to_embedding()
    other = model.fit(read_graph(tmp_path / "g.kne")).to_embedding()
    assert np.array_equal(one.vectors, other.vectors)
    assert one.provenance["graph"] == other.provenance["graph"]
    other.save(tmp_path / "v.safetensors")
    back = Embedding.load(tmp_path / "v.safetensors")
    assert back.nodes.tolist() == graph.nodes.tolist()
    assert other.index_of(graph.nodes[4]) == 4


def test_options_apply_to_a_mapped_graph(tmp_path):
    graph = example(weighted=True, directed=True)
    write_graph(graph, tmp_path / "d.kne")
    assert read_graph(tmp_path / "d.kne", weighted=False).weights is None
    assert read_graph(tmp_path / "d.kne", weighted=True, directed=True).fingerprint == graph.fingerprint
    assert not read_graph(tmp_path / "d.kne", directed=False).directed
    write_graph(example(), tmp_path / "u.kne")
    with pytest.raises(FileFormatError, match="no weights"):
        read_graph(tmp_path / "u.kne", weighted=True)
    with pytest.raises(ParameterError, match="says that its edges are undirected"):
        read_graph(tmp_path / "u.kne", directed=True)
    moved = read_graph(tmp_path / "u.kne", nodes=[1000], drop_self_loops=True)  # in memory
    assert moved.nodes.tolist() == [1000, *example().nodes]
    assert moved.n_edges < example().n_edges
    with pytest.raises(ParameterError, match="applies to edge lists"):
        read_graph(tmp_path / "u.kne", separator=",")


def test_objects_as_ids_are_refused(tmp_path):
    networkx = pytest.importorskip("networkx")
    with pytest.raises(InputError, match="all ints or all strs"):
        write_graph(Graph.from_networkx(networkx.grid_2d_graph(2, 2)), tmp_path / "g.kne")
    assert not os.listdir(tmp_path)


# Files that are damaged, or lie


def test_files_cut_short_are_refused(path):
    data = path.read_bytes()
    for size in (1, 8, 500, kne.HEADER - 1, kne.HEADER, kne.HEADER + 1, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(FileFormatError, match=r"damaged or cut short|not a \.kne graph"):
            read_graph(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(FileFormatError, match=r"it has [0-9,]+ bytes, and the header tells"):
        read_graph(path)
    path.write_bytes(b"")
    with pytest.raises(FileFormatError, match=r"not a \.kne graph: `kernelne convert"):
        read_graph(path)


@pytest.mark.parametrize("names", [False, True])
def test_a_flipped_bit_is_seen_wherever_it_is(tmp_path, names):
    path = tmp_path / "g.kne"
    write_graph(example(names, weighted=True), path)
    data, (_, found) = path.read_bytes(), pieces(path)
    places = [0, 9, 700, kne.HEADER - 1]
    places += [start + at for start, size in found.values() for at in (0, size // 2, size - 1)]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 4
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match=r"g\.kne: "):
            read_graph(path)


@pytest.mark.parametrize("name", ["n_nodes", "n_entries", "id_bytes", "n_merged"])
@pytest.mark.parametrize("lie", [-1, 0, 2**40, 2**62, 2**80, 1.5, "7", None, True, [1]])
def test_headers_that_lie_are_refused(tmp_path, name, lie):
    path = tmp_path / "g.kne"
    write_graph(example(names=True), path)
    if name == "n_merged" and lie in (0, 2**40):
        pytest.skip("nothing depends on it")
    rewrite(path, {name: lie})
    with pytest.raises(FileFormatError, match="damaged or cut short"):
        read_graph(path)


@pytest.mark.parametrize(
    ("told", "word"),
    [
        ({"byteorder": "big"}, "byte order 'big'"),
        ({"version": 2}, "version 2 of the format is unknown"),
        ({"directed": 1}, "the header tells"),
        ({"more": 1}, "the header tells"),
        ({"crc32": 5}, "the header cannot be read"),
        ({"crc32": {}}, "the bytes of 'offsets'"),
    ],
)
def test_other_headers_are_refused(path, told, word):
    rewrite(path, told)
    with pytest.raises(FileFormatError, match=word):
        read_graph(path)


def test_numbers_of_another_byte_order_are_refused(path):
    """Swapped throughout, header and checksums included, as a machine of the other order might write."""
    offsets, neighbours = arrays_of(example())
    rewrite(path, offsets=offsets.astype(">i8"), neighbours=neighbours.astype(">i4"))
    with pytest.raises(FileFormatError, match="the rows do not follow each other"):
        read_graph(path)


def test_rows_that_are_no_rows_of_a_graph_are_refused(path):
    graph = example()
    row = int(np.argmax(graph.degrees > 2))
    at = int(graph.offsets[row])
    lies = []
    for change in ("swap", "repeat", "low", "high", "other"):
        _, neighbours = arrays_of(graph)
        if change == "swap":
            neighbours[[at, at + 1]] = neighbours[[at + 1, at]]
        elif change == "repeat":
            neighbours[at + 1] = neighbours[at]
        else:
            neighbours[at] = {"low": -1, "high": graph.n_nodes, "other": neighbours[at]}[change]
        if change == "other":  # in order, but without a counterpart
            free = np.setdiff1d(np.arange(neighbours[at + 1]), neighbours[at : at + 1])
            neighbours[at] = free[free != row][0]
        lies.append({"neighbours": neighbours})
    for place, value in ((0, 1), (1, -5), (5, 10**15), (graph.n_nodes, 3)):
        offsets, _ = arrays_of(graph)
        offsets[place] = value
        lies.append({"offsets": offsets})
    nodes = graph.nodes.copy()
    nodes[3] = nodes[4]
    lies.append({"nodes": nodes})
    for lie in lies:
        write_graph(graph, path, overwrite=True)
        rewrite(path, **lie)
        with pytest.raises(FileFormatError, match="damaged or cut short"):
            read_graph(path)


@pytest.mark.parametrize("weight", [0.0, -1.0, np.inf, np.nan])
def test_weights_that_are_none_are_refused(tmp_path, weight):
    graph = example(weighted=True)
    write_graph(graph, tmp_path / "g.kne")
    weights = graph.weights.copy()
    weights[7] = weight
    rewrite(tmp_path / "g.kne", weights=weights)
    with pytest.raises(FileFormatError, match="bad weights"):
        read_graph(tmp_path / "g.kne")


def test_weights_of_an_undirected_edge_are_equal(tmp_path):
    graph = example(weighted=True)
    write_graph(graph, tmp_path / "g.kne")
    weights = graph.weights.copy()
    weights[7] *= 2
    rewrite(tmp_path / "g.kne", weights=weights)
    with pytest.raises(FileFormatError, match="lack their counterpart"):
        read_graph(tmp_path / "g.kne")


def test_ids_that_are_no_text_are_refused(tmp_path):
    graph = example(names=True)
    for change in ("text", "order", "equal"):
        write_graph(graph, tmp_path / "g.kne", overwrite=True)
        column = read_graph(tmp_path / "g.kne").nodes.column
        offsets, text = (array.copy() for array in kne.text_arrays(column))
        if change == "text":
            text[-1] = 0xC3
        elif change == "order":
            offsets[1] = offsets[2] + 1
        else:
            text[:] = ord("a")
        rewrite(tmp_path / "g.kne", id_offsets=offsets, id_text=text)
        with pytest.raises(FileFormatError, match="the node ids are not UTF-8 text, or one appears more"):
            read_graph(tmp_path / "g.kne")
