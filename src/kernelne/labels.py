"""Labels of nodes: read from a text file, and matched to the rows of a graph or an embedding."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kernelne import _sniff, _tokens
from kernelne._ids import id_column, node_array, plain_integers, string_objects, unknown_node
from kernelne._sniff import Field
from kernelne._tokens import WHITESPACE
from kernelne.errors import FileFormatError, InputError, ParameterError

_SAMPLE = 100  # data lines looked at to find the separator
_LARGEST = 1 << 32  # bytes of the indicator: a file beyond it holds names rather than labels
_LABEL_NAMES = {
    "label", "labels", "class", "classes", "group", "groups", "community", "communities", "category",
    "categories", "cluster", "topic", "type", "target", "y",
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """Which nodes have which labels.

    nodes      (n,) ids, all different, in the order of the file: int64, or objects (str)
    classes    (K,) their names, ascending: int64 if all are plain integers, else objects (str)
    indicator  (n, K) bool, read-only: whether node i has class j; no row is empty
    """

    nodes: NDArray[Any]
    classes: NDArray[Any]
    indicator: NDArray[np.bool_]

    def __post_init__(self) -> None:
        checked = {"nodes": node_array(self.nodes), "classes": node_array(self.classes)}
        indicator = np.asarray(self.indicator)
        shape = len(checked["nodes"]), len(checked["classes"])
        if indicator.shape != shape or indicator.dtype != bool:
            raise InputError(
                f"indicator: bool of shape {shape} is needed, given {indicator.dtype} of {indicator.shape}"
            )
        if len(empty := np.flatnonzero(~indicator.any(axis=1))):
            node = checked["nodes"].tolist()[empty[0]]
            raise InputError(f"the node {node!r} has no label: leave it out")
        for name in checked:
            if len(set(checked[name].tolist())) < len(checked[name]):
                raise InputError(f"{name}: one comes more than once; give each once")
        for name, array in (checked | {"indicator": indicator}).items():
            array = array.view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def from_values(cls, nodes: Any, values: Any) -> Labels:
        """One label a node: `values[i]`, an int or a str, is that of `nodes[i]`."""
        classes, codes = np.unique(np.asarray(values), return_inverse=True)
        return cls(nodes, classes, codes[:, None] == np.arange(len(classes)))

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        several = "" if self.single is not None else f", up to {self.indicator.sum(axis=1).max()} a node"
        return f"<Labels of {len(self):,} nodes, {len(self.classes):,} classes{several}>"

    @cached_property
    def single(self) -> NDArray[np.int64] | None:
        """(n,) int64 positions in `classes` if every node has one label, else None."""
        if (self.indicator.sum(axis=1) != 1).any():
            return None
        return np.asarray(self.indicator.argmax(axis=1), np.int64)

    def for_nodes(self, nodes: Any, *, unknown: str = "error") -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The rows of `nodes` that have labels, (m,) int64 ascending, and their indicator, (m, K) bool.

        Nodes without a label are left out. A labelled id that is not among `nodes` raises UnknownNodeError,
        or is left out too if `unknown` is "skip". Where one side has integers and the other strings, they are
        compared as text.
        """
        if unknown not in ("error", "skip"):
            raise ParameterError("unknown", unknown, "must be 'error' or 'skip'")
        nodes = node_array(nodes)
        known, mine = (_comparable(ids) for ids in (nodes, self.nodes))
        if known.type != mine.type:
            known, mine = known.cast(pa.large_string()), mine.cast(pa.large_string())
        rows = pc.fill_null(pc.index_in(mine, value_set=known), -1).to_numpy(zero_copy_only=False)
        missing = np.flatnonzero(rows < 0)
        if len(missing) and unknown == "error":
            node = self.nodes.tolist()[missing[0]]
            raise unknown_node(
                f"{len(missing):,} of {len(self):,} labelled nodes are unknown here, the first is {node!r} "
                "(unknown='skip' leaves them out)",
                node,
                nodes,
            )
        order = np.argsort(rows, kind="stable")[len(missing) :]
        return rows[order].astype(np.int64), self.indicator[order]


def read_labels(
    path: str | os.PathLike[str], *, header: bool | None = None, separator: str | None = None
) -> Labels:
    """Read the labels of nodes: on each line a node and its label, or several labels with commas between.

    The file is UTF-8 text, compressed if its name ends in .gz or .zst. Node and labels stand between tabs,
    blanks, semicolons or commas; where it is commas, several labels have semicolons between them. A node may
    also have a line for each of its labels. Blank lines and lines that start with # or % are skipped.

    Node ids are read as `read_graph` reads them: integers if all are, else strings; so are the labels.

    Parameters
    ----------
    header: whether the first data line names the columns. None: it does if it reads like `node label`, or if
        it holds words where all lines below have an integer for a node.
    separator: the character between node and labels, or tab, comma, semicolon or space; None finds it from
        the first lines and, for blanks and commas, from the name: a .csv has commas.
    """
    mark = _sniff.read_separator(separator)
    sample = list(islice(_data_lines(path), _SAMPLE))
    if not sample:
        raise FileFormatError(path, "no labels in the file")
    if mark is None:
        mark = _find_separator(path, [raw for _, raw in sample])
    if header is None:
        header = _is_header([_sniff.split(raw, mark) for _, raw in sample])
    first_line = sample[0][0] + header
    nodes, lists = _read_columns(path, mark, first_line)
    if not len(nodes):
        raise FileFormatError(path, "no labels in the file: its one line was taken for a header")
    split = pc.split_pattern(lists, _joint(mark))
    owners = pc.list_parent_indices(split).to_numpy()
    names = pc.utf8_trim_whitespace(pc.list_flatten(split))
    empty = pc.index(names, pa.scalar("", pa.large_string())).as_py()
    if empty >= 0:
        line, raw = next(islice(_data_lines(path, first_line), int(owners[empty]), None))
        expected = f"expected a label before and after each {_joint(mark)!r}"
        raise FileFormatError(path, expected, line=line, text=_tokens.text_of(raw))
    ids, rows = _encode(nodes)
    classes, columns = _encode(names)
    order = np.argsort(classes, kind="stable")
    ranks = np.argsort(order)
    if len(ids) * len(classes) > _LARGEST:
        raise FileFormatError(
            path, f"{len(classes):,} different labels for {len(ids):,} nodes: are these labels, or names?"
        )
    indicator = np.zeros((len(ids), len(classes)), np.bool_)
    indicator[rows[owners], ranks[columns]] = True
    return Labels(ids, classes[order], indicator)


