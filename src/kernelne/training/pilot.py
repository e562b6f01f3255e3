"""A short run that chooses what was left open, from the graph alone, never from labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kernelne.model.defaults import LEAST_DECAY, MOST_DECAY
from kernelne.training.backend import Backend, OnBlock, Prepared
from kernelne.training.config import TrainingConfig

#: Where the walks tell so much, the widest kernel is left out; where it is not, which takes longer, there are
#: fewer walks for the same time.
_CLEAR, _WALKS_OF_THREE = 0.25, 160

#: The pilot's share of the walks.
_PILOT_SHARE = 0.1


def pilot_walks(config: TrainingConfig) -> int:
    """Walks that start at each node in the pilot, before those of the run itself."""
    return max(round(_PILOT_SHARE * config.walks_per_node), 1)


def pilot(
    backend: Backend, prepared: Prepared, given: Mapping[str, Any], on_block: OnBlock
) -> tuple[TrainingConfig, dict[str, Any], OnBlock]:
    """Train on a few of the walks and choose kernels, and decay and walks unless given.

    Returns the settings of the run, what was found, and how the rest of the run is reported.

    The loss of walks that were not trained on before, beside that of vectors all alike, says how much there
    is to be learned. Decay is a help where that is much, as in citation networks. Where it is little, as
    among proteins, the pull of the pairs is weak, and strong decay would hold the vectors at the start; there
    the widest kernel, which still pulls from afar, earns its place too.
    """
    config, n = prepared.config, prepared.n_nodes
    trial = prepared.adapt(replace(config, walks_per_node=pilot_walks(config)))
    before, expected = trial.n_walks, trial.n_walks + prepared.n_walks
    loss = backend.run(
        trial, backend.start(trial), None, lambda done, _, loss: on_block(done, expected, loss)
    ).loss
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
    total = before + n * settings.walks_per_node
    return settings, found, lambda done, _, loss: on_block(before + done, total, loss)
