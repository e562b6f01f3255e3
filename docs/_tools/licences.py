"""Print docs/licences.md: the licences of all packages that kernelne and its extras install.

    python docs/_tools/licences.py > docs/licences.md

They are found by following the requirements from `kernelne[all]` and read from the metadata of what is
installed.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution, metadata

from packaging.requirements import Requirement

_SHORT = 60  # some packages put the whole text into the field


def licence_of(name: str) -> str:
    """Return the licence that a package states: an expression, its classifiers, or the first line of text."""
    facts = metadata(name)
    if found := facts.get("License-Expression"):
        return found
    stated = [
        c.rpartition(" :: ")[2] for c in facts.get_all("Classifier") or [] if c.startswith("License ::")
    ]
    first = (facts.get("License") or "").strip().partition("\n")[0]
    return ", ".join(c for c in stated if c != "OSI Approved") or first[:_SHORT] or "not stated"


def needed(root: str, extras: set[str]) -> dict[str, set[str]]:
    """Return the packages that a package needs, directly or not, each with those that need it."""
    found: dict[str, set[str]] = {}
    waiting, seen = [(root, extras)], set()
    while waiting:
        name, wanted = waiting.pop()
        for text in distribution(name).requires or []:
            each = Requirement(text)
            own = re.sub(r"[-_.]+", "-", each.name).lower()
            if each.marker and not any(each.marker.evaluate({"extra": extra}) for extra in {"", *wanted}):
                continue
            try:
                distribution(own)
            except PackageNotFoundError:
                continue  # not of this system
            if own != root:
                found.setdefault(own, set()).add(name)
            if (own, frozenset(each.extras)) not in seen:
                seen.add((own, frozenset(each.extras)))
                waiting.append((own, set(each.extras)))
    return found


def main() -> None:
    rows = needed("kernelne", {"all"})
    print("# Licences\n")
    print(
        "kernelne is under the MIT licence. These are the licences of the packages that `kernelne[all]` "
        "installs on Linux,\nas their metadata states them; `make licences` writes this page anew. No "
        "package that only developers need is among them.\n"
    )
    print("| package | licence | needed by |\n|---|---|---|")
    for name in sorted(rows):
        print(f"| {name} | {licence_of(name)} | {', '.join(sorted(rows[name]))} |")


if __name__ == "__main__":
    main()
