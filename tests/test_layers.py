"""Imports go one way: graph → walks → training → estimators → evaluation and the command line."""

from __future__ import annotations

import ast
from pathlib import Path

import kernelne

SOURCE = Path(kernelne.__file__).parent

#: Each layer may import from those before it and from itself.
LAYERS = [
    {"errors", "_version"},
    {"_files", "_ids", "_csr", "_tokens", "kernels", "progress"},
    {"_formats", "_formats_text", "_formats_binary", "graph", "objective", "evaluation"},
    {"embedding", "io", "walks"},
    {"training"},
    {"estimators"},
    {"summary", "demo"},
    {"cli"},
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
    assert sorted(kernelne.__all__) == kernelne.__all__
    for name in kernelne.__all__:
        assert hasattr(kernelne, name)
    public = {name for name in vars(kernelne) if not name.startswith("_")}
    modules = {p.stem for p in SOURCE.glob("*.py")} | {p.name for p in SOURCE.iterdir() if p.is_dir()}
    assert public - modules == {name for name in kernelne.__all__ if not name.startswith("_")}
