"""Training on one GPU: graph, walks and tables live there, the host only launches.

Besides this package it needs NumPy, torch and Triton, nothing else.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne.errors import InputError, KernelneError, MissingDependencyError
from kernelne.model.kernels import KERNELS
from kernelne.model.mixture import n_sums
from kernelne.training.config import TrainingConfig
from kernelne.training.course import (
    NOISE_POWER,
    Course,
    Report,
    Trained,
    blocks,
    coefficient_floor,
    norm_limit,
)

try:
    import torch
    import triton
    import triton.language as tl

    from kernelne.training.gpu.coefficients import end_block
    from kernelne.training.gpu.loop import train_walks
    from kernelne.training.gpu.walks import fill_uniform, sample_walks
except ImportError as _error:
    raise MissingDependencyError("torch and triton", "gpu") from _error

#: Walks between two looks at coefficients and progress, and ids of nodes they may take, at most.
_LARGEST_BLOCK, _LARGEST_ROWS = 2**19, 2**24
#: Nodes for every walk in flight, at least.
_NODES_PER_WALK = 25
#: A training program's warps and registers a thread; programs that find room on a multiprocessor.
_WARPS, _REGISTERS, _PROGRAMS_PER_SM = 2, 168, 6
#: Columns of the tables that it works on at a time.
_WIDTH = 64
#: The sums that coefficients are found from are taken from so many walks of a block, at least, and from one
#: in so many, at most: beyond some hundred thousand pairs more of them change nothing.
_SUMMED_WALKS, _LARGEST_STRIDE = 2**15, 16
#: Blocks whose records come to the host together; it is one or two such groups ahead of the card.
_LOOKED_AT_TOGETHER = 8
#: Gradients in half precision are to stay below this, far from its limit of 65,504.
_LARGEST_GRADIENT = 2.0**10
#: Rounds of walks that estimate the visits of second-order walks.
_COUNTED_ROUNDS = 10
_SAMPLED_TOGETHER = 128
_FILLED_TOGETHER = 1024
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
    walks = 4 * block * (config.walk_length + config.shared_negatives + 1)
    kept = 16 * n + (8 if weighted else 4) * arcs + walks
    tables = 8 * n * config.dim
    by_chain = config.p == config.q == 1.0  # visits; else counted on sampled walks
    before = 48 * n + (36 if weighted else 24 if by_chain else 0) * arcs
    before += 0 if by_chain else 21 * block * config.walk_length
    return int(kept + max(tables, before) + 2**26)


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
    """Walks of a block at most."""
    columns = config.walk_length + config.shared_negatives
    return int(min(max(min(_LARGEST_BLOCK, _LARGEST_ROWS // columns), 1), n_walks))


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
        self.rows = torch.zeros((block, columns), dtype=torch.int32, device=device)
        self.lengths = torch.empty(block, dtype=torch.int32, device=device)
        self.noise = alias_table(self._visits() ** NOISE_POWER)
        self.center = self._uniform(self.n, config.dim, self.seeds)
        self.context = torch.zeros_like(self.center)
        n_kernels = len(config.kernels)
        coefficients = np.ones(n_kernels)
        if config.learn_coefficients:
            coefficients = self._uniform(1, n_kernels, ~self.seeds)[0].cpu().numpy().astype(np.float64)
        self.course = Course(config, self.n_walks, coefficients)
        self.coefficients = torch.tensor(coefficients, device=device)
        sigmas = torch.tensor([sigma for _, sigma in config.kernels], dtype=torch.float64, device=device)
        self.mixture = torch.stack([sigmas, self.coefficients]).to(torch.float32)
        self.shape = _shape(config, self.n, device.type == "cuda")
        self.programs = min(_multiprocessors(device) * _PROGRAMS_PER_SM, _walks_in_flight(self.n))
        self.sums = torch.zeros((self.programs, self.shape["N_SUMS"]), dtype=torch.float32, device=device)
        self.unit = _unit(config)

    def _uniform(self, n_rows: int, dim: int, seeds: Any) -> Any:
        """A table of small random numbers, those that the CPU starts from."""
        table = torch.empty((n_rows, dim), dtype=torch.float32, device=self.device)
        fill_uniform[(triton.cdiv(n_rows * dim, _FILLED_TOGETHER),)](
            table, seeds, n_rows, 0.5 / self.config.dim, DIM=dim, BLOCK=_FILLED_TOGETHER
        )
        return table

    def _visits(self) -> Any:
        """Visits of each node per round of walks, float64 (n,); as `walks.sample.expected_visits`."""
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
        for first in range(0, rounds * n, len(self.lengths)):
            count = min(len(self.lengths), rounds * n - first)
            self._sample(first, count, nothing)
            walked = self.rows[:count, : config.walk_length][steps < self.lengths[:count, None]]
            counts += torch.bincount(walked, minlength=n)
        return counts / rounds

    def _sample(self, first: int, count: int, noise: Noise) -> None:
        """Put walks first … first + count − 1 and their negatives into `rows`."""
        config = self.config
        sample_walks[(triton.cdiv(count, _SAMPLED_TOGETHER),)](
            self.graph.offsets, self.graph.neighbours, self.graph.thresholds, noise.keep, noise.other,
            self.rows, self.lengths, self.seeds, first, count, self.n, self.side, 1 / config.p,
            1 / config.q, LENGTH=config.walk_length, N_SHARED=config.shared_negatives,
            WEIGHTED=self.graph.weighted, SECOND_ORDER=not config.p == config.q == 1.0,
            BLOCK=_SAMPLED_TOGETHER,
        )  # fmt: skip

    def _train(self, first: int, count: int) -> Any:
        """Train on the walks in `rows`, the first of which is number `first`; what the programs summed up."""
        config, programs = self.config, min(self.programs, count)
        self.sums.zero_()
        train_walks[(programs,)](
            self.center, self.context, self.rows, self.lengths, self.mixture, self.sums, first, count,
            float(self.n_walks), config.learning_rate, config.min_learning_rate, config.l2,
            float(config.n_negative), self.unit, min(config.window, config.walk_length),
            max(min(count // _SUMMED_WALKS, _LARGEST_STRIDE), 1), **self.shape,
        )  # fmt: skip
        return self.sums[:programs]

    def _end_block(self, last: int, sums: Any, record: Any) -> None:
        """Step the coefficients after walk `last` − 1; record (2 + K,) float64 gets pairs, loss and them."""
        config = self.config
        end_block[(1,)](
            sums, len(sums), self.coefficients, self.mixture, record,
            config.learning_rate_at(last, self.n_walks), config.coef_l2, config.coef_spread,
            coefficient_floor(config), N_KERNELS=len(config.kernels), LEARNED=config.learn_coefficients,
            N_SUMS=self.shape["N_SUMS"],
        )  # fmt: skip

    def run(self, report: Report) -> Trained:
        """Queue blocks for the card, and look at what became of them while it works on the next ones."""
        ranges = list(blocks(self.n_walks, len(self.lengths)))
        shape = (len(ranges), 2 + len(self.config.kernels))
        records = torch.empty(shape, dtype=torch.float64, device=self.device)
        on_card = self.device.type == "cuda"
        seen = torch.empty(shape, dtype=torch.float64, pin_memory=on_card)
        queued: list[tuple[range, Any]] = []

        def look() -> None:
            numbers, done = queued.pop(0)
            if done is not None:
                done.synchronize()
            for number in numbers:
                first, last = ranges[number]
                n_exploded = self._count_exploded() if last == self.n_walks else 0
                n_pairs, loss, *coefficients = seen[number].tolist()
                loss = self.course.record(first, last, n_pairs, loss, np.array(coefficients), n_exploded)
                report(last, self.n_walks, loss)

        for start in range(0, len(ranges), _LOOKED_AT_TOGETHER):
            numbers = range(start, min(start + _LOOKED_AT_TOGETHER, len(ranges)))
            for number in numbers:
                first, last = ranges[number]
                self._sample(first, last - first, self.noise)
                self._end_block(last, self._train(first, last - first), records[number])
            seen[numbers[0] : numbers[-1] + 1].copy_(records[numbers[0] : numbers[-1] + 1], non_blocking=True)
            queued.append((numbers, torch.cuda.current_stream().record_event() if on_card else None))
            if len(queued) > 1:
                look()
        while queued:
            look()
        return self.course.end(_to_host(self.center), _to_host(self.context))

    def _count_exploded(self) -> int:
        limit = norm_limit(self.config)
        squares = (torch.linalg.vector_norm(table, dim=1).square() for table in (self.center, self.context))
        return sum(int((~(square < limit)).sum()) for square in squares)


def _shape(config: TrainingConfig, n: int, on_gpu: bool) -> dict[str, Any]:
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


def _walks_in_flight(n: int) -> int:
    """Walks that may be trained on at a time: they do not see each other's steps.

    They meet most often at hubs, whose share of all visits falls like 1/√n where degrees have heavy tails;
    graphs of a few hundred nodes have few walks to spare at all.
    """
    return max(min(math.isqrt(n), n // _NODES_PER_WALK), 1)


def _unit(config: TrainingConfig) -> float:
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
    return float(2.0 ** math.ceil(math.log2((8 * steepest + config.l2) * heaviest / _LARGEST_GRADIENT)))


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
