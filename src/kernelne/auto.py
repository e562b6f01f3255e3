"""The default that finds its own way: what MKernelNE takes for parameters left open.

When kernels are given these are the plain defaults. When they are not, they come from the graph alone, never
from labels: most are constants that did best over many graphs, and the decay of the vectors follows from a
short pilot run. docs/method.md has the figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernelne.errors import ParameterError
from kernelne.training.config import TrainingConfig
from kernelne.training.run import Report, Trained

#: How the two tables become the embedding.
VECTORS = ("center", "sum", "concat", "smooth")

_GAUSSIANS = (("gaussian", 1.0), ("gaussian", 2.0), ("gaussian", 3.0))

PLAIN: dict[str, Any] = {
    "kernels": _GAUSSIANS, "coef_l2": 0.02, "coef_spread": 1.5, "walks_per_node": 80, "walk_length": 10,
    "l2": 0.01, "vectors": "center", "norm": None,
}  # fmt: skip

#: Decay where walks tell nothing, and where they tell everything.
_LEAST_DECAY, _MOST_DECAY = 0.003, 0.01

AUTO: dict[str, Any] = PLAIN | {"walks_per_node": 160, "l2": _LEAST_DECAY, "vectors": "smooth"}

#: Rows are _LENGTH / n^¼ long, between these.
_LENGTH, _SHORTEST, _LONGEST = 20.0, 1.0, 4.0

#: Rows that are smoothed at a time.
_BLOCK_ROWS = 2**16

#: The pilot's share of the walks.
_PILOT_SHARE = 0.1


def settle(given: Mapping[str, Any], graph: Any = None) -> dict[str, Any]:
    """The parameters given, those left open filled in; what the pilot decides is its starting point."""
    automatic = is_automatic(given.get("kernels"))
    filled = dict(given)
    for name, value in (AUTO if automatic else PLAIN).items():
        if name in filled and (filled[name] is None or (name == "kernels" and automatic)):
            filled[name] = value
    if automatic and filled["norm"] is None and graph is not None:
        filled["norm"] = _length(graph.n_nodes)
    return filled


def _length(n: int) -> float:
    """The mean length of rows for a graph of n nodes.

    A classifier's penalty on weights is one, its losses are one for each labelled node. In larger graphs
    these are more, so that vectors of the same length are penalised less; shorter ones make up for it.
    """
    return float(f"{min(max(_LENGTH / n**0.25, _SHORTEST), _LONGEST):.3g}")


def is_automatic(kernels: Any) -> bool:
    return isinstance(kernels, str) and kernels == "auto"


def needs_pilot(given: Mapping[str, Any]) -> bool:
    return is_automatic(given.get("kernels")) and given.get("l2") is None


def pilot(
    graph: Any, config: TrainingConfig, train: Callable[..., Trained], report: Report
) -> tuple[TrainingConfig, dict[str, Any], Report]:
    """Train for a moment and choose the decay: the settings, what was found, and how the rest is reported.

    The loss of walks that were not trained on before, beside that of vectors all alike, says how much there
    is to be learned. Decay is a help where that is much, as in citation networks. Where it is little, as
    among proteins, the pull of the pairs is weak, and strong decay would hold the vectors at the start.
    """
    first = replace(config, walks_per_node=max(round(_PILOT_SHARE * config.walks_per_node), 1))
    before = graph.n_nodes * first.walks_per_node
    total = before + graph.n_nodes * config.walks_per_node
    loss = train(graph, first, lambda done, _, loss: report(done, total, loss)).loss
    alike = config.n_negative / (1 + config.n_negative)
    signal = 0.0 if math.isnan(loss) else min(max(1 - loss / alike, 0.0), 1.0)
    decay = float(f"{_LEAST_DECAY + (_MOST_DECAY - _LEAST_DECAY) * signal:.2g}")
    found = {"l2": decay, "signal": round(signal, 3)}
    return replace(config, l2=decay), found, lambda done, _, loss: report(before + done, total, loss)


def n_tables(settled: Mapping[str, Any]) -> int:
    """Tables (n, dim) that a run holds at its peak, with the embedding made of them."""
    if settled["vectors"] == "smooth":
        return 4
    return 2 if settled["vectors"] == "center" and settled["norm"] is None else 3


def check_output(vectors: Any, norm: Any, dim: Any) -> None:
    """Raise what is wrong with the parameters that make the embedding of two tables."""
    if vectors not in VECTORS:
        raise ParameterError("vectors", vectors, f"must be one of {', '.join(VECTORS)}")
    if vectors == "concat" and isinstance(dim, int) and dim % 2:
        raise ParameterError("dim", dim, 'must be even with vectors="concat": each table has half of it')
    if norm is not None and not (
        isinstance(norm, int | float) and not isinstance(norm, bool) and 0 < norm < math.inf
    ):
        raise ParameterError("norm", norm, "must be None, which leaves the vectors as trained, or positive")


def combine(
    graph: Any,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    vectors: str,
    norm: float | None,
) -> NDArray[np.float32]:
    """The embedding (n, dim) made of both tables, its rows of this mean length.

    "smooth": the sum of both, plus the mean of the neighbours' sums, which have noise of their own.
    """
    if vectors == "concat":
        made = np.hstack([center, context])
    elif vectors == "center":
        made = center if norm is None else center.copy()
    else:
        made = center + context
    if vectors == "smooth":
        made = _smoothed(graph, made)
    mean = float(np.linalg.norm(made, axis=1).mean())
    if norm is not None and mean > 0:
        made *= np.float32(norm / mean)
    return made


def _smoothed(graph: Any, table: NDArray[np.float32]) -> NDArray[np.float32]:
    """Every row plus the mean, by weight, of its neighbours' rows; in blocks, so that one copy is all."""
    weights = np.ones(graph.neighbours.size, np.float32) if graph.weights is None else graph.weights
    links = csr_array((weights, graph.neighbours, graph.offsets), (graph.n_nodes, graph.n_nodes))
    shares = 1.0 / np.maximum(links.sum(axis=1), np.finfo(np.float32).tiny)
    made = table.copy()
    for first in range(0, len(made), _BLOCK_ROWS):
        rows = slice(first, first + _BLOCK_ROWS)
        made[rows] += (links[rows] @ table) * shares[rows, None].astype(np.float32)
    return made
