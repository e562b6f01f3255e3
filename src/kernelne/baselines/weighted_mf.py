"""Weighted matrix factorisation of random walks: the KernelNE paper's model without its kernel."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kernelne.baselines._skipgram import SQUARED, InnerProductLoss
from kernelne.baselines._walking import WalkBaseline
from kernelne.graph import Graph
from kernelne.progress import Progress, Report


class WeightedMF(WalkBaseline):
    """Çelikkanat, Shen and Malliaros, "Multiple Kernel Representation Learning on Networks", TKDE 2022.

    The model from which that paper starts: nodes in the same window have the inner product 1, and a node and
    a negative have 0,

        (1 − ⟨context[u], center[v]⟩)² + Σ_r ⟨context[r], center[v]⟩² + λ/2 (‖context‖² + ‖center‖²),

    which is KernelNE with the inner product instead of a kernel: a comparison shows the kernel's effect.

    Parameters
    ----------
    l2: weight decay of the vectors, λ.
    dim, walks_per_node, walk_length, window, n_negative, learning_rate, min_learning_rate, shared_negatives,
    n_threads, random_state, progress: as in KernelNE.

    Attributes
    ----------
    embedding_, graph_, seed_, seconds_: as in every baseline. With n_threads=1 results are reproducible.

    Examples
    --------
    >>> from kernelne.baselines import WeightedMF
    >>> WeightedMF(dim=8, random_state=1).fit_transform([(0, 1), (1, 2), (2, 0), (2, 3)]).shape
    (4, 8)
    """

    _numbers: ClassVar[dict[str, bool]] = WalkBaseline._numbers | {"l2": False}

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
        l2: float = 1e-2,
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
        self.l2 = l2
        self.shared_negatives = shared_negatives
        self.n_threads = n_threads
        self.random_state = random_state
        self.progress = progress

    def _embed(self, graph: Graph, seed: int, report: Report) -> NDArray[np.float32]:
        return self._train(graph, seed, report, InnerProductLoss(SQUARED), l2=self.l2)
