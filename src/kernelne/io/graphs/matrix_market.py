"""Matrix Market (.mtx), coordinate format: an adjacency matrix, without node ids."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa

from kernelne.errors import FileFormatError
from kernelne.graph.csr import half
from kernelne.graph.edges import edge_blocks
from kernelne.io.graphs.edgelist import read_id_columns
from kernelne.io.graphs.shared import (
    EdgeColumns,
    Options,
    are_numbered,
    as_text,
    check_declared,
    column,
    join,
    write_texts,
)
from kernelne.io.text import lines as text_lines
from kernelne.io.text.columns import Layout
from kernelne.io.text.tokens import WHITESPACE

if TYPE_CHECKING:
    from kernelne.graph import Graph

_HEADER = "%%MatrixMarket matrix coordinate real|integer|pattern general|symmetric"
_MOST = 2**31 - 1  # rows


def read(path: str, options: Options) -> EdgeColumns:
    """Read nodes 0 … n - 1; `symmetric` is undirected, `general` directed unless options say otherwise."""
    pattern, symmetric = _header(path)
    line, raw = next(text_lines.data_lines(path), (None, b""))
    try:
        n, n_columns, n_entries = map(int, raw.split())
    except ValueError:
        n = n_columns = n_entries = -1
    if min(n, n_columns, n_entries) < 0 or n > _MOST:
        expected = f"expected the numbers of rows, columns (at most {_MOST}) and entries"
        raise FileFormatError(path, expected, line=line, text=text_lines.shown(raw))
    if n != n_columns:
        raise FileFormatError(path, f"the matrix is not square: {n} × {n_columns}", line=line)
    assert line is not None
    weight = None if pattern or options.weighted is False else 2
    layout = Layout(WHITESPACE, 2 if pattern else 3, (0, 1), line + 1, weight)
    found = read_id_columns(path, layout, False)
    if found is None:
        raise _not_integers(path, line)
    (rows, columns), weights = found
    if len(rows) != n_entries:
        raise FileFormatError(path, f"{n_entries} entries are declared, but there are {len(rows)}", line=line)
    check_declared(path, n, n_entries, line)
    i, j = (np.asarray(part).astype(np.int64) - 1 for part in (rows, columns))
    outside = np.flatnonzero((i < 0) | (i >= n) | (j < 0) | (j >= n))
    if len(outside):
        raise _entry_error(path, line, int(outside[0]), f"expected indices from 1 to {n}")
    if not symmetric and options.directed is False:
        kept = half(i, j, weights, n)
        if isinstance(kept, int):
            told = "directed=False (--undirected) needs a symmetric matrix; this entry has no mirror image"
            raise _entry_error(path, line, kept, told)
        i, j, weights = i[kept], j[kept], None if weights is None else weights[kept]
        symmetric = True
    nodes, sources, targets = (column(pa.array(ids)) for ids in (np.arange(n), i, j))
    return EdgeColumns(nodes, sources, targets, weights, not symmetric)


def _header(path: str) -> tuple[bool, bool]:
    """Whether the matrix is a pattern, without values, and whether it is symmetric."""
    buffer, start, stop = next(text_lines.read_chunks(path), (np.zeros(0, np.uint8), 0, 0))
    first = (
        bytes(buffer[start : min(stop, start + 200)]).partition(b"\n")[0].decode("utf-8", "backslashreplace")
    )
    words = first.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise FileFormatError(path, f"expected {_HEADER}", line=1, text=first)
    if words[2] == "array":
        remedy = "Graph.from_scipy(scipy.io.mmread(path)) reads a dense matrix"
        raise FileFormatError(path, f"expected coordinate format; {remedy}", line=1, text=first)
    if words[2] != "coordinate" or words[3] not in ("real", "integer", "pattern", "double"):
        raise FileFormatError(path, f"expected {_HEADER}", line=1, text=first)
    if words[4] not in ("general", "symmetric"):
        raise FileFormatError(path, "expected a general or a symmetric matrix", line=1, text=first)
    return words[3] == "pattern", words[4] == "symmetric"


def _entry_error(path: str, size_line: int, entry: int, expected: str) -> FileFormatError:
    line, raw = next(islice(text_lines.data_lines(path, size_line + 1), entry, None))
    return FileFormatError(path, expected, line=line, text=text_lines.shown(raw))


def _not_integers(path: str, size_line: int) -> FileFormatError:
    """Return the error for the first line whose indices are not integers."""
    for line, raw in text_lines.data_lines(path, size_line + 1):
        if not all(word.isdigit() for word in raw.split()[:2]):
            return FileFormatError(path, "expected two indices", line=line, text=text_lines.shown(raw))
    return FileFormatError(path, "expected two indices, integers in canonical form")


def losses(graph: Graph) -> list[str]:
    """Return what the format cannot store."""
    return [] if are_numbered(graph) else ["node ids (they would become 0, 1, 2 …)"]


def write(graph: Graph, out: BinaryIO) -> None:
    """Write the entries on and below the diagonal if undirected, all entries if directed."""
    kind = "pattern" if graph.weights is None else "real"
    symmetry = "general" if graph.directed else "symmetric"
    out.write(f"%%MatrixMarket matrix coordinate {kind} {symmetry}\n".encode())
    out.write(f"{graph.n_nodes} {graph.n_nodes} {graph.n_edges}\n".encode())
    for sources, targets, weights in edge_blocks(graph):
        ends = [sources, targets] if graph.directed else [targets, sources]
        parts = [as_text(ends[0] + 1), " ", as_text(ends[1] + 1)]
        if weights is not None:
            parts += [" ", as_text(weights)]
        write_texts(out, join(*parts, "\n"))
