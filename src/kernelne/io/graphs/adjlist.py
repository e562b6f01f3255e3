"""Adjacency lists (.adjlist), as networkx writes them: a node, then its neighbours, between spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernelne.errors import FileFormatError
from kernelne.graph.edges import writable_ids
from kernelne.graph.ids import plain_integers
from kernelne.io.graphs.shared import (
    EdgeColumns,
    Options,
    column,
    join,
    join_lists,
    look_like_integers,
    refuse_ids,
    write_texts,
)
from kernelne.io.text import lines as text_lines
from kernelne.io.text.words import Words, blank_comments

if TYPE_CHECKING:
    from kernelne.graph import Graph


def read(path: str, options: Options) -> EdgeColumns:
    """Read nodes in the order of their lines, then the others; ids are integers if all are."""
    data = text_lines.read_text(path)
    blank_comments(data, ord("#"))
    words = Words(path, data, "#")
    if not len(words.rows):
        raise FileFormatError(path, "no nodes in the file")
    ids = words.strings()
    numbers = plain_integers(ids)
    ids = ids if numbers is None else numbers
    first = np.flatnonzero(np.diff(words.rows, prepend=-1))
    head = np.repeat(first, np.diff(first, append=len(words.rows)))
    others = np.flatnonzero(np.arange(len(ids)) != head)
    nodes = pc.unique(ids.take(pa.array(first)))
    sources, targets = (ids.take(pa.array(places)) for places in (head[others], others))
    return EdgeColumns(column(nodes), column(sources), column(targets), None, None)


def losses(graph: Graph) -> list[str]:
    """Return what the format cannot store."""
    lost = [] if graph.weights is None else ["weights"]
    return lost + ["that ids are strings"] * look_like_integers(writable_ids(graph))


def write(graph: Graph, out: BinaryIO) -> None:
    """Write a line for each node; an undirected edge is in the line of its first node."""
    ids = writable_ids(graph)
    refuse_ids(
        ids, r"^$|[\s#\x00\x{FEFF}]", "is empty or contains white space, NUL or #: .adjlist cannot store it"
    )
    names = ids.cast(pa.large_string())
    step = 1 << 16
    for start in range(0, graph.n_nodes, step):
        stop = min(start + step, graph.n_nodes)
        first, last = graph.offsets[start], graph.offsets[stop]
        neighbours = graph.neighbours[first:last]
        rows = np.repeat(np.arange(start, stop), np.diff(graph.offsets[start : stop + 1]))
        once = neighbours >= rows if not graph.directed else np.ones(len(rows), bool)
        ends = np.concatenate([[0], np.cumsum(np.bincount(rows[once] - start, minlength=stop - start))])
        words = join(" ", names.take(pa.array(neighbours[once])))
        write_texts(out, join(names.slice(start, stop - start), join_lists(ends, words, ""), "\n"))
