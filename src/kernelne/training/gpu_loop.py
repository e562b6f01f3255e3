"""The loop of GPU training, in Triton: any mixture of kernels, one walk a program at a time.

As on the CPU a walk is one mini-batch: its rows and its shared negatives are read, all squared distances come
from one product, and both gradients are two more. Steps are added to the tables by atomic operations. A walk
that does not fit one tile is worked off tile by tile; the weights say how much of the decay falls to each.
"""

# ruff: noqa: N803  (Triton's constants are written in capitals)
from __future__ import annotations

import types
from typing import Any

import triton
import triton.language as tl

from kernelne.kernels import KERNELS


@triton.jit
def _exp(x: tl.tensor) -> tl.tensor:
    return tl.exp(x)


@triton.jit
def _log(x: tl.tensor) -> tl.tensor:
    return tl.log(x)


@triton.jit
def _sqrt(x: tl.tensor) -> tl.tensor:
    return tl.sqrt(x)


def _compiled(source: Any, name: str, **names: Any) -> Any:
    """A Python function for Triton, with `names` in place of what its own module knows."""
    copy = types.FunctionType(source.__code__, {"tl": tl, "Any": tl.tensor, **names}, source.__name__)
    copy.__module__ = __name__
    copy.__qualname__ = name  # Triton tells functions apart by it
    return triton.jit(copy)


def _link(WANTED: tl.constexpr, D: tl.tensor, sigma: tl.tensor) -> tl.tensor:
    """Value and slope of kernel number WANTED: one link of a chain that ends at the last kernel."""
    if WANTED == KIND:  # noqa: F821  (a name of the copy)
        value, slope = function(D, sigma)  # noqa: F821
    else:
        value, slope = otherwise(WANTED, D, sigma)  # noqa: F821
    return value, slope


def _end(WANTED: tl.constexpr, D: tl.tensor, sigma: tl.tensor) -> tl.tensor:
    return D, D


_evaluate = _compiled(_end, "evaluate_end")
for _kind, (_name, _function) in enumerate(KERNELS.items()):
    _evaluate = _compiled(
        _link,
        f"evaluate_{_name}",
        KIND=tl.constexpr(_kind),
        function=_compiled(
            _function, _name, exp=_exp, log=_log, sqrt=_sqrt, ONE=tl.constexpr(1.0), HALF=tl.constexpr(0.5)
        ),
        otherwise=_evaluate,
    )


