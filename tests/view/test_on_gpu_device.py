"""The layout "map" on a real card, compiled: `pytest -m gpu`, where Numba is, too."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("card")]


@pytest.mark.parametrize("n", [2_000, 8_000, 40_000])
def test_rows_are_where_the_cpu_puts_them(n, monkeypatch):
    """After a few rounds: rounding grows from round to round."""
    from kernelne.view import layout, rounds

    monkeypatch.setattr(rounds, "n_rounds", lambda n: 4)
    rng = np.random.default_rng(n)
    table = rng.normal(size=(20, 16))[rng.integers(0, 20, n)] + 0.2 * rng.normal(size=(n, 16))
    ours, theirs = (layout.layout_nodes(table, "map", 3, backend=name) for name in ("cpu", "gpu"))
    assert np.isclose(ours, theirs, atol=1e-2).all(axis=1).mean() > 0.9


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
