"""What is published: both distributions are built, and the wheel runs where nothing else is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import kernelne

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
#: As a user's: no path of this checkout, and the compiled code of no other test.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
#: README.md leads to their results, which are larger than all the rest.
LEFT_OUT = ("benchmarks/", "experiments/")


def _run(*command, cwd, **more):
    """Standard output of a command that must succeed."""
    arguments = {"capture_output": True, "text": True, "env": ENVIRONMENT, "timeout": 300} | more
    done = subprocess.run([*map(str, command)], cwd=cwd, **arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the source distribution and the wheel made from it; in `direct`, one made from here."""
    folder = tmp_path_factory.mktemp("dist")
    ask = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder / "index"]
    asked = subprocess.run([*ask, *PROJECT["build-system"]["requires"]], capture_output=True, text=True)
    if asked.returncode:
        pytest.skip(f"no package index can be reached: {asked.stderr.strip().splitlines()[-1]}")
    _run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    _run(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "direct", ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(made):
    """The wheel that was made from the source distribution."""
    return next(made.glob("*.whl"))


@pytest.fixture(scope="module")
def sdist(made):
    """The source distribution, unpacked."""
    with tarfile.open(next(made.glob("*.tar.gz"))) as archive:
        archive.extractall(made, filter="data")
    return made / f"kernelne-{kernelne.__version__}"


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of commands of an environment that holds the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    _run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    commands = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", commands / "python"]
    _run(*pip, "install", "--quiet", "--no-compile", wheel, cwd=folder)
    _run(*pip, "check", cwd=folder)
    yield commands
    shutil.rmtree(folder)  # half a gigabyte, of which pytest would keep three


def _names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_wheel_holds_the_package_and_nothing_else(wheel):
    package = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "kernelne").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {
        "kernelne/py.typed",
        "kernelne/view/explorer/page.html",
        "kernelne/view/explorer/style.css",
    } <= package
    assert any(name.endswith(".js") for name in package)
    about = f"kernelne-{kernelne.__version__}.dist-info/"
    extra = {about + name for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")}
    assert set(_names(wheel)) == package | extra


def test_wheels_of_sources_and_of_source_distribution_are_the_same(made, wheel):
    assert _names(next((made / "direct").glob("*.whl"))) == _names(wheel)


def test_source_distribution_holds_what_its_tests_and_readme_need(sdist):
    for name in (
        "LICENSE",
        "CHANGELOG.md",
        "Makefile",
        "pyproject.toml",
        "tests/conftest.py",
        "src/kernelne",
    ):
        assert (sdist / name).exists(), name
    readme = (sdist / "README.md").read_text()
    links = re.findall(r"\]\(([^)#:\s]+)[^):]*\)", readme)
    assert links
    for link in links:
        assert link.startswith(LEFT_OUT) or (sdist / link).exists(), link
    assert not [name for name in LEFT_OUT if (sdist / name).exists()]
    assert _files(sdist / "tests") == _files(ROOT / "tests")
    assert _files(sdist / "docs") == _files(ROOT / "docs")


def _files(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder) for path in files}


def test_version_is_in_one_place(installed, tmp_path):
    """`_version.py` says it; distributions, the command and the metadata follow."""
    assert "version" not in PROJECT["project"]
    source = ROOT / "src" / "kernelne" / "_version.py"
    assert PROJECT["tool"]["hatch"]["version"]["path"] == source.relative_to(ROOT).as_posix()
    told = re.findall(r'"(.+)"$', source.read_text(), re.MULTILINE)[-1]
    code = "import kernelne, importlib.metadata as m; print(kernelne.__version__, m.version('kernelne'))"
    assert _run(installed / "python", "-c", code, cwd=tmp_path).split() == [told, told]
    assert _run(installed / "kernelne", "--version", cwd=tmp_path) == f"kernelne {told}\n"


def test_extras(wheel):
    metadata = _names(wheel)[f"kernelne-{kernelne.__version__}.dist-info/METADATA"].decode()
    extras = re.findall("^Provides-Extra: (.+)$", metadata, re.MULTILINE)
    assert sorted(extras) == ["all", "cluster", "data", "explore", "gpu", "graphs", "plot", "search", "tune"]
    everything = PROJECT["project"]["optional-dependencies"]["all"]
    assert everything == [f"kernelne[{','.join(sorted({*extras} - {'all', 'cluster', 'gpu'}))}]"]


def test_installed_package_runs_anywhere(installed, tmp_path):
    found = _run(installed / "python", "-c", "import kernelne; print(kernelne.__file__)", cwd=tmp_path)
    assert Path(found.strip()).is_relative_to(installed.parent)
    assert "embed" in _run(installed / "python", "-m", "kernelne", "--help", cwd=tmp_path)
    (tmp_path / "ring.edges").write_text("".join(f"{i} {(i + 1) % 12}\n" for i in range(12)))
    fast = ["--model", "kernelne", "--dim", 8, "--walks-per-node", 2, "--seed", 1, "--n-threads", 1]
    _run(installed / "kernelne", "embed", "ring.edges", "-o", "ring.npz", *fast, cwd=tmp_path)
    _run(installed / "kernelne", "explore", "ring.npz", "--no-open", cwd=tmp_path)
    page = (tmp_path / "ring.html").read_text()
    assert "<script" in page
    assert "ring.npz" in page
