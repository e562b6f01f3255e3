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
from common import DEFAULT, Section, Store, command, number, table
from kernelne import MKernelNE, baselines, classify_nodes
from kernelne.walks.sample import WalkPlan, sample_walks, walk_graph

SHARES = (1, 5, 10, 50, 90)
#: How far below the best still counts as level.
LEVEL = 0.005
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


def render(store: Store, graphs: Any, methods: Any, **settings: Any) -> list[Section]:
    rows, cells, scaled, unlike = [], [], [], []
    for name in graphs:
        scores = {method: _scores(store, name, method) for method in methods}
        rivals = [scores[method] for method in methods if method != DEFAULT and scores[method] is not None]
        ours = scores.get(DEFAULT)
        if ours is None or not rivals:
            continue
        best = np.max(rivals, axis=0)
        cells.append(ours - best)
        both = {method: _scores(store, name, method, "standardised") for method in methods}
        theirs = np.max([both[m] for m in methods if m != DEFAULT and both[m] is not None], axis=0)
        scaled.append(both[DEFAULT] - theirs)
        unlike.append(ours - np.maximum(best, theirs))
        micro = [f"{number(ours[0][i])} ({number(float(best[0][i]))})" for i in range(len(SHARES))]
        where = "development" if name in DEVELOPMENT else "check"
        lowest = number(float(cells[-1].min()), sign=True)
        rows.append([name, where, *micro, f"{(cells[-1] >= -LEVEL).mean():.0%}", lowest])
    if not rows:
        return []
    level = np.array(cells) >= -LEVEL
    kinds = [row[1] for row in rows]
    told = [
        f"{level[[k == kind for k in kinds]].mean():.0%} on {kind} graphs" for kind in dict.fromkeys(kinds)
    ]
    text = (
        "Micro-F1 of the default and, in brackets, of the best of NetMF, ProNE, DeepWalk, VERSE "
        "(kernelne.baselines) and gensim's DeepWalk, whichever is best in that cell; then the "
        "share of micro- and macro-F1 cells at most "
        f"{LEVEL} below the best of them, and the lowest difference. Over all cells: {', '.join(told)}. "
        f"With all columns standardised it is {_level(scaled)} of the cells, and {_level(unlike)} if each "
        "rival has the better of both and the default its vectors as they are.\n\n"
    )
    head = ["graph", "", *(f"{share} %" for share in SHARES), "level or better", "lowest"]
    return [Section("The default beside other methods", text + table(head, rows))]


def _level(differences: Any) -> str:
    return f"{(np.array(differences) >= -LEVEL).mean():.0%}"


def _scores(store: Store, name: str, method: str, kind: str = "raw") -> Any:
    """Return micro- and macro-F1 by share, mean of all seeds; None without any."""
    found = [r for r in store.read_all("rivals") if (r["graph"], r["method"]) == (name, method)]
    if not found:
        return None
    return np.mean([[r[f"{kind}_micro_f1"], r[f"{kind}_macro_f1"]] for r in found], axis=0)


if __name__ == "__main__":
    command(sys.modules[__name__])
