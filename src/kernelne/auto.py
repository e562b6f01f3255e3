"""The default that finds its own way: what MKernelNE takes for parameters left open.

When kernels are given these are the plain defaults. When they are not, they come from the graph alone, never
from labels: some are constants that did best over many graphs, the length of the vectors follows from the
number of nodes, their decay and the kernels from a short pilot run. docs/method.md has the figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral, Real
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

#: Where the walks tell so much, the widest kernel is left out; where it is not, which takes longer, there are
#: fewer walks for the same time.
_CLEAR, _WALKS_OF_THREE = 0.25, 160

#: Decay where walks tell nothing, and where they tell everything.
_LEAST_DECAY, _MOST_DECAY = 0.003, 0.01

#: Rows are _LENGTH / n^¼ long, between these.
_LENGTH, _SHORTEST, _LONGEST = 20.0, 1.0, 4.0

AUTO: dict[str, Any] = PLAIN | {
    "walks_per_node": 170, "l2": _LEAST_DECAY, "vectors": "smooth", "norm": _LONGEST,
}  # fmt: skip

#: Rows that are smoothed at a time.
_BLOCK_ROWS = 2**16

#: The pilot's share of the walks.
_PILOT_SHARE = 0.1


def settle(given: Mapping[str, Any], graph: Any = None) -> dict[str, Any]:
    """The parameters given, those left open filled in; kernels and decay are those of the pilot."""
    filled = dict(given)
    if "kernels" not in given:  # KernelNE leaves nothing open
        return filled
    automatic = is_automatic(given["kernels"])
    for name, value in (AUTO if automatic else PLAIN).items():
        if automatic if name == "kernels" else filled[name] is None:
            filled[name] = value
    if automatic and given["norm"] is None and graph is not None:
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


def pilot_walks(config: TrainingConfig) -> int:
    """Walks that start at each node in the pilot, before those of the run itself."""
    return max(round(_PILOT_SHARE * config.walks_per_node), 1)


def pilot(
    graph: Any,
    config: TrainingConfig,
    given: Mapping[str, Any],
    train: Callable[..., Trained],
    report: Report,
) -> tuple[TrainingConfig, dict[str, Any], Report]:
    """Train for a moment and choose kernels, and decay and walks unless given: the settings, what was found,
    and how the rest of the run is reported.

    The loss of walks that were not trained on before, beside that of vectors all alike, says how much there
    is to be learned. Decay is a help where that is much, as in citation networks. Where it is little, as
    among proteins, the pull of the pairs is weak, and strong decay would hold the vectors at the start; there
    the widest kernel, which still pulls from afar, earns its place too.
    """
    first = replace(config, walks_per_node=pilot_walks(config))
    before = graph.n_nodes * first.walks_per_node
    expected = before + graph.n_nodes * config.walks_per_node
    loss = train(graph, first, lambda done, _, loss: report(done, expected, loss)).loss
    alike = config.n_negative / (1 + config.n_negative)
    signal = 0.0 if math.isnan(loss) else min(max(1 - loss / alike, 0.0), 1.0)
    clear = signal >= _CLEAR
    found: dict[str, Any] = {"kernels": config.kernels[:-1] if clear else config.kernels}
    if given["l2"] is None:
        found["l2"] = float(f"{_LEAST_DECAY + (_MOST_DECAY - _LEAST_DECAY) * signal:.2g}")
    if given["walks_per_node"] is None and not clear:
        found["walks_per_node"] = _WALKS_OF_THREE
    settings = replace(config, **found)
    found["signal"] = round(signal, 3)
    total = before + graph.n_nodes * settings.walks_per_node
    return settings, found, lambda done, _, loss: report(before + done, total, loss)


def n_tables(settled: Mapping[str, Any]) -> int:
    """Tables as wide as those trained that a run holds at its peak, with the embedding made of them."""
    if settled["vectors"] in ("smooth", "concat"):
        return 4
    return 2 if settled["vectors"] == "center" and settled["norm"] is None else 3


def check_output(vectors: Any, norm: Any, dim: Any) -> None:
    """Raise what is wrong with the parameters that make the embedding of two tables."""
    if vectors not in VECTORS:
        raise ParameterError("vectors", vectors, f"must be one of {', '.join(VECTORS)}")
    if vectors == "concat" and isinstance(dim, Integral) and dim % 2:
        raise ParameterError("dim", dim, 'must be even with vectors="concat": each table has half of it')
    if norm is not None and not (
        isinstance(norm, Real) and not isinstance(norm, bool) and 0 < float(norm) < math.inf
    ):
        raise ParameterError("norm", norm, "must be a positive number, or None")


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
    if norm is None:
        return made
    mean = float(np.sqrt(np.einsum("ij,ij->i", made, made)).mean())  # np.linalg.norm would square a copy
    if mean > 0:
        made *= np.float32(norm / mean)
    return made


def _smoothed(graph: Any, table: NDArray[np.float32]) -> NDArray[np.float32]:
    """Every row plus the mean, by weight, of its neighbours' rows; in blocks, so that one copy is all."""
    weights = np.ones(graph.neighbours.size, np.float32) if graph.weights is None else graph.weights
    links = csr_array((weights, graph.neighbours, graph.offsets), (graph.n_nodes, graph.n_nodes))
    made = table.copy()
    for first in range(0, len(made), _BLOCK_ROWS):
        rows = slice(first, first + _BLOCK_ROWS)
        shares = links[rows].astype(np.float64)  # sums of float32 weights may be beyond float32
        shares.data /= np.repeat(shares.sum(axis=1), np.diff(shares.indptr))
        made[rows] += shares.astype(np.float32) @ table
    return made
