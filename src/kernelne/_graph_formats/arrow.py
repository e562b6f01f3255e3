"""Edge tables as Parquet, Arrow and Feather files.

A file of ours says in its metadata whether the graph is directed. Where nodes without edges, or another order
of nodes than the sorted one, are to be kept, all nodes come first, in rows that have no target.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernelne._containers import arrow_columns, choose_columns, weight_column
from kernelne._graph_formats.parts import Edges, Options, edge_blocks, ids_of, isolated_nodes
from kernelne._ids import read_ids
from kernelne._inputs import check_input
from kernelne.errors import FileFormatError

if TYPE_CHECKING:
    from kernelne.graph import Graph

_KEY = b"kernelne_graph"


def edge_table(graph: Graph) -> Any:
    """Columns source, target and, if it has them, weight, each edge once; its direction in the metadata."""
    ids = ids_of(graph)
    blocks = list(edge_blocks(graph))
    columns = {}
    for number, name in enumerate(("source", "target")):
        chunks = [ids.take(pa.array(block[number])) for block in blocks]
        columns[name] = pa.chunked_array(chunks, ids.type)
    if graph.weights is not None:
        columns["weight"] = pa.chunked_array([pa.array(block[2]) for block in blocks], pa.float32())
    return pa.table(columns).replace_schema_metadata({_KEY: json.dumps({"directed": graph.directed})})


def _read(path: str, table: Any, options: Options) -> Edges:
    metadata = (table.schema.metadata or {}).get(_KEY)
    try:
        told = {} if metadata is None else json.loads(metadata)
        directed, n_rows = told.get("directed"), told.get("node_rows", 0)
        if directed not in (None, True, False) or type(n_rows) is not int or not 0 <= n_rows <= len(table):
            raise ValueError(f"{_KEY.decode()} is {metadata!r}")
        asked = False if options.weighted is False else None
        source, target, weight = choose_columns(arrow_columns(table), weight=asked)
        nodes = read_ids(table[source].slice(0, n_rows), "nodes") if n_rows else None
        if n_rows and table[target].slice(0, n_rows).null_count < n_rows:
            raise ValueError(f"the first {n_rows} rows should list nodes and have no target")
        edges = table.slice(n_rows)
        sources, targets = read_ids(edges[source], source), read_ids(edges[target], target)
        weights = None if weight is None else weight_column(edges[weight], weight)
    except (ValueError, AttributeError, RecursionError) as error:  # and with it InputError
        raise FileFormatError(path, str(error)) from None
    return Edges(nodes, sources, targets, weights, directed)


def read_parquet(path: str, options: Options) -> Edges:
    """Read a table of edges."""
    import pyarrow.parquet as pq

    return _open(path, lambda file: pq.ParquetFile(file).read(), options)


def read_ipc(path: str, options: Options) -> Edges:
    """Read a table of edges from an Arrow file, which Feather is, or an Arrow stream."""

    def table(file: BinaryIO) -> Any:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(file).read_all()

    return _open(path, table, options)


def _open(path: str, load: Any, options: Options) -> Edges:
    if check_input(path) == 0:
        raise FileFormatError(path, "the file is empty")
    with open(path, "rb") as file:  # by Python: pyarrow takes no name that is not UTF-8
        try:
            table = load(file)
            table.validate(full=True)
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            reason = " ".join(str(error).split())[:200]
            raise FileFormatError(path, f"not a readable table: {reason}") from None
    return _read(path, table, options)


def _whole_table(graph: Graph) -> Any:
    """The table of edges, after all nodes where these could not be told from it."""
    edges, ids = edge_table(graph), ids_of(graph)
    order = pc.sort_indices(ids).to_numpy()
    if (order == np.arange(graph.n_nodes)).all() and not isolated_nodes(graph).any():
        return edges
    rows = pa.table(
        {"source": ids} | {name: pa.nulls(len(ids), edges[name].type) for name in edges.column_names[1:]}
    )
    told = {"directed": graph.directed, "node_rows": len(ids)}
    return pa.concat_tables([rows, edges.replace_schema_metadata()]).replace_schema_metadata(
        {_KEY: json.dumps(told)}
    )


def write_parquet(graph: Graph, out: BinaryIO) -> None:
    """Write the table of edges."""
    import pyarrow.parquet as pq

    pq.write_table(_whole_table(graph), out, compression="zstd")


def write_ipc(graph: Graph, out: BinaryIO) -> None:
    """Write the table of edges as an Arrow file, version 2 of Feather."""
    table = _whole_table(graph)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(out, table.schema, options=options) as writer:
        writer.write_table(table)
