"""Lines of an id and its vector, for the formats of an embedding that are text."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from kernelne.errors import FileFormatError
from kernelne.io.embeddings.shared import Fields, integers_or_strings
from kernelne.io.files import open_for_arrow

_VALUES = 2**18  # written at a time: about 3 MB of text, and several times as much memory


def write_rows(
    stream: BinaryIO,
    nodes: NDArray[Any],
    vectors: NDArray[np.float32],
    delimiter: str,
    quoted: Callable[[str], str] = str,
) -> None:
    """Write a line for each node; `quoted` returns an id with the quotes it needs."""
    options = pacsv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
    names = [str(column) for column in range(vectors.shape[1])]
    n_rows = max(1, _VALUES // len(names))
    joint = delimiter.encode()
    for start in range(0, len(nodes), n_rows):
        # pyarrow writes the shortest text that reads back as the same float32.
        columns = np.ascontiguousarray(vectors[start : start + n_rows].T)
        sink = pa.BufferOutputStream()
        pacsv.write_csv(pa.table([pa.array(column) for column in columns], names=names), sink, options)
        rows = sink.getvalue().to_pybytes().split(b"\n")
        heads = (quoted(str(node)).encode() for node in nodes[start : start + n_rows].tolist())
        stream.writelines([head + joint + row + b"\n" for head, row in zip(heads, rows, strict=False)])


def read_rows(path: Path, dim: int, delimiter: str, trailing: bool = False) -> Fields:
    """Read all lines but the first; `trailing`: each ends with a delimiter."""
    with open(path, "rb") as stream:
        stream.seek(-1, os.SEEK_END)
        if stream.read() not in (b"\n", b"\r"):
            raise FileFormatError(path, "the last line has no end: cut short (or add a line break)")
    names = ["id", *map(str, range(dim))]
    quote = '"' if delimiter == "," else False
    block_size = 2**22 + 64 * dim  # a row must fit into a block
    try:
        with open_for_arrow(path) as stream:
            table = pacsv.read_csv(
                stream,
                pacsv.ReadOptions(skip_rows=1, column_names=names + [""] * trailing, block_size=block_size),
                pacsv.ParseOptions(
                    delimiter=delimiter, quote_char=quote, newlines_in_values=delimiter == ","
                ),
                pacsv.ConvertOptions(
                    column_types={"id": pa.string(), **dict.fromkeys(names[1:], pa.float32())},
                    include_columns=names,
                    null_values=[],
                ),
            )
    except pa.ArrowInvalid as error:
        _blame_line(path, dim, delimiter, trailing, error)
    vectors = np.empty((len(table), dim), dtype=np.float32)
    for column, name in enumerate(names[1:]):
        vectors[:, column] = table[name].to_numpy()
    if not np.isfinite(vectors).all():
        _blame_line(path, dim, delimiter, trailing, ValueError("a value is not finite"))
    return {"vectors": vectors, "nodes": integers_or_strings(table["id"].cast(pa.large_string()))}


def _blame_line(path: Path, dim: int, delimiter: str, trailing: bool, error: Exception) -> NoReturn:
    """Find the line that `error` is about, slowly: pyarrow does not always tell."""
    number = re.compile(r"[-+]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
    largest = float(np.finfo(np.float32).max)
    # A csv.Error (a field too long for it) only means that the line stays unknown.
    with open(path, encoding="utf-8", errors="replace", newline="") as stream, suppress(csv.Error):
        stream.readline()
        if delimiter == ",":
            reader = csv.reader(stream)
        else:
            reader = csv.reader(stream, delimiter=delimiter, quoting=csv.QUOTE_NONE)
        for row in filter(None, reader):
            line = reader.line_num + 1
            values = row[1 : len(row) - trailing]
            if len(values) != dim:
                raise FileFormatError(
                    path, f"{dim} values should follow the id, there are {len(values)}", line=line
                ) from error
            for text in values:
                if not number.fullmatch(text) or not abs(float(text)) <= largest:
                    raise FileFormatError(path, "not a finite number", line=line, text=text) from error
    raise error
