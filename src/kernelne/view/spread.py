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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._checks import available_threads
from kernelne._jit import cached
from kernelne.progress import Progress, reporting
from kernelne.training.cpu.threads import Workers
from kernelne.view.affinity import Links, link_rows
from kernelne.view.near import EXACT_UP_TO, find_cells, nearest_rows
from kernelne.walks.rng import mix, stream_key

#: Nearest rows that a row is linked to, and the perplexity of their weights; from _MANY rows on, the second
#: pair. benchmarks/layouts.py measures what comes of them.
_NEAR, _PERPLEXITY = (30, 15), (15.0, 8.0)
_MANY = 200_000
#: Draws of a row in one round, other rows drawn with each and how many each of them stands for, the step of
#: the first round, and the noise level.
_DRAWS, _NOISE, _PUSH, _RATE, _LEVEL = 8.0, 16, 1.25, 1.0, 0.1
#: Standard deviation of the start along its wider axis, and the most that a gradient moves a row.
_START, _LONGEST = 10.0, 4.0
#: Up to this many rows threads would wait for each other longer than they work.
_ONE_THREAD = 3_000
#: Rows from which those of a round are drawn: few enough for a processor's own memory.
_POOL = 8192
#: What the places depend on besides vectors, seed and code.
SETTINGS = {
    "near": _NEAR, "perplexity": _PERPLEXITY, "many": _MANY, "draws": _DRAWS, "noise": _NOISE, "push": _PUSH,
    "rate": _RATE, "level": _LEVEL, "start": _START, "longest": _LONGEST, "pool": _POOL,
}  # fmt: skip
_LAYOUT = np.uint64(11)  # its stream of random numbers

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
) -> NDArray[np.float32]:
    """Return places (n, 2) of the rows of table (n, d), from a start of places whose wider axis has spread 1.

    The same for the same seed, whatever the number of threads.
    """
    n = len(table)
    centred = table - table.mean(axis=0, dtype=np.float64).astype(table.dtype)
    centred = np.ascontiguousarray(centred / (np.abs(centred).max() or 1), np.float32)  # no square overflows
    workers = Workers(n_threads or available_threads())
    many = int(n >= _MANY)
    k = min(_NEAR[many], n - 1)
    cells = None if n <= EXACT_UP_TO else find_cells(centred, seed, workers)
    if cells is not None:  # near rows side by side, so that the processor has them at hand
        centred, start = centred[cells.order], start[cells.order]
    with reporting(progress, "neighbours", "nodes") as report:
        rows, distances = nearest_rows(centred, k, workers, report, cells)
    del centred
    links = link_rows(rows, distances, min(_PERPLEXITY[many], (k + 1) / 2), workers)
    del rows, distances
    if n <= _ONE_THREAD:
        workers = Workers(1)
    with reporting(progress, "layout", "rounds") as report:
        places = _spread(links, np.float32(_START) * start, seed, n_rounds(n), workers, report)
    if cells is not None:
        places[cells.order] = places.copy()
    return places


def n_rounds(n: int) -> int:
    """Return the rounds for n rows: more for few rows, which take seconds, than for many."""
    return int(np.clip(600 * (50_000 / n) ** 0.46, 150, 600))


def _spread(
    links: Links, start: NDArray[np.float32], seed: int, rounds: int, workers: Workers, report: Any
) -> NDArray[np.float32]:
    n = len(start)
    before = np.ascontiguousarray(start, np.float32)
    after = np.empty_like(before)
    ends = [n * part // workers.n_threads for part in range(workers.n_threads + 1)]
    rng = np.random.default_rng(seed)
    for number in range(rounds):
        done = number / rounds
        # In units in which a link's full pull moves a row onto the other end.
        rate = _RATE * (1 - done) * (1 + _LEVEL) / _LEVEL
        pool = np.ascontiguousarray(before[rng.integers(0, n, _POOL)].T)
        key = stream_key(np.uint64(seed), _LAYOUT, np.uint64(number))
        settings = (
            np.uint64(key),
            np.float32(_DRAWS),
            _NOISE,
            *map(np.float32, (rate, rate * _PUSH, _LEVEL, _LONGEST)),
        )

        tables = before, pool, after

        def move(part: int, tables: Any = tables, settings: Any = settings) -> None:
            move_rows(ends[part], ends[part + 1], *tables, *links, *settings)

        workers.each(move)
        before, after = after, before
        report(number + 1, rounds, math.nan)
    return before
