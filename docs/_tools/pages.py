"""What the site takes from outside docs/: pages and pictures of the repository, and the README's tables.

In the files links lead to `../README.md` or `../experiments/…`, so that they work where the files are read as
they are. On the site these pages stand beside the others, and links are turned accordingly.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
TAKEN = ("CHANGELOG.md", "experiments/RESULTS.md", "experiments/plots/*.svg", "examples/*.ipynb")
#: A line that is only a link to a section of the README is replaced by that section.
_SECTION = re.compile(r"^\[[^\]]*\]\(\.\./README\.md#([\w-]+)\)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s:]*)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    for pattern in TAKEN:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    if page.file.src_uri.startswith("experiments/"):
        return markdown
    markdown = _SECTION.sub(lambda found: _section(found[1], files), markdown)
    markdown = markdown.replace("```python\n>>>", "```pycon\n>>>")  # tells prompts and output from code
    return re.sub(r"\]\(\.\./((?:experiments|examples)/[^)]+|CHANGELOG\.md)\)", r"](\1)", markdown)


def _section(anchor: str, files: Files) -> str:
    """The text below a heading of the README, its links as they are from the site's first page."""
    readme = (ROOT / "README.md").read_text("utf-8")
    for title, text in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", readme, re.MULTILINE | re.DOTALL):
        if title.lower().replace(" ", "-") == anchor:
            return _LINK.sub(lambda found: _turned(found, files), text).strip()
    raise PluginError(f"README.md has no section #{anchor}")


def _turned(link: re.Match[str], files: Files) -> str:
    """A link of the README from docs/; its text alone where it leads to what is not on the site: a folder."""
    target = link[2].removeprefix("docs/")
    return f"[{link[1]}]({target}{link[3] or ''})" if files.get_file_from_path(target) else link[1]
