"""Weights of the links between near rows, from their distances, and tables to sample links by weight."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.training.cpu.threads import Workers
from kernelne.view.near import Rows, Table, share_of

_HALVINGS = 40  # of the interval in which the width of a row is searched


class Links(NamedTuple):
    """Symmetric weighted links between rows, which can be drawn by weight in constant time.

    offsets  (n + 1,) int64; the links of row i are at offsets[i] … offsets[i + 1] − 1
    ends     (m,) int32, the row at the other end
    others   (m,) int32, the end that is drawn in place of `ends` …
    limits   (m,) float32, … unless a uniform number is below this one (Walker's method)
    totals   (n,) float32, the sum of a row's weights, 1 on average
    """

    offsets: NDArray[np.int64]
    ends: Rows
    others: Rows
    limits: Table
    totals: Table


def link_rows(rows: Rows, distances: Table, perplexity: float, workers: Workers) -> Links:
    """Return links of nearest rows (n, k; -1: none) by their squared distances.

    A row's weights are those of a Gaussian whose width gives them the perplexity, and sum to one; the two
    directions of a link get their mean.
    """
    from scipy.sparse import csr_array

    n, k = rows.shape
    weights = np.empty((n, k), np.float32)
    entropy = np.log(perplexity)

    def weigh(part: int) -> None:
        some = slice(*share_of(n, part, workers.n_threads))
        _weigh(distances[some], entropy, weights[some])

    workers.each(weigh)
    known = rows >= 0
    starts = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
    one_way = csr_array((weights[known], rows[known], starts), shape=(n, n))
    both = (one_way + one_way.T.tocsr()) * np.float32(0.5)
    both.sum_duplicates()
    offsets, ends = both.indptr.astype(np.int64), both.indices.astype(np.int32)
    totals = np.asarray(both.sum(axis=1), np.float32)
    limits, others = np.ones(len(ends), np.float32), ends.copy()

    def fill(part: int) -> None:
        low, high = share_of(n, part, workers.n_threads)
        _fill_limits(offsets[low : high + 1], ends, both.data, limits, others)

    workers.each(fill)
    return Links(offsets, ends, others, limits, totals)


@cached(error_model="numpy")
def _weigh(distances: Any, entropy: Any, weights: Any) -> None:
    """Fill weights (n, k) with exp(−distance / width), which sum to one with the entropy asked for."""
    n, k = distances.shape
    for i in range(n):
        least = distances[i, 0]
        scale = 0.0
        known = 0
        for j in range(k):
            if distances[i, j] < np.inf:
                scale += distances[i, j] - least
                known += 1
        if known == 0:
            weights[i] = 0.0
            continue
        scale /= known
        low, high, beta = 0.0, np.inf, 1.0
        if scale > 0.0:
            for _ in range(_HALVINGS):
                total = 0.0
                moment = 0.0
                for j in range(known):
                    away = (distances[i, j] - least) / scale
                    weight = np.exp(-beta * away)
                    total += weight
                    moment += weight * away
                error = np.log(total) + beta * moment / total - entropy
                if abs(error) < 1e-4:
                    break
                if error > 0.0:
                    low = beta
                    beta = beta * 2.0 if high == np.inf else (low + high) / 2.0
                else:
                    high = beta
                    beta = (low + high) / 2.0
        total = 0.0
        for j in range(k):
            away = (distances[i, j] - least) / scale if scale > 0.0 else 0.0
            weights[i, j] = np.exp(-beta * away) if j < known else 0.0
            total += weights[i, j]
        for j in range(k):
            weights[i, j] /= total


@cached(error_model="numpy")
def _fill_limits(offsets: Any, ends: Any, weights: Any, limits: Any, others: Any) -> None:
    """Fill the tables of Walker's method, by Vose's algorithm, for the links of each row."""
    n = len(offsets) - 1
    widest = 0
    for i in range(n):
        widest = max(widest, offsets[i + 1] - offsets[i])
    shares = np.empty(widest, np.float64)
    small = np.empty(widest, np.int64)
    large = np.empty(widest, np.int64)
    for i in range(n):
        low, count = offsets[i], offsets[i + 1] - offsets[i]
        total = 0.0
        for j in range(count):
            total += weights[low + j]
        if total <= 0.0:
            continue
        n_small = 0
        n_large = 0
        for j in range(count):
            shares[j] = weights[low + j] * count / total
            if shares[j] < 1.0:
                small[n_small] = j
                n_small += 1
            else:
                large[n_large] = j
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            less, more = small[n_small], large[n_large - 1]
            limits[low + less] = shares[less]
            others[low + less] = ends[low + more]
            shares[more] -= 1.0 - shares[less]
            if shares[more] < 1.0:
                n_large -= 1
                small[n_small] = more
                n_small += 1
