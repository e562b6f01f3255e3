"""The pairs of a block, found by sampling the walks of its episode.

A pair takes eight bytes: the row of its center in the center's part, and the row of its context in the
context's part together with the number of steps between the two. Pairs of a block are in the order of the
walks, those of one position of a walk next to each other.

With a soft window most pairs of a walk weigh next to nothing, but take as long as others. So of those that
weigh less than LEAST_WEIGHT only some are kept, drawn at random, and weigh that much: the expected steps are
the same, and with the windows of dense graphs less than half of the pairs are left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.training.config import TrainingConfig
from kernelne.training.parts.schedule import ROW_BITS
from kernelne.walks.rng import KEPT, LOW, U32, draw, stream_key
from kernelne.walks.sample import sample_walks

#: Weight of the lightest pairs that are trained on.
LEAST_WEIGHT = 0.25
PAIR_BYTES = 8
_BATCH = 64
_BITS = np.uint32(ROW_BITS)


class Pairs(NamedTuple):
    """Pairs of one block, uint32 each: rows of the centers; rows and distances of the contexts."""

    centers: NDArray[np.uint32]
    contexts: NDArray[np.uint32]


class Finder(NamedTuple):
    """What finding pairs needs: the graph and the walks, the window, and the places of the nodes.

    chances: uint64, by the number of steps less one, the chance of a pair to be kept, in units of 2⁻³².
    """

    graph: Any
    plan: Any
    window: int
    forward: bool
    places: Any
    bounds: NDArray[np.int64]
    chances: NDArray[np.uint64]


def make_finder(graph: Any, plan: Any, config: TrainingConfig, places: Any, bounds: Any) -> Finder:
    chances = (_weights(config) / kept_weights(config) * 2.0**32).astype(np.uint64)
    return Finder(graph, plan, config.window, config.forward, places, bounds, chances)


def _weights(config: TrainingConfig) -> NDArray[np.float64]:
    return config.window_decay ** np.arange(_steps(config.walk_length, config.window), dtype=float)


def _steps(length: int, window: int) -> int:
    """Largest number of steps between the nodes of a pair, at least 1."""
    return max(min(window, length - 1), 1)


def kept_weights(config: TrainingConfig) -> NDArray[np.float64]:
    """Return the weight of a pair that is kept, by the number of steps less one."""
    return np.maximum(_weights(config), LEAST_WEIGHT)


def pairs_per_walk(config: TrainingConfig) -> int:
    """Expected number of pairs of a walk that does not end early, rounded up, at least 1."""
    chances, length = _weights(config) / kept_weights(config), config.walk_length
    return max(int(np.ceil((2 * (length - 1 - np.arange(chances.size)) * chances).sum())), 1)


def count_pairs(find: Finder, first: int, last: int) -> NDArray[np.int64]:
    """Return the number of pairs of each block in walks first … last − 1: int64 (P · P,), by i · P + j."""
    n_parts = find.bounds.size - 1
    counts = np.zeros(n_parts * n_parts, np.int64)
    nothing = np.empty(0, np.uint32)
    _find(*find, first, last, np.ones(n_parts * n_parts, bool), counts, nothing, nothing)
    return counts


def write_pairs(find: Finder, first: int, last: int, following: NDArray[np.int64], pairs: Pairs) -> None:
    """Write the pairs of walks first … last − 1 into the arrays `pairs`, block by block.

    following: int64 (P · P,), the place for the next pair of each block, which is moved on; −1: not wanted.
    """
    _find(*find, first, last, following >= 0, following, pairs.centers, pairs.contexts)


def find_all(find: Finder, first: int, last: int) -> tuple[Pairs, NDArray[np.int64]]:
    """Return all pairs of some walks, block after block, and where each block begins: int64 (P · P + 1,)."""
    counts = count_pairs(find, first, last)
    starts = np.concatenate([[0], np.cumsum(counts)])
    pairs = Pairs(np.empty(starts[-1], np.uint32), np.empty(starts[-1], np.uint32))
    write_pairs(find, first, last, starts[:-1].copy(), pairs)
    return pairs, starts


def by_center(pairs: Pairs, n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Order pairs by the rows of their centers: where those of a row begin, (n_rows + 1,), and the contexts.

    Pairs of one row stay in their order.
    """
    starts, contexts = np.zeros(n_rows + 1, np.int64), np.empty_like(pairs.contexts)
    _order(pairs.centers, pairs.contexts, starts, contexts)
    return starts, contexts


@cached()
def _order(centers: Any, contexts: Any, starts: Any, ordered: Any) -> None:
    for k in range(centers.size):
        starts[centers[k]] += 1
    total = 0
    for row in range(starts.size):
        total += starts[row]
        starts[row] = total  # the end of the row; moved to its beginning as it is filled from behind
    for k in range(centers.size - 1, -1, -1):
        row = centers[k]
        starts[row] -= 1
        ordered[starts[row]] = contexts[k]


@cached()
def _find(
    graph: Any, plan: Any, window: Any, forward: Any, places: Any, bounds: Any, chances: Any, first: Any,
    last: Any, wanted: Any, following: Any, centers: Any, contexts: Any,
) -> None:  # fmt: skip
    n, n_parts = places.size, bounds.size - 1
    walks, lengths = np.empty((_BATCH, plan.length), np.int64), np.empty(_BATCH, np.int64)
    parts, rows = np.empty(plan.length, np.int64), np.empty(plan.length, np.uint32)
    counting = centers.size == 0
    for start in range(first, last, _BATCH):
        size = min(_BATCH, last - start)
        sample_walks(graph, plan, start, walks[:size], lengths[:size])
        for w in range(size):
            length, key = lengths[w], stream_key(plan.seed, KEPT, start + w)
            for a in range(length):
                place = np.int64(places[walks[w, a]])
                parts[a] = place * n_parts // n
                rows[a] = np.uint32(place - bounds[parts[a]])
            for a in range(length):
                row_of_blocks = parts[a] * n_parts
                for b in range(a if forward else max(0, a - window), min(length, a + window + 1)):
                    block = row_of_blocks + parts[b]
                    if a == b or not wanted[block]:
                        continue
                    chance = chances[abs(a - b) - 1]
                    if chance <= LOW and draw(key, a * length + b) >> U32 >= chance:
                        continue
                    if not counting:
                        at = following[block]
                        centers[at] = rows[a]
                        contexts[at] = rows[b] | (np.uint32(abs(a - b) - 1) << _BITS)
                    following[block] += 1
