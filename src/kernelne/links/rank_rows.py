"""The compiled part of ranking: the best candidates of each row, from products of tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelne._common.jit import cached
from kernelne.training.cpu.evaluate import FAST, evaluator

_LEAST = np.float32(1e-9)  # of a kernel's value: mixtures with negative coefficients may fall below zero

evaluate_kernel = evaluator(__name__)


@cached(error_model="numpy", fastmath=FAST, _nrt=False)
def rank_rows(
    low: Any, high: Any, k: Any, rows: Any, dots: Any, other_dots: Any, lengths: Any, other_lengths: Any,
    squares: Any, other_squares: Any, ways: Any, kinds: Any, sigmas: Any, coefficients: Any, most: Any,
    degrees: Any, offsets: Any, neighbours: Any, place: Any, begin: Any, end: Any, sought: Any, work: Any,
    more_work: Any, targets: Any, scores: Any, counts: Any, first_hits: Any,
) -> None:  # fmt: skip
    """Fill in the best candidates of rows low … high − 1 of a block.

    The score of a candidate is the square of the one above, which needs no root. `dots` are products of the
    centers of rows with contexts of candidates, `other_dots` of contexts with centers; with ways = 1 only the
    former count.
    """
    m = degrees.size
    total, values, D, slopes = work[0], work[1], more_work[0], more_work[1]
    for i in range(low, high):
        for t in range(m):
            total[t] = degrees[t]
        for way in range(ways):
            for t in range(m):
                if way == 0:
                    D[t] = max(lengths[i] + squares[t] - np.float32(2.0) * dots[i, t], np.float32(0.0))
                else:
                    far = other_lengths[i] + other_squares[t] - np.float32(2.0) * other_dots[i, t]
                    D[t] = max(far, np.float32(0.0))
            kernel = dots[i] if way == 0 else other_dots[i]  # no longer needed
            for t in range(m):
                kernel[t] = np.float32(0.0)
            for q in range(kinds.size):
                evaluate_kernel(kinds[q], sigmas[q], D, values, slopes)
                for t in range(m):
                    kernel[t] += coefficients[q] * values[t]
            for t in range(m):
                k_value = max(kernel[t], _LEAST)
                odds = k_value / (most - k_value)
                total[t] *= odds if ways == 2 else odds * odds
        row = rows[i]
        if place[row] >= 0:
            total[place[row]] = np.float32(-1.0)
        for e in range(offsets[row], offsets[row + 1]):
            if place[neighbours[e]] >= 0:
                total[place[neighbours[e]]] = np.float32(-1.0)
        best = np.float32(-1.0)
        for e in range(begin[i], end[i]):
            if place[sought[e]] >= 0:
                best = max(best, total[place[sought[e]]])
        if best >= 0:
            ahead = 0
            for t in range(m):
                ahead += total[t] > best
            first_hits[i] = 1 + ahead
        count = 0
        for t in range(m):  # the best so far stay sorted; few candidates get among them
            value = total[t]
            if value >= 0 and (count < k or value > scores[i, k - 1]):
                at = min(count, k - 1)
                while at > 0 and scores[i, at - 1] < value:
                    scores[i, at] = scores[i, at - 1]
                    targets[i, at] = targets[i, at - 1]
                    at -= 1
                scores[i, at] = value
                targets[i, at] = t
                count = min(count + 1, k)
        counts[i] = count
        for at in range(count):
            scores[i, at] = np.sqrt(scores[i, at])
        for at in range(count, k):
            targets[i, at] = 0
