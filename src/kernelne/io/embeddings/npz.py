"""The .npz format of an embedding: stores all fields, and can be opened by numpy.load."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import BinaryIO

import numpy as np

from kernelne.errors import FileFormatError
from kernelne.io.embeddings.npy import read_array_header, write_array
from kernelne.io.embeddings.shared import KEY, Fields, check_array, from_arrays, to_arrays


def write(fields: Fields, stream: BinaryIO) -> None:
    arrays, text = to_arrays(fields)
    arrays[KEY] = np.frombuffer(text.encode(), np.uint8)
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                write_array(array, member)


def read(path: Path) -> Fields:
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        if f"{KEY}.npy" not in archive.namelist():
            raise FileFormatError(path, f"not an embedding written by kernelne: it has no {KEY!r}")
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > path.stat().st_size:
                raise FileFormatError(path, f"{name!r} is compressed or larger than the file")
            if name in arrays:
                raise FileFormatError(path, f"{name!r} appears twice")
            with archive.open(info) as member:
                dtype, shape = read_array_header(path, member, info.file_size)
            if name != KEY:
                check_array(path, name, dtype.name, shape)
            with archive.open(info) as member:
                arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
    return from_arrays(path, arrays, arrays.pop(KEY).tobytes().decode())
