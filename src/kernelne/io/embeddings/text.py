"""Formats of an embedding that are text: csv, word2vec, and the ids beside a .npy file."""

from __future__ import annotations

import codecs
import csv
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from kernelne.errors import FileFormatError
from kernelne.graph.ids import plain_integers, string_objects
from kernelne.io.files import check_input

Fields = dict[str, Any]  # the keyword arguments of `Embedding`


def nodes_file(path: Path) -> Path:
    """Where the ids of the vectors in the .npy file `path` are."""
    return path.with_name(path.name + ".nodes.txt")


def write_node_lines(fields: Fields, stream: BinaryIO) -> None:
    """Write the ids, one a line."""
    stream.write("".join(f"{node}\n" for node in fields["nodes"].tolist()).encode())


def read_node_lines(path: Path, n_nodes: int) -> NDArray[Any] | None:
    """The ids that `write_node_lines` wrote; None if there is no such file."""
    try:
        check_input(path)
    except FileNotFoundError:
        return None
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise FileFormatError(path, f"the node ids are not UTF-8: {error.reason}") from error
    nodes = text.split("\n")
    if nodes.pop() != "" or len(nodes) != n_nodes:
        raise FileFormatError(path, f"one whole line for each of the {n_nodes} vectors is needed")
    return _integers_or_strings(pa.array(nodes, pa.large_string()))


def _integers_or_strings(ids: Any) -> NDArray[Any]:
    integers = plain_integers(ids)
    return string_objects(ids) if integers is None else np.asarray(integers)


def _write_rows(stream: BinaryIO, ids: list[str], vectors: NDArray[np.float32], delimiter: str) -> None:
    options = pacsv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
    names = [str(column) for column in range(vectors.shape[1])]
    n_rows = max(1, 2**21 // len(names))  # about 25 MB of text at a time
    joint = delimiter.encode()
    for start in range(0, len(ids), n_rows):
        # pyarrow writes the shortest text that reads back as the same float32.
        columns = np.ascontiguousarray(vectors[start : start + n_rows].T)
        sink = pa.BufferOutputStream()
        pacsv.write_csv(pa.table([pa.array(column) for column in columns], names=names), sink, options)
        rows = sink.getvalue().to_pybytes().split(b"\n")
        heads = (node.encode() for node in ids[start : start + n_rows])
        stream.writelines([head + joint + row + b"\n" for head, row in zip(heads, rows, strict=False)])


def write_csv(fields: Fields, stream: BinaryIO) -> None:
    stream.write(",".join(["id", *map(str, range(fields["vectors"].shape[1]))]).encode() + b"\n")
    needs_quotes = re.compile(r'[",\r\n]|^\s|\s$|^$')
    ids = [
        '"' + node.replace('"', '""') + '"' if needs_quotes.search(node) else node
        for node in map(str, fields["nodes"].tolist())
    ]
    _write_rows(stream, ids, fields["vectors"], ",")


def write_word2vec(fields: Fields, stream: BinaryIO) -> None:
    n_rows, dim = fields["vectors"].shape
    stream.write(f"{n_rows} {dim}\n".encode())
    _write_rows(stream, list(map(str, fields["nodes"].tolist())), fields["vectors"], " ")


def read_csv(path: Path) -> Fields:
    with open(path, "rb") as stream:
        header = stream.readline().removeprefix(codecs.BOM_UTF8).strip().replace(b'"', b"").split(b",")
    dim = len(header) - 1
    if dim < 1 or header != [b"id", *(b"%d" % column for column in range(dim))]:
        raise FileFormatError(
            path,
            "no embedding: the header should be id,0,1,… (of a graph `kernelne embed` makes one)",
            line=1,
            text=_shown(b",".join(header)),
        )
    return _read_rows(path, dim, ",")


def read_word2vec(path: Path) -> Fields:
    with open(path, "rb") as stream:
        header, row = stream.readline(100).removeprefix(codecs.BOM_UTF8), stream.readline()
    found = re.fullmatch(rb"([0-9]{1,18}) ([0-9]{1,18})\s*", header)
    if found is None:
        raise FileFormatError(path, "the first line should be `rows columns`", line=1, text=_shown(header))
    n_rows, dim = int(found[1]), int(found[2])
    # Before anything of that size is made. The original word2vec ends its lines with a space.
    fields = row.rstrip(b"\r\n").removesuffix(b" ").count(b" ")
    if fields != dim or dim < 1:
        raise FileFormatError(path, f"{dim} values should follow the id, there are {fields}", line=2)
    result = _read_rows(path, dim, " ", trailing=row.rstrip(b"\r\n").endswith(b" "))
    if len(result["nodes"]) != n_rows:
        raise FileFormatError(path, f"{n_rows} rows are announced, there are {len(result['nodes'])}", line=1)
    return result


def _read_rows(path: Path, dim: int, delimiter: str, trailing: bool = False) -> Fields:
    """Read all lines but the first; `trailing`: each ends with a delimiter."""
    with open(path, "rb") as stream:
        stream.seek(-1, os.SEEK_END)
        if stream.read() not in (b"\n", b"\r"):
            raise FileFormatError(path, "the last line has no end: cut short (or add a line break)")
    names = ["id", *map(str, range(dim))]
    quote = '"' if delimiter == "," else False
    block_size = 2**22 + 64 * dim  # a row must fit into a block
    try:
        with open(path, "rb") as stream:  # by Python: pyarrow takes no name that is not UTF-8
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
    return {"vectors": vectors, "nodes": _integers_or_strings(table["id"].cast(pa.large_string()))}


def _blame_line(path: Path, dim: int, delimiter: str, trailing: bool, error: Exception) -> NoReturn:
    """Find the line that `error` is about, slowly: pyarrow does not always tell."""
    number = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
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


def _shown(text: bytes) -> str:
    return text.strip()[:60].decode(errors="replace")
