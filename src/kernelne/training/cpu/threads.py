"""The threads that share the work of a block on the CPU, and how they are started."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from kernelne.training.cpu.barrier import give_up, make_barrier


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
            give_up(self.barrier)  # other threads must not wait for the one that failed
            wait(others)
            self.barrier = make_barrier()
            raise

    def share(self, first: int, last: int, work: Callable[[int, int, int], Any]) -> list[Any]:
        """Run work(part, low, high) on every thread, with its part low … high − 1 of first … last − 1."""
        ends = [first + (last - first) * part // self.n_threads for part in range(self.n_threads + 1)]
        return self.each(lambda part: work(part, ends[part], ends[part + 1]))
