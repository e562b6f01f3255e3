"""node2vec: DeepWalk where walks are not biased, something else where they are."""

from __future__ import annotations

import numpy as np
import pytest
from skipgram_reference import assert_learns, planted

from kernelne.baselines import DeepWalk, Node2Vec
from kernelne.errors import ParameterError


def test_planted_groups_are_found():
    assert_learns(Node2Vec(p=0.5, q=2.0, dim=16, n_threads=1, random_state=0))


def test_without_bias_it_is_deepwalk():
    graph, _ = planted()
    common = {"dim": 16, "walks_per_node": 5, "n_threads": 1, "random_state": 3}
    plain = DeepWalk(**common).fit_transform(graph)
    np.testing.assert_array_equal(Node2Vec(**common).fit_transform(graph), plain)
    assert not np.array_equal(Node2Vec(q=4, **common).fit_transform(graph), plain)


@pytest.mark.parametrize(("name", "value"), [("p", 0), ("q", -1.0), ("p", 1e9), ("q", "much"), ("p", np.nan)])
def test_parameters_are_checked(name, value):
    with pytest.raises(ParameterError, match=name):
        Node2Vec(**{name: value}).fit([(0, 1)])
