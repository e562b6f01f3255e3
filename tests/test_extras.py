"""Without a package that is optional, what needs it names the extra that brings it."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kernelne

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]

#: What is done, the modules it needs, the packages they are in, the extra that brings these, if one does.
TABLE = [
    ("KernelNE(backend='gpu').check_backend()", {"torch", "triton"}, ["torch", "triton"], "gpu"),
    ("KernelNE(engine='ray').check_backend()", {"ray"}, ["ray"], "cluster"),
    ("embedding.to_torch()", {"torch"}, ["torch"], "gpu"),
    ("embedding.build_index()", {"usearch"}, ["usearch"], "search"),
    ("layout_nodes(np.eye(9), 'umap')", {"umap"}, ["umap-learn"], "explore"),
    ("plot_map(embedding, 'map.png')", {"matplotlib"}, ["matplotlib"], "plot"),
    ("graph.to_networkx()", {"networkx"}, ["networkx"], "graphs"),
    ("embedding.to_networkx(graph)", {"networkx"}, ["networkx"], "graphs"),
    ("load_dataset('lesmis')", {"networkx"}, ["networkx"], "graphs"),
    ("graph.to_pandas()", {"pandas"}, ["pandas"], "graphs"),
    ("embedding.to_pandas()", {"pandas"}, ["pandas"], "graphs"),
    ("tune_embedding(graph, n_trials=1)", {"optuna"}, ["optuna"], "tune"),
    ("fetch_dataset('dblp')", {"pooch"}, ["pooch"], "data"),
    ("embedding.to_gensim()", {"gensim"}, ["gensim"], None),
]
_CODE = """
import json, sys

class Absent:  # None in sys.modules would do, but SciPy takes that for a torch that is there
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {hidden}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent)
import numpy as np
from kernelne import *
from kernelne.datasets import fetch_dataset
from kernelne.view.layout import layout_nodes
graph = Graph.from_edges(range(9), [*range(1, 9), 0])
embedding = Embedding(np.eye(9), graph.nodes)
told = {{}}
for action in {actions}:
    try:
        told[action] = repr(eval(action))
    except Exception as error:
        told[action] = f"{{type(error).__name__}}: {{error}}"
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What each action says where none of the packages is there."""
    folder = tmp_path_factory.mktemp("bare")
    hidden = sorted({name for _, names, _, _ in TABLE for name in names})
    code = _CODE.format(hidden=hidden, actions=[action for action, *_ in TABLE])
    environment = {"KERNELNE_DATA": str(folder), "KERNELNE_CACHE": str(folder)}
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=os.environ | environment,
    )
    assert list(folder.iterdir()) == []
    return json.loads(run.stdout)


@pytest.mark.parametrize(("action", "_", "packages", "extra"), TABLE, ids=[row[0] for row in TABLE])
def test_what_is_missing_is_named(told, action, _, packages, extra):
    clone = "" if extra is None else f", or in a clone of kernelne pip install -e '.[{extra}]'"
    remedy = f"pip install {' '.join(packages)}{clone}"
    assert told[action] == f"MissingDependencyError: this needs {' and '.join(packages)}: {remedy}"
    if extra is not None:
        brought = {re.match(r"[\w-]+", r)[0] for r in PROJECT["optional-dependencies"][extra]}
        assert set(packages) <= brought


def test_the_docs_list_all_extras():
    page = (Path(__file__).parents[1] / "docs" / "install.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", page, re.MULTILINE))
    assert rows.pop("all") == "all of these except `gpu` and `cluster`"
    brought = {
        extra: ", ".join(re.match(r"[\w-]+", r)[0] for r in requirements)
        for extra, requirements in PROJECT["optional-dependencies"].items()
        if extra != "all"
    }
    assert rows == brought


def _imported():
    """The modules outside of the standard library that files of the package import."""
    for path in Path(kernelne.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                yield name.partition(".")[0]


def test_no_optional_import_is_left_out():
    needed = {re.match(r"[\w-]+", r)[0] for r in PROJECT["dependencies"]}
    needed = {"sklearn" if name == "scikit-learn" else name for name in needed}
    # Brought by Numba.
    known = {*sys.stdlib_module_names, *needed, "kernelne", "llvmlite"}
    assert set(_imported()) - known == {name for _, names, _, _ in TABLE for name in names}
