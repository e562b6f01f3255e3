"""Pajek (.net): numbered vertices with labels, then edges and arcs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne.errors import FileFormatError, warn
from kernelne.graph.edges import edge_blocks, writable_ids
from kernelne.graph.ids import plain_integers
from kernelne.io.graphs.shared import (
    GOOD_WEIGHT,
    EdgeColumns,
    Options,
    as_text,
    check_declared,
    column,
    escape,
    join,
    take,
    unescape,
    write_texts,
)
from kernelne.io.text import lines as text_lines
from kernelne.io.text.words import Words

if TYPE_CHECKING:
    from kernelne.graph import Graph

_SECTION = re.compile(rb"^[ \t]*\*([A-Za-z]*)([^\r\n]*)", re.MULTILINE)
_VERTEX = re.compile(r'[ \t]*([0-9]{1,10})(?:$|[ \t]+(?:"([^"]*)"|([^" \t]\S*))(?=[ \t]|$))')
_DIRECTED = {"edges": False, "edgeslist": False, "arcs": True, "arcslist": True}
_MOST = 2**31 - 1  # vertices


def read(path: str, options: Options) -> EdgeColumns:
    """Read Pajek; ids are the labels if every vertex has one, integers if all are and unquoted; else 1 … n.

    If there are both arcs and edges, the graph is directed, and each edge becomes two arcs.
    """
    data = text_lines.read_text(path)
    content = data.tobytes()
    sections = list(_SECTION.finditer(content))
    names = None
    parts: list[tuple[bool, NDArray[Any], NDArray[Any], NDArray[np.float64] | None]] = []
    seen: set[bool] = set()
    before = content[: sections[0].start() if sections else len(content)]
    line, place = 1, 0
    stops = [s.start() for s in sections[1:]] + [len(content)]
    for found, stop in zip(sections, stops, strict=False):
        line += content.count(b"\n", place, found.start())
        kind, place = found[1].decode().lower(), found.start()
        if kind == "vertices":
            if names is not None:
                raise FileFormatError(path, "a second *Vertices: more than one network", line=line)
            names = _vertex_ids(
                path, content[found.end() : stop].decode(), found[2].decode(), line, len(data)
            )
        elif kind in _DIRECTED:
            if names is None:
                raise FileFormatError(path, "expected *Vertices before this", line=line, text=f"*{kind}")
            if _DIRECTED[kind] in seen and not content[found.end() : stop].strip():
                continue  # thousands of empty sections cost nothing
            seen.add(_DIRECTED[kind])
            words = Words(path, data, "%", found.end(), stop)
            ends = (_lists if kind.endswith("list") else _pairs)(words, len(names))
            parts.append((_DIRECTED[kind], *ends))
        elif kind != "network":
            known = "*Vertices, *Arcs, *Edges, *Arcslist, *Edgeslist"
            raise FileFormatError(path, f"expected one of {known}", line=line, text=f"*{kind}")
    if names is None or any(line.strip() and line.lstrip()[:1] != b"%" for line in before.splitlines()):
        raise FileFormatError(path, "expected *Vertices and their number", line=1)
    return _edges(names, parts, options.directed is not False)


def _edges(names: Any, parts: list[Any], keeps_arcs: bool) -> EdgeColumns:
    # Files often have both *Arcs and *Edges, one of them empty.
    directed = any(arcs for arcs, *_ in [part for part in parts if len(part[1])] or parts)
    if directed and keeps_arcs:  # an edge becomes two arcs, a self-loop one
        for _, sources, targets, weights in [part for part in parts if not part[0]]:
            back = sources != targets
            mirrored = None if weights is None else weights[back]
            parts.append((True, targets[back], sources[back], mirrored))
    weighted = any(weights is not None for *_, weights in parts)
    columns: list[list[Any]] = [[np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]]
    for _, sources, targets, weights in parts:
        columns[0].append(sources)
        columns[1].append(targets)
        columns[2].append(np.ones(len(sources)) if weights is None else weights)
    sources, targets, weights = map(np.concatenate, columns)
    return EdgeColumns(
        column(names), take(names, sources), take(names, targets), weights if weighted else None, directed
    )


def _vertex_ids(path: str, text: str, sizes: str, line: int, size: int) -> Any:
    """Return the ids of the vertices, an int64 or large_string array."""
    found = re.match(r"\s+([0-9]{1,10})(?=\s|$)", sizes)
    if found is None or int(found[1]) > _MOST:
        raise FileFormatError(
            path, "expected *Vertices and their number", line=line, text=f"*vertices{sizes}"
        )
    n = int(found[1])
    check_declared(path, n, size, line)
    labels: dict[int, str] = {}
    quoted = False
    for number, row in enumerate(text.split("\n")[1:], line + 1):
        row = row.rstrip("\r \t")
        if not row or row.lstrip()[0] == "%":
            continue
        match = _VERTEX.match(row)
        if match is None or not 1 <= int(match[1]) <= n:
            told = f'expected a vertex from 1 to {n}, and optionally its "label"'
            raise FileFormatError(path, told, line=number, text=row)
        vertex, in_quotes, plain = int(match[1]), match[2], match[3]
        if vertex in labels:
            raise FileFormatError(path, f"vertex {vertex} appears twice", line=number, text=row)
        if in_quotes is not None or plain is not None:
            labels[vertex] = plain if in_quotes is None else in_quotes
            quoted |= in_quotes is not None
    if len(labels) < n:
        if labels:
            warn(f"{path}: only {len(labels)} of {n} vertices have labels: ids are 1 … {n}")
        return pa.array(np.arange(1, n + 1))
    ids = pa.array([unescape(labels[vertex]) for vertex in range(1, n + 1)], pa.large_string())
    numbers = None if quoted else plain_integers(ids)
    ids = ids if numbers is None else numbers
    if len(ids.unique()) < n:
        raise FileFormatError(path, "two vertices have the same label: make labels unique", line=line)
    return ids


def _first_words(words: Words) -> NDArray[np.int64]:
    """Return the index of the first token of each non-blank line."""
    return np.flatnonzero(np.diff(words.rows, prepend=-1))


def _vertex_rows(words: Words, places: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Parse vertices as rows."""
    expected = f"expected a vertex from 1 to {n}"
    rows = words.integers(places, expected) - 1
    outside = np.flatnonzero((rows < 0) | (rows >= n))
    if len(outside):
        raise words.error(expected, int(places[outside[0]]))
    return rows


