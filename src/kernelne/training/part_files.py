"""Parts of a table in files: the working files of training out of core, and those of checkpoints."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CHUNK = 2**24


class PartFiles(Sequence[NDArray[np.float32]]):
    """A table in parts, each the bytes of a float32 array (rows, dim) in a file; item i is mapped to memory.

    A file is never changed once it is written: `put` writes another one and removes the old.
    """

    def __init__(self, paths: Sequence[Path], dim: int) -> None:
        self.paths, self.dim = list(paths), dim

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: Any) -> Any:
        return np.memmap(self.paths[i], np.float32, "r").reshape(-1, self.dim)

    def read(self, i: int, buffer: NDArray[np.float32]) -> NDArray[np.float32]:
        """Read part i to the beginning of an array of one dimension; returns it as a part."""
        size = self.paths[i].stat().st_size // 4
        read_array(self.paths[i], 0, buffer[:size])
        return buffer[:size].reshape(-1, self.dim)

    def put(self, i: int, part: NDArray[np.float32], path: Path) -> None:
        """Write part i to a new file, and remove the one before."""
        part.tofile(path)
        before, self.paths[i] = self.paths[i], path
        before.unlink()


def read_array(path: Path, offset: int, array: NDArray[Any]) -> None:
    """Fill an array with the bytes of a file from `offset` on."""
    memory: Any = array.reshape(-1).view(np.uint8)
    done = 0
    with open(path, "rb", buffering=0) as file:
        file.seek(offset)
        while done < len(memory):  # a call reads 2 GiB at most
            if not (read := file.readinto(memory[done:])):
                raise OSError(f"{path} is too short")
            done += read


def room_on_disk(shape: tuple[int, ...], folder: Path | None) -> Any:
    """Return an array in a file without a name, whose space is free again when the array is gone.

    folder: where the file is, if it exists; else that of temporary files.
    """
    with tempfile.TemporaryFile(dir=folder if folder is not None and folder.is_dir() else None) as file:
        return np.memmap(file, np.float32, "w+", shape=shape)


def keep_part(table: Any, i: int, path: Path) -> None:
    """Have part i of a table in a file at `path`, on the disk for good: a link if it is in a file already."""
    path.unlink(missing_ok=True)
    if isinstance(table, PartFiles):
        try:
            os.link(table.paths[i], path)
        except OSError:  # another file system, or one without links
            shutil.copyfile(table.paths[i], path)
    else:
        np.ascontiguousarray(table[i]).tofile(path)
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_digest(path: Path) -> str:
    """Hash of a file's content."""
    total = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(_CHUNK):
            total.update(block)
    return total.hexdigest()


def remove_folder(folder: Path) -> None:
    with suppress(OSError):
        shutil.rmtree(folder)
