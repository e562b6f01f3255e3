import contextlib
import copy
import csv
import dataclasses
import errno
import io
import json
import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kernelne import KernelNE
from kernelne.embedding import Embedding
from kernelne.errors import FileFormatError, InputError, OutputError, UnknownNodeError
from kernelne.io.embeddings.registry import FORMATS, check_save, known_suffix

KEY = "kernelne_embedding"
SUFFIXES = (".safetensors", ".npz", ".parquet", ".npy", ".csv", ".emb", ".txt")
FULL = (".safetensors", ".npz")
every_format = pytest.mark.parametrize("suffix", SUFFIXES)

# Numbers whose text is easily got wrong: zeros, the smallest, the largest, those that need nine digits.
HARD = np.array(
    [
        [0.0, -0.0, 1e-45],
        [-3.4028235e38, 1.17549435e-38, 0.1],
        [1 / 3, 16777217, 1.00000012],
        [-7, 1e10, 1e-7],
    ],
    dtype=np.float32,
)


def make(nodes=("a", "b", "c", "d"), vectors=HARD, **more) -> Embedding:
    return Embedding(vectors, nodes, **more)


def full(nodes=(7, -1, 2**62, 0)) -> Embedding:
    return make(
        nodes,
        provenance={"model": "MKernelNE", "seed": 3, "parameters": {"dim": 3}, "note": "naïve \ud83d"},
        center=HARD.copy(),
        context=HARD[::-1].copy(),
        kernels=(("gauss", 2.0), ("schoenberg", 1.5)),
        coefficients=np.array([1 / 3, 2 / 3]),
    )


def assert_same(one: Embedding, other: Embedding) -> None:
    assert one.vectors.dtype == other.vectors.dtype == np.float32
    assert one.vectors.shape == other.vectors.shape
    assert one.vectors.tobytes() == other.vectors.tobytes()
    assert one.nodes.dtype == other.nodes.dtype
    assert one.nodes.tolist() == other.nodes.tolist()


# In memory


def test_rows_are_found_by_id_and_not_by_position():
    embedding = make([30, 10, 20, -5])
    assert len(embedding) == 4
    assert embedding.dim == 3
    np.testing.assert_array_equal(embedding[10], HARD[1])
    np.testing.assert_array_equal(embedding[[20, 30]], HARD[[2, 0]])
    np.testing.assert_array_equal(embedding[np.array([20, 30], dtype=np.uint8)], HARD[[2, 0]])
    assert embedding[[]].shape == (0, 3)
    assert embedding.index_of(np.int32(-5)) == 3
    assert embedding.index_of([20, 20]).tolist() == [2, 2]
    assert 10 in embedding
    assert 0 not in embedding
    assert "10" not in embedding
    assert 2**70 not in embedding
    assert [] not in embedding
    assert list(embedding) == [30, 10, 20, -5]
    assert np.asarray(embedding) is embedding.vectors


def test_strings_tuples_and_mixtures_are_ids():
    embedding = make(np.array(["x", "ÿ", "1", "01"]))
    assert embedding.nodes.dtype == object
    assert all(type(node) is str for node in embedding.nodes)
    np.testing.assert_array_equal(embedding["01"], HARD[3])
    np.testing.assert_array_equal(embedding[np.array(["1", "x"])], HARD[[2, 0]])
    assert 1 not in embedding
    assert [] not in embedding
    grid = make([(0, 0), (0, 1), "x", 2])
    np.testing.assert_array_equal(grid[(0, 1)], HARD[1])
    np.testing.assert_array_equal(grid[[(0, 0), 2]], HARD[[0, 3]])


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5), max_size=10),
)
def test_lookup_agrees_with_a_dict(nodes, asked):
    embedding = Embedding(np.zeros((len(nodes), 1)), nodes)
    rows = {node: row for row, node in enumerate(nodes)}
    for node in nodes + asked:
        assert (node in embedding) == (node in rows)
    assert embedding.index_of(nodes).tolist() == list(range(len(nodes)))


