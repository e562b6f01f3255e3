"""Write docs/commands.md, the reference of the command line, from the commands themselves.

python docs/_tools/commands.py > docs/commands.md
"""

from __future__ import annotations

import re
from typing import Any

import typer

from kernelne.cli import app

HEAD = """# Commands

Made from the commands by `python docs/_tools/commands.py`; `kernelne COMMAND --help` shows the same.
GRAPH and LABELS are files, `-` for standard input, or names of [datasets](datasets.md);
[formats](formats.md) are found by the suffix. Exit codes: 0 success, 1 failed after the work had
started, 2 invalid arguments or input (nothing was done), 128 plus the number of the signal that ended
it.
"""


def page() -> str:
    command: Any = typer.main.get_command(app)
    parts = [HEAD]
    for name in command.commands:
        parts.append(_section(f"kernelne {name}", command.commands[name]))
    return "\n".join(parts)


def _section(title: str, command: Any) -> str:
    if hasattr(command, "commands"):
        return "\n".join(_section(f"{title} {name}", command.commands[name]) for name in command.commands)
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    shown = " ".join(_metavar(p) if p.required else f"[{_metavar(p)}]" for p in arguments)
    lines = [f"## {title}\n", _plain(command.help or ""), "", f"```sh\n{title} {shown} [OPTIONS]\n```\n"]
    for panel in dict.fromkeys(getattr(p, "rich_help_panel", None) for p in [*arguments, *options]):
        inside = [p for p in [*arguments, *options] if getattr(p, "rich_help_panel", None) == panel]
        lines += [f"| {panel or 'argument or option'} | | default |", "|---|---|---|"]
        lines += [f"| {_names(p)} | {_cell(p.help or '')} | {_cell(_default(p))} |" for p in inside]
        lines.append("")
    return "\n".join(lines)


def _metavar(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return f"{name}…" if argument.nargs == -1 and not name.endswith((".", "…")) else name


def _names(param: Any) -> str:
    if param.param_type_name == "argument":
        return f"`{_metavar(param)}`"
    return ", ".join(f"`{name}`" for name in [*param.opts, *param.secondary_opts])


def _default(param: Any) -> str:
    if isinstance(param.show_default, str):
        return param.show_default
    if param.show_default is False or param.default in (None, False) or callable(param.default):
        return ""
    return str(param.default)


def _plain(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _cell(text: str) -> str:
    return re.sub(r"\\\[", "[", _plain(text)).replace("|", r"\|").replace("\n", " ")


if __name__ == "__main__":
    print(page(), end="")
