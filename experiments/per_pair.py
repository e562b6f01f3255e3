"""The paper's algorithm, pair by pair, to test whether training by walks causes our lowest cells.

    KERNELNE_DATA=FOLDER python experiments/per_pair.py

Float32, a noise table of a million entries, six row updates per pair: about a minute for each training.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numba
import numpy as np

from common import load
from kernelne import Graph, KernelNE, classify_nodes
from kernelne.evaluation.link_splits import split_links
from kernelne.evaluation.links import score_links


@numba.njit(fastmath=True)
def train_pairs(walks: Any, noise: Any, start: Any, sigma: Any, gaussian: Any, seed: Any) -> Any:
    """Return the center table (n, d) after all walks: learning rate 0.025 to 1e-4, λ 0.01, 5 negatives."""
    np.random.seed(seed)  # noqa: NPY002  (what Numba has)
    center, context = start.copy(), np.zeros_like(start)
    step = np.zeros(start.shape[1], np.float32)
    l2 = np.float32(0.01)
    for w in range(walks.shape[0]):
        rate = np.float32(max(1e-4, 0.025 * (1 - w / walks.shape[0])))
        for i in range(walks.shape[1]):
            v = walks[w, i]
            for j in range(walks.shape[1]):
                if i == j:
                    continue
                step[:] = 0
                for r in range(6):
                    u = walks[w, j] if r == 0 else noise[np.random.randint(noise.size)]  # noqa: NPY002
                    D = np.float32(0)
                    for k in range(step.size):
                        D += (context[u, k] - center[v, k]) ** 2
                    if gaussian:
                        value = np.exp(-D / (sigma * sigma))
                        slope = value / (sigma * sigma)
                    else:
                        value = (1 + D) ** (-sigma)
                        slope = sigma * value / (1 + D)
                    g = np.float32(4 * ((1 if r == 0 else 0) - value) * slope)
                    for k in range(step.size):
                        apart = context[u, k] - center[v, k]
                        step[k] += g * apart
                        context[u, k] -= rate * (g * apart + l2 * context[u, k])
                for k in range(step.size):
                    center[v, k] += rate * (step[k] - l2 * center[v, k])
    return center


def vectors(graph: Graph, sigma: float, gaussian: bool, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    here = np.concatenate([rng.permutation(graph.n_nodes) for _ in range(80)])
    walks = [here]
    for _ in range(9):
        here = graph.neighbours[
            graph.offsets[here] + (rng.random(here.size) * graph.degrees[here]).astype(int)
        ]
        walks.append(here)
    stacked = np.stack(walks, axis=1).astype(np.int32)
    weights = np.bincount(stacked.ravel(), minlength=graph.n_nodes) ** 0.75
    noise = rng.choice(graph.n_nodes, 10**7, p=weights / weights.sum()).astype(np.int32)
    start = ((rng.random((graph.n_nodes, 128)) - 0.5) / 128).astype(np.float32)
    return train_pairs(stacked, noise, start, sigma, gaussian, seed)


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)
    graph, truth = load("cora")
    for seed in (0, 1):
        ours = KernelNE(kernel="schoenberg", random_state=seed).fit_transform(graph)
        for name, table in (("pair by pair", vectors(graph, 2.0, False, seed)), ("ours", ours)):
            f1 = classify_nodes(table, truth, train_sizes=[0.01], n_repeats=250).micro_f1
            print(
                f"cora, KernelNE-Sch, 1 %, seed {seed}, {name}: {f1.mean():.4f} ± {f1.std() / 250**0.5:.4f}",
                flush=True,
            )
    split = split_links(load("ppi")[0], test_share=0.5)
    ours = score_links(KernelNE(random_state=0).fit_transform(split.graph), split).auc
    print(f"ppi links, KernelNE-Gauss, ours: {ours:.3f}", flush=True)
    for name, sigma in (("D/σ²", 2.0), ("D/(2σ²), as the authors' code has it", 8**0.5)):
        auc = score_links(vectors(split.graph, sigma, True, 0), split).auc
        print(f"ppi links, KernelNE-Gauss, pair by pair, {name}: {auc:.3f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
