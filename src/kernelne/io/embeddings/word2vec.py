"""The text format of word2vec (.emb, .txt): a line `rows columns`, then a line a node, between blanks."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import BinaryIO

from kernelne.errors import FileFormatError
from kernelne.io.embeddings.shared import Fields
from kernelne.io.embeddings.text_rows import read_rows, write_rows
from kernelne.io.text.lines import shown


def write(fields: Fields, stream: BinaryIO) -> None:
    n_rows, dim = fields["vectors"].shape
    stream.write(f"{n_rows} {dim}\n".encode())
    write_rows(stream, fields["nodes"], fields["vectors"], " ")


def read(path: Path) -> Fields:
    with open(path, "rb") as stream:
        header, row = stream.readline(100).removeprefix(codecs.BOM_UTF8), stream.readline()
    found = re.fullmatch(rb"([0-9]{1,18}) ([0-9]{1,18})\s*", header)
    if found is None:
        raise FileFormatError(
            path, "the first line should be `rows columns`", line=1, text=shown(header.strip())
        )
    n_rows, dim = int(found[1]), int(found[2])
    # Before anything of that size is made. The original word2vec ends its lines with a space.
    fields = row.rstrip(b"\r\n").removesuffix(b" ").count(b" ")
    if fields != dim or dim < 1:
        raise FileFormatError(path, f"{dim} values should follow the id, there are {fields}", line=2)
    result = read_rows(path, dim, " ", trailing=row.rstrip(b"\r\n").endswith(b" "))
    if len(result["nodes"]) != n_rows:
        raise FileFormatError(path, f"{n_rows} rows are announced, there are {len(result['nodes'])}", line=1)
    return result
