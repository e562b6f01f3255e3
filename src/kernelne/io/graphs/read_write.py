"""Graphs in files: `read_graph` and `write_graph`. The formats are in `registry`."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kernelne.errors import FileFormatError, InputError, ParameterError, warn
from kernelne.graph import Graph
from kernelne.graph.edges import writable_ids
from kernelne.graph.graph import graph_from_columns
from kernelne.graph.ids import check_same_kind, read_ids
from kernelne.io.files import atomic_output
from kernelne.io.graphs import edgelist
from kernelne.io.graphs.registry import GraphFormat, find_format
from kernelne.io.graphs.shared import EdgeColumns, Options


def read_graph(
    path: str | bytes | os.PathLike[str],
    *,
    directed: bool | None = None,
    header: bool | None = None,
    weighted: bool | None = None,
    nodes: Any = None,
    separator: str | None = None,
    drop_self_loops: bool = False,
    format: str | None = None,
    skip_bad: bool = False,
) -> Graph:
    """Read a graph from a file, in the format its suffix names.

    Edge lists (.txt, .tsv, .csv, .edges, .edgelist) have on each line a source, a target and, if there is a
    third field, a weight. They are UTF-8 text. Blank lines and lines that start with # or % are skipped;
    blanks around a field do not count. Fields stand between tabs, commas or semicolons, and may then be
    quoted as in CSV, or else between runs of blanks.

    The others are .graphml, .gml, .net (Pajek), .adjlist, .mtx (Matrix Market), .metis or .graph, .mat (the
    variable `network`), .parquet, .arrow and .feather (tables, see `Graph.from_table`); docs/formats.md says
    what each of them holds. Those that are text may be compressed, with .gz or .zst after their name.

    Ids are integers when every id is one in its plain spelling, unquoted, and fits int64. Otherwise all are
    strings, kept as they are: `1`, `01` and `1.0` are three nodes. Nodes come in the order of the file where
    it lists them. Otherwise their order, and what becomes of repeated edges, self-loops and zero weights, is
    as in `Graph.from_edges`.

    Parameters
    ----------
    directed: whether edges are arcs from source to target; None takes what the file says, undirected where it
        does not tell. False drops directions, except of a matrix, which must then be symmetric.
    header: of an edge list, whether the first data line names the columns. None: it does if its fields are a
        usual pair of names, or if they are not numbers where those below are; if it only might, it is an
        edge, with a warning.
    weighted: whether to read weights: False ignores them, True demands them, None takes them if there.
    nodes: ids to put first, in this order, with or without edges; or the path of a file of them: the first
        field of each line, its header (if header is not False) a name like `id` above integers.
    separator: of an edge list, the character between fields, or tab, comma, semicolon or space; None finds it
        from the first lines, " " is runs of blanks.
    drop_self_loops: leave edges from a node to itself out.
    format: a suffix without its dot, such as "gml", that counts in place of the file's own.
    skip_bad: of an edge list, leave lines out that have another number of fields than the first, an empty id
        or a weight that is none, with a warning of how many and which come first; otherwise they are errors.
    """
    path = os.fsdecode(path)
    found, _ = find_format(path, format)
    if isinstance(nodes, bytes | os.PathLike):
        nodes = os.fsdecode(nodes)
    options = Options(directed, header, weighted, nodes, separator, skip_bad)
    if found.is_edge_list:
        edges = found.read(path, options)
    else:
        if skip_bad:
            raise ParameterError("skip_bad", skip_bad, f"leaves out lines of edge lists, not of {found.name}")
        for name in ("header", "separator"):
            if getattr(options, name) is not None and not isinstance(nodes, str):
                raise ParameterError(
                    name, getattr(options, name), f"says how to read columns, not {found.name}"
                )
        edges = _complete(path, found.read(path, options), options)
    if directed is True and edges.directed is False:
        raise ParameterError("directed", True, f"{path} says that its edges are undirected")
    if directed is None:
        directed = bool(edges.directed)
    empty = pa.chunked_array([], pa.null())
    table = {
        "nodes": empty if edges.nodes is None else edges.nodes,
        "sources": edges.sources,
        "targets": edges.targets,
    }
    weights = edges.weights
    del edges
    return graph_from_columns(table, weights, directed, drop_self_loops)


def _complete(path: str, edges: EdgeColumns, options: Options) -> EdgeColumns:
    """The edges of a file that is no edge list, with what options ask for beyond them."""
    if options.weighted is True and edges.weights is None:
        raise FileFormatError(path, "no weights in the file (weighted=True, --weighted)")
    if options.weighted is False:
        edges = edges._replace(weights=None)
    nodes = options.nodes
    if nodes is not None:
        own = next((c for c in edges[:3] if c is not None and len(c)), None)
        strings = own is not None and not pa.types.is_integer(own.type)
        given = (
            edgelist.read_nodes(nodes, options, strings)
            if isinstance(nodes, str)
            else read_ids(nodes, "nodes")
        )
        if edges.nodes is not None and len(edges.nodes) and len(given):
            check_same_kind({"nodes": given, "ids of the file": edges.nodes})
            kind = pa.large_string() if strings else pa.int64()  # ids of 32 bits may meet longer ones
            given, listed = given.cast(kind), edges.nodes.cast(kind)
            rest = listed.filter(pc.invert(pc.is_in(listed, value_set=given.combine_chunks())))
            given = pa.chunked_array([*given.chunks, *rest.chunks], kind)
        edges = edges._replace(nodes=given if len(given) else edges.nodes)
    if not any(len(c) for c in edges[:3] if c is not None):
        raise FileFormatError(path, "no nodes in the file")
    return edges


def write_graph(
    graph: Graph,
    path: str | os.PathLike[str],
    overwrite: bool = False,
    *,
    format: str | None = None,
    lossy: bool = False,
) -> None:
    """Write a graph, each edge once, in the format its suffix names, or `format`; see `read_graph`.

    .gz or .zst after the name of a text format compresses. The file appears whole or not at all. GraphML,
    GML, Pajek, Parquet, Arrow and Feather give the same graph back. The others do not hold everything: what
    would be lost is named in an InputError, and left out if `lossy`.

    An edge list has lines of source, target and, if there are any, weight, between tabs (commas in .csv). It
    does not tell whether the graph is directed, nor the order of nodes, nor nodes without edges, which are
    left out with a warning: `read_graph(path, directed=graph.directed, nodes=graph.nodes)` gives the same
    graph back.
    """
    found, compression = find_format(path, format)
    writable_ids(graph)
    lost = found.losses(graph)
    if lost and found.is_edge_list:
        warn(
            f"{', '.join(lost)} are left out of {os.fspath(path)}: "
            "read_graph(..., nodes=) (--nodes) brings them back"
        )
    elif not lossy:
        _refuse_losses(path, found, lost)
    with (
        atomic_output(path, overwrite) as temporary,
        open(temporary, "wb") as file,  # by Python: pyarrow takes no name that is not UTF-8
        pa.output_stream(file, compression=compression) as out,
    ):
        found.write(graph, out)


def check_lossless(graph: Graph, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Raise InputError if the format of `path`, an edge list or not, would lose something of the graph."""
    found, _ = find_format(path, format)
    _refuse_losses(path, found, found.losses(graph))


def _refuse_losses(path: str | os.PathLike[str], found: GraphFormat, lost: list[str]) -> None:
    if lost:
        raise InputError(
            f"{os.fspath(path)}: a file of {found.name} would lose {' and '.join(lost)}: write .graphml, "
            ".gml, .net or .parquet, or pass lossy=True (--lossy)"
        )
