"""Edge lists as text: `read_graph` and `write_graph`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kernelne import _sniff, _tokens
from kernelne._files import atomic_output
from kernelne._ids import id_column, plain_integers, read_ids
from kernelne._tokens import WHITESPACE
from kernelne.errors import FileFormatError, InputError
from kernelne.graph import Graph, graph_from_columns

_SUFFIXES = (".txt", ".tsv", ".csv", ".edges", ".edgelist")
_SAMPLE = 100  # data lines looked at to find the separator
_WRITE_BLOCK = 1 << 18  # edges
# What would not come back as it is from an unquoted field.
_NEEDS_QUOTES = r'^$|^[ #%\x{FEFF}]| $|[\t,;"]'
_NODE_HEADERS = {"id", "ids", "node", "nodes", "node_id", "nodeid", "name", "vertex", "label"}
_HINT_DATA = (
    "; networkx.write_edgelist(..., data=False) writes no attributes, data=['weight'] only the weight"
)
_HINT_WEIGHT = "; weighted=False (--unweighted) ignores the third column"
_EMPTY = pa.scalar("", pa.large_string())


@dataclass(frozen=True)
class _Layout:
    """How to read the lines of a file."""

    separator: int
    n_fields: int  # 0: any number
    n_ids: int
    weighted: bool
    first_line: int  # those before it are not data

    @property
    def between(self) -> str:
        return _sniff.SEPARATORS.get(self.separator, repr(chr(self.separator)))


def read_graph(
    path: str | bytes | os.PathLike[str],
    *,
    directed: bool = False,
    header: bool | None = None,
    weighted: bool | None = None,
    nodes: Any = None,
    separator: str | None = None,
    drop_self_loops: bool = False,
) -> Graph:
    """Read an edge list: on each line a source, a target and, if there is a third field, a weight.

    The file is UTF-8 text named .txt, .tsv, .csv, .edges or .edgelist, with .gz or .zst after it if
    compressed. Blank lines and lines that start with # or % are skipped; blanks around a field do not count.
    Fields stand between tabs, commas or semicolons, and may then be quoted as in CSV, or else between runs of
    blanks.

    Ids are integers when every id is one in its plain spelling, unquoted, and fits int64. Otherwise all are
    strings, kept as they are: `1`, `01` and `1.0` are three nodes. The order of nodes and what becomes of
    repeated edges, self-loops and zero weights is as in `Graph.from_edges`.

    Parameters
    ----------
    directed: whether a line is an arc from source to target.
    header: whether the first data line names the columns. None: it does if its fields are a usual pair of
        names, or if they are not numbers where those below are; if it only might, it is an edge, with a
        warning.
    weighted: whether the third field is a weight: False ignores it, True demands it, None takes it if there.
    nodes: ids to put first, in this order, with or without edges; or the path of a file of them: the first
        field of each line, its header (if header is not False) a name like `id` above integers.
    separator: the character between fields, or tab, comma, semicolon or space; None finds it from the first
        lines, " " is runs of blanks.
    drop_self_loops: leave edges from a node to itself out.
    """
    path = os.fsdecode(path)
    given = _sniff.read_separator(separator)
    _check_suffix(path)
    sample = _sample(path)
    layout = _edge_layout(path, sample, given, header, weighted) if sample else None
    ids: Any = None
    node_layout = None
    if isinstance(nodes, str | bytes | os.PathLike):
        nodes = os.fsdecode(nodes)
        node_layout = _node_layout(_sample(nodes), given, header, layout)
    elif nodes is not None:
        ids = read_ids(nodes, "nodes")
    strings_given = ids is not None and len(ids) > 0 and not pa.types.is_integer(ids.type)
    for as_text in (True,) if strings_given else (False, True):
        if node_layout is not None:
            listed = _read_columns(nodes, node_layout, as_text)
            if listed is None:
                continue
            ids = listed[0][0]
        edges = ([], None) if layout is None else _read_columns(path, layout, as_text)
        if edges is not None:
            break
    assert edges is not None  # as text, every file can be read or is an error
    columns, weights = edges
    empty = pa.chunked_array([], pa.null())
    sources, targets = columns or (empty, empty)
    if not len(sources) and (ids is None or not len(ids)):
        only_header = layout is not None and header is None
        taken = (
            ": its one line was taken for a header, header=False (--no-header) reads it as an edge"
            if only_header
            else ""
        )
        raise FileFormatError(path, f"no edges in the file{taken}")
    if header is None and layout is not None and layout.first_line == sample[0][0]:
        _warn_of_names(path, layout.first_line, sources, targets, ids)
    table = {"nodes": empty if ids is None else ids, "sources": sources, "targets": targets}
    del columns, edges, sources, targets
    return graph_from_columns(table, weights, directed, drop_self_loops)


def _warn_of_names(path: str | os.PathLike[str], line: int, sources: Any, targets: Any, nodes: Any) -> None:
    """Warn if the first edge may be the names of the columns: it looks so, and its ids come nowhere else."""
    first = [sources[0].as_py(), targets[0].as_py()]
    if not isinstance(first[0], str) or not _sniff.like_names(*first):
        return
    columns = [c for c in (sources, targets, nodes) if c is not None and not pa.types.is_integer(c.type)]
    if all(sum(pc.sum(pc.equal(c, name)).as_py() or 0 for c in columns if len(c)) == 1 for name in first):
        warnings.warn(
            f"{os.fspath(path)}:{line}: {', '.join(first)!r} was read as an edge; if it names the columns, "
            "pass header=True (--header)",
            stacklevel=3,
        )


def write_graph(graph: Graph, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write the edges of a graph, each once, in lines of source, target and, if it has them, weight.

    Fields stand between tabs (commas in .csv). The suffix is one of those `read_graph` knows; .gz or .zst
    after it compresses. The file appears whole or not at all. It does not tell whether the graph is directed,
    nor the order of nodes, nor nodes without edges, which are left out with a warning:
    `read_graph(path, directed=graph.directed, nodes=graph.nodes)` gives the same graph back.
    """
    compression, suffix = _check_suffix(path)
    ids = id_column(graph.nodes)
    if ids is None:
        raise InputError("only graphs whose ids are all ints or all strs can be written as text")
    separator = "," if suffix == ".csv" else "\t"
    isolated = graph.degrees == 0
    isolated[graph.neighbours] = False
    labels = _labels(ids, isolated)
    if n_isolated := int(np.count_nonzero(isolated)):
        warnings.warn(
            f"{n_isolated} nodes without edges are left out of {os.fspath(path)}: "
            "read_graph(..., nodes=) (--nodes) brings them back",
            stacklevel=2,
        )
    with atomic_output(path, overwrite) as temporary:
        blocks = _edge_lines(graph, labels, separator)
        with (
            open(temporary, "wb") as file,  # by Python: pyarrow takes no name that is not UTF-8
            pa.output_stream(file, compression=compression) as out,
        ):
            for number, lines in enumerate(blocks):
                if number == 0:
                    first_two = [
                        _sniff.split(line.as_py()[:-1].encode(), ord(separator)) for line in lines[:2]
                    ]
                    first_ids = (first_two[0][0].text, first_two[0][1].text)
                    if _sniff.is_header(first_two) or _sniff.like_names(*first_ids):
                        # Without a true header the reader would take the first edge for one.
                        names = ["source", "target", "weight"][: len(first_two[0])]
                        out.write(separator.join(names).encode() + b"\n")
                _, offsets, text = lines.buffers()
                out.write(text.slice(0, int(np.frombuffer(offsets, np.int64)[len(lines)])))


