"""Embeddings that stay in their file, or are written in blocks of rows: the same as those in memory."""

from __future__ import annotations

import os

import numpy as np
import pytest

from kernelne import Embedding, Graph, recommend_links
from kernelne._common.checks import parts
from kernelne.embedding import checks
from kernelne.embedding.save_rows import save_rows
from kernelne.errors import FileFormatError, InputError, ParameterError, UnknownNodeError
from kernelne.graph.string_ids import StringIds
from kernelne.io.embeddings import registry
from kernelne.links import ranking
from kernelne.model import combine_tables, neighbour_sums

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(60, 8)).astype(np.float32)
TABLES = {
    "center": RNG.normal(size=(60, 8)).astype(np.float32),
    "context": RNG.normal(size=(60, 8)).astype(np.float32),
    "kernels": (("gaussian", 1.5),),
    "coefficients": [0.9],
    "provenance": {"model": "x"},
}
IDS = {
    "integers": np.arange(60) * 3,
    "shuffled": RNG.permutation(60) * 7 - 50,
    "strings": [f"é {i:02}" for i in range(60)],
    "unsorted": [f"n{i}" for i in range(60)],
}


def is_mapped(array):
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return isinstance(array, np.memmap)


@pytest.fixture(params=IDS)
def ids(request):
    return IDS[request.param]


@pytest.mark.parametrize("suffix", [".safetensors", ".npy"])
def test_a_mapped_embedding_is_the_same(tmp_path, ids, suffix):
    path = tmp_path / f"v{suffix}"
    plain = Embedding(VECTORS, ids, **TABLES)
    plain.save(path)
    mapped = Embedding.load(path, mapped=True)
    assert is_mapped(mapped.vectors)
    assert np.array_equal(mapped.vectors, plain.vectors)
    assert mapped.nodes.tolist() == plain.nodes.tolist()
    assert isinstance(mapped.nodes, StringIds) == (plain.nodes.dtype == object)
    some = plain.nodes[[5, 3, 5]]
    assert mapped.index_of(some).tolist() == [5, 3, 5]
    assert mapped.index_of(some[0]) == 5
    assert np.array_equal(mapped[some.tolist()], plain[some])
    assert mapped.find(mapped.nodes).tolist() == list(range(60))
    assert mapped.find([some[0], "no", 10**30, None, "\ud800"]).tolist() == [5, -1, -1, -1, -1]
    assert some[1] in mapped
    assert "no" not in mapped
    with pytest.raises(UnknownNodeError, match="'nothing'"):
        mapped.index_of(["nothing"])
    for metric in ("cosine", "euclidean"):
        assert mapped.neighbours(some[0], metric=metric) == plain.neighbours(some[0], metric=metric)
    for other in (".safetensors", ".parquet", ".npy", ".csv", ".npz"):
        mapped.save(tmp_path / f"again{other}")
        again = Embedding.load(tmp_path / f"again{other}")
        assert again.nodes.tolist() == plain.nodes.tolist()
        assert np.array_equal(again.vectors, plain.vectors)
    if suffix == ".safetensors":
        assert is_mapped(mapped.context)
        assert mapped.kernels == plain.kernels
        assert mapped.provenance == plain.provenance
        assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()
    mapped.save(path, overwrite=True)  # the old file is mapped still
    assert np.array_equal(mapped.vectors, plain.vectors)


def test_large_files_are_mapped_by_themselves(tmp_path, monkeypatch):
    embedding = Embedding(VECTORS, IDS["strings"])
    for suffix in (".safetensors", ".npy", ".parquet"):
        embedding.save(tmp_path / f"v{suffix}")
    assert not is_mapped(Embedding.load(tmp_path / "v.safetensors").vectors)
    monkeypatch.setenv("KERNELNE_MEMORY", "4k")
    assert is_mapped(Embedding.load(tmp_path / "v.safetensors").vectors)
    assert is_mapped(Embedding.load(tmp_path / "v.npy").vectors)
    assert not is_mapped(Embedding.load(tmp_path / "v.safetensors", mapped=False).vectors)
    assert not is_mapped(Embedding.load(tmp_path / "v.parquet").vectors)
    with pytest.raises(ParameterError, match=r"v.parquet cannot be mapped: save it as .safetensors or .npy"):
        Embedding.load(tmp_path / "v.parquet", mapped=True)


