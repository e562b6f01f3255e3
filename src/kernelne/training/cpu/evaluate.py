"""Kernels in compiled code: a function that evaluates any of them at many squared distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelne._common.jit import uncached
from kernelne.model.kernels import known_to
from kernelne.training.cpu import fast_math  # noqa: F401  (registers the kernels' exp and log)

#: Fast arithmetic that keeps infinities and NaN, so that divergence is detected.
FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}

#: Decorator for parts of a cached function. They are always inlined: the rounding of fast arithmetic depends
#: on the optimiser, and a call would use the copy of the function that the process optimised first. They
#: cannot be called from Python: what that needs would take a sixth of the time of compiling.
compiled = uncached(
    nogil=True, error_model="numpy", fastmath=FAST, _nrt=False, forceinline=True, no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
)  # fmt: skip


def _link(kind: int, function: Any, otherwise: Any) -> Any:
    """Return `evaluate` for kernel `kind`, which calls `otherwise` for others: no branch inside the loop."""

    @compiled
    def evaluate(wanted: Any, sigma: Any, D: Any, values: Any, slopes: Any) -> None:
        if wanted == kind:
            for t in range(D.size):
                values[t], slopes[t] = function(D[t], sigma)
        else:
            otherwise(wanted, sigma, D, values, slopes)

    return evaluate


@compiled
def _unknown(wanted: Any, sigma: Any, D: Any, values: Any, slopes: Any) -> None:
    values[:] = np.float32(np.nan)


def evaluator(module: str) -> Any:
    """Return the function that writes values and slopes of a kernel, for the kernels known to a module."""
    evaluate = _unknown
    for kind, function in enumerate(known_to(module)):
        evaluate = _link(kind, compiled(function), evaluate)
    return evaluate
