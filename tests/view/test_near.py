"""Nearest rows for layouts: exact for few, and nearly so by cells."""

from __future__ import annotations

import numpy as np
import pytest

from kernelne.training.cpu.threads import Workers
from kernelne.view import near
from kernelne.view.near import find_cells, nearest_rows


def _ignore(*args):
    pass


def _oracle(table, k):
    wide = table.astype(np.float64)
    apart = np.square(wide[:, None] - wide[None]).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    return np.sort(apart, axis=1)[:, :k], apart


@pytest.fixture(scope="module")
def clouds():
    """Two thousand rows in forty clouds that touch."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(40, 8))
    return (centres[rng.integers(0, 40, 2000)] + 0.3 * rng.normal(size=(2000, 8))).astype(np.float32)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n", [2, 600, 1100])
def test_exact(clouds, n, n_threads):
    table = clouds[:n]
    k = min(12, n - 1)
    rows, distances = nearest_rows(table, k, Workers(n_threads), _ignore)
    least, apart = _oracle(table, k)
    np.testing.assert_allclose(distances, least, atol=1e-4)
    np.testing.assert_allclose(np.take_along_axis(apart, rows, 1), least, atol=1e-4)
    assert (rows != np.arange(n)[:, None]).all()
    assert (np.sort(rows, axis=1)[:, 1:] != np.sort(rows, axis=1)[:, :-1]).all()


def test_cells_find_nearly_all_on_any_number_of_threads(clouds, monkeypatch):
    monkeypatch.setattr(near, "_CELL", 50)
    monkeypatch.setattr(near, "_LARGEST_CELL", 80)
    cells = find_cells(clouds, 0, Workers(1))
    table = clouds[cells.order]
    rows, distances = nearest_rows(table, 10, Workers(1), _ignore, cells)
    exact, _ = nearest_rows(table, 10, Workers(1), _ignore)
    found = (rows[:, :, None] == exact[:, None]).any(axis=2).mean()
    assert found > 0.9
    assert (np.diff(distances, axis=1) >= 0).all()
    again = find_cells(clouds, 0, Workers(3))
    np.testing.assert_array_equal(again.order, cells.order)
    np.testing.assert_array_equal(nearest_rows(table, 10, Workers(3), _ignore, again)[0], rows)


@pytest.mark.parametrize("n", [1025, 1537])
def test_cells_of_rows_that_repeat_are_the_same_on_any_number_of_threads(n):
    """Many means are equal, and a block of one row is multiplied otherwise than one of many."""
    table = np.random.default_rng(0).integers(0, 2, (n, 5)).astype(np.float32)
    one, three = (find_cells(table, 0, Workers(threads), size=4) for threads in (1, 3))
    for first, other in zip(one, three, strict=True):
        np.testing.assert_array_equal(first, other)


def test_cells_of_equal_rows_stay_small(monkeypatch):
    """Most rows are one point: they would fill one cell, which is compared with itself in full."""
    monkeypatch.setattr(near, "_CELL", 50)
    monkeypatch.setattr(near, "_LARGEST_CELL", 80)
    table = np.zeros((3000, 4), np.float32)
    table[:500] = np.random.default_rng(0).normal(size=(500, 4))
    order, starts, probes = cells = find_cells(table, 0, Workers(1))
    assert np.diff(starts).max() <= 80
    assert starts[0] == 0
    assert starts[-1] == 3000
    np.testing.assert_array_equal(np.sort(order), np.arange(3000))
    assert (probes[:, 0] == np.arange(len(probes))).all()
    rows, distances = nearest_rows(table[order], 5, Workers(1), _ignore, cells)
    equal = order >= 500
    assert (distances[equal] == 0).all()
    assert equal[rows[equal]].all()
