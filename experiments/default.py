"""The default, MKernelNE(): the effect of each choice, its cost, and graphs not used to find its rules.

    KERNELNE_DATA=FOLDER python experiments/default.py [--quick] [--graphs cora,ppi] [--splits 20]

Needs gensim for DeepWalk on the same walks (pip install gensim). Costs are CPU times: use a quiet machine.
"""

from __future__ import annotations

import sys
import time
from functools import lru_cache
from statistics import median
from typing import Any

import numpy as np

import tables2_5
from checkset import CHECKS, SEEDS
from common import (
    DEFAULT,
    EVERY,
    MODELS,
    Section,
    Store,
    command,
    load,
    make_model,
    number,
    paper_scores,
    table,
)
from kernelne import MKernelNE, classify_nodes
from kernelne.model.combine_tables import combine
from kernelne.model.defaults import AUTO
from kernelne.walks.sample import WalkPlan, sample_walks, walk_graph

FULL: dict[str, Any] = {
    "graphs": ("cora", "citeseer", "ppi", "dblp"),
    "shares": tables2_5.SHARES,
    "splits": 20,
    "checks": tuple(CHECKS),
    "repeats": 3,
}
WALKS = AUTO["walks_per_node"]  # DeepWalk gets the most that the default takes
QUICK = FULL | {
    "graphs": ("cora",),
    "shares": (1, 10, 50, 90),
    "splits": 3,
    "checks": ("wine", "karate"),
    "repeats": 1,
}

GAUSSIANS = tuple(("gaussian", sigma) for sigma in (1.0, 2.0, 3.0))

#: The changes to the default, one at a time.
CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "l2 = 0.01 for all": {"l2": 0.01},
    "l2 = 0.003 for all": {"l2": 0.003},
    "two kernels for all": {"kernels": GAUSSIANS[:2]},
    "three kernels for all": {"kernels": GAUSSIANS},
    "one kernel, sigma 1.4": {"kernels": (("gaussian", 1.4),)},
    "a mixed dictionary": {"kernels": (("gaussian", 1.0), ("gaussian", 2.0), ("schoenberg", 1.0))},
    "80 walks a node": {"walks_per_node": 80},
    "42 walks of 40 nodes": {"walks_per_node": 42, "walk_length": 40},
    "not smoothed: sum": {"vectors": "sum"},
    "not smoothed: center": {"vectors": "center"},
    "concat": {"vectors": "concat"},
    "length 2.5 for all": {"norm": 2.5},
    "length 1 for all": {"norm": 1.0},
    "length 6 for all": {"norm": 6.0},
    "coefficients free, as in the paper": {"coef_l2": 0.1, "coef_spread": 0.0},
}


@lru_cache(maxsize=1)
def fitted(graph: str) -> MKernelNE:
    return MKernelNE(random_state=0).fit(load(graph)[0])


def ablate(graph: str, change: str, shares: Any, splits: int) -> dict[str, Any]:
    network, truth = load(graph)
    base, changes = fitted(graph), CHANGES[change]
    chosen = {name: value for name, value in base.chosen_.items() if name != "signal"}
    if changes.keys() <= {"vectors", "norm"} and changes.get("vectors") != "concat":
        output = {name: changes.get(name, chosen[name]) for name in ("vectors", "norm")}
        vectors = combine(base.graph_, base.center_, base.context_, **output)
    else:  # all else as it was chosen: kernels that are given would bring back the plain defaults
        vectors = MKernelNE(random_state=0, **(chosen | changes)).fit(network).embedding_
    scores = classify_nodes(
        vectors, truth, train_sizes=[s / 100 for s in shares], n_repeats=splits, random_state=0
    )
    return _means(scores)


def standardise(graph: str, model: str, shares: Any, splits: int) -> dict[str, Any]:
    """Score vectors whose columns have mean 0 and standard deviation 1, which removes the effect of scale."""
    network, truth = load(graph)
    vectors = make_model(model, graph, 0).fit(network).embedding_
    vectors = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)
    return _means(
        classify_nodes(
            vectors, truth, train_sizes=[s / 100 for s in shares], n_repeats=splits, random_state=0
        )
    )


def _means(scores: Any) -> dict[str, Any]:
    return {name: getattr(scores, name).mean(axis=1).round(5).tolist() for name in ("micro_f1", "macro_f1")}


def cost(graph: str, repeats: int) -> dict[str, Any]:
    """Measure CPU seconds on one thread: the paper's mixture, the default, the default without pilot run."""
    network, _ = load(graph)
    chosen = MKernelNE(random_state=0, n_threads=1).fit(network).chosen_
    models = {
        "paper": MKernelNE.paper("gaussian", graph),
        "default": MKernelNE(),
        "no pilot": MKernelNE(**{name: value for name, value in chosen.items() if name != "signal"}),
    }
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for seed in range(repeats + 1):
        for name, model in models.items():
            start = time.process_time()
            model.set_params(random_state=seed, n_threads=1).fit(network)
            if seed:  # the first compiles
                seconds[name].append(round(time.process_time() - start, 4))
    return {"cpu_seconds": seconds}


