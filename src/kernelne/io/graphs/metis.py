"""METIS (.graph, .metis): line i lists the neighbours of node i; undirected, integer weights, no node ids."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa

from kernelne.errors import FileFormatError, InputError
from kernelne.graph.csr import half
from kernelne.io.graphs.shared import (
    GOOD_WEIGHT,
    EdgeColumns,
    Options,
    are_numbered,
    as_text,
    column,
    join,
    join_lists,
    write_texts,
)
from kernelne.io.text import lines as text_lines
from kernelne.io.text.words import Words

if TYPE_CHECKING:
    from kernelne.graph import Graph

_HEADER = "expected the numbers of nodes and edges, optionally a format (such as 001) and a number of weights"
_BLOCK = 1 << 18  # entries per block


def read(path: str, options: Options) -> EdgeColumns:
    """Read a graph with nodes 0 … n - 1; weights and sizes of nodes are ignored."""
    words = Words(path, text_lines.read_text(path), "%")
    head = int(np.searchsorted(words.rows, words.rows[0], side="right")) if len(words.rows) else 0
    shape = [words.text(k) for k in range(head)]
    if not 2 <= head <= 4 or not all(re.fullmatch("[0-9]{1,18}", word) for word in shape):
        raise FileFormatError(path, _HEADER, line=words.line(0) if head else None, text=" ".join(shape))
    n, n_edges = int(shape[0]), int(shape[1])
    code = shape[2].zfill(3) if head > 2 else "000"
    if len(code) > 3 or set(code) - {"0", "1"}:
        raise FileFormatError(path, "expected a format of three digits 0 or 1", line=words.line(0), text=code)
    has_sizes, has_node_weights, has_weights = (digit == "1" for digit in code)
    rows = words.rows[head:] - words.rows[0] - 1
    n_lines = words.n_rows - int(words.rows[0]) - 1
    if len(rows) and rows[-1] >= n:
        extra = head + int(np.searchsorted(rows, n))
        raise words.error(f"{n} nodes are declared, but there are more lines", extra)
    if n_lines < n:
        told = f"{n} nodes are declared, but {n_lines} lines follow; a node without edges has a blank line"
        raise FileFormatError(path, told, line=words.line(0))
    firsts = np.searchsorted(rows, np.arange(n))
    place = np.arange(len(rows)) - firsts[rows]  # within a line
    skipped = has_sizes + has_node_weights * (int(shape[3]) if head > 3 else 1)
    step = 2 if has_weights else 1
    place -= skipped
    counts = np.bincount(rows, minlength=n) - skipped
    wrong = np.flatnonzero((counts < 0) | (counts % step != 0))
    if len(wrong):
        row = int(wrong[0])
        told = f"expected {skipped} weights of the node, then " if skipped else "expected "
        told += "pairs of a neighbour and a weight" if has_weights else "neighbours"
        if firsts[row] < len(rows) and rows[firsts[row]] == row:
            raise words.error(told, head + int(firsts[row]))
        raise FileFormatError(path, f"{told}, found a blank line for node {row + 1}", line=words.line(0))
    is_neighbour = np.concatenate([np.zeros(head, bool), (place >= 0) & (place % step == 0)])
    entries = np.flatnonzero(is_neighbour)
    targets = words.integers(entries, f"expected a neighbour, from 1 to {n}") - 1
    outside = np.flatnonzero((targets < 0) | (targets >= n))
    if len(outside):
        raise words.error(f"expected a neighbour, from 1 to {n}", int(entries[outside[0]]))
    weights = words.weights(entries + 1, GOOD_WEIGHT) if has_weights else None
    sources = rows[entries - head]
    kept = half(sources, targets, weights, n)
    if isinstance(kept, int):
        told = f"node {targets[kept] + 1} is a neighbour of node {sources[kept] + 1}, but not the other way"
        raise words.error(f"{told}{' with this weight' if has_weights else ''}", int(entries[kept]))
    sources, targets = sources[kept], targets[kept]
    if len(sources) != n_edges:
        told = f"{n_edges} edges are declared, but there are {len(sources)}"
        raise FileFormatError(path, told, line=words.line(0))
    ids, heads, tails = (column(pa.array(part)) for part in (np.arange(n), sources, targets))
    return EdgeColumns(ids, heads, tails, None if weights is None else weights[kept], False)


def losses(graph: Graph) -> list[str]:
    """Return what the format cannot store."""
    return [] if are_numbered(graph) else ["node ids (they would become 0, 1, 2 …)"]


def write(graph: Graph, out: BinaryIO) -> None:
    """Write a graph; raises InputError for directed graphs, self-loops and non-integer weights."""
    if graph.directed:
        raise InputError("METIS files are undirected: this graph is directed")
    sources = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    loops = np.flatnonzero(sources == graph.neighbours)
    if len(loops):
        node = graph.nodes.tolist()[graph.neighbours[loops[0]]]
        raise InputError(
            f"METIS files cannot store self-loops, node {node!r} has one: remove them with "
            "drop_self_loops=True (--drop-self-loops) when reading the graph"
        )
    weights = graph.weights
    if weights is not None and (weights != np.floor(weights)).any():
        bad = weights[weights != np.floor(weights)][0]
        raise InputError(f"METIS files store only integer weights, one is {bad}: rescale and round them")
    if weights is not None and (weights >= 2**63).any():
        raise InputError(
            f"METIS files store only weights below 2**63, one is {weights.max()}: rescale and round them"
        )
    out.write(f"{graph.n_nodes} {graph.n_edges}{'' if weights is None else ' 001'}\n".encode())
    start = 0
    while start < graph.n_nodes:
        # The rows of about one block of entries, at least one row.
        stop = int(np.searchsorted(graph.offsets, graph.offsets[start] + _BLOCK, side="right")) - 1
        stop = max(stop, start + 1)
        first, last = graph.offsets[start], graph.offsets[stop]
        words = as_text(graph.neighbours[first:last] + 1)
        if weights is not None:
            words = join(words, " ", as_text(weights[first:last].astype(np.int64)))
        write_texts(out, join(join_lists(graph.offsets[start : stop + 1] - first, words), "\n"))
        start = stop
