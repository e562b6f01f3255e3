"""Our docstrings as Markdown, for the reference of the site.

A docstring has paragraphs; examples that start with >>>; headings with a line of dashes below; lists of
entries `name: text`, `name, name: text`, or `name   text` in two columns, with further lines of an entry
indented; and tables of more columns, set apart by two blanks or more.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_HEADING = re.compile(r"(\w[\w ]*)\n-{3,}(?:\n|$)")
_NAMES = r"\*{0,2}\w+(?:, \*{0,2}\w+)*"
_BROKEN = re.compile(rf"^({_NAMES},)\n", re.MULTILINE)  # names that go on in the next line
_ENTRY = re.compile(rf"^(?={_NAMES}: )", re.MULTILINE)
_COLUMNS = re.compile(r" {2,}(?=\S)")


class Docstrings(Extension):
    """Rewrites every docstring that griffe has read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    return "\n\n".join(_block(block) for block in re.split(r"\n\s*\n", docstring))


def _block(block: str) -> str:
    heading = _HEADING.match(block)
    if heading:
        rest = block[heading.end() :]
        return f"**{heading[1]}**" + (f"\n\n{_block(rest)}" if rest else "")
    if block.startswith(">>>"):
        return f"```pycon\n{block}\n```"
    joined = _BROKEN.sub(r"\1 ", block)
    if _ENTRY.match(joined):
        return "\n".join(_item(*entry.split(": ", 1)) for entry in _ENTRY.split(joined)[1:])
    lines = [line.rstrip() for line in block.split("\n")]
    columns = max(len(_COLUMNS.split(line.strip())) for line in lines)
    if columns == 2 and _COLUMNS.search(lines[0]):
        entries = re.split(r"\n(?=\S)", block)
        return "\n".join(_item(*_COLUMNS.split(entry, maxsplit=1)) for entry in entries)
    return f"```text\n{block}\n```" if columns > 2 else block


def _item(names: str, text: str) -> str:
    return f"- {', '.join(f'`{name}`' for name in names.split(', '))}: {' '.join(text.split())}"
