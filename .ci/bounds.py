"""Requirements of this project for pip, from pyproject.toml.

python .ci/bounds.py lowest    # the lowest version of each package that is allowed, as constraints
python .ci/bounds.py all       # what developers need, as ranges, from which requirements-dev.lock is made
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

_BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?>=([0-9.]+)")


def dependencies(project: dict[str, Any]) -> list[str]:
    """Return the dependencies, with those of all extras but the GPU's, which brings gigabytes."""
    extras = project["project"]["optional-dependencies"]
    some = [each for name, wanted in extras.items() if name not in ("gpu", "all") for each in wanted]
    return sorted([*project["project"]["dependencies"], *some])


def lowest(project: dict[str, Any]) -> list[str]:
    """Return name==version for each dependency."""
    return [f"{found[1]}=={found[2]}" for each in dependencies(project) if (found := _BOUND.match(each))]


def every(project: dict[str, Any]) -> list[str]:
    """Return the dependencies and the tools of developers."""
    groups = project["dependency-groups"]
    tools = [each for group in ("dev", "docs") for each in groups[group] if isinstance(each, str)]
    return dependencies(project) + sorted(tools)


if __name__ == "__main__":
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
    print("\n".join({"lowest": lowest, "all": every}[sys.argv[1]](tomllib.loads(text))))
