"""DeepWalk: groups are found, and small components do not explode."""

from __future__ import annotations

import numpy as np
import pytest
from skipgram_reference import assert_learns, crumbs

from kernelne.baselines import DeepWalk
from kernelne.errors import DivergenceError, ParameterError


def test_planted_groups_are_found():
    assert_learns(DeepWalk(dim=16, n_threads=1, random_state=0))


def test_components_of_a_few_nodes_do_not_explode():
    with pytest.warns(UserWarning, match="1 of 24 nodes have no edges"):
        vectors = DeepWalk(dim=16, walks_per_node=400, n_threads=1, random_state=0).fit(crumbs()).embedding_
    norms = np.linalg.norm(vectors, axis=1)
    assert norms.max() < 10
    assert norms[23] < 0.2  # alone: as it started
    assert vectors[20] @ vectors[21] > 3 * abs(vectors[20] @ vectors[0])


def test_a_rate_far_too_high_is_told():
    with pytest.raises(DivergenceError, match="lower learning_rate"):
        DeepWalk(dim=8, learning_rate=1e6, n_threads=1, random_state=0).fit([(0, 1), (1, 2), (2, 3)])


@pytest.mark.parametrize(
    ("name", "value"),
    [("window", 0), ("walk_length", 1.5), ("shared_negatives", 0), ("learning_rate", 0), ("n_negative", "5")],
)
def test_parameters_are_checked(name, value):
    with pytest.raises(ParameterError, match=name):
        DeepWalk(**{name: value}).fit([(0, 1)])


def test_the_last_rate_is_not_above_the_first():
    with pytest.raises(ParameterError, match="must not exceed learning_rate"):
        DeepWalk(min_learning_rate=0.1).fit([(0, 1)])


def test_progress_ends_with_all_walks():
    calls = []
    DeepWalk(dim=4, n_threads=2, progress=lambda *call: calls.append(call)).fit([(0, 1), (1, 2)])
    assert calls[-1][:2] == (240, 240)
    assert np.isfinite([loss for _, _, loss in calls]).all()
