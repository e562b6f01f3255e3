"""The .npy format of an embedding: the vectors, with the node ids in a text file next to it."""

from __future__ import annotations

import hashlib
import math
from codecs import BOM_UTF8
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kernelne.errors import FileFormatError, warn
from kernelne.graph.string_ids import string_ids
from kernelne.io.embeddings.shared import Fields, integers_or_strings
from kernelne.io.files import check_input

_MARK = 64  # characters


def nodes_file(path: Path) -> Path:
    """Return the path of the file with the node ids of the .npy file `path`."""
    return path.with_name(path.name + ".nodes.txt")


def _mark(text: bytes) -> str:
    """Return a hash of the text of the ids as blanks and tabs.

    It is put into the blanks that pad the header of the vectors, which every reader of the format skips: two
    files cannot be replaced at once, and vectors must not be read with the ids of others.
    """
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return "".join(" \t"[byte >> bit & 1] for byte in digest for bit in range(8))


def _text(fields: Fields) -> bytes:
    return "".join(f"{node}\n" for node in fields["nodes"].tolist()).encode()


def write_node_lines(fields: Fields, stream: BinaryIO) -> None:
    """Write the node ids, one per line."""
    stream.write(_text(fields))


def read_node_lines(path: Path, n_nodes: int, mark: str = "", mapped: bool = False) -> Any:
    """Read node ids written by `write_node_lines`; returns None if the file does not exist.

    mark: the hash of the ids that the vectors belong to, if these have one. mapped: strings stay text.
    """
    try:
        check_input(path)
    except FileNotFoundError:
        return None
    content = path.read_bytes().removeprefix(BOM_UTF8).replace(b"\r\n", b"\n")
    data = np.frombuffer(content, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if not content.endswith(b"\n") or len(ends) != n_nodes:
        raise FileFormatError(path, f"expected one complete line for each of the {n_nodes} vectors")
    ids = string_ids(np.append(0, ends - np.arange(n_nodes)), data[data != ord("\n")])
    if ids is None:
        raise FileFormatError(path, "the node ids are not UTF-8")
    if "\t" in mark and mark != _mark(content):
        told = "these are not the ids that the vectors were saved with: a later save was interrupted, or the "
        told += "file was changed; numpy.save(path, numpy.load(path)) puts the vectors with these ids"
        raise FileFormatError(path, told)
    return integers_or_strings(ids.column, mapped)


def write_array(array: NDArray[Any], stream: IO[bytes], mark: str = "") -> None:
    """Write an array in .npy format, with a mark in the padding of its header."""
    # Not numpy.save: on a full disk its only message is "1024 requested and 512 written".
    header = repr(np.lib.format.header_data_from_array_1_0(array)) + mark
    header += " " * (-(len(header) + 11) % 64) + "\n"
    stream.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
    stream.write(array.data)


def read_array_header(path: Path, stream: IO[bytes], size: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return dtype and shape of a .npy header, checked to match the `size` of the stream in bytes."""
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = read[version](stream)
    except Exception as error:  # a crafted header may raise anything, from TokenError to TypeError
        raise FileFormatError(path, f"not an array in .npy format: {type(error).__name__}") from error
    if dtype.hasobject:
        raise FileFormatError(path, "contains Python objects (pickle), which are never loaded")
    if min(shape, default=1) < 0 or math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise FileFormatError(path, f"the header declares {shape} of {dtype}, but the file has another size")
    return dtype, shape


def write(fields: Fields, stream: BinaryIO) -> None:
    write_array(fields["vectors"], stream, _mark(_text(fields)))


def read(path: Path, mapped: bool = False) -> Fields:
    with open(path, "rb") as stream:
        dtype, shape = read_array_header(path, stream, path.stat().st_size)
        end = stream.tell()
        stream.seek(0)
        mark = stream.read(end).decode("latin-1").rpartition("}")[2][:_MARK]
        stream.seek(0)
        if len(shape) != 2:
            raise FileFormatError(path, f"expected an array of 2 dimensions, this one has shape {shape}")
        # Other numbers are converted, and so read.
        if mapped and dtype == np.float32 and dtype.isnative:
            vectors = np.asarray(np.lib.format.open_memmap(path, "r"))
        else:
            vectors = np.lib.format.read_array(stream, allow_pickle=False)
    nodes = read_node_lines(nodes_file(path), len(vectors), mark, mapped)
    if nodes is None:
        warn(f"{path}: no node ids in {nodes_file(path).name}, rows are numbered from 0")
        nodes = np.arange(len(vectors))
    return {"vectors": vectors, "nodes": nodes}
