"""The values that MKernelNE uses for parameters that are None.

If kernels are given, these are the plain defaults. With kernels="auto" they depend on the graph alone, never
on labels: some are constants that gave the best scores over many graphs, the length of the vectors follows
from the number of nodes, and weight decay and kernels are chosen by a pilot run. docs/method.md has the
measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_GAUSSIANS = (("gaussian", 1.0), ("gaussian", 2.0), ("gaussian", 3.0))

PLAIN: dict[str, Any] = {
    "kernels": _GAUSSIANS, "coef_l2": 0.02, "coef_spread": 1.5, "walks_per_node": 80, "walk_length": 10,
    "window_decay": 1.0, "learning_rate": 0.025, "l2": 0.01, "vectors": "center", "norm": None,
}  # fmt: skip

#: Weight decay for the weakest and for the strongest signal of the pilot run.
LEAST_DECAY, MOST_DECAY = 0.003, 0.01

#: The mean length of rows is _LENGTH / n^¼, clipped to [_SHORTEST, _LONGEST].
_LENGTH, _SHORTEST, _LONGEST = 20.0, 1.0, 4.0

AUTO: dict[str, Any] = PLAIN | {
    "walks_per_node": 170, "l2": LEAST_DECAY, "vectors": "smooth", "norm": _LONGEST,
}  # fmt: skip


def settle(given: Mapping[str, Any], n_nodes: int | None = None) -> dict[str, Any]:
    """Return the parameters with defaults for None; with kernels="auto", kernels and l2 of the pilot run.

    n_nodes: number of nodes, on which `norm` depends if kernels="auto".
    """
    filled = dict(given)
    if "kernels" not in given:  # KernelNE has no automatic parameters
        return filled
    automatic = is_automatic(given["kernels"])
    for name, value in (AUTO if automatic else PLAIN).items():
        if automatic if name == "kernels" else filled[name] is None:
            filled[name] = value
    if automatic and given["norm"] is None and n_nodes is not None:
        filled["norm"] = _length(n_nodes)
    return filled


def _length(n: int) -> float:
    """Mean length of rows for a graph of n nodes.

    The objective of a classifier has one penalty on its weights, but one loss term per labelled node. Larger
    graphs have more of these, so the same penalty regularises less; shorter vectors compensate for that.
    """
    return float(f"{min(max(_LENGTH / n**0.25, _SHORTEST), _LONGEST):.3g}")


def is_automatic(kernels: Any) -> bool:
    return isinstance(kernels, str) and kernels == "auto"
