"""Rounds of training out of core: every part is read and written about once in a round.

Block (i, d) trains center part i in sub-episode d of the round, and comes after (i, d − 1), which trains the
same center, and (i + 1, d − 1), which trains the same context. So centers are visited from the last to the
first, each with its blocks of all d: a context then stays for as many visits as the round has sub-episodes.
The last parts lack at first the blocks whose context the first parts must train before, and are visited again
at the end. Threads train visits that follow each other, as soon as the blocks before theirs are done; other
threads read the parts of the next visits, and write those that are done with.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Semaphore
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne.training.part_files import PartFiles
from kernelne.training.parts.block import Trained, train_block
from kernelne.training.parts.executor import Task
from kernelne.training.parts.pairs import Pairs
from kernelne.training.parts.schedule import TOGETHER, Block, Round
from kernelne.training.state import TrainingState

#: Visits in memory beside those that are trained: one is read, another one is written.
_AHEAD = 2
#: Threads that read (center, context and pairs of a visit), and those that write.
_READERS, _WRITERS = 3, 2


class _Visit(NamedTuple):
    """A center part, and the sub-episodes of the round of which its blocks are trained."""

    center: int
    subs: range


def visits_of(n_parts: int, size: int) -> list[_Visit]:
    """Return the visits of a round of `size` sub-episodes, in their order."""
    return [
        _Visit((n_parts - 1 - v) % n_parts, range(max(0, v - n_parts + 1), min(v, size - 1) + 1))
        for v in range(n_parts + size - 1)
    ]


def held(n_threads: int, n_parts: int) -> tuple[int, int]:
    """Return how many parts of both tables, and the pairs of how many blocks, are in memory at a time."""
    visits = min(n_threads + _AHEAD, n_parts)
    return visits + min(visits + TOGETHER - 1, n_parts), visits * TOGETHER


class Sweeps:
    """The threads that read, train and write, and the memory of parts."""

    def __init__(self, task: Task, state: TrainingState, pairs: Callable[[Block], Pairs], file: Any) -> None:
        """pairs: reads those of a block. file: returns the name of a new file."""
        self.task, self.state, self.pairs, self.file = task, state, pairs, file
        self.n_visits = min(task.config.n_threads + _AHEAD, task.schedule.n_parts)
        self.size = int(np.diff(task.schedule.bounds).max()) * task.config.dim
        self.free: list[NDArray[np.float32]] = []
        self.pools = [ThreadPoolExecutor(n) for n in (_READERS, task.config.n_threads, _WRITERS)]

    def __enter__(self) -> Sweeps:
        return self

    def __exit__(self, *error: object) -> None:
        for pool in self.pools:
            pool.shutdown()

    def train(self, together: Round, coefficients: NDArray[np.float64]) -> list[Trained]:
        return _Sweep(self, together, coefficients).train()

    def release(self) -> None:
        """Give up the memory of parts, until the next round."""
        self.free.clear()

    def read(self, table: PartFiles, i: int) -> NDArray[np.float32]:
        try:
            buffer = self.free.pop()
        except IndexError:
            buffer = np.empty(self.size, np.float32)
        return table.read(i, buffer)

    def write(self, table: PartFiles, i: int, part: NDArray[np.float32]) -> None:
        table.put(i, part, self.file())
        self.free.append(part.base)  # type: ignore[arg-type]


class _Sweep:
    """One round."""

    def __init__(self, sweeps: Sweeps, together: Round, coefficients: NDArray[np.float64]) -> None:
        self.sweeps, self.together, self.coefficients = sweeps, together, coefficients
        self.visits = visits_of(len(together[0].blocks), len(together))
        self.places = Semaphore(sweeps.n_visits)
        self.done = {(v, d): Event() for v, visit in enumerate(self.visits) for d in visit.subs}
        self.written = [Event() for _ in self.visits]
        self.centers: dict[int, NDArray[np.float32]] = {}
        self.contexts: dict[int, NDArray[np.float32]] = {}
        self.found: dict[tuple[int, int], Pairs] = {}
        self.trained: dict[tuple[int, int], Trained] = {}
        self.failed = False

    def train(self) -> list[Trained]:
        reading, training, writing = self.sweeps.pools
        begun: list[Future[None]] = []
        try:
            for v in range(len(self.visits)):
                self.places.acquire()
                if self.failed:
                    break
                works = (self._read_center, self._read_context, self._read_pairs)
                read = [reading.submit(self._guarded, work, v) for work in works]
                begun += [*read, training.submit(self._guarded, self._visit, v, read, writing, begun)]
            for future in begun:  # more are added meanwhile
                future.result()
        finally:
            self._give_up()  # unless all is done, the threads wait for nothing more
        n_parts = len(self.together[0].blocks)
        return [self.trained[d, i] for d in range(len(self.together)) for i in range(n_parts)]

    def _guarded(self, work: Callable[..., None], *given: Any) -> None:
        try:
            if not self.failed:
                work(*given)
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        self.failed = True
        for event in (*self.done.values(), *self.written):
            event.set()
        self.places.release(len(self.visits))

    def _block(self, v: int, d: int) -> Block:
        return self.together[d].blocks[self.visits[v].center]

    def _read_center(self, v: int) -> None:
        if v >= (n_parts := len(self.together[0].blocks)):  # for the second time
            self.written[v - n_parts].wait()
        self.centers[v] = self.sweeps.read(self.sweeps.state.center, self.visits[v].center)

    def _read_context(self, v: int) -> None:
        """Read the context that a visit is the first to use."""
        if v < len(self.together[0].blocks):
            context = self._block(v, 0).context
            self.contexts[context] = self.sweeps.read(self.sweeps.state.context, context)

    def _read_pairs(self, v: int) -> None:
        for d in self.visits[v].subs:
            self.found[v, d] = self.sweeps.pairs(self._block(v, d))

    def _visit(self, v: int, read: list[Future[None]], writing: ThreadPoolExecutor, begun: list[Any]) -> None:
        for each in read:
            each.result()
        task, subs = self.sweeps.task, self.visits[v].subs
        for d in subs:
            if d and v:
                self.done[v - 1, d - 1].wait()
            if self.failed:
                return
            block = self._block(v, d)
            pairs, noise = self.found.pop((v, d)), task.noise[block.context]
            parts = self.centers[v], self.contexts[block.context]
            self.trained[d, block.center] = train_block(
                block, task.config, self.coefficients, pairs, noise, *parts
            )
            self.done[v, d].set()
        context = writing.submit(self._guarded, self._write_context, v)
        begun += [context, writing.submit(self._guarded, self._write_center, v, context)]

    def _write_context(self, v: int) -> None:
        """Write the context that a visit is the last to use."""
        last = len(self.together) - 1
        if last in self.visits[v].subs:
            context = self._block(v, last).context
            self.sweeps.write(self.sweeps.state.context, context, self.contexts.pop(context))

    def _write_center(self, v: int, context: Future[None]) -> None:
        self.sweeps.write(self.sweeps.state.center, self.visits[v].center, self.centers.pop(v))
        context.result()
        self.written[v].set()
        self.places.release()
