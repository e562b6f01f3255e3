"""Checks of what an Embedding is made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne.errors import InputError


def finite_array(name: str, given: Any, dtype: Any, ndim: int) -> Any:
    """`given` as a finite, contiguous array of the dtype, not copied if it is one already."""
    try:
        array = np.asarray(given)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"{name}: not an array: {error}") from error
    if array.ndim != ndim or array.dtype.kind not in "fiu":
        raise InputError(
            f"{name}: {ndim} dimensions of real numbers are needed, given {array.ndim} of {array.dtype}"
        )
    with np.errstate(over="ignore"):  # what overflows is not finite, and reported as such
        array = np.ascontiguousarray(array, dtype=dtype)
    if not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0].tolist()
        raise InputError(f"{name}: not a finite {np.dtype(dtype)} at row {', column '.join(map(str, place))}")
    return array


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The array if it is read-only, else a view of it that is: who has the array itself may still write."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def make_lookup(nodes: NDArray[Any]) -> dict[Any, int] | NDArray[np.int64] | None:
    """How to find an id: a dict for objects, the sorting order for integers (None: they are sorted).

    A dict of integers would take more memory than the vectors do in low dimensions.
    """
    if nodes.dtype == object:
        try:
            lookup = {node: row for row, node in enumerate(nodes.tolist())}
        except TypeError as error:
            raise InputError(f"node ids must be hashable: {error}") from error
        if len(lookup) < len(nodes):
            repeated = next(node for row, node in enumerate(nodes.tolist()) if lookup[node] != row)
            raise InputError(f"node ids must be different, {repeated!r} is there more than once")
        return lookup
    if (nodes[1:] > nodes[:-1]).all():
        return None
    order = np.argsort(nodes, kind="stable")
    ordered = nodes[order]
    repeats = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeats):
        raise InputError(f"node ids must be different, {int(repeats[0])} is there more than once")
    return order


def kernel_pairs(given: Any) -> tuple[tuple[str, float], ...]:
    try:
        pairs = tuple((name, float(parameter)) for name, parameter in given)
    except (TypeError, ValueError) as error:
        raise InputError(f"kernels: pairs of a name and a number are needed, given {given!r}") from error
    if not all(isinstance(name, str) and np.isfinite(parameter) for name, parameter in pairs):
        raise InputError(f"kernels: pairs of a name and a finite number are needed, given {given!r}")
    return pairs


def plain_json(given: Any) -> dict[str, Any]:
    """What JSON makes of a mapping, so that it is the same before saving and after loading."""
    if not isinstance(given, Mapping):
        raise InputError(f"provenance: a mapping is needed, given {type(given).__name__}")
    try:
        text = json.dumps(dict(given), allow_nan=False, default=_plain_numpy)
        plain: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"provenance: JSON cannot hold it: {error}") from error
    return plain


def _plain_numpy(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} {value!r}")
