"""The settings of a training run, checked and immutable."""

from __future__ import annotations

from dataclasses import dataclass

from kernelne._common.checks import check_count, check_number
from kernelne.errors import ParameterError
from kernelne.model.kernels import check_kernels

_MOST_THREADS = 1024

#: Parameters that are numbers: True if they must be positive, False if they may be zero.
_NUMBERS = {
    "p": True, "q": True, "learning_rate": True, "window_decay": True,
    "min_learning_rate": False, "l2": False, "coef_l2": False, "coef_spread": False,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Settings of one run; `seed`, a 64-bit integer, and the graph determine every random choice."""

    kernels: tuple[tuple[str, float], ...]
    learn_coefficients: bool
    dim: int
    walks_per_node: int
    walk_length: int
    window: int
    window_decay: float = 1.0
    forward: bool = False
    n_negative: int
    shared_negatives: int
    p: float
    q: float
    learning_rate: float
    min_learning_rate: float
    l2: float
    coef_l2: float
    coef_spread: float
    deterministic: bool
    n_threads: int
    seed: int
    parts: int | None = None  # None: the tables are not divided

    def __post_init__(self) -> None:
        for name in (
            "dim",
            "walks_per_node",
            "walk_length",
            "window",
            "n_negative",
            "shared_negatives",
            "n_threads",
        ):
            check_count(name, getattr(self, name))
            object.__setattr__(self, name, int(getattr(self, name)))
        if self.parts is not None:
            check_count("parts", self.parts)
            object.__setattr__(self, "parts", int(self.parts))
        if self.n_threads > _MOST_THREADS:
            raise ParameterError("n_threads", self.n_threads, f"must be at most {_MOST_THREADS}")
        for name, positive in _NUMBERS.items():
            check_number(name, getattr(self, name), positive=positive)
            object.__setattr__(self, name, float(getattr(self, name)))
        for name in ("p", "q"):
            if not 1e-6 <= getattr(self, name) <= 1e6:
                raise ParameterError(name, getattr(self, name), "must lie between 1e-6 and 1e6")
        if self.window_decay > 1:
            raise ParameterError("window_decay", self.window_decay, "must be at most 1")
        if self.min_learning_rate > self.learning_rate:
            raise ParameterError(
                "min_learning_rate",
                self.min_learning_rate,
                f"must not exceed learning_rate={self.learning_rate}",
            )
        for name in ("deterministic", "forward"):
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(name, getattr(self, name), "must be True or False")
        object.__setattr__(self, "kernels", check_kernels(self.kernels))

    def learning_rate_at(self, walk: int, n_walks: int) -> float:
        """Learning rate of walk number `walk`; it changes linearly from the first to the last of n_walks."""
        return self.learning_rate + (self.min_learning_rate - self.learning_rate) * (walk / n_walks)
