"""The compiled code on other CPUs than this one: tests of its parts, run again on code made for those."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding
import pytest

ROOT = Path(__file__).parents[2]
#: Walks, kernels, and one walk or many against float64: all that is compiled for vector registers.
TESTS = [
    "tests/model/test_kernels.py",
    "tests/walks/test_walks.py",
    "tests/training/test_functions.py",
    "tests/training/test_loop.py",
    "tests/training/test_simd.py",
]
#: Older CPUs than most: no more than every 64-bit CPU of its kind has; AVX2 and FMA, but not AVX-512.
CPUS = {"generic": (), "haswell": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")}


@pytest.mark.parametrize("cpu", CPUS)
def test_compiled_for(cpu, tmp_path):
    has = llvmlite.binding.get_host_cpu_features()
    lacks = [feature for feature in CPUS[cpu] if not has.get(feature)]
    if lacks:
        pytest.skip(f"this {platform.machine()} lacks {', '.join(lacks)}")
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env |= {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": "", "KERNELNE_TEST_CACHE": str(tmp_path)}
    # Without the project's options: they may share tests out between processes.
    command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