def check(name: str, method: str, seed: int) -> dict[str, Any]:
    """Micro- and macro-F1 at 10 and 50 %, as trained and with standardised vectors."""
    graph, truth = CHECKS[name]()
    vectors = (
        MKernelNE(random_state=seed).fit(graph).embedding_ if method == DEFAULT else deepwalk(graph, seed)
    )
    result = {}
    for kind, table_ in (("raw", vectors), ("standardised", (vectors - vectors.mean(0)) / vectors.std(0))):
        scores = classify_nodes(table_, truth, train_sizes=(0.1, 0.5), n_repeats=50, random_state=seed)
        result[kind] = _means(scores)
    return result


def deepwalk(graph: Any, seed: int) -> Any:
    """Train gensim's skip-gram with negative sampling on walks of the default's number and length."""
    from gensim.models import Word2Vec

    n, length = graph.n_nodes, 10
    nodes, lengths = np.zeros((WALKS * n, length), np.int64), np.zeros(WALKS * n, np.int64)
    sample_walks(walk_graph(graph), WalkPlan(np.uint64(seed), length, 1.0, 1.0), 0, nodes, lengths)
    words = [str(i) for i in range(n)]
    walks = [[words[v] for v in row[:k]] for row, k in zip(nodes.tolist(), lengths.tolist(), strict=True)]
    model = Word2Vec(
        walks, vector_size=128, window=10, min_count=0, sg=1, negative=5, workers=2, epochs=1, seed=seed
    )
    return np.array([model.wv[word] for word in words])


def run(store: Store, graphs: Any, shares: Any, splits: int, checks: Any, repeats: int) -> None:
    for name in checks:
        for seed in SEEDS[: max(repeats, 1)]:
            for method in (DEFAULT, "DeepWalk"):
                key = {"part": "check", "graph": name, "method": method, "seed": seed}
                store.fill("default", lambda key=key: check(key["graph"], key["method"], key["seed"]), **key)
    for graph in graphs:
        for model in EVERY:
            key = {"part": "standardised", "graph": graph, "model": model, "splits": splits}
            store.fill(
                "default", lambda key=key: standardise(key["graph"], key["model"], shares, splits), **key
            )
        for change in CHANGES:
            key = {"part": "ablation", "graph": graph, "change": change, "splits": splits}
            store.fill("default", lambda key=key: ablate(key["graph"], key["change"], shares, splits), **key)
    for graph in graphs:
        key = {"part": "cost", "graph": graph, "repeats": repeats}
        store.fill("default", lambda key=key: cost(key["graph"], key["repeats"]), **key)


def render(store: Store, graphs: Any, shares: Any, splits: int, checks: Any, repeats: int) -> list[Section]:
    parts = [
        _standing(store, graphs),
        _ablation(store, graphs, shares, splits),
        _standardised(store, graphs, shares, splits),
        _cost(store, graphs, repeats),
        _checks(store, checks, repeats),
    ]
    return [Section("The default, MKernelNE()", "\n\n".join(part for part in parts if part))]


def _best(graph: str, shares: Any) -> Any:
    """Return the best of the paper's thirteen methods: (micro and macro, shares)."""
    paper = [paper_scores(metric) for metric in ("micro_f1", "macro_f1")]
    return np.array(
        [
            [max(v for (g, _, s), v in p.items() if (g, s) == (graph, share)) for share in shares]
            for p in paper
        ]
    )


def _sum_up(differences: Any) -> list[str]:
    """Return the share of cells at or above, to the paper's three digits, the lowest and the mean."""
    rounded = np.round(differences, 3)
    lowest, mean = float(differences.min()), float(differences.mean())
    return [f"{(rounded >= 0).mean():.0%}", number(lowest, sign=True), number(mean, 4, sign=True)]


def _standing(store: Store, graphs: Any) -> str:
    rows, all_ = [], []
    for graph in graphs:
        seeds = range(tables2_5.DEFAULT_SEEDS)
        found = [store.read("tables2_5", graph=graph, model=DEFAULT, seed=s, splits=50) for s in seeds]
        found = [r for r in found if r]
        if not found:
            continue
        ours = np.mean([[np.mean(r[m], axis=1) for m in ("micro_f1", "macro_f1")] for r in found], axis=0)
        all_.append(ours - _best(graph, found[0]["shares"]))
        chosen = found[0]["provenance"].get("chosen", {})
        told = [str(len(chosen.get("kernels", ()))), str(chosen.get("l2")), str(chosen.get("norm"))]
        rows.append([graph, *_sum_up(all_[-1]), *told])
    if not rows:
        return ""
    rows.append(["all", *_sum_up(np.array(all_)), "", "", ""])
    text = (
        "Beside the best of the paper's thirteen methods in each of 144 cells (Tables 2–5; 18 shares, "
        "micro- and macro-F1), three seeds, 50 splits: cells at or above it, the lowest, the mean "
        "difference, and what was chosen.\n\n"
    )
    return text + table(["graph", "at or above", "lowest", "mean", "kernels", "l2", "length of rows"], rows)


