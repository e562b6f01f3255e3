"""Effect of walks in flight on a GPU: scores of one model by the number of nodes per walk in flight.

KERNELNE_DATA=FOLDER python experiments/walks_in_flight.py ppi KernelNE-Gauss
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from common import MODELS, load
from kernelne import classify_nodes
from kernelne.evaluation.link_splits import split_links
from kernelne.evaluation.links import score_links
from kernelne.training.gpu import backend as gpu

SEEDS = range(3)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    name, model = sys.argv[1:3]
    graph, truth = load(name)
    splits = [split_links(graph, test_share=0.5, random_state=seed) for seed in SEEDS]
    for nodes in (25, 100, 400, 2000):
        gpu.walks_in_flight = lambda n, nodes=nodes: max(n // nodes, 1)
        f1, auc = [], []
        for seed in SEEDS:
            estimator = MODELS[model](name, seed).set_params(backend="gpu", progress=False)
            scores = classify_nodes(
                estimator.fit_transform(graph), truth, n_repeats=6, random_state=seed, n_threads=4
            )
            f1.append(scores.micro_f1.mean(axis=1))
            auc.append(score_links(estimator.fit_transform(splits[seed].graph), splits[seed]).auc)
        print(name, model, nodes, np.mean(f1, axis=0).round(4), np.mean(auc).round(4), flush=True)
