"""Checks that several parts share: of parameters, and of what the machine has."""

from __future__ import annotations

import math
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from kernelne.errors import ParameterError


def check_count(name: str, value: Any, most: int | None = None) -> None:
    """Raise a ParameterError unless `value` is a whole number from 1 to `most` (None: to 2³¹ − 1)."""
    good = isinstance(value, Integral) and not isinstance(value, bool)
    if not good or not 1 <= value <= (2**31 - 1 if most is None else most):
        limit = "at least 1" if most is None else f"from 1 to {most}, the number of nodes"
        raise ParameterError(name, value, f"must be a whole number, {limit}")


def check_number(name: str, value: Any, *, positive: bool) -> None:
    """Raise a ParameterError unless `value` is a finite number above zero or, if not `positive`, zero too."""
    good = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not good or value < 0 or (positive and value == 0):
        raise ParameterError(
            name, value, f"must be a {'positive number' if positive else 'number, at least 0'}"
        )


def available_bytes() -> int | None:
    """Memory that can be had without swapping, where the system tells."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
