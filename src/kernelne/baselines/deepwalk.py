"""DeepWalk: skip-gram on uniform random walks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne.baselines._skipgram import LOGISTIC, InnerProductLoss
from kernelne.baselines._walking import WalkBaseline
from kernelne.graph import Graph
from kernelne.progress import Progress, Report


class DeepWalk(WalkBaseline):
    """Perozzi, Al-Rfou and Skiena, "DeepWalk: Online Learning of Social Representations", KDD 2014.

    Walks start at every node; skip-gram learns vectors that distinguish nodes in the same window of a walk
    from negatives, which are drawn in proportion to visits^0.75. The paper uses a hierarchical softmax
    instead of negatives. If edges have weights, steps are drawn by weight.

    Parameters
    ----------
    dim, walks_per_node, walk_length, window, n_negative, learning_rate, min_learning_rate, shared_negatives,
    n_threads, random_state, progress: as in KernelNE.

    Attributes
    ----------
    embedding_, graph_, seed_, seconds_: as in every baseline. With n_threads=1 results are reproducible.

    Examples
    --------
    >>> from kernelne.baselines import DeepWalk
    >>> DeepWalk(dim=8, random_state=1).fit_transform([(0, 1), (1, 2), (2, 0), (2, 3)]).shape
    (4, 8)
    """

    def __init__(
        self,
        *,
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

    def _embed(self, graph: Graph, seed: int, report: Report) -> NDArray[np.float32]:
        return self._train(graph, seed, report, InnerProductLoss(LOGISTIC))
