"""Compiled functions that build a CSR adjacency from edges: counting sort, merge, mirror.

An empty weight array means no weights, so that each function has one signature. The lines that append an
entry to a row are repeated in each loop: as a separate function, inlined or not, everything took two to four
times as long (4 million edges).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached


@cached()
def _sum_up(offsets):  # type: ignore[no-untyped-def]
    """Turn the row sizes in `offsets[1:]` into offsets, in place; returns the write position of each row."""
    for row in range(len(offsets) - 1):
        offsets[row + 1] += offsets[row]
    return offsets[:-1].copy()


@cached()
def by_target(sources, targets, weights, n_nodes, undirected):  # type: ignore[no-untyped-def]
    """Return the CSR by target, rows unsorted; an undirected edge goes from its lower to its higher node."""
    offsets = np.zeros(n_nodes + 1, np.int64)
    for i in range(len(sources)):
        target = max(sources[i], targets[i]) if undirected else targets[i]
        offsets[target + 1] += 1
    cursor = _sum_up(offsets)
    entries = np.empty(len(sources), sources.dtype)
    values = np.empty(len(weights), np.float64)
    for i in range(len(sources)):
        source, target = sources[i], targets[i]
        if undirected and source > target:
            source, target = target, source
        j = cursor[target]
        cursor[target] = j + 1
        entries[j] = source
        if len(weights) > 0:
            values[j] = weights[i]
    return offsets, entries, values


@cached()
def transpose(offsets, entries, weights):  # type: ignore[no-untyped-def]
    """Return the transposed CSR; its rows are sorted, and equal entries keep their order."""
    new_offsets = np.zeros(len(offsets), np.int64)
    for k in range(len(entries)):
        new_offsets[entries[k] + 1] += 1
    cursor = _sum_up(new_offsets)
    new_entries = np.empty_like(entries)
    values = np.empty_like(weights)
    for row in range(len(offsets) - 1):
        for k in range(offsets[row], offsets[row + 1]):
            j = cursor[entries[k]]
            cursor[entries[k]] = j + 1
            new_entries[j] = row
            if len(weights) > 0:
                values[j] = weights[k]
    return new_offsets, new_entries, values


@cached()
def merge(offsets, entries, weights):  # type: ignore[no-untyped-def]
    """Merge equal neighbours in sorted rows, in place, adding weights; returns the new number of entries."""
    size = 0
    start = 0
    for row in range(len(offsets) - 1):
        stop = offsets[row + 1]
        first = size
        for k in range(start, stop):
            if size > first and entries[size - 1] == entries[k]:
                if len(weights) > 0:
                    weights[size - 1] += weights[k]
                continue
            entries[size] = entries[k]
            if len(weights) > 0:
                weights[size] = weights[k]
            size += 1
        start = stop
        offsets[row + 1] = size
    return size


@cached()
def mirror(offsets, entries, weights):  # type: ignore[no-untyped-def]
    """Return the symmetric CSR of an upper triangle with sorted rows.

    The result is sorted: when row i is read, all its lower neighbours have already been written, in order.
    """
    new_offsets = np.zeros(len(offsets), np.int64)
    for row in range(len(offsets) - 1):
        new_offsets[row + 1] += offsets[row + 1] - offsets[row]
        for k in range(offsets[row], offsets[row + 1]):
            if entries[k] != row:
                new_offsets[entries[k] + 1] += 1
    cursor = _sum_up(new_offsets)
    new_entries = np.empty(new_offsets[-1], entries.dtype)
    values = np.empty(new_offsets[-1] if len(weights) > 0 else 0, weights.dtype)
    for row in range(len(offsets) - 1):
        for k in range(offsets[row], offsets[row + 1]):
            j = cursor[row]
            cursor[row] = j + 1
            new_entries[j] = entries[k]
            if len(weights) > 0:
                values[j] = weights[k]
            if entries[k] != row:
                j = cursor[entries[k]]
                cursor[entries[k]] = j + 1
                new_entries[j] = row
                if len(weights) > 0:
                    values[j] = weights[k]
    return new_offsets, new_entries, values


@cached()
def count_loops(offsets, neighbours):  # type: ignore[no-untyped-def]
    """Count the entries on the diagonal."""
    loops = 0
    for row in range(len(offsets) - 1):
        for k in range(offsets[row], offsets[row + 1]):
            if neighbours[k] == row:
                loops += 1
    return loops


def half(
    rows: NDArray[np.int64], columns: NDArray[np.int64], values: NDArray[np.float64] | None, n: int
) -> NDArray[np.bool_] | int:
    """Return a mask (m,) bool of the entries on and below the diagonal of a symmetric n × n matrix.

    If the matrix is not symmetric, returns the index of the first entry, in row order, that has no mirror
    image of the same value.
    """
    data = np.empty(0) if values is None else values
    by_rows = transpose(*by_target(rows, columns, data, n, False))
    by_columns = transpose(*by_target(columns, rows, data, n, False))
    if not all(np.array_equal(a, b) for a, b in zip(by_rows, by_columns, strict=True)):
        # Slower, to find the entry; repeated entries may only differ in order.
        data = np.zeros(len(rows)) if values is None else values
        here, there = np.lexsort((data, columns, rows)), np.lexsort((data, rows, columns))
        same = (rows[here] == columns[there]) & (columns[here] == rows[there]) & (data[here] == data[there])
        if not same.all():
            place = int(np.flatnonzero(~same)[0])
            # Of the entry and the mirror image of the other, the one first in row order has no counterpart.
            one, other = int(here[place]), int(there[place])
            first = (rows[one], columns[one], data[one]) < (columns[other], rows[other], data[other])
            return one if first else other
    return rows >= columns
