"""Places in the plane: every method on every odd table, the same for the same seed."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from kernelne import Embedding, InputError, MissingDependencyError, ParameterError
from kernelne.view.layout import LAYOUTS, layout_nodes

#: Compiling UMAP takes half a minute: its tests run in a process in which nothing is compiled, on fewer rows.
UNCOMPILED = bool(numba.config.DISABLE_JIT)
METHODS = [method for method in LAYOUTS if (method == "umap") == UNCOMPILED]
SIZE = 10 if UNCOMPILED else 30


def test_umap():
    env = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    # Without the project's options: they may share tests out between processes.
    command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", "-p", "no:cacheprovider", __file__]
    env = {name: value for name, value in env.items() if not name.startswith("PYTEST_")}
    command += ["-k", "umap and (together or small or repeat)"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "18 passed" in done.stdout


@pytest.fixture(scope="module")
def groups():
    """Three groups of vectors in 16 dimensions, far apart."""
    rng = np.random.default_rng(0)
    return rng.normal(scale=0.1, size=(3 * SIZE, 16)) + np.repeat(np.eye(3, 16), SIZE, axis=0)


@pytest.mark.parametrize("method", METHODS)
def test_groups_stay_together_and_the_seed_repeats(groups, method, capsys):
    flat = layout_nodes(groups, method, random_state=3)
    assert flat.shape == (3 * SIZE, 2)
    assert flat.dtype == np.float32
    assert capsys.readouterr().out == ""
    distances = np.linalg.norm(flat[:, None] - flat[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(axis=1)
    assert (nearest // SIZE == np.arange(3 * SIZE) // SIZE).mean() > 0.95
    np.testing.assert_array_equal(layout_nodes(groups, method, random_state=3), flat)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 4, 5, 9])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_small_tables(method, n, dim):
    flat = layout_nodes(np.random.default_rng(n).normal(size=(n, dim)), method)
    assert flat.shape == (n, 2)
    assert np.isfinite(flat).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "table",
    [np.full((30, 3), 0.1), np.repeat(np.random.default_rng(0).normal(size=(3, 4)), 10, axis=0)],
    ids=["the same", "repeated"],
)
def test_vectors_that_repeat(method, table):
    assert np.isfinite(layout_nodes(table, method)).all()


def test_huge_values_do_not_overflow_pca():
    table = np.random.default_rng(1).normal(size=(30, 3)).astype(np.float32)
    huge = layout_nodes(table * np.float32(1e30), "pca")
    np.testing.assert_allclose(huge / 1e30, layout_nodes(table, "pca"), rtol=1e-3, atol=1e-4)


def test_pca_is_the_plane_of_most_variance():
    from sklearn.decomposition import PCA

    table = np.random.default_rng(0).normal(size=(200, 5)) * [5, 3, 1, 0.5, 0.1] + 100
    theirs = PCA(2).fit_transform(table)
    ours = layout_nodes(table, "pca")
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-3)


def test_auto_goes_by_columns_and_size():
    two = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    flat = layout_nodes(Embedding(two, range(20)))
    np.testing.assert_array_equal(flat, two)
    assert not np.shares_memory(flat, two)
    more = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    np.testing.assert_array_equal(layout_nodes(more), layout_nodes(more, "map"))
    assert not np.array_equal(layout_nodes(more), layout_nodes(more, "pca"))


@pytest.mark.parametrize("method", ["map", "tsne"])
def test_progress(groups, method):
    calls = []
    layout_nodes(groups, method, progress=lambda done, total, loss: calls.append((done, total)))
    assert calls
    calls = [call for call in calls if call[1] == calls[-1][1]]  # neighbours are counted before
    assert calls == sorted(set(calls))
    assert calls[-1][0] <= calls[-1][1]


def test_refusals(groups, monkeypatch):
    with pytest.raises(ParameterError, match="layout='mds': must be one of auto, map, pca, tsne, umap"):
        layout_nodes(groups, "mds")
    with pytest.raises(ParameterError, match="random_state"):
        layout_nodes(groups, random_state=-1)
    with pytest.raises(InputError, match="row 0 holds values that are not finite"):
        layout_nodes([[np.nan, 1.0]])
    real = builtins.__import__

    def without_umap(name, *args, **more):
        if name == "umap":
            raise ImportError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without_umap)
    with pytest.raises(MissingDependencyError, match=r"umap-learn.*\[explore\]"):
        layout_nodes(groups, "umap")
