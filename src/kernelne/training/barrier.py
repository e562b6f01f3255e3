"""A barrier for threads inside compiled code: to hand over in Python takes longer than a chunk of walks."""

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


def make_barrier() -> NDArray[np.int64]:
    """State of a barrier: threads that have arrived, and how often all have. On cache lines of their own."""
    return np.zeros(32, np.int64)


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    return builder.gep(data, [args[1]])


@intrinsic
def _add(typingctx: Any, array: Any, at: Any, value: Any) -> Any:
    """array[at] += value, in one step; returns what was there before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _pointer(context, builder, signature, args), args[2], _ORDER)

    return types.int64(array, types.int64, types.int64), codegen


@intrinsic
def _load(typingctx: Any, array: Any, at: Any) -> Any:
    """array[at], as other threads left it last."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature, args), _ORDER, 8, typ=ir.IntType(64))

    return types.int64(array, types.int64), codegen


@njit(nogil=True, _nrt=False)
def wait_for_all(barrier: Any, n_threads: Any) -> None:
    """Return once n_threads threads have called this as often as the caller has."""
    round_before = _load(barrier, 16)
    if _add(barrier, 0, 1) == n_threads - 1:
        _add(barrier, 0, -n_threads)
        _add(barrier, 16, 1)
        return
    spins = 0
    while _load(barrier, 16) == round_before:
        spins += 1
        if spins > _SPINS:  # somebody else may need this core to arrive
            _yield_core()
