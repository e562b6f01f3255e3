"""The file formats of an embedding, one writer and one reader each.

A writer gets the fields of an embedding and an open binary file; a reader gets a path and returns the fields,
the keyword arguments of `Embedding`. Everything is written through Python's own files, because other writers
(safetensors) make and rename files themselves, and report a full disk in ways of their own. No reader
believes a declared size before it has compared it with the size of the file, and none of them unpickles.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import safetensors
from numpy.typing import NDArray

from kernelne._formats import binary, text
from kernelne._formats.binary import from_table, to_table
from kernelne._formats.text import Fields, nodes_file, write_node_lines
from kernelne.errors import InputError

__all__ = [
    "DAMAGE", "FORMATS", "Format", "check_ids", "from_table", "nodes_file", "to_table", "write_node_lines",
]  # fmt: skip

# What the libraries below raise on a damaged file, next to OSError.
DAMAGE = (
    ValueError,  # and with it UnicodeError, json.JSONDecodeError, pyarrow.ArrowInvalid, InputError
    KeyError,
    OverflowError,
    EOFError,
    RuntimeError,  # an encrypted archive, JSON nested too deeply, a compression that is not there
    zipfile.BadZipFile,
    pa.ArrowException,
    safetensors.SafetensorError,
)


class Format(NamedTuple):
    """How to write and to read a format, a pattern found in the strings that it cannot hold as ids, and
    whether it holds the provenance, and all the other fields.
    """

    write: Callable[[Fields, BinaryIO], None]
    read: Callable[[Path], Fields]
    refused_ids: str | None = None
    holds_provenance: bool = False
    holds_all: bool = False


_WORD2VEC = Format(text.write_word2vec, text.read_word2vec, r"\s|^$")

FORMATS = {
    ".safetensors": Format(binary.write_safetensors, binary.read_safetensors, None, True, True),
    ".npz": Format(binary.write_npz, binary.read_npz, None, True, True),
    ".parquet": Format(binary.write_parquet, binary.read_parquet, None, True),
    ".npy": Format(binary.write_npy, binary.read_npy, r"[\r\n]|^\ufeff"),
    ".csv": Format(text.write_csv, text.read_csv),
    ".emb": _WORD2VEC,
    ".txt": _WORD2VEC,
}


def check_ids(ids: NDArray[Any], path: str | os.PathLike[str]) -> None:
    """Raise InputError if the format of `path` cannot give the ids back."""
    if ids.dtype != object:
        return
    nodes = ids.tolist()
    others = [node for node in nodes if type(node) is not str]
    if others:
        raise InputError(
            f"only ids that are strings or 64-bit integers can be saved, found {others[0]!r}: "
            "make an Embedding with nodes=[str(node) for node in nodes]"
        )
    suffix = Path(path).suffix.lower()
    refused = FORMATS[suffix].refused_ids
    bad = next((node for node in nodes if refused and re.search(refused, node)), None)
    if bad is not None:
        raise InputError(
            f"{suffix} cannot hold the id {bad!r} (white space, or empty): use .safetensors, .parquet or .csv"
        )
    surrogate = next((node for node in nodes if re.search("[\ud800-\udfff]", node)), None)
    if surrogate is not None:
        raise InputError(f"the id {surrogate!r} has no UTF-8 form: replace its surrogates")
