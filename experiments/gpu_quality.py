"""Scores on the GPU and on the CPU: micro-F1 and link AUC of the paper's four models.

KERNELNE_DATA=FOLDER python experiments/gpu_quality.py [--quick] [--graphs cora,ppi] [--seeds 5] [--splits 10]
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from common import MODELS, Cell, Section, Store, command, load, number, table
from kernelne import classify_nodes
from kernelne.evaluation.link_splits import split_links
from kernelne.evaluation.links import score_links

FULL: dict[str, Any] = {
    "graphs": ("citeseer", "cora", "ppi", "dblp"),
    "shares": (1, 10, 50, 90),
    "seeds": 5,
    "splits": 10,
}
QUICK = FULL | {"graphs": ("cora",), "seeds": 1, "splits": 3}


def measure(graph: str, model: str, backend: str, seed: int, shares: Any, splits: int) -> dict[str, Any]:
    whole, truth = load(graph)
    start = time.perf_counter()
    table = MODELS[model](graph, seed).set_params(backend=backend).fit_transform(whole)
    fitted = time.perf_counter() - start
    f1 = classify_nodes(
        table, truth, train_sizes=[s / 100 for s in shares], n_repeats=splits, random_state=seed
    )
    split = split_links(whole, test_share=0.5, random_state=seed)
    links = MODELS[model](graph, seed).set_params(backend=backend).fit_transform(split.graph)
    return ({"card": card()} if backend == "gpu" else {}) | {
        "micro_f1": f1.micro_f1.tolist(),
        "auc": score_links(links, split).auc,
        "norm": float(np.linalg.norm(table, axis=1).mean()),
        "fit_seconds": fitted,
    }


def card() -> str:
    import torch

    return str(torch.cuda.get_device_name())


def run(store: Store, graphs: tuple[str, ...], shares: tuple[int, ...], seeds: int, splits: int) -> None:
    for graph in graphs:
        for seed in range(seeds):
            for model in MODELS:
                for backend in ("cpu", "gpu"):
                    key = {"graph": graph, "model": model, "backend": backend, "seed": seed}
                    work = {**key, "shares": shares, "splits": splits}
                    store.fill("gpu_quality", lambda work=work: measure(**work), **key)


def render(
    store: Store, graphs: tuple[str, ...], shares: tuple[int, ...], seeds: int, splits: int
) -> list[Section]:
    rows, cells, cards, machines = [], [], set(), set()
    for graph in graphs:
        for model in MODELS:
            scores = {}
            for backend in ("cpu", "gpu"):
                found = [
                    store.read("gpu_quality", graph=graph, model=model, backend=backend, seed=seed)
                    for seed in range(seeds)
                ]
                if all(found):
                    f1 = np.mean([r["micro_f1"] for r in found if r], axis=(0, 2))
                    scores[backend] = [*f1, np.mean([r["auc"] for r in found if r])]
                    cards |= {r["card"] for r in found if r and backend == "gpu"}
                    machines |= {f"{backend} {r['machine']}" for r in found if r}
            if len(scores) < 2:
                continue
            names = [*(f"{share} %" for share in shares), "AUC"]
            pairs = zip(names, scores["cpu"], scores["gpu"], strict=True)
            line = [Cell(f"{graph}, {model}, {name}", cpu, gpu) for name, cpu, gpu in pairs]
            cells += line
            rows.append([graph, model, *map(str, line)])
    if not rows:
        return []
    gaps = [abs(cell.difference or 0.0) for cell in cells]
    mean = float(np.mean([cell.difference or 0.0 for cell in cells]))
    text = "CPU / GPU / difference: micro-F1 by training share and link AUC (the paper's operator), "
    text += f"{seeds} seeds, {splits} splits. Card: {', '.join(sorted(cards))}; machines: "
    text += f"{'; '.join(sorted(machines))}. Largest difference {number(max(gaps))}, mean "
    text += f"{number(mean, 4, sign=True)}.\n\n"
    text += table(["graph", "model", *(f"{share} %" for share in shares), "AUC"], rows)
    return [Section("The GPU's vectors beside the CPU's", text)]


if __name__ == "__main__":
    command(sys.modules[__name__])
