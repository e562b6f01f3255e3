"""Compiled functions, kept on disk where there is a place for them, until their sources change."""

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

#: An import at the top of a module; those for type checkers alone are indented.
_IMPORT = re.compile(rb"^from (\w[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)


def cached(**options: Any) -> Callable[..., Any]:
    """`njit` without the global lock, cached on disk; a missing folder for that is no reason to fail.

    Numba forgets a cached function when its own file changes, and only then, although the code of other
    modules becomes part of it. So the folder of the cache is named after the sources of them all.
    """
    # Or it would be that of the function which happened to need it first.
    options.setdefault("fastmath", False)

    def decorate(function: Callable[..., Any]) -> Any:
        before = numba.config.CACHE_DIR
        try:
            numba.config.CACHE_DIR = str(Path(before or _user_folder()) / source_digest(function.__module__))
            return njit(cache=True, nogil=True, **options)(function)
        except (RuntimeError, OSError):  # no folder to cache in, or no source file to look at
            return njit(nogil=True, **options)(function)
        finally:
            numba.config.CACHE_DIR = before

    return decorate


def _user_folder() -> Path:
    """The folder for compiled code, below the user's folder for what can be made again."""
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
    """Hash of the sources of a module and of all that it imports, directly or not, from its own package."""
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
    total = hashlib.blake2b(digest_size=12)
    for name in sorted(sources):
        total.update(name.encode() + b"\0" + sources[name] + b"\0")
    return total.hexdigest()
