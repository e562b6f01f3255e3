"""What runs blocks: in this process, out of files, or on a cluster. All of them give the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelne.training.config import TrainingConfig
from kernelne.training.parts.block import Trained
from kernelne.training.parts.pairs import Finder
from kernelne.training.parts.schedule import Round, Schedule
from kernelne.training.state import TrainingState
from kernelne.walks.negatives import AliasTable

#: A table in parts: item i is part i, float32 (rows, dim), read when it is asked for.
Table = Sequence[Any]

#: Trains the blocks of a round with these coefficients; returns what each of them leaves, in order.
Train = Callable[[Round, NDArray[np.float64]], list[Trained]]


class Task(NamedTuple):
    """All that blocks are made of, but for the tables. `noise`: a distribution for each part."""

    config: TrainingConfig
    schedule: Schedule
    find: Finder
    noise: Sequence[AliasTable]


class Executor(Protocol):
    """Keeps the tables of a state in parts, and trains blocks."""

    def adopt(self, parts: Iterable[NDArray[np.float32]]) -> Table:
        """Take parts over into a table of this executor, one at a time; its own tables stay as they are."""

    def room(self, shape: tuple[int, int]) -> NDArray[np.float32]:
        """Return an array for a whole table in the order of the nodes, in memory or in a file."""

    def training(self, task: Task, state: TrainingState) -> AbstractContextManager[Train]:
        """Have workers ready, and give the function that trains rounds and changes `state`."""
