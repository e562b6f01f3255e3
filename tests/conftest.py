"""Fixtures for all tests, a Numba cache that no earlier run has written to, and Triton's interpreter.

Numba's disk cache goes stale without a word when an inlined module changes and its caller's file does not, so
every session compiles anew. To iterate faster set KERNELNE_TEST_CACHE to a folder that is kept.

`pytest -m gpu` runs the tests that need a card, and needs no Numba; other runs interpret Triton's kernels.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

if "numba" in sys.modules:
    raise RuntimeError("numba was imported before tests/conftest.py could give it a fresh cache folder")
if kept := os.environ.get("KERNELNE_TEST_CACHE"):
    os.environ["NUMBA_CACHE_DIR"] = kept
elif "PYTEST_XDIST_WORKER" not in os.environ:  # workers share the folder of the process that started them
    os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="kernelne-numba-")
    atexit.register(shutil.rmtree, os.environ["NUMBA_CACHE_DIR"], ignore_errors=True)

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray

if TYPE_CHECKING:
    from kernelne.graph import Graph

Array = NDArray[np.float64]


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("markexpr") != "gpu":
        os.environ["TRITON_INTERPRET"] = "1"  # read once, when triton is imported
    # Where tests run in the background, or under nohup, signals are ignored: by the commands they start, too.
    for number in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_sessionstart(session: pytest.Session) -> None:
    """If several processes run the tests, compile the training loop for all of them: it takes longest."""
    if session.config.getoption("numprocesses", None) and session.config.getoption("markexpr") != "gpu":
        code = "import kernelne; kernelne.KernelNE(dim=4, walks_per_node=1).fit([(0, 1)])"
        compiling = subprocess.Popen([sys.executable, "-c", code])
        session.config.add_cleanup(compiling.wait)


#: Files that take longest: they come first, so that no process is left with one of them at the end. Those
#: that mostly wait, for a cluster or a kill, do not come at the same time.
_LONG = [
    "test_cluster.py", "test_gpu.py", "test_other_cpus.py", "test_layout.py", "test_jit.py",
    "test_own_kernels.py", "test_checkpoint.py", "test_examples.py", "test_compare.py",
]  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {name: place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


class GradientCheck(Protocol):
    def __call__(
        self,
        function: Callable[[Array], float],
        at: Array,
        gradient: Array,
        *,
        step: float = ...,
        rtol: float = ...,
        atol: float = ...,
    ) -> None: ...


def _assert_gradient_matches_finite_diff(
    function: Callable[[Array], float],
    at: Array,
    gradient: Array,
    *,
    step: float = 1e-5,
    rtol: float = 1e-6,
    atol: float = 1e-8,
) -> None:
    """The gradient of a scalar function of an array against central differences, entry by entry."""
    assert gradient.shape == at.shape
    differences = np.empty_like(at)
    for index in np.ndindex(*at.shape):
        around = []
        for sign in (1, -1):
            moved = at.copy()
            moved[index] += sign * step
            around.append((function(moved), moved[index]))
        (up, high), (down, low) = around
        differences[index] = (up - down) / (high - low)
    np.testing.assert_allclose(gradient, differences, rtol=rtol, atol=atol)


@pytest.fixture(scope="session")
def assert_gradient_matches_finite_diff() -> GradientCheck:
    """`assert_gradient_matches_finite_diff(function, at, gradient, step=…, rtol=…, atol=…)`."""
    return _assert_gradient_matches_finite_diff


class MakeGraph(Protocol):
    def __call__(
        self, seed: int, n: int, *, directed: bool, weighted: bool, density: float = ...
    ) -> Graph: ...


def _random_graph(seed: int, n: int, *, directed: bool, weighted: bool, density: float = 0.4) -> Graph:
    """n nodes, about density · n edges a node, self-loops too; sparse graphs leave nodes isolated."""
    from kernelne.graph import Graph

    rng = np.random.default_rng(seed)
    matrix = np.where(rng.random((n, n)) < density, rng.uniform(0.05, 4.0, (n, n)), 0.0)
    matrix = matrix if directed else np.triu(matrix) + np.triu(matrix, 1).T
    return Graph.from_scipy(scipy.sparse.csr_array(matrix if weighted else matrix != 0), directed=directed)


@pytest.fixture(scope="session")
def random_graph() -> MakeGraph:
    """`random_graph(seed, n, directed=…, weighted=…, density=…)`: a small graph with self-loops."""
    return _random_graph


@pytest.fixture(scope="session")
def two_cliques() -> Graph:
    """Nodes 0–4 and 5–9 all joined, one edge between the two, node 10 alone."""
    from kernelne.graph import Graph

    edges = [(i + s, j + s) for s in (0, 5) for i in range(5) for j in range(i)] + [(4, 5)]
    sources, targets = np.array(edges).T
    return Graph.from_edges(sources, targets, nodes=np.arange(11))


@pytest.fixture(scope="session")
def ring() -> Graph:
    """64 nodes, each joined to its two next neighbours on either side."""
    from kernelne.graph import Graph

    nodes = np.arange(64)
    return Graph.from_edges(np.tile(nodes, 2), np.concatenate([(nodes + 1) % 64, (nodes + 2) % 64]))


@pytest.fixture
def own_kernel() -> Iterator[str]:
    """The name of a kernel of one's own, which is forgotten after the test."""
    from kernelne import register_kernel
    from kernelne.model.kernels import KERNELS

    def cauchy_of_tests(D: Array, sigma: float) -> tuple[Array, Array]:
        base = 1.0 + D / sigma
        return 1.0 / base, -1.0 / (sigma * base * base)

    register_kernel("cauchy_of_tests", cauchy_of_tests)
    yield "cauchy_of_tests"
    del KERNELS["cauchy_of_tests"]


@pytest.fixture(scope="session")
def card() -> None:
    """Skip the test where there is no card to compile for."""
    try:
        import numba  # noqa: F401
        import torch
        import triton  # noqa: F401
    except (ImportError, OSError, ValueError) as error:  # a build for CUDA without its libraries, too
        pytest.skip(f"Numba, torch and triton are needed: {error}")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA GPU is visible to torch")
    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("Triton is interpreted in this run: use pytest -m gpu")
