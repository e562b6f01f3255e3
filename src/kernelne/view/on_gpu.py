"""The layout "map" on a GPU: nearest rows by torch, rounds by Triton, with the random numbers of the CPU.

`move_rows` is `spread.move_rows`, for a block of rows at a time: the places are those of the CPU up to
rounding, which grows from round to round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from kernelne.errors import InputError, MissingDependencyError
from kernelne.progress import Report
from kernelne.training.gpu.backend import find_device
from kernelne.view.affinity import Links
from kernelne.view.near import Cells, Rows, Table
from kernelne.view.rounds import DRAWS, LEVEL, LONGEST, N_NOISE, Round

try:
    import torch
    import triton
    import triton.language as tl

    from kernelne.training.gpu.walks import below, mix
except ImportError as _error:
    raise MissingDependencyError("torch and triton", "gpu") from _error

__all__ = ["assign", "find_device", "memory", "nearest_rows", "spread"]

#: Rows that are compared with all others at a time, and numbers of products that are held at a time.
_QUERIES, _PRODUCTS = 1024, 2**28
_BLOCK = 128  # rows of a program
#: Cells or rounds from one report of progress to the next; each waits for the GPU.
_REPORTED = 64
_GOLDEN, _LOW, _UNIT = tl.constexpr(0x9E3779B97F4A7C15), tl.constexpr(0xFFFFFFFF), tl.constexpr(2.0**-32)


@triton.jit(do_not_specialize=["number", "n", "n_pools"])
def move_rows(
    before: tl.tensor,
    pool: tl.tensor,
    after: tl.tensor,
    offsets: tl.tensor,
    ends: tl.tensor,
    others: tl.tensor,
    limits: tl.tensor,
    totals: tl.tensor,
    keys: tl.tensor,
    number: tl.int32,
    n: tl.int32,
    n_pools: tl.int32,
    draws: tl.float32,
    rate: tl.float32,
    push: tl.float32,
    level: tl.float32,
    longest: tl.float32,
    POOL: tl.constexpr,
    NOISE: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Fill the rows of `after` with those of `before` (n, 2) after round `number`."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    alive = row < n
    x = tl.load(before + 2 * row, mask=alive, other=0.0)
    y = tl.load(before + 2 * row + 1, mask=alive, other=0.0)
    state = mix(tl.load(keys + number).to(tl.uint64) ^ (row.to(tl.uint64) * _GOLDEN))
    low = tl.load(offsets + row, mask=alive, other=0)
    count = tl.load(offsets + row + 1, mask=alive, other=0) - low
    share = tl.load(totals + row, mask=alive, other=0.0) * draws
    times = share.to(tl.int32)
    times += ((state >> 32).to(tl.float32) * _UNIT < share - times.to(tl.float32)).to(tl.int32)
    times = tl.where(alive & (count > 0), times, 0)
    while tl.max(times, axis=0) > 0:
        active = times > 0
        times -= 1
        state += _GOLDEN
        bits = mix(state)
        link = low + below(bits, count)
        kept = (bits & _LOW).to(tl.float32) * _UNIT < tl.load(limits + link, mask=active, other=0.0)
        j = tl.load(ends + link, mask=active & kept, other=0)
        j = tl.where(kept, j, tl.load(others + link, mask=active & (kept == 0), other=0))
        dx = x - tl.load(before + 2 * j, mask=active, other=0.0)
        dy = y - tl.load(before + 2 * j + 1, mask=active, other=0.0)
        pull = -level / (1.0 + level * (1.0 + dx * dx + dy * dy))
        by_x = tl.minimum(tl.maximum(rate * pull * dx, -longest), longest)
        by_y = tl.minimum(tl.maximum(rate * pull * dy, -longest), longest)
        state += _GOLDEN
        at = pool + below(mix(state), n_pools)
        away_x, away_y = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
        for noise in tl.static_range(NOISE):
            dx = x - tl.load(at + noise, mask=active, other=0.0)
            dy = y - tl.load(at + (POOL + noise), mask=active, other=0.0)
            stretch = 1.0 + dx * dx + dy * dy
            away = 1.0 / (stretch * (1.0 + level * stretch))
            away_x += away * dx
            away_y += away * dy
        by_x = tl.minimum(tl.maximum(by_x + push * away_x, -longest), longest)
        by_y = tl.minimum(tl.maximum(by_y + push * away_y, -longest), longest)
        x += tl.where(active, by_x, 0.0)
        y += tl.where(active, by_y, 0.0)
    tl.store(after + 2 * row, x, mask=alive)
    tl.store(after + 2 * row + 1, y, mask=alive)


def spread(links: Links, start: Table, rounds: list[Round], report: Report) -> Table:
    """Return the places after all rounds."""
    device, n = find_device(), len(start)
    before, after = (torch.from_numpy(start.copy()).to(device) for _ in range(2))
    arrays = [torch.from_numpy(array).to(device) for array in links]
    keys = torch.from_numpy(np.array([each.key for each in rounds]).view(np.int64)).to(device)
    pools = torch.from_numpy(np.array([each.pool for each in rounds])).to(device)
    size = pools.shape[1]
    for number, each in enumerate(rounds):
        move_rows[triton.cdiv(n, _BLOCK),](
            before, before[pools[number]].T.contiguous(), after, *arrays, keys, number, n, size - N_NOISE + 1,
            DRAWS, each.rate, each.push, LEVEL, LONGEST, POOL=size, NOISE=N_NOISE, BLOCK=_BLOCK,
        )  # fmt: skip
        before, after = after, before
        if number % _REPORTED == 0:
            _report(report, number, len(rounds))
    _report(report, len(rounds), len(rounds))
    places: Table = before.cpu().numpy()
    return places


def nearest_rows(table: Table, k: int, report: Report, cells: Cells | None) -> tuple[Rows, Table]:
    """Return what `near.nearest_rows` returns, up to rounding and the order of equal distances."""
    device, n = find_device(), len(table)
    there = torch.from_numpy(table).to(device)
    squares = torch.linalg.vector_norm(there, dim=1).square()
    rows = torch.full((n, k), -1, dtype=torch.int32, device=device)
    distances = torch.full((n, k), math.inf, dtype=torch.float32, device=device)
    starts = np.append(np.arange(0, n, _QUERIES), n) if cells is None else cells.starts
    for cell in range(len(starts) - 1):
        low, high = int(starts[cell]), int(starts[cell + 1])
        if cells is None:
            others, first = torch.arange(n, device=device), low
        else:  # its own rows come first
            spans = [np.arange(starts[c], starts[c + 1]) for c in cells.probes[cell]]
            others, first = torch.from_numpy(np.concatenate(spans)).to(device), 0
        apart = squares[low:high, None] + squares[others] - 2 * (there[low:high] @ there[others].T)
        own = torch.arange(high - low, device=device)
        apart[own, own + first] = math.inf
        least, places = apart.clamp_(min=0).topk(min(k, len(others)), largest=False)
        found = slice(low, high), slice(least.shape[1])
        distances[found] = least
        rows[found] = torch.where(least < math.inf, others[places], -1).to(torch.int32)
        if cell % _REPORTED == 0:
            _report(report, low, n)
    _report(report, n, n)
    return rows.cpu().numpy(), distances.cpu().numpy()


@contextmanager
def memory() -> Iterator[None]:
    """Raise InputError where the GPU's memory is too small."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"backend='gpu': the layout does not fit in the GPU's memory: use backend='cpu' ({error})"
        ) from None


def assign(table: Table, means: Table) -> NDArray[np.int64]:
    """Return the nearest of the means (m, d) for each row of the table."""
    device = find_device()
    centres = torch.from_numpy(means).to(device)
    squares = (centres * centres).sum(dim=1)
    some = max(_PRODUCTS // len(means), 1)
    found = [
        torch.addmm(squares, rows.to(device), centres.T, alpha=-2).argmin(dim=1).cpu()
        for rows in torch.from_numpy(table).split(some)
    ]
    return torch.cat(found).numpy()  # type: ignore[no-any-return]


def _report(report: Report, done: int, total: int) -> None:
    """Report progress when the GPU has come so far."""
    if find_device().type == "cuda":
        torch.cuda.synchronize()
    report(done, total, math.nan)
