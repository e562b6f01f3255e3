"""Edge lists as text: each line has a source, a target and optionally a weight."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kernelne.errors import FileFormatError, warn
from kernelne.graph import adapters
from kernelne.graph.edges import edge_blocks, writable_ids
from kernelne.graph.ids import plain_integers, read_ids
from kernelne.graph.ops import isolated_nodes
from kernelne.io.graphs.shared import EdgeColumns, Options, as_text, join, refuse_ids, write_texts
from kernelne.io.text import lines as text_lines
from kernelne.io.text import sniff, tokens
from kernelne.io.text.columns import Layout, read_columns
from kernelne.io.text.tokens import WHITESPACE

if TYPE_CHECKING:
    from kernelne.graph import Graph

_SAMPLE = 100  # data lines used to detect the separator
_MOST_NAMED = 3  # skipped lines listed in a warning
# Ids that would be read differently from an unquoted field.
_NEEDS_QUOTES = r'^$|^[ #%\x{FEFF}]| $|[\t,;"]'
_NODE_HEADERS = {"id", "ids", "node", "nodes", "node_id", "nodeid", "name", "vertex", "label"}
_HINT_DATA = (
    "; networkx.write_edgelist(..., data=False) writes no attributes, data=['weight'] only the weight"
)
_HINT_INDEX = "pandas writes its index unless you pass to_csv(index=False)"
_HINT_WEIGHT = "; weighted=False (--unweighted) ignores the third column"


def read(path: str, options: Options) -> EdgeColumns:
    """Read an edge list; ids are integers if all are, including those of `options.nodes` or its file."""
    nodes, header = options.nodes, options.header
    given = sniff.read_separator(options.separator)
    sample = _sample(path)
    layout = _edge_layout(path, sample, given, options) if sample else None
    ids: Any = None
    node_layout = None
    if isinstance(nodes, str):
        node_layout = _node_layout(_sample(nodes), given, header, layout)
    elif nodes is not None:
        ids = read_ids(nodes, "nodes")
    bad = np.empty(_MOST_NAMED + 1 if options.skip_bad else 0, np.int64)
    strings_given = ids is not None and len(ids) > 0 and not pa.types.is_integer(ids.type)
    for as_strings in (True,) if strings_given else (False, True):
        if node_layout is not None:
            listed = read_id_columns(nodes, node_layout, as_strings)
            if listed is None:
                continue
            ids = listed[0][0]
        edges = ([], None) if layout is None else read_id_columns(path, layout, as_strings, bad)
        if edges is not None:
            break
    assert edges is not None  # with string ids, every file is read or raises
    if layout is not None and bad.any():
        _warn_of_bad(path, layout, bad)
    columns, weights = edges
    empty = pa.chunked_array([], pa.null())
    sources, targets = columns or (empty, empty)
    if not len(sources) and (ids is None or not len(ids)):
        only_header = layout is not None and header is None
        taken = (
            ": its only line was read as a header; header=False (--no-header) reads it as an edge"
            if only_header
            else ""
        )
        raise FileFormatError(path, f"no edges in the file{taken}")
    if header is None and layout is not None and layout.first_line == sample[0][0]:
        _warn_of_names(path, layout.first_line, sources, targets, ids)
    return EdgeColumns(ids, sources, targets, weights, None)


def read_nodes(path: str, options: Options, as_strings: bool) -> Any:
    """Read the column of node ids of a file; integers if all are, unless `as_strings`."""
    layout = _node_layout(_sample(path), sniff.read_separator(options.separator), options.header, None)
    listed = None if as_strings else read_id_columns(path, layout, False)
    found = listed or read_id_columns(path, layout, True)
    assert found is not None  # with string ids, every file is read or raises
    return found[0][0]


def _warn_of_names(path: str | os.PathLike[str], line: int, sources: Any, targets: Any, nodes: Any) -> None:
    """Warn if the first edge may be a header: it looks like one, and its ids occur nowhere else."""
    first = [sources[0].as_py(), targets[0].as_py()]
    if not isinstance(first[0], str) or not sniff.like_names(*first):
        return
    columns = [c for c in (sources, targets, nodes) if c is not None and not pa.types.is_integer(c.type)]
    if all(sum(pc.sum(pc.equal(c, name)).as_py() or 0 for c in columns if len(c)) == 1 for name in first):
        warn(
            f"{os.fspath(path)}:{line}: {', '.join(first)!r} was read as an edge; if it names the columns, "
            "pass header=True (--header)"
        )


def _warn_of_bad(path: str | os.PathLike[str], layout: Layout, bad: NDArray[np.int64]) -> None:
    """Warn of skipped lines: `bad` is their count, then the numbers of the first of them."""
    n_bad, named = int(bad[0]), ", ".join(map(str, bad[1 : bad[0] + 1]))
    weight = ", with a weight that is finite and not negative" if layout.weighted else ""
    warn(
        f"{os.fspath(path)}: {n_bad:,} {'lines' if n_bad > 1 else 'line'} left out, "
        f"{named}{', …' if n_bad > _MOST_NAMED else ''}: expected {layout.n_fields} fields separated by "
        f"{layout.between}{weight}"
    )


def losses(graph: Graph) -> list[str]:
    """Return what the format cannot store."""
    n_isolated = int(np.count_nonzero(isolated_nodes(graph)))
    return [f"{n_isolated} nodes without edges"] if n_isolated else []


def write(graph: Graph, out: BinaryIO, separator: str) -> None:
    """Write lines of source, target and, if weighted, weight; with a header only if the reader needs one."""
    names = _names_in_file(writable_ids(graph), isolated_nodes(graph))
    for number, (sources, targets, weights) in enumerate(edge_blocks(graph)):
        parts = [names.take(pa.array(sources)), separator, names.take(pa.array(targets))]
        if weights is not None:
            parts += [separator, as_text(weights)]
        lines = join(*parts, "\n")
        if number == 0:
            first_two = [sniff.split(line.as_py()[:-1].encode(), ord(separator)) for line in lines[:2]]
            first_ids = (first_two[0][0].text, first_two[0][1].text)
            if sniff.is_header(first_two) or sniff.like_names(*first_ids):
                # Without a header the reader would read the first edge as one.
                header = ["source", "target", "weight"][: len(first_two[0])]
                out.write(separator.join(header).encode() + b"\n")
        write_texts(out, lines)


def _names_in_file(ids: Any, isolated: NDArray[np.bool_]) -> Any:
    """Return ids as written to a file, a large_string array; ids that would be misread are quoted."""
    if pa.types.is_integer(ids.type):
        return ids.cast(pa.large_string())
    refuse_ids(ids, r"[\n\r\x00]", "contains a line break or NUL and cannot be written as text")
    written = ids.filter(pa.array(~isolated))
    if plain_integers(written) is not None:
        unsafe = pa.scalar(True)  # unquoted, they would all be read as integers
    else:
        unsafe = pc.match_substring_regex(ids, _NEEDS_QUOTES)
    quoted = join('"', pc.replace_substring(ids, '"', '""'), '"')
    return pc.if_else(unsafe, quoted, ids)


def _sample(path: str | os.PathLike[str]) -> list[tuple[int, bytes]]:
    """Return number and bytes of the first data lines."""
    return list(islice(text_lines.data_lines(path), _SAMPLE))


def _edge_layout(
    path: str | os.PathLike[str],
    sample: Sequence[tuple[int, bytes]],
    separator: int | None,
    options: Options,
) -> Layout:
    line, raw = sample[0]
    header, weighted = options.header, options.weighted
    if separator is None:
        for number, candidate in sample:
            # Attributes contain commas: splitting by commas would give wrong ids.
            if [field.text[0] for field in sniff.split(candidate, WHITESPACE)][2:3] == ["{"]:
                expected = "expected 2 or 3 fields" + _HINT_DATA
                raise FileFormatError(path, expected, line=number, text=text_lines.shown(candidate))
        separator = sniff.find_separator([raw for _, raw in sample])
    fields = sniff.split(raw, separator)
    layout = Layout(separator, len(fields), 2, len(fields) == 3 and weighted is not False, line)
    if not fields:
        raise _line_error(path, layout, tokens.BAD_QUOTE, line, text_lines.shown(raw))
    wanted = "3 fields (weighted=True, --weighted)" if weighted else "2 or 3 fields"
    if len(fields) not in ((3,) if weighted else (2, 3)):
        expected = f"expected {wanted} separated by {layout.between}: a source, a target and a weight"
        if len(fields) > 3:
            expected += f"; select the columns to keep, for example with: {sniff.cut_command(separator)}"
            expected += f" ({_HINT_INDEX})" * (fields[0] == sniff.Field("", False))
        raise FileFormatError(path, expected, line=line, text=text_lines.shown(raw))
    if header is None:
        rows = [sniff.split(raw, separator) for _, raw in sample]
        header = sniff.is_header([row for row in rows if len(row) == len(fields)])
    if options.header is not False and (remedy := _misplaced(fields, header, options.directed)):
        told = "the first two columns must be source and target, but the header says otherwise"
        raise FileFormatError(path, f"{told}: {remedy}", line=line, text=text_lines.shown(raw))
    return replace(layout, first_line=line + header)


def _misplaced(fields: Sequence[sniff.Field], header: bool, directed: bool | None) -> str | None:
    """Return a remedy if the header says that the first two columns are not source and target; else None.

    A common pair of names in later columns is a header even if `header` is false: no weight is named so.
    """
    names = [field.text.lower() for field in fields]
    pairs = [(names.index(a), names.index(b)) for a, b in adapters.COLUMN_PAIRS if a in names and b in names]
    if len(names) == 3 and not names[0] and (header or pairs):
        return _HINT_INDEX
    if (0, 1) in pairs:
        return None
    is_weight_early = header and len(names) == 3 and "weight" in names[:2]
    is_pair_late = pairs and (pairs[0] != (1, 0) or (header and directed))
    if not is_weight_early and not is_pair_late:
        return None
    return (
        "reorder the columns, or use Graph.from_table(pandas.read_csv(path)), which finds them by name; "
        "header=False (--no-header) reads this line as an edge"
    )


def _node_layout(
    sample: Sequence[tuple[int, bytes]], separator: int | None, header: bool | None, edges: Layout | None
) -> Layout:
    """Return the layout of a file of ids: as for edges unless every line has a tab, comma or semicolon."""
    if separator is None:
        marks = [
            mark for mark in b"\t,;" if sample and all(len(sniff.split(raw, mark)) > 1 for _, raw in sample)
        ]
        separator = [*marks, WHITESPACE if edges is None else edges.separator][0]
    first = [fields[0] for fields in (sniff.split(raw, separator) for _, raw in sample[:2]) if fields]
    # Only a common name above integers: a node read as a header would be lost.
    named = len(first) == 2 and first[1].is_integer and first[0].text.lower() in _NODE_HEADERS
    has_header = header is not False and named
    return Layout(separator, 0, 1, False, sample[0][0] + 1 if has_header else 0)


def read_id_columns(
    path: str | os.PathLike[str], layout: Layout, as_strings: bool, bad: NDArray[np.int64] | None = None
) -> tuple[list[Any], NDArray[np.float64] | None] | None:
    """Read the columns of an edge list or of a file of node ids; errors name its fields."""
    return read_columns(path, layout, as_strings, partial(_line_error, path, layout), bad)


def _line_error(
    path: str | os.PathLike[str], layout: Layout, status: int, line: int, text: str
) -> FileFormatError:
    third = sniff.split(text.encode(), layout.separator)[2:3]
    hint = _HINT_DATA if third and third[0].text.startswith("{") else ""
    if third and third[0].has_decimal_comma:
        hint = f"; decimal comma? write {third[0].text.replace(',', '.')}"
    expected = {
        tokens.N_FIELDS: f"expected {layout.n_fields} fields separated by {layout.between} as before{hint}",
        tokens.EMPTY_ID: "expected an id, found an empty field",
        tokens.BAD_WEIGHT: f"expected a weight, a finite number that is not negative{hint or _HINT_WEIGHT}",
        tokens.BAD_QUOTE: "expected a closing quote at the end of the field",
        tokens.BAD_RETURN: "a carriage return inside a line: lines must end in \\n or \\r\\n",
        tokens.TOO_LONG: f"a line longer than {text_lines.MAX_LINE} bytes: not an edge list",
    }[status]
    return FileFormatError(path, expected, line=line, text=text)
