"""Training on one GPU: graph, walks and tables are in its memory, the host only launches kernels.

Besides this package only NumPy, torch and Triton are needed.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._common.variants import variant
from kernelne.errors import InputError, KernelneError, MissingDependencyError, ParameterError
from kernelne.model.kernels import own_key
from kernelne.training.backend import OnBlock, Prepared, go_on
from kernelne.training.config import TrainingConfig
from kernelne.training.schedule import NOISE_POWER, Recorder, blocks, coefficient_floor, norm_limit
from kernelne.training.state import TrainingState

try:
    import torch
    import triton

    from kernelne.training.gpu.arrays import (
        GraphArrays,
        Noise,
        alias_table,
        arc_rows,
        probabilities,
        to_device,
    )
    from kernelne.training.gpu.launch import (
        PROGRAMS_PER_SM,
        largest_block,
        multiprocessors,
        shape,
        unit,
        walks_in_flight,
    )
    from kernelne.training.gpu.mixture import end_block
    from kernelne.training.gpu.walks import fill_uniform, sample_walks
except ImportError as _error:
    raise MissingDependencyError("torch and triton", "gpu") from _error

__all__ = ["check", "check_machine", "fetch", "keep", "prepare", "run", "run_bytes", "start"]

#: The sums for the coefficients are computed on a sample of a block: on at least _SUMMED_WALKS walks, and on
#: at least one in _LARGEST_STRIDE. More than some hundred thousand pairs do not change the result.
_SUMMED_WALKS, _LARGEST_STRIDE = 2**15, 16
#: Number of blocks whose records are copied to the host together; it is one or two such groups ahead of the
#: GPU.
_LOOKED_AT_TOGETHER = 8
#: Rounds of walks that are counted to estimate the visits of second-order walks.
_COUNTED_ROUNDS = 10
_SAMPLED_TOGETHER = 128
_FILLED_TOGETHER = 1024
#: Copying tables to the host: number of threads, bytes that each copies at a time, and the size in bytes from
#: which threads are used.
_COPYING_THREADS, _STAGED_BYTES, _WORTH_THREADS = 8, 2**22, 2**24


def find_device() -> Any:
    """Return the GPU to train on; raises KernelneError if there is none."""
    if not torch.cuda.is_available():
        raise KernelneError(
            "backend='gpu': no CUDA GPU is visible to torch here; use backend='cpu', or a torch build for "
            "your GPU (https://pytorch.org)"
        )
    return torch.device("cuda", torch.cuda.current_device())


def check_machine() -> None:
    """Raise KernelneError if there is no GPU."""
    find_device()


def run_bytes(graph: Any, config: TrainingConfig, n_tables: float = 2) -> int:
    """Peak device memory of a run in bytes: graph, noise distribution, walks, and tables or preparation.

    n_tables is ignored: the embedding is made from the tables on the host.
    """
    n, arcs = graph.n_nodes, graph.neighbours.size
    weighted = graph.weights is not None
    block = largest_block(config, n * config.walks_per_node)
    walks = 4 * block * (config.walk_length + config.shared_negatives + 1)
    kept = 16 * n + (8 if weighted else 4) * arcs + walks
    tables = 8 * n * config.dim
    by_chain = config.p == config.q == 1.0  # else visits are counted on sampled walks
    before = 48 * n + (36 if weighted else 24 if by_chain else 0) * arcs
    before += 0 if by_chain else 21 * block * config.walk_length
    return int(kept + max(tables, before) + 2**26)


def check(graph: Any, config: TrainingConfig, n_tables: float, dim: int) -> None:
    """Raise InputError if a run does not fit in GPU memory, before anything is copied there."""
    if graph.timed is not None:
        raise ParameterError("backend", "gpu", "walks in the order of time need backend='cpu'")
    device = find_device()
    needed, (free, total) = run_bytes(graph, config, n_tables), torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # cached by torch
    if needed > free:
        raise InputError(
            f"dim={dim}: {graph.n_nodes:,} nodes and {graph.neighbours.size:,} arcs need "
            f"{needed / 2**30:.1f} GiB on the GPU and {free / 2**30:.1f} of {total / 2**30:.1f} GiB are "
            "free: lower dim, or use backend='cpu'"
        )


class Walker:
    """Samples walks into device memory."""

    def __init__(self, graph: GraphArrays, config: TrainingConfig) -> None:
        self.graph, self.config, self.n = graph, config, graph.n_nodes
        device = graph.offsets.device
        self.seeds = _seeds(config, device)
        self.side = math.isqrt(self.n - 1) + 1
        self.block = largest_block(config, self.n * config.walks_per_node)

    @cached_property
    def rows(self) -> Any:
        """Walks and their negatives: (block, walk_length + shared_negatives) int32."""
        # Zeros: entries beyond the end of a walk are prefetched too, so they must be valid nodes.
        columns = self.config.walk_length + self.config.shared_negatives
        return torch.zeros((self.block, columns), dtype=torch.int32, device=self.graph.offsets.device)

    @cached_property
    def lengths(self) -> Any:
        """Nodes of each walk: (block,) int32."""
        return torch.empty(self.block, dtype=torch.int32, device=self.graph.offsets.device)

    def sample(self, first: int, count: int, noise: Noise) -> None:
        """Write walks first … first + count − 1 and their negatives to `rows`."""
        config = self.config
        sample_walks[(triton.cdiv(count, _SAMPLED_TOGETHER),)](
            self.graph.offsets, self.graph.neighbours, self.graph.thresholds, noise.keep, noise.other,
            self.rows, self.lengths, self.seeds, first, count, self.n, self.side, 1 / config.p,
            1 / config.q, LENGTH=config.walk_length, N_SHARED=config.shared_negatives,
            WEIGHTED=self.graph.weighted, SECOND_ORDER=not config.p == config.q == 1.0,
            BLOCK=_SAMPLED_TOGETHER,
        )  # fmt: skip

    def visits(self) -> Any:
        """Expected visits to each node per round of walks, float64 (n,); as `sample.expected_visits`."""
        config, n, device = self.config, self.n, self.graph.offsets.device
        if config.p == config.q == 1.0:
            rows = arc_rows(self.graph.offsets)
            shares = probabilities(self.graph, rows)
            mass = torch.ones(n, dtype=torch.float64, device=device)
            visits = mass.clone()
            for _ in range(config.walk_length - 1):
                moved = torch.zeros_like(mass)
                moved.index_add_(0, self.graph.neighbours, mass[rows] * shares)
                visits += moved
                mass = moved
            return visits
        nothing = Noise(*(torch.zeros(n, dtype=torch.int32, device=device) for _ in range(2)))
        counts = torch.zeros(n, dtype=torch.float64, device=device)
        rounds = min(config.walks_per_node, _COUNTED_ROUNDS)
        steps = torch.arange(config.walk_length, device=device)
        for first in range(0, rounds * n, self.block):
            count = min(self.block, rounds * n - first)
            self.sample(first, count, nothing)
            walked = self.rows[:count, : config.walk_length][steps < self.lengths[:count, None]]
            counts += torch.bincount(walked, minlength=n)
        return counts / rounds


def _seeds(config: TrainingConfig, device: Any) -> Any:
    signed = config.seed - 2**64 if config.seed >= 2**63 else config.seed
    return torch.tensor([signed], dtype=torch.int64, device=device)


@torch.no_grad()
def prepare(graph: Any, config: TrainingConfig, device: Any = None) -> Prepared:
    """Copy the graph to the device, once for all runs, and compute the noise distribution.

    graph: a Graph, or the arrays of one that is on the device already (`to_device`).
    """
    device = find_device() if device is None else device
    walked = graph if isinstance(graph, GraphArrays) else to_device(graph, device)
    noise = alias_table(Walker(walked, config).visits() ** NOISE_POWER)
    return Prepared(config, walked.n_nodes, walked, noise)


@torch.no_grad()
def start(prepared: Prepared) -> TrainingState:
    """Return the initial state, with the same numbers as on the CPU."""
    config, device = prepared.config, prepared.graph.offsets.device
    seeds = _seeds(config, device)

    def uniform(n_rows: int, dim: int, seeds: Any) -> Any:
        table = torch.empty((n_rows, dim), dtype=torch.float32, device=device)
        fill_uniform[(triton.cdiv(n_rows * dim, _FILLED_TOGETHER),)](
            table, seeds, n_rows, 0.5 / config.dim, DIM=dim, BLOCK=_FILLED_TOGETHER
        )
        return table

    center = uniform(prepared.n_nodes, config.dim, seeds)
    coefficients = np.ones(len(config.kernels))
    if config.learn_coefficients:
        coefficients = uniform(1, len(config.kernels), ~seeds)[0].cpu().numpy().astype(np.float64)
    return TrainingState(center, torch.zeros_like(center), coefficients)


class Runner(Walker):
    """A run on the device: its tables and the launch parameters of its kernels."""

    def __init__(self, prepared: Prepared, state: TrainingState) -> None:
        super().__init__(prepared.graph, prepared.config)
        config, device = self.config, self.graph.offsets.device
        self.noise: Noise = prepared.noise
        self.n_walks = prepared.n_walks
        self.state = state
        state.center, state.context = (_on_device(table, device) for table in (state.center, state.context))
        self.recorder = Recorder(config, self.n_walks, state)
        self.coefficients = torch.tensor(state.coefficients, device=device)
        sigmas = torch.tensor([sigma for _, sigma in config.kernels], dtype=torch.float64, device=device)
        self.mixture = torch.stack([sigmas, self.coefficients]).to(torch.float32)
        self.shape = shape(config, self.n, device.type == "cuda")
        self.programs = min(multiprocessors(device) * PROGRAMS_PER_SM, walks_in_flight(self.n))
        self.sums = torch.zeros((self.programs, self.shape["N_SUMS"]), dtype=torch.float32, device=device)
        self.unit = unit(config)
        self.loop = variant("kernelne.training.gpu.loop", own_key(name for name, _ in config.kernels))

    def train(self, first: int, count: int) -> Any:
        """Train on the walks in `rows`, the first of which has number `first`; returns the programs' sums."""
        config, programs = self.config, min(self.programs, count)
        self.sums.zero_()
        self.loop.train_walks[(programs,)](
            self.state.center, self.state.context, self.rows, self.lengths, self.mixture, self.sums, first,
            count, float(self.n_walks), config.learning_rate, config.min_learning_rate, config.l2,
            float(config.n_negative), self.unit, min(config.window, config.walk_length),
            max(min(count // _SUMMED_WALKS, _LARGEST_STRIDE), 1),
            math.log2(config.window_decay), **self.shape,
        )  # fmt: skip
        return self.sums[:programs]

    def end_block(self, last: int, sums: Any, record: Any) -> None:
        """Step the coefficients after walk `last` − 1; writes pairs, loss and coefficients to `record`.

        record: (2 + K,) float64.
        """
        config = self.config
        end_block[(1,)](
            sums, len(sums), self.coefficients, self.mixture, record,
            config.learning_rate_at(last, self.n_walks), config.coef_l2, config.coef_spread,
            coefficient_floor(config), N_KERNELS=len(config.kernels), LEARNED=config.learn_coefficients,
            N_SUMS=self.shape["N_SUMS"],
        )  # fmt: skip

    def run(self, until: int | None, on_block: OnBlock) -> TrainingState:
        """Queue blocks for the GPU, and record their results while it computes the next ones."""
        ranges = list(blocks(self.n_walks, self.block, self.state.next_walk, until))
        device = self.graph.offsets.device
        wide = (len(ranges), 2 + len(self.config.kernels))
        records = torch.empty(wide, dtype=torch.float64, device=device)
        on_card = device.type == "cuda"
        seen = torch.empty(wide, dtype=torch.float64, pin_memory=on_card)
        queued: list[tuple[range, Any]] = []

        def look() -> bool:
            """Record the oldest group of blocks; returns True if `on_block` stops the run."""
            numbers, done = queued.pop(0)
            if done is not None:
                done.synchronize()
            enough = False
            for number in numbers:
                first, last = ranges[number]
                n_exploded = self._count_exploded() if last == self.n_walks else 0
                n_pairs, loss, *coefficients = seen[number].tolist()
                loss = self.recorder.record(first, last, n_pairs, loss, np.array(coefficients), n_exploded)
                enough |= bool(on_block(last, self.n_walks, loss))
            return enough

        for at in range(0, len(ranges), _LOOKED_AT_TOGETHER):
            numbers = range(at, min(at + _LOOKED_AT_TOGETHER, len(ranges)))
            for number in numbers:
                first, last = ranges[number]
                self.sample(first, last - first, self.noise)
                self.end_block(last, self.train(first, last - first), records[number])
            seen[numbers[0] : numbers[-1] + 1].copy_(records[numbers[0] : numbers[-1] + 1], non_blocking=True)
            queued.append((numbers, torch.cuda.current_stream().record_event() if on_card else None))
            if len(queued) > 1 and look():
                break
        while queued:
            look()
        return self.recorder.end()

    def _count_exploded(self) -> int:
        limit = norm_limit(self.config)
        tables = (self.state.center, self.state.context)
        squares = (torch.linalg.vector_norm(table, dim=1).square() for table in tables)
        return sum(int((~(square < limit)).sum()) for square in squares)


@torch.no_grad()
def run(
    prepared: Prepared, state: TrainingState, until: int | None = None, on_block: OnBlock = go_on
) -> TrainingState:
    """Train from a state on. If `on_block` stops the run, blocks that are queued are still trained on."""
    return Runner(prepared, state).run(until, on_block)


def keep(state: TrainingState) -> TrainingState:
    """Return a copy of the state with NumPy arrays; the tables of the run stay on the device."""
    return fetch(replace(state))


def fetch(state: TrainingState) -> TrainingState:
    """Return the state with its tables copied to the host as NumPy arrays."""
    state.center, state.context = _to_host(state.center), _to_host(state.context)
    return state


def _on_device(table: Any, device: Any) -> Any:
    """Return a table on the device; NumPy arrays, of a run continued from a file, are copied there."""
    if isinstance(table, np.ndarray):
        return torch.from_numpy(np.array(table, np.float32)).to(device)
    return table


def _to_host(table: Any) -> NDArray[np.float32]:
    """Copy a table to the host; large ones with several threads, as one thread is slower than the bus."""
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
