"""The state of a training run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Values recorded for every block of walks.
RECORDED = ("walks", "pairs", "loss", "learning_rate", "coefficients")

#: The loss of a run is the mean over this share of its walks, the last ones.
_LAST_SHARE = 0.05


@dataclass
class TrainingState:
    """State between two blocks of walks; `Backend.run` continues from it and changes it in place.

    center, context: (n, dim) float32 tables, arrays of the backend; NumPy arrays after `Backend.fetch`.
    coefficients: (K,) float64, one for each kernel.
    next_walk: number of the first walk that has not been trained on.
    history: dict of arrays with one entry per block: walks done, pairs, loss per pair, learning_rate,
        coefficients (K,).
    """

    center: Any
    context: Any
    coefficients: NDArray[np.float64]
    next_walk: int = 0
    history: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """Loss per pair over the blocks that cover the last 5 % of the walks; NaN if there are no pairs."""
        if not self.history:
            return float("nan")
        walks, pairs = self.history["walks"], self.history["pairs"]
        counted = (walks > (1 - _LAST_SHARE) * walks[-1]) & (pairs > 0)
        if not counted.any():
            counted = pairs > 0
        if not counted.any():
            return float("nan")
        return float(np.average(self.history["loss"][counted], weights=pairs[counted]))
