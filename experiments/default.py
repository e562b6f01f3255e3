"""The default, MKernelNE(): where it stands beside the paper, the effect of each choice, and its cost.

    KERNELNE_DATA=FOLDER python experiments/default.py [--quick] [--graphs cora,ppi] [--splits 20]

Costs are CPU times: use a quiet machine. default_rivals.py compares it with other methods on more graphs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from statistics import median
from typing import Any

import numpy as np

import tables2_5
from checkset import DEVELOPMENT
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
from kernelne.model import joint_axes, smooth_rows
from kernelne.model.combine_tables import combine_in_frame

FULL: dict[str, Any] = {
    "graphs": ("cora", "citeseer", "ppi", "dblp"),
    "ablated": (
        "cora",
        "citeseer",
        "ppi",
        "dblp",
        "wikipedia_pos",
        "blocks, dense",
        "overlapping, dense",
        "lfr 0.5",
    ),
    "shares": tables2_5.SHARES,
    "splits": 20,
    "repeats": 3,
}
QUICK = FULL | {
    "graphs": ("cora",),
    "ablated": ("cora",),
    "shares": (1, 10, 50, 90),
    "splits": 3,
    "repeats": 1,
}
#: Shares of the ablation, and its number of splits.
ABLATED_AT, ABLATED_SPLITS = (1, 5, 10, 50, 90), 5


def gaussians(*sigmas: float) -> tuple[tuple[str, float], ...]:
    return tuple(("gaussian", sigma) for sigma in sigmas)


#: The changes to the default, one at a time.
CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "all pairs of the window alike": {"window_decay": 1.0},
    "window_decay = 0.5 for all": {"window_decay": 0.5},
    "learning rate 0.3": {"learning_rate": 0.3},
    "learning rate 0.025, as in the paper": {"learning_rate": 0.025},
    "one kernel, sigma 1.25": {"kernels": gaussians(1.25)},
    "kernels of sigma 1, 2, 3": {"kernels": gaussians(1.0, 2.0, 3.0)},
    "25 walks a node, rate 0.4": {"walks_per_node": 25, "learning_rate": 0.4},
    "120 walks a node, rate 0.085": {"walks_per_node": 120, "learning_rate": 0.085},
    "l2 = 0.01 for all": {"l2": 0.01},
    "l2 = 0.003 for all": {"l2": 0.003},
    "vectors: smooth": {"vectors": "smooth"},
    "vectors: center": {"vectors": "center"},
    "length 4 for all": {"norm": 4.0},
    "coef_spread = 0.5 for all": {"coef_spread": 0.5},
    "coef_spread = 1.5 for all": {"coef_spread": 1.5},
    "coefficients free, as in the paper": {"coef_l2": 0.1, "coef_spread": 0.0},
}


#: Constants of the way in which vectors are made, and values that leave something out.
LEFT_OUT: dict[str, tuple[tuple[Any, str, float], ...]] = {
    "rows not smoothed": ((smooth_rows, "_MOST", 0.0),),
    "small components: one length": ((joint_axes, "_APART", 1.0), (joint_axes, "_GROWTH", 0.0)),
    "small components: nothing in common": ((joint_axes, "_COMMON", 1e-6),),
    "small, clear groups as others": ((joint_axes, "_CLEAR", float("inf")),),
}

#: Parameters that depend on the graph.
TOLD = ("walks_per_node", "learning_rate", "window_decay", "l2", "coef_spread", "norm")


@lru_cache(maxsize=1)
def _graph(name: str) -> tuple[Any, Any]:
    return DEVELOPMENT[name]()


@lru_cache(maxsize=1)
def fitted(graph: str) -> MKernelNE:
    return MKernelNE(random_state=0).fit(_graph(graph)[0])


def ablate(graph: str, change: str) -> dict[str, Any]:
    network, truth = _graph(graph)
    model, changes = fitted(graph), CHANGES.get(change, {})
    given = dict(model.chosen_) | changes
    if not changes.keys() <= {"vectors", "norm"}:
        # All else as it was chosen: kernels that are given would bring back the plain defaults.
        model = MKernelNE(random_state=0, **given).fit(network)
    with changed(LEFT_OUT.get(change, ())):
        tables = model.graph_, model.center_, model.context_
        shorten = "norm" not in changes
        vectors = combine_in_frame(*tables, given["vectors"], given["norm"], shorten=shorten)[0]
    sizes = [s / 100 for s in ABLATED_AT]
    return _means(classify_nodes(vectors, truth, train_sizes=sizes, n_repeats=ABLATED_SPLITS, random_state=0))


@contextmanager
def changed(constants: Iterable[tuple[Any, str, float]]) -> Iterator[None]:
    """Give constants of modules other values for a while."""
    before = [(module, name, getattr(module, name)) for module, name, _ in constants]
    try:
        for module, name, value in constants:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


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
    """Measure CPU seconds on one thread: the paper's mixture and the default, their vectors included."""
    network, _ = _graph(graph)
    models = {"paper": MKernelNE.paper("gaussian", graph), "default": MKernelNE()}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for seed in range(repeats + 1):
        for name, model in models.items():
            start = time.process_time()
            model.set_params(random_state=seed, n_threads=1).fit_transform(network)
            if seed:  # the first compiles
                seconds[name].append(round(time.process_time() - start, 4))
    return {"cpu_seconds": seconds}


