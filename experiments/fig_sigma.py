"""Figure: micro-F1 on CiteSeer of KernelNE against the kernel's bandwidth.

KERNELNE_DATA=FOLDER python experiments/fig_sigma.py [--quick] [--values 0.5,2] [--seeds 2] [--splits 10]
"""

from __future__ import annotations

import sys
from typing import Any

from common import command
from figures import Sweep

FULL: dict[str, Any] = {
    "values": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
    "shares": (10, 50, 90),
    "seeds": 2,
    "splits": 10,
}
QUICK = FULL | {"seeds": 1, "splits": 3}
SWEEP = Sweep(
    experiment="fig_sigma",
    title="Figure: bandwidth",
    models=("KernelNE-Gauss", "KernelNE-Sch"),
    parameter="sigma",
    paper_value=2.0,
    remark="The paper's curves: Gaussian flat to 2, falling after 4; Schoenberg rising from 0.25 to 0.5, "
    "flat from 4 to 8.",
    log=True,
)
run, render = SWEEP.run, SWEEP.render

if __name__ == "__main__":
    command(sys.modules[__name__])
