"""A barrier for threads in compiled code; synchronising in Python takes longer than a chunk of walks."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

_ORDER = "seq_cst"
_SPINS = 2_000

_yield_core = types.ExternalFunction("SwitchToThread" if os.name == "nt" else "sched_yield", types.int32())


# Positions in the state of a barrier, on separate cache lines: number of threads that have arrived, number of
# rounds in which all have, and whether the work was given up.
_ARRIVED, _ROUND, _GIVEN_UP = 0, 16, 32


def make_barrier() -> NDArray[np.int64]:
    """Return the state of a new barrier."""
    return np.zeros(48, np.int64)


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    return builder.gep(data, [args[1]])


@intrinsic
def _add(typingctx: Any, array: Any, at: Any, value: Any) -> Any:
    """Atomic array[at] += value; returns the old value."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _pointer(context, builder, signature, args), args[2], _ORDER)

    return types.int64(array, types.int64, types.int64), codegen


@intrinsic
def _load(typingctx: Any, array: Any, at: Any) -> Any:
    """Atomic load of array[at], which other threads may have written."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _pointer(context, builder, signature, args)
        try:
            return builder.load_atomic(place, _ORDER, 8, typ=ir.IntType(64))
        except TypeError:  # llvmlite before 0.44 takes the type from the pointer
            return builder.load_atomic(place, _ORDER, 8)

    return types.int64(array, types.int64), codegen


@njit(nogil=True, _nrt=False)
def wait_for_all(barrier: Any, n_threads: Any) -> Any:
    """Wait until n_threads threads have called this; returns False if the work was given up, else True."""
    round_before = _load(barrier, _ROUND)
    if _add(barrier, _ARRIVED, 1) == n_threads - 1:
        _add(barrier, _ARRIVED, -n_threads)
        _add(barrier, _ROUND, 1)
    spins = 0
    while _load(barrier, _ROUND) == round_before:
        if _load(barrier, _GIVEN_UP):
            return False
        spins += 1
        if spins > _SPINS:  # a thread that has not arrived may need this core
            _yield_core()
    return not _load(barrier, _GIVEN_UP)


def give_up(barrier: NDArray[np.int64]) -> None:
    """Make all threads return from `wait_for_all`, because one of them has failed."""
    barrier[_GIVEN_UP] = 1