@pytest.mark.parametrize(
    ("nodes", "asked", "expected"),
    [
        ([100, 3, 7, 50], 6, "no node 6 .* 7, 3, 50"),
        ([100, 3, 7, 50], "7", "no node '7' .* integers"),
        ([100, 3, 7, 50], [3, 8], "no node 8 "),
        ([100, 3, 7, 50], 10**30, "no node 10000.* 100, 50, 7"),
        ([100, 3, 7, 50], -(2**70), "no node -1180591620717411303424 .* 3, 7, 50"),
        (["alice", "bob", "carol", "dave"], "Alice", "no node 'Alice' .* 'alice'"),
        (["alice", "bob", "carol", "dave"], ["bob", "eve"], "no node 'eve'"),
    ],
)
def test_an_unknown_id_is_named_with_close_ones(nodes, asked, expected):
    with pytest.raises(UnknownNodeError, match=expected) as caught:
        make(nodes)[asked]
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value, KeyError)
    assert not str(caught.value).startswith(("'", '"'))


ARRAYS = ("vectors", "nodes", "center", "context", "coefficients")


def test_nothing_of_it_can_be_written_to():
    given = {
        "vectors": np.eye(3, 4, dtype=np.float32),
        "nodes": np.arange(3),
        "center": np.ones((3, 4), np.float32),
        "context": np.zeros((3, 4), np.float32),
        "coefficients": np.ones(2),
    }
    embedding = Embedding(**given, kernels=[("gaussian", 1.0), ("gaussian", 2.0)])
    shared = Embedding(given["vectors"], given["nodes"], center=given["vectors"])
    assert shared.center is shared.vectors
    for made in (embedding, pickle.loads(pickle.dumps(embedding)), copy.copy(embedding), shared):
        for name in ARRAYS:
            array = getattr(made, name)
            if array is not None:
                assert not array.flags.writeable
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = 7
    with pytest.raises(ValueError, match="read-only"):
        embedding[0][0] = 7  # the vector of one node is no copy
    again = pickle.loads(pickle.dumps(shared))
    assert again.center is again.vectors
    # Those who gave the arrays still have them to write to, and no memory was spent on copies.
    for name, array in given.items():
        assert array.flags.writeable
        assert np.shares_memory(array, getattr(embedding, name))
    assert embedding[[0, 1]].flags.writeable


def test_what_was_learned_stays_writable(two_cliques):
    with pytest.warns(UserWarning, match="no edges"):
        model = KernelNE(dim=4, walks_per_node=2, random_state=0).fit(two_cliques)
    embedding = model.to_embedding()
    assert np.shares_memory(model.embedding_, embedding.vectors)
    assert all(array.flags.writeable for array in (model.embedding_, model.center_, model.context_))


def test_as_an_array():
    embedding = make()
    assert np.asarray(embedding) is embedding.vectors
    changed = np.array(embedding)
    changed += 1
    assert np.asarray(embedding, np.float64).dtype == np.float64
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        assert np.asarray(embedding, copy=False) is embedding.vectors
        with pytest.raises(ValueError, match="needs a copy"):
            np.asarray(embedding, np.float64, copy=False)
    assert_same(embedding, make())


def test_it_is_frozen_short_to_show_and_survives_pickle():
    embedding = full()
    with pytest.raises(dataclasses.FrozenInstanceError):
        embedding.vectors = HARD
    assert repr(embedding) == "<Embedding of 4 nodes in 3 dimensions, MKernelNE>"
    assert_same(pickle.loads(pickle.dumps(embedding)), embedding)


