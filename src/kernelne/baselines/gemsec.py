"""GEMSEC: skip-gram on random walks with a clustering of the vectors."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kernelne.baselines._clusters import Clusters
from kernelne.baselines._skipgram import LOGISTIC, InnerProductLoss
from kernelne.baselines._walking import WalkBaseline
from kernelne.errors import ParameterError
from kernelne.graph import Graph
from kernelne.progress import Progress, Report
from kernelne.training.cpu.scratch import floats
from kernelne.walks.rng import fill_uniform


class GEMSEC(WalkBaseline):
    """Rozemberczki, Davies, Sarkar and Sutton, "GEMSEC: Graph Embedding with Self Clustering", ASONAM 2019.

    Skip-gram with negatives, as in DeepWalk, plus a loss γ · min_c ‖f(v) − μ_c‖ for every node v of a walk:
    its distance to the nearest cluster center. The cluster centers are learned as well. The weight γ rises
    exponentially from `cluster_weight` to 1.

    Parameters
    ----------
    n_clusters: number of cluster centers.
    cluster_weight: initial value of γ, above 0 and at most 1.
    dim, walks_per_node, walk_length, window, n_negative, learning_rate, min_learning_rate, shared_negatives,
    n_threads, random_state, progress: as in KernelNE.

    Attributes
    ----------
    cluster_centers_: float32 (n_clusters, dim), the μ_c.
    embedding_, graph_, seed_, seconds_: as in every baseline. With n_threads=1 results are reproducible.

    Examples
    --------
    >>> from kernelne.baselines import GEMSEC
    >>> model = GEMSEC(n_clusters=2, dim=8, random_state=1).fit([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> model.cluster_centers_.shape
    (2, 8)
    """

    _counts: ClassVar[tuple[str, ...]] = (*WalkBaseline._counts, "n_clusters")
    _numbers: ClassVar[dict[str, bool]] = WalkBaseline._numbers | {"cluster_weight": True}

    def __init__(
        self,
        *,
        n_clusters: int = 25,
        cluster_weight: float = 0.1,
        dim: int = 128,
        walks_per_node: int = 80,
        walk_length: int = 10,
        window: int = 10,
        n_negative: int = 5,
        learning_rate: float = 0.025,
        min_learning_rate: float = 1e-4,
        shared_negatives: int = 14,
        n_threads: int | None = None,
        random_state: Any = None,
        progress: Progress = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.cluster_weight = cluster_weight
        self.dim = dim
        self.walks_per_node = walks_per_node
        self.walk_length = walk_length
        self.window = window
        self.n_negative = n_negative
        self.learning_rate = learning_rate
        self.min_learning_rate = min_learning_rate
        self.shared_negatives = shared_negatives
        self.n_threads = n_threads
        self.random_state = random_state
        self.progress = progress

    def _check(self) -> None:
        super()._check()
        if self.cluster_weight > 1:
            raise ParameterError("cluster_weight", self.cluster_weight, "must be at most 1, its final value")

    def memory_bytes(self, graph: Any) -> int:
        return super().memory_bytes(graph) + 4 * self.n_clusters * self.dim

    def _embed(self, graph: Graph, seed: int, report: Report) -> NDArray[np.float32]:
        clusters = floats(int(self.n_clusters), int(self.dim))
        fill_uniform(clusters, ~np.uint64(seed), 0.5 / self.dim)  # a seed other than that of the vectors
        self.cluster_centers_: NDArray[np.float32] = clusters
        loss = InnerProductLoss(LOGISTIC, Clusters(clusters, float(self.cluster_weight)))
        return self._train(graph, seed, report, loss)
