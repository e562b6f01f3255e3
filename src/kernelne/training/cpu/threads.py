"""Threads that share out a block of work; where they are started."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from kernelne.training.cpu.barrier import give_up, make_barrier


class Workers:
    """This thread and n_threads − 1 others, kept from block to block and from run to run.

    barrier: where compiled code lets them wait for each other.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.barrier = make_barrier()
        self._pool = ThreadPoolExecutor(max(n_threads - 1, 1))  # starts a thread when one is first needed

    def each(self, work: Callable[[int], Any]) -> list[Any]:
        """work(0) … work(n_threads − 1) at once, the first on this thread, which so stays awake.

        A failure of one is raised here, after all of them have returned.
        """

        def careful(part: int) -> Any:
            try:
                return work(part)
            except BaseException:
                give_up(self.barrier)
                raise

        others: list[Future[Any]] = []
        try:
            others += [self._pool.submit(careful, part) for part in range(1, self.n_threads)]
            return [careful(0), *(other.result() for other in others)]
        except BaseException:
            give_up(self.barrier)  # nobody may wait for a thread that is not coming
            wait(others)
            self.barrier = make_barrier()
            raise

    def share(self, first: int, last: int, work: Callable[[int, int, int], Any]) -> list[Any]:
        """work(part, low, high) for every thread, on its part of first … last − 1."""
        ends = [first + (last - first) * part // self.n_threads for part in range(self.n_threads + 1)]
        return self.each(lambda part: work(part, ends[part], ends[part + 1]))
