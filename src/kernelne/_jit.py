"""Compiled functions, kept on disk where there is a place for them, until their sources change."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

_HERE = Path(__file__).parent


def cached(*, compiled_in: tuple[str, ...] = (), key: object = None, **options: Any) -> Callable[..., Any]:
    """`njit` without the global lock, cached on disk; to have no folder for that is no reason to fail.

    Numba forgets a cached function when its own file changes, and only then. `compiled_in` names the modules
    whose code becomes part of it, `key` whatever else decides what it compiles to.
    """
    # Or it would be that of the function which happened to need it first.
    options.setdefault("fastmath", False)

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            compiled = njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # no folder to cache in
            return njit(nogil=True, **options)(function)
        index = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
        if compiled_in and index is not None:
            index._source_stamp = (index._source_stamp, _digest(compiled_in), key)
        return compiled

    return decorate


def _digest(modules: tuple[str, ...]) -> str:
    """Hash of the sources of modules, named by their path inside the package."""
    digest = hashlib.blake2b(digest_size=16)
    for name in modules:
        digest.update((_HERE / name).read_bytes())
    return digest.hexdigest()
