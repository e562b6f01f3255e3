"""What the kernels of a run are compiled for and launched with, found by trying on an H200."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from kernelne.model.kernels import KERNELS
from kernelne.model.mixture import n_sums
from kernelne.training.config import TrainingConfig

#: Walks between two looks at coefficients and progress, and ids of nodes they may take, at most.
_LARGEST_BLOCK, _LARGEST_ROWS = 2**19, 2**24
#: Nodes for every walk in flight, at least.
_NODES_PER_WALK = 25
#: A training program's warps and registers a thread; programs that find room on a multiprocessor.
_WARPS, _REGISTERS, PROGRAMS_PER_SM = 2, 168, 6
#: Columns of the tables that it works on at a time.
_WIDTH = 64
#: Gradients in half precision are to stay below this, far from its limit of 65,504.
LARGEST_GRADIENT = 2.0**10
#: A program's tile: positions of a walk; its contexts and negatives.
_ROWS, _COLUMNS = 16, 32


def largest_block(config: TrainingConfig, n_walks: int) -> int:
    """Walks of a block at most."""
    columns = config.walk_length + config.shared_negatives
    return int(min(max(min(_LARGEST_BLOCK, _LARGEST_ROWS // columns), 1), n_walks))


def multiprocessors(device: Any) -> int:
    """How many work in parallel; 1 where Triton's interpreter plays the GPU."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def shape(config: TrainingConfig, n: int, on_gpu: bool) -> dict[str, Any]:
    """The constants that a training kernel is compiled for, found by trying on an H200."""
    one_tile = config.walk_length <= _ROWS and config.walk_length + config.shared_negatives <= _COLUMNS
    return {
        "DIM": config.dim,
        "LENGTH": config.walk_length,
        "N_SHARED": config.shared_negatives,
        "KINDS": tuple(list(KERNELS).index(name) for name, _ in config.kernels),
        "LEARNED": config.learn_coefficients,
        "N_SUMS": n_sums(len(config.kernels)),
        "ROWS": _ROWS,
        "COLUMNS": _COLUMNS,
        "WIDTH": min(max(triton.next_power_of_2(config.dim), 16), _WIDTH),
        "INDEX": tl.int32 if n * config.dim < 2**31 else tl.int64,
        "HALF": on_gpu,
        "SLOTS": _COLUMNS if one_tile and on_gpu else 0,
        "LINES": triton.next_power_of_2(triton.cdiv(config.dim, 32)),
        "num_warps": _WARPS,
        "num_stages": 1,
        "maxnreg": _REGISTERS,
    }


def walks_in_flight(n: int) -> int:
    """Walks that may be trained on at a time: they do not see each other's steps.

    They meet most often at hubs, whose share of all visits falls like 1/√n where degrees have heavy tails;
    graphs of a few hundred nodes have few walks to spare at all.
    """
    return max(min(math.isqrt(n), n // _NODES_PER_WALK), 1)


def unit(config: TrainingConfig) -> float:
    """The power of two that gradients are counted in, so that they fit into half precision.

    At distance 0 every kernel is steepest. A row's pairs weigh no more than 2 · window · (1 + n_negative),
    a negative's no more than those of all rows; targets and kernels differ by 2 at most, or not much more.
    """
    steepest = max(abs(float(KERNELS[name](np.float64(0.0), sigma)[1])) for name, sigma in config.kernels)
    pairs = 2 * min(config.window, config.walk_length)
    heaviest = max(
        pairs * (1 + config.n_negative),
        pairs * config.walk_length * config.n_negative / config.shared_negatives,
    )
    return float(2.0 ** math.ceil(math.log2((8 * steepest + config.l2) * heaviest / LARGEST_GRADIENT)))
