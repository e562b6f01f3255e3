"""Figure: micro-F1 on CiteSeer against the dimension.

KERNELNE_DATA=FOLDER python experiments/fig_dim.py [--quick] [--values 32,128] [--seeds 2] [--splits 10]
"""

from __future__ import annotations

import sys
from typing import Any

from common import MODELS, command
from figures import Sweep

FULL: dict[str, Any] = {
    "values": tuple(range(32, 225, 32)),
    "shares": (10, 50, 90),
    "seeds": 2,
    "splits": 10,
}
QUICK = FULL | {"values": (32, 128, 224), "seeds": 1, "splits": 3}
SWEEP = Sweep(
    experiment="fig_dim",
    title="Figure: dimension",
    models=tuple(MODELS),
    parameter="dim",
    paper_value=128,
    remark="The paper's curves rise and level off above 96.",
)
run, render = SWEEP.run, SWEEP.render

if __name__ == "__main__":
    command(sys.modules[__name__])