def test_arrays_of_other_numbers_are_read(tmp_path):
    np.save(tmp_path / "v.npy", VECTORS.astype(np.float64))
    with pytest.warns(UserWarning, match="no node ids"):
        loaded = Embedding.load(tmp_path / "v.npy", mapped=True)
    assert np.array_equal(loaded.vectors, VECTORS)


def test_values_and_ids_of_a_mapped_file_are_checked(tmp_path, monkeypatch):
    monkeypatch.setattr("kernelne._common.checks._PART", 64)
    path = tmp_path / "v.safetensors"
    Embedding(VECTORS, IDS["strings"], center=TABLES["center"]).save(path)
    data = path.read_bytes()
    path.write_bytes(data.replace(VECTORS[7, 3].tobytes(), np.float32(np.nan).tobytes()))
    with pytest.raises(FileFormatError, match="vectors: not a finite float32 at row 7, column 3"):
        Embedding.load(path, mapped=True)
    path.write_bytes(data.replace("é 07".encode(), "é 08".encode()))
    with pytest.raises(FileFormatError, match="node ids must be unique, but 'é 08' occurs more than once"):
        Embedding.load(path, mapped=True)
    path.write_bytes(data.replace("é 07".encode(), b"\xff\xfe 07"))
    with pytest.raises(FileFormatError, match="node ids do not match their text, or it is not UTF-8"):
        Embedding.load(path, mapped=True)
    path.write_bytes(data[:-8])
    with pytest.raises(FileFormatError, match="not a readable embedding"):
        Embedding.load(path, mapped=True)


def test_arrays_are_looked_at_in_parts(monkeypatch):
    monkeypatch.setattr("kernelne._common.checks._PART", 100)
    assert [first for first, _ in parts(VECTORS)] == list(range(0, 60, 3))
    assert np.array_equal(np.concatenate([part for _, part in parts(VECTORS)]), VECTORS)
    changed = VECTORS.copy()
    assert checks.same_bits(changed, VECTORS)
    changed[59, 7] = -changed[59, 7]
    assert not checks.same_bits(changed, VECTORS)
    assert not checks.same_bits(np.float32([[0.0]]), np.float32([[-0.0]]))
    assert not checks.same_bits(VECTORS[:, :4], VECTORS)


# Blocks of rows


@pytest.mark.parametrize("suffix", [".safetensors", ".parquet"])
def test_rows_are_saved_in_blocks(tmp_path, ids, suffix):
    plain = Embedding(VECTORS, ids, **TABLES)
    blocks = (VECTORS[start : start + 7].tolist() for start in range(0, 60, 7))
    save_rows(tmp_path / f"rows{suffix}", ids, 8, blocks, **TABLES)
    back = Embedding.load(tmp_path / f"rows{suffix}")
    assert np.array_equal(back.vectors, VECTORS)
    assert back.nodes.tolist() == plain.nodes.tolist()
    assert back.provenance == plain.provenance
    if suffix == ".safetensors":
        plain.save(tmp_path / "whole.safetensors")
        assert (tmp_path / "rows.safetensors").read_bytes() == (tmp_path / "whole.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ([VECTORS[:50]], "rows: 50 of them or more for 60 node ids"),
        ([VECTORS, VECTORS], "rows: 120 of them or more for 60 node ids"),
        ([VECTORS[:, :7]], "a block has shape .60, 7., expected 8 columns"),
        ([VECTORS[:40], VECTORS[40:] * np.inf], "not a finite float32 in row 40"),
    ],
)
@pytest.mark.parametrize("suffix", [".safetensors", ".parquet"])
def test_rows_that_do_not_fit_leave_no_file(tmp_path, rows, word, suffix):
    with pytest.raises(InputError, match=word):
        save_rows(tmp_path / f"rows{suffix}", IDS["strings"], 8, iter(rows))
    assert not os.listdir(tmp_path)


