"""The rounds of the layout "map", the same on every backend: how many, their rates and their random rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne.walks.rng import stream_key

#: Links drawn for a row in one round, other rows drawn with each, the noise level, and the most that a
#: gradient moves a row.
DRAWS, N_NOISE, LEVEL, LONGEST = 8.0, 16, 0.1, 4.0
#: The step of the first round, and how many rows each of the others stands for.
_RATE, _PUSH = 1.0, 1.25
#: Rows from which those of a round are drawn: few enough for a processor's own memory.
_POOL = 8192
ROUND_SETTINGS = {
    "draws": DRAWS, "noise": N_NOISE, "level": LEVEL, "longest": LONGEST, "rate": _RATE, "push": _PUSH,
    "pool": _POOL,
}  # fmt: skip
_LAYOUT = np.uint64(11)  # its stream of random numbers


class Round(NamedTuple):
    """What `move_rows` needs to know of a round.

    pool: (p,) the rows from which others are drawn. key: of the round's random numbers. rate, push: of links
    and of other rows.
    """

    pool: NDArray[np.int32]
    key: np.uint64
    rate: float
    push: float


def n_rounds(n: int) -> int:
    """Return the rounds for n rows: more for few rows, which take seconds, than for many."""
    return int(np.clip(600 * (50_000 / n) ** 0.46, 150, 600))


def plan_rounds(n: int, seed: int, slower: float = 1.0) -> list[Round]:
    """Return the rounds for n rows; slower: factor of their rates."""
    rng, rounds = np.random.default_rng(seed), n_rounds(n)
    found = []
    for number in range(rounds):
        # In units in which a link's full pull moves a row onto the other end.
        rate = slower * _RATE * (1 - number / rounds) * (1 + LEVEL) / LEVEL
        key = np.uint64(stream_key(np.uint64(seed), _LAYOUT, np.uint64(number)))
        found.append(Round(rng.integers(0, n, _POOL).astype(np.int32), key, rate, rate * _PUSH))
    return found
