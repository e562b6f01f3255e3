"""A step for one pair and its negatives, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skipgram_reference import pair_steps

from kernelne._common.jit import cached
from kernelne.baselines._pairs import BATCH, make_drawn, step_pairs
from kernelne.training.cpu.evaluate import FAST

# Compiled as part of a loop; on its own it needs its own entry.
_step = cached(error_model="numpy", fastmath=FAST)(step_pairs.py_func)


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(1, 9),
    dim=st.one_of(st.integers(1, 40), st.sampled_from([64, 128])),
    n_negative=st.integers(1, 9),
    shared=st.booleans(),
    shift=st.sampled_from([0.0, 2.5]),
    size=st.integers(1, BATCH),
)
@settings(deadline=None, max_examples=100)
def test_pairs_are_steps_one_after_the_other(seed, n, dim, n_negative, shared, shift, size):
    rng = np.random.default_rng(seed)
    center = rng.normal(0, 2 / np.sqrt(dim), (n, dim)).astype(np.float32)
    context = center if shared else rng.normal(0, 2 / np.sqrt(dim), (n, dim)).astype(np.float32)
    drawn = make_drawn(n_negative, dim)
    drawn.sources[:] = rng.integers(n, size=BATCH)
    drawn.others[:] = rng.integers(n, size=drawn.others.shape)
    exact, other, total = center.astype(float), context.astype(float), 0.0
    for b in range(size):
        steps = pair_steps(drawn.sources[b], drawn.others[b], exact, other, 0.05, shift)
        exact, other = exact + steps[0], other + steps[1]
        if shared:
            exact = other = exact + steps[1]
        total += steps[2]
    loss, n_bad = _step(size, np.float32(0.05), np.float32(shift), center, context, drawn)
    assert n_bad == 0
    assert loss == pytest.approx(total, rel=1e-4, abs=1e-5)
    np.testing.assert_allclose(center, exact, rtol=0, atol=1e-4)
    np.testing.assert_allclose(context, other, rtol=0, atol=1e-4)


def test_what_is_no_number_is_seen():
    drawn = make_drawn(2, 4)
    table = np.full((3, 4), np.nan, np.float32)
    assert _step(1, np.float32(0.1), np.float32(0.0), table, table, drawn)[1] == 1
