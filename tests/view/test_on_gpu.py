"""The layout "map" of the GPU beside that of the CPU; Triton interprets its rounds, torch runs on the CPU."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

from kernelne import InputError, KernelneError, ParameterError
from kernelne.training.cpu.threads import Workers
from kernelne.view import layout, near, rounds, spread
from kernelne.view.affinity import link_rows

try:
    import torch
    import triton  # noqa: F401
except (ImportError, OSError, ValueError) as error:  # the last two: a build for CUDA without its libraries
    pytest.skip(f"torch and triton are needed: {error}", allow_module_level=True)
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("the kernels are compiled here: leave out -m gpu", allow_module_level=True)

from kernelne.view import on_gpu


def _ignore(*args):
    pass


@pytest.fixture(autouse=True)
def without_a_card(monkeypatch):
    monkeypatch.setattr(on_gpu, "find_device", lambda: torch.device("cpu"))
    monkeypatch.setattr(rounds, "n_rounds", lambda n: 4)
    monkeypatch.setattr(rounds, "_POOL", 60)


@pytest.fixture(scope="module")
def clouds():
    """Six hundred rows in twelve clouds that touch."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(12, 8))
    return (centres[rng.integers(0, 12, 600)] + 0.3 * rng.normal(size=(600, 8))).astype(np.float32)


@pytest.fixture
def small_cells(monkeypatch):
    monkeypatch.setattr(near, "_CELL", 30)
    monkeypatch.setattr(near, "_LARGEST_CELL", 40)
    monkeypatch.setattr(near, "_PROBES", 4)


@pytest.mark.parametrize("by_cells", [False, True])
@pytest.mark.parametrize("queries", [70, 1024])
def test_nearest_rows_are_those_of_the_cpu(clouds, small_cells, monkeypatch, by_cells, queries):
    monkeypatch.setattr(on_gpu, "_QUERIES", queries)
    cells = near.find_cells(clouds, 0, Workers(1)) if by_cells else None
    table = clouds if cells is None else clouds[cells.order]
    rows, distances = near.nearest_rows(table, 9, Workers(1), _ignore, cells)
    found, apart = on_gpu.nearest_rows(table, 9, report=_ignore, cells=cells)
    np.testing.assert_allclose(apart, distances, atol=1e-4)
    assert (found == rows).mean() > 0.99  # but for equal distances
    assert (found.dtype, apart.dtype) == (rows.dtype, distances.dtype)


def test_cells_with_fewer_rows_than_are_asked_for(monkeypatch):
    """Two cells of three rows: of five nearest only two can be found."""
    table = np.arange(12, dtype=np.float32).reshape(6, 2)
    cells = near.Cells(np.arange(6, dtype=np.int32), np.array([0, 3, 6]), np.array([[0], [1]]))
    rows, distances = on_gpu.nearest_rows(table, 5, report=_ignore, cells=cells)
    np.testing.assert_array_equal(np.sort(rows[0]), [-1, -1, -1, 1, 2])
    np.testing.assert_array_equal(np.sort(rows[5]), [-1, -1, -1, 3, 4])
    assert (np.isinf(distances) == (rows < 0)).all()


def test_rows_are_assigned_as_on_the_cpu(clouds, monkeypatch):
    monkeypatch.setattr(on_gpu, "_PRODUCTS", 1000)
    means = clouds[::50].copy()
    np.testing.assert_array_equal(on_gpu.assign(clouds, means), near._assign(clouds, means, Workers(1)))


def test_rounds_move_rows_as_on_the_cpu(clouds):
    some = clouds[:150]
    links = link_rows(*near.nearest_rows(some, 9, Workers(1), _ignore), 5.0, Workers(1))
    links = links._replace(totals=links.totals * np.linspace(0, 3, 150, dtype=np.float32))  # 0 … 24 draws
    start = np.ascontiguousarray(10 * some[:, :2])
    planned = rounds.plan_rounds(150, 7)
    calls = []
    theirs = on_gpu.spread(links, start, planned, report=lambda *call: calls.append(call))
    ours = spread._spread(links, start.copy(), planned, Workers(1), _ignore)
    assert np.abs(ours - start).max() > 1
    np.testing.assert_allclose(theirs, ours, atol=2e-3)
    assert calls[0][1] == len(planned)
    assert calls[-1][:2] == (len(planned), len(planned))


@pytest.mark.parametrize(("exact_up_to", "coarse_from"), [(0, 9_000), (9_000, 9_000), (9_000, 0)])
def test_a_whole_layout_is_that_of_the_cpu(clouds, small_cells, monkeypatch, exact_up_to, coarse_from):
    monkeypatch.setattr(spread, "_COARSE_FROM", coarse_from)
    monkeypatch.setattr(spread, "EXACT_UP_TO", exact_up_to)
    table = clouds[:200]
    ours, theirs = (layout.layout_nodes(table, "map", 3, backend=name) for name in ("cpu", "gpu"))
    assert np.isclose(ours, theirs, atol=1e-2).all(axis=1).mean() > 0.9  # equal distances may differ
    assert not np.allclose(ours, layout.layout_nodes(table, "map", 4, backend="gpu"), atol=1)


def test_too_little_memory_is_told_in_one_line(clouds, monkeypatch):
    def full(*args, **options):
        raise torch.OutOfMemoryError("tried to allocate 9 GiB")

    monkeypatch.setattr(on_gpu, "nearest_rows", full)
    with pytest.raises(InputError, match=r"does not fit in the GPU's memory: use backend='cpu' \(tried to"):
        layout.layout_nodes(clouds, "map", backend="gpu")


def test_refusals(clouds, monkeypatch):
    with pytest.raises(ParameterError, match=r"backend='tpu': must be one of cpu, gpu"):
        layout.layout_nodes(clouds, backend="tpu")
    with pytest.raises(ParameterError, match=r"backend='gpu': only the layout map runs on a GPU, not tsne"):
        layout.layout_nodes(clouds, "tsne", backend="gpu")
    with pytest.raises(InputError, match="not finite"):
        layout.layout_nodes(np.full((9, 3), math.nan), backend="gpu")
    if not torch.cuda.is_available():
        monkeypatch.undo()
        with pytest.raises(KernelneError, match="no CUDA GPU is visible"):
            layout.layout_nodes(clouds, backend="gpu")