def test_what_cannot_be_saved_in_blocks_is_refused(tmp_path):
    def save(name="rows.safetensors", ids=IDS["integers"], **more):
        save_rows(tmp_path / name, ids, 8, [VECTORS], **more)

    with pytest.raises(InputError, match=r"rows are written to .safetensors or .parquet files only"):
        save("rows.npy")
    with pytest.raises(InputError, match="must be unique"):
        save(ids=[1] * 60)
    with pytest.raises(InputError, match="context has 59 rows for 60 node ids"):
        save(context=VECTORS[:59])
    with pytest.raises(InputError, match="center: not a finite"):
        save(center=VECTORS * np.inf)
    save()
    with pytest.raises(InputError, match="already exists"):
        save()
    assert os.listdir(tmp_path) == ["rows.safetensors"]


# What is made of them


@pytest.mark.parametrize("slabs", [1, 2, 13])
@pytest.mark.parametrize("vectors", combine_tables.VECTORS)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("dim", "weighted"), [(8, True), (16, False)])
def test_vectors_are_made_into_a_mapped_array(tmp_path, monkeypatch, slabs, vectors, directed, dim, weighted):
    weights = RNG.random(200) if weighted else None
    # Nodes 60 to 69 have no edges.
    graph = Graph.from_edges(*RNG.integers(0, 60, (2, 200)), weights, np.arange(70), directed)
    tables = [np.memmap(tmp_path / name, np.float32, "w+", shape=(70, dim)) for name in ("a", "b")]
    tables[0][:], tables[1][:] = RNG.normal(size=(2, 70, dim))
    for norm in (None, 2.0):
        whole, frame = combine_tables.combine_in_frame(graph, *map(np.array, tables), vectors, norm)
        out = np.memmap(tmp_path / "out", np.float32, "w+", shape=whole.shape)
        with monkeypatch.context() as patch:
            patch.setattr(neighbour_sums, "BLOCK_NODES", 7)
            made, other = combine_tables.combine_in_frame(graph, *tables, vectors, norm, out, slabs)
            assert made is out
        np.testing.assert_allclose(made, whole, atol=1e-4 if vectors == "joint" else 1e-6)
        assert other.scale == pytest.approx(frame.scale)
        assert other.weight == frame.weight


@pytest.mark.parametrize("modelled", [False, True])
@pytest.mark.parametrize("bipartite", [False, True])
def test_recommendations_of_parts_are_the_same(monkeypatch, modelled, bipartite):
    ends = RNG.integers(0, 30, (2, 200)) if bipartite else RNG.integers(0, 60, (2, 200))
    graph = Graph.from_edges(ends[0], ends[1] + 30 * bipartite, nodes=np.arange(60))
    embedding = Embedding(VECTORS, graph.nodes, **(TABLES if modelled else {}))
    for candidates in (None, np.arange(0, 60, 2)):
        whole = recommend_links(graph, embedding, k=5, candidates=candidates)
        with monkeypatch.context() as patch:
            patch.setenv("KERNELNE_MEMORY", "1k")
            patch.setattr(ranking, "_PART", 7)
            parted = recommend_links(graph, embedding, k=5, candidates=candidates)
        assert np.array_equal(parted.nodes, whole.nodes)
        np.testing.assert_allclose(parted.scores, whole.scores, rtol=1e-4)


def test_the_readers_that_map_are_known():
    assert {suffix for suffix, found in registry.FORMATS.items() if found.map} == {".safetensors", ".npy"}
