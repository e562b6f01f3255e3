"""The .parquet format of an embedding, and its Arrow table: one row per node, and the provenance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import types

from kernelne._common.checks import parts
from kernelne.errors import FileFormatError
from kernelne.graph.ids import plain_strings, string_objects
from kernelne.graph.string_ids import StringIds
from kernelne.io.arrays import RowBlocks
from kernelne.io.embeddings.shared import KEY, VERSION, Fields, read_document
from kernelne.io.files import open_for_arrow


def to_table(fields: Fields) -> Any:
    """Return a pyarrow Table with the columns `id` and `vector`, and the provenance in its metadata."""
    return _table(_ids(fields["nodes"]), fields["vectors"], fields["provenance"])


def _ids(nodes: Any) -> Any:
    if isinstance(nodes, StringIds):
        return nodes.column
    return pa.array(nodes, pa.large_string() if nodes.dtype == object else pa.int64())


def _table(ids: Any, vectors: NDArray[np.float32], provenance: Any) -> Any:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    document = json.dumps({"version": VERSION, "provenance": provenance})
    return pa.table({"id": ids, "vector": lists}).replace_schema_metadata({KEY: document})


def write(fields: Fields, stream: BinaryIO) -> None:
    ids, vectors, provenance = _ids(fields["nodes"]), fields["vectors"], fields["provenance"]
    schema = _table(ids.slice(0, 0), np.empty((0, vectors.shape[1]), np.float32), provenance).schema
    # Neither dictionaries nor compression: they cost time and do not help with distinct values.
    how: dict[str, Any] = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    start = 0
    with pq.ParquetWriter(stream, schema, **how) as writer:
        for block in vectors if isinstance(vectors, RowBlocks) else (part for _, part in parts(vectors)):
            writer.write_table(_table(ids.slice(start, len(block)), block, provenance))
            start += len(block)


def read(path: Path) -> Fields:
    with open_for_arrow(path) as stream, pq.ParquetFile(stream, page_checksum_verification=True) as file:
        _check_columns(path, file.schema_arrow.names)
        table = file.read(columns=["id", "vector"])
        metadata = file.schema_arrow.metadata
    return from_table(path, table.replace_schema_metadata(metadata))


def _check_columns(path: Path, names: list[str]) -> None:
    if "id" not in names or "vector" not in names:
        raise FileFormatError(path, f"columns 'id' and 'vector' are needed, the file has {names[:9]}")


def from_table(path: Path, table: Any) -> Fields:
    """Return the fields of a table made by `to_table`; `path` is used in error messages."""
    _check_columns(path, table.column_names)
    metadata = table.schema.metadata or {}
    ids, vectors = plain_strings(table["id"]).combine_chunks(), table["vector"].combine_chunks()
    if not any(test(ids.type) for test in (types.is_integer, types.is_string, types.is_large_string)):
        raise FileFormatError(path, f"column 'id' must contain integers or strings, not {ids.type}")
    if not any(test(vectors.type) for test in (types.is_fixed_size_list, types.is_list, types.is_large_list)):
        raise FileFormatError(path, f"column 'vector' must contain lists of numbers, not {vectors.type}")
    if not len(ids) or ids.null_count or vectors.null_count:
        raise FileFormatError(path, "no rows, or rows without id or vector")
    # Data-frame libraries convert our fixed-size lists to variable size: fine if all lengths are equal.
    dim = len(vectors[0])
    if pc.any(pc.not_equal(pc.list_value_length(vectors), dim)).as_py():
        raise FileFormatError(path, "the vectors have different lengths")
    values = vectors.flatten()
    if values.null_count:
        raise FileFormatError(path, "a value is missing in column 'vector'")
    document = read_document(path, metadata[KEY.encode()].decode()) if KEY.encode() in metadata else {}
    return {
        "vectors": values.to_numpy(zero_copy_only=False, writable=True).reshape(len(ids), dim),
        "nodes": ids.to_numpy() if types.is_integer(ids.type) else string_objects(ids),
        "provenance": document.get("provenance", {}),
    }
