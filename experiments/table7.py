"""Table 7: running time on one thread: the paper's graphs, and an Erdős–Rényi graph n = 1e5, p = 1e-4.

KERNELNE_DATA=FOLDER python experiments/table7.py [--quick] [--graphs cora,erdos_renyi] [--repeats 3]

Use a quiet machine. The paper has one figure for KernelNE and one for MKernelNE, measured on its machine.
"""

from __future__ import annotations

import sys
from statistics import median
from typing import Any

from common import (
    DEFAULT,
    EVERY,
    GRAPHS,
    MODELS,
    Section,
    Store,
    command,
    disturbed,
    number,
    paper_figures,
    table,
    time_training,
)

FULL: dict[str, Any] = {"graphs": (*GRAPHS, "erdos_renyi"), "repeats": 3}
QUICK = {"graphs": ("cora", "citeseer", "ppi"), "repeats": 1}


def run(store: Store, graphs: tuple[str, ...], repeats: int) -> None:
    for graph in graphs:
        for model in EVERY:
            store.fill(
                "table7",
                # Eight million walks: once is enough.
                lambda graph=graph, model=model: time_training(
                    graph, model, 1 if graph == "erdos_renyi" else repeats
                ),
                graph=graph,
                model=model,
                repeats=repeats,
            )


def render(store: Store, graphs: tuple[str, ...], repeats: int) -> list[Section]:
    printed = {
        (r["dataset"], r["method"]): float(r["seconds"] or "nan") for r in paper_figures("running_time")
    }
    rows, ratios, results = [], [], []
    for graph in graphs:
        rows.append([graph])
        for model in MODELS:
            result = store.read("table7", graph=graph, model=model, repeats=repeats)
            results.append(result)
            paper = printed[graph, model.split("-")[0]]
            ours = median(result["wall_seconds"]) if result else None
            ratio = paper / ours if ours else None
            ratios += [ratio] if ratio else []
            rows[-1].append(f"{paper:,.0f} / {number(ours, 2)} / {number(ratio, 0)}")
        default = store.read("table7", graph=graph, model=DEFAULT, repeats=repeats)
        rows[-1].append(number(median(default["wall_seconds"]) if default else None, 2))
        results.append(default)
        fastest = min((s, m) for (g, m), s in printed.items() if g == graph and s == s)
        rows[-1].append(f"{fastest[0]:,.0f} {fastest[1]}")
    text = "Seconds of the paper / ours / how many times fewer; walks included, compilation not; median of "
    text += (
        f"{repeats} (Erdős–Rényi: one run). The paper's machine was another. Last: its fastest method.\n\n"
    )
    text += table(["graph", *EVERY, "fastest in the paper"], rows) + f"\n\n{disturbed(results)}"
    note = f"Table 7: {len(ratios)} of {len(graphs) * len(MODELS)} cells done"
    if ratios:
        note += f"; {min(ratios):,.0f} to {max(ratios):,.0f} times faster than printed (another machine), "
        note += f"median {median(ratios):,.0f}"
    return [Section("Table 7: running time", text, note=note + ".")]


if __name__ == "__main__":
    command(sys.modules[__name__])
