"""Imports go one way: graph → model, walks → training → estimators → tasks → the command line."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import kernelne

SOURCE = Path(kernelne.__file__).parent

#: Each layer may import from those before it and from itself.
LAYERS = [
    {"errors", "_version", "_common", "progress"},
    {"graph"},
    {"io", "model", "walks"},
    {"embedding", "training"},
    {"estimators", "walk_embedder", "growth", "evaluation"},
    {"links", "baselines", "view", "datasets"},
    {"comparison", "tuning"},
    {"cli", "__main__"},
]


def _modules() -> dict[str, Path]:
    """Name → file of every module of the package."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


def _statements(tree: ast.AST):
    """All statements but those that only type checkers read."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        yield from _statements(node)


def _imported(path: Path) -> set[str]:
    """The modules of kernelne that a file imports, lazily or not."""
    found: set[str] = set()
    for node in _statements(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{a.name}" for a in node.names}
            found |= {name if name in MODULES else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
    return {name for name in found if name.startswith("kernelne.")}


def test_imports_go_one_way():
    layer = {part: level for level, parts in enumerate(LAYERS) for part in parts}
    for module, path in MODULES.items():
        if module == "kernelne":
            continue
        own = layer[module.split(".")[1]]
        for other in _imported(path):
            assert layer[other.split(".")[1]] <= own, f"{module} imports {other}"


def test_no_module_imports_itself_through_others():
    """Not even among equals, and not even lazily: graphlib raises a CycleError that names the circle."""
    TopologicalSorter({module: _imported(path) for module, path in MODULES.items()}).prepare()


def test_parts_of_one_layer_have_an_order_too():
    """No two parts of the package import each other, through whatever modules."""
    needed: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        if module != "kernelne":
            part = module.split(".")[1]
            needed.setdefault(part, set()).update(x.split(".")[1] for x in _imported(path))
    TopologicalSorter({part: others - {part} for part, others in needed.items()}).prepare()


def test_every_part_has_a_layer():
    assert {name.split(".")[1] for name in MODULES if "." in name} == set().union(*LAYERS)


def test_files_are_short():
    """A newcomer reads a file at one go."""
    for path in SOURCE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path


def test_evaluation_never_sees_an_estimator():
    for path in (SOURCE / "evaluation").rglob("*.py"):
        parts = {name.split(".")[1] for name in _imported(path)}
        assert not parts & {"estimators", "training", "baselines"}


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
