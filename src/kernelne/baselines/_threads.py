"""A run of gradient steps in blocks, shared out between threads that write to the tables without locks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kernelne.errors import DivergenceError
from kernelne.progress import Report
from kernelne.training.course import blocks

#: What a thread did: pairs, their loss, and rows seen to have exploded.
Totals = tuple[int, float, int]

#: A row with a larger squared norm has exploded.
NORM_LIMIT = 1e6


def run_blocks(
    total: int, largest: int, n_threads: int, work: Callable[[int, int, int], Totals], report: Report
) -> None:
    """Call work(thread, first, last) until the numbers 0 … total − 1 are done.

    total: what is counted, walks or samples; largest: how many may make a block, between which progress is
    told, divergence is seen and Ctrl-C is heard.
    """
    with ThreadPoolExecutor(max(n_threads - 1, 1)) as pool:
        for first, last in blocks(total, largest):
            ends = [first + (last - first) * part // n_threads for part in range(n_threads + 1)]
            others = [pool.submit(work, part, *ends[part : part + 2]) for part in range(1, n_threads)]
            done = [work(0, *ends[:2]), *(other.result() for other in others)]  # this thread works too
            pairs, loss, n_bad = (sum(each) for each in zip(*done, strict=True))
            if n_bad or loss != loss:
                raise DivergenceError(f"training diverged after {last} of {total} steps: lower learning_rate")
            report(last, total, loss / pairs if pairs else float("nan"))
