"""Counter-based random numbers: every walk, row and round has its own stream, all from one seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelne._common.jit import cached

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)


_MIX_2 = np.uint64(0x94D049BB133111EB)


LOW = np.uint64(0xFFFFFFFF)


_U27, _U30, _U31, U32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


UNIT = 2.0**-32


# Kinds of streams; streams of the same seed are independent.
START, STEP, NOISE, INITIAL = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
#: Negatives of blocks, and which light pairs of a walk are kept, in training in parts.
PARTS, KEPT = np.uint64(5), np.uint64(6)


@cached()
def mix(z: Any) -> Any:
    """The finaliser of splitmix64: a pseudo-random bijection of 64-bit integers."""
    z = (z ^ (z >> _U30)) * _MIX_1
    z = (z ^ (z >> _U27)) * _MIX_2
    return z ^ (z >> _U31)


@cached()
def stream_key(seed: Any, stream: Any, number: Any) -> Any:
    """Key of stream number `number` (of a walk, a round or a row) of the kind `stream`."""
    return mix(mix(seed + stream * _GOLDEN) ^ (np.uint64(number) * _GOLDEN))


@cached()
def draw(key: Any, counter: Any) -> Any:
    """64 random bits: element `counter` of the stream `key`."""
    return mix(key + (np.uint64(counter) + np.uint64(1)) * _GOLDEN)


@cached()
def below(bits: Any, n: Any) -> Any:
    """An integer in [0, n) from the upper 32 of 64 random bits; n < 2³²."""
    return np.int64(((bits >> U32) * np.uint64(n)) >> U32)


@cached(error_model="numpy")
def _fill_row(row: Any, key: Any, bound: Any) -> None:
    for k in range(row.size):
        row[k] = np.float32((np.float64(draw(key, k) >> np.uint64(11)) * 2.0**-52 - 1.0) * bound)


@cached(error_model="numpy")
def fill_uniform(table: Any, seed: Any, bound: Any) -> None:
    """Fill a table with uniform random numbers in ±bound, row by row from the streams INITIAL."""
    for row in range(table.shape[0]):
        _fill_row(table[row], stream_key(seed, INITIAL, row), bound)


@cached(error_model="numpy")
def fill_uniform_rows(table: Any, rows: Any, seed: Any, bound: Any) -> None:
    """Fill a table with some of these rows: table[i] as `fill_uniform` fills row rows[i]."""
    for i in range(table.shape[0]):
        _fill_row(table[i], stream_key(seed, INITIAL, rows[i]), bound)
