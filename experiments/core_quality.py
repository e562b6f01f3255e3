"""Micro-F1 of the paper's four models on its four labelled graphs, beside the paper's figures.

    KERNELNE_DATA=FOLDER python experiments/core_quality.py [--graphs cora,ppi] [--seeds 2] [--splits 10]

FOLDER holds NAME.edges.gz, NAME.labels.gz and NAME.selfloops.gz. Each (graph, model, seed) is a JSON file
under experiments/results/core_quality/, not run again when it is there; the table is made from those.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np

from kernelne import Graph, KernelNE, MKernelNE, classify_nodes, read_graph

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "core_quality"
SHARES = (1, 5, 10, 50, 90)
MODELS = {
    "KernelNE-Gauss": lambda name, seed: KernelNE(kernel="gaussian", sigma=2.0, random_state=seed),
    "KernelNE-Sch": lambda name, seed: KernelNE(kernel="schoenberg", sigma=2.0, random_state=seed),
    "MKernelNE-Gauss": lambda name, seed: MKernelNE(
        kernels=[("gaussian", s) for s in ((0.5, 1.0, 1.5) if name == "ppi" else (1.0, 2.0, 3.0))],
        random_state=seed,
    ),
    "MKernelNE-Sch": lambda name, seed: MKernelNE(
        kernels=[("schoenberg", s) for s in (1.0, 1.5, 2.0)], random_state=seed
    ),
}


def load(folder: Path, name: str) -> tuple[Graph, np.ndarray]:
    """The paper's graph, self-loops included, and its labels as an indicator matrix."""
    with gzip.open(folder / f"{name}.labels.gz", "rt") as lines:
        labels = [[int(x) for x in line.split()[1].split(",")] for line in lines]
    truth = np.zeros((len(labels), 1 + max(max(row) for row in labels)), bool)
    for node, row in enumerate(labels):
        truth[node, row] = True
    graph = read_graph(folder / f"{name}.edges.gz", nodes=np.arange(len(labels)))
    adjacency = graph.to_scipy().tolil()
    loops = folder / f"{name}.selfloops.gz"
    if loops.exists():
        with gzip.open(loops, "rt") as lines:
            nodes = [int(line) for line in lines]
        adjacency[nodes, nodes] = 1
    return Graph.from_scipy(adjacency.tocsr()), truth


def run(folder: Path, name: str, model: str, seed: int, n_splits: int) -> None:
    path = RESULTS / f"{name}_{model}_{seed}_{n_splits}.json"
    if path.exists():
        return
    graph, truth = load(folder, name)
    estimator = MODELS[model](name, seed).fit(graph)
    scores = classify_nodes(
        estimator.embedding_,
        truth,
        train_sizes=[s / 100 for s in SHARES],
        n_repeats=n_splits,
        random_state=seed,
    )
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE)
    result = {
        "graph": name,
        "model": model,
        "seed": seed,
        "splits": n_splits,
        "shares": SHARES,
        "micro_f1": scores.micro_f1.tolist(),
        "macro_f1": scores.macro_f1.tolist(),
        "coefficients": estimator.coefficients_.tolist(),
        "provenance": estimator.to_embedding().provenance,
        "commit": commit.stdout.strip(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1))
    print(f"{path.name}: {np.round(scores.micro_f1.mean(axis=1), 3)}", file=sys.stderr, flush=True)


def paper_scores() -> dict[tuple[str, str, int], float]:
    with open(HERE / "paper" / "classification.csv") as lines:
        rows = csv.DictReader(lines)
        return {(r["dataset"], r["method"], int(r["train_percent"])): float(r["micro_f1"]) for r in rows}


def table(n_splits: int) -> str:
    """Markdown: ours (difference to the paper), mean over seeds and splits."""
    paper = paper_scores()
    lines = [
        "| graph | model | " + " | ".join(f"{s} %" for s in SHARES) + " |",
        "|---|---|" + "---|" * len(SHARES),
    ]
    differences = []
    for name in ("citeseer", "cora", "ppi", "dblp"):
        for model in MODELS:
            files = sorted(RESULTS.glob(f"{name}_{model}_*_{n_splits}.json"))
            if not files:
                continue
            ours = np.mean([json.loads(f.read_text())["micro_f1"] for f in files], axis=(0, 2))
            gaps = [x - paper[name, model, s] for s, x in zip(SHARES, ours, strict=True)]
            differences += gaps
            cells = [f"{x:.3f} ({gap:+.3f})" for x, gap in zip(ours, gaps, strict=True)]
            lines.append(f"| {name} | {model} | " + " | ".join(cells) + " |")
    lines.append(f"\nMean difference {np.mean(differences):+.4f}, lowest {np.min(differences):+.4f}.")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", default="citeseer,cora,ppi,dblp")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--splits", type=int, default=10)
    args = parser.parse_args()
    if "KERNELNE_DATA" not in os.environ:
        sys.exit("set KERNELNE_DATA to the folder with the paper's graphs")
    folder = Path(os.environ["KERNELNE_DATA"])
    for name in args.graphs.split(","):
        for model in MODELS:
            for seed in range(args.seeds):
                run(folder, name, model, seed, args.splits)
    print(table(args.splits))


if __name__ == "__main__":
    main()
