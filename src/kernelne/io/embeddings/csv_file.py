"""The .csv format of an embedding: a header id,0,1,… and a line a node."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import BinaryIO

from kernelne.errors import FileFormatError
from kernelne.io.embeddings.shared import Fields
from kernelne.io.embeddings.text_rows import read_rows, write_rows
from kernelne.io.text.lines import shown

_NEEDS_QUOTES = re.compile(r'[",\r\n]|^\s|\s$|^$')


def write(fields: Fields, stream: BinaryIO) -> None:
    stream.write(",".join(["id", *map(str, range(fields["vectors"].shape[1]))]).encode() + b"\n")
    write_rows(stream, fields["nodes"], fields["vectors"], ",", _quoted)


def _quoted(node: str) -> str:
    return '"' + node.replace('"', '""') + '"' if _NEEDS_QUOTES.search(node) else node


def read(path: Path) -> Fields:
    with open(path, "rb") as stream:
        header = stream.readline().removeprefix(codecs.BOM_UTF8).strip().replace(b'"', b"").split(b",")
    dim = len(header) - 1
    if dim < 1 or header != [b"id", *(b"%d" % column for column in range(dim))]:
        raise FileFormatError(
            path,
            "no embedding: the header should be id,0,1,… (of a graph `kernelne embed` makes one)",
            line=1,
            text=shown(b",".join(header)),
        )
    return read_rows(path, dim, ",")
