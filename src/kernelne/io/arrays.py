"""Arrays with metadata in a .safetensors file, written without a copy in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO

from numpy.typing import NDArray

#: Names of NumPy's dtypes in the format.
DTYPES = {"float32": "F32", "float64": "F64", "int64": "I64", "uint8": "U8"}


def write_arrays(stream: BinaryIO, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write C-contiguous arrays of the dtypes above, and texts."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    # Widest items first, so that every array is aligned if the file is memory-mapped.
    ordered = sorted(arrays.items(), key=lambda item: -item[1].itemsize)
    end = 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        dtype = DTYPES[array.dtype.name]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [start, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    stream.write(len(encoded).to_bytes(8, "little") + encoded)
    for _, array in ordered:
        stream.write(array.data)
