"""The GPU backend on a real card: `pytest -m gpu`, which needs NumPy, SciPy, torch and Triton alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from gpu_steps import (
    CPU_SCORES,
    PLANTED,
    assert_coefficients_step_as_on_the_cpu,
    assert_kernel_is_the_registrys,
    assert_trains_as_the_oracle,
    bare_graph,
    own_kernel,
    planted,
    runner,
    sample_everywhere,
    score,
    train,
)
from oracle import config

from kernelne.errors import DivergenceError, InputError
from kernelne.model.kernels import KERNELS
from kernelne.training.gpu import backend as gpu

try:
    import torch
    import triton  # noqa: F401
except (ImportError, OSError, ValueError) as error:  # the last two: a build for CUDA without its libraries
    pytest.skip(f"torch and triton are needed: {error}", allow_module_level=True)
if not torch.cuda.is_available():
    pytest.skip("no CUDA GPU is visible to torch", allow_module_level=True)
if os.environ.get("TRITON_INTERPRET") == "1":
    pytest.skip("Triton is interpreted in this run: use pytest -m gpu", allow_module_level=True)

from kernelne.training.gpu.loop import train_walks
from kernelne.training.gpu.mixture import end_block
from kernelne.training.gpu.walks import sample_walks

pytestmark = pytest.mark.gpu
CARD = torch.device("cuda", torch.cuda.current_device())
#: Products are of half precision; where walks or tiles follow each other the tables move in between.
HALF, IN_TURN = 2e-3, 6e-3
MIXTURE = tuple((name, sigma) for name, sigma in zip(KERNELS, (1.0, 2.0, 0.5), strict=True))
SLOW = {"learning_rate": 1e-5, "min_learning_rate": 1e-6, "l2": 0.3}


def _sparse(n, n_edges, *, weighted=False, directed=False, seed=0):
    """Edges between nodes drawn evenly."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 3.0, n_edges) if weighted else np.ones(n_edges)
    matrix = scipy.sparse.coo_array((weights, rng.integers(0, n, (2, n_edges))), (n, n)).tocsr()
    matrix = matrix if directed else matrix + matrix.T
    if not weighted:
        matrix.data[:] = 1
    return bare_graph(matrix)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("name", list(KERNELS))
def test_kernels_are_those_of_the_registry(name, sigma):
    assert_kernel_is_the_registrys(name, sigma, CARD)


def test_a_kernel_of_ones_own():
    with own_kernel() as name:
        assert_kernel_is_the_registrys(name, 1.5, CARD)
        settings = config(kernels=((name, 1.5), ("gaussian", 1.0)), learn_coefficients=True)
        assert_trains_as_the_oracle(runner(_sparse(100, 400), settings, CARD), HALF)


def test_walks_and_negatives_are_the_interpreters(tmp_path):
    code = (
        "import sys, numpy, torch; from gpu_steps import sample_everywhere;"
        "numpy.savez(sys.argv[1], **sample_everywhere(torch.device('cpu')))"
    )
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, tmp_path / "walks.npz"]
    subprocess.run(command, check=True, env=environment, cwd=Path(__file__).parent)
    expected = dict(np.load(tmp_path / "walks.npz"))
    found = sample_everywhere(CARD)
    assert found.keys() == expected.keys()
    for kind, rows in expected.items():
        same = (found[kind] == rows).all(axis=1).mean()
        assert same == 1 or ("weighted" in kind and same > 0.98), (
            kind
        )  # sums of weights may round another way
    assert any((rows[:, 0] < 5).any() for rows in expected.values())


