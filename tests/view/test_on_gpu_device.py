"""The layout "map" on a real card, compiled: `pytest -m gpu`, where Numba is, too."""

from __future__ import annotations

import numpy as np
import pytest


def _ignore(*args):
    pass


pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("card")]


@pytest.mark.parametrize("n", [2_000, 8_000, 40_000])
def test_nearest_rows_and_rounds_are_those_of_the_cpu(n, monkeypatch):
    """Few rounds, from the same links: rounding grows from round to round."""
    from kernelne.training.cpu.threads import Workers
    from kernelne.view import near, on_gpu, rounds, spread
    from kernelne.view.affinity import link_rows

    monkeypatch.setattr(rounds, "n_rounds", lambda n: 4)
    rng, threads = np.random.default_rng(n), Workers(4)
    table = rng.normal(size=(20, 16))[rng.integers(0, 20, n)] + 0.2 * rng.normal(size=(n, 16))
    table = table.astype(np.float32)
    cells = near.find_cells(table, 0, threads) if n > spread.EXACT_UP_TO else None
    table = table if cells is None else table[cells.order]
    rows, distances = near.nearest_rows(table, 15, threads, _ignore, cells)
    found, apart = on_gpu.nearest_rows(table, 15, report=_ignore, cells=cells)
    np.testing.assert_allclose(apart, distances, atol=1e-3)
    assert (found == rows).mean() > 0.99  # but for equal distances
    links = link_rows(rows, distances, 5.0, threads)
    start = (10 * table[:, :2]).astype(np.float32)
    planned = rounds.plan_rounds(n, 3)
    theirs = on_gpu.spread(links, start, planned, report=_ignore)
    ours = spread._spread(links, start.copy(), planned, threads, _ignore)
    assert np.isclose(ours, theirs, atol=1e-2).all(axis=1).mean() > 0.99
    assert np.linalg.norm(ours - start, axis=1).mean() > 0.1


def test_groups_stay_together():
    from kernelne.view import layout

    rng = np.random.default_rng(0)
    group = rng.integers(0, 10, 6_000)
    table = 3 * rng.normal(size=(10, 16))[group] + rng.normal(size=(6_000, 16))
    places = layout.layout_nodes(table, "map", 0, backend="gpu")
    some = rng.integers(0, 6_000, 300)
    apart = np.linalg.norm(places[some, None] - places[None], axis=2)
    near = np.argsort(apart, axis=1)[:, 1:16]
    assert (group[near] == group[some, None]).mean() > 0.95
