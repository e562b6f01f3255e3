"""Checks of parameters that several parts share."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from kernelne.errors import ParameterError


def check_count(name: str, value: Any, most: int | None = None) -> None:
    """Raise a ParameterError unless `value` is a whole number from 1 to `most` (None: to 2³¹ − 1)."""
    good = isinstance(value, Integral) and not isinstance(value, bool)
    if not good or not 1 <= value <= (2**31 - 1 if most is None else most):
        limit = "at least 1" if most is None else f"from 1 to {most}, the number of nodes"
        raise ParameterError(name, value, f"must be a whole number, {limit}")
