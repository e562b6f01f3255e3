"""Imports go one way: graph → walks → training → estimators → evaluation and the command line."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kernelne

SOURCE = Path(kernelne.__file__).parent

#: Each layer may import from those before it and from itself.
LAYERS = [
    {"errors", "_version", "_jit", "_checks"},
    {"_figures", "_files", "_inputs", "_ids", "_csr", "_sniff", "_tokens", "_words", "kernels", "progress"},
    {"_containers"},
    {"_formats", "_graph_formats", "graph", "labels", "neighbours", "objective", "evaluation"},
    {"embedding", "io", "layout", "walks"},
    {"node_vectors", "plotting"},
    {"datasets"},
    {"training"},
    {"auto"},
    {"estimators"},
    {"link_features", "link_predictor", "baselines"},
    {"summary", "explorer", "demo", "comparison", "_comparison_child", "tuning"},
    {"cli"},
    {"__main__"},
]


def _imported(path: Path) -> set[str]:
    """The parts of kernelne that a file imports, lazily or not."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [f"{module}.{a.name}" for a in node.names] if module == "kernelne" else [module]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("kernelne.")}
    return found


def test_imports_go_one_way():
    layer = {part: level for level, parts in enumerate(LAYERS) for part in parts}
    for path in SOURCE.rglob("*.py"):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for other in _imported(path) - {part}:
            assert layer[other] <= layer[part], f"{path} imports kernelne.{other}"


def test_evaluation_never_sees_an_estimator():
    for path in (SOURCE / "evaluation").rglob("*.py"):
        assert not _imported(path) & {"estimators", "training", "baselines"}


def test_public_names():
    assert sorted(kernelne.__all__) == kernelne.__all__ == dir(kernelne)
    for name in kernelne.__all__:
        assert getattr(kernelne, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        kernelne.no_such_name  # noqa: B018
    lazy = ast.parse(Path(kernelne.__file__).read_text())
    typed = {a.name for n in ast.walk(lazy) if isinstance(n, ast.ImportFrom) for a in n.names}
    assert set(kernelne.__all__) <= typed


def test_import_is_light():
    code = "import sys, kernelne; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numba", "sklearn", "pyarrow", "numpy"} & set(loaded)


def test_import_is_quick():
    """The best of five, because other work on the machine only ever adds to it."""
    code = "import time; t = time.perf_counter(); import kernelne; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(5)]
    assert min(map(float, runs)) < 0.3


def test_no_module_unpickles():
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found = {name.partition(".")[0] for name in names}
            assert not {"pickle", "joblib", "shelve", "marshal", "multiprocessing"} & found, path
