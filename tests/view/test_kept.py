"""A layout is computed once for a file of vectors, and again if anything of it has changed."""

from __future__ import annotations

import numpy as np
import pytest

from kernelne import Embedding, plot_map, write_explorer
from kernelne.view import kept
from kernelne.view.kept import kept_layout, layout_path


@pytest.fixture
def counted(monkeypatch):
    """Calls of `layout_nodes`, which returns other places each time."""
    calls = []

    def count(vectors, method, seed, backend="cpu", progress=False):
        calls.append((method, seed))
        return np.full((len(vectors), 2), len(calls), np.float32)

    monkeypatch.setattr(kept, "layout_nodes", count)
    return calls


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)


def test_plot_and_page_share_one_layout(counted, vectors, tmp_path):
    pytest.importorskip("matplotlib")
    embedding = Embedding(vectors, range(30))
    source = tmp_path / "vectors.npz"
    plot_map(embedding, tmp_path / "map.png", beside=source)
    write_explorer(embedding, tmp_path / "page.html", beside=source)
    assert len(counted) == 1
    assert (tmp_path / "vectors.npz.map.layout").exists()


def test_nothing_is_kept_unless_asked(counted, vectors, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept_layout(vectors)
    kept_layout(vectors, "pca", beside=tmp_path / "vectors.npz")  # computed in no time
    assert len(counted) == 2
    assert not list(tmp_path.iterdir())


def test_recomputed_when_it_does_not_fit(counted, vectors, tmp_path, monkeypatch):
    source = tmp_path / "vectors.npz"
    first = kept_layout(vectors, beside=source)
    np.testing.assert_array_equal(kept_layout(vectors, beside=source), first)
    np.testing.assert_array_equal(kept_layout(vectors, "map", beside=source), first)
    assert len(counted) == 1
    kept_layout(vectors, random_state=1, beside=source)
    assert len(counted) == 2
    kept_layout(vectors + 1, random_state=1, beside=source)
    assert len(counted) == 3
    kept_layout(vectors.astype(np.float64) + 1, random_state=1, beside=source)
    assert len(counted) == 4
    monkeypatch.setitem(kept.SETTINGS, "noise", 7)
    kept_layout(vectors.astype(np.float64) + 1, random_state=1, beside=source)
    assert len(counted) == 5
    kept_layout(vectors, "tsne", beside=source)  # in a file of its own
    kept_layout(vectors.astype(np.float64) + 1, random_state=1, beside=source)
    assert len(counted) == 6


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text"])
def test_damaged_files_are_replaced(counted, vectors, tmp_path, damage):
    source = tmp_path / "vectors.npz"
    kept_layout(vectors, beside=source)
    path = layout_path(source, "map")
    whole = path.read_bytes()
    flipped = whole[:-1] + bytes([whole[-1] ^ 1])
    path.write_bytes({"cut": whole[:-9], "flipped": flipped, "empty": b"", "text": b"hello" * 9}[damage])
    second = kept_layout(vectors, beside=source)
    assert (second == 2).all()
    np.testing.assert_array_equal(kept_layout(vectors, beside=source), second)
    assert len(counted) == 2


def test_a_folder_that_cannot_be_written_is_no_error(counted, vectors, tmp_path):
    assert (kept_layout(vectors, beside=tmp_path / "no" / "vectors.npz") == 1).all()
    layout_path(tmp_path / "vectors.npz", "map").mkdir()
    assert (kept_layout(vectors, beside=tmp_path / "vectors.npz") == 2).all()
