"""The layout "map": its weights, its draws, its gradient, and the same places on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import entr

from kernelne.training.cpu.threads import Workers
from kernelne.view import rounds, spread
from kernelne.view.affinity import link_rows
from kernelne.view.layout import layout_nodes
from kernelne.view.near import find_cells
from kernelne.view.spread import map_rows, move_rows


def _clouds(n, groups=6):
    rng = np.random.default_rng(0)
    which = rng.integers(0, groups, n)
    return (2 * rng.normal(size=(groups, 10))[which] + rng.normal(size=(n, 10))).astype(np.float32), which


def _links(n, k, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)], np.int32)
    return rows, np.sort(rng.random((n, k)).astype(np.float32), axis=1)


def test_weights_have_the_perplexity_and_draws_follow_them():
    rows, distances = _links(40, 12)
    links = link_rows(rows, distances, 6.0, Workers(2))
    one_way = np.zeros((40, 40))
    for i in range(40):
        low, high = 0.0, 200.0
        for _ in range(200):
            beta = (low + high) / 2
            p = np.exp(-beta * distances[i].astype(np.float64))
            p /= p.sum()
            low, high = (beta, high) if entr(p).sum() > np.log(6.0) else (low, beta)
        one_way[i, rows[i]] = p
    weights = (one_way + one_way.T) / 2
    np.testing.assert_allclose(links.totals, weights.sum(axis=1), rtol=1e-3)
    assert links.totals.mean() == pytest.approx(1, rel=1e-5)
    # What is drawn: every link with its limit, and otherwise its other end.
    drawn = np.zeros((40, 40))
    for i in range(40):
        mine = slice(links.offsets[i], links.offsets[i + 1])
        count = mine.stop - mine.start
        np.add.at(drawn[i], links.ends[mine], links.limits[mine] / count)
        np.add.at(drawn[i], links.others[mine], (1 - links.limits[mine]) / count)
    np.testing.assert_allclose(drawn, weights / weights.sum(axis=1, keepdims=True), atol=1e-3)


def test_rows_without_neighbours_and_equal_rows_have_weights():
    rows = np.array([[1, 2], [0, 2], [0, -1], [-1, -1]], np.int32)
    distances = np.array([[0, 0], [0, 1], [1, np.inf], [np.inf, np.inf]], np.float32)
    links = link_rows(rows, distances, 1.5, Workers(1))
    assert np.isfinite(links.limits).all()
    assert np.isfinite(links.totals).all()
    assert links.totals[3] == 0
    np.testing.assert_array_equal(np.diff(links.offsets), [2, 2, 2, 0])


@pytest.mark.parametrize("level", [1.0, 0.05])
def test_a_round_moves_along_the_gradient_of_the_loss(level):
    """Two rows and one link: the mean of many rounds is minus the gradient in float64."""
    before = np.array([[0.3, -0.2], [-0.5, 0.7]], np.float32)
    links = link_rows(np.array([[1], [0]], np.int32), np.ones((2, 1), np.float32), 1.0, Workers(3))
    n_noise, push, rate = 4, 0.7, 1e-3
    pool = np.ascontiguousarray(before[np.arange(64) % 2].T)
    moved = np.zeros(2)
    rounds = 400
    for number in range(rounds):
        after = np.empty_like(before)
        numbers = map(np.float32, (rate, push * rate, level, 9))
        move_rows(0, 2, before, pool, after, *links, np.uint64(number), np.float32(1), n_noise, *numbers)
        moved += (after - before)[0].astype(np.float64) / rounds

    def loss(place):
        q = 1 / (1 + np.square(place - before[1].astype(np.float64)).sum())
        other = push * n_noise / 2 * np.log(level / (q + level))  # half of the noise is the row itself
        return -np.log(q / (q + level)) - other

    here, step = before[0].astype(np.float64), 1e-5
    gradient = [(loss(here + shift) - loss(here - shift)) / (2 * step) for shift in (step * np.eye(2))]
    np.testing.assert_allclose(moved, -rate / 2 * np.array(gradient), rtol=1e-2, atol=1e-7)


@pytest.mark.parametrize("coarse_from", [0, 10_000])
@pytest.mark.parametrize("exact_up_to", [0, 10_000])
def test_threads_do_not_change_the_map(monkeypatch, exact_up_to, coarse_from):
    monkeypatch.setattr(spread, "_COARSE_FROM", coarse_from)
    monkeypatch.setattr(spread, "_ONE_THREAD", 0)
    monkeypatch.setattr(rounds, "n_rounds", lambda n: 20)
    monkeypatch.setattr(spread, "EXACT_UP_TO", exact_up_to)
    monkeypatch.setattr(rounds, "_POOL", 50)
    table, _ = _clouds(1500)
    start = np.ascontiguousarray(table[:, :2])
    one = map_rows(table, start, 5, n_threads=1)
    np.testing.assert_array_equal(one, map_rows(table, start, 5, n_threads=3))
    assert not np.array_equal(one, map_rows(table, start, 6, n_threads=1))


@pytest.mark.parametrize("coarse_from", [0, 10_000])
def test_rows_come_back_in_their_order_from_cells(monkeypatch, coarse_from):
    monkeypatch.setattr(spread, "_COARSE_FROM", coarse_from)
    monkeypatch.setattr(spread, "EXACT_UP_TO", 0)
    table, which = _clouds(1500)
    flat = layout_nodes(table, "map")
    nearest = np.argsort(np.square(flat[:, None] - flat[None]).sum(axis=2), axis=1)[:, 1:6]
    assert (which == which[nearest].T).mean() > 0.9


def test_neighbours_are_kept_as_well_as_by_tsne():
    from sklearn.manifold import trustworthiness

    table, which = _clouds(600)
    scores = {}
    for method in ("map", "tsne", "pca"):
        flat = layout_nodes(table, method)
        apart = np.square(flat[:, None] - flat[None]).sum(axis=2)
        nearest = np.argsort(apart, axis=1)[:, 1:16]
        scores[method] = trustworthiness(table, flat, n_neighbors=15), (which == which[nearest].T).mean()
    assert np.greater(scores["map"], np.array(scores["tsne"]) - 0.03).all(), scores
    assert scores["map"][0] > scores["pca"][0] + 0.02, scores


def test_rows_start_around_the_place_of_their_cell(monkeypatch):
    monkeypatch.setattr(rounds, "n_rounds", lambda n: 30)
    table, which = _clouds(1200)
    cells = find_cells(table, 0, Workers(1), size=20)
    begin = spread._begin(cells, table, np.ascontiguousarray(table[:, :2]), 3, Workers(1), None)
    number = np.empty(1200, int)
    number[cells.order] = np.repeat(np.arange(len(cells.starts) - 1), np.diff(cells.starts))
    sizes = np.bincount(number)
    centres = np.array([np.bincount(number, begin[:, axis]) / sizes for axis in (0, 1)]).T
    around = (begin - centres[number]).std()
    assert around == pytest.approx(0.3, rel=0.1)
    assert centres.std() > 10 * around
    # Cells of one cloud are next to each other on the map of cells.
    cloud = np.array([np.bincount(which[number == k]).argmax() for k in range(len(sizes))])
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    assert (cloud == cloud[apart.argmin(axis=1)]).mean() > 0.8


def test_few_nodes_of_two_kinds_of_numbers_are_alike():
    """Whole numbers, float32 and float64 of the same values are laid out alike."""
    table = np.random.default_rng(0).integers(-5, 5, (60, 6))
    flat = layout_nodes(table.astype(np.float32), "map")
    assert flat.dtype == np.float32
    assert np.isfinite(layout_nodes(table.astype(np.float64) * 1e30, "map")).all()
    assert layout_nodes(table, "map").shape == (60, 2)
