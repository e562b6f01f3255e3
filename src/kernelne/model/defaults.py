"""The default that finds its own way: what MKernelNE takes for parameters left open.

When kernels are given these are the plain defaults. When they are not, they come from the graph alone, never
from labels: some are constants that did best over many graphs, the length of the vectors follows from the
number of nodes, their decay and the kernels from a short pilot run. docs/method.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_GAUSSIANS = (("gaussian", 1.0), ("gaussian", 2.0), ("gaussian", 3.0))

PLAIN: dict[str, Any] = {
    "kernels": _GAUSSIANS, "coef_l2": 0.02, "coef_spread": 1.5, "walks_per_node": 80, "walk_length": 10,
    "l2": 0.01, "vectors": "center", "norm": None,
}  # fmt: skip

#: Decay where walks tell nothing, and where they tell everything.
LEAST_DECAY, MOST_DECAY = 0.003, 0.01

#: Rows are _LENGTH / n^¼ long, between these.
_LENGTH, _SHORTEST, _LONGEST = 20.0, 1.0, 4.0

AUTO: dict[str, Any] = PLAIN | {
    "walks_per_node": 170, "l2": LEAST_DECAY, "vectors": "smooth", "norm": _LONGEST,
}  # fmt: skip


def settle(given: Mapping[str, Any], n_nodes: int | None = None) -> dict[str, Any]:
    """The parameters given, those left open filled in; kernels and decay are those of the pilot.

    n_nodes: of the graph, which the length of automatic vectors depends on.
    """
    filled = dict(given)
    if "kernels" not in given:  # KernelNE leaves nothing open
        return filled
    automatic = is_automatic(given["kernels"])
    for name, value in (AUTO if automatic else PLAIN).items():
        if automatic if name == "kernels" else filled[name] is None:
            filled[name] = value
    if automatic and given["norm"] is None and n_nodes is not None:
        filled["norm"] = _length(n_nodes)
    return filled


def _length(n: int) -> float:
    """The mean length of rows for a graph of n nodes.

    A classifier's penalty on weights is one, its losses are one for each labelled node. In larger graphs
    these are more, so that vectors of the same length are penalised less; shorter ones make up for it.
    """
    return float(f"{min(max(_LENGTH / n**0.25, _SHORTEST), _LONGEST):.3g}")


def is_automatic(kernels: Any) -> bool:
    return isinstance(kernels, str) and kernels == "auto"
