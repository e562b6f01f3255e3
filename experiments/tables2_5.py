"""Tables 2–5: node classification on four graphs, 18 training shares, micro- and macro-F1.

KERNELNE_DATA=FOLDER python experiments/tables2_5.py [--quick] [--graphs cora,ppi] [--seeds 2] [--splits 50]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from common import (
    DEFAULT,
    EVERY,
    MODELS,
    Cell,
    Section,
    Store,
    classify,
    command,
    number,
    paper_scores,
    scores_by_share,
    table,
)

SHARES = (*range(1, 10), *range(10, 100, 10))
FULL: dict[str, Any] = {
    "graphs": ("cora", "citeseer", "ppi", "dblp"),
    "shares": SHARES,
    "seeds": 2,
    "splits": 50,
}
QUICK = FULL | {"shares": (1, 5, 10, 50, 90), "seeds": 1, "splits": 3}
TABLES = {"citeseer": 2, "cora": 3, "dblp": 4, "ppi": 5}
DEFAULT_SEEDS = 3
METRICS = {"micro_f1": "micro-F1", "macro_f1": "macro-F1"}


def run(store: Store, graphs: tuple[str, ...], shares: tuple[int, ...], seeds: int, splits: int) -> None:
    for graph in graphs:
        for model in EVERY:
            for seed in range(_seeds(model, seeds)):
                key = {"graph": graph, "model": model, "seed": seed, "splits": splits}
                store.fill("tables2_5", lambda key=key: classify(shares=shares, **key), **key)


def _seeds(model: str, seeds: int) -> int:
    return DEFAULT_SEEDS if model == DEFAULT and seeds == FULL["seeds"] else seeds


def render(
    store: Store, graphs: tuple[str, ...], shares: tuple[int, ...], seeds: int, splits: int
) -> list[Section]:
    sections = []
    for graph in sorted(graphs, key=lambda name: TABLES[name]):
        results = {
            model: [
                store.read("tables2_5", graph=graph, model=model, seed=seed, splits=splits)
                for seed in range(_seeds(model, seeds))
            ]
            for model in EVERY
        }
        for metric, name in METRICS.items():
            title = f"Table {TABLES[graph]}: classification, {graph}, {name}"
            sections.append(_section(title, graph, metric, shares, results))
    return sections


def _section(
    title: str, graph: str, metric: str, shares: tuple[int, ...], results: dict[str, list[Any]]
) -> Section:
    paper = paper_scores(metric)
    ours = {model: scores_by_share(found, metric) for model, found in results.items()}
    rows, cells = [], []
    for share in shares:
        row = [
            Cell(f"{model}, {share} %", paper[graph, model, share], ours[model].get(share))
            for model in MODELS
        ]
        best, method = max((f1, m) for (g, m, s), f1 in paper.items() if (g, s) == (graph, share))
        default = Cell(f"{DEFAULT}, {share} %", best, ours[DEFAULT].get(share))
        rows.append([f"{share} %", *map(str, row), str(default), method])
        cells += row
    text = "paper / ours / difference; for the default, the best of thirteen methods in the paper / ours / "
    text += "difference, and which method that is.\n\n"
    text += table(["in training", *EVERY, "best in the paper"], rows)
    return Section(title, text + "\n\n" + _spread(results, metric), cells)


def _spread(results: dict[str, list[Any]], metric: str) -> str:
    """Return the standard deviations over splits and seeds, averaged over models and shares."""
    done = [r for found in results.values() for r in found if r]
    if not done:
        return "Nothing has been run."
    splits = [np.std(r[metric], axis=1) for r in done]
    means = [[np.mean(r[metric], axis=1) for r in found if r] for found in results.values()]
    seeds = [np.std(m, axis=0, ddof=1).mean() for m in means if len(m) > 1]
    return (
        f"{len(done)} of {sum(map(len, results.values()))} trainings done, {len(done[0][metric][0])} splits "
        f"each. Standard deviation between splits {number(float(np.mean(splits)))}, "
        f"between seeds {number(float(np.mean(seeds)) if seeds else None)}."
    )


if __name__ == "__main__":
    command(sys.modules[__name__])
