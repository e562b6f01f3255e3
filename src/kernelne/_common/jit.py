"""Compilation with Numba, with a cache on disk that is valid until the sources change."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock

from kernelne._common.folders import user_folder
from kernelne.errors import warn

_DIGEST = 16  # bytes
#: An import at the top of a module; imports for type checkers only are indented and do not match.
_IMPORT = re.compile(rb"^from (\w[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)

if hasattr(os, "register_at_fork"):
    # A fork waits while another thread compiles: in the new process nobody would release that lock.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


def cached(**options: Any) -> Callable[..., Any]:
    """`njit` without the global lock, with a cache on disk.

    If no folder can be written, or others may write to it, functions are compiled without a cache. Numba
    invalidates a cached function only if its own file changes, although code of other modules is compiled
    into it. Therefore the cache folder is named after a hash of all their sources. A damaged file in it is
    written anew.
    """
    # Without a value, a function would be compiled with the option of the first function that calls it.
    options.setdefault("fastmath", False)
    options.setdefault("no_cfunc_wrapper", True)  # none is passed to other functions as a value

    def decorate(function: Callable[..., Any]) -> Any:
        before = numba.config.CACHE_DIR
        try:
            base = Path(before or user_folder() / "compiled")
            if not _is_private(base):
                return uncached(nogil=True, **options)(function)
            numba.config.CACHE_DIR = str(base / source_digest(function.__module__))
            compiled = uncached(cache=True, nogil=True, **options)(function)
            _Cache.guard(compiled)
            return compiled
        except (RuntimeError, OSError):  # no folder for the cache, or no source file
            return uncached(nogil=True, **options)(function)
        finally:
            numba.config.CACHE_DIR = before

    return decorate


def uncached(**options: Any) -> Callable[..., Any]:
    """`njit`, also where NUMBA_DISABLE_JIT is set: that is for debugging functions of one's own.

    The functions here use what only compiled code has.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        disabled = numba.config.DISABLE_JIT
        with _enabled():
            compiled = njit(**options)(function)
        if disabled:  # some versions of Numba look at it once more when they compile
            plain = compiled.compile

            def compile_enabled(signature: Any) -> Any:
                with _enabled():
                    return plain(signature)

            compiled.compile = compile_enabled
        return compiled

    return decorate


@contextmanager
def _enabled() -> Iterator[None]:
    before = numba.config.DISABLE_JIT
    numba.config.DISABLE_JIT = 0
    try:
        yield
    finally:
        numba.config.DISABLE_JIT = before


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """The files of a function's cache, each with a hash at its end: a flipped bit may be in the code."""

    def _load_index(self) -> dict[Any, str]:
        return super()._load_index() if _is_whole(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        return super()._load_data(name) if _is_whole(self._data_path(name)) else None

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[Any]:
        with super()._open_for_write(filepath) as file:
            hashed = _Hashed(file)
            yield hashed
            file.write(hashed.total.digest())  # Numba reads no further than its own content


class _Hashed:
    """A file to write to, and the hash of what is written."""

    def __init__(self, file: Any) -> None:
        self.file, self.total = file, hashlib.blake2b(digest_size=_DIGEST)

    def write(self, data: Any) -> None:
        self.total.update(data)
        self.file.write(data)


def _is_whole(path: str) -> bool:
    """Whether a file ends with the hash of what comes before."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return False
    return hashlib.blake2b(data[:-_DIGEST], digest_size=_DIGEST).digest() == data[-_DIGEST:]


class _Cache(FunctionCache):  # type: ignore[misc]
    """A function's cache that is left aside when anything about it fails: the function is compiled then."""

    @classmethod
    def guard(cls, compiled: Any) -> None:
        """Make the cache of a compiled function one of these."""
        cache = compiled._cache
        if type(cache) is FunctionCache and type(cache._cache_file) is IndexDataCacheFile:
            cache.__class__, cache._cache_file.__class__ = cls, _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling and linking raise anything
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:  # a full disk, a folder that is gone
            self.disable()


@cache
def _is_private(folder: Path) -> bool:
    """Whether only this user may write to a folder, which is made if it is missing: it holds code to run."""
    if not hasattr(os, "getuid"):  # Windows: the folder lies in the user's profile
        return True
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    if status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    warn(f"{folder}: compiled code is not kept there, as others may write to it: chmod 700 it if it is yours")
    return False


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
