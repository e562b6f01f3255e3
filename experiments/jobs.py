"""Predicting labels, ranking links, many negatives: figures of docs/classify.md, performance.md, method.md.

    KERNELNE_DATA=FOLDER python experiments/jobs.py [--parts predict,recommend,negatives]

predict: NodeClassifier with 10 and 50 % of the labels, on the splits of classify_nodes: micro-F1 of both, and
the expected calibration error on the other nodes. recommend: recall@20 and NDCG@20 on Gowalla, of the default
and of the settings it would have if the graph were not bipartite. negatives: the default on the dense block
model with more and more of them. Means of the splits or seeds that are told.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from checkset import DEVELOPMENT
from common import table
from kernelne import MKernelNE, NodeClassifier, classify_nodes, rank_links, read_graph
from kernelne.evaluation.classification import f1_scores, shuffle
from kernelne.evaluation.node_classifier import calibration_error

SPLITS, SEEDS = 5, 2


def predict() -> None:
    rows = []
    for name in ("cora", "ppi", "citeseer", "dblp"):
        graph, truth = DEVELOPMENT[name]()
        vectors = MKernelNE(random_state=0).fit(graph).embedding_
        for share in (0.1, 0.5):
            known = classify_nodes(vectors, truth, train_sizes=[share], n_repeats=SPLITS, random_state=0)
            scores = np.mean([_predicted(vectors, truth, share, split) for split in range(SPLITS)], axis=0)
            rows.append([name, f"{share:.0%}", f"{known.micro_f1.mean():.3f}", *(f"{x:.3f}" for x in scores)])
    methods = ["classify_nodes", "NodeClassifier", "number of labels given", "best threshold in hindsight"]
    head = ["graph", "labels", *methods, "calibration error"]
    print(table(head, rows) + "\n")


def _predicted(vectors: Any, truth: Any, share: float, split: int) -> tuple[float, ...]:
    order = shuffle(0, split, len(vectors))
    n_train = int(share * len(vectors))
    test = order[n_train:]
    given = np.zeros(truth.shape, int)
    given[order[:n_train]] = truth[order[:n_train]]
    model = NodeClassifier().fit(vectors, given)
    chances, right = model.predict_proba(vectors[test]), truth[test][:, model.classes_]
    counted = model.predict(vectors[test], truth[test].sum(axis=1).clip(max=len(model.classes_)))
    if model.multilabel_:
        told = model.predict(vectors[test])
        error = calibration_error(chances.ravel(), right.ravel())
    else:
        told = model.predict(vectors[test], 1)
        best = chances.argmax(axis=1)
        error = calibration_error(chances.max(axis=1), right[np.arange(len(best)), best])
    tried = [told, counted]
    if model.multilabel_:  # what no choice of a threshold could exceed
        tried += [NodeClassifier._told(model, chances, least) for least in np.linspace(0.02, 0.8, 79)]
    micro = [f1_scores(truth[test], _all_classes(each, model, truth.shape[1]))[0] for each in tried]
    return micro[0], micro[1], max(micro[2:], default=micro[0]), error


def _all_classes(told: Any, model: Any, n_classes: int) -> Any:
    whole = np.zeros((len(told), n_classes), bool)
    whole[:, model.classes_] = told
    return whole


def recommend() -> None:
    folder, rows = Path(os.environ["KERNELNE_DATA"]), []
    graph = read_graph(folder / "gowalla.train.edges.gz")
    with gzip.open(folder / "gowalla.test.edges.gz", "rt") as lines:
        new = [tuple(line.split()) for line in lines]
    # As for a graph of this size and degree that is not bipartite.
    plain = MKernelNE(
        kernels=[("gaussian", 1.25), ("gaussian", 5.0)], walks_per_node=53, learning_rate=0.19, l2=0.01,
        window_decay=0.21, n_negative=5, shared_negatives=14,
    )  # fmt: skip
    for name, model in (("MKernelNE()", MKernelNE()), ("settings of other graphs", plain)):
        for seed in range(SEEDS):
            start = time.perf_counter()
            embedding = model.set_params(random_state=seed).fit(graph).to_embedding()
            seconds = time.perf_counter() - start
            scores = rank_links(graph, embedding, new)
            rows.append([name, str(seed), f"{scores.recall:.3f}", f"{scores.ndcg:.3f}", f"{seconds:.0f}"])
    print(table(["Gowalla", "seed", "recall@20", "NDCG@20", "seconds to train"], rows) + "\n")


def negatives() -> None:
    graph, truth = DEVELOPMENT["blocks, dense"]()
    rows = []
    for n_negative in (1, 5, 20, 60, 120, 250):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            vectors = MKernelNE(random_state=0, n_negative=n_negative).fit(graph).embedding_
        warned = any("all alike" in str(each.message) for each in caught)
        scores = classify_nodes(vectors, truth, train_sizes=[0.1], n_repeats=SPLITS, random_state=0)
        rows.append([str(n_negative), f"{scores.micro_f1.mean():.3f}", "yes" if warned else ""])
    print(table(["negatives", "micro-F1 at 10 %", "warned"], rows))


PARTS = {"predict": predict, "recommend": recommend, "negatives": negatives}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS))
    for part in parser.parse_args().parts.split(","):
        PARTS[part]()


if __name__ == "__main__":
    main()
