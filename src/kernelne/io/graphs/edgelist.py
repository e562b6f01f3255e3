"""Edge lists as text: each line has a source, a target and optionally a weight and other columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kernelne.errors import FileFormatError, InputError, ParameterError, warn
from kernelne.graph.edges import edge_blocks, writable_ids
from kernelne.graph.ids import plain_integers, read_ids
from kernelne.graph.ops import isolated_nodes
from kernelne.graph.tables import Columns, apart, choose_columns
from kernelne.graph.times import timed
from kernelne.io.graphs.shared import (
    GOOD_WEIGHT,
    EdgeColumns,
    Options,
    as_text,
    join,
    refuse_ids,
    write_texts,
)
from kernelne.io.text import lines as text_lines
from kernelne.io.text import sniff, tokens
from kernelne.io.text.columns import Layout, NotIntegerError, column_blocks, read_columns
from kernelne.io.text.tokens import WHITESPACE

if TYPE_CHECKING:
    from kernelne.graph import Graph

_MOST_NAMED = 3  # skipped lines listed in a warning
# Ids that would be read differently from an unquoted field.
_NEEDS_QUOTES = r'^$|^[ #%\x{FEFF}]| $|[\t,;"]'
_NODE_HEADERS = {"id", "ids", "node", "nodes", "node_id", "nodeid", "name", "vertex", "label"}
_HINT_DATA = (
    "; networkx.write_edgelist(..., data=False) writes no attributes, data=['weight'] only the weight"
)
_HINT_WEIGHT = "; weighted=False (--unweighted) ignores it"
_HINT_SKIP = "; skip_bad=True (--skip-bad) leaves out such lines"


@dataclass(frozen=True)
class EdgeFile:
    """How an edge list is read, as found from its first lines.

    sample: its first lines of data. layout: None if there are none. doubtful: the first of them, read as an
    edge, may be a header. given: column of node ids that were given, None without. node_layout: how their
    file is read, if they are in one.
    """

    path: str
    options: Options
    sample: Sequence[tuple[int, bytes]]
    layout: Layout | None
    doubtful: bool
    given: Any
    node_layout: Layout | None

    @classmethod
    def open(cls, path: str, options: Options) -> EdgeFile:
        nodes = options.nodes
        separator = sniff.read_separator(options.separator)
        sample = text_lines.sample_lines(path)
        layout, doubtful = _edge_layout(path, sample, separator, options) if sample else (None, False)
        given = node_layout = None
        if isinstance(nodes, str):
            node_layout = _node_layout(text_lines.sample_lines(nodes), separator, options.header, layout)
        elif nodes is not None:
            given = read_ids(nodes, "nodes")
        return cls(path, options, sample, layout, doubtful, given, node_layout)

    def as_strings(self) -> tuple[bool, ...]:
        """Whether ids are to be read as strings: ways to try in turn. Integers, unless an id is not one."""
        strings = self.given is not None and len(self.given) and not pa.types.is_integer(self.given.type)
        return (True,) if strings else (False, True)

    def nodes(self, as_strings: bool) -> Any:
        """Return the column of the node ids that come first, None without; raises NotIntegerError."""
        if self.node_layout is None:
            return self.given
        listed = read_id_columns(self.options.nodes, self.node_layout, as_strings)
        if listed is None:
            raise NotIntegerError
        return listed[0][0]

    def blocks(
        self, as_strings: bool, bad: NDArray[np.int64], unpacked: int
    ) -> Iterator[tuple[list[Any], NDArray[np.float64], int]]:
        """Yield ids, weights and number of bytes of some lines at a time, as `column_blocks` does."""
        if self.layout is not None:
            line_error = partial(_line_error, self.path, self.layout)
            yield from column_blocks(self.path, self.layout, as_strings, line_error, bad, unpacked)

    def names(self) -> list[str]:
        """Return the names of the columns of ids; source and target if there is no header."""
        assert self.layout is not None
        if self.layout.first_line <= self.sample[0][0]:
            return ["source", "target"]
        header = sniff.split(self.sample[0][1], self.layout.separator)
        return [header[place].text for place in self.layout.places[:2]]

    def refuse_empty(self) -> FileFormatError:
        """Return the error about a file without edges."""
        only_header = self.layout is not None and self.options.header is None
        taken = (
            ": its only line was read as a header; header=False (--no-header) reads it as an edge"
            if only_header
            else ""
        )
        return FileFormatError(self.path, f"no edges in the file{taken}")

    def refuse_names(self, counts: NDArray[np.int64]) -> None:
        """Raise FileFormatError if the first edge, whose ids appear that often, may be a header."""
        if (counts == 1).all():
            line, raw = self.sample[0]
            told = "are these column names, or an edge? header=True (--header) or header=False (--no-header)"
            raise FileFormatError(self.path, told, line=line, text=text_lines.shown(raw))

    def warn_of_bad(self, bad: NDArray[np.int64]) -> None:
        """Warn of skipped lines: `bad` is their count, then the numbers of the first of them."""
        layout = self.layout
        if layout is None or not bad.any():
            return
        n_bad, named = int(bad[0]), ", ".join(map(str, bad[1 : bad[0] + 1]))
        weight = ", with a weight that is finite and not negative" if layout.weight is not None else ""
        warn(
            f"{self.path}: {n_bad:,} {'lines' if n_bad > 1 else 'line'} left out, "
            f"{named}{', …' if n_bad > _MOST_NAMED else ''}: expected {layout.n_fields} fields separated by "
            f"{layout.between}{weight}"
        )


def read(path: str, options: Options) -> EdgeColumns:
    """Read an edge list; ids are integers if all are, including those of `options.nodes` or its file."""
    file = EdgeFile.open(path, options)
    bad = no_bad_lines(options)
    for as_strings in file.as_strings():
        with suppress(NotIntegerError):
            ids = file.nodes(as_strings)
            layout = file.layout
            edges = ([], None) if layout is None else read_id_columns(path, layout, as_strings, bad)
            if edges is not None:  # with string ids, every file is read or raises
                break
    assert edges is not None
    file.warn_of_bad(bad)
    (columns, weights), times = edges, None
    empty = pa.chunked_array([], pa.null())
    sources, targets = columns[:2] or (empty, empty)
    try:
        if len(columns) == 3:
            weights, times = timed(weights, columns.pop(), options.time, options.half_life)
        if layout is not None:
            sources, targets = apart(sources, targets, file.names(), options.bipartite)
    except ParameterError:
        raise
    except InputError as error:
        raise FileFormatError(path, str(error)) from None
    if not len(sources) and (ids is None or not len(ids)):
        raise file.refuse_empty()
    if file.doubtful and len(sources):
        first = sources[0].as_py(), targets[0].as_py()
        file.refuse_names(occurrences(first, [c for c in (sources, targets, ids) if c is not None]))
    return EdgeColumns(ids, sources, targets, weights, None, times)


def no_bad_lines(options: Options) -> NDArray[np.int64]:
    """Return the counters of skipped lines; they are empty if no line is to be skipped."""
    return np.zeros(_MOST_NAMED + 1 if options.skip_bad else 0, np.int64)


def occurrences(names: Sequence[Any], columns: Sequence[Any]) -> NDArray[np.int64]:
    """Return how often these ids appear in columns of strings."""
    texts = [column for column in columns if len(column) and not pa.types.is_integer(column.type)]
    counts = [sum(pc.sum(pc.equal(column, name)).as_py() or 0 for column in texts) for name in names]
    return np.array(counts)


def read_nodes(path: str, options: Options, as_strings: bool) -> Any:
    """Read the column of node ids of a file; integers if all are, unless `as_strings`."""
    layout = _node_layout(
        text_lines.sample_lines(path), sniff.read_separator(options.separator), options.header, None
    )
    listed = None if as_strings else read_id_columns(path, layout, False)
    found = listed or read_id_columns(path, layout, True)
    assert found is not None  # with string ids, every file is read or raises
    return found[0][0]


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
            rows = [
                sniff.split(line.as_py()[:-1].encode(), ord(separator)) for line in lines[: text_lines.SAMPLE]
            ]
            if sniff.is_header(rows) is not False:
                # Without a header the reader would read the first edge as one, or ask.
                header = ["source", "target", "weight"][: len(rows[0])]
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


def _edge_layout(
    path: str | os.PathLike[str],
    sample: Sequence[tuple[int, bytes]],
    separator: int | None,
    options: Options,
) -> tuple[Layout, bool]:
    """Return how to read the lines, and whether the first of them, read as an edge, may be a header."""
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
    sniff.check_width(path, line, raw, fields)
    layout = Layout(separator, len(fields), (0, 1), line)
    if not fields:
        raise _line_error(path, layout, tokens.BAD_QUOTE, line, text_lines.shown(raw))
    if len(fields) < 2:
        expected = f"expected 2 or 3 fields separated by {layout.between}: a source, a target and a weight"
        raise FileFormatError(path, expected, line=line, text=text_lines.shown(raw))
    rows = [sniff.split(raw, separator) for _, raw in sample]
    rows = [row for row in rows if len(row) == len(fields)]
    given = {str(name) for name in (options.source, options.target, options.weight, options.time) if name}
    told: bool | None = header
    if told is None and given and given <= {field.text for field in fields}:
        told = True
    if told is None:
        told = sniff.is_header(rows)
    try:
        chosen = _chosen(rows, bool(told), options)
    except InputError as error:
        raise FileFormatError(path, str(error), line=line, text=text_lines.shown(raw)) from None
    weight, time = chosen[2:]
    if weighted and weight is None:
        expected = f"no weights (weighted=True, --weighted): expected 3 fields separated by {layout.between}"
        raise FileFormatError(path, expected, line=line, text=text_lines.shown(raw))
    places = (*chosen[:2], *([] if time is None else [time]))
    names = [f"the column {f.text!r}" if told else f"column {k}" for k, f in enumerate(fields, 1)]
    n_times = len(places) - 2
    found = Layout(
        separator, len(fields), places, line + bool(told), weight, n_times=n_times, told=tuple(names)
    )
    return found, told is None


def _chosen(
    rows: Sequence[Sequence[sniff.Field]], header: bool, options: Options
) -> tuple[int, int, int | None, int | None]:
    """Return the fields of source, target, weight and time of lines, the first of which may be a header."""
    n_fields = len(rows[0])
    asked = options.source, options.target, options.asked_weight, options.time
    if not header and n_fields in (2, 3) and all(name in (None, False) for name in asked):
        return 0, 1, 2 if n_fields == 3 and asked[2] is None else None, None
    names = [field.text for field in rows[0]] if header else [str(k + 1) for k in range(n_fields)]
    places = {name: k for k, name in reversed([*enumerate(names)])}  # the first of equal names
    columns = Columns(names, lambda name: _sampled(rows[header:], places[name]), by_number=True)
    found = choose_columns(columns, *asked)
    if options.source is not None and asked[2] is None and not options.weighted and found.weight is not None:
        fields = [row[places[found.weight]] for row in rows[header:]]
        if 2 * sum(field.is_name for field in fields) > len(fields):
            found = found._replace(weight=None)  # words, such as the kind of an edge in a .sif file
    source, target, weight, time = (None if name is None else places[name] for name in found)
    assert source is not None
    assert target is not None
    return source, target, weight, time


def _sampled(rows: Sequence[Sequence[sniff.Field]], place: int) -> NDArray[Any]:
    """Return the values of a column as numbers if most of them are, else as texts."""
    fields = [row[place] for row in rows]
    numbers = sum(field.is_number or field.has_decimal_comma for field in fields)
    return np.zeros(len(fields)) if 2 * numbers >= len(fields) else np.array([f.text for f in fields])


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
    return Layout(separator, 0, (0,), sample[0][0] + 1 if has_header else 0)


def read_id_columns(
    path: str | os.PathLike[str], layout: Layout, as_strings: bool, bad: NDArray[np.int64] | None = None
) -> tuple[list[Any], NDArray[np.float64] | None] | None:
    """Read the columns of an edge list or of a file of node ids; errors name its fields."""
    return read_columns(path, layout, as_strings, partial(_line_error, path, layout), bad)


def _line_error(
    path: str | os.PathLike[str], layout: Layout, status: int, line: int, text: str
) -> FileFormatError:
    fields = sniff.split(text.encode(), layout.separator)
    third = fields[2 if layout.weight is None else layout.weight :][:1]
    hint = _HINT_DATA if third and third[0].text.startswith("{") else ""
    if third and third[0].has_decimal_comma:
        hint = f"; decimal comma? write {third[0].text.replace(',', '.')}"
    empty = next((k for k, f in enumerate(fields) if k in layout.places and not (f.text or f.quoted)), None)
    kind = "a time" if empty in layout.places[2:] else "an id"
    place = empty if status == tokens.EMPTY_ID else layout.weight
    where = f" in {layout.told[place]}" if layout.told and place is not None else ""
    skip = _HINT_SKIP if layout.told else ""
    expected = {
        tokens.N_FIELDS: f"expected {layout.n_fields} fields separated by {layout.between} as before{hint}",
        tokens.EMPTY_ID: f"expected {kind}{where}, found an empty field{skip}",
        tokens.BAD_WEIGHT: f"{GOOD_WEIGHT} and fits float32{where and ','}{where}"
        f"{hint or skip + _HINT_WEIGHT}",
        tokens.BAD_QUOTE: "expected a closing quote at the end of the field",
        tokens.BAD_RETURN: "a carriage return inside a line: lines must end in \\n or \\r\\n",
        tokens.TOO_LONG: f"a line longer than {text_lines.MAX_LINE} bytes: not an edge list",
    }[status]
    return FileFormatError(path, expected, line=line, text=text)
