"""How threads share blocks of walks in compiled code; synchronising in Python takes longer than a block.

All threads of a run wait at a barrier until a block is announced, take its walks a few at a time from one
counter, and meet again when it is done. An empty block means that there are no more.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from kernelne._common.jit import uncached

_ORDER = "seq_cst"
#: How often to look before offering the core to others, and how often before sleeping in between.
_SPINS, _PATIENCE = 2_000, 40_000
_MOMENT = 1 if os.name == "nt" else 200  # milliseconds there, microseconds elsewhere

_sleep = types.ExternalFunction(
    "Sleep" if os.name == "nt" else "usleep", (types.void if os.name == "nt" else types.int32)(types.uint32)
)
_yield_core = types.ExternalFunction("SwitchToThread" if os.name == "nt" else "sched_yield", types.int32())


# Positions in the state of a barrier, on separate cache lines: number of threads that have arrived, number of
# rounds in which all have, whether the work was given up, the next walk of the block, its first and last.
_ARRIVED, _ROUND, _GIVEN_UP, _NEXT, _FIRST, _LAST = 0, 16, 32, 48, 64, 65


def make_barrier() -> NDArray[np.int64]:
    """Return the state of a new barrier."""
    return np.zeros(80, np.int64)


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


@uncached(nogil=True, _nrt=False)
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
        if spins > _PATIENCE:
            _sleep(np.uint32(_MOMENT))
        elif spins > _SPINS:  # a thread that has not arrived may need this core
            _yield_core()
    return not _load(barrier, _GIVEN_UP)


def announce(barrier: NDArray[np.int64], first: int, last: int) -> None:
    """Set walks first … last − 1 as the block for which threads wait in `next_block`; none: the end."""
    barrier[_FIRST], barrier[_NEXT], barrier[_LAST] = first, first, last


@uncached(nogil=True, _nrt=False)
def next_block(barrier: Any, n_threads: Any) -> Any:
    """Wait until all threads are ready for a block; returns its first and last walk, equal at the end."""
    if not wait_for_all(barrier, n_threads):
        return 0, 0
    return _load(barrier, _FIRST), _load(barrier, _LAST)


@uncached(nogil=True, _nrt=False)
def take(barrier: Any, count: Any) -> Any:
    """Take the next walks of the block; returns the first of them."""
    return _add(barrier, _NEXT, count)


def given_up(barrier: NDArray[np.int64]) -> bool:
    return bool(barrier[_GIVEN_UP])


def give_up(barrier: NDArray[np.int64]) -> None:
    """Make all threads return from `wait_for_all`, because one of them has failed."""
    barrier[_GIVEN_UP] = 1