@triton.jit
def evaluate_kernel(
    D: tl.tensor, values: tl.tensor, slopes: tl.tensor, sigma: tl.float32, size: tl.int32, KIND: tl.constexpr, BLOCK: tl.constexpr
) -> None:  # fmt: skip
    """Values and slopes of one kernel at D (size,): what the loop computes, for tests."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value, slope = _evaluate(KIND, tl.load(D + place, mask=place < size, other=0.0), sigma)
    tl.store(values + place, value, mask=place < size)
    tl.store(slopes + place, slope, mask=place < size)


@triton.jit
def _mixture(
    D: tl.tensor, weights: tl.tensor, targets: tl.tensor, sums: tl.tensor, mixture: tl.tensor, KINDS: tl.constexpr, LEARNED: tl.constexpr,
    N_SUMS: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """Σ cᵢkᵢ and its slope; adds Σ w·t·kᵢ and Σ w·kᵢ·kⱼ to sums (N_SUMS,), from which c is solved."""
    N_KERNELS: tl.constexpr = len(KINDS)  # noqa: N806
    at = tl.arange(0, N_SUMS)
    value = tl.zeros_like(D)
    slope = tl.zeros_like(D)
    for a in tl.static_range(N_KERNELS):
        sigma, c = tl.load(mixture + a), tl.load(mixture + N_KERNELS + a)
        k, dk = _evaluate(KINDS[a], D, sigma)
        value += c * k
        slope += c * dk
        if LEARNED:
            weighed = weights * k
            sums += tl.where(at == 2 + a, tl.sum(tl.sum(weighed * targets, axis=1), axis=0), 0.0)
            for b in tl.static_range(a + 1):
                other, _ = _evaluate(KINDS[b], D, tl.load(mixture + b))
                product = tl.sum(tl.sum(weighed * other, axis=1), axis=0)
                sums += tl.where(at == 2 + N_KERNELS + a * N_KERNELS + b, product, 0.0)
    return value, slope, sums


@triton.jit(do_not_specialize=["first", "count", "n_walks", "window"])
def train_walks(
    center: tl.tensor, context: tl.tensor, rows: tl.tensor, lengths: tl.tensor, mixture: tl.tensor, all_sums: tl.tensor,
    first: tl.int64, count: tl.int32, n_walks: tl.float32, first_rate: tl.float32, last_rate: tl.float32, l2: tl.float32,
    n_negative: tl.float32, window: tl.int32,
    DIM: tl.constexpr, LENGTH: tl.constexpr, N_SHARED: tl.constexpr, KINDS: tl.constexpr,
    LEARNED: tl.constexpr, N_SUMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr, INDEX: tl.constexpr, PRECISION: tl.constexpr,
) -> None:  # fmt: skip
    """Train on `count` walks of `rows`, shared out between the programs; `first` is the number of the first.

    all_sums (programs × N_SUMS) is added to: pairs, loss, moments. The tables are read WIDTH columns at a
    time: if that is all of them, once; else once for the distances and once more for the steps.
    """
    program = tl.program_id(0)
    sums = tl.zeros((N_SUMS,), tl.float32)
    at = tl.arange(0, N_SUMS)
    k = tl.arange(0, WIDTH)
    w = program
    while w < count:
        length = tl.load(lengths + w)
        base = rows + w.to(tl.int64) * (LENGTH + N_SHARED)
        rate = first_rate + (last_rate - first_rate) * ((first + w).to(tl.float32) / n_walks)
        for i_0 in range(0, LENGTH, ROWS):
            i = i_0 + tl.arange(0, ROWS)
            i_there = (i < length) & (length > 1)
            v = tl.load(base + i, mask=i_there, other=0).to(INDEX)
            center_at = v[:, None] * DIM + k[None, :]
            pairs = tl.minimum(i, window) + tl.minimum(length - 1 - i, window)
            pairs = tl.where(i_there, pairs, 0).to(tl.float32)
            for j_0 in range(0, LENGTH + N_SHARED, COLUMNS):
                j = j_0 + tl.arange(0, COLUMNS)
                is_noise = (j >= LENGTH) & (j < LENGTH + N_SHARED) & (length > 1)
                j_there = ((j < LENGTH) & (j < length) & (length > 1)) | is_noise
                u = tl.load(base + j, mask=j_there, other=0).to(INDEX)
                context_at = u[:, None] * DIM + k[None, :]
                gap = tl.abs(i[:, None] - j[None, :])
                near = (gap > 0) & (gap <= window) & i_there[:, None] & (j_there & (j < LENGTH))[None, :]
                targets = near.to(tl.float32)
                weights = tl.where(is_noise[None, :], (pairs * (n_negative / N_SHARED))[:, None], targets)

                gram = tl.zeros((ROWS, COLUMNS), tl.float32)
                center_norms = tl.zeros((ROWS,), tl.float32)
                context_norms = tl.zeros((COLUMNS,), tl.float32)
                for k_0 in tl.static_range(0, DIM, WIDTH):
                    wide = (k + k_0 < DIM)[None, :]
                    B = tl.load(
                        center + (center_at + k_0), mask=i_there[:, None] & wide, other=0.0, cache_modifier=".cg"
                    )
                    C = tl.load(
                        context + (context_at + k_0), mask=j_there[:, None] & wide, other=0.0, cache_modifier=".cg"
                    )
                    gram = tl.dot(B, tl.trans(C), gram, input_precision=PRECISION)
                    center_norms += tl.sum(B * B, axis=1)
                    context_norms += tl.sum(C * C, axis=1)
                D = tl.maximum(center_norms[:, None] + context_norms[None, :] - 2.0 * gram, 0.0)

                value, slope, sums = _mixture(D, weights, targets, sums, mixture, KINDS, LEARNED, N_SUMS)
                pressure = weights * (targets - value)
                sums += tl.where(at == 0, tl.sum(tl.sum(targets, axis=1), axis=0), 0.0)
                loss = tl.sum(tl.sum(pressure * (targets - value), axis=1), axis=0)
                sums += tl.where(at == 1, loss, 0.0)
                G = -4.0 * rate * pressure * slope
                from_center = tl.sum(G, axis=1) + rate * l2 * tl.sum(targets, axis=1)
                from_context = tl.sum(G, axis=0) + rate * l2 * tl.sum(weights, axis=0)

                for k_0 in tl.static_range(0, DIM, WIDTH):
                    wide = (k + k_0 < DIM)[None, :]
                    if WIDTH < DIM:
                        B = tl.load(
                            center + (center_at + k_0), mask=i_there[:, None] & wide, other=0.0, cache_modifier=".cg"
                        )
                        C = tl.load(
                            context + (context_at + k_0), mask=j_there[:, None] & wide, other=0.0, cache_modifier=".cg"
                        )
                    center_step = tl.dot(G, C, input_precision=PRECISION) - from_center[:, None] * B
                    context_step = (
                        tl.dot(tl.trans(G), B, input_precision=PRECISION) - from_context[:, None] * C
                    )
                    tl.atomic_add(center + (center_at + k_0), center_step, mask=i_there[:, None] & wide, sem="relaxed")
                    tl.atomic_add(context + (context_at + k_0), context_step, mask=j_there[:, None] & wide, sem="relaxed")
        w += tl.num_programs(0)
    there = all_sums + program * N_SUMS + at
    tl.store(there, tl.load(there) + sums)
