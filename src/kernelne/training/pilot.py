"""The pilot run: a short run that chooses parameters from the graph alone, without labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kernelne.model.defaults import LEAST_DECAY, MOST_DECAY
from kernelne.training.backend import Backend, OnBlock, Prepared
from kernelne.training.config import TrainingConfig

#: If the signal is at least _CLEAR, the widest kernel is left out. Otherwise all three kernels are used,
#: which takes longer, and `walks_per_node` is lower so that the time stays the same.
_CLEAR, _WALKS_OF_THREE = 0.25, 160

#: The pilot run's share of the walks.
_PILOT_SHARE = 0.1


def pilot_walks(config: TrainingConfig) -> int:
    """Number of walks started at each node in the pilot run."""
    return max(round(_PILOT_SHARE * config.walks_per_node), 1)


def pilot(
    backend: Backend, prepared: Prepared, given: Mapping[str, Any], on_block: OnBlock
) -> tuple[TrainingConfig, dict[str, Any], OnBlock]:
    """Train on a few walks and choose the kernels, and `l2` and `walks_per_node` unless they are given.

    Returns the settings of the run, the values chosen, and the `on_block` for the rest of the run.

    The signal compares the loss of walks that were not trained on before with the loss of vectors that are
    all alike. Weight decay helps if the signal is strong, as in citation networks. If it is weak, as in
    networks of proteins, pairs attract each other weakly, and a strong decay would keep the vectors at their
    initial values; there the widest kernel helps as well, because it still attracts distant vectors.
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