def test_good_arrays_are_kept_and_others_converted():
    assert np.shares_memory(make().vectors, HARD)
    embedding = make(vectors=[[1, 2], [3, 4], [5, 6], [7, 8]], provenance={"n": np.int64(3), "t": (1, 2)})
    assert embedding.vectors.dtype == np.float32
    assert embedding.provenance == {"n": 3, "t": [1, 2]}
    shared = make(center=HARD.copy())
    assert shared.center is shared.vectors
    unshared = make(center=np.abs(HARD) * np.sign(HARD))  # -0.0 has become 0.0
    assert unshared.center is not unshared.vectors


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"vectors": HARD[0]}, "2 dimensions"),
        ({"vectors": HARD[:0]}, "shape"),
        ({"vectors": HARD.astype(complex)}, "real numbers"),
        ({"vectors": [[1], [1, 2], [3], [4]]}, "vectors"),
        ({"vectors": np.where(HARD == 0, np.nan, HARD)}, "row 0, column 0"),
        ({"vectors": HARD.astype(np.float64) * 10}, "row 1, column 0"),
        ({"nodes": [1, 2, 3]}, "3 node ids for 4 vectors"),
        ({"nodes": [5, 1, 5, 2]}, "5 occurs more than once"),
        ({"nodes": ["a", "b", "b", "c"]}, "'b' occurs more than once"),
        ({"nodes": "abcd"}, "a list or an array"),
        ({"nodes": np.zeros((4, 1), dtype=int)}, "one dimension"),
        ({"nodes": [[], 1, 2, 3]}, "hashable"),
        ({"center": HARD[:2]}, "center has shape"),
        ({"context": np.full_like(HARD, np.inf)}, "context: not a finite"),
        ({"kernels": ["gauss"]}, "kernels"),
        ({"kernels": [("gauss", 1.0)], "coefficients": [1.0, 2.0]}, "2 coefficients for 1 kernels"),
        ({"coefficients": [np.nan]}, "coefficients: not a finite"),
        ({"provenance": {"loss": float("nan")}}, "provenance"),
        ({"provenance": {"x": object()}}, "provenance"),
        ({"provenance": [1]}, "provenance"),
    ],
)
def test_what_does_not_fit_is_refused(change, expected):
    with pytest.raises(InputError, match=expected):
        make(**change)


# Saved and loaded


def test_the_formats_are_listed_and_others_refused(tmp_path):
    assert tuple(FORMATS) == SUFFIXES
    assert known_suffix("x/Y.NPZ") == ".npz"
    for name in ("x", "x.pkl", "x.npz.gz"):
        for use in (known_suffix, check_save, make().save, Embedding.load):
            with pytest.raises(InputError, match=r"\.safetensors, \.npz, .*\.emb"):
                use(tmp_path / name)


@every_format
@pytest.mark.parametrize("nodes", [[7, -1, 2**62, 0], ["é", "01", "日本語", '"q,#']])
def test_round_trip(tmp_path, suffix, nodes):
    path = tmp_path / f"x{suffix}"
    make(nodes).save(path)
    assert_same(Embedding.load(path), make(nodes))
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name] + ["x.npy.nodes.txt"] * (
        suffix == ".npy"
    )


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
printable = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=8)
ids = {
    ".npy": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\ufeff"), max_size=8),
    ".emb": printable,
    ".txt": printable,
}


@every_format
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_round_trip_of_any_ids_and_numbers(tmp_path, suffix, data):
    integers = st.integers(-(2**63), 2**63 - 1)
    kind = data.draw(st.sampled_from([integers, ids.get(suffix, texts)]))
    nodes = data.draw(st.lists(kind, min_size=1, max_size=9, unique=True))
    shape = (len(nodes), data.draw(st.integers(1, 5)))
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    before = Embedding(data.draw(hnp.arrays(np.float32, shape, elements=finite)), nodes)
    path = tmp_path / f"x{suffix}"
    before.save(path, overwrite=True)
    after = Embedding.load(path)
    if after.nodes.dtype != before.nodes.dtype:  # text that was digits only: integers, by the rule
        assert suffix not in (*FULL, ".parquet")
        assert [str(node) for node in after.nodes] == before.nodes.tolist()
        after = dataclasses.replace(after, nodes=before.nodes)
    assert_same(after, before)


@every_format
def test_many_rows_take_several_blocks(tmp_path, suffix):
    vectors = np.random.default_rng(0).standard_normal((9000, 300)).astype(np.float32)
    before = Embedding(vectors, [f"n{row}" for row in range(9000)])
    before.save(tmp_path / f"x{suffix}")
    assert_same(Embedding.load(tmp_path / f"x{suffix}"), before)


