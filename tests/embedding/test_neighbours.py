"""Nearest neighbours: exact ones against float64, the index, its file."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernelne import (
    Embedding,
    FileFormatError,
    InputError,
    MissingDependencyError,
    ParameterError,
    UnknownNodeError,
)
from kernelne.embedding import neighbours
from kernelne.embedding.neighbours import METRICS, NeighbourIndex, index_path, nearest


def brute_force(vectors, query, metric):
    """Scores (n,) of all rows in float64, and their order: the nearest first, of equal ones the first row."""
    x, q = vectors.astype(np.float64), query.astype(np.float64)
    if metric == "euclidean":
        scores = np.sqrt(((x - q) ** 2).sum(axis=1))
        return scores, np.argsort(scores, kind="stable")
    lengths = np.sqrt((x * x).sum(axis=1) * (q * q).sum())
    dots = (x * q).sum(axis=1)
    scores = np.divide(dots, lengths, out=np.zeros(len(x)), where=lengths > 0).clip(-1, 1)
    return scores, np.argsort(-scores, kind="stable")


def assert_exact(vectors, k, metric):
    """`nearest` of every row and of two other queries is what brute force finds."""
    rows, scores = nearest(vectors, k, metric, own=np.arange(len(vectors)))
    assert rows.shape == scores.shape == (len(vectors), min(k, len(vectors) - 1))
    for row in range(len(vectors)):
        expected, order = brute_force(vectors, vectors[row], metric)
        order = order[order != row][:k]
        assert rows[row].tolist() == order.tolist()
        assert scores[row].tolist() == expected[order].tolist()
    queries = np.vstack([-vectors[0], vectors.mean(axis=0, dtype=np.float64)]).astype(np.float32)
    rows, scores = nearest(vectors, k, metric, queries=queries)
    for i, query in enumerate(queries):
        expected, order = brute_force(vectors, query, metric)
        assert rows[i].tolist() == order[:k].tolist()


#: Few different values, so that there are equal rows, rows of zeros and ties; or any that float32 has.
numbers = st.one_of(st.sampled_from([-1.0, 0.0, 1.0, 2.0]), st.floats(width=32, allow_nan=False))
tables = st.tuples(st.integers(1, 60), st.integers(1, 5)).flatmap(
    lambda shape: arrays(
        np.float32, shape, elements=numbers.filter(lambda x: abs(x) < 1e38), fill=st.nothing()
    )
)


@pytest.mark.parametrize("metric", METRICS)
@given(vectors=tables, k=st.integers(1, 70))
@settings(deadline=None, max_examples=150)
def test_exact_is_brute_force(metric, vectors, k):
    assert_exact(vectors, k, metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["spread", "clusters", "copies", "far", "huge and tiny"])
def test_exact_in_many_blocks(monkeypatch, metric, kind):
    """With more rows than candidates and than a block holds: most are never ranked in float64."""
    monkeypatch.setattr(neighbours, "_BLOCK_ROWS", 97)
    monkeypatch.setattr(neighbours, "_FIRST_ROWS", 50)
    monkeypatch.setattr(neighbours, "_QUERIES", 33)
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(400, 6))
    if kind == "clusters":
        vectors = vectors / 100 + rng.normal(size=(8, 6))[rng.integers(8, size=400)]
    elif kind == "copies":
        vectors = vectors[rng.integers(5, size=400)]
    elif kind == "far":  # float32 cannot tell these apart by |x|² − 2x·q
        vectors = vectors + 1e4
    elif kind == "huge and tiny":
        vectors *= 10.0 ** rng.integers(-40, 37, size=(400, 1))
    assert_exact(vectors.astype(np.float32), 7, metric)


def test_few_queries_are_done_in_full(monkeypatch):
    """The fast way is taken: comparing all in float64 is for what float32 cannot decide."""
    monkeypatch.setattr(neighbours._Search, "_in_full", lambda *_: pytest.fail("slow"))
    vectors = np.random.default_rng(0).normal(size=(3000, 16)).astype(np.float32)
    for metric in METRICS:
        assert nearest(vectors, 10, metric, own=np.arange(3000))[0].shape == (3000, 10)


@pytest.mark.parametrize("metric", METRICS)
def test_many_alike_are_asked_for_once(metric, monkeypatch):
    """Leaves of a star, or nodes without edges: as many ties as there are nodes."""
    asked = []
    in_full = neighbours._Search._in_full
    monkeypatch.setattr(
        neighbours._Search, "_in_full", lambda self, *given: asked.append(1) or in_full(self, *given)
    )
    vectors = np.zeros((300, 4), np.float32)
    vectors[:100] = 1.0
    vectors[290:] = np.random.default_rng(0).normal(size=(10, 4))
    assert_exact(vectors, 5, metric)
    assert len(asked) < 30


@pytest.fixture
def animals():
    vectors = [[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [0.0, 0.0], [2.0, 0.0]]
    return Embedding(vectors, ["cat", "lynx", "cod", "?", "puma"])


def test_of_one_node(animals):
    assert animals.neighbours("cat", k=2) == [("puma", 1.0), ("lynx", pytest.approx(2 / np.hypot(2, 0.1)))]
    near = animals.neighbours("cat", k=3, metric="euclidean")
    assert near == [("?", 1.0), ("puma", 1.0), ("lynx", pytest.approx(np.hypot(1, 0.1)))]
    # Zeros are as near to all: in the order of rows.
    assert animals.neighbours("?") == [("cat", 0.0), ("lynx", 0.0), ("cod", 0.0), ("puma", 0.0)]


def test_of_a_vector(animals):
    assert animals.neighbours(np.array([3.0, 0.0]), k=2) == [("cat", 1.0), ("puma", 1.0)]
    found = animals.neighbours(np.array([[0, 2], [3, 0]]), k=1)  # two rows can only be vectors
    assert (found.ids.tolist(), found.scores.tolist()) == ([["cod"], ["cat"]], [[1.0], [1.0]])


def test_of_many_nodes(animals):
    ids, scores = animals.neighbours(["cod", "cat", "cod"], k=9, metric="euclidean")
    assert ids.shape == scores.shape == (3, 4)
    assert ids[0].tolist() == ids[2].tolist() == ["?", "cat", "lynx", "puma"]
    assert "cat" not in ids[1]
    whole = animals.neighbours(animals.nodes, k=1).ids
    assert whole.ravel().tolist() == ["puma", "cat", "lynx", "cat", "cat"]
    assert animals.neighbours([], k=3).ids.shape == (0, 3)
    assert repr(animals.neighbours([], k=3)) == "<Neighbours: 3 of each of 0>"
    two = animals.neighbours(["cat", "cod"], k=2)
    assert repr(two) == "<Neighbours: 2 of each of 2; of the first: puma 1, lynx 0.999>"
    assert repr(animals.neighbours(["cat"], k=4)).endswith(", …>")


def test_among_some():
    rng = np.random.default_rng(3)
    embedding = Embedding(rng.normal(size=(60, 5)), [f"n{i}" for i in range(60)])
    some = [f"n{i}" for i in (50, 3, 17, 44, 8, 3)]
    for metric in ("cosine", "euclidean"):
        whole = embedding.neighbours(embedding.nodes, 59, metric=metric)
        found = embedding.neighbours(embedding.nodes, 4, metric=metric, among=some)
        assert found.ids.shape == (60, 4)
        for ids, scores, all_ids, all_scores in zip(*found, *whole, strict=True):
            kept = np.isin(all_ids, some)
            assert ids.tolist() == all_ids[kept][:4].tolist()
            np.testing.assert_array_equal(scores, all_scores[kept][:4])
        assert len(embedding.neighbours("n1", 99, among=some, metric=metric)) == 5
        assert len(embedding.neighbours("n3", 99, among=some, metric=metric)) == 4  # not itself
        vector = embedding["n3"]
        assert embedding.neighbours(vector, 1, among=some, metric=metric)[0][0] == "n3"
    with pytest.raises(UnknownNodeError, match="nobody"):
        embedding.neighbours("n1", among=["nobody"])


def test_integer_ids_are_ids_and_not_vectors():
    embedding = Embedding(np.eye(3), [7, 3, 5])
    assert [node for node, _ in embedding.neighbours(3)] == [7, 5]
    assert embedding.neighbours(np.array([3, 5, 7]), k=1).ids.ravel().tolist() == [7, 7, 3]
    assert type(embedding.neighbours(3, 1)[0][0]) is int


def test_one_node_has_no_neighbours():
    embedding = Embedding([[1.0, 2.0]], ["alone"])
    assert embedding.neighbours("alone") == []
    assert embedding.neighbours(np.array([1.0, 2.0])) == [("alone", 1.0)]
    assert embedding.neighbours(["alone"]).ids.shape == (1, 0)


@pytest.mark.parametrize(
    ("query", "options", "error", "words"),
    [
        (np.array([np.nan, 0.0]), {}, InputError, "query: not a finite float32 at row 0"),
        (np.array([[0.0, 0.0], [0.0, np.inf]]), {}, InputError, "row 1, column 1"),
        (np.array([1e300, 0.0]), {}, InputError, "not a finite float32"),
        (np.zeros(3), {}, InputError, "query: has 3 dimensions, but the vectors have 2"),
        (np.zeros((2, 1)), {}, InputError, "has 1 dimensions, but the vectors have 2"),
        (np.zeros((1, 1, 2)), {}, InputError, "one dimension"),
        ("Cat", {}, UnknownNodeError, "no node 'Cat' in this embedding; close ids: 'cat'"),
        (["cat", "dog"], {}, UnknownNodeError, "'dog'"),
        ("cat", {"k": 0}, ParameterError, "k=0"),
        ("cat", {"k": 2.5}, ParameterError, "k=2.5"),
        ("cat", {"metric": "dot"}, ParameterError, "metric='dot': must be one of cosine, euclidean"),
    ],
)
def test_bad_queries(animals, query, options, error, words):
    with pytest.raises(error, match=words.replace("?", r"\?")):
        animals.neighbours(query, **options)


def test_an_unknown_node_among_many_is_told_fast():
    names = [f"user_{i}" for i in range(300_000)] + ["TP53"]
    embedding = Embedding(np.zeros((len(names), 1), np.float32), names)
    start = time.perf_counter()
    with pytest.raises(UnknownNodeError, match="close ids: 'TP53'"):
        embedding.neighbours("tp53")
    with pytest.raises(UnknownNodeError, match="close ids: 'user_123456', "):
        embedding.neighbours("user123456")
    assert time.perf_counter() - start < 5


@pytest.fixture(scope="module")
def clustered():
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(40, 16))[rng.integers(40, size=3000)] + 0.3 * rng.normal(size=(3000, 16))
    return Embedding(vectors, np.arange(3000))


@pytest.mark.parametrize("metric", METRICS)
def test_index(clustered, metric):
    pytest.importorskip("usearch")
    exact = clustered.neighbours(clustered.nodes, metric=metric)
    clustered.build_index(metric, n_threads=1)
    near = clustered.neighbours(clustered.nodes, metric=metric)
    found = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(near.ids, exact.ids, strict=True)])
    assert found > 0.97
    same = near.ids == exact.ids
    assert (near.scores[same] == exact.scores[same]).all()  # scores are not those of the index
    assert not (near.ids == clustered.nodes[:, None]).any()
    # Asked for, exact it is, whatever the index knows.
    clustered._indexes[metric] = None
    assert (clustered.neighbours(clustered.nodes, metric=metric, exact=True).ids == exact.ids).all()
    del clustered._indexes[metric]


def test_index_of_few_nodes(animals):
    pytest.importorskip("usearch")
    before = [animals.neighbours(node, k=9, metric=m) for node in animals.nodes for m in METRICS]
    for metric in METRICS:
        animals.build_index(metric)
    assert [animals.neighbours(node, k=9, metric=m) for node in animals.nodes for m in METRICS] == before
    assert animals.neighbours(np.array([0.0, 0.0]), k=1)[0][1] == 0.0  # any of them


def test_what_the_index_does_not_find_is_searched_for(animals, monkeypatch):
    pytest.importorskip("usearch")
    before = animals.neighbours("cat")
    animals.build_index()
    monkeypatch.setattr(NeighbourIndex, "candidates", lambda self, q, count: np.full((len(q), count), -1))
    assert animals.neighbours("cat") == before


def test_index_file(tmp_path, clustered):
    pytest.importorskip("usearch")
    path = tmp_path / "vectors.safetensors"
    file = clustered.save_index(path)
    assert file.name == "vectors.safetensors.cosine.usearch"
    expected = clustered.neighbours([1, 2, 3])
    with pytest.raises(InputError, match="--overwrite"):
        clustered.save_index(path)
    fresh = Embedding(clustered.vectors, [f"n{i}" for i in range(3000)])  # ids are no part of it
    fresh.load_index(path)
    assert fresh._indexes.keys() == {"cosine"}
    assert fresh.neighbours(["n1", "n2", "n3"]).scores.tolist() == expected.scores.tolist()
    with pytest.raises(FileNotFoundError):
        fresh.load_index(path, "euclidean")
    file.rename(index_path(path, "euclidean"))
    with pytest.raises(FileFormatError, match="is an index for metric cosine, not euclidean"):
        fresh.load_index(path, "euclidean")
    clustered._indexes.clear()


def test_stale_and_damaged_index_files_are_refused(tmp_path, clustered, monkeypatch):
    pytest.importorskip("usearch")
    path = tmp_path / "vectors.npz"
    file = clustered.save_index(path)
    clustered._indexes.clear()
    changed = clustered.vectors.copy()
    changed[7, 3] += 1
    for other in (changed, clustered.vectors[:-1], clustered.vectors[::-1]):
        with pytest.raises(FileFormatError, match="other vectors: rebuild it"):
            Embedding(other, np.arange(len(other))).load_index(path)
    whole = file.read_bytes()
    for damaged in (b"", whole[:50], whole[:-1000], whole + b"x", b"PK" + whole, _flip(whole, -5000)):
        file.write_bytes(damaged)
        with pytest.raises(FileFormatError, match=r"neighbour index|empty"):
            clustered.load_index(path)
    Embedding(np.eye(2), [0, 1]).save(tmp_path / "a.safetensors")
    file.write_bytes((tmp_path / "a.safetensors").read_bytes())
    with pytest.raises(FileFormatError, match="not a neighbour index"):
        clustered.load_index(path)
    file.write_bytes(whole)
    monkeypatch.setitem(neighbours._SETTINGS["cosine"], "connectivity", 4)
    with pytest.raises(FileFormatError, match="other settings"):
        clustered.load_index(path)
    assert clustered._indexes == {}


def _flip(content, place):
    changed = bytearray(content)
    changed[place] ^= 255
    return bytes(changed)


def test_copies_share_and_pickles_leave_the_index_behind(animals):
    pytest.importorskip("usearch")
    animals.build_index()
    assert copy.deepcopy(animals) is animals
    again = pickle.loads(pickle.dumps(animals))
    assert again.neighbours("cat") == animals.neighbours("cat")
    assert again._indexes == {}
    assert animals._indexes


def test_without_usearch(animals, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "usearch", None)
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    assert animals.neighbours("cat", k=1) == [("puma", 1.0)]
    for call in (animals.build_index, lambda: animals.load_index(tmp_path / "x")):
        with pytest.raises(MissingDependencyError, match=r"\[search\]"):
            call()


def test_exact_search_loads_neither_numba_nor_usearch():
    code = (
        "import sys; from kernelne import Embedding; Embedding([[1., 2.], [2., 1.]], [0, 1]).neighbours(0); "
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "usearch", "sklearn"} & set(loaded.stdout.split())


def test_an_index_of_someone_else_is_not_loaded(tmp_path, monkeypatch):
    from kernelne._common import folders

    vectors = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    embedding = Embedding(vectors, np.arange(50))
    monkeypatch.setenv("KERNELNE_CACHE", str(tmp_path / "mine"))
    embedding.save_index(tmp_path / "e.npz")
    folders._key.cache_clear()
    embedding.load_index(tmp_path / "e.npz")  # the key is kept
    assert (tmp_path / "mine" / "key").stat().st_mode & 0o077 == 0
    monkeypatch.setenv("KERNELNE_CACHE", str(tmp_path / "theirs"))
    with pytest.raises(FileFormatError, match=r"made by someone else.*trusted=True"):
        embedding.load_index(tmp_path / "e.npz")
    embedding.load_index(tmp_path / "e.npz", trusted=True)
    monkeypatch.setenv("KERNELNE_CACHE", str(tmp_path / "mine"))
    (tmp_path / "mine" / "key").chmod(0o644)  # others may have read it
    folders._key.cache_clear()
    with pytest.raises(FileFormatError, match="made by someone else"):
        embedding.load_index(tmp_path / "e.npz")
    folders._key.cache_clear()
