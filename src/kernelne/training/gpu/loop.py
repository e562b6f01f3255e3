"""The loop of GPU training, in Triton: any mixture of kernels; each program trains on one walk at a time.

As on the CPU a walk is one mini-batch: its rows and its shared negatives are read, all squared distances come
from one product, and both gradients are two more. Steps are added to the tables by atomic operations. A walk
that does not fit in one tile is computed tile by tile; the number of pairs in a tile determines its share of
the weight decay.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import triton
import triton.language as tl

from kernelne.model.kernels import known_to


@triton.jit
def _exp(x: tl.tensor) -> tl.tensor:
    return tl.exp(x)


@triton.jit
def _log(x: tl.tensor) -> tl.tensor:
    return tl.log(x)


@triton.jit
def _sqrt(x: tl.tensor) -> tl.tensor:
    return tl.sqrt(x)


@triton.jit
def _maximum(x: tl.tensor, y: tl.tensor) -> tl.tensor:
    return tl.maximum(x, y)


@triton.jit
def _minimum(x: tl.tensor, y: tl.tensor) -> tl.tensor:
    return tl.minimum(x, y)


def _compiled(source: Any, name: str, **names: Any) -> Any:
    """Compile a Python function with Triton, with `names` in place of the globals of its module."""
    copy = types.FunctionType(source.__code__, {"tl": tl, "Any": tl.tensor, **names}, source.__name__)
    copy.__module__ = __name__
    copy.__qualname__ = name  # Triton identifies functions by it
    return triton.jit(copy)


def _link(WANTED: tl.constexpr, D: tl.tensor, sigma: tl.tensor) -> tl.tensor:
    """Value and slope of kernel number WANTED: one link in the chain over all kernels."""
    if WANTED == KIND:  # type: ignore[name-defined]  # noqa: F821  (a name of the copy)
        value, slope = function(D, sigma)  # type: ignore[misc]  # noqa: F821
    else:
        value, slope = otherwise(WANTED, D, sigma)  # type: ignore[name-defined]  # noqa: F821
    return value, slope


def _end(WANTED: tl.constexpr, D: tl.tensor, sigma: tl.tensor) -> tl.tensor:
    return D, D


_evaluate = _compiled(_end, "evaluate_end")
for _kind, _function in enumerate(known_to(__name__)):
    _names = {
        name: tl.constexpr(float(value))
        for name, value in _function.__globals__.items()
        if isinstance(value, np.float32)
    }
    _names |= {"exp": _exp, "log": _log, "sqrt": _sqrt, "maximum": _maximum, "minimum": _minimum}
    _evaluate = _compiled(
        _link,
        f"evaluate_{_function.__name__}",
        KIND=tl.constexpr(_kind),
        function=_compiled(_function, _function.__name__, **_names),
        otherwise=_evaluate,
    )


@triton.jit
def evaluate_kernel(
    D: tl.tensor,
    values: tl.tensor,
    slopes: tl.tensor,
    sigma: tl.float32,
    size: tl.int32,
    KIND: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Values and slopes of one kernel at D (size,), as the loop computes them; used by tests."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value, slope = _evaluate(KIND, tl.load(D + place, mask=place < size, other=0.0), sigma)
    tl.store(values + place, value, mask=place < size)
    tl.store(slopes + place, slope, mask=place < size)


@triton.jit
def _mixture(
    D: tl.tensor,
    weights: tl.tensor,
    targets: tl.tensor,
    parameters: tl.tensor,
    KINDS: tl.constexpr,
    N_SUMS: tl.constexpr,
) -> tl.tensor:
    """Σ cᵢkᵢ, its slope and, unless N_SUMS is 0, moments: Σ w·t·kᵢ and, for j ≤ i, Σ w·kᵢ·kⱼ."""
    N_KERNELS: tl.constexpr = len(KINDS)
    value = tl.zeros_like(D)
    slope = tl.zeros_like(D)
    values = ()
    moments = tl.zeros((D.shape[0], N_SUMS if N_SUMS else 1), tl.float32)
    at = tl.arange(0, moments.shape[1])[None, :]
    for a in tl.static_range(N_KERNELS):
        c = parameters[N_KERNELS + a]
        k, dk = _evaluate(KINDS[a], D, parameters[a])
        value += c * k
        slope += c * dk
        if N_SUMS:
            values = values + (k,)  # type: ignore[assignment]  # noqa: RUF005  (all Triton knows)
            weighed = weights * k
            moments += tl.where(at == 2 + a, tl.sum(weighed * targets, axis=1)[:, None], 0.0)
            for b in tl.static_range(a + 1):
                product = tl.sum(weighed * values[b], axis=1)[:, None]
                moments += tl.where(at == 2 + N_KERNELS + a * N_KERNELS + b, product, 0.0)
    return value, slope, tl.sum(moments, axis=0)


@triton.jit
def _operand(rows: tl.tensor, HALF: tl.constexpr) -> tl.tensor:
    """Round the operands of products to half precision, which has the ten bits of TF32 in half the space.

    Inline assembly is used because Triton would otherwise keep single precision up to the matrix units, and
    round there.
    """
    if HALF:
        rows = tl.inline_asm_elementwise(
            "cvt.rn.f16x2.f32 $0, $2, $1;", "=r,f,f", [rows], dtype=tl.float16, is_pure=False, pack=2
        )
    return rows


@triton.jit
def _read(places: tl.tensor, there: tl.tensor) -> tl.tensor:
    """Read rows without the L1 cache, which does not contain the steps of other programs."""
    return tl.load(places, mask=there, other=0.0, cache_modifier=".cg")


@triton.jit
def _add(places: tl.tensor, steps: tl.tensor, there: tl.tensor) -> None:
    tl.atomic_add(places, steps, mask=there, sem="relaxed")


@triton.jit
def _prefetch(table: tl.tensor, ids: tl.tensor, DIM: tl.constexpr, LINES: tl.constexpr) -> None:
    """Prefetch rows of a table into the L2 cache."""
    line = tl.minimum(tl.arange(0, LINES) * 32, DIM - 1)
    places = table + (ids.to(tl.int64)[:, None] * DIM + line[None, :])
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l", [places], dtype=tl.int32, is_pure=False, pack=1
    )


@triton.jit
def _near(place: tl.tensor, low: tl.tensor, high: tl.tensor, window: tl.tensor) -> tl.tensor:
    """Number of positions in low … high − 1 of a walk that each place is paired with."""
    reached = tl.minimum(place + window, high - 1) - tl.maximum(place - window, low) + 1
    itself = (place >= low) & (place < high)
    return (tl.maximum(reached, 0) - itself.to(tl.int32)).to(tl.float32)


@triton.jit
def _weight(gap: tl.tensor, log_decay: tl.float32) -> tl.tensor:
    """α^(gap − 1), from log₂ α."""
    return tl.exp2((gap - 1).to(tl.float32) * log_decay)


@triton.jit
def _weight_up_to(gap: tl.tensor, log_decay: tl.float32) -> tl.tensor:
    """Weight of the pairs at distances 1 … gap, for α < 1."""
    return (1.0 - tl.exp2(gap.to(tl.float32) * log_decay)) / (1.0 - tl.exp2(log_decay))


@triton.jit(do_not_specialize=["first", "count", "n_walks", "window", "every"])
def train_walks(
    center: tl.tensor,
    context: tl.tensor,
    rows: tl.tensor,
    lengths: tl.tensor,
    mixture: tl.tensor,
    all_sums: tl.tensor,
    first: tl.int64,
    count: tl.int32,
    n_walks: tl.float32,
    first_rate: tl.float32,
    last_rate: tl.float32,
    l2: tl.float32,
    n_negative: tl.float32,
    unit: tl.float32,
    window: tl.int32,
    every: tl.int32,
    log_decay: tl.float32,
    DIM: tl.constexpr,
    LENGTH: tl.constexpr,
    N_SHARED: tl.constexpr,
    KINDS: tl.constexpr,
    LEARNED: tl.constexpr,
    N_SUMS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
    INDEX: tl.constexpr,
    HALF: tl.constexpr,
    SLOTS: tl.constexpr,
    LINES: tl.constexpr,
    SOFT: tl.constexpr,
    FORWARD: tl.constexpr,
) -> None:
    """Train on `count` walks of `rows`, distributed over the programs; `first` is the number of the first.

    all_sums (programs × N_SUMS), initially zero, collects each program's pairs, loss and moments; moments are
    computed on one in `every` walks and scaled up to all, as they cost a tenth of the time. The tables are
    read WIDTH columns at a time, once for the distances and again, from the cache, for the steps: this needs
    fewer registers, so that more walks fit on the GPU at a time. SLOTS > 0: during a walk the rows of the
    program's next walk (SLOTS ids, LINES cache lines each) are prefetched. HALF: products have operands in
    half precision and are summed in single precision; `unit` is a power of two that scales the gradients to
    the range of half precision. SOFT: pairs are weighted by their distance in the walk, by powers of α.
    FORWARD: only later positions are contexts.
    """
    PADDED: tl.constexpr = triton.next_power_of_2(N_SUMS)
    program = tl.program_id(0)
    there = all_sums + program * N_SUMS
    at = tl.arange(0, PADDED)
    worked_on = tl.cdiv(count - program, tl.num_programs(0))
    scale = worked_on.to(tl.float32) / tl.cdiv(worked_on, every).to(tl.float32)
    counts = tl.zeros((ROWS,), tl.float32)
    losses = tl.zeros((COLUMNS,), tl.float32)
    k = tl.arange(0, WIDTH)
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    w = program
    length = tl.load(lengths + w)
    parameters = ()  # all σ, then all c; read once, as the compiler cannot know that they are constant
    for a in tl.static_range(2 * len(KINDS)):
        parameters = parameters + (tl.load(mixture + a),)  # type: ignore[assignment]  # noqa: RUF005
    while w < count:
        base = rows + w.to(tl.int64) * (LENGTH + N_SHARED)
        rate = first_rate + (last_rate - first_rate) * ((first + w).to(tl.float32) / n_walks)
        coming = w + tl.num_programs(0)
        next_length = tl.load(lengths + coming, mask=coming < count, other=0)  # loaded early
        if SLOTS > 0:
            slot = tl.arange(0, SLOTS)
            known = (slot < LENGTH + N_SHARED) & (coming < count)
            ids = tl.load(rows + coming.to(tl.int64) * (LENGTH + N_SHARED) + slot, mask=known, other=0)
        for i_0 in range(0, LENGTH, ROWS):
            i = i_0 + row
            i_there = (i < length) & (length > 1)
            v = tl.load(base + i, mask=i_there, other=0).to(INDEX)
            center_at = v[:, None] * DIM + k[None, :]
            before, after = tl.minimum(i, window), tl.minimum(length - 1 - i, window)
            if FORWARD:
                before = before * 0
            if SOFT:
                pairs = _weight_up_to(before, log_decay) + _weight_up_to(after, log_decay)
            else:
                pairs = before + after
            pairs = tl.where(i_there, pairs.to(tl.float32), 0.0)
            counts += pairs
            for j_0 in range(0, LENGTH + N_SHARED, COLUMNS):
                j = j_0 + column
                is_noise = (j >= LENGTH) & (j < LENGTH + N_SHARED) & (length > 1)
                j_there = ((j < LENGTH) & (j < length) & (length > 1)) | is_noise
                u = tl.load(base + j, mask=j_there, other=0).to(INDEX)
                context_at = u[:, None] * DIM + k[None, :]

                gram = tl.zeros((COLUMNS, ROWS), tl.float32)
                center_squares = tl.zeros((ROWS,), tl.float32)
                context_squares = tl.zeros((COLUMNS,), tl.float32)
                for k_0 in range(0, DIM, WIDTH):
                    wide = (k + k_0 < DIM)[None, :]
                    B = _read(center + (center_at + k_0), i_there[:, None] & wide)
                    C = _read(context + (context_at + k_0), j_there[:, None] & wide)
                    gram = tl.dot(
                        _operand(C, HALF), tl.trans(_operand(B, HALF)), gram, input_precision="ieee"
                    )
                    center_squares += tl.sum(B * B, axis=1)
                    context_squares += tl.sum(C * C, axis=1)
                norms = context_squares[:, None] + center_squares[None, :]
                D = tl.maximum(norms - 2.0 * gram, 0.0, propagate_nan=tl.PropagateNan.ALL)

                if SLOTS > 0:
                    _prefetch(context, ids, DIM, LINES)
                    _prefetch(center, tl.where(slot < LENGTH, ids, 0), DIM, LINES)
                gap = tl.abs(j[:, None] - i[None, :])
                near = (gap > 0) & (gap <= window) & (j_there & (j < LENGTH))[:, None] & i_there[None, :]
                if FORWARD:
                    near = near & (j[:, None] > i[None, :])
                targets = near.to(tl.float32)
                in_walk = targets
                if SOFT:
                    in_walk = tl.where(near, _weight(gap, log_decay), 0.0)
                weights = tl.where(is_noise[:, None], (pairs * (n_negative / N_SHARED))[None, :], in_walk)
                if LEARNED and (w // tl.num_programs(0)) % every == 0:
                    value, slope, moments = _mixture(D, weights, targets, parameters, KINDS, PADDED)
                    tl.atomic_add(there + at, scale * moments, mask=at < N_SUMS, sem="relaxed")
                else:
                    value, slope, _ = _mixture(D, weights, targets, parameters, KINDS, 0)
                pressure = weights * (targets - value)
                losses += tl.sum(pressure * (targets - value), axis=1)
                G = (-4.0 / unit) * pressure * slope
                # A row decays once for each of its pairs; those in this tile are counted by a formula.
                if SOFT or FORWARD:
                    in_row, in_column = tl.sum(in_walk, axis=0), tl.sum(in_walk, axis=1)
                else:
                    in_row = _near(i, j_0, tl.minimum(j_0 + COLUMNS, length), window)
                    in_column = _near(j, i_0, tl.minimum(i_0 + ROWS, length), window)
                in_column = tl.where(is_noise, tl.sum(pairs, axis=0) * (n_negative / N_SHARED), in_column)
                from_center = tl.sum(G, axis=0) + (l2 / unit) * in_row
                from_context = tl.sum(G, axis=1) + (l2 / unit) * in_column
                # Also written as products: a subtraction would need the rows in another register layout.
                F = _operand(tl.where(row[:, None] == row[None, :], -from_center[:, None], 0.0), HALF)
                H = _operand(tl.where(column[:, None] == column[None, :], -from_context[:, None], 0.0), HALF)
                G = _operand(G, HALF)

                for k_0 in range(0, DIM, WIDTH):
                    wide = (k + k_0 < DIM)[None, :]
                    B = _operand(_read(center + (center_at + k_0), i_there[:, None] & wide), HALF)
                    C = _operand(_read(context + (context_at + k_0), j_there[:, None] & wide), HALF)
                    center_step = tl.dot(tl.trans(G), C, input_precision="ieee")
                    center_step = tl.dot(F, B, center_step, input_precision="ieee")
                    context_step = tl.dot(G, B, input_precision="ieee")
                    context_step = tl.dot(H, C, context_step, input_precision="ieee")
                    _add(center + (center_at + k_0), rate * unit * center_step, i_there[:, None] & wide)
                    _add(context + (context_at + k_0), rate * unit * context_step, j_there[:, None] & wide)
        w, length = coming, next_length
    tl.store(there, tl.sum(counts, axis=0))
    tl.store(there + 1, tl.sum(losses, axis=0))
