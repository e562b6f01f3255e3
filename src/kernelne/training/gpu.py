"""Training on one GPU: graph, walks and tables live there, the host only launches.

Besides this package it needs NumPy, torch and Triton, nothing else.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne.errors import InputError, KernelneError, MissingDependencyError
from kernelne.kernels import KERNELS
from kernelne.training.coefficients import n_sums
from kernelne.training.config import TrainingConfig
from kernelne.training.run import NOISE_POWER, Course, Report, Trained, blocks, norm_limit

try:
    import torch
    import triton
    import triton.language as tl

    from kernelne.training.gpu_loop import train_walks
    from kernelne.training.gpu_walks import sample_walks
except ImportError as _error:
    raise MissingDependencyError("torch and triton", "gpu") from _error

#: Walks between two looks at coefficients and progress, and ids of nodes they may take, at most.
_LARGEST_BLOCK, _LARGEST_ROWS = 2**19, 2**24
#: Walks in flight, at most one for this many nodes: more lose steps' effect on each other, and score lower.
_NODES_PER_WALK = 25
#: Warps that one multiprocessor is given, in programs of one or two, whose registers are all it has.
_WARPS_PER_SM = {1: 8, 2: 12}
#: Rounds of walks that estimate the visits of second-order walks.
_COUNTED_ROUNDS = 10
_SAMPLED_TOGETHER = 128
#: Copying tables to the host: threads, bytes each stages at a time, bytes below which one call is enough.
_COPYING_THREADS, _STAGED_BYTES, _WORTH_THREADS = 8, 2**22, 2**24
#: A program's tile: positions of a walk; its contexts and negatives.
_ROWS, _COLUMNS = 16, 32


class GraphArrays(NamedTuple):
    """A graph on the device."""

    offsets: Any  # (n + 1,) int64
    neighbours: Any  # (arcs,) int32
    thresholds: Any  # (arcs,) int32: the bits of cumulative shares of 2³², or (1,) without weights
    weighted: bool

    @property
    def n_nodes(self) -> int:
        return int(self.offsets.numel()) - 1


class Noise(NamedTuple):
    """Alias table on the device: slot s is kept if 32 random bits are at most keep[s], else other[s]."""

    keep: Any  # (n,) int32: bits of an unsigned number
    other: Any  # (n,) int32


def find_device() -> Any:
    """The GPU to train on, or a KernelneError that says what is missing."""
    if not torch.cuda.is_available():
        raise KernelneError(
            "backend='gpu': no CUDA GPU is visible to torch here; use backend='cpu', or a torch build for "
            "your GPU (https://pytorch.org)"
        )
    return torch.device("cuda", torch.cuda.current_device())


def run_bytes(graph: Any, config: TrainingConfig) -> int:
    """Device memory a run takes at its peak: graph, noise, walks, and tables or what comes before them."""
    n, arcs = graph.n_nodes, graph.neighbours.size
    weighted = graph.weights is not None
    block = _largest_block(config, n * config.walks_per_node)
    walks = 8 * block * (config.walk_length + config.shared_negatives + 1)
    kept = 16 * n + (8 if weighted else 4) * arcs + walks
    tables = 8 * n * config.dim
    visits = 48 * n + (36 if weighted else 24) * arcs + 21 * block * config.walk_length
    return int(kept + max(tables, visits) + 2**26)


def check_memory(graph: Any, config: TrainingConfig) -> None:
    """Refuse a run that cannot fit the card, before anything is moved there."""
    device = find_device()
    needed, (free, total) = run_bytes(graph, config), torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # kept by torch for us
    if needed > free:
        raise InputError(
            f"dim={config.dim}: {graph.n_nodes:,} nodes and {graph.neighbours.size:,} arcs need "
            f"{needed / 2**30:.1f} GiB on the GPU and {free / 2**30:.1f} of {total / 2**30:.1f} GiB are "
            "free: lower dim, or use backend='cpu'"
        )


def _largest_block(config: TrainingConfig, n_walks: int) -> int:
    """Walks of a block, a multiple of 4: both slots then lie on 16 bytes, and one compilation serves them."""
    columns = config.walk_length + config.shared_negatives
    most = max(min(_LARGEST_BLOCK, _LARGEST_ROWS // columns) // 4 * 4, 4)
    return int(min(most, -(-n_walks // 4) * 4))


def _multiprocessors(device: Any) -> int:
    """How many work in parallel; 1 where Triton's interpreter plays the GPU."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def to_device(graph: Any, device: Any) -> GraphArrays:
    """A graph (offsets, neighbours, weights as NumPy arrays) on the device, ready to be walked."""
    if graph.n_nodes >= 2**31:
        raise InputError(f"{graph.n_nodes:,} nodes: backend='gpu' takes fewer than 2,147,483,648")
    # Copied: the arrays of a Graph are read-only, which torch warns of.
    offsets = torch.from_numpy(np.array(graph.offsets, np.int64)).to(device)
    neighbours = torch.from_numpy(np.array(graph.neighbours, np.int32)).to(device)
    if graph.weights is None:
        return GraphArrays(offsets, neighbours, torch.zeros(1, dtype=torch.int32, device=device), False)
    weights = torch.from_numpy(np.array(graph.weights, np.float32)).to(device)
    return GraphArrays(offsets, neighbours, _thresholds(offsets, weights), True)


