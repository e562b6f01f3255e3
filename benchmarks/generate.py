"""Random graphs for the benchmarks, made with NumPy: edges (m, 2) int64, each pair once, no self-loops."""

from __future__ import annotations

from typing import Any

import numpy as np


def erdos_renyi(n: int = 3000, degree: float = 5.0, seed: int = 0) -> tuple[Any, Any]:
    """Return about n · degree / 2 edges between uniformly drawn nodes; no labels."""
    rng = np.random.default_rng(seed)
    return _simple(rng.integers(n, size=(_half(n, degree), 2)), n), None


def planted(
    n: int = 3000, groups: int = 6, degree: float = 5.0, inside: float = 0.8, seed: int = 0
) -> tuple[Any, Any]:
    """Return edges, of which a share `inside` is within groups, and the groups as labels (n, groups)."""
    rng = np.random.default_rng(seed)
    sources, targets = rng.integers(n, size=(2, _half(n, degree)))
    within = rng.random(len(sources)) < inside
    targets = np.where(within, targets - targets % groups + sources % groups, targets)
    edges = np.column_stack([sources, targets])[targets < n]
    return _simple(edges, n), np.arange(n)[:, None] % groups == np.arange(groups)


def power_law(n: int = 3000, degree: float = 5.0, exponent: float = 2.5, seed: int = 0) -> tuple[Any, Any]:
    """Return edges whose expected degrees follow a power law; node numbers in random order; no labels."""
    rng = np.random.default_rng(seed)
    cumulative = np.cumsum(rng.permutation(np.arange(1, n + 1) ** (-1.0 / (exponent - 1.0))))
    draws = rng.random((_half(n, degree), 2)) * cumulative[-1]
    return _simple(np.searchsorted(cumulative, draws).clip(0, n - 1), n), None


GENERATORS = {f.__name__: f for f in (erdos_renyi, planted, power_law)}


def generate(description: str) -> tuple[int, Any, Any]:
    """Return (n, edges, labels) of NAME:key=value,…"""
    name, _, rest = description.partition(":")
    if name not in GENERATORS:
        raise SystemExit(f"--generate {name}: known are {', '.join(GENERATORS)}")
    given = dict(item.split("=") for item in rest.split(",") if item)
    options = {key: float(value) if "." in value else int(value) for key, value in given.items()}
    return options.get("n", 3000), *GENERATORS[name](**options)


def _half(n: int, degree: float) -> int:
    return round(n * degree / 2)


def _simple(edges: Any, n: int) -> Any:
    low, high = edges.min(axis=1), edges.max(axis=1)
    codes = np.unique((low * n + high)[low != high])
    return np.column_stack([codes // n, codes % n])
