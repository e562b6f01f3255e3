"""Compiled code on disk: found again, forgotten when a part of its source changes, done without."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import stat
import subprocess
import sys

import pytest

CODE = """
import sys

import pytest
sys.path.insert(0, {folder!r})
from toy import user
assert user.double(1) == {expected}
print(sum(user.double.stats.cache_hits.values()))
"""
USER = """
from kernelne._common.jit import cached
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
    from kernelne._common import jit

    module = "kernelne.training.cpu.loop"
    __import__(module)
    before = jit.source_digest(module)
    read = jit.Path.read_bytes
    for part in ("kernels", "rng", "sample", "negatives", "fast_math", "simd", "barrier"):
        jit.source_digest.cache_clear()

        def altered(path, part=part):
            return read(path) + (b"\n" if path.stem == part else b"")

        jit.Path.read_bytes = altered
        try:
            assert jit.source_digest(module) != before, part
        finally:
            jit.Path.read_bytes = read
    jit.source_digest.cache_clear()
    assert jit.source_digest(module) == before


def test_no_folder_to_cache_in_is_no_failure(tmp_path):
    code = (
        "import numba.core.caching as c\n"
        "def refuse(*args, **more): raise RuntimeError('cannot cache function: no locator available')\n"
        "c.FunctionCache.__init__ = refuse\n"
        "from kernelne._common.jit import cached\n"
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


TOY = "import numpy as np\nfrom kernelne.graph.csr import count_loops\n"
TOY += "n = count_loops(np.array([0, 1]), np.array([0], np.int32))\n"
TOY += "print(n, sum(count_loops.stats.cache_hits.values()))"


def _run(folder, **more):
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    env |= {"KERNELNE_CACHE": str(folder)} | more
    return subprocess.run([sys.executable, "-c", TOY], capture_output=True, text=True, env=env)


@pytest.fixture(scope="module")
def made_before(tmp_path_factory):
    """A cache folder with the compiled function."""
    folder = tmp_path_factory.mktemp("cache")
    assert _run(folder).stdout == "1 0\n"
    assert _run(folder).stdout == "1 1\n"
    return folder


@pytest.fixture
def cache(made_before, tmp_path):
    return shutil.copytree(made_before, tmp_path / "cache")


def _damage(kind, data):
    if kind == "flipped":
        middle = len(data) // 2
        return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    return {"empty": b"", "truncated": data[: len(data) // 2], "foreign": b"PK\x03\x04 not ours"}[kind]


KINDS = ["empty", "truncated", "flipped", "foreign"]
#: A function for each kind of damage to its index and to its code.
MANY = """
import sys
from kernelne._common.jit import cached

sys.path.insert(0, {folder!r})
import many
print(*(many.__dict__[name](1) for name in {names}))
print(*(sum(many.__dict__[name].stats.cache_hits.values()) for name in {names}))
"""


def test_damaged_caches_are_rebuilt(tmp_path):
    """All at once, as starting a process takes longest; each function has files of its own."""
    names = {f"{kind}_{suffix}": (kind, suffix) for kind in KINDS for suffix in ("nbi", "nbc")}
    functions = [f"@cached()\ndef {name}(x):\n    return x + {i}\n" for i, name in enumerate(names)]
    (tmp_path / "many.py").write_text("from kernelne._common.jit import cached\n\n" + "\n".join(functions))
    code = MANY.format(folder=str(tmp_path), names=list(names))
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    env["KERNELNE_CACHE"] = str(tmp_path / "cache")

    def run():
        made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
        assert made.stderr == ""
        values, hits = made.stdout.splitlines()
        assert values == " ".join(str(1 + i) for i in range(len(names)))
        return hits.split()

    assert set(run()) == {"0"}
    assert set(run()) == {"1"}
    for name, (kind, suffix) in names.items():
        files = list((tmp_path / "cache").glob(f"compiled/**/*.{name}-*.{suffix}"))
        assert files
        for file in files:
            file.write_bytes(_damage(kind, file.read_bytes()))
    assert set(run()) == {"0"}
    assert set(run()) == {"1"}


def test_a_file_of_another_function_is_not_run(cache):
    """Whatever lies under a name with a right hash, but cannot be unpickled or linked, is compiled anew."""
    for file in cache.glob("compiled/**/*.nbc"):
        content = pickle.dumps(("not", "code"))
        file.write_bytes(content + hashlib.blake2b(content, digest_size=16).digest())
    assert _run(cache).stdout == "1 0\n"
    assert _run(cache).stdout == "1 1\n"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_to_is_not_used(cache, mode):
    assert stat.S_IMODE((cache / "compiled").stat().st_mode) == 0o700
    (cache / "compiled").chmod(mode)
    result = _run(cache)
    assert result.stdout == "1 0\n"
    assert "compiled code is not kept there" in result.stderr
    (cache / "compiled").chmod(0o755)
    assert _run(cache).stdout == "1 1\n"


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="needs the right to give files away"
)
def test_a_folder_of_someone_else_is_not_used(cache):
    os.chown(cache / "compiled", 12345, 12345)
    assert _run(cache).stdout == "1 0\n"


def test_a_disk_that_fills_up_is_no_failure(tmp_path):
    code = TOY.replace("from kernelne", "import kernelne._common.jit as j\n"
                       "def full(*a): raise OSError(28, 'full')\n"
                       "j._Hashed.write = full\nfrom kernelne", 1)  # fmt: skip
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert (result.stdout, result.stderr) == ("1 0\n", "")


def test_numba_may_be_told_not_to_compile(tmp_path):
    result = _run(tmp_path, NUMBA_DISABLE_JIT="1")
    assert result.stdout == "1 0\n", result.stderr
    code = "import kernelne; kernelne.KernelNE(dim=4, walks_per_node=1).fit([(0, 1)])"
    env = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert result.returncode == 0, result.stderr
