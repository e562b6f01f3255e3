"""The parts of a run that all backends share: blocks of walks, the history, the check for divergence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne.errors import DivergenceError, warn
from kernelne.model.mixture import Moments, least_sum, step_coefficients
from kernelne.training.config import TrainingConfig
from kernelne.training.state import RECORDED, TrainingState

#: Exponent of the visits in the noise distribution.
NOISE_POWER = 0.75
#: A run has about this many blocks; after each the coefficients are updated, progress is reported and
#: divergence is checked.
_BLOCKS = 200


def blocks(n_walks: int, largest: int, begin: int = 0, until: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield ranges of 1, 2, 4, … walks up to the full size, because coefficients change most at the start.

    begin, until: yield only the walks from `begin` to `until` - 1. A block that contains one of these is cut
    there; all other blocks are those of the whole run.
    """
    full = min(-(-n_walks // _BLOCKS), largest)
    end = n_walks if until is None else min(until, n_walks)
    first, size = 0, 1
    while first < end:
        last = min(first + size, n_walks)
        if max(first, begin) < min(last, end):
            yield max(first, begin), min(last, end)
        first, size = last, min(2 * size, full)


def norm_limit(config: TrainingConfig) -> float:
    """Squared norm above which a row counts as exploded."""
    return 1e6 * max(1.0, *(sigma**2 for _, sigma in config.kernels))


def coefficient_floor(config: TrainingConfig) -> float:
    """Lower bound of the sum of the coefficients."""
    return least_sum(config.n_negative) if config.coef_spread else -np.inf


class Recorder:
    """Updates a state between two blocks: steps the coefficients and records the history."""

    def __init__(self, config: TrainingConfig, n_walks: int, state: TrainingState) -> None:
        self.config = config
        self.n_walks = n_walks
        self.state = state
        self._records: dict[str, list[Any]] = {name: [] for name in RECORDED}

    def advance(self, first: int, last: int, sums: NDArray[np.float64], n_exploded: int) -> float:
        """Step the coefficients with the sums of walks first … last − 1; returns the loss per pair."""
        config, coefficients = self.config, self.state.coefficients
        moments = Moments.unpack(sums, coefficients.size)
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
        """Record the block of walks first … last − 1; returns the loss per pair.

        Raises DivergenceError if rows have exploded or a value is not finite.
        """
        config, rate = self.config, self.config.learning_rate_at(last, self.n_walks)
        if n_exploded or not np.isfinite([n_pairs, loss, *coefficients]).all():
            raise DivergenceError(
                f"training diverged between walks {first} and {last} of {self.n_walks}, at learning rate "
                f"{rate:.3g}: lower learning_rate={config.learning_rate}, l2={config.l2}, "
                f"window={config.window} or walk_length={config.walk_length}"
            )
        self.state.coefficients = coefficients
        self.state.next_walk = last
        per_pair = loss / n_pairs if n_pairs else np.nan
        for name, value in zip(RECORDED, (last, n_pairs, per_pair, rate, coefficients), strict=True):
            self._records[name].append(value)
        return per_pair

    def end(self) -> TrainingState:
        """Append the records to the history of the state, and return the state."""
        history = self.state.history
        if self._records["walks"]:
            for name, values in self._records.items():
                new = np.array(values)
                history[name] = np.concatenate([history[name], new]) if name in history else new
        self._records = {name: [] for name in RECORDED}
        return self.state


def warn_of_little(state: TrainingState, config: TrainingConfig) -> None:
    """Warn if nothing, or almost nothing, was learned."""
    loss, n_negative = state.loss, config.n_negative
    # Of vectors that are all alike every kernel is 1, and the best sum of coefficients is 1/(1 + n_negative).
    total = 1 / (1 + n_negative) if config.learn_coefficients else state.coefficients.sum()
    if np.isnan(loss):
        warn("no walk has two nodes: there are no pairs, and the vectors keep their random initial values")
    elif loss > 0.995 * ((1 - total) ** 2 + n_negative * total**2):
        warn(
            f"the loss, {loss:.4f}, is that of vectors that are all alike: too few walks for a small graph, "
            "or too little structure for these kernels; try more walks_per_node, a higher learning_rate or a "
            "smaller l2"
        )
