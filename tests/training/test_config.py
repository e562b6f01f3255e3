"""Settings: what they refuse, and in which words; the learning rate's line."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from reference import config

from kernelne.errors import ParameterError


@pytest.mark.parametrize(
    "name", ["dim", "walks_per_node", "walk_length", "window", "n_negative", "shared_negatives", "n_threads"]
)
@pytest.mark.parametrize("value", [0, -3, 2.0, "4", True, None, 2**31])
def test_counts_are_whole_and_positive(name, value):
    with pytest.raises(ParameterError, match=re.escape(f"{name}={value!r}: must be a whole number")) as error:
        config(**{name: value})
    assert error.value.name == name


@pytest.mark.parametrize(
    "name", ["p", "q", "learning_rate", "min_learning_rate", "l2", "coef_l2", "coef_spread"]
)
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "0.1", True, None])
def test_numbers_are_finite_and_not_negative(name, value):
    with pytest.raises(ParameterError, match=re.escape(f"{name}={value!r}: must be a ")):
        config(**{name: value})


@pytest.mark.parametrize("name", ["p", "q", "learning_rate"])
def test_some_numbers_are_not_zero(name):
    with pytest.raises(ParameterError, match=f"{name}=0: must be a positive number"):
        config(**{name: 0})


def test_zero_is_no_learning_rate_floor_or_decay():
    assert config(min_learning_rate=0, l2=0, coef_l2=0, coef_spread=0).l2 == 0


def test_the_learning_rate_does_not_rise():
    with pytest.raises(ParameterError, match=r"min_learning_rate=0.1: must not exceed learning_rate=0.05"):
        config(learning_rate=0.05, min_learning_rate=0.1)


def test_kernels_are_checked():
    with pytest.raises(ParameterError, match="kernels='none': unknown kernel"):
        config(kernels=(("none", 1.0),))
    assert config(kernels=[["gaussian", np.float32(2)]]).kernels == (("gaussian", 2.0),)


def test_deterministic_is_a_bool():
    with pytest.raises(ParameterError, match="deterministic=1: must be True or False"):
        config(deterministic=1)


def test_numpy_numbers_do():
    changed = config(dim=np.int64(8), l2=np.float64(0.5), p=np.float32(2))
    assert (changed.dim, changed.l2, changed.p) == (8, 0.5, 2.0)


def test_config_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        config().dim = 3


def test_the_learning_rate_falls_on_a_straight_line():
    c = config(learning_rate=0.1, min_learning_rate=0.02)
    found = [c.learning_rate_at(walk, 8) for walk in range(9)]
    assert found == pytest.approx([0.1, 0.09, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02])
