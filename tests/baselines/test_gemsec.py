"""GEMSEC: groups are found, and vectors gather around the centers of clusters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from skipgram_reference import assert_learns, planted

from kernelne.baselines import GEMSEC
from kernelne.errors import ParameterError


def test_planted_groups_are_found():
    assert_learns(GEMSEC(n_clusters=4, dim=16, n_threads=1, random_state=0))


def test_vectors_gather_around_centers():
    graph, _ = planted()

    def spread(weight):
        model = GEMSEC(n_clusters=4, cluster_weight=weight, dim=16, n_threads=1, random_state=0).fit(graph)
        assert model.cluster_centers_.shape == (4, 16)
        return cdist(model.embedding_, model.cluster_centers_).min(axis=1).mean()

    assert spread(1.0) < 0.9 * spread(1e-6)


@pytest.mark.parametrize(
    ("name", "value"), [("n_clusters", 0), ("cluster_weight", 0), ("cluster_weight", 1.5), ("window", -1)]
)
def test_parameters_are_checked(name, value):
    with pytest.raises(ParameterError, match=name):
        GEMSEC(**{name: value}).fit([(0, 1)])


def test_more_clusters_than_nodes():
    assert np.isfinite(GEMSEC(n_clusters=9, dim=4, random_state=0).fit([(0, 1)]).cluster_centers_).all()
