"""Checks of parameters, and the cores of the machine, for all parts of the package."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelne.errors import InputError

if TYPE_CHECKING:
    from kernelne.graph import Graph

import math
from numbers import Integral, Real
from typing import Any

from kernelne.errors import ParameterError

#: Units of durations, in seconds; a number without one is as it is.
_SECONDS = {"": 1, "s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365.25 * 86400}

#: Bytes of a part of an array that is looked at as a whole.
_PART = 2**24


def check_count(name: str, value: Any, most: int | None = None) -> None:
    """Raise a ParameterError unless `value` is an integer from 1 to `most` (None: to 2³¹ − 1)."""
    good = isinstance(value, Integral) and not isinstance(value, bool)
    if not good or not 1 <= value <= (2**31 - 1 if most is None else most):
        limit = f"from 1 to {most}, the number of nodes"
        if most is None:
            limit = "at most 2**31 - 1" if good and value > 1 else "at least 1"
        raise ParameterError(name, value, f"must be a whole number, {limit}")


def check_number(name: str, value: Any, *, positive: bool) -> None:
    """Raise a ParameterError unless `value` is finite and above zero or, if not `positive`, at least zero."""
    good = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not good or value < 0 or (positive and value == 0):
        raise ParameterError(
            name, value, f"must be a {'positive number' if positive else 'number, at least 0'}"
        )


def check_duration(name: str, value: Any, unit: str = "seconds") -> float:
    """Return a duration as a number: as given, in `unit`, or a text such as 30d or 1.5h in seconds."""
    text = value.strip() if isinstance(value, str) else ""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]*)", text)
    if found and found[2] in _SECONDS:
        value = float(found[1]) * _SECONDS[found[2]]
    good = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not good or value <= 0:
        units = ", ".join(filter(None, _SECONDS))
        raise ParameterError(name, value, f"must be a positive number of {unit}, or one with a unit: {units}")
    return float(value)


def check_seed(random_state: Any) -> int:
    """Return `random_state` as int; raises a ParameterError unless it is an integer below 2³²."""
    good = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if not good or not 0 <= random_state < 2**32:
        raise ParameterError("random_state", random_state, "must be a whole number from 0 to 2**32 - 1")
    return int(random_state)


def encode_classes(classes: ArrayLike, n: int, name: str = "communities") -> NDArray[np.int64]:
    """Encode n hashable values as integers (n,) from 0, one integer for each distinct value."""
    array = np.asarray(classes)
    if array.shape != (n,):
        raise InputError(f"{name} has shape {array.shape} for {n} nodes: give one value per node")
    if array.dtype.kind in "fO" and (missing := np.flatnonzero(array != array)).size:  # true for NaN only
        raise InputError(f"{name}[{missing[0]}] is {array[missing[0]]}: give every node a value")
    if array.dtype == object:  # values of different types cannot be sorted
        known: dict[Any, int] = {}
        try:
            return np.fromiter((known.setdefault(value, len(known)) for value in array), np.int64, n)
        except TypeError:
            raise InputError(f"{name} must be numbers, strings or other hashable values") from None
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def encode_labels(labels: ArrayLike, n: int) -> NDArray[np.int64]:
    """As `encode_classes`, but raises InputError for labels that are None."""
    array = np.asarray(labels)
    if array.dtype == object and (missing := np.count_nonzero(array == np.array(None))):
        raise InputError(f"labels: {missing} of {n} nodes have None: leave these nodes out")
    return encode_classes(array, n, "labels")


def ids_of(vectors: Any) -> NDArray[Any] | None:
    """Node ids (n,) of the rows if `vectors` has them, as an Embedding does; else None."""
    nodes = getattr(vectors, "nodes", None) if hasattr(vectors, "index_of") else None
    return nodes if nodes is None or hasattr(nodes, "dtype") else np.asarray(nodes)


def check_vectors(vectors: Any, graph: Graph | None = None) -> NDArray[Any]:
    """Return vectors as a finite (n, d) array, float32 or float64; an Embedding's in the graph's order."""
    table = np.asarray(vectors)
    if graph is not None and ids_of(vectors) is not None:
        table = table[vectors.index_of(graph.nodes)]
    if table.ndim != 2 or table.dtype.kind not in "biuf" or 0 in table.shape:
        raise InputError(
            f"vectors: shape {table.shape} of {table.dtype}: give numbers of shape (nodes, dimensions)"
        )
    if graph is not None and len(table) != graph.n_nodes:
        raise InputError(
            f"vectors: {len(table)} rows for a graph of {graph.n_nodes} nodes: give one row per node"
        )
    if table.dtype != np.float32:
        table = table.astype(np.float64, copy=False)
    finite = np.concatenate([np.isfinite(part).all(axis=1) for _, part in parts(table)])
    bad = np.flatnonzero(~finite)
    if bad.size:
        raise InputError(f"vectors: row {bad[0]} holds values that are not finite ({bad.size} such rows)")
    return table


def parts(table: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the first row and the rows of parts of an array that are small beside the memory."""
    size = max(_PART // max(table[:1].nbytes, 1), 1)
    return ((first, table[first : first + size]) for first in range(0, len(table), size))


def available_threads() -> int:
    """Number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def seed_of(random_state: Any) -> int:
    """Return a 64-bit seed: `random_state` itself, a draw from a generator, or a new seed for None."""
    if random_state is None:
        return secrets.randbits(64)
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if 0 <= random_state < 2**64:
            return int(random_state)
    elif isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**64, dtype=np.uint64))
    elif isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**64, dtype=np.uint64))
    raise ParameterError(
        "random_state",
        random_state,
        "must be None, an integer from 0 to 2**64 - 1, or a NumPy random generator",
    )
