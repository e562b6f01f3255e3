"""The default beside other methods on the development and check graphs (checkset.py).

    KERNELNE_DATA=FOLDER python experiments/default_rivals.py [--methods NetMF,ProNE] [--seeds 5]

All methods have 128 columns, and the walking ones 80 walks of 10 nodes a node. "gensim" is gensim's skip-gram
on the same walks (pip install gensim). Raw vectors, logistic regression with C = 1.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np

from checkset import CHECKS, DEVELOPMENT
from common import DEFAULT, Store, command
from kernelne import MKernelNE, baselines, classify_nodes
from kernelne.walks.sample import WalkPlan, sample_walks, walk_graph

SHARES = (1, 5, 10, 50, 90)
ALL = DEVELOPMENT | CHECKS
FULL: dict[str, Any] = {
    "graphs": tuple(ALL),
    "methods": (DEFAULT, "NetMF", "ProNE", "DeepWalk", "VERSE", "gensim"),
    "seeds": 5,
    "splits": 10,
}
QUICK = FULL | {"graphs": ("karate", "wine"), "seeds": 1, "splits": 3}
_WALKS, _LENGTH = 80, 10


@cache
def graph_of(name: str) -> tuple[Any, Any]:
    return ALL[name]()


def vectors_of(method: str, graph: Any, seed: int) -> Any:
    if method == DEFAULT:
        return MKernelNE(random_state=seed).fit(graph).embedding_
    if method == "gensim":
        return deepwalk(graph, seed)
    return getattr(baselines, method)(random_state=seed).fit(graph).embedding_


def deepwalk(graph: Any, seed: int) -> Any:
    """gensim's skip-gram with its defaults, on walks of ours, two threads."""
    from gensim.models import Word2Vec

    n = graph.n_nodes
    nodes, lengths = np.zeros((n * _WALKS, _LENGTH), np.int64), np.zeros(n * _WALKS, np.int64)
    sample_walks(walk_graph(graph), WalkPlan(np.uint64(seed), _LENGTH, 1.0, 1.0), 0, nodes, lengths)
    words = nodes.astype(str)
    walks = [row[:length].tolist() for row, length in zip(words, lengths, strict=True)]
    trained = Word2Vec(
        walks, vector_size=128, window=10, min_count=0, sg=1, negative=5, hs=0, epochs=1, workers=2, seed=seed
    )
    return np.array([trained.wv[str(v)] for v in range(n)])


def score(name: str, method: str, seed: int, splits: int) -> dict[str, Any]:
    graph, truth = graph_of(name)
    vectors = vectors_of(method, graph, seed)
    result: dict[str, Any] = {"shares": SHARES}
    for kind, given in (("raw", vectors), ("standardised", _standardised(vectors))):
        sizes = [max(s / 100, 1 / len(vectors)) for s in SHARES]
        found = classify_nodes(given, truth, train_sizes=sizes, n_repeats=splits, random_state=seed)
        for metric in ("micro_f1", "macro_f1"):
            result[f"{kind}_{metric}"] = getattr(found, metric).mean(axis=1).round(5).tolist()
    return result


def _standardised(vectors: Any) -> Any:
    return (vectors - vectors.mean(axis=0)) / np.maximum(vectors.std(axis=0), 1e-9)


def run(store: Store, graphs: Any, methods: Any, seeds: int, splits: int) -> None:
    for seed in range(seeds):
        for name in graphs:
            for method in methods:
                store.fill(
                    "rivals",
                    lambda name=name, method=method, seed=seed: score(name, method, seed, splits),
                    graph=name,
                    method=method,
                    seed=seed,
                )


def render(store: Store, **settings: Any) -> list[str]:
    return [f"{len(store.read_all('rivals'))} cells"]


if __name__ == "__main__":
    command(sys.modules[__name__])