def run(store: Store, graphs: Any, ablated: Any, shares: Any, splits: int, repeats: int) -> None:
    for graph in graphs:
        for model in EVERY:
            key = {"part": "standardised", "graph": graph, "model": model, "splits": splits}
            store.fill(
                "default", lambda key=key: standardise(key["graph"], key["model"], shares, splits), **key
            )
    for graph in ablated:
        for change in (*CHANGES, *LEFT_OUT):
            key = {"part": "ablation", "graph": graph, "change": change}
            store.fill("default", lambda key=key: ablate(key["graph"], key["change"]), **key)
    for graph in DEVELOPMENT:
        key = {"part": "cost", "graph": graph, "repeats": repeats}
        store.fill("default", lambda key=key: cost(key["graph"], key["repeats"]), **key)


def render(store: Store, graphs: Any, ablated: Any, shares: Any, splits: int, repeats: int) -> list[Section]:
    parts = [
        _standing(store, graphs),
        _ablation(store, ablated),
        _standardised(store, graphs, shares, splits),
        _cost(store, repeats),
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
        told = [str(chosen.get(name)) for name in TOLD]
        rows.append([graph, *_sum_up(all_[-1]), *told])
    if not rows:
        return ""
    rows.append(["all", *_sum_up(np.array(all_)), *("" for _ in TOLD)])
    text = (
        "Beside the best of the paper's thirteen methods in each of 144 cells (Tables 2–5; 18 shares, "
        "micro- and macro-F1), three seeds, 50 splits: cells at or above it, the lowest, the mean "
        "difference, and what was chosen.\n\n"
    )
    return text + table(["graph", "at or above", "lowest", "mean", *TOLD], rows)


def _ablation(store: Store, ablated: Any) -> str:
    rows, base = [], {}
    for change in (*CHANGES, *LEFT_OUT):
        cells = []
        for graph in ablated:
            found = store.read("default", part="ablation", graph=graph, change=change)
            if not found:
                break
            scores = np.array([found["micro_f1"], found["macro_f1"]])
            cells.append(scores - base.setdefault(graph, scores))
        else:
            means = [1000 * float(cell.mean()) for cell in cells]
            few, many = (1000 * float(np.mean([c[:, at] for c in cells])) for at in ([0, 1], [3, 4]))
            rows.append([change, *(number(x, 1, sign=True) for x in (np.mean(means), few, many, *means))])
    if not rows:
        return ""
    text = (
        "One change at a time: difference from the default in thousandths of F1, mean of micro- and "
        f"macro-F1 at 1, 5, 10, 50 and 90 %, one seed, {ABLATED_SPLITS} splits: over all graphs, at 1 and "
        "5 %, at 50 and 90 %, then by graph.\n\n"
    )
    return text + table(["", "mean", "few labels", "many labels", *ablated], rows)


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


def _cost(store: Store, repeats: int) -> str:
    rows, times = [], []
    for graph in DEVELOPMENT:
        found = store.read("default", part="cost", graph=graph, repeats=repeats)
        if found:
            paper, default = (median(v) for v in found["cpu_seconds"].values())
            times.append(default / paper)
            rows.append([graph, number(paper, 2), number(default, 2), number(times[-1], 2)])
    if not rows:
        return ""
    rows.append(["mean", "", "", number(float(np.mean(times)), 2)])
    text = (
        f"CPU seconds on one thread, median of {repeats}, beside MKernelNE with the paper's settings "
        "on the same graph.\n\n"
    )
    return text + table(["graph", "paper's settings", "default", "times"], rows)


if __name__ == "__main__":
    command(sys.modules[__name__])
