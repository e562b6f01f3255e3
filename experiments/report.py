"""Make the report, RESULTS.md, and its plots from the results.

python experiments/report.py [--quick]
"""

from __future__ import annotations

import argparse
import importlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from common import HERE, QUICK_FOLDER, Cell, Section, Store, number, table
from kernelne.io.files import atomic_output

EXPERIMENTS = (
    "table1",
    "default",
    "default_rivals",
    "tables2_5",
    "table6",
    "table7",
    "baselines",
    "dolphins",
    "fig_dim",
    "fig_sigma",
    "fig_time",
    "gpu_quality",
)
NOISE = 0.01
LOWEST = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="report the ten-minute version")
    quick = parser.parse_args().quick
    store = Store(QUICK_FOLDER if quick else HERE)
    sections = []
    for name in EXPERIMENTS:
        module = importlib.import_module(name)
        sections += module.render(store, **(module.QUICK if quick else module.FULL))
    path = store.folder / "RESULTS.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_output(path, overwrite=True) as temporary:
        temporary.write_text(report(store, sections, "paper-quick" if quick else "paper"))
    print(path)


def report(store: Store, sections: Sequence[Section], target: str) -> str:
    results = [result for name in EXPERIMENTS for result in store.read_all(name)]
    head = f"""# The paper, rebuilt

Made by `KERNELNE_DATA=FOLDER make {target}` from {len(results)} results; do not edit.
Commits: {_count(results, "commit")}. Machines: {_count(results, "machine")}.
Computing time: {sum(r["seconds"] for r in results) / 3600:.2f} hours.
Cells read **paper / ours / difference**; – is not run, or not in the paper.

## Summary
"""
    notes = (HERE / "shortfalls.md").read_text()
    return "\n".join([head, summary(sections), notes, *map(str, sections)])


def _count(results: Sequence[dict[str, Any]], fact: str) -> str:
    return "; ".join(f"{value} ({n})" for value, n in Counter(r[fact] for r in results).most_common()) or "–"


def summary(sections: Sequence[Section]) -> str:
    """Compare our figures with the paper's: a row per section, the lowest cells, and the notes."""
    rows, low = [], []
    for section in sections:
        if section.cells:
            rows.append([section.title, *_standing(section.cells)])
            low += [(cell.difference, section.title, cell) for cell in _lowest(section.cells)]
    head = ["", "cells", "done", f"ours ≥ paper − {NOISE}", "mean difference", "lowest"]
    notes = [f"- {section.note}" for section in sections if section.note]
    lines = [f"- {title}: {cell.name}: {cell}" for _, title, cell in sorted(low, key=lambda item: item[0])]
    text = table(head, rows) + "\n"
    if notes:
        text += "\n" + "\n".join(notes) + "\n"
    if lines:
        text += f"\nThe lowest cells (at most {LOWEST} a table, those more than {NOISE} below the paper):\n\n"
        text += "\n".join(lines) + "\n"
    return text


def _standing(cells: Sequence[Cell]) -> list[str]:
    gaps = [cell.difference for cell in cells if cell.difference is not None]
    if not gaps:
        return [str(len(cells)), "0", "–", "–", "–"]
    share = 100 * float(np.mean([gap >= -NOISE for gap in gaps]))
    mean = number(float(np.mean(gaps)), 4, sign=True)
    return [str(len(cells)), str(len(gaps)), f"{share:.0f} %", mean, number(min(gaps), sign=True)]


def _lowest(cells: Sequence[Cell]) -> list[Cell]:
    low = [cell for cell in cells if cell.difference is not None and cell.difference < -NOISE]
    return sorted(low, key=lambda cell: cell.difference or 0.0)[:LOWEST]


if __name__ == "__main__":
    main()
