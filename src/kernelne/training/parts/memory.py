"""Blocks on the threads of this process, with tables and pairs in its memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne.training.parts.block import Trained, train_block
from kernelne.training.parts.executor import Table, Task, Train
from kernelne.training.parts.pairs import PAIR_BYTES, Finder, Pairs, count_pairs, write_pairs
from kernelne.training.parts.schedule import Block, Round, SubEpisode
from kernelne.training.state import TrainingState

#: Memory for pairs: as much as a table takes, or this. Walks are sampled again for those that do not fit.
_LEAST_POOL = 2**28


class InMemory:
    """The executor of one process."""

    def adopt(self, parts: Iterable[NDArray[np.float32]]) -> Table:
        if isinstance(parts, list):
            return parts
        return [np.array(part, np.float32, order="C") for part in parts]

    def room(self, shape: tuple[int, int]) -> NDArray[np.float32]:
        return np.empty(shape, np.float32)

    @contextmanager
    def training(self, task: Task, state: TrainingState) -> Iterator[Train]:
        n_threads = task.config.n_threads
        pool = _Pool(task, pool_bytes(task.schedule.n_nodes, task.config.dim))
        with ThreadPoolExecutor(n_threads) as threads:

            def train(together: Round, coefficients: NDArray[np.float64]) -> list[Trained]:
                def one(block: Block, pairs: Pairs) -> Trained:
                    parts = state.center[block.center], state.context[block.context]
                    noise = task.noise[block.context]
                    return train_block(block, task.config, coefficients, pairs, noise, *parts)

                trained: list[Trained] = []
                for sub in together:
                    trained += threads.map(one, sub.blocks, pool.of(sub, threads))
                return trained

            yield train


def pool_bytes(n_nodes: int, dim: int) -> int:
    """Memory for pairs in bytes."""
    return max(_LEAST_POOL, 4 * n_nodes * dim)


class _Pool:
    """The pairs of some sub-episodes of an episode."""

    def __init__(self, task: Task, most: int) -> None:
        self.find: Finder = task.find
        self.schedule = task.schedule
        self.most = most
        self.n_shards = 4 * task.config.n_threads
        self.episode = -1
        self.held = range(0)

    def of(self, sub: SubEpisode, threads: ThreadPoolExecutor) -> Sequence[Pairs]:
        """Return the pairs of the blocks of a sub-episode."""
        if sub.episode != self.episode:
            self.episode, self.held = sub.episode, range(0)
            first, last = sub.walks
            ends = [first + (last - first) * k // self.n_shards for k in range(self.n_shards + 1)]
            self.shards = list(pairwise(ends))
            self.counts = np.array(list(threads.map(lambda ends: count_pairs(self.find, *ends), self.shards)))
        if sub.number not in self.held:
            self._fill(sub, threads)
        return [self._slice(self._place(block)) for block in sub.blocks]

    def _place(self, block: Any) -> int:
        return int(block.center) * self.schedule.n_parts + int(block.context)

    def _slice(self, place: int) -> Pairs:
        part = slice(self.starts[place], self.starts[place + 1])
        return Pairs(self.pairs.centers[part], self.pairs.contexts[part])

    def _fill(self, sub: SubEpisode, threads: ThreadPoolExecutor) -> None:
        """Find the pairs of this sub-episode and of as many of the next ones as fit."""
        n_parts, counts = self.schedule.n_parts, self.counts
        step = sub.episode * n_parts + sub.number
        wanted, total, end = np.zeros(n_parts * n_parts, bool), 0, sub.number
        for number in range(sub.number, n_parts):
            places = [self._place(block) for block in self.schedule.at(step + number - sub.number).blocks]
            total += int(counts[:, places].sum()) * PAIR_BYTES
            if end > sub.number and total > self.most:
                break
            wanted[places], end = True, number + 1
        self.held = range(sub.number, end)
        kept = counts * wanted
        self.starts = np.concatenate([[0], np.cumsum(kept.sum(axis=0))])
        following = self.starts[:-1] + np.cumsum(kept, axis=0) - kept
        self.pairs = Pairs(*(np.empty(self.starts[-1], np.uint32) for _ in range(2)))

        def fill(k: int) -> None:
            write_pairs(self.find, *self.shards[k], np.where(wanted, following[k], -1), self.pairs)

        list(threads.map(fill, range(len(self.shards))))