@pytest.mark.parametrize("suffix", [".csv", ".emb", ".npy"])
@pytest.mark.parametrize("odd", ["01", "1.0", "+1", "-0", "１", "1_0", "9223372036854775808", "1e3"])
def test_ids_in_text_are_integers_only_if_all_are_plain_integers(tmp_path, suffix, odd):
    path = tmp_path / f"x{suffix}"
    make(["1", "-2", "0", odd]).save(path)
    assert Embedding.load(path).nodes.tolist() == ["1", "-2", "0", odd]
    make(["1", "-2", "0", "9223372036854775807"]).save(path, overwrite=True)
    assert Embedding.load(path).nodes.tolist() == [1, -2, 0, 2**63 - 1]


@pytest.mark.parametrize("suffix", FULL)
@pytest.mark.parametrize("nodes", [(7, -1, 2**62, 0), ("é", "", "a\0b\n", "x")])
def test_everything_is_kept(tmp_path, suffix, nodes):
    path, before = tmp_path / f"x{suffix}", full(nodes)
    before.save(path)
    after = Embedding.load(path)
    assert_same(after, before)
    assert after.provenance == before.provenance
    assert after.center is after.vectors
    assert after.context.tobytes() == before.context.tobytes()
    assert after.kernels == before.kernels
    assert after.coefficients.tolist() == before.coefficients.tolist()
    bare = Embedding.load(save(tmp_path / f"bare{suffix}", make()))
    assert (bare.center, bare.context, bare.kernels, bare.coefficients) == (None, None, None, None)


def save(path: Path, embedding: Embedding) -> Path:
    embedding.save(path)
    return path


@pytest.mark.parametrize("suffix", FULL)
def test_centers_that_are_the_vectors_are_stored_once(tmp_path, suffix):
    vectors = np.random.default_rng(0).random((1000, 50), dtype=np.float32)
    nodes = range(1000)
    once = save(tmp_path / f"once{suffix}", Embedding(vectors, nodes, center=vectors.copy()))
    twice = save(tmp_path / f"twice{suffix}", Embedding(vectors, nodes, center=vectors + 1))
    assert twice.stat().st_size - once.stat().st_size > 0.99 * vectors.nbytes
    assert np.array_equal(Embedding.load(twice).center, vectors + 1)


def test_parquet_keeps_provenance_and_reads_lists_of_other_libraries(tmp_path):
    path = save(tmp_path / "x.parquet", full())
    assert Embedding.load(path).provenance == full().provenance
    table = pq.read_table(path)
    assert table.column_names == ["id", "vector"]
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 3)
    pq.write_table(pa.table({"vector": HARD.tolist(), "id": ["a", "b", "c", "d"]}), path)  # list<double>
    assert_same(Embedding.load(path), make())


