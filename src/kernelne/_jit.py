"""Compilation with Numba, with a cache on disk that is valid until the sources change."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import njit

#: An import at the top of a module; imports for type checkers only are indented and do not match.
_IMPORT = re.compile(rb"^from (\w[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)


def cached(**options: Any) -> Callable[..., Any]:
    """`njit` without the global lock, with a cache on disk.

    If no folder can be written, functions are compiled without a cache. Numba invalidates a cached function
    only if its own file changes, although code of other modules is compiled into it. Therefore the cache
    folder is named after a hash of all their sources.
    """
    # Without a value, a function would be compiled with the option of the first function that calls it.
    options.setdefault("fastmath", False)

    def decorate(function: Callable[..., Any]) -> Any:
        before = numba.config.CACHE_DIR
        try:
            numba.config.CACHE_DIR = str(Path(before or _user_folder()) / source_digest(function.__module__))
            return njit(cache=True, nogil=True, **options)(function)
        except (RuntimeError, OSError):  # no folder for the cache, or no source file
            return njit(nogil=True, **options)(function)
        finally:
            numba.config.CACHE_DIR = before

    return decorate


def _user_folder() -> Path:
    """The folder for compiled code, below the user's cache folder."""
    if kept := os.environ.get("KERNELNE_CACHE"):
        return Path(kept) / "compiled"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "kernelne" / "compiled"


@cache
def source_digest(module: str) -> str:
    """Hash of the sources of a module and of all modules of its package that it imports, also indirectly.

    The key of a variant is part of it.
    """
    module, _, key = module.partition("+")
    package = module.partition(".")[0]
    root = Path(str(sys.modules[package].__file__)).parent
    sources: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = root.joinpath(*name.split(".")[1:])
        file = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
        if name in sources or not file.exists():
            continue
        sources[name] = file.read_bytes()
        for origin, names in _IMPORT.findall(sources[name]):
            found = origin.decode()
            if found.partition(".")[0] == package:
                waiting += [found, *(f"{found}.{leaf.decode()}" for leaf in re.findall(rb"\w+", names))]
    total = hashlib.blake2b(key.encode(), digest_size=12)
    for name in sorted(sources):
        total.update(name.encode() + b"\0" + sources[name] + b"\0")
    return total.hexdigest()
