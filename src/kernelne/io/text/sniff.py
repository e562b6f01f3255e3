"""Guess separator and header from the first lines of an edge list."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelne.errors import FileFormatError, ParameterError
from kernelne.graph.tables import like_pair, pair_of
from kernelne.io.text import tokens
from kernelne.io.text.lines import shown
from kernelne.io.text.tokens import WHITESPACE

# The first ones have priority: a comma next to semicolons is probably a decimal comma.
SEPARATORS = {ord("\t"): "tabs", ord(";"): "semicolons", ord(","): "commas", WHITESPACE: "whitespace"}
_SEPARATOR_NAMES = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";", "space": " "}
# Words of column names that may also be node ids: where a line has them, the user must say which.
_WORDS = {
    "source", "target", "from", "to", "src", "dst", "dest", "destination", "origin", "start", "end", "head",
    "tail", "node", "vertex", "id", "ids", "name", "symbol", "gene", "protein", "interactor", "bait", "prey",
    "regulator", "tf", "ligand", "receptor", "drug", "disease", "user", "item", "follower", "followee",
    "author", "coauthor", "paper", "citing", "cited", "sender", "receiver", "parent", "child", "subject",
    "object", "entity", "person", "people", "friend", "contact", "employee", "customer", "company", "account",
    "product", "movie", "artist", "track", "playlist", "song", "book", "seller", "buyer", "merchant",
    "vendor", "supplier", "address", "wallet", "ip", "host", "url", "page", "word", "term", "terms",
    "compound", "chemical", "accession", "uniprot", "ensembl", "entrez", "go", "species", "actor", "city",
    "country", "airport", "station", "keyword", "tag", "key", "code", "no", "number", "of",
}  # fmt: skip
_MISSING = {"na", "nan", "null", "none", "nil", "inf", "infinity"}
_MOST = 10_000  # fields of a line; each takes time to look at
_MANY = 3  # lines below a header that is told by its look
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True)
class Field:
    text: str
    quoted: bool

    @property
    def is_integer(self) -> bool:
        """Whether the field is an int64 in canonical form, quoted or not."""
        return bool(tokens.parse_integer(*self._bytes)[0])

    @property
    def is_number(self) -> bool:
        return not np.isnan(tokens.parse_number(*self._bytes))

    @property
    def has_decimal_comma(self) -> bool:
        return _DECIMAL_COMMA.fullmatch(self.text) is not None

    @property
    def is_name(self) -> bool:
        """Whether the field may be the name of a numeric column, not a missing or misspelt number."""
        return re.match(r"[^\W\d]", self.text) is not None and self.text.lower() not in _MISSING

    @property
    def _bytes(self) -> tuple[NDArray[np.uint8], int, int]:
        data = bytearray(self.text.encode())
        return np.frombuffer(data or bytearray(1), np.uint8), 0, len(data)


def split(raw: bytes, separator: int) -> list[Field]:
    """Split a line into fields, at most one more than _MOST; an empty list if a quote is not closed."""
    data = np.frombuffer(bytearray(raw), np.uint8)
    most = len(raw.split()) if separator == WHITESPACE else raw.count(separator) + 1
    found = np.empty((min(most, _MOST + 1), 3), np.int64)
    count = tokens.split_line(data, 0, len(data), separator, found)
    fields = []
    for left, right, quoted in found[: max(count, 0)].tolist():
        text = raw[left:right].decode()
        fields.append(Field(text.replace('""', '"') if quoted else text, bool(quoted)))
    return fields


def check_width(path: str | os.PathLike[str], line: int, raw: bytes, fields: Sequence[Field]) -> None:
    """Raise FileFormatError if the first line has more fields than any table."""
    if len(fields) > _MOST:
        raise FileFormatError(path, f"more than {_MOST:,} fields in a line", line=line, text=shown(raw))


def read_separator(given: str | None) -> int | None:
    """Return the separator byte, WHITESPACE for a space; None if it is to be detected."""
    if given is None:
        return None
    mark = _SEPARATOR_NAMES.get(given, given)
    if len(mark) != 1 or not mark.isascii() or mark in '\n\r\0"#%':
        words = ", ".join(_SEPARATOR_NAMES)
        raise ParameterError(
            "separator",
            given,
            f"must be one ASCII character, such as ',' or ' ' for whitespace, or one of {words}",
        )
    return WHITESPACE if mark == " " else ord(mark)


def find_separator(lines: Sequence[bytes]) -> int:
    """Return the separator that splits most lines into the same 2 or 3 fields as the first line."""

    def score(separator: int) -> tuple[int, int, int]:
        rows = [split(raw, separator) for raw in lines]
        if len(rows[0]) not in (2, 3):
            return 0, 0, 0
        # Two tabs in a row probably align columns and do not mean an empty field.
        full = (all(f.text or f.quoted for f in row) or separator != ord("\t") for row in rows)
        n_alike = sum(whole and len(row) == len(rows[0]) for whole, row in zip(full, rows, strict=True))
        # Ties: prefer a separator that explains decimal commas, then one that splits no quoted text.
        n_decimal = sum(
            len(row) == 3 and row[2].has_decimal_comma and "," not in row[0].text + row[1].text
            for row in rows
        )
        n_open = sum('"' in field.text and not field.quoted for row in rows for field in row)
        return n_alike, n_decimal, -n_open

    def has_many_columns(separator: int) -> bool:
        rows = [split(raw, separator) for raw in lines]
        aligned = separator == ord("\t") and not all(field.text or field.quoted for field in rows[0])
        return not aligned and all(len(row) > 3 for row in rows)

    candidates = []
    for separator in SEPARATORS:
        if separator != WHITESPACE and has_many_columns(separator):
            break  # too many columns: later candidates would split the text of its fields
        candidates.append(separator)
    else:
        separator = next((mark for mark in b"\t;," if mark in lines[0]), WHITESPACE)
    best = max(candidates, key=score, default=separator)
    return best if score(best)[0] else separator


def is_header(rows: Sequence[Sequence[Field]]) -> bool | None:
    """Whether the first of these data lines is a header; None if it may be one or a line of ids."""
    first = rows[0]
    pair = pair_of([field.text for field in first], certain=True)
    if pair is not None and pair != (1, 0):
        return True
    below = [row for row in rows[1:] if len(row) == len(first)]
    if not below or len(rows[1]) != len(first):
        return None if like_names(*(field.text for field in first[:2])) else False
    for place, field in enumerate(first[2:], 2):
        numbers = [row[place].is_number or row[place].has_decimal_comma for row in below]
        if field.is_name and 2 * sum(numbers) >= len(numbers):
            return True
    if all(b.is_integer and not a.is_integer for a, b in zip(first[:2], rows[1][:2], strict=True)):
        return True
    doubtful = like_names(*(field.text for field in first[:2])) or stands_out(first[:2], below)
    return None if doubtful else False


def stands_out(first: Sequence[Field], below: Sequence[Sequence[Field]]) -> bool:
    """Whether the first of many lines has words only, where all others have a digit in one of the columns."""
    words = all(field.is_name and not re.search(r"\d", field.text) for field in first)
    return (
        words
        and len(below) >= _MANY
        and any(all(re.search(r"\d", row[k].text) for row in below) for k in range(len(first)))
    )


def like_names(first: str, second: str) -> bool:
    """Whether two ids look like column names: `gene A` and `gene B`, or `TF` and anything."""
    return like_pair(first, second) or any(is_word(text) for text in (first, second))


def is_word(text: str) -> bool:
    """Whether a text consists of words that are common in names of columns."""
    parts = {part for part in re.split(r"[\W_]+", text.lower()) if part}
    return bool(parts) and parts <= _WORDS
