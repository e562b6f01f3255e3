"""Blocks out of core: tables and pairs are in files, and only the parts that are trained are in memory.

`sweeps` trains a round while it goes through the parts once.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelne.errors import OutputError
from kernelne.training.checkpoint import WORK
from kernelne.training.config import TrainingConfig
from kernelne.training.part_files import PartFiles, keep_part, read_array, remove_folder, room_on_disk
from kernelne.training.parts.block import Trained
from kernelne.training.parts.executor import Table, Task, Train
from kernelne.training.parts.pairs import PAIR_BYTES, Pairs, find_all, pairs_per_walk
from kernelne.training.parts.schedule import Block, Round, SubEpisode
from kernelne.training.parts.sweeps import Sweeps, held
from kernelne.training.state import TrainingState

#: Fewest pairs that each thread finds and writes at a time; more, if the parts of tables take more memory.
_SHARD_PAIRS = 2**22


class _WorkFiles(PartFiles):
    """A table of this executor."""


class OnDisk:
    """The executor of one process whose tables do not fit in memory.

    folder: where a folder for its files is made, which is removed with it; None: that of temporary files.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.parent = folder
        self._made: Path | None = None
        self._numbers = count()

    def _file(self) -> Path:
        """Return the name of a new file."""
        if self._made is None:
            if self.parent is not None:
                self.parent.mkdir(exist_ok=True)
            self._made = Path(tempfile.mkdtemp(prefix=WORK, dir=self.parent))
            weakref.finalize(self, remove_folder, self._made)  # at the end of the process at the latest
        return self._made / str(next(self._numbers))

    def adopt(self, parts: Iterable[NDArray[np.float32]]) -> Table:
        if isinstance(parts, _WorkFiles):
            return parts
        paths, dim = [], 1
        with self._writing():
            if isinstance(parts, PartFiles):
                for i in range(len(parts)):
                    paths.append(self._file())
                    keep_part(parts, i, paths[-1])
                dim = parts.dim
            else:
                for part in parts:
                    paths.append(self._file())
                    np.ascontiguousarray(part).tofile(paths[-1])
                    dim = part.shape[1]
        return _WorkFiles(paths, dim)

    def room(self, shape: tuple[int, int]) -> NDArray[np.float32]:
        """Return an array in a file without a name."""
        with self._writing():
            made: NDArray[np.float32] = room_on_disk(shape, self._file().parent)
        return made

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = self.parent or tempfile.gettempdir()
            raise OutputError(
                f"{where}: the files of training out of core cannot be written: {error.strerror or error}; "
                "TMPDIR, or a folder for checkpoints, sets where they are"
            ) from error

    @contextmanager
    def training(self, task: Task, state: TrainingState) -> Iterator[Train]:
        with _Shards(self, task) as shards, Sweeps(task, state, shards.read, self._file) as sweeps:

            def train(together: Round, coefficients: NDArray[np.float64]) -> list[Trained]:
                with self._writing():
                    if together[0].episode != shards.episode:
                        sweeps.release()
                        shards.make(together[0])
                    return sweeps.train(together, coefficients)

            yield train


class _Shards:
    """The pairs of an episode in files, each with the pairs of some walks, block after block."""

    def __init__(self, disk: OnDisk, task: Task) -> None:
        self.disk, self.task = disk, task
        self.episode = -1
        self.files: list[tuple[Path, NDArray[np.int64]]] = []

    def __enter__(self) -> _Shards:
        return self

    def __exit__(self, *error: object) -> None:
        for file, _ in self.files:
            file.unlink(missing_ok=True)
        self.files = []

    def make(self, sub: SubEpisode) -> None:
        """Find the pairs of an episode."""
        self.__exit__()
        self.episode = sub.episode
        config, (first, last) = self.task.config, sub.walks
        pairs = shard_bytes(config, self.task.schedule.n_nodes) // config.n_threads // (2 * PAIR_BYTES)
        step = max(pairs // pairs_per_walk(config), 1)

        def find(start: int) -> tuple[Path, NDArray[np.int64]]:
            pairs, starts = find_all(self.task.find, start, min(start + step, last))
            file = self.disk._file()
            np.stack(pairs, axis=1).tofile(file)
            return file, starts

        with ThreadPoolExecutor(config.n_threads) as threads:
            self.files = list(threads.map(find, range(first, last, step)))

    def read(self, block: Block) -> Pairs:
        """Return the pairs of a block."""
        place = block.center * self.task.schedule.n_parts + block.context
        total = sum(int(starts[place + 1] - starts[place]) for _, starts in self.files)
        both, filled = np.empty((total, 2), np.uint32), 0
        for file, starts in self.files:
            begin, size = int(starts[place]), int(starts[place + 1] - starts[place])
            read_array(file, PAIR_BYTES * begin, both[filled : filled + size])
            filled += size
        return Pairs(*np.ascontiguousarray(both.T))


def shard_bytes(config: TrainingConfig, n_nodes: int) -> int:
    """Memory in bytes in which all threads find pairs, while no part of a table is in memory."""
    n_held, _ = held(config.n_threads, config.parts or 1)
    tables = n_held * 4 * config.dim * -(-n_nodes // (config.parts or 1))
    return max(tables, config.n_threads * 2 * PAIR_BYTES * _SHARD_PAIRS)
