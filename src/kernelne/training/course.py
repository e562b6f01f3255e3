"""What every backend shares: how a run is cut into blocks, what it leaves, how it is told to have failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne.errors import DivergenceError
from kernelne.model.mixture import FLOOR, Moments, step_coefficients
from kernelne.training.config import TrainingConfig

#: Noise is drawn in proportion to visits to this power.
NOISE_POWER = 0.75
#: A run has about this many blocks, between which coefficients, progress and divergence are looked after.
_BLOCKS = 200
#: The loss of a run is that of its last walks.
_LAST_SHARE = 0.05

#: Called with (walks done, walks in all, loss per pair).
Report = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Trained:
    """What a run leaves: both tables (n, dim) float32, coefficients (K,), and a record for every block."""

    center: NDArray[np.float32]
    context: NDArray[np.float32]
    coefficients: NDArray[np.float64]
    history: dict[str, NDArray[Any]]
    loss: float  # per pair, over the last walks; NaN if there was no pair


def blocks(n_walks: int, largest: int) -> Iterator[tuple[int, int]]:
    """Ranges of walks: one walk, two, four, … up to full size: coefficients move most at first."""
    full = min(-(-n_walks // _BLOCKS), largest)
    first, size = 0, 1
    while first < n_walks:
        last = min(first + size, n_walks)
        yield first, last
        first, size = last, min(2 * size, full)


def norm_limit(config: TrainingConfig) -> float:
    """The squared norm beyond which a row has exploded."""
    return 1e6 * max(1.0, *(sigma**2 for _, sigma in config.kernels))


def coefficient_floor(config: TrainingConfig) -> float:
    """What the sum of the coefficients may not fall below."""
    return FLOOR / (1 + config.n_negative) if config.coef_spread else -np.inf


class Course:
    """The course of a run: its coefficients and the record of its blocks."""

    def __init__(self, config: TrainingConfig, n_walks: int, coefficients: NDArray[np.float64]) -> None:
        self.config = config
        self.n_walks = n_walks
        self.coefficients = coefficients
        names = ("walks", "pairs", "loss", "learning_rate", "coefficients")
        self.history: dict[str, list[Any]] = {name: [] for name in names}

    def advance(self, first: int, last: int, sums: NDArray[np.float64], n_exploded: int) -> float:
        """Take in the sums of walks first … last − 1, step the coefficients; returns the loss per pair."""
        config, moments = self.config, Moments.unpack(sums, self.coefficients.size)
        coefficients = self.coefficients
        if not np.isfinite(sums).all():
            coefficients = np.full_like(coefficients, np.nan)
        elif config.learn_coefficients and moments.n_pairs:
            rate = config.learning_rate_at(last, self.n_walks)
            coefficients = step_coefficients(
                coefficients, moments, rate, config.coef_l2, config.coef_spread, coefficient_floor(config)
            )
        return self.record(first, last, moments.n_pairs, moments.loss, coefficients, n_exploded)

    def record(
        self,
        first: int,
        last: int,
        n_pairs: float,
        loss: float,
        coefficients: NDArray[np.float64],
        n_exploded: int,
    ) -> float:
        """Note what walks first … last − 1 came to, or raise if that makes no sense; the loss per pair."""
        config, rate = self.config, self.config.learning_rate_at(last, self.n_walks)
        if n_exploded or not np.isfinite([n_pairs, loss, *coefficients]).all():
            raise DivergenceError(
                f"training diverged between walks {first} and {last} of {self.n_walks}, at learning rate "
                f"{rate:.3g}: lower learning_rate={config.learning_rate}, l2={config.l2}, "
                f"window={config.window} or walk_length={config.walk_length}"
            )
        self.coefficients = coefficients
        per_pair = loss / n_pairs if n_pairs else np.nan
        for values, value in zip(
            self.history.values(), (last, n_pairs, per_pair, rate, coefficients), strict=True
        ):
            values.append(value)
        return per_pair

    def end(self, center: NDArray[np.float32], context: NDArray[np.float32]) -> Trained:
        history = {name: np.array(values) for name, values in self.history.items()}
        return Trained(center, context, self.coefficients, history, _last_loss(history))


def _last_loss(history: dict[str, NDArray[Any]]) -> float:
    """Loss per pair over the last walks: at least `_LAST_SHARE` of all, in blocks that had pairs."""
    walks, pairs = history["walks"], history["pairs"]
    counted = (walks > (1 - _LAST_SHARE) * walks[-1]) & (pairs > 0)
    if not counted.any():
        counted = pairs > 0
    return float(np.average(history["loss"][counted], weights=pairs[counted])) if counted.any() else np.nan
