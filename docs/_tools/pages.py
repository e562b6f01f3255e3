"""What the site takes from outside docs/: pages and pictures of the repository.

In the files links lead to `../README.md` or `../experiments/…`, so that they work where the files are read as
they are. On the site these pages stand beside the others, and links are turned accordingly.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
TAKEN = (
    "CHANGELOG.md",
    "experiments/RESULTS.md",
    "experiments/choices.md",
    "experiments/plots/*.svg",
    "examples/*.ipynb",
)


def on_files(files: Files, config: Any) -> Files:
    for pattern in TAKEN:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    if page.file.src_uri.startswith("experiments/"):
        return markdown.replace("](../docs/", "](../")
    markdown = markdown.replace("```python\n>>>", "```pycon\n>>>")  # tells prompts and output from code
    return re.sub(r"\]\(\.\./((?:experiments|examples)/[^)]+|CHANGELOG\.md)\)", r"](\1)", markdown)
