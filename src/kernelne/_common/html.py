"""Small HTML tables, as notebooks show the objects of this package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def html_table(head: Sequence[Any], rows: Iterable[Sequence[Any]], title: str = "") -> str:
    """Return a table; numbers that are floats are shown with three decimals."""
    top = f"<caption>{escape(title)}</caption>" if title else ""
    names = "".join(f"<th>{escape(str(name))}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table>{top}<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def html_facts(title: str, facts: dict[str, Any]) -> str:
    """Return a table of two columns, names and values; those that are None are left out."""
    return html_table([title, ""], [(name, value) for name, value in facts.items() if value is not None])


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return escape(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
