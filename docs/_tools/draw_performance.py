"""Draws the plots of docs/performance.md from the kept results.

    python docs/_tools/draw_performance.py [FOLDER]

    score_time.svg    benchmarks/results/score_time.json
    size.svg          experiments/results/{baselines,table7}.jsonl, experiments/paper/running_time.csv,
                      benchmarks/results/gpu_h200.json
    threads.svg       benchmarks/results/threads_xeon.json

Nothing is measured here: every point is in one of these files. FOLDER is docs/images unless given.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS, EXPERIMENTS = ROOT / "benchmarks", ROOT / "experiments"
sys.path.insert(0, str(BENCHMARKS))
import score_time  # noqa: E402

STYLE = {
    "font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "path",
    "svg.hashsalt": "performance",
}  # fmt: skip
#: Curves of size.svg, in the order of the legend: colour, marker.
CURVES = {
    "KernelNE in the paper": ("#8a8a8a", "x"),
    "VERSE": ("#c1440e", "."),
    "NetMF": ("#3b6fb6", "."),
    "DeepWalk": ("#7a4fb5", "."),
    "KernelNE-Gauss": ("#0b6e4f", "."),
    "ProNE": ("#b8860b", "."),
    "KernelNE-Gauss, H200": ("#0b6e4f", "*"),
}
GRAPHS = {
    "small": "planted partition, 3,300 nodes",
    "random": "Erdős–Rényi, 100,000",
    "power-law": "power law, 300,000",
}
BARS = {
    "KernelNE": "#0b6e4f",
    "MKernelNE()": "#58a55c",
    "KernelNE, deterministic": "#b8860b",
    "separate processes": "#8a8a8a",
}


def main(folder: Path) -> None:
    runs = json.loads((BENCHMARKS / "results" / "score_time.json").read_text())["runs"]
    with rc_context(STYLE):
        score_time.draw(runs, ["dblp", "wikipedia_pos", "blocks"], folder / "score_time.svg")
        save(draw_sizes(), folder / "size.svg")
        save(draw_threads(), folder / "threads.svg")


def save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})


def read_lines(name: str) -> list[dict[str, Any]]:
    text = (EXPERIMENTS / "results" / f"{name}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def timings() -> dict[str, list[tuple[int, float]]]:
    """Return (nodes, seconds) of each curve, on the paper's graphs and on the GPU's."""
    sizes = {row["key"]["graph"]: row["nodes"] for row in read_lines("table7")}
    found: dict[str, list[tuple[int, float]]] = {name: [] for name in CURVES}
    for row in read_lines("table7"):
        if row["key"]["model"] in found:
            found[row["key"]["model"]].append((row["nodes"], min(row["wall_seconds"])))
    for row in read_lines("baselines"):
        key = row["key"]
        if key["task"] == "time" and key["method"] in found and row.get("wall_seconds"):
            found[key["method"]].append((sizes[key["graph"]], min(row["wall_seconds"])))
    with (EXPERIMENTS / "paper" / "running_time.csv").open() as file:
        for row in csv.DictReader(file):
            if row["method"] == "KernelNE" and row["dataset"] in sizes and row["seconds"]:
                found["KernelNE in the paper"].append((sizes[row["dataset"]], float(row["seconds"])))
    for row in json.loads((BENCHMARKS / "results" / "gpu_h200.json").read_text())["runs"]:
        if row["model"] == "KernelNE-Gauss" and row["walks_per_node"] == 80:
            found["KernelNE-Gauss, H200"].append((row["nodes"], row["seconds"]))
    return {name: sorted(points) for name, points in found.items()}


def draw_sizes() -> Figure:
    figure = Figure(figsize=(6.6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for name, points in timings().items():
        colour, marker = CURVES[name]
        dashes = "--" if "H200" in name else "-"
        axes.plot(*zip(*points, strict=True), dashes, color=colour, marker=marker, linewidth=1, label=name)
    axes.set(xscale="log", yscale="log", xlabel="nodes", ylabel="seconds")
    axes.grid(alpha=0.25)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def draw_threads() -> Figure:
    runs = json.loads((BENCHMARKS / "results" / "threads_xeon.json").read_text())["runs"]
    speed = {(run["graph"], run["method"], run["threads"]): run["speed"] / 1e6 for run in runs}
    figure = Figure(figsize=(7.4, 2.6), layout="constrained")
    for axes, (graph, title) in zip(
        figure.subplots(1, len(GRAPHS), sharey=True), GRAPHS.items(), strict=True
    ):
        for place, (method, colour) in enumerate(BARS.items()):
            axes.bar(place, speed[graph, method, 16], 0.8, color=colour, label=method)
            axes.bar(place, speed[graph, method, 1], 0.8, color="black", alpha=0.35)
        axes.set(title=title, xticks=[])
    figure.axes[0].set_ylabel("million walks per second")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
