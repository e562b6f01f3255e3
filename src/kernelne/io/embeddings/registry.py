"""The embedding file formats, each a module with `write` and `read`.

A writer takes the fields of an embedding and an open binary file; a reader takes a path and returns the
fields, the keyword arguments of `Embedding`. Everything is written through Python files, because other
writers (safetensors) create and rename files themselves, and report a full disk differently. No reader
trusts a declared size before comparing it with the size of the file, and none of them unpickles.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import safetensors
from numpy.typing import NDArray

from kernelne._common.memory import available_bytes
from kernelne.errors import FileFormatError, InputError, ParameterError
from kernelne.graph.string_ids import StringIds
from kernelne.io.embeddings import csv_file, npy, npz, parquet, safetensors_file, word2vec
from kernelne.io.embeddings.npy import nodes_file
from kernelne.io.embeddings.shared import Fields
from kernelne.io.files import PathLike, check_input, check_output

# Exceptions that the libraries used raise for a damaged file, besides OSError.
DAMAGE = (
    ValueError,  # includes UnicodeError, json.JSONDecodeError, pyarrow.ArrowInvalid, InputError
    KeyError,
    OverflowError,
    EOFError,
    RuntimeError,  # an encrypted archive, JSON nested too deeply, an unavailable compression
    zipfile.BadZipFile,
    pa.ArrowException,
    safetensors.SafetensorError,
)


#: Share of the free memory from which on a file is mapped unless told otherwise.
LARGE = 0.25


class EmbeddingFormat(NamedTuple):
    """The writer and reader of a format, a pattern of string ids it cannot store, and whether it stores the
    provenance and all other fields; `map` reads, but leaves the vectors in the file.
    """

    write: Callable[[Fields, BinaryIO], None]
    read: Callable[[Path], Fields]
    refused_ids: str | None = None
    holds_provenance: bool = False
    holds_all: bool = False
    map: Callable[[Path], Fields] | None = None


_WORD2VEC = EmbeddingFormat(word2vec.write, word2vec.read, r"\s|^$")

FORMATS = {
    ".safetensors": EmbeddingFormat(
        safetensors_file.write,
        safetensors_file.read,
        None,
        True,
        True,
        partial(safetensors_file.read, mapped=True),
    ),
    ".npz": EmbeddingFormat(npz.write, npz.read, None, True, True),
    ".parquet": EmbeddingFormat(parquet.write, parquet.read, None, True),
    ".npy": EmbeddingFormat(npy.write, npy.read, r"[\r\n]|^\ufeff", map=partial(npy.read, mapped=True)),
    ".csv": EmbeddingFormat(csv_file.write, csv_file.read),
    ".emb": _WORD2VEC,
    ".txt": _WORD2VEC,
}


def check_ids(ids: NDArray[Any], path: str | os.PathLike[str]) -> None:
    """Raise InputError if the format of `path` cannot store the node ids."""
    if ids.dtype != object:
        return
    suffix = Path(path).suffix.lower()
    refused = FORMATS[suffix].refused_ids
    if isinstance(ids, StringIds) and refused is None:
        return  # read from UTF-8 text, as it is written
    nodes = ids.tolist()
    others = [node for node in nodes if type(node) is not str]
    if others:
        raise InputError(
            f"only ids that are strings or 64-bit integers can be saved, found {others[0]!r}: "
            "make an Embedding with nodes=[str(node) for node in nodes]"
        )
    bad = next((node for node in nodes if refused and re.search(refused, node)), None)
    if bad is not None:
        raise InputError(
            f"{suffix} cannot store the id {bad!r} (white space, or empty): use .safetensors, .parquet, .csv"
        )
    surrogate = next((node for node in nodes if re.search("[\ud800-\udfff]", node)), None)
    if surrogate is not None:
        raise InputError(f"the id {surrogate!r} cannot be encoded as UTF-8: replace its surrogates")


def known_suffix(path: PathLike) -> str:
    """Return the suffix of `path` in lower case; raises InputError if no format has this suffix."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"{os.fspath(path)}: unknown suffix {suffix!r}, an embedding has one of {', '.join(FORMATS)}"
        )
    return suffix


def find_reader(path: PathLike, mapped: bool | None) -> Callable[[Path], Fields]:
    """Return the reader of a file: one that leaves vectors in it, if `mapped` or, if None, it is large."""
    format = FORMATS[known_suffix(path)]
    size = check_input(path)
    if size == 0:
        raise FileFormatError(path, "the file is empty")
    if mapped and format.map is None:
        able = " or ".join(suffix for suffix, other in FORMATS.items() if other.map is not None)
        raise ParameterError("mapped", mapped, f"{os.fspath(path)} cannot be mapped: save it as {able}")
    free = available_bytes() if mapped is None else None
    if format.map is not None and (mapped or (free is not None and size > free * LARGE)):
        return format.map
    return format.read


def check_save(path: PathLike, overwrite: bool = False) -> None:
    """Raise the errors that `Embedding.save` would raise for this path with any embedding."""
    known_suffix(path)
    for file in files_of(path):
        check_output(file, overwrite)


def lost_in(embedding: Any, path: PathLike) -> list[str]:
    """Return the fields that `Embedding.save` would leave out in the format of `path`."""
    format = FORMATS[known_suffix(path)]
    tables = [] if format.holds_all else ["center", "context", "kernels", "coefficients"]
    lost = [name for name in tables if getattr(embedding, name) is not None]
    return lost + ["provenance"] * bool(embedding.provenance and not format.holds_provenance)


def files_of(path: PathLike) -> list[Path]:
    """Return the files that `save` writes for this path."""
    file = Path(path)
    return [file, nodes_file(file)] if known_suffix(path) == ".npy" else [file]
