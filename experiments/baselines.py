"""Tables 2–7 for the paper's nine other methods, in this package, and the factorisation without a kernel.

KERNELNE_DATA=FOLDER python experiments/baselines.py [--quick] [--graphs cora,ppi] [--seeds 2] [--splits 10]

`compare_methods` runs every method in its own process. Times are measured on one thread and need a quiet
machine. Some defaults differ from a method's paper (docs/compare.md); "as published" uses those of the paper.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from common import (
    GRAPHS,
    Cell,
    Section,
    Store,
    command,
    disturbed,
    load,
    number,
    paper_figures,
    paper_scores,
    table,
    time_fits,
)
from kernelne import compare_methods
from kernelne.baselines import GEMSEC, HOPE, LINE, MNMF, VERSE, DeepWalk, NetMF, Node2Vec, ProNE, WeightedMF
from kernelne.errors import InputError
from tables2_5 import METRICS, SHARES, TABLES

#: The methods, by the paper's names.
METHODS: dict[str, Callable[..., Any]] = {
    "DeepWalk": DeepWalk,
    "Node2Vec": Node2Vec,
    "LINE": LINE,
    "HOPE": HOPE,
    "NetMF": NetMF,
    "VERSE": VERSE,
    "ProNE": ProNE,
    "GEMSEC": GEMSEC,
    "M-NMF": MNMF,
}
#: With what their own papers say where our defaults say something else; and the paper's own starting point.
VARIANTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "HOPE, as published": ("HOPE", lambda **given: HOPE(normalise=False, **given)),
    "NetMF, as published": ("NetMF", lambda **given: NetMF(rank=256, **given)),
    "M-NMF, as published": ("M-NMF", lambda **given: MNMF(normalise=False, **given)),
}
ABLATION = "no kernel"
EVERY = METHODS | {name: make for name, (_, make) in VARIANTS.items()} | {ABLATION: WeightedMF}
#: The number of clusters or communities is chosen by the training labels; of these only by name.
CHOOSING = {"GEMSEC": "GEMSEC", "M-NMF": "MNMF"}
RANDOM = "erdos_renyi"

FULL: dict[str, Any] = {"graphs": (*GRAPHS, RANDOM), "shares": SHARES, "seeds": 1, "splits": 10}
FULL["tasks"] = ("labels", "links", "time")
QUICK = FULL | {"graphs": ("cora", "citeseer"), "shares": (1, 10, 50, 90), "seeds": 1, "splits": 3}
LIMIT = 0.03
#: Where the methods must be within the limit of the paper's figures, or above.
REQUIRED_F1, REQUIRED_AUC = ("citeseer", "cora"), ("citeseer", "cora", "facebook", "hepth")


def score(task: str, graph: str, method: str, seed: int, shares: Any, splits: int) -> dict[str, Any]:
    network, truth = load(graph)
    chosen = task == "labels" and method in CHOOSING
    found = compare_methods(
        network,
        truth if task == "labels" else None,
        methods=[CHOOSING[method]] if chosen else {method: EVERY[method](random_state=seed, n_threads=1)},
        train_sizes=[share / 100 for share in shares],
        n_repeats=splits,
        random_state=seed,
        n_threads=1,
    ).results[0]
    if found.error:
        return {"refused": found.error}
    return {
        "scores": {name: np.round(values, 5).tolist() for name, values in found.scores.items()},
        "fit_seconds": found.seconds,
        "peak_bytes": found.peak_bytes,
        "chosen": found.chosen,
    }


def time_method(graph: str, method: str) -> dict[str, Any]:
    try:
        return time_fits(graph, lambda seed, **given: EVERY[method](random_state=seed, **given), 1)
    except InputError as error:  # more memory than there is
        return {"refused": str(error), "wall_seconds": [], "cpu_seconds": []}


def run(
    store: Store,
    graphs: tuple[str, ...],
    shares: tuple[int, ...],
    seeds: int,
    splits: int,
    tasks: tuple[str, ...],
) -> None:
    for seed in range(seeds):
        for task, where in (("labels", TABLES), ("links", GRAPHS)):
            for graph in graphs if task in tasks else ():
                for method in EVERY if graph in where else ():
                    key = {"task": task, "graph": graph, "method": method, "seed": seed}
                    store.fill("baselines", lambda key=key: score(**key, shares=shares, splits=splits), **key)
    for graph in graphs if "time" in tasks else ():
        for method in (*METHODS, ABLATION):
            key = {"task": "time", "graph": graph, "method": method, "seed": 0}
            store.fill("baselines", lambda g=graph, m=method: time_method(g, m), **key)


def render(
    store: Store,
    graphs: tuple[str, ...],
    shares: tuple[int, ...],
    seeds: int,
    splits: int,
    tasks: tuple[str, ...] = (),
) -> list[Section]:
    def mean(task: str, graph: str, method: str, measure: str) -> float | None:
        cells = (
            store.read("baselines", task=task, graph=graph, method=method, seed=seed) for seed in range(seeds)
        )
        values = [r["scores"][measure] for r in cells if r and measure in r.get("scores", {})]
        return float(np.mean(np.concatenate(values))) if values else None

    def printed(method: str) -> str:
        return VARIANTS[method][0] if method in VARIANTS else method

    sections = []
    required: list[tuple[str, Cell]] = []
    for graph in sorted(set(graphs) & set(TABLES), key=lambda name: TABLES[name]):
        for metric, name in METRICS.items():
            paper = paper_scores(metric)
            rows = []
            for share in shares:
                cells = {
                    method: Cell(
                        f"{method}, {graph}, {share} %",
                        paper.get((graph, printed(method), share)),
                        mean("labels", graph, method, f"{metric}_{share}"),
                    )
                    for method in EVERY
                }
                rows.append([f"{share} %", *map(str, cells.values())])
                if metric == "micro_f1" and share in (10, 50) and graph in REQUIRED_F1:
                    required += [("micro-F1", cells[method]) for method in METHODS]
            text = f"paper / ours / difference, {seeds} seeds of {splits} splits.\n\n"
            text += table(["in training", *EVERY], rows)
            sections.append(Section(f"Table {TABLES[graph]}, the other methods: {graph}, {name}", text))
    linked = [graph for graph in graphs if graph in GRAPHS]
    auc = {(r["dataset"], r["method"]): float(r["auc"]) for r in paper_figures("link_prediction")}
    rows = []
    for graph in linked:
        cells = {
            m: Cell(f"{m}, {graph}", auc.get((graph, printed(m))), mean("links", graph, m, "auc"))
            for m in EVERY
        }
        rows.append([graph, *map(str, cells.values())])
        required += [("AUC", cells[m]) for m in METHODS if graph in REQUIRED_AUC]
    text = f"AUC, paper / ours / difference, {seeds} splits, the paper's operator.\n\n"
    sections.append(Section("Table 6, the other methods", text + table(["graph", *EVERY], rows)))
    sections.append(_times(store, graphs))
    return [_standing(required), *sections]


def _standing(required: list[tuple[str, Cell]]) -> Section:
    """Count the cells that are within the limit of the paper's figures, or above."""
    done = [(measure, cell) for measure, cell in required if cell.difference is not None]
    low = [(measure, cell) for measure, cell in done if cell.difference < -LIMIT]
    text = f"{len(done) - len(low)} of {len(required)} cells (micro-F1 at 10 and 50 % on "
    text += f"{', '.join(REQUIRED_F1)}; AUC on {', '.join(REQUIRED_AUC)}) are at most "
    text += f"{LIMIT} below the paper's or above it"
    text += ".\n" if not low else ":\n\n" + table(["below", "paper / ours / difference"], _rows(low))
    return Section("The other methods of the paper, our own", text)