def _labels(ids: Any, isolated: NDArray[np.bool_]) -> Any:
    """Ids as they stand in a file, a large_string array; those that would be misread are quoted."""
    if pa.types.is_integer(ids.type):
        return ids.cast(pa.large_string())
    refused = pc.filter(ids, pc.match_substring_regex(ids, r"[\n\r\x00]"))
    if len(refused):
        raise InputError(
            f"the id {refused[0].as_py()!r} holds a line end or NUL and cannot be written as text"
        )
    written = ids.filter(pa.array(~isolated))
    if plain_integers(written) is not None:
        unsafe = pa.scalar(True)  # unquoted, they would all come back as integers
    else:
        unsafe = pc.match_substring_regex(ids, _NEEDS_QUOTES)
    mark = pa.scalar('"', pa.large_string())
    quoted = pc.binary_join_element_wise(mark, pc.replace_substring(ids, '"', '""'), mark, _EMPTY)
    return pc.if_else(unsafe, quoted, ids)


def _edge_lines(graph: Graph, labels: Any, separator: str) -> Iterator[Any]:
    """Blocks of lines, large_string arrays that are not empty, each edge once."""
    between, end = pa.scalar(separator, pa.large_string()), pa.scalar("\n", pa.large_string())
    for start in range(0, len(graph.neighbours), _WRITE_BLOCK):
        targets = graph.neighbours[start : start + _WRITE_BLOCK]
        entries = np.arange(start, start + len(targets))
        sources = np.searchsorted(graph.offsets, entries, side="right") - 1
        if not graph.directed:
            once = sources <= targets
            sources, targets, entries = sources[once], targets[once], entries[once]
        parts = [labels.take(pa.array(sources)), between, labels.take(pa.array(targets))]
        if graph.weights is not None:
            parts += [between, pa.array(graph.weights[entries]).cast(pa.large_string())]
        if len(sources):
            yield pc.binary_join_element_wise(*parts, end, _EMPTY)