def _comparable(nodes: NDArray[Any]) -> Any:
    ids = id_column(nodes)
    return pa.array(list(map(str, nodes)), pa.large_string()) if ids is None else ids


def _encode(texts: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The different values in the order of first sight, integers if all are, and the position of each."""
    integers = plain_integers(texts)
    encoded = (texts if integers is None else integers).dictionary_encode()
    values = encoded.dictionary
    return (
        string_objects(values) if integers is None else values.to_numpy(zero_copy_only=False),
        encoded.indices.to_numpy(zero_copy_only=False),
    )


def _data_lines(path: str | os.PathLike[str], first_line: int = 0) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of the lines that are neither blank nor comments: slow, for a few of them."""
    line = 0
    for buffer, start, stop in _tokens.chunks(path):
        _tokens.check_text(path, buffer, start, stop, line)
        for raw in bytes(buffer[start : stop - 1]).split(b"\n"):
            line += 1
            text = raw.strip(b" \t\r")
            if text and text[0] not in b"#%" and line >= first_line:
                yield line, raw.removesuffix(b"\r")


def _joint(mark: int) -> str:
    """What stands between several labels."""
    return ";" if mark == ord(",") else ","


def _find_separator(path: str | os.PathLike[str], lines: Sequence[bytes]) -> int:
    """The separator that splits most lines in two; among several the one that comes first in a line."""

    def score(mark: int) -> tuple[int, int, int]:
        rows = [_sniff.split(raw, mark) for raw in lines]
        n_open = sum('"' in field.text and not field.quoted for row in rows for field in row)
        first = min((len(row[0].text) for row in rows if len(row) == 2), default=0)
        return sum(len(row) == 2 for row in rows), -n_open, -first

    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    marks = [mark for mark in _sniff.SEPARATORS if mark != WHITESPACE or ".csv" not in suffixes]
    best = max(marks, key=score)
    return best if score(best)[0] else next((mark for mark in b"\t;," if mark in lines[0]), WHITESPACE)


def _is_header(rows: Sequence[Sequence[Field]]) -> bool:
    if len(rows[0]) != 2:
        return False
    node, label = rows[0]
    if label.text.lower() in _LABEL_NAMES and _sniff.like_names(node.text, node.text):
        return True
    words = node.is_name and label.is_name
    return words and len(rows) > 1 and all(len(row) == 2 and row[0].is_integer for row in rows[1:])


def _read_columns(path: str | os.PathLike[str], mark: int, first_line: int) -> tuple[Any, Any]:
    """The two fields of each line as large_string arrays."""
    text = np.empty((2, _tokens.BUFFER), np.uint8)
    ends = np.zeros((2, _tokens.BUFFER // 2 + 2), np.int32)  # no data line is shorter than "1\n"
    out = np.empty((2, 0), np.int64), np.empty(0), text, ends
    pieces: tuple[list[Any], list[Any]] = ([], [])
    line = 0
    for buffer, start, stop in _tokens.chunks(path):
        _tokens.check_text(path, buffer, start, stop, line)
        count, status, position, line = _tokens.scan(
            buffer, start, stop, line, first_line, mark, 2, 2, False, True, out
        )
        if status != _tokens.OK:
            raise _line_error(path, status, mark, line, _tokens.text_at(buffer, position))
        for k, column in enumerate(pieces):
            bounds = pa.py_buffer(ends[k, : count + 1].copy())
            data = pa.py_buffer(text[k, : ends[k, count]].copy())
            chunk = pa.Array.from_buffers(pa.string(), count, [None, bounds, data])
            column.append(chunk.cast(pa.large_string()))
    nodes, lists = (pa.concat_arrays(column) for column in pieces)
    return nodes, lists


def _line_error(
    path: str | os.PathLike[str], status: int, mark: int, line: int, text: str
) -> FileFormatError:
    between = _sniff.SEPARATORS.get(mark, repr(chr(mark)))
    wanted = f"expected a node and its labels between {between}, {_joint(mark)!r} between several labels"
    expected = {
        _tokens.EMPTY_ID: f"{wanted}; a field is empty",
        _tokens.BAD_QUOTE: "expected a closing quote at the end of the field",
        _tokens.BAD_RETURN: "a carriage return inside a line: lines must end in \\n or \\r\\n",
        _tokens.TOO_LONG: f"a line longer than {_tokens.MAX_LINE} bytes: not a file of labels",
    }.get(status, wanted)
    return FileFormatError(path, expected, line=line, text=text)
