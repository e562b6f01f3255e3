"""Checks of the arguments of Embedding."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._common.checks import parts
from kernelne.errors import InputError
from kernelne.graph.string_ids import StringIds


def finite_array(name: str, given: Any, dtype: Any, ndim: int) -> Any:
    """Return `given` as a finite, contiguous array of the dtype, without a copy if it is one already."""
    try:
        array = np.asarray(given)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"{name}: not an array: {error}") from error
    if array.ndim != ndim or array.dtype.kind not in "fiu":
        raise InputError(
            f"{name}: must have {ndim} dimensions of real numbers, got {array.ndim} of {array.dtype}"
        )
    with np.errstate(over="ignore"):  # overflow gives inf, which is reported below
        array = np.ascontiguousarray(array, dtype=dtype)
    for first, part in parts(array):
        if not np.isfinite(part).all():
            row, *column = np.argwhere(~np.isfinite(part))[0].tolist()
            place = ", column ".join(map(str, (first + row, *column)))
            raise InputError(f"{name}: not a finite {np.dtype(dtype)} at row {place}")
    return array


def same_bits(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether arrays of float32 have the same bits, which is more than equal values: 0.0 equals -0.0."""
    if one.shape != other.shape:
        return False
    pairs = zip(parts(one), parts(other), strict=True)
    return all(np.array_equal(a.view(np.uint32), b.view(np.uint32)) for (_, a), (_, b) in pairs)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array if it is read-only, else a read-only view; the original array stays writable."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def make_lookup(nodes: NDArray[Any]) -> dict[Any, int] | NDArray[np.int64] | None:
    """Return the lookup of ids: a dict for objects, the sorting order for integers (None: sorted already).

    Ids that stay text have none: they are looked up where they are.

    A dict of integers would take more memory than the vectors do in low dimensions.
    """
    if isinstance(nodes, StringIds):
        if (again := nodes.repeated()) is not None:
            raise InputError(f"node ids must be unique, but {again!r} occurs more than once")
        return None
    if nodes.dtype == object:
        try:
            lookup = {node: row for row, node in enumerate(nodes.tolist())}
        except TypeError as error:
            raise InputError(f"node ids must be hashable: {error}") from error
        if len(lookup) < len(nodes):
            repeated = next(node for row, node in enumerate(nodes.tolist()) if lookup[node] != row)
            raise InputError(f"node ids must be unique, but {repeated!r} occurs more than once")
        return lookup
    if (nodes[1:] > nodes[:-1]).all():
        return None
    order = np.argsort(nodes, kind="stable")
    ordered = nodes[order]
    repeats = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeats):
        raise InputError(f"node ids must be unique, but {int(repeats[0])} occurs more than once")
    return order


def kernel_pairs(given: Any) -> tuple[tuple[str, float], ...]:
    try:
        pairs = tuple((name, float(parameter)) for name, parameter in given)
    except (TypeError, ValueError) as error:
        raise InputError(f"kernels: must be pairs of a name and a number, got {given!r}") from error
    if not all(isinstance(name, str) and np.isfinite(parameter) for name, parameter in pairs):
        raise InputError(f"kernels: must be pairs of a name and a finite number, got {given!r}")
    return pairs


def plain_json(given: Any) -> dict[str, Any]:
    """Return a mapping converted to JSON and back, so that it is the same before saving and after loading."""
    if not isinstance(given, Mapping):
        raise InputError(f"provenance: must be a mapping, got {type(given).__name__}")
    try:
        text = json.dumps(dict(given), allow_nan=False, default=_plain_numpy)
        plain: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"provenance: cannot be saved as JSON: {error}") from error
    return plain


def _plain_numpy(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} {value!r}")
