"""node2vec: skip-gram on second-order random walks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kernelne.baselines._skipgram import LOGISTIC, InnerProductLoss
from kernelne.baselines._walking import WalkBaseline
from kernelne.errors import ParameterError
from kernelne.graph import Graph
from kernelne.progress import Progress, Report


class Node2Vec(WalkBaseline):
    """Grover and Leskovec, "node2vec: Scalable Feature Learning for Networks", KDD 2016.

    Skip-gram with negatives, as in DeepWalk, on second-order walks: a step back to the previous node has
    weight 1/p, a step to a neighbour of the previous node 1, any other step 1/q. With p = q = 1 it is
    DeepWalk.

    Parameters
    ----------
    p, q: node2vec's return and in-out parameters.
    dim, walks_per_node, walk_length, window, n_negative, learning_rate, min_learning_rate, shared_negatives,
    n_threads, random_state, progress: as in KernelNE.

    Attributes
    ----------
    embedding_, graph_, seed_, seconds_: as in every baseline. With n_threads=1 results are reproducible.

    Examples
    --------
    >>> from kernelne.baselines import Node2Vec
    >>> Node2Vec(p=0.5, q=2, dim=8, random_state=1).fit_transform([(0, 1), (1, 2), (2, 0), (2, 3)]).shape
    (4, 8)
    """

    _numbers: ClassVar[dict[str, bool]] = WalkBaseline._numbers | {"p": True, "q": True}

    def __init__(
        self,
        *,
        p: float = 1.0,
        q: float = 1.0,
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
        self.p = p
        self.q = q
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
        for name in ("p", "q"):
            if not 1e-6 <= getattr(self, name) <= 1e6:
                raise ParameterError(name, getattr(self, name), "must lie between 1e-6 and 1e6")

    def _embed(self, graph: Graph, seed: int, report: Report) -> NDArray[np.float32]:
        return self._train(graph, seed, report, InnerProductLoss(LOGISTIC))
