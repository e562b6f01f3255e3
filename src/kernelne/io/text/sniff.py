"""Guess separator and header from the first lines of an edge list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelne.errors import ParameterError
from kernelne.graph.adapters import COLUMN_PAIRS
from kernelne.io.text import tokens
from kernelne.io.text.tokens import WHITESPACE

# The first ones have priority: a comma next to semicolons is probably a decimal comma.
SEPARATORS = {ord("\t"): "tabs", ord(";"): "semicolons", ord(","): "commas", WHITESPACE: "whitespace"}
_SEPARATOR_NAMES = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";", "space": " "}
# Words of column names that may also be node ids: a line of them is kept as an edge, with a warning.
_WORDS = {
    "source", "target", "from", "to", "src", "dst", "dest", "destination", "origin", "start", "end", "head",
    "tail", "node", "vertex", "id", "ids", "name", "symbol", "gene", "protein", "interactor", "bait", "prey",
    "regulator", "tf", "ligand", "receptor", "drug", "disease", "user", "item", "follower", "followee",
    "author", "coauthor", "paper", "citing", "cited", "sender", "receiver", "parent", "child", "subject",
    "object", "entity", "person", "people", "friend", "contact", "employee", "customer", "company", "account",
}  # fmt: skip
_PAIRS = {("1", "2"), ("a", "b"), ("x", "y")}
_MISSING = {"na", "nan", "null", "none", "nil", "inf", "infinity"}
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
    """Split a line into fields; returns an empty list if a quote is not closed."""
    data = np.frombuffer(bytearray(raw), np.uint8)
    found = np.empty((tokens.MAX_FIELDS, 3), np.int64)
    count = tokens.split_line(data, 0, len(data), separator, found)
    fields = []
    for left, right, quoted in found[: max(count, 0)].tolist():
        text = raw[left:right].decode()
        fields.append(Field(text.replace('""', '"') if quoted else text, bool(quoted)))
    return fields


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


def is_header(rows: Sequence[Sequence[Field]]) -> bool:
    """Whether the first of these data lines is a header."""
    first = rows[0]
    if tuple(field.text.lower() for field in first[:2]) in COLUMN_PAIRS:
        return True
    if len(rows) < 2 or len(rows[1]) != len(first):
        return False
    third = [row[2].is_number or row[2].has_decimal_comma for row in rows[1:] if len(row) == 3]
    if len(first) == 3 and first[2].is_name and 2 * sum(third) >= len(third):
        return True
    return all(b.is_integer and not a.is_integer for a, b in zip(first[:2], rows[1][:2], strict=True))


def like_names(first: str, second: str) -> bool:
    """Whether two ids look like column names: `gene A` and `gene B`, or `TF` and anything."""
    one, two = (re.sub(r"[\s_-]+", "", text.lower()) for text in (first, second))
    if one[:-1] == two[:-1] and (one[-1:], two[-1:]) in _PAIRS and re.search(r"[^\W\d]{2}", one[:-1]):
        return True
    return any(set(re.split(r"[\s_-]+", text.lower())) <= _WORDS for text in (first, second))


def cut_command(separator: int) -> str:
    """Return a shell command that keeps some of the columns of a file."""
    if separator == WHITESPACE:
        return "awk '{print $1, $2, $4}'"
    mark = chr(separator)
    option = {"\t": "", ",": "-d, "}.get(mark, f"-d{mark!r} ")
    return f"cut {option}-f1,2,4"
