"""Graphs that grow: updates beside training anew, and nodes folded in: figures of docs/grow.md.

    KERNELNE_DATA=FOLDER python experiments/growth.py [--seeds 5] [--graphs cora,dblp]

steps: the edges of a graph come in ten parts; the model is trained on the first five, the others come one at
a time, and after each the updated vectors and those of a new training are scored (micro-F1 with half of the
labels, five splits), with the CPU time of both, one thread. A classifier trained before the first update is
scored after the last one too. last: the same with the last part only. folded: 5 % of the nodes are left out
of the training, then folded in by their links; a classifier of the others is scored on them, beside one of a
training with all nodes. speed, on request: half a million nodes folded in.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from kernelne import Embedding, Graph, MKernelNE, classify_nodes, fold_in, update_embedding
from kernelne.graph.ops import edges_of


def score(vectors: Any, truth: Any) -> float:
    return float(classify_nodes(vectors, truth, train_sizes=[0.5], n_repeats=5).micro_mean[0])


def model(seed: int) -> MKernelNE:
    return MKernelNE(random_state=seed, n_threads=1)


def train(graph: Graph, seed: int) -> tuple[Any, float]:
    start = time.process_time()
    made = model(seed).fit(graph).to_embedding()
    return made, time.process_time() - start


def steps(graph: Graph, truth: Any, seed: int, first: int) -> dict[str, float]:
    """Reveal the edges from part `first` on; means over the steps."""
    edges, _ = edges_of(graph)
    order = np.random.default_rng(seed).permutation(len(edges))

    def part(k: int) -> Graph:
        some = edges[order[: len(edges) * k // 10]]
        return Graph.from_edges(some[:, 0], some[:, 1], nodes=np.arange(graph.n_nodes))

    single = truth.sum(axis=1) == 1
    label = truth.argmax(axis=1)
    old, _ = train(part(first), seed)
    halves = np.random.default_rng(seed).random(graph.n_nodes) < 0.5
    learned, tested = single & halves, single & ~halves
    before = LogisticRegression(max_iter=1000).fit(old.vectors[learned], label[learned])
    first_score = before.score(old.vectors[tested], label[tested])
    rows = []
    for k in range(first + 1, 11):
        now = part(k)
        start = time.process_time()
        old = update_embedding(old, now, n_threads=1, random_state=seed + k)
        seconds = time.process_time() - start
        anew, whole = train(now, seed)
        rows.append((score(old.vectors, truth), score(anew.vectors, truth), seconds / whole))
    after = LogisticRegression(max_iter=1000).fit(old.vectors[learned], label[learned])
    updated, retrained, share = np.array(rows).T
    return {
        "updated": updated[-1],
        "trained anew": retrained[-1],
        "difference": float((updated - retrained).mean()),
        "CPU time": float(share.mean()),
        "old classifier before": first_score,
        "after": before.score(old.vectors[tested], label[tested]),
        "new classifier": after.score(old.vectors[tested], label[tested]),
    }


def folded(graph: Graph, truth: Any, seed: int) -> dict[str, float]:
    """Fold in 5 % of the nodes."""
    n = graph.n_nodes
    hidden = np.zeros(n, bool)
    hidden[np.random.default_rng(seed).choice(n, n // 20, replace=False)] = True
    edges, _ = edges_of(graph)
    among = ~hidden[edges].any(axis=1)
    known = Graph.from_edges(*edges[among].T, nodes=np.flatnonzero(~hidden))
    small, _ = train(known, seed)
    start = time.perf_counter()
    made = fold_in(small, edges[~among])
    seconds = time.perf_counter() - start
    whole, _ = train(graph, seed)
    label = truth.argmax(axis=1)
    tested = np.flatnonzero(hidden & (truth.sum(axis=1) == 1) & np.isin(np.arange(n), made.nodes))
    learned = np.flatnonzero(~hidden & (truth.sum(axis=1) == 1))
    scores = [
        LogisticRegression(max_iter=1000).fit(e[learned], label[learned]).score(e[tested], label[tested])
        for e in (made, whole)
    ]
    return {"folded in": scores[0], "trained with them": scores[1], "nodes/s": hidden.sum() / seconds}


def speed() -> None:
    """Time to fold in half a million nodes with five links each into a million vectors of 128 columns."""
    rng = np.random.default_rng(0)
    known, new = 1_000_000, 500_000
    embedding = Embedding(rng.random((known, 128), np.float32), np.arange(known))
    links = np.column_stack([np.repeat(np.arange(known, known + new), 5), rng.integers(0, known, 5 * new)])
    fold_in(embedding, links[:50])
    start = time.perf_counter()
    fold_in(embedding, links)
    print(f"speed   {new:,} nodes folded in within {time.perf_counter() - start:.1f} s")


PARTS = {
    "steps": lambda graph, truth, seed: steps(graph, truth, seed, 5),
    "last": lambda graph, truth, seed: steps(graph, truth, seed, 9),
    "folded": folded,
}


def graphs(names: list[str]) -> dict[str, Any]:
    if "KERNELNE_GRAPHS" in os.environ:  # an .npz of default_search.py, for machines without the files
        from default_search import read_graphs

        stored = read_graphs(Path(os.environ["KERNELNE_GRAPHS"]))
        found = {name: (graph, truth) for name, graph, truth in stored}
        return {name: found[name] for name in names}
    from checkset import DEVELOPMENT

    return {name: DEVELOPMENT[name]() for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--graphs", default="cora,citeseer,dblp")
    parser.add_argument("--parts", default=",".join(PARTS))
    given = parser.parse_args()
    for part in given.parts.split(","):
        if part == "speed":
            speed()
            continue
        for name, (graph, truth) in graphs(given.graphs.split(",")).items():
            found = [PARTS[part](graph, truth, seed) for seed in range(given.seeds)]
            means = {key: np.mean([each[key] for each in found]) for key in found[0]}
            print(
                f"{part:7} {name:9}",
                "  ".join(f"{key} {value:.4g}" for key, value in means.items()),
                flush=True,
            )


if __name__ == "__main__":
    main()
