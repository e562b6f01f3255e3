"""The directions on which joint rows are projected, and their lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne.model.neighbour_sums import blocks

#: Number of columns from which on joint rows have one length: in the plane they would lie on a circle.
EQUAL_FROM = 16

#: Power of the singular values of joint rows: below 1, so that groups in few directions count for more.
_POWER = 0.85

#: Directions of the largest component that the rows of the others are kept out of: as many as hold this share
#: of its squares, at most this share of the columns.
_HELD, _MOST_HELD = 0.98, 0.5


def made_outside(vectors: NDArray[np.float32], axes: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which joint rows were made as those of nodes outside the largest component."""
    dim = axes.shape[0] // 2
    if axes.shape[1] == dim:
        return np.zeros(len(vectors), bool)
    held, *_ = np.linalg.lstsq(axes[:, :dim], axes[:, :dim] - axes[:, dim:], rcond=None)
    values, directions = np.linalg.eigh((held + held.T) / 2)
    kept = directions[:, values > 0.5].astype(np.float32)
    found = [
        np.linalg.norm(part @ kept, axis=1) < 0.01 * np.linalg.norm(part, axis=1)
        for part in (vectors[rows] for rows in blocks(0, len(vectors)))
    ]
    return np.concatenate(found) if found else np.zeros(0, bool)


def squares(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.asarray(rows.T @ rows, np.float64)


def largest_directions(moments: Any) -> NDArray[np.float32]:
    """Return the half of the directions in which rows are largest, from the sum of their outer products.

    The directions are scaled so that singular values are raised to _POWER. With EQUAL_FROM columns or more
    they are rotated, so that all columns of the rows vary about alike: distances and angles are the same, and
    scaling columns to one variance, as is often done, hardly changes them. Unrotated, that would raise the
    noise in the smallest directions to the size of the largest.
    """
    dim = len(moments) // 2
    values, axes = (each[..., : dim - 1 : -1] for each in np.linalg.eigh(moments))
    # A direction has no sign of its own: the same one every time.
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(dim)] < 0, -1.0, 1.0)
    if values[0] > 0:
        axes *= np.maximum(values / values[0], 1e-12) ** ((_POWER - 1) / 2)
    if dim >= EQUAL_FROM:
        angles = 2 * np.pi / dim * (np.outer(np.arange(dim), np.arange(dim)) % dim)
        axes = axes @ ((np.cos(angles) + np.sin(angles)) / np.sqrt(dim))  # Hartley's matrix, orthogonal
    return np.ascontiguousarray(axes, np.float32)


def apart_axes(axes: NDArray[np.float32], moments: Any) -> NDArray[np.float32]:
    """Return the axes, and beside them those of rows outside the largest component.

    moments: the sum of the outer products of the rows inside it.
    """
    values, directions = (each[..., ::-1] for each in np.linalg.eigh(moments))
    held = np.searchsorted(np.cumsum(values), _HELD * values.sum()) + 1
    kept = directions[:, : min(int(held), int(_MOST_HELD * len(moments)))]
    return np.hstack([axes, axes - (axes @ kept) @ kept.T]).astype(np.float32)


def equal_lengths(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to length 1, in place, if they have enough columns; returns them."""
    if rows.shape[1] >= EQUAL_FROM:
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
        np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows
