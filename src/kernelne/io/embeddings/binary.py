"""Formats of an embedding that hold arrays: safetensors, npz, npy and Parquet."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import safetensors
from numpy.typing import NDArray
from pyarrow import types

from kernelne.errors import FileFormatError, warn
from kernelne.graph.ids import plain_strings, string_objects
from kernelne.io.embeddings.text import Fields, nodes_file, read_node_lines

_VERSION = 1
_KEY = "kernelne_embedding"  # under which the JSON is found in every format that can hold it

# name: dtype, dimensions, in safetensors and npz
_ARRAYS = {
    "vectors": ("float32", 2),
    "center": ("float32", 2),
    "context": ("float32", 2),
    "coefficients": ("float64", 1),
    "nodes": ("int64", 1),
    "nodes_utf8": ("uint8", 1),  # strings, one after the other; string i is [offsets[i], offsets[i+1])
    "nodes_offsets": ("int64", 1),
}
_SAFETENSORS_DTYPES = {"float32": "F32", "float64": "F64", "int64": "I64", "uint8": "U8"}


# Arrays and one JSON text: safetensors and npz


def _to_arrays(fields: Fields) -> tuple[dict[str, NDArray[Any]], str]:
    vectors, nodes = fields["vectors"], fields["nodes"]
    arrays: dict[str, NDArray[Any]] = {"vectors": vectors}
    if nodes.dtype == object:
        _, offsets, text = pa.array(nodes, pa.large_string()).buffers()
        arrays["nodes_offsets"] = np.frombuffer(offsets, np.int64, len(nodes) + 1)
        arrays["nodes_utf8"] = np.frombuffer(text or b"", np.uint8, int(arrays["nodes_offsets"][-1]))
    else:
        arrays["nodes"] = nodes
    for name in ("center", "context", "coefficients"):
        if fields[name] is not None and fields[name] is not vectors:
            arrays[name] = fields[name]
    little = {n: np.ascontiguousarray(a, dtype=a.dtype.newbyteorder("<")) for n, a in arrays.items()}
    document = {
        "version": _VERSION,
        "provenance": fields["provenance"],
        "kernels": fields["kernels"],
        "shared": [name for name in ("center", "context") if fields[name] is vectors],
    }
    return little, json.dumps(document)


def _check_array(path: Path, name: str, dtype: str, shape: tuple[int, ...]) -> None:
    if name not in _ARRAYS:
        raise FileFormatError(path, f"not an embedding of this package: holds an array {name!r}")
    wanted, ndim = _ARRAYS[name]
    if dtype != wanted or len(shape) != ndim:
        raise FileFormatError(
            path, f"array {name!r} should have {ndim} dimensions of {wanted}, has shape {shape} of {dtype}"
        )


def _from_arrays(path: Path, arrays: dict[str, NDArray[Any]], text: str) -> Fields:
    document = _document(path, text)
    if "vectors" not in arrays:
        raise FileFormatError(path, "array 'vectors' is missing")
    nodes = arrays.pop("nodes", None)
    utf8, offsets = arrays.pop("nodes_utf8", None), arrays.pop("nodes_offsets", None)
    if nodes is None:
        if utf8 is None or offsets is None:
            raise FileFormatError(path, "the node ids are missing")
        nodes = _strings(path, utf8, offsets)
    elif utf8 is not None or offsets is not None:
        raise FileFormatError(path, "the node ids are there twice, as integers and as strings")
    fields: Fields = {**arrays, "nodes": nodes}
    shared = document.get("shared", [])
    for name in shared if isinstance(shared, list) else [shared]:
        if name not in ("center", "context") or name in arrays:
            raise FileFormatError(path, f"cannot share the vectors as {name!r}")
        fields[name] = arrays["vectors"]
    return {**fields, "provenance": document.get("provenance", {}), "kernels": document.get("kernels")}


def _strings(path: Path, utf8: NDArray[Any], offsets: NDArray[Any]) -> NDArray[Any]:
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(utf8) or (np.diff(offsets) < 0).any():
        raise FileFormatError(path, "the offsets of the node ids do not fit their text")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(utf8)]
    strings = pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)
    strings.validate(full=True)  # raises on invalid UTF-8
    return string_objects(strings)


def _document(path: Path, text: str) -> Fields:
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        version = document.get("version") if isinstance(document, dict) else None
        raise FileFormatError(path, f"version {version!r} of the format is not known here, only {_VERSION}")
    return document


def write_safetensors(fields: Fields, stream: BinaryIO) -> None:
    arrays, text = _to_arrays(fields)
    header: Fields = {"__metadata__": {_KEY: text}}
    # Widest items first, so that every array is aligned for those who map the file into memory.
    ordered = sorted(arrays.items(), key=lambda item: -item[1].itemsize)
    end = 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        dtype = _SAFETENSORS_DTYPES[array.dtype.name]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [start, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    stream.write(len(encoded).to_bytes(8, "little") + encoded)
    for _, array in ordered:
        stream.write(array.data)


def read_safetensors(path: Path) -> Fields:
    names = {short: name for name, short in _SAFETENSORS_DTYPES.items()}
    with safetensors.safe_open(path, framework="np") as file:
        text = (file.metadata() or {}).get(_KEY)
        if text is None:
            raise FileFormatError(path, f"not an embedding of this package: no {_KEY!r} in its metadata")
        for name in file.keys():  # noqa: SIM118  (not a mapping)
            part = file.get_slice(name)
            _check_array(path, name, names.get(part.get_dtype(), part.get_dtype()), tuple(part.get_shape()))
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return _from_arrays(path, arrays, text)


def write_npz(fields: Fields, stream: BinaryIO) -> None:
    arrays, text = _to_arrays(fields)
    arrays[_KEY] = np.frombuffer(text.encode(), np.uint8)
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _write_array(array, member)


def read_npz(path: Path) -> Fields:
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        if f"{_KEY}.npy" not in archive.namelist():
            raise FileFormatError(path, f"not an embedding of this package: no {_KEY!r} in it")
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > path.stat().st_size:
                raise FileFormatError(path, f"{name!r} is compressed or larger than the file")
            if name in arrays:
                raise FileFormatError(path, f"{name!r} is there twice")
            with archive.open(info) as member:
                dtype, shape = _read_array_header(path, member, info.file_size)
            if name != _KEY:
                _check_array(path, name, dtype.name, shape)
            with archive.open(info) as member:
                arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
    return _from_arrays(path, arrays, arrays.pop(_KEY).tobytes().decode())


# npy: the vectors, and the ids in a text file beside them


def _write_array(array: NDArray[Any], stream: IO[bytes]) -> None:
    # Not numpy.save: on a full disk it says "1024 requested and 512 written" and no more.
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
    stream.write(array.data)


def _read_array_header(path: Path, stream: IO[bytes], size: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The dtype and shape a .npy header declares, if they fit the `size` bytes of the stream exactly."""
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = read[version](stream)
    except Exception as error:  # a crafted header raises anything, from TokenError to TypeError
        raise FileFormatError(path, f"not an array of numpy: {type(error).__name__}") from error
    if dtype.hasobject:
        raise FileFormatError(path, "holds Python objects (pickle), which are never loaded")
    if min(shape, default=1) < 0 or math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise FileFormatError(path, f"the header asks for {shape} of {dtype}, the file has another size")
    return dtype, shape


def write_npy(fields: Fields, stream: BinaryIO) -> None:
    _write_array(fields["vectors"], stream)


def read_npy(path: Path) -> Fields:
    with open(path, "rb") as stream:
        _read_array_header(path, stream, path.stat().st_size)
        stream.seek(0)
        vectors = np.lib.format.read_array(stream, allow_pickle=False)
    if vectors.ndim != 2:
        raise FileFormatError(path, f"an array of 2 dimensions is needed, this one has shape {vectors.shape}")
    nodes = read_node_lines(nodes_file(path), len(vectors))
    if nodes is None:
        warn(f"{path}: no node ids in {nodes_file(path).name}, rows are numbered from 0")
        nodes = np.arange(len(vectors))
    return {"vectors": vectors, "nodes": nodes}


# Parquet


def to_table(fields: Fields) -> Any:
    """A pyarrow Table of the columns `id` and `vector`, provenance in its metadata."""
    nodes, vectors = fields["nodes"], fields["vectors"]
    ids = pa.array(nodes, pa.large_string() if nodes.dtype == object else pa.int64())
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    document = json.dumps({"version": _VERSION, "provenance": fields["provenance"]})
    return pa.table({"id": ids, "vector": lists}).replace_schema_metadata({_KEY: document})


def write_parquet(fields: Fields, stream: BinaryIO) -> None:
    # Neither dictionaries nor compression: values that are all different gain nothing and take time.
    pq.write_table(
        to_table(fields), stream, use_dictionary=False, compression="none", write_page_checksum=True
    )


def read_parquet(path: Path) -> Fields:
    # Opened by Python: pyarrow takes no name that is not UTF-8.
    with open(path, "rb") as stream, pq.ParquetFile(stream, page_checksum_verification=True) as file:
        _check_columns(path, file.schema_arrow.names)
        table = file.read(columns=["id", "vector"])
        metadata = file.schema_arrow.metadata
    return from_table(path, table.replace_schema_metadata(metadata))


def _check_columns(path: Path, names: list[str]) -> None:
    if "id" not in names or "vector" not in names:
        raise FileFormatError(path, f"columns 'id' and 'vector' are needed, there are {names[:9]}")


def from_table(path: Path, table: Any) -> Fields:
    """The fields of what `to_table` made; `path` is named in errors."""
    _check_columns(path, table.column_names)
    metadata = table.schema.metadata or {}
    ids, vectors = plain_strings(table["id"]).combine_chunks(), table["vector"].combine_chunks()
    if not any(test(ids.type) for test in (types.is_integer, types.is_string, types.is_large_string)):
        raise FileFormatError(path, f"column 'id' should hold integers or strings, it holds {ids.type}")
    if not any(test(vectors.type) for test in (types.is_fixed_size_list, types.is_list, types.is_large_list)):
        raise FileFormatError(path, f"column 'vector' should hold lists of numbers, it holds {vectors.type}")
    if not len(ids) or ids.null_count or vectors.null_count:
        raise FileFormatError(path, "no rows, or rows without id or vector")
    # Data-frame libraries make lists of any size of what we wrote: still good if all have one length.
    dim = len(vectors[0])
    if pc.any(pc.not_equal(pc.list_value_length(vectors), dim)).as_py():
        raise FileFormatError(path, "the vectors have different lengths")
    values = vectors.flatten()
    if values.null_count:
        raise FileFormatError(path, "a value is missing in column 'vector'")
    document = _document(path, metadata[_KEY.encode()].decode()) if _KEY.encode() in metadata else {}
    return {
        "vectors": values.to_numpy(zero_copy_only=False, writable=True).reshape(len(ids), dim),
        "nodes": ids.to_numpy() if types.is_integer(ids.type) else string_objects(ids),
        "provenance": document.get("provenance", {}),
    }
