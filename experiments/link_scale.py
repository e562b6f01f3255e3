"""Effect of the vectors' scale: AUC of the paper's link operator on vectors times 0.25 to 4.

KERNELNE_DATA=FOLDER python experiments/link_scale.py
"""

from __future__ import annotations

import warnings

import numpy as np

from common import MODELS, load
from kernelne.evaluation.link_splits import split_links
from kernelne.evaluation.links import rank_scores, score_links

SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
CASES = (
    ("cora", "KernelNE-Sch"),
    ("cora", "MKernelNE-Sch"),
    ("citeseer", "KernelNE-Sch"),
    ("ppi", "KernelNE-Gauss"),
    ("ppi", "MKernelNE-Gauss"),
)


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)
    print(f"graph, model, split: AUC at scales {SCALES}; by distance alone")
    for graph, model in CASES:
        for seed in range(3):
            split = split_links(load(graph)[0], test_share=0.5, random_state=seed)
            vectors = MODELS[model](graph, seed).fit_transform(split.graph)
            near = [
                -np.square(vectors[pairs[:, 0]] - vectors[pairs[:, 1]]).sum(axis=1)
                for pairs in (split.test_edges, split.test_non_edges)
            ]
            scaled = " ".join(f"{score_links(scale * vectors, split).auc:.3f}" for scale in SCALES)
            print(f"{graph}, {model}, {seed}: {scaled}; {rank_scores(*near).auc:.3f}", flush=True)


if __name__ == "__main__":
    main()
