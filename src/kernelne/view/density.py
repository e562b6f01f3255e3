"""Pictures of many points: their density as shade, and where a class is dense."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

#: Most pixels of a side of the picture of all points, and cells of a side in which densities are compared.
_PIXELS, _CELLS = 1000, 48
#: Width of the neighbourhood of a cell in which a class is dense, in cells.
_AROUND = 2.0
#: A point colours its pixel and, more faintly, those around it, so that one by itself can be seen.
_POINT = np.array([0.35, 1.0, 0.35])
#: Opacity of one point by itself, and the share of pixels with points that are less than fully opaque.
_FAINTEST, _BELOW_FULL = 0.3, 0.98


def square_around(places: NDArray[np.float32]) -> tuple[float, float, float, float]:
    """Return left, right, low and high of the square around places (n, 2), with a margin."""
    low, high = places.min(axis=0).astype(float), places.max(axis=0).astype(float)
    half = 0.52 * float((high - low).max() or 1.0)
    x, y = (low + high) / 2
    return x - half, x + half, y - half, y + half


def pixels_for(n: int) -> int:
    """Return the pixels of a side for n points: larger pixels for fewer points, so that one can be seen."""
    return int(np.clip(3 * np.sqrt(n), _PIXELS // 2, _PIXELS))


def shade(
    places: NDArray[np.float32],
    colours: NDArray[np.float64],
    square: tuple[float, float, float, float],
    pixels: int = _PIXELS,
) -> NDArray[np.float32]:
    """Return a picture (pixels, pixels, 4) of red, green, blue and opacity, lowest row first.

    colours: (n, 3) or (3,), from 0 to 1. Where points of several colours meet, a pixel has their mean. The
    more points it has the more opaque it is, by the logarithm of their number: a few are seen, and a million
    are no blot.
    """
    at = _cells_of(places, square, pixels)
    size = pixels * pixels
    counts = _blurred(np.bincount(at, minlength=size))
    picture = np.zeros((pixels, pixels, 4), np.float32)
    there = counts > 0
    for channel in range(3):
        if colours.ndim == 1:
            picture[there, channel] = colours[channel]
        else:
            total = _blurred(np.bincount(at, weights=colours[:, channel], minlength=size))
            picture[there, channel] = (total[there] / counts[there]).clip(0, 1)
    most = max(float(np.quantile(counts[there], _BELOW_FULL)), 1.0) if there.any() else 1.0
    depth = np.log1p(counts[there]) / np.log1p(most)
    picture[there, 3] = (np.minimum(counts[there], 1) * _FAINTEST + (1 - _FAINTEST) * depth).clip(0, 1)
    return picture


def densest(
    places: NDArray[np.float32], square: tuple[float, float, float, float], every: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Return the place (2,) for the name of a class at places (n, 2): of a node where the class is dense.

    every: `densities` of all nodes. What counts is the density times the share of the class there, so that
    the name does not stand where all classes are dense.
    """
    own = densities(places, square)
    counts = np.divide(own**2, every, out=np.zeros_like(own), where=every > 0)
    y, x = np.unravel_index(int(counts.argmax()), counts.shape)
    left, right, low, high = square
    middle = left + (x + 0.5) / _CELLS * (right - left), low + (y + 0.5) / _CELLS * (high - low)
    found: NDArray[np.float32] = places[np.square(places - np.array(middle)).sum(axis=1).argmin()]
    return found


def densities(places: NDArray[np.float32], square: tuple[float, float, float, float]) -> NDArray[np.float64]:
    """Return how many places (n, 2) are around each cell of the square; past a few upon each other."""
    table = np.bincount(_cells_of(places, square, _CELLS), minlength=_CELLS * _CELLS)
    found: NDArray[np.float64] = gaussian_filter(
        table.reshape(_CELLS, _CELLS).astype(np.float64), _AROUND, mode="constant"
    )
    return found


def _cells_of(
    places: NDArray[Any], square: tuple[float, float, float, float], side: int
) -> NDArray[np.int64]:
    """Return the number (n,) of each place's cell, row by row, of side × side in the square."""
    left, right, low, high = square
    x = ((places[:, 0] - left) * (side / (right - left))).astype(np.int64).clip(0, side - 1)
    y = ((places[:, 1] - low) * (side / (high - low))).astype(np.int64).clip(0, side - 1)
    cells: NDArray[np.int64] = y * side + x
    return cells


def _blurred(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return counts of a square's cells as a matrix, each spread over the cells around it."""
    side = int(np.sqrt(len(counts)))
    table = np.pad(counts.reshape(side, side).astype(np.float64), 1)
    before, same, after = _POINT
    table = before * table[:-2] + same * table[1:-1] + after * table[2:]
    spread: NDArray[np.float64] = before * table[:, :-2] + same * table[:, 1:-1] + after * table[:, 2:]
    return spread
