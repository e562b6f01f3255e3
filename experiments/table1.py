"""Table 1: statistics of the networks. Edges count self-loops, as in the paper.

KERNELNE_DATA=FOLDER python experiments/table1.py [--quick] [--graphs cora,ppi]
"""

from __future__ import annotations

import sys
from typing import Any

import scipy.sparse.csgraph

from common import GRAPHS, Section, Store, command, load, paper_figures, table

FULL: dict[str, Any] = {"graphs": (*GRAPHS, "dolphins")}
QUICK = FULL
COUNTS = ("nodes", "edges", "labels", "components")


def statistics(name: str) -> dict[str, Any]:
    graph, truth = load(name)
    n, m = graph.n_nodes, graph.n_edges
    components, _ = scipy.sparse.csgraph.connected_components(graph.to_scipy(), directed=False)
    return {
        "nodes": n,
        "edges": m,
        "labels": None if truth is None else truth.shape[1],
        "components": int(components),
        "average_degree": round(2 * m / n, 3),
        "density": 2 * m / (n * (n - 1)),
    }


def run(store: Store, graphs: tuple[str, ...]) -> None:
    for name in graphs:
        store.fill("table1", lambda name=name: statistics(name), graph=name)


def render(store: Store, graphs: tuple[str, ...]) -> list[Section]:
    paper = {row["dataset"]: row for row in paper_figures("networks")}
    rows, same, compared = [], 0, 0
    for name in graphs:
        ours = store.read("table1", graph=name) or {}
        rows.append([name])
        for count in COUNTS:
            printed, found = paper[name][count], ours.get(count)
            rows[-1].append(f"{printed or '–'} / {'–' if found is None else found} / {_gap(printed, found)}")
            if printed and found is not None:
                compared += 1
                same += int(printed) == found
        rows[-1] += [f"{ours['average_degree']:.2f}", f"{ours['density']:.2e}"] if ours else ["–", "–"]
    text = "paper / ours / difference; the last two columns are ours.\n\n"
    text += table(["graph", *COUNTS, "average degree", "density"], rows)
    return [Section("Table 1: the networks", text, note=f"Table 1: {same} of {compared} counts as printed.")]


def _gap(printed: str, found: int | None) -> str:
    return f"{found - int(printed):+d}" if printed and found is not None else "–"


if __name__ == "__main__":
    command(sys.modules[__name__])
