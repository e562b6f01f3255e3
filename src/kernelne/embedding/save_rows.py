"""Embeddings that are written row by row: their vectors may be larger than the memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kernelne._common.checks import check_count
from kernelne.embedding.checks import finite_array, kernel_pairs, make_lookup, plain_json
from kernelne.errors import InputError
from kernelne.graph.ids import node_array
from kernelne.io.arrays import RowBlocks
from kernelne.io.embeddings.registry import FORMATS, check_ids, check_save, known_suffix
from kernelne.io.files import PathLike, atomic_output

_FORMATS = (".safetensors", ".parquet")


def save_rows(
    path: PathLike,
    nodes: Any,
    dim: int,
    rows: Iterable[Any],
    *,
    overwrite: bool = False,
    provenance: Any = None,
    center: Any = None,
    context: Any = None,
    kernels: Any = None,
    coefficients: Any = None,
    axes: Any = None,
    neighbourhoods: Any = None,
) -> None:
    """Save an embedding whose vectors come in blocks of rows; no more than a block of them is in memory.

    path: a .safetensors file, which holds everything, or a .parquet file, which holds vectors, ids and
        provenance.
    nodes: the ids of all rows, as in `Embedding`.
    dim: number of columns.
    rows: arrays of shape (m, dim) with any number of rows each, one after the other.

    The other parameters are fields of `Embedding`; `center` and `context` may be arrays that are mapped to a
    file (numpy.memmap), of which only parts are in memory at a time. `Embedding.load` returns what was saved,
    with `mapped` without reading it whole. The file is written completely or not at all.
    """
    if known_suffix(path) not in _FORMATS:
        raise InputError(f"{Path(path)}: rows are written to {' or '.join(_FORMATS)} files only")
    check_count("dim", dim)
    check_save(path, overwrite)
    ids = node_array(nodes)
    check_ids(ids, path)
    make_lookup(ids)  # raises if one is repeated
    shapes = {"coefficients": ("float64", 1), "axes": ("float32", 2), "neighbourhoods": ("int64", 1)}
    fields: dict[str, Any] = {"center": center, "context": context}
    fields |= {"coefficients": coefficients, "axes": axes, "neighbourhoods": neighbourhoods}
    for name, given in fields.items():
        if given is not None:
            fields[name] = finite_array(name, given, *shapes.get(name, ("float32", 2)))
            if name in ("center", "context", "neighbourhoods") and len(fields[name]) != len(ids):
                raise InputError(f"{name} has {len(fields[name])} rows for {len(ids)} node ids")
    fields |= {
        "vectors": RowBlocks(len(ids), dim, rows),
        "nodes": ids,
        "provenance": plain_json({} if provenance is None else provenance),
        "kernels": None if kernels is None else kernel_pairs(kernels),
    }
    with atomic_output(path, overwrite) as temporary, open(temporary, "wb") as stream:
        FORMATS[known_suffix(path)].write(fields, stream)