def _ablation(store: Store, graphs: Any, shares: Any, splits: int) -> str:
    rows = []
    for change in CHANGES:
        row = []
        for graph in graphs:
            found = store.read("default", part="ablation", graph=graph, change=change, splits=splits)
            if found:
                row.append(np.array([found["micro_f1"], found["macro_f1"]]) - _best(graph, shares))
        if len(row) == len(graphs):
            rows.append(
                [change, *_sum_up(np.array(row)), *(number(float(d.mean()), 4, sign=True) for d in row)]
            )
    if not rows:
        return ""
    text = (
        f"Each choice off or over, one at a time; one seed, {splits} splits, the same cells; last the mean "
    )
    text += "difference by graph.\n\n"
    return text + table(["", "at or above", "lowest", "mean", *graphs], rows)


def _standardised(store: Store, graphs: Any, shares: Any, splits: int) -> str:
    rows = []
    for graph in graphs:
        found = {
            m: store.read("default", part="standardised", graph=graph, model=m, splits=splits) for m in EVERY
        }
        if not all(found.values()):
            continue
        at = [list(shares).index(share) for share in (1, 10, 50, 90) if share in shares]
        cells = [" ".join(number(r["micro_f1"][i])[1:] for i in at) for r in found.values() if r]
        means = {m: float(np.mean([r["micro_f1"], r["macro_f1"]])) for m, r in found.items() if r}
        ahead = means[DEFAULT] - max(means[m] for m in MODELS)
        rows.append([graph, *cells, number(ahead, 4, sign=True)])
    if not rows:
        return ""
    text = (
        "With every column standardised, so that the scale of the vectors cannot help: micro-F1 at 1, "
        f"10, 50 and 90 %, one seed, {splits} splits; last, how far the default's mean over all cells "
        "is from that of the best of the other four.\n\n"
    )
    return text + table(["graph", *EVERY, "ahead by"], rows)


def _cost(store: Store, graphs: Any, repeats: int) -> str:
    rows = []
    for graph in graphs:
        found = store.read("default", part="cost", graph=graph, repeats=repeats)
        if found:
            paper, default, without = (median(v) for v in found["cpu_seconds"].values())
            rows.append([graph, number(paper, 2), number(default, 2), number(default / paper, 2)])
            rows[-1].append(f"{(default - without) / default:.0%}")
    if not rows:
        return ""
    text = (
        f"CPU seconds on one thread, median of {repeats}, beside MKernelNE with the paper's settings "
        "on the same graph; last, the pilot's share.\n\n"
    )
    return text + table(["graph", "paper's settings", "default", "times", "pilot"], rows)


def _checks(store: Store, checks: Any, repeats: int) -> str:
    rows = []
    for name in checks:
        cells, worst = [], []
        for kind in ("raw", "standardised"):
            scores = {}
            for method in (DEFAULT, "DeepWalk"):
                found = [
                    store.read("default", part="check", graph=name, method=method, seed=seed)
                    for seed in SEEDS[: max(repeats, 1)]
                ]
                values = [[r[kind]["micro_f1"], r[kind]["macro_f1"]] for r in found if r]
                if values:
                    scores[method] = np.array(values)  # seeds, metrics, shares
            if len(scores) < 2:
                break
            ours, theirs = (s.mean(axis=0) for s in scores.values())
            spread = [s.std(axis=0, ddof=1) if len(s) > 1 else np.zeros_like(ours) for s in scores.values()]
            cells += [f"{number(ours[0][i])} / {number(theirs[0][i])}" for i in (0, 1)]
            worst.append(float((ours - theirs).min()))
            worst.append(float(np.max(spread)))
        else:
            rows.append(
                [name, *cells, number(worst[0], sign=True), number(worst[2], sign=True), number(worst[1])]
            )
    if not rows:
        return ""
    text = (
        "On graphs that played no part in finding the rules (experiments/checkset.py, written before "
        "the search), beside DeepWalk (gensim, 170 walks of 10 a node): micro-F1 at 10 and 50 %, "
        f"default / DeepWalk, as they are and standardised; {max(repeats, 1)} seeds, 50 splits. Then "
        "the lowest difference over micro- and macro-F1, as they are and standardised, and the "
        "largest deviation between seeds.\n\n"
    )
    head = [
        "graph",
        "10 %",
        "50 %",
        "standardised 10 %",
        "standardised 50 %",
        "lowest",
        "lowest, standardised",
        "±",
    ]
    return text + table(head, rows)


if __name__ == "__main__":
    command(sys.modules[__name__])
