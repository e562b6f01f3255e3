"""Kernels: one list of all of them, every property over the whole list.

How the training loop compiles them: training/test_functions.py.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from kernelne.errors import ParameterError
from kernelne.model.kernels import KERNELS, check_kernels

ALL = [(name, sigma) for name in KERNELS for sigma in (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 8.0)]
every_kernel = pytest.mark.parametrize(("name", "sigma"), ALL)

#: Squared distances from none to very far.
DISTANCES = np.concatenate([[0.0], np.logspace(-6, 4, 41)])


def test_the_paper_has_its_kernels():
    """Against the formulas of the paper, written another way."""
    D = np.linspace(0, 20, 50)
    np.testing.assert_allclose(KERNELS["gaussian"](D, 1.7)[0], [math.e ** (-d / 1.7**2) for d in D])
    np.testing.assert_allclose(KERNELS["schoenberg"](D, 1.7)[0], [(1 + d) ** -1.7 for d in D])
    np.testing.assert_allclose(
        KERNELS["inverse_multiquadric"](D, 1.7)[0], [(1 + d / 1.7**2) ** -0.5 for d in D]
    )


@every_kernel
def test_value_is_one_at_distance_zero(name, sigma):
    assert KERNELS[name](np.zeros(1), sigma)[0] == 1


@every_kernel
def test_value_decreases_and_stays_positive(name, sigma):
    value, slope = KERNELS[name](DISTANCES, sigma)
    seen = value > 1e-300
    assert (value >= 0).all()
    assert seen[:20].all()
    assert (np.diff(value[seen]) < 0).all()
    assert (slope[seen] < 0).all()
    assert (slope <= 0).all()


@every_kernel
def test_slope_is_the_derivative(name, sigma, assert_gradient_matches_finite_diff):
    for D in DISTANCES:
        at = np.array([D])
        value, slope = KERNELS[name](at, sigma)
        if value < 1e-280:
            continue
        assert_gradient_matches_finite_diff(
            lambda x: KERNELS[name](x, sigma)[0][0],
            at,
            slope,
            step=1e-4 * min(1, sigma**2),
            rtol=2e-6,
            atol=0,
        )


@every_kernel
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_precision_of_input_is_kept(name, sigma, kind):
    for given in (sigma, np.float32(sigma)):
        value, slope = KERNELS[name](DISTANCES.astype(kind), given)
        assert value.dtype == kind
        assert slope.dtype == kind


@every_kernel
def test_float32_agrees_with_float64(name, sigma):
    D = DISTANCES.astype(np.float32)
    for narrow, wide in zip(
        KERNELS[name](D, np.float32(sigma)), KERNELS[name](D.astype(float), sigma), strict=True
    ):
        np.testing.assert_allclose(narrow, wide, rtol=1e-5, atol=1e-9)


def test_check_kernels_returns_names_and_floats():
    checked = check_kernels([(name, np.float32(2)) for name in KERNELS] + [("gaussian", 3)])
    assert checked == (*((name, 2.0) for name in KERNELS), ("gaussian", 3.0))
    assert all(type(sigma) is float for _, sigma in checked)


@pytest.mark.parametrize(
    "sigma", [0, -1, -0.5, math.nan, math.inf, -math.inf, "2", True, None, 1e-4, 1e4, 1j]
)
def test_check_kernels_refuses_a_sigma(sigma):
    with pytest.raises(ParameterError, match="sigma must be a positive number") as error:
        check_kernels([("gaussian", 1.0), ("schoenberg", sigma)], parameter="mixture")
    assert error.value.name == "mixture"
    assert str(error.value).startswith(f"mixture='schoenberg:{sigma}'")


@pytest.mark.parametrize("name", ["laplace", "Gaussian", "", 3, None])
def test_check_kernels_refuses_a_name_and_lists_those_known(name):
    with pytest.raises(ParameterError, match=re.escape(f"kernels={name!r}: unknown kernel")) as error:
        check_kernels([(name, 1.0)])
    assert all(known in str(error.value) for known in KERNELS)


def test_errors_name_the_parameter_of_one_kernel():
    with pytest.raises(ParameterError, match=r"^kernel='nope': unknown kernel"):
        check_kernels([("nope", 1.0)], "kernel, sigma")
    with pytest.raises(ParameterError, match=r"^sigma=-1: "):
        check_kernels([("gaussian", -1)], "kernel, sigma")


@pytest.mark.parametrize("kernels", [[], (), {}])
def test_check_kernels_refuses_none_at_all(kernels):
    with pytest.raises(ParameterError, match=re.escape(f"kernels={kernels!r}: give at least one")):
        check_kernels(kernels)


@pytest.mark.parametrize(
    "kernels", ["gaussian", ["gaussian"], [("gaussian",)], [("gaussian", 1.0, 2.0)], 3, None]
)
def test_check_kernels_refuses_what_are_not_pairs(kernels):
    with pytest.raises(ParameterError, match=re.escape(f"kernels={kernels!r}: give (name, sigma) pairs")):
        check_kernels(kernels)


def test_check_kernels_refuses_an_unhashable_name():
    with pytest.raises(ParameterError, match="unknown kernel"):
        check_kernels([(["gaussian"], 1.0)])
