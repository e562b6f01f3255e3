"""The .safetensors format of an embedding: stores all fields, and can be memory-mapped."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import safetensors

from kernelne.errors import FileFormatError
from kernelne.io.arrays import DTYPES, write_arrays
from kernelne.io.embeddings.shared import KEY, Fields, check_array, from_arrays, to_arrays


def write(fields: Fields, stream: BinaryIO) -> None:
    arrays, text = to_arrays(fields)
    write_arrays(stream, arrays, {KEY: text})


def read(path: Path) -> Fields:
    names = {short: name for name, short in DTYPES.items()}
    with safetensors.safe_open(path, framework="np") as file:
        text = (file.metadata() or {}).get(KEY)
        if text is None:
            raise FileFormatError(path, f"not an embedding written by kernelne: no {KEY!r} in its metadata")
        for name in file.keys():  # noqa: SIM118  (not a mapping)
            part = file.get_slice(name)
            check_array(path, name, names.get(part.get_dtype(), part.get_dtype()), tuple(part.get_shape()))
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return from_arrays(path, arrays, text)
