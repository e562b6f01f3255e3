"""The values that MKernelNE uses for parameters that are None.

If kernels are given, these are the plain defaults. With kernels="auto" they depend on the graph alone, never
on labels: some are constants that gave good scores on graphs of many kinds, from sparse to dense; the window,
walks, learning rate, penalties and the length of the vectors follow from the graph. docs/method.md has the
measurements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral
from typing import Any


def _gaussians(*sigmas: float) -> tuple[tuple[str, float], ...]:
    return tuple(("gaussian", sigma) for sigma in sigmas)


PLAIN: dict[str, Any] = {
    "kernels": _gaussians(1.0, 2.0, 3.0), "coef_l2": 0.02, "coef_spread": 1.5, "walks_per_node": 80,
    "walk_length": 10, "window_decay": 1.0, "n_negative": 5, "shared_negatives": 14,
    "learning_rate": 0.025, "l2": 0.01, "vectors": "center", "norm": None,
}  # fmt: skip

#: Walks per node: _WALKS · √(mean degree), clipped; fewer for large graphs, more for small ones.
_WALKS, _FEWEST, _MOST = 10.0, 50.0, 75.0
_LARGE, _SMALL = 50_000, 2_000
#: Bounds of the weight of a pair relative to that of a pair one step closer.
_FORGOTTEN, _KEPT = 0.05, 0.8
#: Mean degrees from which on the weight decay is lowered, and the learning rate raised, in proportion.
_DENSE, _VERY_DENSE = 25.0, 32.0
#: Contexts of a pair, itself and its negatives, from which on the L2 penalty is lowered in proportion.
_CONTEXTS = 6
#: Product of walks per node and learning rate, and the highest learning rate.
_LEARNING, _FASTEST = 10.0, 0.5
#: The mean length of rows is _LENGTH / n^0.4, clipped to [_SHORTEST, _LONGEST].
_LENGTH, _SHORTEST, _LONGEST = 75.0, 1.0, 4.0

#: Values for a graph of 2,000 nodes and 4,000 edges, where the graph is not known.
AUTO: dict[str, Any] = PLAIN | {
    "kernels": _gaussians(1.25, 5.0), "walks_per_node": 50, "window_decay": 0.5,
    "learning_rate": 0.2, "vectors": "joint", "norm": 3.5,
}  # fmt: skip

#: In bipartite graphs links are asked for: nodes are to be ranked, many more than there are groups. Narrow
#: kernels and many negatives do that, and need more walks and longer steps. Trees are bipartite too, and
#: graphs with few edges may be by chance: hence a least mean degree.
_BIPARTITE: dict[str, Any] = {"kernels": _gaussians(1.0, 2.0), "n_negative": 60, "shared_negatives": 28}
_BIPARTITE_DEGREE, _BIPARTITE_LEARNING, _BIPARTITE_L2 = 4.0, 20.0, 0.0183
#: Walks per node of these: _BIPARTITE_WALKS · n^(1/6), at most _BIPARTITE_MOST.
_BIPARTITE_WALKS, _BIPARTITE_MOST = 15.0, 100.0


def settle(given: Mapping[str, Any], graph: Any = None) -> dict[str, Any]:
    """Return the parameters with defaults for None; if kernels="auto", those for this graph."""
    filled = dict(given)
    if "kernels" not in given:  # KernelNE has no automatic parameters
        return filled
    automatic = is_automatic(given["kernels"])
    for name, value in (AUTO if automatic else PLAIN).items():
        if automatic if name == "kernels" else filled[name] is None:
            filled[name] = value
    if automatic and graph is not None:
        n, arcs = graph.n_nodes, graph.neighbours.size
        bipartite = arcs >= _BIPARTITE_DEGREE * n and graph.sides is not None
        found: dict[str, Any] = dict(_BIPARTITE) if bipartite else {}
        walks = given["walks_per_node"] or _walks(n, arcs, bipartite)
        negatives = filled["n_negative"] if given["n_negative"] is not None else found.get("n_negative", 5)
        found |= {
            "walks_per_node": walks,
            "l2": _penalty(n, arcs, negatives, bipartite),
            "coef_spread": _spread(n, arcs),
            "window_decay": _decay(graph.memory_of_walks),
            "learning_rate": max(_rate(n, arcs, walks, bipartite), filled["min_learning_rate"]),
            "norm": _length(n),
        }
        for name, value in found.items():
            if name == "kernels" or given[name] is None:
                filled[name] = value
    return filled


def _walks(n: int, arcs: int, bipartite: bool) -> int:
    """Walks per node for a graph of n nodes.

    In a dense graph a walk forgets its start after a few steps, so a pair is hardly likelier than a random
    one, and more pairs are needed to learn as much. Large graphs have fewer walks, to save time, small ones
    more, as they cost little.
    """
    walks = min(max(_WALKS * math.sqrt(arcs / max(n, 1)), _FEWEST), _MOST)
    large, small = min(_LARGE / max(n, 1), 1.0), max(_SMALL / max(n, 1), 1.0)
    if bipartite:  # the more nodes there are to rank, the finer the differences
        walks, large = min(_BIPARTITE_WALKS * n ** (1 / 6), _BIPARTITE_MOST), min(2 * _LARGE / max(n, 1), 1.0)
    return round(walks * math.cbrt(large) * math.sqrt(small))


def _decay(remembered: float) -> float:
    """Weight of a pair relative to that of one a step closer: pairs weigh in proportion to what they tell."""
    return float(f"{min(max(remembered, _FORGOTTEN), _KEPT):.2g}")


def _spread(n: int, arcs: int) -> float:
    """Penalty on differences between coefficients: what tells kernels apart is a pair's pull squared."""
    return float(f"{AUTO['coef_spread'] * min(_DENSE * n / max(arcs, 1), 1.0) ** 2:.2g}")


def _penalty(n: int, arcs: int, n_negative: Any, bipartite: bool) -> float:
    """L2 penalty: in dense graphs pairs attract each other weakly, and a strong penalty would win.

    A pair is penalised once for each of its contexts, so many negatives would do the same.
    """
    contexts = 1 + int(n_negative) if isinstance(n_negative, Integral) else 1  # all else is refused elsewhere
    if bipartite:
        return float(f"{_BIPARTITE_L2 / contexts:.2g}")
    weaker = min(_DENSE * n / max(arcs, 1), 1.0) * min(_CONTEXTS / contexts, 1.0)
    return float(f"{AUTO['l2'] * weaker:.2g}")


def _rate(n: int, arcs: int, walks_per_node: int, bipartite: bool) -> float:
    """Learning rate for this many walks: fewer walks take longer steps, and so do weak pairs.

    The more walks of small graphs are not for shorter steps: the vectors of a few nodes hinder each other.
    """
    learning = _LEARNING * max(arcs / max(n, 1) / _VERY_DENSE, 1.0) * math.sqrt(max(_SMALL / max(n, 1), 1.0))
    learning = _BIPARTITE_LEARNING if bipartite else learning
    return float(f"{min(learning / walks_per_node, _FASTEST):.2g}")


def _length(n: int) -> float:
    """Mean length of rows for a graph of n nodes.

    The objective of a classifier has one penalty on its weights, but one loss term per labelled node. Larger
    graphs have more of these, so the same penalty regularises less; shorter vectors compensate for that.
    """
    return float(f"{min(max(_LENGTH / n**0.4, _SHORTEST), _LONGEST):.3g}")


def is_automatic(kernels: Any) -> bool:
    return isinstance(kernels, str) and kernels == "auto"
