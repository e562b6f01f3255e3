"""The width of vector registers is that of the CPU which Numba compiles for, not of the one it runs on."""

from __future__ import annotations

import os
import platform

import llvmlite.binding
import pytest

from kernelne.training.cpu import simd

on_x86 = pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="names CPUs of x86")
#: CPU and features, as in NUMBA_CPU_NAME and NUMBA_CPU_FEATURES, → float32 lanes.
WIDTHS = {
    ("generic", ""): 4,
    ("nehalem", ""): 4,
    ("haswell", ""): 8,
    ("haswell", "-avx"): 4,
    ("znver3", ""): 8,
    ("skylake-avx512", ""): 16,
    ("skylake-avx512", "-avx512f"): 8,
}


@on_x86
@pytest.mark.parametrize(("cpu", "features"), WIDTHS)
def test_width_of_a_cpu(cpu, features):
    triple = llvmlite.binding.get_process_triple()
    assert simd.register_width(triple, cpu, features) == WIDTHS[cpu, features]


@on_x86
def test_width_is_that_of_the_cpu_compiled_for():
    host = llvmlite.binding.get_host_cpu_name()
    name = os.environ.get("NUMBA_CPU_NAME", host)
    default = "" if name == "generic" else llvmlite.binding.get_host_cpu_features().flatten()
    features = os.environ.get("NUMBA_CPU_FEATURES", default)
    assert simd.register_width(llvmlite.binding.get_process_triple(), name, features) == simd.WIDTH
    assert simd.TILE_ROWS * simd.TILE_COLUMNS == simd.WIDTH


def test_other_architectures_have_four_lanes():
    llvmlite.binding.initialize_all_targets()
    llvmlite.binding.initialize_all_asmprinters()
    try:
        llvmlite.binding.Target.from_triple("aarch64-unknown-linux-gnu")
    except RuntimeError:
        pytest.skip("LLVM was built without it")
    for cpu in ("generic", "neoverse-v1", "apple-m1"):
        assert simd.register_width("aarch64-unknown-linux-gnu", cpu, "") == 4
