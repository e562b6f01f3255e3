"""A block: what one worker trains at a time. A pure function of its arguments, wherever it runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.variants import variant
from kernelne.model.kernels import kinds_of, own_key
from kernelne.model.mixture import n_sums
from kernelne.training.config import TrainingConfig
from kernelne.training.cpu.loop import Mixture
from kernelne.training.parts.loop import PairStep, make_pair_scratch, most_pairs
from kernelne.training.parts.pairs import Pairs, by_center, kept_weights
from kernelne.training.parts.schedule import Block
from kernelne.training.schedule import norm_limit
from kernelne.walks.negatives import AliasTable
from kernelne.walks.rng import PARTS, stream_key

#: Fewest negatives that the centers of a mini-batch share.
_FEWEST_SHARED = 8


class Trained(NamedTuple):
    """What a block leaves beside its two parts: sums as `Moments.unpack` reads them, exploded rows."""

    sums: NDArray[np.float64]
    n_exploded: int


def shared_negatives(config: TrainingConfig) -> int:
    """Negatives of a mini-batch: of the contexts of a walk's position a P-th is in the block."""
    return max(_FEWEST_SHARED, -(-config.shared_negatives // (config.parts or 1)))


def train_block(
    block: Block,
    config: TrainingConfig,
    coefficients: NDArray[np.float64],
    pairs: Pairs,
    noise: AliasTable,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
) -> Trained:
    """Train on the pairs of a block; the parts `center` and `context` are changed in place.

    noise: the distribution of the negatives over the rows of the context's part.
    """
    names = [name for name, _ in config.kernels]
    loop: Any = variant("kernelne.training.parts.loop", own_key(names))
    mixture = Mixture(
        np.array(kinds_of(names)),
        np.array([sigma for _, sigma in config.kernels], np.float32),
        coefficients.astype(np.float32),
        config.learn_coefficients,
    )
    step = PairStep(
        n_negative=config.n_negative,
        n_shared=shared_negatives(config),
        n_pairs=most_pairs(len(context)),
        l2=np.float32(config.l2),
        first_rate=block.rates[0],
        last_rate=block.rates[1],
        norm_limit=np.float32(norm_limit(config)),
        near=kept_weights(config).astype(np.float32),
        noise_key=np.uint64(stream_key(np.uint64(config.seed), PARTS, block.number)),
    )
    sums = np.zeros(n_sums(len(names)))
    scratch = make_pair_scratch(step.n_shared, config.dim, len(names))
    n_bad = loop.train_pairs(
        *by_center(pairs, len(center)), noise, step, mixture, center, context, scratch, sums
    )
    return Trained(sums, int(n_bad))
