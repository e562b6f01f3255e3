"""Node labels: read them from a text file, and match them to the rows of a graph or an embedding."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kernelne.errors import FileFormatError, InputError, ParameterError
from kernelne.graph.ids import id_column, node_array, plain_integers, string_objects, unknown_node
from kernelne.io.text import lines as text_lines
from kernelne.io.text import sniff, tokens
from kernelne.io.text.columns import Layout, read_columns
from kernelne.io.text.sniff import Field
from kernelne.io.text.tokens import WHITESPACE

_SAMPLE = 100  # data lines used to detect the separator
_LARGEST = 1 << 32  # bytes of the indicator: a larger file probably contains names, not labels
_NODE_NAMES = {"node", "nodes", "node_id", "nodeid", "node id", "id", "name", "vertex", "vertex_id"}
_LABEL_NAMES = {
    "label", "labels", "class", "classes", "group", "groups", "community", "communities", "category",
    "categories", "cluster", "topic", "type", "target", "y",
}  # fmt: skip


def by_id(given: Any, nodes: Any = None) -> Any:
    """Convert a mapping {node: label}, or a pandas Series indexed by node ids, to Labels.

    Other values are returned unchanged. So is a Series with the default index 0, 1, …, unless these are node
    ids: all of them are in `nodes`, or all of `nodes` are in the index.
    """
    if isinstance(given, Mapping):
        return Labels.from_values(list(given), list(given.values()))
    index: Any = getattr(given, "index", None)
    if hasattr(index, "to_numpy") and hasattr(given, "to_numpy") and np.ndim(given) == 1:
        ids = index.to_numpy()
        if np.array_equal(ids, np.arange(len(ids))):
            if nodes is None or not _are_ids(len(ids), node_array(nodes)):
                return given
            ids = np.arange(len(ids))
        return Labels.from_values(ids, given.to_numpy())
    return given


def _are_ids(count: int, nodes: NDArray[Any]) -> bool:
    """Whether all of 0 … count - 1 are in `nodes`, as integers or as text, or contain all of `nodes`."""
    if nodes.dtype != object:
        n_shared = int(((nodes >= 0) & (nodes < count)).sum())
    else:
        texts = set(map(str, nodes.tolist()))
        n_shared = sum(str(number) in texts for number in range(count))
    return n_shared > 0 and n_shared in (count, len(nodes))


def as_labels(given: Any, nodes: Any) -> Labels:
    """Convert to Labels: Labels, anything `by_id` accepts, or one value per node in the order of `nodes`."""
    named = by_id(given, nodes)
    return named if isinstance(named, Labels) else Labels.from_values(nodes, named)


class Labels:
    """The labels of nodes.

    nodes      (n,) unique node ids, in the order of the file: int64, or objects (str)
    classes    (K,) the distinct labels, sorted: int64 if all are plain integers, else objects (str)
    indicator  (n, K) bool, read-only: whether node i has class j; no row is empty. Computed on first access
    """

    def __init__(self, nodes: Any, classes: Any, indicator: Any) -> None:
        table = np.asarray(indicator)
        shape = len(nodes), len(classes)
        if table.shape != shape or table.dtype != bool:
            raise InputError(
                f"indicator must be bool of shape {shape}, not {table.dtype} of shape {table.shape}"
            )
        self._store(nodes, classes, *table.nonzero())

    @classmethod
    def from_values(cls, nodes: Any, values: Any) -> Labels:
        """Build Labels with one label per node: `values[i]`, an int or a str, is the label of `nodes[i]`."""
        given = np.asarray(values)
        missing = (given == np.array(None)) | (given != given) if given.dtype.kind in "fO" else []
        if (empty := np.flatnonzero(missing)).size:
            raise InputError(f"values[{empty[0]}] is {given[empty[0]]}: leave out nodes without a label")
        if given.shape != (len(nodes),):
            raise InputError(f"values has shape {given.shape} for {len(nodes)} nodes: give one per node")
        try:
            classes, codes = np.unique(given, return_inverse=True)
        except TypeError as error:
            raise InputError(f"values: all must be ints, or all strs ({error})") from None
        return cls._from_pairs(nodes, classes, np.arange(len(codes)), codes)

    @classmethod
    def _from_pairs(cls, nodes: Any, classes: Any, owners: NDArray[Any], columns: NDArray[Any]) -> Labels:
        """Build Labels where node `owners[k]` has class `columns[k]`; pairs may be unsorted and repeated."""
        made = cls.__new__(cls)
        pairs = np.unique(owners.astype(np.int64) * max(1, len(classes)) + columns)
        made._store(nodes, classes, *np.divmod(pairs, max(1, len(classes))))
        return made

    def _store(self, nodes: Any, classes: Any, owners: NDArray[Any], columns: NDArray[Any]) -> None:
        """Store pairs sorted by node: memory grows with the number of labels, not with n · K."""
        self.nodes, self.classes = node_array(nodes).view(), node_array(classes).view()
        self._owners, self._columns = owners, columns
        counts = np.bincount(owners, minlength=len(self.nodes))
        if len(empty := np.flatnonzero(counts == 0)):
            node = self.nodes.tolist()[empty[0]]
            raise InputError(f"the node {node!r} has no label: leave it out")
        for name in ("nodes", "classes"):
            array = getattr(self, name)
            if len(set(array.tolist())) < len(array):
                raise InputError(f"{name} contains duplicates; give each once")
            array.flags.writeable = False
        self._most = int(counts.max(initial=0))

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        several = "" if self._most <= 1 else f", up to {self._most} a node"
        return f"<Labels of {len(self):,} nodes, {len(self.classes):,} classes{several}>"

    @cached_property
    def indicator(self) -> NDArray[np.bool_]:
        """(n, K) bool, read-only; raises InputError if it would be larger than 4 GiB."""
        table = self._rows(np.arange(len(self)))
        table.flags.writeable = False
        return table

    @property
    def single(self) -> NDArray[np.int64] | None:
        """(n,) int64 positions in `classes` if every node has one label, else None."""
        return self._columns.astype(np.int64) if self._most <= 1 else None

    @property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(k,) and (k,) int64: positions in `nodes`, ascending, and in `classes`, of each pair."""
        return self._owners.astype(np.int64), self._columns.astype(np.int64)

    def among(self, nodes: Any, *, unknown: str = "error") -> tuple[NDArray[np.int64], Labels]:
        """As `for_nodes`, but returns Labels of these rows only, in their order, without an indicator."""
        rows, mine = self._match(nodes, unknown)
        place = np.full(len(self), -1)
        place[mine] = np.arange(len(mine))
        owners = place[self._owners]
        kept = owners >= 0
        ids = node_array(nodes)[rows]
        return rows, Labels._from_pairs(ids, self.classes, owners[kept], self._columns[kept])

    def for_nodes(self, nodes: Any, *, unknown: str = "error") -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the rows of `nodes` that have labels, (m,) int64 ascending, and the indicator (m, K) bool.

        Nodes without a label are left out. A labelled id that is not in `nodes` raises UnknownNodeError, or
        is left out too if `unknown` is "skip". If one side has integers and the other strings, they are
        compared as text.
        """
        rows, mine = self._match(nodes, unknown)
        return rows, self._rows(mine)

    def single_for(
        self, nodes: Any, *, unknown: str = "error"
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As `for_nodes`, but with positions in `classes`, (m,) int64; InputError if a node has several."""
        rows, mine = self._match(nodes, unknown)
        if (np.bincount(self._owners)[mine] > 1).any():
            raise InputError("some nodes have several labels: each must have exactly one")
        codes = np.zeros(len(self), np.int64)
        codes[self._owners] = self._columns
        return rows, codes[mine]

    def _rows(self, mine: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (m, K) bool, the classes of the nodes at positions `mine` (m,), unique."""
        n, n_classes = len(mine), len(self.classes)
        if n * n_classes > _LARGEST:
            raise InputError(
                f"{n_classes:,} different labels for {n:,} nodes: too many for an indicator table; are these "
                "labels, or names?"
            )
        place = np.full(len(self), -1)
        place[mine] = np.arange(n)
        rows = place[self._owners]
        table = np.zeros((n, n_classes), np.bool_)
        table[rows[rows >= 0], self._columns[rows >= 0]] = True
        return table

    def _match(self, nodes: Any, unknown: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of `nodes` that have labels, ascending, and their positions in `self.nodes`."""
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
        return rows[order].astype(np.int64), order


def read_labels(
    path: str | bytes | os.PathLike[str], *, header: bool | None = None, separator: str | None = None
) -> Labels:
    """Read node labels: each line has a node and its label, or several labels separated by commas.

    The file is UTF-8 text, compressed if its name ends in .gz or .zst. Node and labels are separated by tabs,
    whitespace, semicolons or commas; with commas, several labels are separated by semicolons. A node may also
    have one line for each of its labels; a node without a label (`ann,`) is left out. Blank lines and lines
    that start with # or % are skipped.

    Node ids are read as by `read_graph`: integers if all are, else strings. The same applies to labels.

    In a .mat file, labels are the variable `group`: an indicator (n, K), or one class number for each node.
    Nodes are 0 … n - 1, as in `read_graph`; those without a class are left out.

    Parameters
    ----------
    header: whether the first data line is a header. None: it is one if it looks like `node label`, or if it
        has words where all other lines have an integer node id.
    separator: the character between node and labels, or tab, comma, semicolon or space; None detects it from
        the first lines and the suffix: a .csv is not separated by whitespace.
    """
    path = os.fsdecode(path)
    if Path(path).suffix.lower() == ".mat":
        return _read_mat(path, header, separator)
    if header not in (None, True, False):
        raise ParameterError("header", header, "must be True, False or None")
    mark = sniff.read_separator(separator)
    sample = list(islice(text_lines.data_lines(path), _SAMPLE))
    if not sample:
        raise FileFormatError(path, "no labels in the file")
    if mark is None:
        mark = _find_separator(path, [raw for _, raw in sample])
    if header is None:
        header = _is_header([sniff.split(raw, mark) for _, raw in sample])
    first_line = sample[0][0] + header
    layout = Layout(mark, 2, 2, False, first_line, may_lack_last_id=True)
    found = read_columns(path, layout, True, partial(_line_error, path, layout))
    assert found is not None  # as text, every file can be read or is an error
    nodes, lists = (column.cast(pa.large_string()).combine_chunks() for column in found[0])
    if not len(nodes):
        raise FileFormatError(
            path,
            "no labels in the file: its only line was read as a header; header=False (--no-labels-header) "
            "reads it as a label",
        )
    given = np.flatnonzero(pc.not_equal(lists, "").to_numpy(zero_copy_only=False))
    if not len(given):
        raise FileFormatError(path, "no labels in the file: the label of every node is empty")
    nodes, lists = nodes.take(pa.array(given)), lists.take(pa.array(given))
    split = pc.split_pattern(lists, _joint(mark))
    owners = pc.list_parent_indices(split).to_numpy()
    names = pc.utf8_trim_whitespace(pc.list_flatten(split))
    empty = pc.index(names, pa.scalar("", pa.large_string())).as_py()
    if empty >= 0:
        line, raw = next(islice(text_lines.data_lines(path, first_line), int(given[owners[empty]]), None))
        expected = f"expected a label before and after each {_joint(mark)!r}"
        raise FileFormatError(path, expected, line=line, text=text_lines.shown(raw))
    ids, rows = _encode(nodes)
    classes, columns = _encode(names)
    order = np.argsort(classes, kind="stable")
    ranks = np.argsort(order)
    return Labels._from_pairs(ids, classes[order], rows[owners], ranks[columns])


def _read_mat(path: str, header: bool | None, separator: str | None) -> Labels:
    from kernelne.io.graphs.mat import read_groups

    for name, value in (("header", header), ("separator", separator)):
        if value is not None:
            raise ParameterError(name, value, "applies to text files, not to a .mat file")
    rows, groups = read_groups(path)
    if not len(rows):
        raise FileFormatError(path, "no labels in the file: 'group' is empty or all zero")
    nodes, owners = np.unique(rows, return_inverse=True)
    classes, columns = np.unique(groups, return_inverse=True)
    return Labels._from_pairs(nodes, classes, owners, columns)


def _comparable(nodes: NDArray[Any]) -> Any:
    ids = id_column(nodes)
    if ids is not None:
        return ids
    texts = list(map(str, nodes))
    try:
        return pa.array(texts, pa.large_string())
    except UnicodeEncodeError as error:  # a lone surrogate, which UTF-8 cannot encode
        raise InputError(
            f"the id {error.object!r} is not Unicode text (character {error.start + 1}): rename the node"
        ) from None


def _encode(texts: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the distinct values in order of first occurrence, integers if all are, and the code of each."""
    integers = plain_integers(texts)
    encoded = (texts if integers is None else integers).dictionary_encode()
    values = encoded.dictionary
    return (
        string_objects(values) if integers is None else values.to_numpy(zero_copy_only=False),
        encoded.indices.to_numpy(zero_copy_only=False),
    )


def _joint(mark: int) -> str:
    """Return the separator between several labels of a node."""
    return ";" if mark == ord(",") else ","


def _find_separator(path: str | os.PathLike[str], lines: Sequence[bytes]) -> int:
    """Return the separator that splits most lines in two; among ties the one that occurs first in a line."""

    def score(mark: int) -> tuple[int, int, int]:
        rows = [sniff.split(raw, mark) for raw in lines]
        n_open = sum('"' in field.text and not field.quoted for row in rows for field in row)
        first = min((len(row[0].text) for row in rows if len(row) == 2), default=0)
        return sum(len(row) == 2 for row in rows), -n_open, -first

    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    marks = [mark for mark in sniff.SEPARATORS if mark != WHITESPACE or ".csv" not in suffixes]
    best = max(marks, key=score)
    return best if score(best)[0] else next((mark for mark in b"\t;," if mark in lines[0]), WHITESPACE)


def _is_header(rows: Sequence[Sequence[Field]]) -> bool:
    if len(rows[0]) != 2:
        return False
    node, label = rows[0]
    if node.text.lower() in _NODE_NAMES and label.is_name:
        return True
    if label.text.lower() in _LABEL_NAMES and sniff.like_names(node.text, node.text):
        return True
    words = node.is_name and label.is_name
    return words and len(rows) > 1 and all(len(row) == 2 and row[0].is_integer for row in rows[1:])


def _line_error(
    path: str | os.PathLike[str], layout: Layout, status: int, line: int, text: str
) -> FileFormatError:
    joint = _joint(layout.separator)
    wanted = f"expected a node and its labels separated by {layout.between}, several labels by {joint!r}"
    expected = {
        tokens.EMPTY_ID: f"{wanted}; a field is empty",
        tokens.BAD_QUOTE: "expected a closing quote at the end of the field",
        tokens.BAD_RETURN: "a carriage return inside a line: lines must end in \\n or \\r\\n",
        tokens.TOO_LONG: f"a line longer than {text_lines.MAX_LINE} bytes: not a file of labels",
    }.get(status, wanted)
    return FileFormatError(path, expected, line=line, text=text)