def _thresholds(offsets: Any, weights: Any) -> Any:
    """For every arc the cumulative share of its row's weight, in units of 2⁻³², as the bits of an int32."""
    rows = _arc_rows(offsets)
    totals = torch.zeros(offsets.numel() - 1, dtype=torch.float64, device=offsets.device)
    totals.index_add_(0, rows, weights.to(torch.float64))
    # Rows of sum 1 are cumulated: behind a heavy row the weights of a light one would vanish.
    upto = torch.cumsum(weights / totals[rows], 0)
    before = torch.cat([upto.new_zeros(1), upto])[offsets]
    shares = upto - before[rows]
    return (shares * 2.0**32).clamp_(max=2.0**32 - 1).to(torch.int64).to(torch.int32)


def _arc_rows(offsets: Any) -> Any:
    """The node (int32) each arc leaves."""
    n = offsets.numel() - 1
    return torch.repeat_interleave(torch.arange(n, dtype=torch.int32, device=offsets.device), offsets.diff())


def _probabilities(graph: GraphArrays, rows: Any) -> Any:
    """The first-order probability of each arc, as the walks draw it: float32."""
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


class _Trainer:
    """The state of a run on the device."""

    def __init__(self, graph: Any, config: TrainingConfig, device: Any) -> None:
        self.config, self.device = config, device
        self.n, self.n_walks = graph.n_nodes, graph.n_nodes * config.walks_per_node
        self.graph = graph if isinstance(graph, GraphArrays) else to_device(graph, device)
        signed = config.seed - 2**64 if config.seed >= 2**63 else config.seed
        self.seeds = torch.tensor([signed], dtype=torch.int64, device=device)
        self.side = math.isqrt(self.n - 1) + 1
        columns = config.walk_length + config.shared_negatives
        block = _largest_block(config, self.n_walks)
        # Zeros: what lies beyond the end of a walk is prefetched too, and so must be a node.
        self.rows = torch.zeros((2, block, columns), dtype=torch.int32, device=device)
        self.lengths = torch.empty((2, block), dtype=torch.int32, device=device)
        self.noise = alias_table(self._visits() ** NOISE_POWER)
        generator = torch.Generator(device).manual_seed(signed)
        self.center = torch.empty((self.n, config.dim), dtype=torch.float32, device=device)
        self.center.uniform_(-0.5 / config.dim, 0.5 / config.dim, generator=generator)
        self.context = torch.zeros_like(self.center)
        n_kernels = len(config.kernels)
        coefficients = np.ones(n_kernels)
        if config.learn_coefficients:
            coefficients = np.random.default_rng(config.seed).uniform(-0.5, 0.5, n_kernels) / config.dim
        self.course = Course(config, self.n_walks, coefficients)
        self.mixture = torch.empty((2, n_kernels), dtype=torch.float32, device=device)
        self.mixture[0] = torch.tensor([sigma for _, sigma in config.kernels])
        self.shape = _shape(config, self.n, device.type == "cuda")
        warps = self.shape["num_warps"]
        most = _multiprocessors(device) * _WARPS_PER_SM[warps] // warps
        self.programs = max(min(most, self.n // _NODES_PER_WALK), 1)
        self.sums = torch.zeros((self.programs, self.shape["N_SUMS"]), dtype=torch.float32, device=device)

    def _visits(self) -> Any:
        """Visits of each node per round of walks, float64 (n,); as `kernelne.walks.expected_visits`."""
        config, n = self.config, self.n
        if config.p == config.q == 1.0:
            rows = _arc_rows(self.graph.offsets)
            shares = _probabilities(self.graph, rows)
            mass = torch.ones(n, dtype=torch.float64, device=self.device)
            visits = mass.clone()
            for _ in range(config.walk_length - 1):
                moved = torch.zeros_like(mass)
                moved.index_add_(0, self.graph.neighbours, mass[rows] * shares)
                visits += moved
                mass = moved
            return visits
        nothing = Noise(*(torch.zeros(n, dtype=torch.int32, device=self.device) for _ in range(2)))
        counts = torch.zeros(n, dtype=torch.float64, device=self.device)
        rounds = min(config.walks_per_node, _COUNTED_ROUNDS)
        steps = torch.arange(config.walk_length, device=self.device)
        for first in range(0, rounds * n, self.lengths.shape[1]):
            count = min(self.lengths.shape[1], rounds * n - first)
            self._sample(first, count, nothing)
            walked = self.rows[0, :count, : config.walk_length][steps < self.lengths[0, :count, None]]
            counts += torch.bincount(walked, minlength=n)
        return counts / rounds

    def _sample(self, first: int, count: int, noise: Noise, slot: int = 0) -> None:
        """Put walks first … first + count − 1 and their negatives into a slot."""
        config = self.config
        sample_walks[(triton.cdiv(count, _SAMPLED_TOGETHER),)](
            self.graph.offsets, self.graph.neighbours, self.graph.thresholds, noise.keep, noise.other,
            self.rows[slot], self.lengths[slot], self.seeds, first, count, self.n, self.side, 1 / config.p,
            1 / config.q, LENGTH=config.walk_length, N_SHARED=config.shared_negatives,
            WEIGHTED=self.graph.weighted, SECOND_ORDER=not config.p == config.q == 1.0,
            BLOCK=_SAMPLED_TOGETHER,
        )  # fmt: skip

    def _train(self, first: int, count: int, slot: int = 0) -> Any:
        """Train on the walks of a slot, the first of which is number `first`; what the programs summed up."""
        config, programs = self.config, min(self.programs, count)
        train_walks[(programs,)](
            self.center, self.context, self.rows[slot], self.lengths[slot], self.mixture, self.sums, first,
            count, float(self.n_walks), config.learning_rate, config.min_learning_rate, config.l2,
            float(config.n_negative), min(config.window, config.walk_length), **self.shape,
        )  # fmt: skip
        return self.sums[:programs]

    def run(self, report: Report) -> Trained:
        size = n_sums(len(self.config.kernels))
        ranges = [*blocks(self.n_walks, self.lengths.shape[1]), (self.n_walks, self.n_walks)]
        self._sample(*_count(ranges[0]), self.noise)
        for number, (here, coming) in enumerate(pairwise(ranges)):
            self.mixture[1].copy_(torch.from_numpy(self.course.coefficients))
            summed = self._train(*_count(here), number % 2).to("cpu", non_blocking=True)
            done = torch.cuda.Event() if self.device.type == "cuda" else None
            if done is not None:
                done.record()
            if coming[0] < coming[1]:  # the card samples on while the host thinks
                self._sample(*_count(coming), self.noise, 1 - number % 2)
            if done is not None:
                done.synchronize()
            sums = summed.numpy().sum(axis=0, dtype=np.float64)[:size]
            n_exploded = self._count_exploded() if here[1] == self.n_walks else 0
            report(here[1], self.n_walks, self.course.advance(*here, sums, n_exploded))
        return self.course.end(_to_host(self.center), _to_host(self.context))

    def _count_exploded(self) -> int:
        limit = norm_limit(self.config)
        squares = (torch.linalg.vector_norm(table, dim=1).square() for table in (self.center, self.context))
        return sum(int((~(square < limit)).sum()) for square in squares)


def _shape(config: TrainingConfig, n: int, on_gpu: bool) -> dict[str, Any]:
    """The constants that a training kernel is compiled for, found by trying on an H200."""
    columns = config.walk_length + config.shared_negatives
    one_tile = config.walk_length <= _ROWS and columns <= _COLUMNS
    layout: dict[str, Any] = {"WIDTH": min(max(triton.next_power_of_2(config.dim), 16), 32), "num_warps": 1}
    if len(config.kernels) == 1:  # needs fewer registers
        layout = {
            "WIDTH": min(max(triton.next_power_of_2(config.dim), 16), 64),
            "num_warps": 2,
            "maxnreg": 168,
        }
    return {
        "DIM": config.dim,
        "LENGTH": config.walk_length,
        "N_SHARED": config.shared_negatives,
        "KINDS": tuple(list(KERNELS).index(name) for name, _ in config.kernels),
        "LEARNED": config.learn_coefficients,
        "N_SUMS": triton.next_power_of_2(n_sums(len(config.kernels))),
        "ROWS": _ROWS,
        "COLUMNS": _COLUMNS,
        "INDEX": tl.int32 if n * config.dim < 2**31 else tl.int64,
        "PRECISION": "tf32" if on_gpu else "ieee",
        "SLOTS": _COLUMNS if one_tile and on_gpu else 0,
        "LINES": triton.next_power_of_2(triton.cdiv(config.dim, 32)),
        "num_stages": 1,
        **layout,
    }


def _count(walks: tuple[int, int]) -> tuple[int, int]:
    """First walk and number of walks, from first and last."""
    return walks[0], walks[1] - walks[0]


def _to_host(table: Any) -> NDArray[np.float32]:
    """A table in the host's memory; large ones by several threads, as one is slower than the bus."""
    if table.device.type == "cpu" or table.nbytes < _WORTH_THREADS:
        return np.asarray(table.cpu().numpy())
    host = np.empty(tuple(table.shape), np.float32)
    parts = np.linspace(0, len(table), _COPYING_THREADS + 1).astype(int)

    def copy(part: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream(table.device)):
            rows = max(_STAGED_BYTES // (4 * table.shape[1]), 1)
            staged = torch.empty((rows, table.shape[1]), dtype=torch.float32, pin_memory=True)
            for first in range(parts[part], parts[part + 1], rows):
                last = min(first + rows, parts[part + 1])
                staged[: last - first].copy_(table[first:last])
                host[first:last] = staged[: last - first].numpy()

    torch.cuda.synchronize(table.device)
    with ThreadPoolExecutor(_COPYING_THREADS) as pool:
        list(pool.map(copy, range(_COPYING_THREADS)))
    return host


def alias_table(weights: Any) -> Noise:
    """Alias table of the distribution proportional to `weights` (n,) float64, built by sorting out sums.

    Slots short of an even share are topped up in order by those above it, also in order. How much the short
    ones lack up to each place, and how much the others have to give, tells who serves whom: a giver that has
    given too much is itself topped up by the next.
    """
    n = weights.numel()
    share = weights * (n / weights.sum())
    short = share < 1.0
    poor, rich = torch.nonzero(short).ravel(), torch.nonzero(~short).ravel()
    # A card adds up in parallel, not quite in ascending order: the search below wants it ascending.
    lack, give = (
        torch.cummax(torch.cumsum(part, 0), 0).values for part in (1.0 - share[poor], share[rich] - 1.0)
    )
    keep = torch.ones_like(share)
    other = torch.arange(n, device=weights.device)
    if poor.numel() and rich.numel():
        # Exactly the sums that `last` is found by: a tie must not name another giver there.
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


def train(
    graph: Any, config: TrainingConfig, report: Report = lambda done, total, loss: None, device: Any = None
) -> Trained:
    """Train on `graph`; `report(walks done, walks in all, loss per pair)` is called after every block.

    A graph that is on the device already (`to_device`) may be given too.
    """
    device = find_device() if device is None else device
    with torch.no_grad():
        return _Trainer(graph, config, device).run(report)
