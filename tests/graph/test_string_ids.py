"""Ids that stay text behave like an array of strings."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from kernelne.graph import string_ids as module
from kernelne.graph.string_ids import StringIds, positions, string_ids, text_arrays

TEXTS = ["a", "b c", "é", "ｚ", "😀", ""]


def made(texts):
    return StringIds(pa.array(texts, pa.large_string()))


@pytest.fixture(params=[2, 2**20])
def small_blocks(request, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", request.param)


def test_it_is_indexed_like_an_array(small_blocks):
    ids, array = made(TEXTS), np.array(TEXTS, object)
    assert (len(ids), ids.shape, ids.ndim, ids.dtype, ids.size) == (6, (6,), 1, object, 6)
    assert ids[2] == array[2]
    assert ids[-1] == array[-1]
    assert ids[np.int32(3)] == array[3]
    for rows in (slice(1, 4), slice(None, None, -2), slice(4, 1), [3, 0], np.array([[0, -1], [2, 2]]), []):
        rows = np.array(rows, np.int64) if isinstance(rows, list) else rows
        assert type(ids[rows]) is np.ndarray
        assert np.array_equal(ids[rows], array[rows])
    assert np.array_equal(ids[array > "b"], array[array > "b"])
    assert ids.tolist() == list(ids) == TEXTS
    assert np.asarray(ids).dtype == object
    for rows in (6, -7, np.array([0, 6]), np.array([-7]), np.array([True])):
        with pytest.raises(IndexError):
            ids[rows]
    assert pickle.loads(pickle.dumps(ids)).tolist() == TEXTS
    assert repr(ids) == "<StringIds: 'a', 'b c', 'é', … (6)>"


def test_ids_are_found_in_any_order(small_blocks, monkeypatch):
    rng = np.random.default_rng(0)
    texts = [f"n{i}é" for i in range(300)]
    for order in (sorted(texts), rng.permutation(texts).tolist()):
        ids = made(order)
        assert ids.ordered == (order == sorted(texts))
        wanted = [*rng.permutation([*texts[:40], "no", "", "zz"]).tolist(), texts[3]]
        expected = [order.index(text) if text in order else -1 for text in wanted]
        column = pa.array(wanted, pa.large_string())
        assert ids.find(column).tolist() == expected
        assert positions(column, ids.column).tolist() == expected
        monkeypatch.setattr(module, "_FEW", 0)
        assert ids.find(column).tolist() == expected
        assert ids.find(pa.chunked_array([ids.column])).tolist() == list(range(300))


def test_repeated_ids_are_seen(small_blocks):
    assert made(["a", "b", "c"]).repeated() is None
    assert made(["c", "a", "b"]).repeated() is None
    assert made(["a", "a", "b"]).repeated() == "a"
    assert made(["c", "b", "a", "b"]).repeated() == "b"


def test_arrays_become_ids_unless_they_lie(small_blocks):
    offsets, text = text_arrays(pa.array(TEXTS, pa.large_string()))
    assert string_ids(offsets, text).tolist() == TEXTS
    part = text_arrays(pa.array(TEXTS, pa.large_string()).slice(2, 3))
    assert string_ids(*part).tolist() == TEXTS[2:5]
    assert string_ids(offsets[:0], text) is None
    assert string_ids(offsets + 1, text) is None
    assert string_ids(offsets, text[:-1]) is None
    assert string_ids(offsets, np.full_like(text, 255)) is None
    swapped = offsets.copy()
    swapped[1], swapped[2] = offsets[2], offsets[1]
    assert string_ids(swapped, text) is None
