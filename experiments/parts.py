"""Scores of training in parts and of training without: micro-F1 by training share, and link AUC.

KERNELNE_DATA=FOLDER python experiments/parts.py [--quick] [--graphs cora,ppi] [--parts 8] [--seeds 5]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from checkset import DEVELOPMENT
from common import Cell, Section, Store, command, load, number, table
from kernelne import MKernelNE, classify_nodes
from kernelne.evaluation.link_splits import split_links
from kernelne.evaluation.links import score_links

FULL: dict[str, Any] = {
    "graphs": ("citeseer", "cora", "dblp", "ppi", "wikipedia_pos"),
    "links": ("hepth",),
    "shares": (1, 5, 10, 50, 90),
    "parts": 8,
    "seeds": 5,
    "splits": 10,
}
QUICK = FULL | {"graphs": ("cora",), "links": (), "seeds": 1, "splits": 3}


def classify(graph: str, parts: int, seed: int, shares: Any, splits: int) -> dict[str, Any]:
    """Train in parts (0: without), and classify nodes."""
    network, truth = DEVELOPMENT[graph]()
    model = MKernelNE(parts=parts or None, random_state=seed, n_threads=1).fit(network)
    sizes = [share / 100 for share in shares]
    scores = classify_nodes(
        model.embedding_, truth, train_sizes=sizes, n_repeats=splits, random_state=seed
    ).micro_f1
    return {"scores": scores.mean(axis=1).round(5).tolist(), "coefficients": model.coefficients_.tolist()}


def predict(graph: str, parts: int, seed: int) -> dict[str, Any]:
    """Train in parts (0: without) on half of the edges, and predict the others."""
    split = split_links(load(graph)[0], test_share=0.5, random_state=seed)
    model = MKernelNE(parts=parts or None, random_state=seed, n_threads=1).fit(split.graph)
    return {
        "scores": [score_links(model.embedding_, split).auc],
        "coefficients": model.coefficients_.tolist(),
    }


def run(store: Store, graphs: Any, links: Any, shares: Any, parts: int, seeds: int, splits: int) -> None:
    for seed in range(seeds):
        for number_of_parts in (0, parts):
            for graph in graphs:
                key = {"graph": graph, "task": "nodes", "parts": number_of_parts, "seed": seed}
                work = {"graph": graph, "parts": number_of_parts, "seed": seed}
                more = {"shares": shares, "splits": splits}
                store.fill("parts", lambda work=work, more=more: classify(**work, **more), **key)
            for graph in links:
                key = {"graph": graph, "task": "links", "parts": number_of_parts, "seed": seed}
                work = {"graph": graph, "parts": number_of_parts, "seed": seed}
                store.fill("parts", lambda work=work: predict(**work), **key)


def render(
    store: Store, graphs: Any, links: Any, shares: Any, parts: int, seeds: int, splits: int
) -> list[Section]:
    rows, cells = [], []
    for task, names, columns in (
        ("nodes", graphs, [f"{share} %" for share in shares]),
        ("links", links, ["AUC"]),
    ):
        for graph in names:
            means = []
            for count in (0, parts):
                keys = ({"graph": graph, "task": task, "parts": count, "seed": seed} for seed in range(seeds))
                found = [r for r in (store.read("parts", **key) for key in keys) if r]
                means.append(np.mean([r["scores"] for r in found], axis=0) if found else None)
            if any(mean is None for mean in means):
                continue
            line = [
                Cell(f"{graph}, {name}", plain, parted)
                for name, plain, parted in zip(columns, *means, strict=True)
            ]
            cells += line
            rows += [[f"{graph}, {cell.name.rpartition(', ')[2]}", str(cell)] for cell in line]
    if not rows:
        return []
    worst = min(cell.difference or 0.0 for cell in cells)
    text = f"Without parts / in {parts} parts / difference: micro-F1 by training share, and link AUC, "
    text += f"{seeds} seeds, {splits} splits. Smallest difference {number(worst, sign=True)}.\n\n"
    return [Section("Training in parts", text + table(["graph", "scores"], rows))]


if __name__ == "__main__":
    command(sys.modules[__name__])
