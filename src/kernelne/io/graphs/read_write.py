"""Read and write graph files: `read_graph` and `write_graph`. The formats are listed in `registry`."""

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
from kernelne.graph.tables import check_time
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
    source: Any = None,
    target: Any = None,
    weight: Any = None,
    time: Any = None,
    half_life: Any = None,
    bipartite: bool | None = None,
) -> Graph:
    """Read a graph from a file; the suffix gives the format.

    Each line of an edge list (.txt, .tsv, .csv, .edges, .edgelist) has a source, a target and, if there is a
    third field, a weight. If its header or `source` and `target` tell which columns these are, there may be
    more of them, in any order. The file is UTF-8 text. Blank lines and lines that start with # or % are
    skipped; blanks around a field are ignored. Fields are separated by tabs, commas or semicolons, and may
    then be quoted as in CSV, or else by whitespace.

    The other formats are .graphml, .gml, .net (Pajek), .adjlist, .mtx (Matrix Market), .metis or .graph, .mat
    (the variable `network`), .parquet, .arrow and .feather (tables, see `Graph.from_table`); docs/formats.md
    describes what each of them stores. Text formats may be compressed, with .gz or .zst after the suffix.

    Node ids are integers if every id is an unquoted integer in canonical form that fits int64. Otherwise all
    are strings, unchanged: `1`, `01` and `1.0` are three nodes. If the file lists nodes, they keep that
    order. Otherwise the order of nodes, and the handling of repeated edges, self-loops and zero weights, are
    as in `Graph.from_edges`.

    Parameters
    ----------
    directed: whether edges are arcs from source to target; None follows the file, undirected if it does not
        say. False drops directions, except of a matrix, which must then be symmetric.
    header: whether the first data line of an edge list is a header. None: it is one if it contains a common
        pair of column names, or words where those below are numbers; a line that may be a header or an edge
        raises an error.
    weighted: False ignores weights, True requires them, None reads them if the file has them.
    nodes: node ids to put first, in this order, with or without edges; or the path of a file of ids, the
        first field of each line; a header (unless header is False) is a name like `id` above integers.
    separator: the separator of an edge list, one character, or tab, comma, semicolon or space; None detects
        it from the first lines, " " is any run of blanks.
    drop_self_loops: leave out edges from a node to itself.
    format: a suffix without its dot, such as "gml", to use instead of that of the file.
    skip_bad: skip lines of an edge list that have a different number of fields than the first, an empty id or
        an invalid weight, with a warning that gives their number and the first ones; by default they raise.
    source, target, weight, time: columns of a table or an edge list, by name or by number from 1; None finds
        them as `Graph.from_table` does, and there are no times.
    half_life: the age at which an edge weighs half. Without it walks follow edges in the order of `time`: see
        `Graph.from_table`.
    bipartite: whether sources and targets are nodes of different kinds. True puts the name of its column and
        a colon before each id (without names, source and target); None refuses columns such as user and item
        that have the same integers; False takes equal ids as one node.
    """
    path = os.fsdecode(path)
    found, _ = find_format(path, format)
    if isinstance(nodes, bytes | os.PathLike):
        nodes = os.fsdecode(nodes)
    check_time(time, half_life)
    if weight is not None and weighted is False:
        raise ParameterError("weight", weight, "contradicts weighted=False (--unweighted)")
    options = Options(
        directed,
        header,
        weighted,
        nodes,
        separator,
        skip_bad,
        source,
        target,
        weight,
        time,
        half_life,
        bipartite,
    )
    for name in ("source", "target", "weight", "time", "bipartite"):
        if getattr(options, name) is not None and not (found.is_edge_list or found.is_table):
            value = getattr(options, name)
            raise ParameterError(name, value, f"applies to edge lists and tables, not to {found.name}")
    if found.is_edge_list:
        edges = found.read(path, options)
    else:
        if skip_bad:
            raise ParameterError("skip_bad", skip_bad, f"applies to edge lists, not to {found.name}")
        for name in ("header", "separator"):
            if getattr(options, name) is not None and not isinstance(nodes, str):
                raise ParameterError(
                    name, getattr(options, name), f"applies to edge lists, not to {found.name}"
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
    weights, times = edges.weights, edges.times
    del edges
    try:
        return graph_from_columns(table, weights, directed, drop_self_loops, times)
    except (ParameterError, FileFormatError):
        raise
    except InputError as error:  # weights beyond float32: the message names the edge
        raise FileFormatError(path, str(error)) from None


def _complete(path: str, edges: EdgeColumns, options: Options) -> EdgeColumns:
    """Apply the options to the edges of a file that is not an edge list."""
    if options.weighted is True and edges.weights is None:
        raise FileFormatError(path, "no weights in the file (weighted=True, --weighted)")
    if options.weighted is False and options.half_life is None:  # weights of age stay
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
            kind = pa.large_string() if strings else pa.int64()  # one side may be int32
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
    """Write a graph, each edge once; the suffix or `format` gives the format, see `read_graph`.

    With .gz or .zst after its suffix a text format is compressed. The file is written completely or not at
    all. GraphML, GML, Pajek, Parquet, Arrow and Feather store the whole graph. The others do not: an
    InputError lists what would be lost, unless `lossy` is true.

    Each line of an edge list has a source, a target and, if weighted, a weight, separated by tabs (commas in
    .csv). It does not store whether the graph is directed, nor the order of nodes, nor nodes without edges,
    which are left out with a warning: `read_graph(path, directed=graph.directed, nodes=graph.nodes)` returns
    the same graph.
    """
    found, compression = find_format(path, format)
    writable_ids(graph)
    lost = found.losses(graph)
    if graph.timed is not None:
        warn(f"the times of edges are left out of {os.fspath(path)}")
    if lost and found.is_edge_list:
        warn(
            f"{', '.join(lost)} are left out of {os.fspath(path)}: "
            "read_graph(..., nodes=) (--nodes) restores them"
        )
    elif not lossy:
        _refuse_losses(path, found, lost)
    with (
        atomic_output(path, overwrite) as temporary,
        open(temporary, "wb") as file,  # by Python: pyarrow accepts only UTF-8 names
        pa.output_stream(file, compression=compression) as out,
    ):
        found.write(graph, out)


def check_lossless(graph: Graph, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Raise InputError if the format of `path`, edge lists included, cannot store the whole graph."""
    found, _ = find_format(path, format)
    _refuse_losses(path, found, found.losses(graph))


def _refuse_losses(path: str | os.PathLike[str], found: GraphFormat, lost: list[str]) -> None:
    if lost:
        raise InputError(
            f"{os.fspath(path)}: {found.name} would lose {' and '.join(lost)}: write .graphml, "
            ".gml, .net or .parquet, or pass lossy=True (--lossy)"
        )
