"""Edge tables as Parquet, Arrow and Feather files.

The metadata of files written here says whether the graph is directed. If there are nodes without edges, or
nodes are not sorted, all nodes are listed in the first rows, which have no target.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernelne._common.memory import MEMORY, available_bytes, gib
from kernelne.errors import FileFormatError, ParameterError
from kernelne.graph.edges import ARROW_KEY, edge_table, writable_ids
from kernelne.graph.ids import read_ids
from kernelne.graph.ops import isolated_nodes
from kernelne.graph.tables import Columns, arrow_columns, choose_columns, read_edges
from kernelne.io.files import check_input, open_for_arrow
from kernelne.io.graphs.shared import EdgeColumns, Options

if TYPE_CHECKING:
    from kernelne.graph import Graph


_CELL = 4  # bytes of memory of a value, at least


def _read(path: str, table: Any, options: Options) -> EdgeColumns:
    metadata = (table.schema.metadata or {}).get(ARROW_KEY)
    try:
        told = {} if metadata is None else json.loads(metadata)
        directed, n_rows = told.get("directed"), told.get("node_rows", 0)
        if directed not in (None, True, False) or type(n_rows) is not int or not 0 <= n_rows <= len(table):
            raise ValueError(f"{ARROW_KEY.decode()} is {metadata!r}")
        whole = arrow_columns(table, by_number=True)
        chosen = choose_columns(whole, options.source, options.target, options.asked_weight, options.time)
        if options.weighted is True and chosen.weight is None:  # ages alone are no weights
            raise ValueError("no weights in the file (weighted=True, --weighted)")
        nodes = read_ids(table[chosen.source].slice(0, n_rows), "nodes") if n_rows else None
        if n_rows and table[chosen.target].slice(0, n_rows).null_count < n_rows:
            raise ValueError(f"the first {n_rows} rows must list nodes and have no target")
        edges = Columns(whole, lambda name: whole.get(name).slice(n_rows))
        weight = False if chosen.weight is None else chosen.weight
        asked = chosen.source, chosen.target, weight, chosen.time, options.half_life, options.bipartite
        ids, weights, times = read_edges(edges, *asked)
    except ParameterError:
        raise
    except (ValueError, AttributeError, RecursionError) as error:  # includes InputError
        raise FileFormatError(path, str(error)) from None
    return EdgeColumns(nodes, ids["sources"], ids["targets"], weights, directed, times)


def read_parquet(path: str, options: Options) -> EdgeColumns:
    """Read a table of edges."""
    return _read(path, parquet_table(path), options)


def read_ipc(path: str, options: Options) -> EdgeColumns:
    """Read a table of edges from an Arrow file (or Feather, which is the same) or an Arrow stream."""
    return _read(path, ipc_table(path), options)


def parquet_table(path: str) -> Any:
    """Return a Parquet file as an Arrow table."""
    import pyarrow.parquet as pq

    def table(file: Any) -> Any:
        opened = pq.ParquetFile(file)
        available = available_bytes()
        # Equal values take no space in the file: its rows may need far more memory than its bytes.
        held = opened.metadata.num_rows * opened.metadata.num_columns * _CELL
        if available is not None and held > available:
            told = f"needs at least {gib(held)} of memory, and {gib(available)} are free"
            raise FileFormatError(path, f"{told}; {MEMORY}=SIZE in the environment sets this limit by hand")
        return opened.read()

    return _open(path, table, by_arrow=True)


def ipc_table(path: str) -> Any:
    """Return an Arrow file or stream as an Arrow table."""

    def table(file: BinaryIO) -> Any:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(_Bounded(file)).read_all()

    return _open(path, table)


class _Bounded:
    """A file that is never asked for more bytes than it has: Arrow would allocate whatever a header says."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = os.fstat(file.fileno()).st_size

    def read(self, size: int = -1) -> bytes:
        left = self._size - self._file.tell()
        return self._file.read(left if size < 0 else min(size, left))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _open(path: str, load: Any, by_arrow: bool = False) -> Any:
    if check_input(path) == 0:
        raise FileFormatError(path, "the file is empty")
    with open_for_arrow(path) if by_arrow else open(path, "rb") as file:
        try:
            table = load(file)
            table.validate(full=True)
        except MemoryError:  # a size that the file only declares, or more than there is
            raise FileFormatError(path, "damaged, or larger than the memory: a part cannot be held") from None
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            reason = " ".join(str(error).split())[:200]
            raise FileFormatError(path, f"not a readable table: {reason}") from None
    return table


def _whole_table(graph: Graph) -> Any:
    """Return the table of edges, preceded by all nodes if these cannot be derived from the edges."""
    edges, ids = edge_table(graph), writable_ids(graph)
    order = pc.sort_indices(ids).to_numpy()
    if (order == np.arange(graph.n_nodes)).all() and not isolated_nodes(graph).any():
        return edges
    rows = pa.table(
        {"source": ids} | {name: pa.nulls(len(ids), edges[name].type) for name in edges.column_names[1:]}
    )
    told = {"directed": graph.directed, "node_rows": len(ids)}
    return pa.concat_tables([rows, edges.replace_schema_metadata()]).replace_schema_metadata(
        {ARROW_KEY: json.dumps(told)}
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
