"""Differences between one thread, two threads and deterministic=True: KernelNE-Gauss, links of PPI.

KERNELNE_DATA=FOLDER python experiments/cpu_modes.py [SEEDS]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from common import MODELS, load
from kernelne import score_links, split_links

WAYS: dict[str, dict[str, Any]] = {
    "one thread": {"n_threads": 1},
    "two threads": {"n_threads": 2},
    "deterministic": {"deterministic": True},
}


def main() -> None:
    graph, _ = load("ppi")
    for way, changes in WAYS.items():
        found = []
        for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
            split = split_links(graph, test_share=0.5, random_state=seed)
            model = MODELS["KernelNE-Gauss"]("ppi", seed).set_params(**changes)
            found.append(score_links(model.fit_transform(split.graph), split).auc)
        print(f"{way}: {np.mean(found):.3f}, seeds {np.round(found, 3).tolist()}", flush=True)


if __name__ == "__main__":
    main()
