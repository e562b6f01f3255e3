"""The .safetensors format of an embedding: stores all fields, and can be memory-mapped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import safetensors
from numpy.typing import NDArray

from kernelne.errors import FileFormatError
from kernelne.io.arrays import DTYPES, write_arrays
from kernelne.io.embeddings.shared import KEY, Fields, check_array, from_arrays, to_arrays


def write(fields: Fields, stream: BinaryIO) -> None:
    arrays, text = to_arrays(fields)
    write_arrays(stream, arrays, {KEY: text})


def read(path: Path, mapped: bool = False) -> Fields:
    names = {short: name for name, short in DTYPES.items()}
    with safetensors.safe_open(path, framework="np") as file:
        text = (file.metadata() or {}).get(KEY)
        if text is None:
            raise FileFormatError(path, f"not an embedding written by kernelne: no {KEY!r} in its metadata")
        for name in file.keys():  # noqa: SIM118  (not a mapping)
            part = file.get_slice(name)
            check_array(path, name, names.get(part.get_dtype(), part.get_dtype()), tuple(part.get_shape()))
        arrays = {} if mapped else {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return from_arrays(path, _map(path) if mapped else arrays, text, mapped)


def _map(path: Path) -> dict[str, NDArray[Any]]:
    """Map the arrays of a file whose header has been checked against its size."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    whole, names = np.memmap(path, np.uint8, "r"), {short: name for name, short in DTYPES.items()}
    arrays = {}
    for name, told in header.items():
        if name != "__metadata__":
            start, stop = (8 + size + offset for offset in told["data_offsets"])
            kind = np.dtype(names[told["dtype"]]).newbyteorder("<")
            arrays[name] = np.asarray(whole[start:stop]).view(kind).reshape(told["shape"])
    return arrays