def _rows(cells: list[tuple[str, Cell]]) -> list[list[str]]:
    return [[f"{measure}, {cell.name}", str(cell)] for measure, cell in cells]


def _times(store: Store, graphs: tuple[str, ...]) -> Section:
    paper = {(r["dataset"], r["method"]): r["seconds"] for r in paper_figures("running_time")}
    rows, results, slower = [], [], []
    for graph in graphs:
        rows.append([graph])
        for method in (*METHODS, ABLATION):
            result = store.read("baselines", task="time", graph=graph, method=method, seed=0)
            there = paper.get((graph, method)) or None
            before = float(there) if there else None
            seconds = median(result["wall_seconds"]) if result and result["wall_seconds"] else None
            results.append(result)
            slower += [f"{method} on {graph}"] if before and seconds and seconds > before else []
            shown = "refused" if result and "refused" in result else number(seconds, 2)
            rows[-1].append(f"{number(before, 0)} / {shown}")
    text = "Seconds of the paper / ours, one thread, compilation not counted, one run; – is not in the paper "
    text += "(or not run), refused: it needs more memory than the machine had. Slower than printed: "
    text += f"{', '.join(slower) or 'none'}.\n\n" + table(["graph", *METHODS, ABLATION], rows)
    return Section("Table 7, the other methods", f"{text}\n\n{disturbed(results)}")


if __name__ == "__main__":
    command(sys.modules[__name__])
