"""Requirements of this project for pip, from pyproject.toml.

python .ci/bounds.py lowest                # the lowest version that is allowed of each package
python .ci/bounds.py all                   # what developers need, as ranges
python .ci/bounds.py lock < report.json    # what pip would install of it, by its --report, with hashes
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

_BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?>=([0-9.]+)")


def dependencies(project: dict[str, Any]) -> list[str]:
    """Return the dependencies, with those of all extras but the large ones of GPUs and clusters."""
    extras = project["project"]["optional-dependencies"]
    some = [
        each for name, wanted in extras.items() if name not in ("gpu", "cluster", "all") for each in wanted
    ]
    return sorted([*project["project"]["dependencies"], *some])


def lowest(project: dict[str, Any]) -> list[str]:
    """Return name==version for each dependency."""
    return [f"{found[1]}=={found[2]}" for each in dependencies(project) if (found := _BOUND.match(each))]


def every(project: dict[str, Any]) -> list[str]:
    """Return the dependencies and the tools of developers."""
    groups = project["dependency-groups"]
    tools = [each for group in ("dev", "docs") for each in groups[group] if isinstance(each, str)]
    return dependencies(project) + sorted(tools)


def locked(report: dict[str, Any]) -> list[str]:
    """Return name==version with the hash of the file, for each package of a report."""
    lines = []
    for each in report["install"]:
        name = re.sub(r"[-_.]+", "-", each["metadata"]["name"]).lower()
        found = each["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name}=={each['metadata']['version']} --hash=sha256:{found}")
    return sorted(lines)


if __name__ == "__main__":
    if sys.argv[1] == "lock":
        made = locked(json.load(sys.stdin))
    else:
        text = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
        made = {"lowest": lowest, "all": every}[sys.argv[1]](tomllib.loads(text))
    print("\n".join(made))
