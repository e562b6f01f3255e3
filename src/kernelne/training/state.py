"""All that a run of training is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What is recorded of every block of walks.
RECORDED = ("walks", "pairs", "loss", "learning_rate", "coefficients")

#: The loss of a run is that of its last walks.
_LAST_SHARE = 0.05


@dataclass
class TrainingState:
    """A run between two blocks of walks: `Backend.run` goes on from it, and uses it up.

    center, context: (n, dim) float32 tables, arrays of the backend: NumPy's after `Backend.fetch`.
    coefficients: (K,) float64, one for each kernel.
    next_walk: the number of the first walk that was not trained on.
    history: arrays with an entry for every block: walks done, pairs, loss per pair, learning_rate,
        coefficients (K,).
    """

    center: Any
    context: Any
    coefficients: NDArray[np.float64]
    next_walk: int = 0
    history: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """Loss per pair over the last walks, at least 5 % of all, in blocks with pairs; NaN without any."""
        if not self.history:
            return float("nan")
        walks, pairs = self.history["walks"], self.history["pairs"]
        counted = (walks > (1 - _LAST_SHARE) * walks[-1]) & (pairs > 0)
        if not counted.any():
            counted = pairs > 0
        if not counted.any():
            return float("nan")
        return float(np.average(self.history["loss"][counted], weights=pairs[counted]))