@pytest.mark.parametrize("weighted", [False, True])
def test_visits_are_those_of_the_chain(weighted):
    graph = _sparse(300, 900, weighted=weighted, directed=True)
    trainer = runner(graph, config(walk_length=6), CARD)
    weights = np.ones(graph.neighbours.size) if graph.weights is None else graph.weights.astype(float)
    chain = scipy.sparse.csr_array((weights, graph.neighbours, graph.offsets), (300, 300)).toarray()
    chain /= np.maximum(chain.sum(axis=1, keepdims=True), 1e-300)
    expected = sum(np.ones(300) @ np.linalg.matrix_power(chain, step) for step in range(6))
    np.testing.assert_allclose(trainer.visits().cpu().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("n", [1, 1000, 300_000])
def test_alias_table_is_exact(n):
    for weights in (np.random.default_rng(n).random(n) ** 4, np.arange(n) % 5 + 1.0, np.ones(n)):
        table = gpu.alias_table(torch.from_numpy(weights).to(CARD))
        kept = (table.keep.cpu().numpy().view(np.uint32) + 1.0) / 2**32
        found = (kept + np.bincount(table.other.cpu().numpy(), 1 - kept, n)) / n
        np.testing.assert_allclose(found, weights / weights.sum(), rtol=0, atol=1e-9 / n * 100)


@pytest.mark.parametrize("dim", [5, 16, 20, 70, 128, 130, 256])
@pytest.mark.parametrize("kernel", MIXTURE)
def test_a_walk_is_one_step_of_the_oracle(kernel, dim):
    settings = config(kernels=(kernel,), dim=dim, shared_negatives=14)
    assert_trains_as_the_oracle(runner(_sparse(100, 400), settings, CARD), HALF)


@pytest.mark.parametrize(
    "changes",
    [
        {"kernels": MIXTURE, "learn_coefficients": True},
        {"kernels": MIXTURE[:2], "learn_coefficients": True, "dim": 70, "window": 2},
        {"window": 2**31 - 1, "l2": 0.3},
        {"window": 1, "shared_negatives": 1},
        {"walk_length": 1},
    ],
)
def test_mixtures_and_windows(changes):
    assert_trains_as_the_oracle(runner(_sparse(100, 400), config(**changes), CARD), HALF)


@pytest.mark.parametrize("shared_negatives", [14, 40])
@pytest.mark.parametrize(("walk_length", "window"), [(10, 10), (17, 4), (40, 12)])
def test_a_walk_of_several_tiles(walk_length, window, shared_negatives):
    shape = {"walk_length": walk_length, "window": window, "shared_negatives": shared_negatives}
    settings = config(kernels=MIXTURE, learn_coefficients=True, dim=20, **shape, **SLOW)
    assert_trains_as_the_oracle(runner(_sparse(100, 400), settings, CARD), IN_TURN)


@pytest.mark.parametrize("n_kernels", [1, 3, 6])
def test_coefficients_step_as_on_the_cpu(n_kernels):
    assert_coefficients_step_as_on_the_cpu(n_kernels, 5.0, CARD)


def test_programs_share_the_walks_out(monkeypatch):
    """Many walks at once, some of which end early: none is lost, none trained on twice."""
    settings = config(kernels=MIXTURE[:2], learn_coefficients=True, dim=70, shared_negatives=14, **SLOW)
    trainer = runner(_sparse(5000, 6000, directed=True), settings, CARD)
    assert trainer.programs > 50
    assert_trains_as_the_oracle(trainer, IN_TURN, first=3, count=1000)
    monkeypatch.setattr(gpu, "_SUMMED_WALKS", 250)
    assert_trains_as_the_oracle(trainer, IN_TURN, first=3, count=1000, every=4)


@pytest.mark.parametrize("model", list(CPU_SCORES))
def test_planted_groups_are_found_as_well_as_by_the_cpu(model):
    kernels, of_cpu = CPU_SCORES[model]
    graph, labels = planted()
    start = train(graph, config(**kernels, **PLANTED | {"walks_per_node": 1}, learning_rate=1e-30,
                                    min_learning_rate=0.0))  # fmt: skip
    assert score(start.center, labels) < 0.2
    assert score(train(graph, config(**kernels, **PLANTED)).center, labels) > of_cpu - 0.02


def _n_compiled():
    return [len(kernel.device_caches[CARD.index][0]) for kernel in (sample_walks, train_walks, end_block)]


def test_a_kernel_is_compiled_once():
    """For blocks of any size, and for the next run: dim 44 is no other test's."""
    before = _n_compiled()
    shape = {"kernels": MIXTURE, "learn_coefficients": True, "dim": 44, "walk_length": 7}
    train(_sparse(501, 2000), config(**shape))
    after_first = _n_compiled()
    assert [y - x for x, y in zip(before, after_first, strict=True)][:2] == [1, 1]
    train(_sparse(777, 1000), config(**shape, seed=9, window=3, l2=0.1, coef_l2=0.3))
    assert _n_compiled() == after_first


def _peak(graph, settings):
    """Bytes that a run held at most, beyond what was held before."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    train(graph, settings)
    return torch.cuda.max_memory_allocated() - held


def test_memory_is_tables_and_graph():
    n, dim = 200_000, 128
    graph = _sparse(n, 1_000_000)
    graph_bytes = graph.offsets.nbytes + graph.neighbours.nbytes
    peak = _peak(graph, config(dim=dim, walks_per_node=4, shared_negatives=14))
    assert peak <= 1.2 * (2 * n * dim * 4 + graph_bytes) + 500e6


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", [1.0, 2.0])
def test_memory_is_known_ahead(weighted, q):
    """Many edges a node: the graph needs more than the tables."""
    graph = _sparse(20_000, 4_000_000, weighted=weighted)
    settings = config(dim=16, walks_per_node=30, q=q)
    needed = gpu.run_bytes(graph, settings)
    assert 0.3 * needed < _peak(graph, settings) <= needed


def test_what_does_not_fit_is_refused_before_anything_is_moved():
    held = torch.cuda.memory_allocated()
    huge = SimpleNamespace(n_nodes=2**30, neighbours=SimpleNamespace(size=2**33), weights=None, timed=None)
    with pytest.raises(InputError, match="GiB are free: lower dim, or use backend='cpu'"):
        gpu.check(huge, config(dim=128), 2, 128)
    assert torch.cuda.memory_allocated() == held


def test_large_tables_reach_the_host_whole():
    table = torch.rand((200_003, 128), device=CARD)
    np.testing.assert_array_equal(gpu._to_host(table), table.cpu().numpy())


def test_divergence_is_told_when_it_happens():
    with pytest.raises(DivergenceError, match="learning_rate") as caught:
        train(_sparse(2000, 8000), config(learning_rate=1e20))
    assert " 20000 of 20000" not in str(caught.value)


def test_estimators_train_on_the_card():
    pytest.importorskip("numba", exc_type=ImportError)
    from kernelne import MKernelNE

    model = MKernelNE(backend="gpu", dim=16, walks_per_node=30, random_state=1, progress=False)
    nodes = np.arange(64)
    model.fit(np.c_[np.tile(nodes, 2), np.r_[(nodes + 1) % 64, (nodes + 2) % 64]])
    assert model.embedding_.shape == (64, 16)
    assert model.history_["loss"][-1] < model.history_["loss"][0]
    assert model.to_embedding().provenance["backend"] == "gpu"