def test_other_readers_understand_the_files(tmp_path):
    embedding = make(["é", "01", "日本語", '"q,#'])
    # word2vec, as gensim reads it
    lines = save(tmp_path / "x.emb", embedding).read_bytes().decode().split("\n")
    assert lines[0] == "4 3"
    assert lines[-1] == ""
    for line, node, vector in zip(lines[1:-1], embedding.nodes, HARD, strict=True):
        name, *values = line.rstrip().split(" ")
        assert name == node
        assert np.array(values, dtype=np.float32).tobytes() == vector.tobytes()
    with open(save(tmp_path / "x.csv", embedding), newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    assert header == ["id", "0", "1", "2"]
    assert [row[0] for row in rows] == embedding.nodes.tolist()
    assert np.array([row[1:] for row in rows], dtype=np.float32).tobytes() == HARD.tobytes()
    assert np.load(save(tmp_path / "x.npy", embedding)).tobytes() == HARD.tobytes()
    assert (tmp_path / "x.npy.nodes.txt").read_text(encoding="utf-8").split("\n")[:-1] == list(embedding)
    with np.load(save(tmp_path / "x.npz", embedding), allow_pickle=False) as arrays:
        assert arrays["vectors"].tobytes() == HARD.tobytes()
    tensors = safetensors.numpy.load_file(save(tmp_path / "x.safetensors", embedding))
    assert tensors["vectors"].tobytes() == HARD.tobytes()


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
def test_word2vec_of_other_writers_is_read(tmp_path, end):
    path = tmp_path / "x.emb"
    path.write_bytes(
        ("\ufeff" * (end == "\r\n") + f"2 2{end.strip(' ')}</s> 1 -2.50{end}b .5 1e-3{end}").encode()
    )
    assert_same(Embedding.load(path), Embedding(np.array([[1, -2.5], [0.5, 1e-3]]), ["</s>", "b"]))


def test_vectors_without_their_ids_are_numbered_with_a_warning(tmp_path):
    path = save(tmp_path / "x.npy", make())
    (tmp_path / "x.npy.nodes.txt").unlink()
    with pytest.warns(UserWarning, match=r"no node ids in x\.npy\.nodes\.txt") as caught:
        embedding = Embedding.load(path)
    assert caught[0].filename == __file__
    assert_same(embedding, make([0, 1, 2, 3]))


@every_format
@pytest.mark.parametrize("node", [(1, 2), 2.5, None, True, 2**70, b"x", "\ud800"])
def test_ids_that_no_file_holds_are_refused(tmp_path, suffix, node):
    with pytest.raises(InputError, match=r"str\(node\)|surrogate"):
        make([node, "b", "c", "d"]).save(tmp_path / f"x{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("suffix", "node"),
    [(".emb", "a b"), (".txt", "a\tb"), (".emb", "\u2003"), (".emb", ""), (".npy", "a\nb"), (".npy", "\r")],
)
def test_ids_a_text_format_cannot_hold_are_refused_with_a_remedy(tmp_path, suffix, node):
    with pytest.raises(InputError, match=r"use \.safetensors"):
        make([node, "b", "c", "d"]).save(tmp_path / f"x{suffix}")
    assert list(tmp_path.iterdir()) == []


# Writing goes wrong


def contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


@every_format
def test_an_existing_file_is_replaced_only_on_request(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    check_save(path)
    make().save(path)
    before = contents(tmp_path)
    for use in (check_save, make([4, 5, 6, 7]).save):
        with pytest.raises(InputError, match="--overwrite"):
            use(path)
    assert contents(tmp_path) == before
    check_save(path, overwrite=True)
    make([4, 5, 6, 7]).save(path, overwrite=True)
    assert Embedding.load(path).nodes.tolist() == [4, 5, 6, 7]


def test_ids_beside_npy_are_not_replaced_either(tmp_path):
    (tmp_path / "x.npy.nodes.txt").write_text("mine")
    for use in (check_save, make().save):
        with pytest.raises(InputError, match=r"x\.npy\.nodes\.txt"):
            use(tmp_path / "x.npy")
    assert contents(tmp_path) == {"x.npy.nodes.txt": b"mine"}


class FullDisk(io.FileIO):
    """A file that takes 50 bytes and no more."""

    def write(self, data):
        if self.tell() + len(memoryview(data).cast("B")) > 50:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


@every_format
@pytest.mark.parametrize("fault", ["write", "fsync", "interrupt"])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, suffix, fault):
    path = tmp_path / f"x{suffix}"
    make().save(path)
    before = contents(tmp_path)

    def stop(_descriptor):
        if fault == "interrupt":
            raise KeyboardInterrupt
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if fault == "write":
        monkeypatch.setattr("builtins.open", lambda path, mode: FullDisk(path, mode))
    else:
        monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt if fault == "interrupt" else OutputError) as caught:
        full().save(path, overwrite=True)
    monkeypatch.undo()
    assert contents(tmp_path) == before
    if fault != "interrupt":
        assert str(path) in str(caught.value)
        assert os.strerror(errno.ENOSPC) in str(caught.value)


# Files that are not what they should be


def refused(path: Path, match: str = ".") -> FileFormatError:
    with pytest.raises(FileFormatError, match=match) as caught:
        Embedding.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


