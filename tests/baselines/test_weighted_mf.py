"""Weighted factorisation: groups are found; with one pair of nodes the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from skipgram_reference import assert_learns, crumbs

from kernelne.baselines import WeightedMF
from kernelne.baselines._skipgram import SQUARED, InnerProductLoss
from kernelne.errors import ParameterError
from kernelne.graph import as_graph
from kernelne.training.cpu import backend as cpu


def test_planted_groups_are_found():
    assert_learns(WeightedMF(dim=16, n_threads=1, random_state=0), least=0.65)


def test_inner_products_are_the_shares_of_pairs_that_are_true():
    """Two nodes: all contexts of one and half of its negatives are the other: (1 − s)² + 5/2 s² is least."""
    model = WeightedMF(dim=4, walks_per_node=20_000, walk_length=2, learning_rate=0.05, l2=0.0, n_threads=1)
    prepared = cpu.prepare(as_graph([(0, 1)]), model._config(seed=0, l2=0.0))
    state = cpu.run(prepared, cpu.start(prepared), loss=InnerProductLoss(SQUARED))
    products = state.center @ state.context.T
    np.testing.assert_allclose(products[[0, 1], [1, 0]], 1 / 3.5, atol=0.02)
    np.testing.assert_allclose(products[[0, 1], [0, 1]], 0, atol=0.02)


def test_components_of_a_few_nodes_do_not_explode():
    with pytest.warns(UserWarning, match="no edges"):
        vectors = WeightedMF(dim=16, walks_per_node=400, n_threads=1, random_state=0).fit_transform(crumbs())
    assert np.linalg.norm(vectors, axis=1).max() < 5


def test_parameters_are_checked():
    with pytest.raises(ParameterError, match="l2"):
        WeightedMF(l2=-1).fit([(0, 1)])
