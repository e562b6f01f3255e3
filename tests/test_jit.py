"""Compiled code on disk: found again, forgotten when a part of its source changes, done without."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import sys
sys.path.insert(0, {folder!r})
from kernelne import _jit
_jit._HERE = __import__("pathlib").Path({folder!r})
import user
user.double(1)
print(sum(user.double.stats.cache_hits.values()))
"""
USER = """
from kernelne._jit import cached

@cached(compiled_in=("part.py",))
def double(x):
    return 2 * x
"""


def _hits(folder):
    env = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    code = CODE.format(folder=str(folder))
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    return int(result.stdout)


def test_cached_code_is_forgotten_when_a_part_of_it_changes(tmp_path):
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "part.py").write_text("x = 1")
    assert _hits(tmp_path) == 0
    assert _hits(tmp_path) == 1
    (tmp_path / "part.py").write_text("x = 2")
    assert _hits(tmp_path) == 0
    assert _hits(tmp_path) == 1


def test_no_folder_to_cache_in_is_no_failure(tmp_path):
    code = (
        "import numba.core.caching as c\n"
        "def refuse(*args, **more): raise RuntimeError('cannot cache function: no locator available')\n"
        "c.FunctionCache.__init__ = refuse\n"
        "from kernelne import KernelNE\n"
        "print(KernelNE(dim=4, walks_per_node=1, random_state=0).fit([(0, 1)]).embedding_.shape)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "(2, 4)\n"
