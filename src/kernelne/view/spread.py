"""The layout "map": links between near rows pull their ends together, and random rows push each other apart.

Row i of the table y (n, 2) is drawn with a link (i, j), by its weight, and with several rows l at random.
The kernel is Schoenberg's with σ = 1, q = 1 / (1 + ‖yᵢ − yⱼ‖²), which is that of t-SNE, UMAP and LargeVis.
The loss is that of telling links from noise: −log q/(q + c) for the link, −log c/(q + c) for each other row.
A small noise level c and many other rows are t-SNE's side of the spectrum, c = 1 and few are UMAP's (Damrich
and others, From t-SNE to UMAP with contrastive learning, 2023).

All rows of a round are computed from the table of the round before, and each row and round has its own random
numbers. Therefore the result does not depend on the number of threads.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._common.checks import available_threads
from kernelne._common.jit import cached
from kernelne.progress import Progress, reporting
from kernelne.training.cpu.threads import Workers
from kernelne.view.affinity import Links, link_rows
from kernelne.view.near import EXACT_UP_TO, Cells, Table, cell_means, find_cells, nearest_rows
from kernelne.view.rounds import DRAWS, LEVEL, LONGEST, N_NOISE, ROUND_SETTINGS, Round, plan_rounds
from kernelne.walks.rng import mix

#: Nearest rows that a row is linked to, and the perplexity of their weights; from _MANY rows on, the second
#: pair. benchmarks/layouts.py measures what comes of them.
_NEAR, _PERPLEXITY = (30, 15), (15.0, 8.0)
_MANY = 200_000
#: Standard deviation of the start along its wider axis.
_START = 10.0
#: Up to this many rows threads would wait for each other longer than they work.
_ONE_THREAD = 3_000
#: Between these numbers rows start where their cell is on a map of cells: so many cells, of at least so many
#: rows. Fewer rows find their places by themselves, and more have too few rounds to leave the middle of the
#: cell. Then the distances of cells, in units of those that areas in proportion to the rows would have, the
#: spread of the rows of a cell, and the factor of the rates, so that cells stay near those they are near.
_COARSE_FROM, _COARSE_TO, _COARSE, _LEAST = 5_000, 50_000, 2_000, 4
_APART, _AROUND, _SLOWER = 1.4, 0.3, 0.15
#: What the places depend on besides vectors, seed and code.
SETTINGS = {
    "near": _NEAR, "perplexity": _PERPLEXITY, "many": _MANY, "start": _START, "from": _COARSE_FROM,
    "to": _COARSE_TO, "cells": _COARSE, "least": _LEAST, "apart": _APART, "around": _AROUND,
    "slower": _SLOWER,
} | ROUND_SETTINGS  # fmt: skip

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_U32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_UNIT = np.float32(2.0**-32)


@cached(error_model="numpy", fastmath=True, boundscheck=False)
def move_rows(
    first: Any, last: Any, before: Any, pool: Any, after: Any, offsets: Any, ends: Any, others: Any,
    limits: Any, totals: Any, key: Any, draws: Any, n_noise: Any, rate: Any, push: Any, level: Any,
    longest: Any,
) -> None:  # fmt: skip
    """Fill rows first … last − 1 of `after` with those of `before` (n, 2) after one round.

    pool: (2, p) rows of `before` at random: with each link a row is compared with n_noise in a line of them.
    draws: links drawn for a row whose weights sum to one. push: the rate of the other rows, which may stand
    for more than are drawn. longest: most that one draw moves a row along each axis.
    """
    n_pools = np.uint64(pool.shape[1] - n_noise + 1)
    one = np.float32(1.0)
    for i in range(first, last):
        x, y = before[i, 0], before[i, 1]
        state = mix(key ^ (np.uint64(i) * _GOLDEN))
        low = offsets[i]
        count = np.uint64(offsets[i + 1] - low)
        share = totals[i] * draws
        times = int(share)
        if np.float32(state >> _U32) * _UNIT < share - np.float32(times):
            times += 1
        if count == 0:
            times = 0
        for _ in range(times):
            state += _GOLDEN
            bits = mix(state)
            link = low + np.int64(((bits >> _U32) * count) >> _U32)
            j = ends[link] if np.float32(bits & _LOW) * _UNIT < limits[link] else others[link]
            dx, dy = x - before[j, 0], y - before[j, 1]
            pull = -level / (one + level * (one + dx * dx + dy * dy))
            # All gradients of a draw at the same place, so that the processor computes them side by side.
            by_x = max(-longest, min(longest, rate * pull * dx))
            by_y = max(-longest, min(longest, rate * pull * dy))
            state += _GOLDEN
            at = np.int64(((mix(state) >> _U32) * n_pools) >> _U32)
            away_x, away_y = np.float32(0.0), np.float32(0.0)
            for noise in range(at, at + n_noise):
                dx, dy = x - pool[0, noise], y - pool[1, noise]
                stretch = one + dx * dx + dy * dy
                away = one / (stretch * (one + level * stretch))
                away_x += away * dx
                away_y += away * dy
            by_x += push * away_x
            by_y += push * away_y
            x += max(-longest, min(longest, by_x))
            y += max(-longest, min(longest, by_y))
        after[i, 0] = x
        after[i, 1] = y


def map_rows(
    table: NDArray[Any],
    start: NDArray[np.float32],
    seed: int,
    progress: Progress = False,
    n_threads: int | None = None,
    backend: str = "cpu",
) -> NDArray[np.float32]:
    """Return places (n, 2) of the rows of table (n, d), from a start of places whose wider axis has spread 1.

    The same for the same seed, whatever the number of threads.
    """
    gpu: Any = import_module("kernelne.view.on_gpu") if backend == "gpu" else None
    centred = table - table.mean(axis=0, dtype=np.float64).astype(table.dtype)
    centred = np.ascontiguousarray(centred / (np.abs(centred).max() or 1), np.float32)  # no square overflows
    workers = Workers(n_threads or available_threads())
    with nullcontext() if gpu is None else gpu.memory():
        return _map(centred, start, seed, workers, gpu, progress, _COARSE_FROM <= len(table) <= _COARSE_TO)


def _map(
    table: Table, start: Table, seed: int, workers: Workers, gpu: Any, progress: Progress, coarse: bool
) -> Table:
    """Map the rows of a table; coarse: after a map of cells, on which they start."""
    n = len(table)
    assign, cells = gpu and gpu.assign, None
    if n > EXACT_UP_TO:  # near rows side by side, so that the processor has them at hand
        cells = find_cells(table, seed, workers, assign)
        table, start = table[cells.order], start[cells.order]
    begin = np.ascontiguousarray(_START * start, np.float32)
    if coarse:
        groups = find_cells(table, seed, workers, assign, max(n // _COARSE, _LEAST))
        begin = _begin(groups, table, start, seed, workers, gpu)
    many = int(n >= _MANY)
    k = min(_NEAR[many], n - 1)
    with reporting(progress, "neighbours", "nodes") as report:
        near = partial(nearest_rows, workers=workers) if gpu is None else gpu.nearest_rows
        rows, distances = near(table, k, report=report, cells=cells)
    links = link_rows(rows, distances, min(_PERPLEXITY[many], (k + 1) / 2), workers)
    del rows, distances
    few = Workers(1) if n <= _ONE_THREAD else workers
    spread = partial(_spread, workers=few) if gpu is None else gpu.spread
    with reporting(progress, "layout", "rounds") as report:
        places: Table = spread(links, begin, plan_rounds(n, seed, _SLOWER if coarse else 1.0), report=report)
    if cells is not None:
        places[cells.order] = places.copy()
    return places


def _begin(groups: Cells, table: Table, start: Table, seed: int, workers: Workers, gpu: Any) -> Table:
    """Return where rows start: around the place of their group on a map of the groups' means."""
    n, sizes = len(table), np.diff(groups.starts)
    means, flat = (cell_means(each[groups.order], groups.starts) for each in (table, start))
    flat /= flat[:, 0].std() or 1
    places = _map(means, flat, seed, workers, gpu, False, False)
    begin = np.random.default_rng(seed).normal(0, _AROUND, (n, 2)).astype(np.float32)
    begin[groups.order] += np.repeat(places * np.float32(_APART * math.sqrt(n / len(sizes))), sizes, axis=0)
    return begin


def _spread(
    links: Links, start: NDArray[np.float32], rounds: list[Round], workers: Workers, report: Any
) -> NDArray[np.float32]:
    n = len(start)
    before, after = start, np.empty_like(start)
    ends = [n * part // workers.n_threads for part in range(workers.n_threads + 1)]
    for number, each in enumerate(rounds):
        tables = before, np.ascontiguousarray(before[each.pool].T), after
        rates = map(np.float32, (each.rate, each.push, LEVEL, LONGEST))
        settings = (each.key, np.float32(DRAWS), N_NOISE, *rates)

        def move(part: int, tables: Any = tables, settings: Any = settings) -> None:
            move_rows(ends[part], ends[part + 1], *tables, *links, *settings)

        workers.each(move)
        before, after = after, before
        report(number + 1, len(rounds), math.nan)
    return before
