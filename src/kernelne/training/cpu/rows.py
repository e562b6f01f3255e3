"""The rows of the tables that a walk reads and writes, and the distances between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelne.training.cpu.evaluate import compiled
from kernelne.training.cpu.simd import (
    TILE_COLUMNS,
    TILE_ROWS,
    add_products,
    distances,
    gather_row,
    prefetch_row,
    prefetch_row_to_read,
)

#: How far apart deferred steps of one row are merged: looking further takes longer than it saves.
_MERGED = 64

_add_products = compiled(add_products)


@compiled
def _prefetch_place(k: Any, b: Any, slot: Any, tables: Any, s: Any) -> None:
    """Prefetch what position k of walk b of the batch, and its negative k, read and write.

    slot: of the walk, where its steps go if they are deferred.
    """
    length, n_shared = s.lengths[b], s.noise.shape[1]
    if not tables.deferred:
        if k < length:
            prefetch_row(tables.center, s.walks[b, k])
            prefetch_row(tables.context, s.walks[b, k])
        if k < n_shared:
            prefetch_row(tables.context, s.noise[b, k])
        return
    first = slot * s.context_rows.size
    if k < length:
        prefetch_row_to_read(tables.center, s.walks[b, k])
        prefetch_row_to_read(tables.context, s.walks[b, k])
        prefetch_row(tables.center_steps, slot * s.center_rows.size + k)
        prefetch_row(tables.context_steps, first + k)
    if k < n_shared:
        prefetch_row_to_read(tables.context, s.noise[b, k])
        prefetch_row(tables.context_steps, first + length + k)


@compiled
def prefetch_walk(b: Any, slot: Any, tables: Any, s: Any) -> None:
    """Prefetch all that walk b of the batch reads and writes."""
    for k in range(max(s.lengths[b], s.noise.shape[1])):
        _prefetch_place(k, b, slot, tables, s)


@compiled
def read_rows(b: Any, rate: Any, n_pairs: Any, step: Any, tables: Any, s: Any) -> Any:
    """Copy the rows of walk b of the batch to scratch; returns the number of exploded rows."""
    length = s.lengths[b]
    decay = rate * step.l2
    n_bad = 0
    for i in range(length):
        v = s.walks[b, i]
        s.center_rows[i] = v
        s.context_rows[i] = v
        s.center_norms[i] = gather_row(tables.center, v, s.centers, i)
        s.context_norms[i] = gather_row(tables.context, v, s.contexts, i)
        s.center_decay[i] = decay * s.pairs[i]
        # A position has as many pairs behind it as the mirrored one has before it.
        s.context_decay[i] = decay * s.pairs[length - 1 - i] if step.forward else s.center_decay[i]
        n_bad += not s.center_norms[i] < step.norm_limit  # true for NaN, too
        n_bad += not s.context_norms[i] < step.norm_limit
    noise_decay = decay * np.float32(step.n_negative * n_pairs / step.n_shared)
    for t in range(length, length + step.n_shared):
        v = s.noise[b, t - length]
        s.context_rows[t] = v
        s.context_norms[t] = gather_row(tables.context, v, s.contexts, t)
        s.context_decay[t] = noise_decay
        n_bad += not s.context_norms[t] < step.norm_limit
    return n_bad


@compiled
def measure(
    length: Any, n_contexts: Any, window: Any, ahead: Any, slot: Any, tables: Any, s: Any
) -> None:  # fmt: skip
    """Compute the squared distances of all pairs with a weight, from the rows in scratch.

    Meanwhile what walk `ahead` of the batch, whose slot is given, reads and writes is prefetched: a few rows
    with each tile, as memory delivers a few at a time.
    """
    place, places = 0, max(s.lengths[ahead], s.noise.shape[1])
    for i in range(0, length, TILE_ROWS):
        for t in range(0, n_contexts, TILE_COLUMNS):
            near = t + TILE_COLUMNS > i - window and t < i + TILE_ROWS + window
            if not near and t + TILE_COLUMNS <= length:
                continue  # the weights are zero, and D holds zeros
            if place < places:
                _prefetch_place(place, ahead, slot, tables, s)
                place += 1
            distances(s.centers, s.center_norms, i, s.contexts, s.context_norms, t, s.D)
    for k in range(place, places):
        _prefetch_place(k, ahead, slot, tables, s)


@compiled
def _redirect(rows: Any, count: Any, base: Any, steps: Any, steps_rows: Any) -> None:
    """Record the rows of the steps, and redirect the steps to positions base, base + 1, … of `steps`.

    Steps of the same row, not too far apart, go to the position of the first: other cores read fewer.
    """
    for i in range(count):
        row, at = rows[i], i
        for k in range(max(0, i - _MERGED), i):
            if steps_rows[base + k] == row:
                at = k
                break
        if at == i:
            steps_rows[base + i] = row
            steps[base + i] = 0.0
        rows[i] = base + at


@compiled
def write_rows(length: Any, n_contexts: Any, window: Any, slot: Any, tables: Any, s: Any) -> None:
    """Add the steps of one walk to the tables, or to the arrays of deferred steps."""
    center, context = tables.center, tables.context
    if tables.deferred:
        center, context = tables.center_steps, tables.context_steps
        _redirect(s.center_rows, length, slot * s.center_rows.size, center, tables.center_rows)
        _redirect(s.context_rows, n_contexts, slot * s.context_rows.size, context, tables.context_rows)
    # An incomplete tile is filled with the last row, to which zero is added.
    if length % TILE_ROWS:
        s.center_rows[length] = s.center_rows[length - 1]
        s.D[length] = 0.0
    if n_contexts % TILE_ROWS:
        s.context_rows[n_contexts] = s.context_rows[n_contexts - 1]
    columns = s.D.shape[1]
    _add_products(
        center, s.center_rows, length, s.D, 1, n_contexts, length, window, s.contexts, s.centers,
        s.center_decay,
    )  # fmt: skip
    _add_products(
        context, s.context_rows, n_contexts, s.D, columns, length, length, window, s.centers, s.contexts,
        s.context_decay,
    )  # fmt: skip
