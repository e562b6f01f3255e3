"""A model of arcs beside those of links without direction: figures of docs/links.md.

    KERNELNE_DATA=FOLDER python experiments/directed.py [--seeds 5]

A fifth of the pairs of wiki_vote that have arcs is hidden, in both directions. Hidden arcs are told apart
from as many pairs without an arc in either direction, whose sources and targets have the degrees of the arcs,
and from the reversed arcs that do not exist. AUC, mean and standard deviation over seeds. Then micro-F1 with
10 % and half of the labels on directed block models, sparse to dense, with and without forward=True.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from checkset import _blocks
from common import table
from kernelne import Graph, LinkPredictor, MKernelNE, classify_nodes, read_graph
from kernelne.graph.ops import as_undirected, contains
from kernelne.graph.pairs import hide_edges
from kernelne.model.kernels import KERNELS


def arcs_of(graph: Graph) -> Any:
    return np.column_stack([np.repeat(np.arange(graph.n_nodes), graph.degrees), graph.neighbours])


def pairs_of(graph: Graph, hidden: Any, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return hidden arcs, as many non-arcs with their degrees, and reversed arcs that do not exist."""
    n = graph.n_nodes
    keys = np.sort(arcs_of(graph) @ (n, 1))
    both = np.concatenate([hidden, hidden[:, ::-1]])
    there = contains(keys, both @ (n, 1))
    arcs = both[there]
    others = np.column_stack([arcs[:, 0], rng.permutation(arcs[:, 1])])
    while True:
        known = contains(keys, others @ (n, 1)) | contains(keys, others[:, ::-1] @ (n, 1))
        bad = np.flatnonzero(known | (others[:, 0] == others[:, 1]))
        if not len(bad):
            return arcs, others, both[~there]
        others[bad, 1] = arcs[rng.integers(len(arcs), size=len(bad)), 1]


def by_kernel(model: MKernelNE) -> Callable[[Any], Any]:
    """Score pairs (u, v) by the kernel of context[v] and center[u]."""

    def score(pairs: Any) -> Any:
        far = ((model.context_[pairs[:, 1]] - model.center_[pairs[:, 0]]) ** 2).sum(axis=1)
        mixture = zip(model.coefficients_, model.kernels_, strict=True)
        return sum(c * KERNELS[name](far, sigma)[0] for c, (name, sigma) in mixture)

    return score


def both_ways(score: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda pairs: score(pairs) + score(pairs[:, ::-1])


def predicted(graph: Graph, model: MKernelNE, seed: int) -> Callable[[Any], Any]:
    predictor = LinkPredictor(random_state=seed, non_edges="degree").fit(graph, model.to_embedding())
    return lambda pairs: predictor.predict_proba(graph.nodes[pairs])[:, 1]


def run(graph: Graph, seed: int) -> dict[str, list[float]]:
    rng = np.random.default_rng(seed)
    rest, hidden = hide_edges(graph, 0.2, rng)
    arcs, others, turned = pairs_of(graph, hidden, rng)
    plain = as_undirected(rest)
    without = MKernelNE(random_state=seed).fit(plain)
    along = MKernelNE(random_state=seed).fit(rest)
    forward = MKernelNE(random_state=seed, forward=True).fit(rest)
    n_in, n_out = np.bincount(rest.neighbours, minlength=rest.n_nodes), rest.degrees
    methods: dict[str, Callable[[Any], Any]] = {
        "degrees: out of the source, in of the target": lambda p: (
            np.log1p(n_out[p[:, 0]]) + np.log1p(n_in[p[:, 1]])
        ),
        "undirected graph, kernel": both_ways(by_kernel(without)),
        "undirected graph, LinkPredictor": predicted(plain, without, seed),
        "directed walks, pairs in both orders, kernel": by_kernel(along),
        "forward=True, kernel": by_kernel(forward),
        "forward=True, LinkPredictor": predicted(rest, forward, seed),
    }
    found = {}
    for name, score in methods.items():
        high = score(arcs)
        lows = [score(pairs) for pairs in (others, turned)]
        lows.append(np.concatenate(lows))
        found[name] = [
            float(roc_auc_score(np.arange(len(high) + len(low)) < len(high), np.concatenate([high, low])))
            for low in lows
        ]
    return found


def labels(seed: int) -> None:
    rows = []
    for name, shape in {"sparse": (138, 3000, 15, 8, 0.7), "dense": (140, 4000, 20, 50, 0.3)}.items():
        graph, truth = _blocks(*shape, directed=True)
        for forward in (False, True):
            vectors = MKernelNE(random_state=seed, forward=forward).fit(graph).embedding_
            scores = classify_nodes(vectors, truth, train_sizes=[0.1, 0.5], n_repeats=5)
            rows.append([name, str(forward), *(f"{score:.3f}" for score in scores.micro_mean)])
    print("\n" + table(["blocks", "forward", "10 %", "50 %"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    path = Path(os.environ["KERNELNE_DATA"]) / "wiki_vote.directed.gz"
    graph = read_graph(path, format="edgelist", directed=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*have no edges")
        runs = [run(graph, seed) for seed in range(given.seeds)]
    rows = []
    for name in runs[0]:
        scores = np.array([each[name] for each in runs])
        rows.append(
            [name, *(f"{m:.3f} ± {s:.3f}" for m, s in zip(scores.mean(0), scores.std(0), strict=True))]
        )
    print(table(["wiki_vote", "others of their degrees", "reversed arcs", "both"], rows))
    labels(0)


if __name__ == "__main__":
    main()
