"""Shared parts of the embedding formats: fields as arrays and one JSON text, and node ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne.errors import FileFormatError
from kernelne.graph.ids import plain_integers, string_objects
from kernelne.graph.string_ids import StringIds, string_ids, text_arrays
from kernelne.io.arrays import RowBlocks

Fields = dict[str, Any]  # the keyword arguments of `Embedding`

VERSION = 1
KEY = "kernelne_embedding"  # key of the JSON in every format that can store it

# name: dtype, dimensions, in safetensors and npz
_ARRAYS = {
    "vectors": ("float32", 2),
    "center": ("float32", 2),
    "context": ("float32", 2),
    "coefficients": ("float64", 1),
    "axes": ("float32", 2),
    "neighbourhoods": ("int64", 1),
    "nodes": ("int64", 1),
    "nodes_utf8": ("uint8", 1),  # concatenated strings; string i is [offsets[i], offsets[i+1])
    "nodes_offsets": ("int64", 1),
}


def to_arrays(fields: Fields) -> tuple[dict[str, NDArray[Any]], str]:
    """Return all fields: arrays by name, little-endian, and the rest as JSON."""
    vectors, nodes = fields["vectors"], fields["nodes"]
    arrays: dict[str, NDArray[Any]] = {"vectors": vectors}
    if nodes.dtype == object:
        ids = nodes.column if isinstance(nodes, StringIds) else pa.array(nodes, pa.large_string())
        arrays["nodes_offsets"], arrays["nodes_utf8"] = text_arrays(ids)
    else:
        arrays["nodes"] = nodes
    for name in ("center", "context", "coefficients", "axes", "neighbourhoods"):
        if fields[name] is not None and fields[name] is not vectors:
            arrays[name] = fields[name]
    little = {
        name: array
        if isinstance(array, RowBlocks)
        else np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        for name, array in arrays.items()
    }
    document = {
        "version": VERSION,
        "provenance": fields["provenance"],
        "kernels": fields["kernels"],
        "shared": [name for name in ("center", "context") if fields[name] is vectors],
    }
    return little, json.dumps(document)


def check_array(path: Path, name: str, dtype: str, shape: tuple[int, ...]) -> None:
    """Raise FileFormatError unless `to_arrays` makes arrays of this name, dtype and number of dimensions."""
    if name not in _ARRAYS:
        raise FileFormatError(path, f"not an embedding written by kernelne: it has an array {name!r}")
    wanted, ndim = _ARRAYS[name]
    if dtype != wanted or len(shape) != ndim:
        raise FileFormatError(
            path, f"array {name!r} must have {ndim} dimensions of {wanted}, not shape {shape} of {dtype}"
        )


def from_arrays(path: Path, arrays: dict[str, NDArray[Any]], text: str, mapped: bool = False) -> Fields:
    """Return the fields of arrays and text made by `to_arrays`; if `mapped`, strings stay text."""
    document = read_document(path, text)
    if "vectors" not in arrays:
        raise FileFormatError(path, "array 'vectors' is missing")
    nodes: Any = arrays.pop("nodes", None)
    utf8, offsets = arrays.pop("nodes_utf8", None), arrays.pop("nodes_offsets", None)
    if nodes is None:
        if utf8 is None or offsets is None:
            raise FileFormatError(path, "the node ids are missing")
        nodes = string_ids(offsets, utf8)
        if nodes is None:
            raise FileFormatError(
                path, "the offsets of the node ids do not match their text, or it is not UTF-8"
            )
        nodes = nodes if mapped else np.asarray(nodes)
    elif utf8 is not None or offsets is not None:
        raise FileFormatError(path, "the node ids are stored twice, as integers and as strings")
    fields: Fields = {**arrays, "nodes": nodes}
    shared = document.get("shared", [])
    for name in shared if isinstance(shared, list) else [shared]:
        if name not in ("center", "context") or name in arrays:
            raise FileFormatError(path, f"cannot share the vectors as {name!r}")
        fields[name] = arrays["vectors"]
    return {**fields, "provenance": document.get("provenance", {}), "kernels": document.get("kernels")}


def read_document(path: Path, text: str) -> dict[str, Any]:
    """Parse the JSON; raises FileFormatError if its version is unknown."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("version") != VERSION:
        version = document.get("version") if isinstance(document, dict) else None
        raise FileFormatError(path, f"version {version!r} of the format is unknown, {VERSION} is supported")
    return document


def integers_or_strings(ids: Any, mapped: bool = False) -> Any:
    """Return a large_string array of ids as int64 if all are plain integers, else as objects or, if `mapped`,
    as they are.
    """
    integers = plain_integers(ids)
    if integers is not None:
        return np.asarray(integers)
    return StringIds(ids) if mapped else string_objects(ids)
