"""Our docstrings as Markdown, for the reference of the site.

A docstring has paragraphs; examples that start with >>>; headings with a line of dashes below; lists of entries
`name: text`, `name, name: text`, with further lines of an entry indented; and tables whose columns are set apart
by two blanks or more.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_HEADING = re.compile(r"(\w[\w ]*)\n-{3,}(?:\n|$)")
_NAMES = r"\*{0,2}\w+(?:, \*{0,2}\w+)*"
_BROKEN = re.compile(rf"^({_NAMES},)\n", re.MULTILINE)  # names that go on in the next line
_ENTRY = re.compile(rf"^(?={_NAMES}: )", re.MULTILINE)
_COLUMNS = re.compile(r"\S+(?: \S+)* {2,}\S")


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
        return "\n".join(map(_item, _ENTRY.split(joined)[1:]))
    if _COLUMNS.match(block):
        return f"```text\n{block}\n```"
    return block


def _item(entry: str) -> str:
    names, text = " ".join(entry.split()).split(": ", 1)
    return f"- {', '.join(f'`{name}`' for name in names.split(', '))}: {text}"