def _check_suffix(path: str | os.PathLike[str]) -> tuple[str | None, str]:
    """Compression and suffix of the format, from the name."""
    name = Path(path).name.lower()
    compression = _tokens.compression_of(name)
    suffix = Path(Path(name).stem).suffix if compression else Path(name).suffix
    if suffix not in _SUFFIXES:
        raise FileFormatError(
            path,
            f"unknown suffix: known are {' '.join(_SUFFIXES)}, each also with .gz or .zst after it",
        )
    return compression, suffix


def _sample(path: str | os.PathLike[str]) -> list[tuple[int, bytes]]:
    """Number and bytes of the first data lines."""
    return list(islice(_tokens.data_lines(path), _SAMPLE))


def _edge_layout(
    path: str | os.PathLike[str],
    sample: Sequence[tuple[int, bytes]],
    separator: int | None,
    header: bool | None,
    weighted: bool | None,
) -> _Layout:
    line, raw = sample[0]
    if separator is None:
        for number, candidate in sample:
            # Attributes hold commas: to go by those would give ids that are no ids.
            if [field.text[0] for field in _sniff.split(candidate, WHITESPACE)][2:3] == ["{"]:
                expected = "expected 2 or 3 fields" + _HINT_DATA
                raise FileFormatError(path, expected, line=number, text=_tokens.text_of(candidate))
        separator = _sniff.find_separator([raw for _, raw in sample])
    fields = _sniff.split(raw, separator)
    layout = _Layout(separator, len(fields), 2, len(fields) == 3 and weighted is not False, line)
    if not fields:
        raise _line_error(path, _tokens.BAD_QUOTE, layout, line, _tokens.text_of(raw))
    wanted = "3 fields (weighted=True, --weighted)" if weighted else "2 or 3 fields"
    if len(fields) not in ((3,) if weighted else (2, 3)):
        expected = f"expected {wanted} between {layout.between}, a source, a target and a weight"
        if len(fields) > 3:
            expected += f": keep the two or three wanted, for example with: {_sniff.cut_command(separator)}"
        raise FileFormatError(path, expected, line=line, text=_tokens.text_of(raw))
    if header is None:
        header = _sniff.is_header([_sniff.split(raw, separator) for _, raw in sample])
    return replace(layout, first_line=line + header)


def _node_layout(
    sample: Sequence[tuple[int, bytes]], separator: int | None, header: bool | None, edges: _Layout | None
) -> _Layout:
    """Layout of a file of ids: separated like the edges unless every line has a tab, comma or semicolon."""
    if separator is None:
        marks = [
            mark for mark in b"\t,;" if sample and all(len(_sniff.split(raw, mark)) > 1 for _, raw in sample)
        ]
        separator = [*marks, WHITESPACE if edges is None else edges.separator][0]
    first = [fields[0] for fields in (_sniff.split(raw, separator) for _, raw in sample[:2]) if fields]
    # Only a usual name above integers: a node taken for a header would be lost.
    named = len(first) == 2 and first[1].is_integer and first[0].text.lower() in _NODE_HEADERS
    has_header = header is not False and named
    return _Layout(separator, 0, 1, False, sample[0][0] + 1 if has_header else 0)


