"""The kernels: value and derivative as functions of the squared distance D.

Each kernel is defined once. The same Python functions are used by the float64 reference (NumPy arrays), the
CPU loop (compiled by Numba, where `exp` and `log` become vectorisable float32 polynomials) and the GPU loop
(compiled by Triton). To add a kernel, write one function of +, −, ·, /, `exp`, `log`, `ONE` and `HALF`, and
add it to `BUILT_IN`: the reference, the training loops, the parameter checks and the tests read that table.

Constants are float32 scalars so that float32 input stays float32; float64 input stays float64. A division by
σ² is written as a product with σ/σ³, which has σ's precision and is computed once, not for every distance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from kernelne.errors import ParameterError

ONE = np.float32(1.0)
HALF = np.float32(0.5)


def exp(x: Any) -> Any:
    """e^x; the CPU backend replaces it by a polynomial that can be vectorised."""
    return np.exp(x)


def log(x: Any) -> Any:
    """Natural logarithm of x ≥ 1; the CPU backend replaces it by a polynomial that can be vectorised."""
    return np.log(x)


def sqrt(x: Any) -> Any:
    """Square root; for kernels of one's own."""
    return np.sqrt(x)


def maximum(x: Any, y: Any) -> Any:
    """The larger of two numbers; for kernels of one's own."""
    return np.maximum(x, y)


def minimum(x: Any, y: Any) -> Any:
    """The smaller of two numbers; for kernels of one's own."""
    return np.minimum(x, y)


def gaussian(D: Any, sigma: Any) -> tuple[Any, Any]:
    """k(D) = exp(−D/σ²), k′(D) = −k/σ²."""
    inverse = sigma / (sigma * sigma * sigma)
    value = exp(-D * inverse)
    return value, -value * inverse


def schoenberg(D: Any, sigma: Any) -> tuple[Any, Any]:
    """k(D) = (1 + D)^−σ, k′(D) = −σ·k/(1 + D)."""
    base = ONE + D
    value = exp(-sigma * log(base))
    return value, -sigma * value * (ONE / base)


def inverse_multiquadric(D: Any, sigma: Any) -> tuple[Any, Any]:
    """k(D) = (1 + D/σ²)^−½, k′(D) = −½·k³/σ². Its tail is long: use σ near 0.25; 1 hardly separates nodes."""
    inverse = sigma / (sigma * sigma * sigma)
    base = ONE + D * inverse
    value = exp(-HALF * log(base))  # 1/√ is approximate on some CPUs, and k(0) would not be 1
    return value, -HALF * value * inverse * (ONE / base)


KernelFunction = Callable[[Any, Any], tuple[Any, Any]]

BUILT_IN: dict[str, KernelFunction] = {
    "gaussian": gaussian,
    "schoenberg": schoenberg,
    "inverse_multiquadric": inverse_multiquadric,
}
#: Name → function, with those of `register_kernel`.
KERNELS: dict[str, KernelFunction] = dict(BUILT_IN)
#: Checks of registered kernels at the σ that is used; raise a ParameterError.
OWN_CHECKS: dict[str, Callable[[float], None]] = {}
#: Registered functions in compiled code, by the key of `own_key`.
_compiled: dict[str, list[KernelFunction]] = {}


def _own(names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name not in BUILT_IN})


def own_hashes(names: Iterable[str]) -> dict[str, str]:
    """Return a hash of the function of each of these kernels that is not built in, by name."""
    # The file of a registered function holds the hash of its text: see `own_kernels`.
    return {name: KERNELS[name].__code__.co_filename.strip("<>").split()[-1] for name in _own(names)}


def own_key(names: Iterable[str]) -> str | None:
    """Return a key of the registered functions among these kernels; None if all are built in.

    Compiled loops contain the kernels they know: the built-in ones, then those of their key.
    """
    hashes = own_hashes(names)
    if not hashes:
        return None
    key = hashlib.blake2b(repr(sorted(hashes.items())).encode(), digest_size=8).hexdigest()
    _compiled[key] = [KERNELS[name] for name in hashes]
    return key


def kinds_of(names: Iterable[str]) -> list[int]:
    """Return the numbers of kernels in the compiled code of `own_key(names)`."""
    names = list(names)
    known = [*BUILT_IN, *_own(names)]
    return [known.index(name) for name in names]


def known_to(module: str) -> list[KernelFunction]:
    """Return the kernels of a module's compiled code, with those of its key if it is a variant."""
    return [*BUILT_IN.values(), *_compiled.get(module.partition("+")[2], [])]


def check_kernels(
    kernels: Iterable[tuple[str, float]], parameter: str = "kernels"
) -> tuple[tuple[str, float], ...]:
    """Return the (name, σ) pairs with σ as float; raises a ParameterError if they are invalid.

    parameter: what errors call them; if names and σ are parameters of their own, both: "kernel, sigma".
    """
    kernel, _, own_sigma = parameter.partition(", ")
    try:
        pairs = [(name, sigma) for name, sigma in kernels]
    except (TypeError, ValueError):
        raise ParameterError(
            parameter, kernels, 'give (name, sigma) pairs, for example (("gaussian", 1.0), ("gaussian", 2.0))'
        ) from None
    if not pairs:
        raise ParameterError(parameter, kernels, "give at least one (name, sigma) pair")
    for name, sigma in pairs:
        if not isinstance(name, str) or name not in KERNELS:
            raise ParameterError(
                kernel,
                name,
                f"unknown kernel; known are {', '.join(KERNELS)}; register_kernel adds others",
            )
        if (
            isinstance(sigma, bool)
            or not isinstance(sigma, int | float | np.number)
            or not 1e-3 <= sigma <= 1e3
        ):
            raise ParameterError(
                own_sigma or parameter,
                sigma if own_sigma else f"{name}:{sigma}",
                "sigma must be a positive number between 0.001 and 1000",
            )
        if name in OWN_CHECKS:
            OWN_CHECKS[name](float(sigma))
    return tuple((name, float(sigma)) for name, sigma in pairs)
