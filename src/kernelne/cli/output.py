"""Printing: messages to standard error, tables and JSON to standard output."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelne.errors import InputError, MissingDependencyError, shown
from kernelne.progress import reporting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_WIDEST = 200  # characters of a cell on a terminal


class Run:
    """Whether the work has started: from then on a failure exits with 1 instead of 2.

    stopped_by: the signal that stopped the work, if the command has told so.
    last_error: what a signal raised, kept to the end with all that it refers to: the objects of an
        interrupted compiler may not be freed.
    """

    begun = False
    stopped_by: int | None = None
    last_error: BaseException | None = None


def begin() -> None:
    """Mark the start of the work: later failures are not errors in the arguments."""
    Run.begun = True


@contextmanager
def working() -> Iterator[None]:
    """Run a call that first checks its arguments and then works.

    InputErrors and missing packages are found by the checks; all other errors occur during the work.
    """
    try:
        yield
    except (InputError, MissingDependencyError):
        raise
    except BaseException:
        begin()
        raise
    begin()


def say(line: str) -> None:
    """Print a line to standard error, if there is one."""
    if sys.stderr is not None:
        print(shown(line), file=sys.stderr)


def can_ask() -> bool:
    """Whether there is a terminal with someone who can read a question and answer it."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def confirmed(question: str) -> bool:
    """Ask a question on a terminal; Enter means yes, and a terminal that is gone means no."""
    print(shown(f"{question} [Y/n] "), end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    return bool(answer) and not answer.strip().lower().startswith("n")


def tell(line: str) -> None:
    """Print a line about a file that is written: a full standard output does not make that a failure."""
    try:
        print(shown(line), flush=True)
    except OSError as error:
        say(f"warning: standard output cannot be written: {error.strerror}")
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (what is left in the old one would fail at exit)


def print_json(facts: Any) -> None:
    """Print the facts as JSON on one line."""
    print(json.dumps(facts))


def print_facts(facts: dict[str, Any]) -> None:
    """Print a line with name and value for each fact."""
    for name, value in facts.items():
        if isinstance(value, bool):
            value = "yes" if value else "no"
        text = cell(value) if isinstance(value, str) else f"{value:,}"
        print(f"{name.replace('_', ' '):22} {text}")


def summary(values: dict[str, NDArray[np.float64]]) -> dict[str, float]:
    """Return the means by name, and the standard deviations by the name followed by `_sd`."""
    means = {name: float(array.mean()) for name, array in values.items()}
    return means | {f"{name}_sd": float(array.std()) for name, array in values.items()}


def duration(seconds: float) -> str:
    """Format a time roughly: 0.4 s, 12 s, 3 min, 2.5 h."""
    for limit, unit, digits, name in ((9.5, 1, 1, "s"), (90, 1, 0, "s"), (5400, 60, 0, "min")):
        if seconds < limit:
            return f"{seconds / unit:.{digits}f} {name}"
    return f"{seconds / 3600:.1f} h"


def spread(values: NDArray[np.float64]) -> str:
    """Format mean and standard deviation, or a single value."""
    return f"{values.mean():.3f}" + (f" ± {values.std():.3f}" if values.size > 1 else "")


@contextmanager
def counted(task: str, unit: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of (done, total) that shows progress; its first call marks the start of the work."""
    with reporting(not quiet, task, unit) as report:

        def tell(done: int, total: int) -> None:
            begin()
            report(done, total, math.nan)

        yield tell


def print_scores(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of cells made by `spread`, and explain the sign ±."""
    print_table(columns, rows)
    if any("±" in cell for row in rows for cell in row[1:]):
        print("± is the standard deviation over splits")


def cell(text: str) -> str:
    """Return a text, maybe an id, in one line without control characters; on a terminal not too long."""
    most = _WIDEST if sys.stdout.isatty() else sys.maxsize
    return shown(text, most).replace("\n", "\\n").replace("\t", "\\t")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], text: Sequence[str] = ()) -> None:
    """Print a table; the first column and those named in `text` are aligned to the left."""
    rows = [[cell(text) for text in row] for row in rows]
    left = [number == 0 or name in text for number, name in enumerate(columns)]
    if sys.stdout.isatty():
        _print_rich(columns, rows, left)
        return
    table = [columns, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (c.ljust(w) if at else c.rjust(w) for c, w, at in zip(row, widths, left, strict=True))
        print("  ".join(cells).rstrip())


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[bool]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, at in zip(columns, left, strict=True):
        table.add_column(Text(name), justify="left" if at else "right")
    for row in rows:
        table.add_row(*map(Text, row))  # an id may contain what Rich takes for markup
    Console().print(table)


def write_tables(path: Path, tables: Iterable[Any], overwrite: bool) -> None:
    """Write pyarrow Tables, at least one, below each other as .csv or .parquet, whole or not at all."""
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    from kernelne.io.files import atomic_output

    kind = pq.ParquetWriter if path.suffix.lower() == ".parquet" else pacsv.CSVWriter
    rest = iter(tables)
    first = next(rest)
    with atomic_output(path, overwrite) as temporary, kind(temporary, first.schema) as writer:
        for table in chain([first], rest):
            writer.write_table(table)