def _pairs(words: Words, n: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]:
    """Parse lines of two vertices and an optional weight (default 1); further tokens are ignored."""
    first = _first_words(words)
    sizes = np.diff(first, append=len(words.rows))
    if (sizes < 2).any():
        raise words.error("expected two vertices and optionally a weight", int(first[np.argmax(sizes < 2)]))
    sources, targets = _vertex_rows(words, first, n), _vertex_rows(words, first + 1, n)
    with_weight = sizes > 2
    if not with_weight.any():
        return sources, targets, None
    weights = np.ones(len(first))
    weights[with_weight] = words.weights(first[with_weight] + 2, GOOD_WEIGHT)
    return sources, targets, weights


def _lists(words: Words, n: int) -> tuple[NDArray[Any], NDArray[Any], None]:
    """Parse lines of a vertex and its neighbours."""
    first = _first_words(words)
    rows = _vertex_rows(words, np.arange(len(words.rows)), n)
    heads = np.repeat(first, np.diff(first, append=len(rows)))
    others = np.flatnonzero(np.arange(len(rows)) != heads)
    return rows[heads[others]], rows[others], None


def write(graph: Graph, out: BinaryIO) -> None:
    """Write Pajek; string ids are quoted, with all but printable ASCII as &#N;; integers are not."""
    ids = writable_ids(graph)
    labels = ids.cast(pa.large_string()) if pa.types.is_integer(ids.type) else join('"', escape(ids), '"')
    out.write(f"*Vertices {graph.n_nodes}\n".encode())
    write_texts(out, join(as_text(np.arange(1, graph.n_nodes + 1)), " ", labels, "\n"))
    out.write(b"*Arcs\n" if graph.directed else b"*Edges\n")
    for sources, targets, weights in edge_blocks(graph):
        parts = [as_text(sources + 1), " ", as_text(targets + 1)]
        if weights is not None:
            parts += [" ", as_text(weights)]
        write_texts(out, join(*parts, "\n"))
