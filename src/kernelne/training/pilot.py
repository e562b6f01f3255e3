"""A short run that chooses the kernels, and decay and walks unless given, from the graph alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kernelne.model.defaults import LEAST_DECAY, MOST_DECAY
from kernelne.training.config import TrainingConfig
from kernelne.training.course import Report, Trained

#: Where the walks tell so much, the widest kernel is left out; where it is not, which takes longer, there are
#: fewer walks for the same time.
_CLEAR, _WALKS_OF_THREE = 0.25, 160


#: The pilot's share of the walks.
_PILOT_SHARE = 0.1


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
        found["l2"] = float(f"{LEAST_DECAY + (MOST_DECAY - LEAST_DECAY) * signal:.2g}")
    if given["walks_per_node"] is None and not clear:
        found["walks_per_node"] = _WALKS_OF_THREE
    settings = replace(config, **found)
    found["signal"] = round(signal, 3)
    total = before + graph.n_nodes * settings.walks_per_node
    return settings, found, lambda done, _, loss: report(before + done, total, loss)
