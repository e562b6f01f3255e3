"""The graph file formats by suffix, each with a reader and a writer.

A reader takes a path and options and returns `EdgeColumns`, or a graph that stays in its file; a writer takes
a graph and an open binary file. No reader trusts a declared number before comparing it with the data, and
none executes code.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from kernelne.errors import FileFormatError, ParameterError
from kernelne.io.files import compression_by_name
from kernelne.io.graphs import adjlist, arrow, edgelist, gml, graphml, kne, mat, matrix_market, metis, pajek
from kernelne.io.graphs.shared import EdgeColumns, Options

if TYPE_CHECKING:
    from kernelne.graph import Graph

__all__ = ["FORMATS", "EdgeColumns", "GraphFormat", "Options", "find_format"]


def _nothing(graph: Graph) -> list[str]:
    return []


class GraphFormat(NamedTuple):
    """The reader and writer of a format, and a function that returns what it would lose of a graph.

    is_text: may be compressed, as .gz or .zst; is_edge_list: has lines of columns, and no list of nodes;
    is_table: has columns with names; tells_direction: whether the file says if edges are arcs
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[str, Options], EdgeColumns | Graph]
    write: Callable[[Graph, BinaryIO], None]
    losses: Callable[[Graph], list[str]] = _nothing
    is_text: bool = True
    is_edge_list: bool = False
    is_table: bool = False
    tells_direction: bool = True


_TABS, _COMMAS = partial(edgelist.write, separator="\t"), partial(edgelist.write, separator=",")


def _edge_list(name: str, suffixes: tuple[str, ...], write: Callable[[Graph, BinaryIO], None]) -> GraphFormat:
    return GraphFormat(
        name, suffixes, edgelist.read, write, edgelist.losses, is_edge_list=True, tells_direction=False
    )


FORMATS = (
    _edge_list("edge list", (".txt", ".tsv"), _TABS),
    _edge_list("CSV edge list", (".csv",), _COMMAS),
    _edge_list("edge list", (".edges", ".edgelist"), _TABS),
    GraphFormat("GraphML", (".graphml",), graphml.read, graphml.write),
    GraphFormat("GML", (".gml",), gml.read, gml.write),
    GraphFormat("Pajek", (".net",), pajek.read, pajek.write),
    GraphFormat(
        "adjacency list", (".adjlist",), adjlist.read, adjlist.write, adjlist.losses, tells_direction=False
    ),
    GraphFormat("Matrix Market", (".mtx",), matrix_market.read, matrix_market.write, matrix_market.losses),
    GraphFormat("METIS", (".metis", ".graph"), metis.read, metis.write, metis.losses),
    GraphFormat("kernelne's", (".kne",), kne.read, kne.write, is_text=False),
    GraphFormat("MATLAB", (".mat",), mat.read, mat.write, mat.losses, is_text=False),
    GraphFormat(
        "Parquet", (".parquet",), arrow.read_parquet, arrow.write_parquet, is_text=False, is_table=True
    ),
    GraphFormat(
        "Arrow", (".arrow", ".feather"), arrow.read_ipc, arrow.write_ipc, is_text=False, is_table=True
    ),
)
_BY_SUFFIX = {suffix: format for format in FORMATS for suffix in format.suffixes}


def find_format(path: str | os.PathLike[str], name: str | None = None) -> tuple[GraphFormat, str | None]:
    """Return the format of a file, by `name` (a suffix without dot) or its suffix, and its compression."""
    file = Path(path).name.lower()
    compression = compression_by_name(file)
    suffix = Path(Path(file).stem).suffix if compression else Path(file).suffix
    if name is not None:
        suffix = f".{name.lower().removeprefix('.')}"
        if suffix not in _BY_SUFFIX:
            raise ParameterError("format", name, f"known formats are {' '.join(s[1:] for s in _BY_SUFFIX)}")
    found = _BY_SUFFIX.get(suffix)
    if found is None:
        texts = " ".join(s for s in _BY_SUFFIX if _BY_SUFFIX[s].is_text)
        others = " ".join(s for s in _BY_SUFFIX if not _BY_SUFFIX[s].is_text)
        known = f"{texts}, each also with .gz or .zst after it, and {others}"
        raise FileFormatError(path, f"unknown suffix: known suffixes are {known}; or pass format= (--format)")
    if compression and not found.is_text:
        raise FileFormatError(path, f"{found.name} files with .gz or .zst are not supported: unpack it first")
    return found, compression
