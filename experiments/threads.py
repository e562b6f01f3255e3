"""Scores of MKernelNE() and KernelNE trained by one thread and by all: five seeds, the paper's four graphs.

    KERNELNE_DATA=FOLDER python experiments/threads.py [SEEDS]

Prints the mean micro-F1 of both at 1, 5, 10, 50 and 90 % of the labels, ten splits, the largest difference of
these means, and its standard error over the seeds.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from common import load
from kernelne import KernelNE, MKernelNE, classify_nodes

SHARES = (0.01, 0.05, 0.1, 0.5, 0.9)


def score(model: Any, graph: Any, truth: Any, seed: int) -> Any:
    vectors = model.set_params(random_state=seed).fit_transform(graph)
    found = classify_nodes(vectors, truth, train_sizes=SHARES, n_repeats=10, random_state=seed)
    return found.micro_f1.mean(axis=1)


def main() -> None:
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    cores = len(os.sched_getaffinity(0))
    for name in ("cora", "citeseer", "ppi", "dblp"):
        graph, truth = load(name)
        for kind in (MKernelNE, KernelNE):
            scores = np.array(
                [[score(kind(n_threads=t), graph, truth, seed) for t in (1, cores)] for seed in seeds]
            )
            one, many = scores.mean(axis=0)
            error = (scores[:, 1] - scores[:, 0]).std(axis=0, ddof=1) / np.sqrt(len(seeds))
            at = np.abs(many - one).argmax()
            print(
                f"{name}, {kind.__name__}: 1 thread {one.round(3)}, {cores} threads {many.round(3)}, "
                f"largest difference {many[at] - one[at]:+.4f} ± {error[at]:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
