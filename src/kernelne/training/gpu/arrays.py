"""A graph and its noise distribution in GPU memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from kernelne.errors import InputError


class GraphArrays(NamedTuple):
    """The arrays of a graph on the device."""

    offsets: Any  # (n + 1,) int64
    neighbours: Any  # (arcs,) int32
    thresholds: Any  # (arcs,) int32: the bits of cumulative shares of 2³², or (1,) without weights
    weighted: bool

    @property
    def n_nodes(self) -> int:
        return int(self.offsets.numel()) - 1


class Noise(NamedTuple):
    """Alias table on the device: draws slot s if 32 random bits are at most keep[s], else other[s]."""

    keep: Any  # (n,) int32: bits of an unsigned number
    other: Any  # (n,) int32


def to_device(graph: Any, device: Any) -> GraphArrays:
    """Copy a graph (offsets, neighbours, weights as NumPy arrays) to the device."""
    if graph.n_nodes >= 2**31:
        raise InputError(f"{graph.n_nodes:,} nodes: backend='gpu' supports fewer than 2,147,483,648")
    # Copied, because the arrays of a Graph are read-only, and torch warns about those.
    offsets = torch.from_numpy(np.array(graph.offsets, np.int64)).to(device)
    neighbours = torch.from_numpy(np.array(graph.neighbours, np.int32)).to(device)
    if graph.weights is None:
        return GraphArrays(offsets, neighbours, torch.zeros(1, dtype=torch.int32, device=device), False)
    weights = torch.from_numpy(np.array(graph.weights, np.float32)).to(device)
    return GraphArrays(offsets, neighbours, _thresholds(offsets, weights), True)


def _thresholds(offsets: Any, weights: Any) -> Any:
    """Cumulative share of the row's weight for every arc, in units of 2⁻³², as the bits of an int32."""
    rows = arc_rows(offsets)
    totals = torch.zeros(offsets.numel() - 1, dtype=torch.float64, device=offsets.device)
    totals.index_add_(0, rows, weights.to(torch.float64))
    # Weights are divided by the row sums first: after a row with a large sum, small weights would be lost.
    upto = torch.cumsum(weights / totals[rows], 0)
    before = torch.cat([upto.new_zeros(1), upto])[offsets]
    shares = upto - before[rows]
    return (shares * 2.0**32).clamp_(0, 2.0**32 - 1).to(torch.int64).to(torch.int32)


def arc_rows(offsets: Any) -> Any:
    """The source node (int32) of each arc."""
    n = offsets.numel() - 1
    return torch.repeat_interleave(torch.arange(n, dtype=torch.int32, device=offsets.device), offsets.diff())


def probabilities(graph: GraphArrays, rows: Any) -> Any:
    """First-order probability of each arc, as rounded for sampling: float32."""
    if not graph.weighted:
        return (1.0 / graph.offsets.diff().to(torch.float32))[rows]
    upto = (graph.thresholds.to(torch.int64) & 0xFFFFFFFF).to(torch.float64)
    ends = graph.offsets[1:][graph.offsets.diff() > 0] - 1
    upto[ends] = 2.0**32
    shares = upto.clone()
    shares[1:] -= upto[:-1]
    starts = graph.offsets[:-1][graph.offsets.diff() > 0]
    shares[starts] = upto[starts]
    return (shares * 2.0**-32).to(torch.float32)


def alias_table(weights: Any) -> Noise:
    """Build the alias table of the distribution proportional to `weights` (n,) float64, from cumulative sums.

    Slots with a share below 1 are filled up, in order, from those above 1, also in order. The cumulative sums
    of what the former lack and of what the latter can give determine which slot fills up which; a slot above
    1 that gives more than its excess is itself filled up from the next one.
    """
    n = weights.numel()
    share = weights * (n / weights.sum())
    short = share < 1.0
    poor, rich = torch.nonzero(short).ravel(), torch.nonzero(~short).ravel()
    # Parallel sums on a GPU are not exactly ascending, but the search below requires that.
    lack, give = (
        torch.cummax(torch.cumsum(part, 0), 0).values for part in (1.0 - share[poor], share[rich] - 1.0)
    )
    keep = torch.ones_like(share)
    other = torch.arange(n, device=weights.device)
    if poor.numel() and rich.numel():
        # The same sums are used to find `last`, so that a tie selects the same slot there.
        before = torch.cat([lack.new_zeros(1), lack[:-1]])
        server = torch.searchsorted(give, before).clamp_(max=rich.numel() - 1)
        keep[poor] = share[poor]
        other[poor] = rich[server]
        last = torch.searchsorted(lack, give, right=True)
        overdrawn = (last < poor.numel()) & (
            torch.arange(rich.numel(), device=last.device) < rich.numel() - 1
        )
        givers = torch.nonzero(overdrawn).ravel()
        keep[rich[givers]] = (1.0 - (lack[last[givers]] - give[givers])).clamp_(0.0, 1.0)
        other[rich[givers]] = rich[givers + 1]
    bits = (keep * 2.0**32).clamp_(max=2.0**32 - 1).to(torch.int64).to(torch.int32)
    return Noise(bits, other.to(torch.int32))
