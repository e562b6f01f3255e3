"""Training on sampled pairs, in blocks, by threads that write without locks."""

from __future__ import annotations

from collections.abc import Callable

from kernelne.errors import DivergenceError
from kernelne.progress import Report
from kernelne.training.cpu.threads import Workers
from kernelne.training.schedule import blocks

#: Results of a thread: number of pairs, their loss, number of exploded rows.
Totals = tuple[int, float, int]

#: A row with a larger squared norm has exploded.
NORM_LIMIT = 1e6


def run_blocks(
    total: int, largest: int, n_threads: int, work: Callable[[int, int, int], Totals], report: Report
) -> None:
    """Call work(thread, first, last) until the samples 0 … total − 1 are done.

    largest: maximum number of samples in a block. After each block progress is reported, and a
    DivergenceError is raised if training has diverged.
    """
    workers = Workers(n_threads)
    for first, last in blocks(total, largest):
        pairs, loss, n_bad = (sum(each) for each in zip(*workers.share(first, last, work), strict=True))
        if n_bad or loss != loss:
            raise DivergenceError(f"training diverged after {last} of {total} steps: lower learning_rate")
        report(last, total, loss / pairs if pairs else float("nan"))