@every_format
def test_missing_empty_folder_and_junk(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    with pytest.raises(FileNotFoundError, match="x"):
        Embedding.load(path)
    path.mkdir()
    refused(path, "folder")
    path.rmdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(path)
        refused(path, "pipe")
        path.unlink()
    for junk in (
        b"",
        b"\n",
        b"junk\n",
        b"\xff" * 99,
        b"PK\x03\x04junk",
        b"PAR1junkPAR1",
        b"\x93NUMPY\x01\x00",
    ):
        path.write_bytes(junk)
        refused(path)


@every_format
def test_a_file_cut_anywhere_or_with_more_at_its_end_is_refused(tmp_path, suffix):
    path = save(tmp_path / f"x{suffix}", make())
    whole = path.read_bytes()
    ends = range(0, len(whole), max(1, len(whole) // 60))
    for end in {*ends, len(whole) - 1}:
        if suffix == ".csv" and whole[:end].endswith(b"\n") and whole[:end].count(b"\n") > 1:
            continue  # whole lines: a csv file does not tell how many there should be
        path.write_bytes(whole[:end])
        refused(path)
    path.write_bytes(whole + b"x")
    if suffix != ".npz":  # zip allows it
        refused(path)


@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".parquet", ".npy"])
def test_a_damaged_byte_is_an_error_of_ours_or_harmless(tmp_path, suffix):
    path = save(tmp_path / f"x{suffix}", full(("a", "b", "c", "d")))
    whole = path.read_bytes()
    places = np.random.default_rng(0).integers(0, len(whole), 150)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place in places:
            damaged = bytearray(whole)
            damaged[place] ^= 0x15
            path.write_bytes(damaged)
            with contextlib.suppress(FileFormatError):
                assert len(Embedding.load(path)) > 0


DOCUMENT = json.dumps({"version": 1, "provenance": {}, "kernels": None, "shared": []})
GOOD = {
    "vectors": HARD,
    "nodes_utf8": np.frombuffer(b"abcd", np.uint8),
    "nodes_offsets": np.arange(5),
}


def craft(path: Path, arrays: dict, document: str | None = DOCUMENT) -> Path:
    if path.suffix == ".npz":
        extra = {} if document is None else {KEY: np.frombuffer(document.encode(), np.uint8)}
        np.savez(path, **arrays, **extra)
    else:
        safetensors.numpy.save_file(arrays, path, None if document is None else {KEY: document})
    return path


@pytest.mark.parametrize("suffix", FULL)
class TestCrafted:
    def test_a_good_one_is_read(self, tmp_path, suffix):
        assert_same(Embedding.load(craft(tmp_path / f"x{suffix}", GOOD)), make())

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            ({"vectors": None}, "'vectors' is missing"),
            ({"vectors": HARD.astype(np.float64)}, "float32"),
            ({"vectors": HARD.reshape(-1)}, "2 dimensions"),
            ({"vectors": HARD[:3].copy()}, "4 node ids for 3 vectors"),
            ({"vectors": np.full_like(HARD, np.nan)}, "not a finite"),
            ({"nodes_utf8": None}, "node ids are missing"),
            ({"nodes_offsets": None}, "node ids are missing"),
            ({"nodes": np.arange(4)}, "twice"),
            ({"nodes_utf8": None, "nodes_offsets": None, "nodes": np.zeros(4, np.int64)}, "more than once"),
            ({"nodes_utf8": None, "nodes_offsets": None, "nodes": np.arange(4.0)}, "int64"),
            ({"nodes_offsets": np.array([0, 1, 2, 3, 2**40])}, "offsets"),
            ({"nodes_offsets": np.array([0, 3, 2, 3, 4])}, "offsets"),
            ({"nodes_offsets": np.array([-9, 1, 2, 3, 4])}, "offsets"),
            ({"nodes_offsets": np.zeros(0, np.int64)}, "offsets"),
            ({"nodes_utf8": np.frombuffer(b"a\xffcd", np.uint8)}, "UTF-8"),
            ({"nodes_utf8": np.frombuffer("é".encode() * 2, np.uint8)}, "UTF-8"),  # cut within a character
            ({"center": HARD[:2].copy()}, "center has shape"),
            ({"coefficients": np.zeros((1, 1))}, "1 dimensions of float64"),
            ({"other": HARD}, "'other'"),
        ],
    )
    def test_wrong_arrays(self, tmp_path, suffix, change, expected):
        arrays = {name: array for name, array in {**GOOD, **change}.items() if array is not None}
        refused(craft(tmp_path / f"x{suffix}", arrays), expected)

    @pytest.mark.parametrize(
        "document",
        [
            None,
            "",
            "{",
            "[]",
            "{}",
            '{"version": 2}',
            '{"version": 1, "provenance": [1]}',
            '{"version": 1, "provenance": {"x": NaN}}',
            '{"version": 1, "kernels": 5}',
            '{"version": 1, "kernels": [["gauss"]]}',
            '{"version": 1, "shared": 5}',
            '{"version": 1, "shared": ["vectors"]}',
            '{"version": 1, "x": ' + "[" * 100_000,
        ],
    )
    def test_wrong_document(self, tmp_path, suffix, document):
        refused(craft(tmp_path / f"x{suffix}", GOOD, document))


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def npy(shape: str, descr: str = "'<f4'", data: bytes = b"\0" * 48) -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


