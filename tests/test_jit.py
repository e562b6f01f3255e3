"""Compiled code on disk: found again, forgotten when a part of its source changes, done without."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import sys
sys.path.insert(0, {folder!r})
from toy import user
assert user.double(1) == {expected}
print(sum(user.double.stats.cache_hits.values()))
"""
USER = """
from kernelne._jit import cached
from toy.parts import (
    helper,
)

@cached()
def double(x):
    return helper(x)
"""
HELPER = """
from numba import njit
from toy.parts.constants import FACTOR

@njit
def helper(x):
    return FACTOR * x
"""


def _hits(folder, expected):
    env = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    code = CODE.format(folder=str(folder), expected=expected)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    return int(result.stdout)


def test_cached_code_is_forgotten_when_a_part_of_it_changes(tmp_path):
    (tmp_path / "toy" / "parts").mkdir(parents=True)
    (tmp_path / "toy" / "__init__.py").touch()
    (tmp_path / "toy" / "user.py").write_text(USER)
    (tmp_path / "toy" / "unused.py").touch()
    (tmp_path / "toy" / "parts" / "__init__.py").write_text(HELPER)
    (tmp_path / "toy" / "parts" / "constants.py").write_text("FACTOR = 2")
    assert _hits(tmp_path, 2) == 0
    assert _hits(tmp_path, 2) == 1
    (tmp_path / "toy" / "unused.py").write_text("x = 1")
    assert _hits(tmp_path, 2) == 1
    (tmp_path / "toy" / "parts" / "constants.py").write_text("FACTOR = 3")  # two imports away
    assert _hits(tmp_path, 3) == 0
    assert _hits(tmp_path, 3) == 1


def test_digests_cover_what_the_training_loop_is_made_of():
    """A change of any of these must be seen; the list is of those that the loop inlines."""
    from kernelne import _jit

    module = "kernelne.training.cpu.loop"
    __import__(module)
    before = _jit.source_digest(module)
    read = _jit.Path.read_bytes
    for part in ("kernels", "rng", "sample", "negatives", "fast_math", "simd", "barrier"):
        _jit.source_digest.cache_clear()

        def altered(path, part=part):
            return read(path) + (b"\n" if path.stem == part else b"")

        _jit.Path.read_bytes = altered
        try:
            assert _jit.source_digest(module) != before, part
        finally:
            _jit.Path.read_bytes = read
    _jit.source_digest.cache_clear()
    assert _jit.source_digest(module) == before


def test_no_folder_to_cache_in_is_no_failure(tmp_path):
    code = (
        "import numba.core.caching as c\n"
        "def refuse(*args, **more): raise RuntimeError('cannot cache function: no locator available')\n"
        "c.FunctionCache.__init__ = refuse\n"
        "from kernelne._jit import cached\n"
        "from kernelne.graph.csr import count_loops\n"
        "import numpy as np\n"
        "print(count_loops(np.array([0, 1]), np.array([0], np.int32)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "1\n"


def test_compiled_code_lies_in_the_users_cache(tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    code = (
        "import numpy as np\n"
        "from kernelne.graph.csr import count_loops\n"
        "count_loops(np.array([0, 1]), np.array([0], np.int32))"
    )
    subprocess.run([sys.executable, "-c", code], env=env | {"KERNELNE_CACHE": str(tmp_path)}, check=True)
    assert list(tmp_path.glob("compiled/*/*/*.nbi"))
