"""Figure: running time on one thread against the number of nodes, Erdős–Rényi graphs of mean degree 10.

python experiments/fig_time.py [--quick] [--exponents 8,9,10] [--repeats 3]
"""

from __future__ import annotations

import sys
from statistics import median
from typing import Any

import numpy as np

from common import MODELS, Section, Store, command, disturbed, number, table, time_training
from figures import panels

FULL: dict[str, Any] = {"exponents": tuple(range(8, 14)), "repeats": 3}
QUICK = {"exponents": tuple(range(8, 12)), "repeats": 1}


def run(store: Store, exponents: tuple[int, ...], repeats: int) -> None:
    for exponent in exponents:
        n = 2**exponent
        for model in MODELS:
            store.fill(
                "fig_time",
                lambda model=model, n=n: time_training(f"erdos_renyi:n={n},p={10 / (n - 1)}", model, repeats),
                nodes=n,
                model=model,
                repeats=repeats,
            )


def render(store: Store, exponents: tuple[int, ...], repeats: int) -> list[Section]:
    rows, results = [], []
    with panels(store, "fig_time", "seconds against nodes", 1, 1) as (axes, image):
        for model in MODELS:
            found = {
                2**e: store.read("fig_time", nodes=2**e, model=model, repeats=repeats) for e in exponents
            }
            results += found.values()
            seconds = {n: median(result["wall_seconds"]) for n, result in found.items() if result}
            axes[0, 0].plot(list(seconds), list(seconds.values()), marker=".", label=model)
            slope = None
            if len(seconds) > 1:
                slope = float(np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0])
            rows.append([model, *(number(seconds.get(n)) for n in found), number(slope, 2)])
        if any(results):
            axes[0, 0].set(xscale="log", yscale="log")
        axes[0, 0].set(xlabel="nodes", ylabel="seconds, one thread")
        axes[0, 0].legend()
    text = (
        f"{image}\n\nSeconds of `fit` on one thread, median of {repeats}, walks included, compilation not. "
    )
    text += "The last column is the slope in the double logarithmic plot: 1 is linear.\n\n"
    text += table(["model", *(f"n = {2**e}" for e in exponents), "slope"], rows)
    text += f"\n\n{disturbed(results)}"
    return [Section("Figure: running time against nodes", text)]


if __name__ == "__main__":
    command(sys.modules[__name__])