def _read_columns(
    path: str | os.PathLike[str], layout: _Layout, as_text: bool
) -> tuple[list[Any], NDArray[np.float64] | None] | None:
    """Id columns as `read_ids` returns them, and weights; None when an id is not an integer but must be."""
    lines = _tokens.BUFFER // 2 + 1  # no data line is shorter than "1\n"
    ids = np.empty((2, 0 if as_text else lines), np.int64)
    text = np.empty((2, _tokens.BUFFER if as_text else 0), np.uint8)
    ends = np.zeros((2, lines + 1 if as_text else 0), np.int32)
    weights = np.empty(lines if layout.weighted else 0)
    pieces: list[list[Any]] = [[] for _ in range(layout.n_ids)]
    weight_pieces = [np.empty(0)]
    line = 0
    for buffer, start, stop in _tokens.chunks(path):
        _tokens.check_text(path, buffer, start, stop, line)
        count, status, position, line = _tokens.scan(
            buffer, start, stop, line, layout.first_line, layout.separator, layout.n_fields, layout.n_ids,
            layout.n_ids, layout.weighted, as_text, (ids, weights, text, ends),
        )  # fmt: skip
        if status == _tokens.NOT_INTEGER:
            return None
        if status != _tokens.OK:
            raise _line_error(path, status, layout, line, _tokens.text_at(buffer, position))
        for k in range(layout.n_ids if count else 0):
            if as_text:
                bounds = pa.py_buffer(ends[k, : count + 1].copy())
                data = pa.py_buffer(text[k, : ends[k, count]].copy())
                pieces[k].append(pa.Array.from_buffers(pa.string(), count, [None, bounds, data]))
            else:
                pieces[k].append(_compact(ids[k, :count]))
        weight_pieces.append(weights[:count].copy() if layout.weighted else weights[:0])
    columns = [_column(chunks) for chunks in pieces]
    return columns, np.concatenate(weight_pieces) if layout.weighted else None


def _compact(ids: NDArray[np.int64]) -> Any:
    fits = ids.min() >= -(2**31) and ids.max() < 2**31
    return pa.array(ids.astype(np.int32 if fits else np.int64))


def _column(chunks: list[Any]) -> Any:
    """The chunks as one column of the smallest type that holds them all."""
    kinds = {chunk.type for chunk in chunks} or {pa.null()}
    # A string array, so also one of all the different ids, holds at most 2 GiB.
    if pa.string() in kinds and sum(chunk.nbytes for chunk in chunks) >= 2**31:
        kinds.add(pa.large_string())
    kind = pa.large_string() if pa.large_string() in kinds else pa.int64() if len(kinds) > 1 else kinds.pop()
    return pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind)


def _line_error(
    path: str | os.PathLike[str], status: int, layout: _Layout, line: int, text: str
) -> FileFormatError:
    third = _sniff.split(text.encode(), layout.separator)[2:3]
    hint = _HINT_DATA if third and third[0].text.startswith("{") else ""
    if third and third[0].has_decimal_comma:
        hint = f"; decimal comma? write {third[0].text.replace(',', '.')}"
    expected = {
        _tokens.N_FIELDS: f"expected {layout.n_fields} fields between {layout.between} as before{hint}",
        _tokens.EMPTY_ID: "expected an id, found an empty field",
        _tokens.BAD_WEIGHT: f"expected a weight, a finite number not below zero{hint or _HINT_WEIGHT}",
        _tokens.BAD_QUOTE: "expected a closing quote at the end of the field",
        _tokens.BAD_RETURN: "a carriage return inside a line: lines must end in \\n or \\r\\n",
        _tokens.TOO_LONG: f"a line longer than {_tokens.MAX_LINE} bytes: not an edge list",
    }[status]
    return FileFormatError(path, expected, line=line, text=text)
