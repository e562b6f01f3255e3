"""Draws the kernels as the package has them: `python docs/_tools/draw_kernels.py docs/images/kernels.svg`."""

from __future__ import annotations

import sys

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from kernelne.model.kernels import KERNELS

#: Kernel → its formula, and the sigmas drawn: those of the paper's mixtures, or ones that work.
SHOWN = {
    "gaussian": (r"\exp(-D/\sigma^2)", (1.0, 2.0, 3.0)),
    "schoenberg": (r"(1+D)^{-\sigma}", (1.0, 1.5, 2.0)),
    "inverse_multiquadric": (r"(1+D/\sigma^2)^{-1/2}", (0.25, 0.5, 1.0)),
}
#: Dark to light, told apart by dashes as well.
LOOKS = (("#005f73", "-"), ("#3f90da", (0, (6, 2))), ("#e76300", (0, (1.5, 1.5))))


def draw(path: str) -> None:
    """Value against the distance √D, a panel for each kernel."""
    if SHOWN.keys() != KERNELS.keys():
        raise SystemExit(f"draw_kernels.py shows {', '.join(SHOWN)}; the package has {', '.join(KERNELS)}")
    distance = np.linspace(0.0, 6.0, 121)
    figure = Figure(figsize=(9.6, 3.3), layout="constrained")
    panels = figure.subplots(1, len(KERNELS), sharey=True)
    for axes, (name, function) in zip(panels, KERNELS.items(), strict=True):
        formula, sigmas = SHOWN[name]
        for sigma, (colour, dashes) in zip(sigmas, LOOKS, strict=True):
            value, _ = function(distance**2, np.float64(sigma))
            axes.plot(distance, value, color=colour, linestyle=dashes, linewidth=2, label=f"σ = {sigma:g}")
        axes.set_title(f"{name.replace('_', ' ')}\n$k = {formula}$", fontsize=11)
        axes.set(xlim=(0, 6), ylim=(0, 1.03), xlabel="distance of the two vectors, √D")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.axes[0].set_ylabel("kernel k(D)")
    with rc_context({"svg.hashsalt": "kernels", "svg.fonttype": "path"}):
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(sys.argv[1])
