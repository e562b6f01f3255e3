"""The directions on which joint rows are projected, and their lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Number of columns from which on joint rows have one length: in the plane they would lie on a circle.
EQUAL_FROM = 16

#: Power of the singular values of joint rows: below 1, so that groups in few directions count for more.
_POWER = 0.85

#: Directions of the largest component that the rows of the others are kept out of: as many as hold this share
#: of its squares, at most this share of the columns.
_HELD, _MOST_HELD = 0.98, 0.5

#: Rows outside the largest component: length _APART · min(nodes of their component, _LARGE)^_GROWTH, in units
#: of the length of rows inside, but less if theirs is nearly as large; and length of what all have in common.
_APART, _LARGE, _GROWTH = 0.6, 10.0, 0.75
_COMMON = 0.5

#: Groups are clear where the next direction holds this many times less than the last one of theirs, many from
#: this number on, and small if they have at least and at most so many nodes on average.
_CLEAR, _MANY, _FEWEST, _MOST = 10.0, 32, 10, 100
#: Mean length of rows in many small groups. Most of these have no labelled node if few nodes have a label:
#: with short rows a classifier answers with the most frequent class then, not with one at random.
SHORT = 1.15


def has_common(axes: NDArray[np.float32]) -> bool:
    """Whether the last row of the axes is what rows outside the largest component have in common."""
    return bool(axes.shape[0] % 2)


def made_outside(vectors: NDArray[np.float32], axes: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which joint rows were made as those of nodes outside the largest component."""
    dim = vectors.shape[1]
    if not has_common(axes):
        return np.zeros(len(vectors), bool)
    along = vectors @ axes[-1, dim:]  # zero for all others
    return np.asarray(along > 0.01 * np.linalg.norm(vectors, axis=1) * _COMMON)


def lengths_outside(sizes: NDArray[np.int64], largest: int) -> NDArray[np.float32]:
    """Lengths of rows outside the largest component, by the number of nodes of their own and of the largest.

    The label of a node tells as many other nodes as its component has; longer rows let a classifier learn
    more from it. In a component as large as the largest they have the length of rows inside.
    """
    lengths = np.minimum(_APART * np.minimum(sizes, _LARGE) ** _GROWTH, np.sqrt(largest / sizes))
    return np.asarray(lengths, np.float32)


def squares(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.asarray(rows.T @ rows, np.float64)


def largest_directions(moments: Any, n_nodes: int) -> tuple[NDArray[np.float32], bool]:
    """Return the half of the directions in which rows are largest, from the sum of their outer products.

    The directions are scaled so that singular values are raised to _POWER; those of small, clear groups, so
    that all groups are equally far from each other. With EQUAL_FROM columns or more they are rotated, so that
    all columns of the rows vary about alike: distances and angles are the same, and scaling columns to one
    variance, as is often done, hardly changes them. Unrotated, that would raise the noise in the smallest
    directions to the size of the largest.

    Also returned: whether there are small, clear groups.
    """
    dim = len(moments) // 2
    values, axes = (each[..., : dim - 1 : -1] for each in np.linalg.eigh(moments))
    # A direction has no sign of its own: the same one every time.
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(dim)] < 0, -1.0, 1.0)
    n_groups = 0
    if values[0] > 0:
        values = np.maximum(values / values[0], 1e-12)
        n_groups = _clear_groups(values, n_nodes) if dim >= EQUAL_FROM else 0
        scales = values ** ((_POWER - 1) / 2)
        scales[:n_groups] = np.sqrt(values[:n_groups].mean() / values[:n_groups]) if n_groups else 1
        axes *= scales
    if dim >= EQUAL_FROM:
        angles = 2 * np.pi / dim * (np.outer(np.arange(dim), np.arange(dim)) % dim)
        axes = axes @ ((np.cos(angles) + np.sin(angles)) / np.sqrt(dim))  # Hartley's matrix, orthogonal
    return np.ascontiguousarray(axes, np.float32), n_groups > 0


def _clear_groups(values: NDArray[np.float64], n_nodes: int) -> int:
    """Return the number of directions of small, clear groups; 0 if there are none, or few."""
    least, most = max(-(-n_nodes // _MOST), _MANY), min(n_nodes // _FEWEST, len(values) - 1)
    if most < least:
        return 0
    falls = values[least - 1 : most] / values[least : most + 1]
    return least + int(falls.argmax()) if falls.max() >= _CLEAR else 0


def apart_axes(axes: NDArray[np.float32], moments: Any) -> NDArray[np.float32]:
    """Return the axes, beside them those of rows outside the largest component, and a last row.

    The last row is what is added to rows after they have their length: nothing inside, and outside the
    direction in which rows inside are smallest, which the axes then leave free: so a classifier can learn
    what nodes outside have in common.

    moments: the sum of the outer products of the rows inside it.
    """
    values, directions = (each[..., ::-1] for each in np.linalg.eigh(moments))
    held = np.searchsorted(np.cumsum(values), _HELD * values.sum()) + 1
    kept = directions[:, : min(int(held), int(_MOST_HELD * len(moments)))]
    common = directions[:, -1:]
    inside = axes - (axes @ common) @ common.T
    outside = inside - (inside @ kept) @ kept.T
    last = np.hstack([np.zeros((1, len(moments))), _COMMON * common.T])
    return np.vstack([np.hstack([inside, outside]), last]).astype(np.float32)


def equal_lengths(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to length 1, in place, if they have enough columns; returns them."""
    if rows.shape[1] >= EQUAL_FROM:
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
        np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows
