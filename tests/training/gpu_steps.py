"""What the tests of the GPU backend share, in the interpreter and on a card; made without Numba."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray
from oracle import config, judge

from kernelne._common.variants import variant
from kernelne.model.kernels import KERNELS, kinds_of, own_key
from kernelne.model.mixture import Moments, n_sums, step_coefficients
from kernelne.model.objective import walk_pairs
from kernelne.model.own_kernels import register_kernel
from kernelne.training.backend import OnBlock, go_on
from kernelne.training.config import TrainingConfig
from kernelne.training.gpu import backend as gpu
from kernelne.training.state import TrainingState

#: Rounded additions to one entry of a table, about: tiles of a walk that comes back to a node.
_ADDITIONS = 16


def bare_graph(matrix: Any) -> SimpleNamespace:
    """What training reads of a Graph, from an adjacency matrix."""
    rows = scipy.sparse.csr_array(matrix)
    rows.sum_duplicates()
    weights = None if (rows.data == 1).all() else rows.data.astype(np.float32)
    offsets, neighbours = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
    for array in (offsets, neighbours):
        array.setflags(write=False)  # as a Graph's: for others the CPU's loop would be compiled again
    return SimpleNamespace(
        offsets=offsets, neighbours=neighbours, weights=weights, n_nodes=rows.shape[0], timed=None
    )


def runner(graph: Any, settings: TrainingConfig, device: Any) -> gpu.Runner:
    """A run on the device, before its first walk."""
    prepared = gpu.prepare(graph, settings, device)
    return gpu.Runner(prepared, gpu.start(prepared))


def train(
    graph: Any, settings: TrainingConfig, on_block: OnBlock = go_on, device: Any = None
) -> TrainingState:
    """A whole run on the device."""
    prepared = gpu.prepare(graph, settings, device)
    return gpu.fetch(gpu.run(prepared, gpu.start(prepared), None, on_block))


def walks_of(trainer: Any, count: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The first walks with their negatives, (count, columns), and their lengths: what was last sampled."""
    rows, lengths = trainer.rows.cpu().numpy(), trainer.lengths.cpu().numpy()
    return rows.reshape(-1, rows.shape[-1])[:count], lengths.ravel()[:count]


def soft(D: Any, sigma: Any) -> tuple[Any, Any]:
    """A kernel of one's own, with all that they may contain."""
    base = np.sqrt(1 + D / (2 * sigma**2))
    inside = np.maximum(np.minimum(1 / base, 1.0), 0)
    return inside, -(base**-3) / (4 * sigma**2) * np.exp(0 * np.log(base))


@contextmanager
def own_kernel() -> Iterator[str]:
    """Have the kernel `soft` registered."""
    register_kernel("soft", soft)
    try:
        yield "soft"
    finally:
        del KERNELS["soft"]


def assert_kernel_is_the_registrys(name: str, sigma: float, device: Any) -> None:
    """Value and slope as the GPU computes them, in float32, against float64."""
    import torch

    loop = variant("kernelne.training.gpu.loop", own_key([name]))
    D = torch.cat([torch.zeros(1), torch.logspace(-4, 3, 299)]).to(device)
    values, slopes = torch.full_like(D, torch.nan), torch.full_like(D, torch.nan)
    loop.evaluate_kernel[(3,)](D, values, slopes, sigma, 300, KIND=kinds_of([name])[0], BLOCK=128)
    exact = KERNELS[name](D.cpu().numpy().astype(float), sigma)
    for found, wanted in zip((values.cpu().numpy(), slopes.cpu().numpy()), exact, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=3e-6 * np.abs(wanted).max())
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-30)


def assert_trains_as_the_oracle(
    trainer: Any, precision: float, first: int = 5, count: int = 1, seed: int = 0, every: int = 1
) -> None:
    """Train on walks first, first + 1, … from random tables; steps and sums against those of the oracle.

    More than one walk, or a walk of several tiles, wants a rate so small that the order does not matter.
    precision: of float32 or tf32, in units of the largest entry; the rounding of the tables comes on top.
    every: each program's moments are those of so many of its walks, scaled up to all of them.
    """
    settings: TrainingConfig = trainer.config
    rng = np.random.default_rng(seed)
    size = 0.3 * min(1.0, 4 / np.sqrt(settings.dim))
    before = rng.normal(0, size, (2, trainer.n, settings.dim)).astype(np.float32)
    coefficients = np.ones(len(settings.kernels))
    if settings.learn_coefficients:
        coefficients = rng.uniform(-1, 1, len(settings.kernels)).astype(np.float32).astype(float)
    for table, start in ((trainer.state.center, before[0]), (trainer.state.context, before[1])):
        table.copy_(_like(table, start))
    trainer.mixture[1].copy_(_like(trainer.mixture, coefficients))
    trainer.sample(first, count, trainer.noise)
    sums = trainer.train(first, count).cpu().numpy().sum(axis=0, dtype=np.float64)
    rows, lengths = walks_of(trainer, count)

    scale = np.zeros(count)
    for program in range(trainer.programs):
        walks = np.arange(program, count, trainer.programs)
        scale[walks[::every]] = len(walks) / max(len(walks[::every]), 1)
    steps, total = np.zeros(before.shape), np.zeros(n_sums(len(settings.kernels)))
    for w in range(count):
        pairs = walk_pairs(
            rows[w, : lengths[w]],
            rows[w, settings.walk_length :],
            window=settings.window,
            n_negative=settings.n_negative,
            window_decay=settings.window_decay,
            forward=settings.forward,
        )
        gradients, moments = judge(pairs, *before.astype(float), coefficients, settings.kernels, settings.l2)
        rate = settings.learning_rate_at(first + w, trainer.n_walks)
        steps -= rate * np.array([gradients.center, gradients.context])
        summed = scale[w] * np.concatenate([moments.linear, moments.quadratic.ravel()])
        total += np.concatenate([[moments.n_pairs, moments.loss], summed])

    for table, start, step in zip((trainer.state.center, trainer.state.context), before, steps, strict=True):
        after = table.cpu().numpy().astype(float)
        atol = precision * np.abs(step).max() + _ADDITIONS * 2.0**-25 * np.abs(after).max()
        np.testing.assert_allclose(after - start, step, rtol=0, atol=atol)
    found, exact = (Moments.unpack(x[: total.size], len(settings.kernels)) for x in (sums, total))
    assert found.n_pairs == pytest.approx(exact.n_pairs, rel=1e-6)
    np.testing.assert_allclose(found.loss, exact.loss, rtol=precision)
    if settings.learn_coefficients:
        for name in ("linear", "quadratic"):
            of_oracle = getattr(exact, name)
            atol = precision * np.abs(of_oracle).max()
            np.testing.assert_allclose(getattr(found, name), of_oracle, rtol=0, atol=atol)


def assert_coefficients_step_as_on_the_cpu(
    n_kernels: int, floor: float, device: Any, n_pairs: int = 30
) -> None:
    """From sums of more programs than are added up at a time."""
    import torch

    from kernelne.training.gpu.mixture import end_block

    rng, n_programs = np.random.default_rng(n_kernels), 70
    values = rng.uniform(0, 1, (n_programs, n_pairs, n_kernels))
    targets = rng.integers(0, 2, (n_programs, n_pairs, 1))
    products = np.tril(np.einsum("pia,pib->pab", values, values)).reshape(n_programs, -1)
    sums = np.column_stack(
        [np.full(n_programs, n_pairs), rng.uniform(size=n_programs), (values * targets).sum(1), products]
    ).astype(np.float32)
    before = rng.uniform(-0.5, 0.5, n_kernels)
    coefficients = torch.tensor(before, device=device)
    mixture = torch.full((2, n_kernels), 7.0, device=device)
    record = torch.empty(2 + n_kernels, dtype=torch.float64, device=device)
    end_block[(1,)](
        torch.tensor(sums, device=device), n_programs, coefficients, mixture, record, 0.01, 0.02, 1.5, floor,
        N_KERNELS=n_kernels, LEARNED=True, N_SUMS=sums.shape[1],
    )  # fmt: skip
    total = sums.sum(axis=0, dtype=np.float64)
    expected = before
    if n_pairs:
        expected = step_coefficients(before, Moments.unpack(total, n_kernels), 0.01, 0.02, 1.5, floor)
    np.testing.assert_allclose(coefficients.cpu(), expected, rtol=1e-9)
    np.testing.assert_allclose(record.cpu(), [*total[:2], *expected], rtol=1e-9)
    np.testing.assert_allclose(mixture.cpu(), [[7.0] * n_kernels, expected], rtol=1e-6)


def _like(tensor: Any, values: NDArray[Any]) -> Any:
    """Values as a tensor of another's device and type."""
    return tensor.new_tensor(values)


def sample_everywhere(device: Any) -> dict[str, NDArray[np.int32]]:
    """Walks and negatives of many kinds: graphs that end walks early, weights, p and q, large numbers; and
    the bits of the tables that a run starts from."""
    import torch

    rng = np.random.default_rng(0)
    sampled = {}
    for directed, weighted, p, q in (
        (False, False, 1.0, 1.0), (True, True, 1.0, 1.0), (True, False, 0.25, 2.0), (False, True, 4.0, 0.5)
    ):  # fmt: skip
        matrix = np.where(rng.random((50, 50)) < 0.05, rng.uniform(0.1, 3.0, (50, 50)), 0.0)
        matrix = matrix if directed else np.maximum(matrix, matrix.T)
        graph = bare_graph(matrix if weighted else (matrix > 0).astype(float))
        shape = {"walk_length": 5, "walks_per_node": 4, "shared_negatives": 3}
        trainer = runner(graph, config(p=p, q=q, seed=2**64 - 7, **shape), device)
        noise = gpu.Noise(*(part.to(device) for part in gpu.alias_table(torch.arange(50.0).double())))
        for first in (0, 2**33 + 1):
            trainer.rows.zero_()
            trainer.sample(first, 140, noise)
            rows, lengths = walks_of(trainer, 140)
            sampled[f"{'weighted' if weighted else 'plain'}, p={p}, q={q}, from {first}"] = np.c_[
                lengths, rows
            ]
        sampled[f"first table, p={p}"] = trainer.state.center.cpu().numpy().view(np.int32)
    return sampled


#: How the planted partition is trained on, and the scores that the CPU reaches with these kernels.
PLANTED: dict[str, Any] = {"dim": 32, "walks_per_node": 150, "shared_negatives": 14, "coef_spread": 1.5}
CPU_SCORES: dict[str, tuple[dict[str, Any], float]] = {
    "gaussian": ({"kernels": (("gaussian", 2.0),)}, 0.988),
    "schoenberg": ({"kernels": (("schoenberg", 2.0),)}, 0.988),
    "mixture": (
        {"kernels": tuple(("gaussian", s) for s in (1.0, 2.0, 3.0)), "learn_coefficients": True},
        0.988,
    ),
}


def planted(n: int = 2000, groups: int = 10) -> tuple[SimpleNamespace, NDArray[np.int64]]:
    """About 8 edges a node inside its group and 4 to others; the graph and each node's group."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(groups), n // groups)
    chance = np.where(labels[:, None] == labels, 8 / (n // groups), 4 / (n - n // groups))
    upper = np.triu(rng.random((n, n)) < chance, 1)
    return bare_graph((upper | upper.T).astype(float)), labels


def score(vectors: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """Share of one half of the nodes that are nearest to their own group's mean over the other half."""
    known = np.random.default_rng(1).permutation(len(labels)) % 2 == 0
    means = np.array([vectors[known & (labels == group)].mean(axis=0) for group in np.unique(labels)])
    distances = ((vectors[~known, None] - means) ** 2).sum(axis=2)
    return float((distances.argmin(axis=1) == labels[~known]).mean())
