"""The .safetensors format of an embedding: stores all fields, and can be memory-mapped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO

import safetensors

from kernelne.errors import FileFormatError
from kernelne.io.embeddings.shared import KEY, Fields, check_array, from_arrays, to_arrays

_DTYPES = {"float32": "F32", "float64": "F64", "int64": "I64", "uint8": "U8"}


def write(fields: Fields, stream: BinaryIO) -> None:
    arrays, text = to_arrays(fields)
    header: dict[str, Any] = {"__metadata__": {KEY: text}}
    # Widest items first, so that every array is aligned if the file is memory-mapped.
    ordered = sorted(arrays.items(), key=lambda item: -item[1].itemsize)
    end = 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        dtype = _DTYPES[array.dtype.name]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [start, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    stream.write(len(encoded).to_bytes(8, "little") + encoded)
    for _, array in ordered:
        stream.write(array.data)


def read(path: Path) -> Fields:
    names = {short: name for name, short in _DTYPES.items()}
    with safetensors.safe_open(path, framework="np") as file:
        text = (file.metadata() or {}).get(KEY)
        if text is None:
            raise FileFormatError(path, f"not an embedding written by kernelne: no {KEY!r} in its metadata")
        for name in file.keys():  # noqa: SIM118  (not a mapping)
            part = file.get_slice(name)
            check_array(path, name, names.get(part.get_dtype(), part.get_dtype()), tuple(part.get_shape()))
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return from_arrays(path, arrays, text)
