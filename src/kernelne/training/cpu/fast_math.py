"""The functions of `kernels` for Numba: float32 polynomials, which LLVM can vectorise, unlike math.exp."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic, overload

from kernelne.model import kernels

_F = np.float32
_ONE, _HALF, _LOWEST = _F(1.0), _F(0.5), _F(-87.0)
_LOG2E = _F(1.44269504)
# ln 2 in two parts, so that subtracting a multiple of it keeps all bits.
_LN2_HIGH, _LN2_LOW = _F(0.693359375), _F(-2.12194440e-4)
# Minimax coefficients of (e^r − 1 − r)/r² on |r| ≤ ln 2 / 2, highest power first.
_E0, _E1, _E2 = _F(1.9875691e-4), _F(1.3981999e-3), _F(8.3334519e-3)
_E3, _E4, _E5 = _F(4.1665796e-2), _F(1.6666665e-1), _F(0.5)
# Minimax coefficients of (ln(1 + r) − r + r²/2)/r³ on 1 + r in (√½, √2], highest power first.
_L0, _L1, _L2 = _F(7.0376836e-2), _F(-1.1514610e-1), _F(1.1676999e-1)
_L3, _L4, _L5 = _F(-1.2420141e-1), _F(1.4249323e-1), _F(-1.6668058e-1)
_L6, _L7, _L8 = _F(2.0000715e-1), _F(-2.4999994e-1), _F(3.3333331e-1)
_BIAS, _SHIFT = np.int32(127), np.int32(23)
_ABOVE_ROOT_HALF = np.int32(0x3F3504F4)  # the bits of the first float32 above √½


def _reinterpret(source: Any, target: Any) -> Any:
    """Return an intrinsic that reinterprets the bits of one 32-bit type as another."""

    @intrinsic
    def cast(typingctx: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(target))

        return target(source), codegen

    return cast


_as_float = _reinterpret(types.int32, types.float32)
_as_bits = _reinterpret(types.float32, types.int32)


@overload(kernels.exp, inline="always")
def _exp(x: Any) -> Any:
    """e^x for float32 x ≤ 88, relative error below 4e-7; e^−87 for anything smaller."""

    def polynomial(x: Any) -> Any:
        x = max(x, _LOWEST)
        power = np.floor(x * _LOG2E + _HALF)
        r = x - power * _LN2_HIGH - power * _LN2_LOW
        y = ((((_E0 * r + _E1) * r + _E2) * r + _E3) * r + _E4) * r + _E5
        return (y * r * r + r + _ONE) * _as_float((np.int32(power) + _BIAS) << _SHIFT)

    return polynomial


@overload(kernels.log, inline="always")
def _log(x: Any) -> Any:
    """ln x for float32 x ≥ 1, error below 4e-7 of max(1, ln x)."""

    def polynomial(x: Any) -> Any:
        bits = _as_bits(x)
        power_of_two = (bits - _ABOVE_ROOT_HALF) >> _SHIFT  # x = 2^power · (1 + r), 1 + r in (√½, √2]
        power = np.float32(power_of_two)
        r = _as_float(bits - (power_of_two << _SHIFT)) - _ONE
        y = (((_L0 * r + _L1) * r + _L2) * r + _L3) * r + _L4
        y = (((y * r + _L5) * r + _L6) * r + _L7) * r + _L8
        return r - _HALF * r * r + y * r * r * r + power * _LN2_LOW + power * _LN2_HIGH

    return polynomial


@overload(kernels.sqrt, inline="always")
def _sqrt(x: Any) -> Any:
    def root(x: Any) -> Any:
        return np.sqrt(x)

    return root


@overload(kernels.maximum, inline="always")
def _maximum(x: Any, y: Any) -> Any:
    def largest(x: Any, y: Any) -> Any:
        return max(x, y)

    return largest


@overload(kernels.minimum, inline="always")
def _minimum(x: Any, y: Any) -> Any:
    def smallest(x: Any, y: Any) -> Any:
        return min(x, y)

    return smallest
