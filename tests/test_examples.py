"""The notebooks run from top to bottom, without a warning, and are kept without outputs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
#: Notebook → the files that it writes.
NOTEBOOKS = {
    "classify_and_map.ipynb": {"digits.png", "digits.safetensors"},
    "links_and_similar.ipynb": {"lesmis.html"},
}
if not FOLDER.exists():
    pytest.skip("the examples are not part of the source distribution", allow_module_level=True)


def code_cells(path):
    return [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def test_all_notebooks_are_known():
    assert {path.name for path in FOLDER.glob("*.ipynb")} == NOTEBOOKS.keys()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_kept_without_outputs(name):
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code_cells(FOLDER / name))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_runs(name, tmp_path):
    """In a process of its own: what Jupyter's packages warn of is not ours, and must not end the test."""
    work, state = tmp_path / "work", tmp_path / "state"
    work.mkdir()
    shutil.copy(FOLDER / name, work)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from nbclient.cli import main; main()",
            "--inplace",
            "--timeout=300",
            work / name,
        ],
        env=os.environ | {"IPYTHONDIR": str(state), "JUPYTER_RUNTIME_DIR": str(state)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    cells = code_cells(work / name)
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [
        output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"
    ]
    assert {path.name for path in work.iterdir()} == {name, *NOTEBOOKS[name]}
