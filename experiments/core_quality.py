"""Micro-F1 of the paper's four models on its four labelled graphs, compared with the paper's figures.

    KERNELNE_DATA=FOLDER python experiments/core_quality.py [--graphs cora,ppi] [--seeds 2] [--splits 10]

A short version of tables2_5.py for the README. Each (graph, model, seed) is a line of
experiments/results/core_quality.jsonl and is run only if it is missing; the table is made from these lines.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from kernelne import Graph

sys.path.insert(0, str(Path(__file__).resolve().parent))  # tests load this file by its path

import common
from common import MODELS, Section, Store, classify, command, paper_scores, scores_by_share, table

SHARES = (1, 5, 10, 50, 90)
FULL: dict[str, Any] = {"graphs": ("citeseer", "cora", "ppi", "dblp"), "seeds": 2, "splits": 10}
QUICK = FULL | {"seeds": 1, "splits": 3}


def load(folder: Path, name: str) -> tuple[Graph, Any]:
    """Return a graph and its labels from this folder, like `common.load`."""
    os.environ["KERNELNE_DATA"] = str(folder)
    return common.load(name)


def run(store: Store, graphs: tuple[str, ...], seeds: int, splits: int) -> None:
    for graph in graphs:
        for model in MODELS:
            for seed in range(seeds):
                key = {"graph": graph, "model": model, "seed": seed, "splits": splits}
                store.fill("core_quality", lambda key=key: classify(shares=SHARES, **key), **key)


def render(store: Store, graphs: tuple[str, ...], seeds: int, splits: int) -> list[Section]:
    """ours (difference to the paper), mean over seeds and splits"""
    paper = paper_scores()
    rows, differences = [], []
    for graph in graphs:
        for model in MODELS:
            ours = scores_by_share(
                store.read("core_quality", graph=graph, model=model, seed=seed, splits=splits)
                for seed in range(seeds)
            )
            gaps = {share: f1 - paper[graph, model, share] for share, f1 in ours.items()}
            differences += gaps.values()
            rows.append(
                [graph, model] + [f"{ours[s]:.3f} ({gaps[s]:+.3f})" if s in ours else "–" for s in SHARES]
            )
    text = table(["graph", "model", *(f"{s} %" for s in SHARES)], rows)
    if differences:
        text += f"\n\nMean difference {np.mean(differences):+.4f}, lowest {np.min(differences):+.4f}."
    return [Section("Micro-F1 (difference to the paper)", text)]


if __name__ == "__main__":
    command(sys.modules[__name__])
