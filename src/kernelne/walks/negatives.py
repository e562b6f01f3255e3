"""The noise distribution, from which negatives are drawn, as an alias table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.walks.rng import LOW, below


class AliasTable(NamedTuple):
    """Draws a row in O(1): a random slot s if 32 random bits are at most keep[s], else other[s]."""

    keep: NDArray[np.uint32]
    other: NDArray[np.int32] | NDArray[np.int64]


@cached()
def _fill_alias(share: Any, keep: Any, other: Any) -> None:
    """Walker's construction: slots with a share below 1 are filled up from those above 1.

    Two indices replace the usual stacks: `small` is the next slot below 1, `large` the next one above. If a
    slot before `small` falls below 1 because others took from it, it is filled up at once.
    """
    n = share.size
    small, large = 0, 0
    while small < n and share[small] >= 1.0:
        small += 1
    while large < n and share[large] < 1.0:
        large += 1
    current = small
    while current < n and large < n:
        keep[current] = np.uint32(min(share[current] * 2.0**32, 2.0**32 - 1.0))
        other[current] = large
        share[large] -= 1.0 - share[current]
        if share[large] < 1.0:
            poorer = large
            large += 1
            while large < n and share[large] < 1.0:
                large += 1
            if poorer < small:
                current = poorer
                continue
        small += 1
        while small < n and share[small] >= 1.0:
            small += 1
        current = small


def alias_table(weights: NDArray[np.float64]) -> AliasTable:
    """Build the alias table of the distribution proportional to `weights` (n,), one at least positive."""
    n = weights.size
    rows = np.arange(n, dtype=np.int32) if n < 2**31 else np.arange(n, dtype=np.int64)
    table = AliasTable(np.full(n, 2**32 - 1, np.uint32), rows)
    _fill_alias(weights * (n / weights.sum()), table.keep, table.other)
    return table


@cached(_nrt=False)  # it makes no arrays
def draw_alias(table: Any, bits: Any) -> Any:
    """Draw a row with 64 random bits."""
    slot = below(bits, table.keep.size)
    other = np.int64(table.other[slot])  # read in any case: a branch would often be guessed wrong
    return slot if np.uint32(bits & LOW) <= table.keep[slot] else other
