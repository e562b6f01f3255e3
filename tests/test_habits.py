"""What other programs read of the repository, beside the code: it parses, and says what is so."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import kernelne

ROOT = Path(__file__).parents[1]
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
if not WORKFLOW.exists():
    pytest.skip("none of this is part of the source distribution", allow_module_level=True)


def read(path):
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def test_citation_is_of_this_version_and_of_the_paper():
    citation = read("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert (citation["title"], citation["type"], citation["license"]) == ("kernelne", "software", "MIT")
    assert str(citation["version"]) == kernelne.__version__
    assert citation["authors"] == [{"name": "kernelne contributors"}]
    paper = citation["preferred-citation"]
    assert paper["title"] == "Multiple Kernel Representation Learning on Networks"
    assert [author["family-names"] for author in paper["authors"]] == ["Çelikkanat", "Shen", "Malliaros"]
    assert paper["year"] == 2022


def test_hooks_run_what_make_check_runs():
    hooks = [hook for repo in read(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    recipe = re.search(r"^check:.*\n((?:\t.+\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    wanted = re.findall(r"\$\(BIN\)/(\w+(?: (?:check|format))?)", recipe)
    assert [re.match(r"\.venv/bin/(\w+(?: (?:check|format))?)", hook["entry"])[1] for hook in hooks] == wanted
    assert {hook["language"] for hook in hooks} == {"system"}


def test_workflow_may_read_and_no_more():
    workflow = read(WORKFLOW)
    assert workflow["permissions"] == {"contents": "read"}
    assert not [job for job in workflow["jobs"].values() if "permissions" in job]
    text = WORKFLOW.read_text("utf-8")
    assert "secrets" not in text
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", action) for action in used)


def test_workflow_runs_what_is_there():
    workflow = read(WORKFLOW)
    commands = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    named = re.findall(r"(?:\.ci|tests)/[\w/.]+", "\n".join(commands))
    assert {".ci/run", ".ci/smoke.py", "tests/graph/test_graph.py"} <= {*named}
    assert not [name for name in named if not (ROOT / name).exists()]
    assert workflow["jobs"]["smoke"]["strategy"]["matrix"]["system"][1:] == ["macos-latest", "windows-latest"]


def test_licences_of_all_dependencies_are_listed_and_none_binds_users():
    page = (ROOT / "docs" / "licences.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| ([\w.-]+) \| ([^|]+) \|", page, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [
        some
        for name, some in project["optional-dependencies"].items()
        if name not in ("gpu", "cluster", "all")
    ]
    wanted = {re.match(r"[\w-]+", each)[0] for some in (project["dependencies"], *extras) for each in some}
    assert wanted <= {*listed}
    assert not [name for name, licence in listed.items() if "GPL" in licence or "not stated" in licence]


def test_lock_holds_all_that_developers_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    sys.path.insert(0, str(ROOT / ".ci"))
    try:
        bounds = importlib.import_module("bounds")
    finally:
        sys.path.remove(str(ROOT / ".ci"))
    lock = (ROOT / "requirements-dev.lock").read_text("utf-8")
    pinned = {name.lower(): version for name, version in re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE)}
    for each in map(Requirement, bounds.every(project)):
        assert each.specifier.contains(pinned[each.name.lower()]), each
    assert lock.count("--hash=sha256:") >= len(pinned)
    assert not re.search(r"://|/(opt|root|tmp|home)/", lock)  # no hosts, no folders of whoever made it
    assert "numba==0.60" in bounds.lowest(project)


def test_workflow_tries_the_oldest_and_the_newest_python():
    project = (ROOT / "pyproject.toml").read_text()
    supported = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    tried = read(WORKFLOW)["jobs"]["check"]["strategy"]["matrix"]["python"]
    assert tried == [supported[0], supported[-1]]


def test_faults_are_shown_by_tests_that_exist():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "reliability.md").read_text("utf-8"))
    assert len(named) > 20
    for file, name in named:
        assert f"def {name}(" in (ROOT / file).read_text("utf-8"), name
