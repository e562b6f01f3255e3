"""Arrays with metadata in a .safetensors file, written without a copy in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kernelne.errors import InputError

#: Names of NumPy's dtypes in the format.
DTYPES = {"float32": "F32", "float64": "F64", "int64": "I64", "uint8": "U8"}


class RowBlocks:
    """A float32 array (n, d) that is never whole in memory: its rows come in blocks, once."""

    dtype = np.dtype("<f4")
    itemsize = 4

    def __init__(self, n_rows: int, n_columns: int, blocks: Iterable[Any]) -> None:
        self.shape, self._blocks = (n_rows, n_columns), blocks
        self.nbytes = n_rows * n_columns * self.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        """Yield the blocks; raises InputError if one has another width or values that are not finite."""
        n_rows = 0
        for given in self._blocks:
            block = np.ascontiguousarray(given, self.dtype)
            if block.ndim != 2 or block.shape[1] != self.shape[1]:
                raise InputError(f"rows: a block has shape {block.shape}, expected {self.shape[1]} columns")
            if not np.isfinite(block).all():
                row = n_rows + int(np.argwhere(~np.isfinite(block))[0, 0])
                raise InputError(f"rows: not a finite float32 in row {row}")
            n_rows += len(block)
            if n_rows > len(self):
                break
            yield block
        if n_rows != len(self):
            raise InputError(f"rows: {n_rows} of them or more for {len(self)} node ids")


def write_arrays(
    stream: BinaryIO, arrays: Mapping[str, NDArray[Any] | RowBlocks], metadata: Mapping[str, str]
) -> None:
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
        for block in array if isinstance(array, RowBlocks) else [array]:
            stream.write(block.data)
