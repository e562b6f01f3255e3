"""The threads that share the work of a block on the CPU, and how they are started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from kernelne.training.cpu.barrier import announce, give_up, given_up, make_barrier, wait_for_all


class Workers:
    """The calling thread and n_threads − 1 others, which are kept between blocks and runs.

    barrier: state of the barrier at which they wait for each other in compiled code.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.barrier = make_barrier()
        self._pool = ThreadPoolExecutor(max(n_threads - 1, 1))  # starts threads on demand

    def each(self, work: Callable[[int], Any]) -> list[Any]:
        """Run work(0) … work(n_threads − 1) in parallel and return their results.

        The first runs on this thread, which therefore need not be woken up. If one of them raises an
        exception, it is raised here after all of them have returned.
        """

        careful = self._careful(work)
        others: list[Future[Any]] = []
        try:
            others += [self._pool.submit(careful, part) for part in range(1, self.n_threads)]
            return [careful(0), *(other.result() for other in others)]
        except BaseException:
            self._end(others)
            raise

    @contextmanager
    def team(self, work: Callable[[int], Any]) -> Iterator[Callable[[int, int], None]]:
        """Give the function that trains on walks first … last − 1 with work(0) … work(n_threads − 1).

        work(0) is called for each block and returns after it. The others stay in compiled code from the first
        block to the last: waking them in Python would take longer than a block of a small graph.
        """
        careful = self._careful(work)
        others: list[Future[Any]] = []

        def train(first: int, last: int) -> None:
            announce(self.barrier, first, last)
            careful(0)
            if given_up(self.barrier):
                raise RuntimeError("a thread has failed")

        try:
            others += [self._pool.submit(careful, part) for part in range(1, self.n_threads)]
            yield train
            announce(self.barrier, 0, 0)
            wait_for_all(self.barrier, self.n_threads)
            for other in others:
                other.result()
        except BaseException as error:
            self._end(others)
            failures = (other.exception() for other in others)
            raise next((failure for failure in failures if failure), error) from None

    def _careful(self, work: Callable[[int], Any]) -> Callable[[int], Any]:
        def careful(part: int) -> Any:
            try:
                return work(part)
            except BaseException:
                give_up(self.barrier)
                raise

        return careful

    def _end(self, others: list[Future[Any]]) -> None:
        """Let threads go that wait for one that failed."""
        give_up(self.barrier)
        wait(others)
        self.barrier = make_barrier()

    def share(self, first: int, last: int, work: Callable[[int, int, int], Any]) -> list[Any]:
        """Run work(part, low, high) on every thread, with its part low … high − 1 of first … last − 1."""
        ends = [first + (last - first) * part // self.n_threads for part in range(self.n_threads + 1)]
        return self.each(lambda part: work(part, ends[part], ends[part + 1]))