LIES = {
    "(4, 3)": None,
    "(4, 3163000000000)": "another size",
    "(2, 3)": "another size",
    "(-4, -3)": "another size",
    "(4, 3": "not an array",
    "{[]: 1}": "not an array",
    "'x'": "not an array",
}


@pytest.mark.parametrize("shape", LIES)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_header_is_compared_with_the_file_before_memory_is_asked_for(tmp_path, suffix, shape):
    path = tmp_path / f"x{suffix}"
    if suffix == ".npy":
        path.write_bytes(npy(shape))
        (tmp_path / "x.npy.nodes.txt").write_text("a\nb\nc\nd\n")
    else:
        craft(path, {name: array for name, array in GOOD.items() if name != "vectors"})
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("vectors.npy", npy(shape))
    if LIES[shape] is None:
        assert_same(Embedding.load(path), make(vectors=np.zeros((4, 3))))
    else:
        refused(path, LIES[shape])


def test_pickles_are_never_loaded(tmp_path):
    objects = np.array([[Bomb()]], dtype=object)
    np.save(tmp_path / "x.npy", objects, allow_pickle=True)
    refused(tmp_path / "x.npy", "pickle")
    np.savez(
        tmp_path / "x.npz", **{**GOOD, "vectors": objects}, **{KEY: np.frombuffer(DOCUMENT.encode(), "u1")}
    )
    refused(tmp_path / "x.npz", "pickle")
    (tmp_path / "y.npz").write_bytes(pickle.dumps(Bomb()))
    refused(tmp_path / "y.npz")


def test_npz_members_compressed_or_twice_are_refused(tmp_path):
    document = {KEY: np.frombuffer(DOCUMENT.encode(), "u1")}
    np.savez_compressed(tmp_path / "x.npz", **GOOD, **document)
    refused(tmp_path / "x.npz", "compressed")
    craft(tmp_path / "y.npz", GOOD)
    with zipfile.ZipFile(tmp_path / "y.npz", "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("vectors.npy", npy("(4, 3)"))
    refused(tmp_path / "y.npz", "twice")


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        (b"a\nb\nc\n", "4 vectors"),
        (b"a\nb\nc\nd", "4 vectors"),
        (b"a\nb\nc\n\xff\n", "UTF-8"),
        (b"", "4 vectors"),
    ],
)
def test_ids_beside_npy_that_do_not_fit(tmp_path, beside, expected):
    path = save(tmp_path / "x.npy", make())
    (tmp_path / "x.npy.nodes.txt").write_bytes(beside)
    refused(path, expected)
    (tmp_path / "x.npy.nodes.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\r\nc\r\nd\r\n")
    assert_same(Embedding.load(path), make())


