"""Kernels as the training loop compiles them, against the same functions in NumPy; exp and log alone."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from kernelne.model import kernels
from kernelne.model.kernels import KERNELS
from kernelne.training.cpu.loop import evaluate_kernel

#: Far below what a gradient notices, and above the smallest float32.
FLOOR = 1e-12
DISTANCES = np.concatenate([[0.0], np.logspace(-8, 4, 4000), np.linspace(0, 100, 4000)]).astype(np.float32)


@njit
def _apply_exp(x, out):
    for t in range(x.size):
        out[t] = kernels.exp(x[t])


@njit
def _evaluate(kind, sigma, D, values, slopes):
    evaluate_kernel(kind, sigma, D, values, slopes)


@njit
def _apply_log(x, out):
    for t in range(x.size):
        out[t] = kernels.log(x[t])


@pytest.mark.parametrize("sigma", [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 8.0])
@pytest.mark.parametrize("name", list(KERNELS))
def test_compiled_kernels_equal_numpys(name, sigma):
    values, slopes = np.empty_like(DISTANCES), np.empty_like(DISTANCES)
    _evaluate(list(KERNELS).index(name), np.float32(sigma), DISTANCES, values, slopes)
    exact_values, exact_slopes = KERNELS[name](DISTANCES.astype(np.float64), sigma)
    np.testing.assert_allclose(values, exact_values, rtol=4e-6, atol=FLOOR)
    np.testing.assert_allclose(slopes, exact_slopes, rtol=4e-6, atol=FLOOR)
    assert values[0] == 1
    assert (values >= 0).all()
    assert (slopes <= 0).all()


def test_an_unknown_kernel_number_shows():
    values, slopes = np.zeros_like(DISTANCES), np.zeros_like(DISTANCES)
    _evaluate(len(KERNELS), np.float32(1), DISTANCES, values, slopes)
    assert np.isnan(values).all()


def test_exp():
    x = np.concatenate([np.linspace(-87, 88, 100_001), np.linspace(-1, 1, 100_001)]).astype(np.float32)
    found = np.empty_like(x)
    _apply_exp(x, found)
    np.testing.assert_allclose(found, np.exp(x.astype(float)), rtol=4e-7)
    far = np.array([-87.5, -1e3, -1e30, -np.inf], np.float32)
    found = np.empty_like(far)
    _apply_exp(far, found)
    assert (found > 0).all()
    assert (found < 2e-38).all()


def test_log():
    x = np.concatenate([np.linspace(1, 4, 100_001), np.logspace(0, 38, 100_001)]).astype(np.float32)
    found = np.empty_like(x)
    _apply_log(x, found)
    exact = np.log(x.astype(float))
    assert (np.abs(found - exact) / np.maximum(1, exact)).max() < 4e-7
    assert found[0] == 0
