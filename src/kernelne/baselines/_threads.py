"""Gradient steps on pairs that are drawn one by one, in blocks, by threads that write without locks."""

from __future__ import annotations

from collections.abc import Callable

from kernelne.errors import DivergenceError
from kernelne.progress import Report
from kernelne.training.course import blocks
from kernelne.training.cpu.threads import Workers

#: What a thread did: pairs, their loss, and rows seen to have exploded.
Totals = tuple[int, float, int]

#: A row with a larger squared norm has exploded.
NORM_LIMIT = 1e6


def run_blocks(
    total: int, largest: int, n_threads: int, work: Callable[[int, int, int], Totals], report: Report
) -> None:
    """Call work(thread, first, last) until the samples 0 … total − 1 are done.

    largest: samples of a block at most. Between blocks progress is reported and divergence noticed.
    """
    workers = Workers(n_threads)
    for first, last in blocks(total, largest):
        pairs, loss, n_bad = (sum(each) for each in zip(*workers.share(first, last, work), strict=True))
        if n_bad or loss != loss:
            raise DivergenceError(f"training diverged after {last} of {total} steps: lower learning_rate")
        report(last, total, loss / pairs if pairs else float("nan"))