@pytest.mark.parametrize(
    "columns",
    [
        {"id": [1]},
        {"id": [1.5], "vector": [[1.0]]},
        {"id": [1, None], "vector": [[1.0], [1.0]]},
        {"id": [1, 2], "vector": [[1.0], None]},
        {"id": [1, 2], "vector": [[1.0], [1.0, 2.0]]},
        {"id": [1, 2], "vector": [[1.0], [None]]},
        {"id": [1, 2], "vector": [["x"], ["y"]]},
        {"id": [1, 2], "vector": [1.0, 2.0]},
        {"id": [1, 2], "vector": [{"a": 1.0}, {"a": 2.0}]},
        {"id": [1, 1], "vector": [[1.0], [2.0]]},
        {"id": [1], "vector": [[float("nan")]]},
        {"id": pa.array([], pa.int64()), "vector": pa.array([], pa.list_(pa.float32()))},
    ],
)
def test_parquet_of_another_shape(tmp_path, columns):
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    refused(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("suffix", "text", "line", "expected"),
    [
        (".csv", "a,1,2\nb,1,2\n", 1, "header"),
        (".csv", "id,label,0\na,1,2\n", 1, "header"),
        (".csv", "id\na\n", 1, "header"),
        (".csv", "id,0,1\na,1,2\n\nb,1\n", 4, "2 values .* are 1"),
        (".csv", 'id,0,1\n"a\nb",1,2\nb,1,2,3\n', 4, "2 values .* are 3"),
        (".csv", "id,0,1\na,1,2\nb,1,x\n", 3, "finite number .*'x'"),
        (".csv", "id,0,1\na,1,2\nb,1,\n", 3, "finite number"),
        (".csv", "id,0,1\na,1,2\nb,1,nan\n", 3, "finite number .*'nan'"),
        (".csv", "id,0,1\na,1,2\nb,1,1e39\n", 3, "finite number .*'1e39'"),
        (".csv", "id,0,1\na,1,2\na,1,2\n", None, "more than once"),
        (".csv", "id,0,1\n", None, "not a readable"),
        (".csv", "id,0,1\na,1,2", None, "last line"),
        (".csv", b"id,0,1\n\xff,1,2\n", None, "(?i)utf-?8"),
        (".emb", "x y\na 1 2\n", 1, "rows columns"),
        (".emb", "a 1 2\nb 1 2\n", 1, "rows columns"),
        (".emb", "1 99999999999\na 1 2\n", 2, "99999999999 values .* are 2"),
        (".emb", "1 0\na\n", 2, "0 values"),
        (".emb", "99999999999 2\na 1 2\n", 1, "99999999999 rows"),
        (".emb", "1 2\na 1 2\nb 1 2\n", 1, "1 rows are announced, there are 2"),
        (".emb", "2 2\na 1 2\nb 1\n", 3, "2 values .* are 1"),
        (".emb", "2 2\na 1 2\nb  1 2\n", 3, "2 values .* are 3"),
        (".emb", "2 2\na 1 2\nb 1 inf\n", 3, "finite number .*'inf'"),
        (".emb", "2 2\na 1 2\nb 1 1_0\n", 3, "finite number .*'1_0'"),
    ],
)
def test_text_with_a_fault_is_refused_with_its_line(tmp_path, suffix, text, line, expected):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert refused(path, expected).line == line


def test_the_fault_of_a_late_line_is_found(tmp_path):
    lines = ["id,0,1"] + [f"{row},1,2" for row in range(400_000)]
    lines[345_678] = "x,1"
    path = tmp_path / "x.csv"
    path.write_text("\n".join(lines) + "\n")
    assert refused(path, "2 values").line == 345_679


def test_numba_is_not_needed():
    code = "import sys, kernelne.embedding; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize("suffix", tuple(FORMATS))
def test_names_that_are_not_utf8(tmp_path, suffix):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9" + suffix.encode())
    Embedding([[1.0, 2.0], [3.0, 4.0]], ["a", "b"]).save(path)
    assert Embedding.load(path)["b"].tolist() == [3.0, 4.0]


def _lists(rows=2):
    return pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2 * rows, dtype=np.float32)), 2)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (pa.table([[1, 2], [3, 4], _lists()], ["id", "id", "vector"]), "several columns are named 'id'"),
        (pa.table([[1, 2], _lists(), _lists()], ["id", "vector", "vector"]), "several columns .* 'vector'"),
        (pa.table([_lists()], ["vector"]), "columns 'id' and 'vector' are needed"),
        (
            pa.table([[1, 2], _lists()], ["id", "vector"]).replace_schema_metadata({KEY: b"\xff{"}),
            "not a readable embedding",
        ),
        ({"id": [1, "a"], "vector": [[1.0], [2.0]]}, "not a readable embedding"),
        ({"id": [1, 2], "vector": [[1.0]]}, "not a readable embedding"),
        ([1, 2], "not a readable embedding"),
        (None, "not a readable embedding"),
    ],
)
def test_tables_that_are_no_embeddings(table, expected):
    with pytest.raises(InputError, match=f"^the table: .*{expected}"):
        Embedding.from_arrow(table)
