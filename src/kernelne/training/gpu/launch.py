"""Compile-time constants and launch parameters of the GPU kernels, tuned on an H200."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from kernelne.model.kernels import KERNELS, kinds_of
from kernelne.model.mixture import n_sums
from kernelne.training.config import TrainingConfig

#: Maximum number of walks in a block, and of the node ids of these walks and their negatives.
_LARGEST_BLOCK, _LARGEST_ROWS = 2**19, 2**24
#: Minimum number of nodes for each walk that is trained on at the same time.
_NODES_PER_WALK = 25
#: Warps of a training program, registers per thread, and programs that fit on a multiprocessor.
_WARPS, _REGISTERS, PROGRAMS_PER_SM = 2, 168, 6
#: Maximum number of columns of the tables that a program reads at a time.
_WIDTH = 64
#: Upper bound of gradients in half precision, far below its limit of 65,504.
LARGEST_GRADIENT = 2.0**10
#: Size of a program's tile: positions of a walk × contexts and negatives.
_ROWS, _COLUMNS = 16, 32


def largest_block(config: TrainingConfig, n_walks: int) -> int:
    """Maximum number of walks in a block."""
    columns = config.walk_length + config.shared_negatives
    return int(min(max(min(_LARGEST_BLOCK, _LARGEST_ROWS // columns), 1), n_walks))


def multiprocessors(device: Any) -> int:
    """Number of multiprocessors of the GPU; 1 with Triton's interpreter."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def shape(config: TrainingConfig, n: int, on_gpu: bool) -> dict[str, Any]:
    """Compile-time constants and launch options of the training kernel, tuned on an H200."""
    one_tile = config.walk_length <= _ROWS and config.walk_length + config.shared_negatives <= _COLUMNS
    return {
        "DIM": config.dim,
        "LENGTH": config.walk_length,
        "N_SHARED": config.shared_negatives,
        "KINDS": tuple(kinds_of(name for name, _ in config.kernels)),
        "LEARNED": config.learn_coefficients,
        "N_SUMS": n_sums(len(config.kernels)),
        "ROWS": _ROWS,
        "COLUMNS": _COLUMNS,
        "WIDTH": min(max(triton.next_power_of_2(config.dim), 16), _WIDTH),
        "INDEX": tl.int32 if n * config.dim < 2**31 else tl.int64,
        "HALF": on_gpu,
        "SLOTS": _COLUMNS if one_tile and on_gpu else 0,
        "LINES": triton.next_power_of_2(triton.cdiv(config.dim, 32)),
        "SOFT": config.window_decay < 1,
        "FORWARD": config.forward,
        "num_warps": _WARPS,
        "num_stages": 1,
        "maxnreg": _REGISTERS,
    }


def walks_in_flight(n: int) -> int:
    """Maximum number of walks trained on at the same time, which do not see each other's steps.

    Walks overlap most often at hubs, whose share of all visits falls like 1/√n if degrees have heavy tails;
    graphs of a few hundred nodes allow only a few walks at a time.
    """
    return max(min(math.isqrt(n), n // _NODES_PER_WALK), 1)


def unit(config: TrainingConfig) -> float:
    """Power of two by which gradients are divided, so that they fit into half precision.

    Built-in kernels are steepest at distance 0, others anywhere. The weights of a row's pairs sum to at most
    2 · window · (1 + n_negative), those of a negative to at most the sum over all rows; targets and kernels
    differ by at most about 2.
    """
    far = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 200)])
    steepest = max(float(np.abs(KERNELS[name](far, sigma)[1]).max()) for name, sigma in config.kernels)
    pairs = 2 * min(config.window, config.walk_length)
    heaviest = max(
        pairs * (1 + config.n_negative),
        pairs * config.walk_length * config.n_negative / config.shared_negatives,
    )
    return float(2.0 ** math.ceil(math.log2((8 * steepest + config.l2) * heaviest / LARGEST_GRADIENT)))
