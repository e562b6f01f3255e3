"""The end of a block of walks on the GPU, in Triton: its sums, and the step of the coefficients.

The step is that of `kernelne.model.mixture`, computed on the GPU so that the host does not have to wait.
"""

from __future__ import annotations

import triton
import triton.language as tl

_CHUNK = tl.constexpr(64)


@triton.jit
def _total(sums: tl.tensor, n_programs: tl.tensor, columns: tl.tensor, N_SUMS: tl.constexpr) -> tl.tensor:
    """Sum `columns` of sums (n_programs × N_SUMS) over the programs: float64."""
    total = tl.zeros_like(columns).to(tl.float64)
    program = tl.arange(0, _CHUNK)
    while tl.min(program, axis=0) < n_programs:
        places = sums + (program[:, None] * N_SUMS + columns[None, :])
        part = tl.load(places, mask=(program < n_programs)[:, None], other=0.0)
        total += tl.sum(part.to(tl.float64), axis=0)
        program += _CHUNK
    return total


@triton.jit
def _solve(A: tl.tensor, x: tl.tensor, y: tl.tensor, N: tl.constexpr, SIZE: tl.constexpr) -> tl.tensor:
    """A⁻¹x and A⁻¹y for the first N of SIZE unknowns; A is positive definite, so no pivoting is needed."""
    at = tl.arange(0, SIZE)
    for p in tl.static_range(N):
        row = tl.sum(tl.where((at == p)[:, None], A, 0.0), axis=0)
        column = tl.sum(tl.where((at == p)[None, :], A, 0.0), axis=1)
        pivot = tl.sum(tl.where(at == p, row, 0.0), axis=0)
        factor = tl.where(at == p, 0.0, column / pivot)
        A -= factor[:, None] * row[None, :]
        x -= factor * tl.sum(tl.where(at == p, x, 0.0), axis=0)
        y -= factor * tl.sum(tl.where(at == p, y, 0.0), axis=0)
    diagonal = tl.sum(tl.where(at[:, None] == at[None, :], A, 0.0), axis=1)
    return x / diagonal, y / diagonal


@triton.jit(
    do_not_specialize=["n_programs", "rate", "coef_l2", "coef_spread", "floor"],
    do_not_specialize_on_alignment=["record"],
)
def end_block(
    sums: tl.tensor,
    n_programs: tl.int32,
    coefficients: tl.tensor,
    mixture: tl.tensor,
    record: tl.tensor,
    rate: tl.float64,
    coef_l2: tl.float64,
    coef_spread: tl.float64,
    floor: tl.float64,
    N_KERNELS: tl.constexpr,
    LEARNED: tl.constexpr,
    N_SUMS: tl.constexpr,
) -> None:
    """Step the coefficients (K,) float64, and their copy in `mixture`, with the sums of the programs.

    record (2 + K,) float64: pairs and loss of the block, and the coefficients after it.
    """
    SIZE: tl.constexpr = triton.next_power_of_2(N_KERNELS)
    at = tl.arange(0, SIZE)
    there = at < N_KERNELS
    head = tl.arange(0, 2)
    totals = _total(sums, n_programs, head, N_SUMS)
    tl.store(record + head, totals)
    n_pairs = tl.sum(tl.where(head == 0, totals, 0.0), axis=0)
    c = tl.load(coefficients + at, mask=there, other=0.0)
    if LEARNED:
        linear = _total(sums, n_programs, 2 + tl.where(there, at, 0), N_SUMS)
        pair = tl.arange(0, SIZE * SIZE)
        low, high = tl.minimum(pair // SIZE, pair % SIZE), tl.maximum(pair // SIZE, pair % SIZE)
        inside = high < N_KERNELS
        column = tl.where(inside, 2 + N_KERNELS + high * N_KERNELS + low, 0)
        quadratic = tl.where(inside, _total(sums, n_programs, column, N_SUMS), 0.0)
        one = tl.where(low == high, 1.0, 0.0).to(tl.float64)
        penalty = coef_l2 * one + coef_spread * (one - 1.0 / N_KERNELS)
        system = one + tl.where(inside, rate * (2.0 * quadratic + n_pairs * penalty), 0.0)
        system = tl.reshape(system, (SIZE, SIZE))
        wanted = tl.where(there, c + 2.0 * rate * linear, 0.0)
        free, lifting = _solve(system, wanted, tl.where(there, 1.0, 0.0).to(tl.float64), N_KERNELS, SIZE)
        lift = tl.maximum(floor - tl.sum(free, axis=0), 0.0) / tl.sum(lifting, axis=0)
        # A block without pairs does not change the coefficients.
        c = tl.where(n_pairs == 0.0, c, free + lifting * lift)
        tl.store(coefficients + at, c, mask=there)
        tl.store(mixture + N_KERNELS + at, c.to(tl.float32), mask=there)
    tl.store(record + 2 + at, c, mask=there)
