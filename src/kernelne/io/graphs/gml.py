"""GML (.gml): nested lists of keys and values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernelne.errors import FileFormatError, warn
from kernelne.graph.edges import edge_blocks, writable_ids
from kernelne.graph.ids import plain_integers
from kernelne.io.graphs.shared import (
    GOOD_WEIGHT,
    EdgeColumns,
    Options,
    as_text,
    column,
    escape,
    join,
    take,
    unescape,
    write_texts,
)
from kernelne.io.text import lines as text_lines

if TYPE_CHECKING:
    from kernelne.graph import Graph

# Blanks and comments (lines that start with #, maybe after blanks) | a node or an edge with numbers only, the
# common case, for speed | key | value | [ | ] | anything else. In a number no two parts may match the same
# digits: the time would grow with their square.
_TOKEN = re.compile(
    r"(?:(?<![^\n])[^\S\n]*\#[^\n]*|\n|[^\S\n]+)+"
    r"|(node|edge)\s*\[([^][\"\#]*)\]"
    r"|([A-Za-z_][A-Za-z0-9_]*)"
    r'|([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![^\s\]])|[+-]?(?:INF|NAN)\b|"[^"]*")'
    r"|(\[)|(\])|(.)",
    re.ASCII,
)
_FLAT, _KEY, _VALUE, _OPEN, _CLOSE, _OTHER = range(2, 8)
_WEIGHTS = ("weight", "value")

Record = dict[str, str]


class Lists:
    """The parsed text: position, keys and values of each node and edge; keys and values of the graph."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.nodes: list[tuple[int, Record]] = []
        self.edges: list[tuple[int, Record]] = []
        self.graph: Record | None = None
        self._parse()

    def error(self, expected: str, place: int) -> FileFormatError:
        line = 1 + self.text.count("\n", 0, place)
        found = self.text[place : place + 80].partition("\n")[0]
        return FileFormatError(self.path, expected, line=line, text=found)

    def _parse(self) -> None:
        # An open list is (key, position, content); the file itself is the outermost.
        stack: list[tuple[str, int, Record]] = [("", 0, {})]
        key = None
        place = 0
        for token in _TOKEN.finditer(self.text):
            kind = token.lastindex
            if kind is None:
                continue
            place = token.start()
            if key is None:
                if kind == _FLAT:
                    words = token[2].split()
                    if len(words) % 2:
                        raise self.error("expected pairs of a key and a number", place)
                    stack.append((token[1], place, dict(zip(words[::2], words[1::2], strict=True))))
                    self._close(stack)
                elif kind == _KEY:
                    key = token[0]
                elif kind == _CLOSE and len(stack) > 1:
                    self._close(stack)
                else:
                    raise self.error("expected a key" + " or ]" * (len(stack) > 1), place)
                continue
            if kind == _VALUE:
                stack[-1][2][key] = token[0]
            elif kind == _OPEN:
                stack.append((key, place, {}))
            else:
                raise self.error(f"expected a number, a string in quotes or [ after {key!r}", place)
            key = None
        if len(stack) > 1 or key is not None:
            raise self.error("the file ends inside a list: it is truncated", max(0, len(self.text) - 1))
        if self.graph is None:
            raise FileFormatError(self.path, "expected graph [ … ]", line=1)

    def _close(self, stack: list[tuple[str, int, Record]]) -> None:
        name, place, record = stack.pop()
        if len(stack) == 1 and name == "graph":
            if self.graph is not None:
                raise self.error("a second graph: write each graph to its own file", place)
            self.graph = record
        elif len(stack) == 2 and stack[1][0] == "graph" and name in ("node", "edge"):
            (self.nodes if name == "node" else self.edges).append((place, record))

    def integers(self, lists: list[tuple[int, Record]], key: str) -> Any:
        """Return the integer `key` of each list as an int64 array."""
        texts = [record.get(key) for _, record in lists]
        found = pa.array(texts, pa.large_string())
        whole = pc.fill_null(pc.match_substring_regex(found, r"^[+-]?[0-9]+$"), False)
        if not pc.all(whole, min_count=0).as_py():
            place = lists[pc.index(whole, False).as_py()][0]
            raise self.error(f"expected an integer {key!r} in this list", place)
        try:
            return pc.replace_substring_regex(found, r"^\+", "").cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise FileFormatError(self.path, f"{key!r} must fit 64 bits: {error}") from None


def read(path: str, options: Options) -> EdgeColumns:
    """Read GML; ids are the labels, as strings, if every node has a unique one, else the integer ids."""
    lists = Lists(path, str(text_lines.read_text(path).data, "utf-8"))
    assert lists.graph is not None
    numbers = lists.integers(lists.nodes, "id")
    if len(lists.nodes) > len(unique := numbers.unique()):
        seen = np.asarray(pc.index_in(numbers, value_set=unique))
        again = int(np.flatnonzero(seen != np.maximum.accumulate(np.append(-1, seen[:-1])) + 1)[0])
        raise lists.error(f"a second node with the id {numbers[again]}", lists.nodes[again][0])
    names = _names(path, lists.nodes, numbers)
    ends = []
    for key in ("source", "target"):
        rows = pc.index_in(lists.integers(lists.edges, key), value_set=numbers)
        if rows.null_count:
            place, record = lists.edges[pc.index(pc.is_null(rows), True).as_py()]
            raise lists.error(f"no node has the id {record[key]}, the {key} of this edge", place)
        ends.append(take(names, np.asarray(rows)))
    directed = lists.graph.get("directed", "0")
    if directed not in ("0", "1"):
        raise lists.error("expected directed 0 or 1", lists.text.index("directed"))
    sources, targets = ends
    return EdgeColumns(column(names), sources, targets, _weights(lists), directed == "1")


def _names(path: str, nodes: list[tuple[int, Record]], numbers: Any) -> Any:
    labels = pa.array([record.get("label", "") for _, record in nodes], pa.large_string())
    strings = pc.all(pc.starts_with(labels, '"'), min_count=0).as_py()
    names = labels if strings else plain_integers(labels)
    if names is None:
        return numbers
    if len(names) > len(counted := names.value_counts()):
        repeated = counted.field("values")[pc.index(pc.greater(counted.field("counts"), 1), True).as_py()]
        warn(f"{path}: several nodes have the label {repeated}: the ids are used instead")
        return numbers
    return pa.array([unescape(n[1:-1]) for n in names.to_pylist()], pa.large_string()) if strings else names


def _weights(lists: Lists) -> Any:
    """Return weights (m,) float64, 1 for edges without one; None if no edge has one."""
    key = next((key for key in _WEIGHTS if any(key in record for _, record in lists.edges)), None)
    if key is None:
        return None
    weights = np.empty(len(lists.edges))
    for k, (place, record) in enumerate(lists.edges):
        try:
            weights[k] = float(record.get(key, "1"))
        except ValueError:
            weights[k] = np.nan
        if not 0 <= weights[k] < np.inf:
            raise lists.error(f"{GOOD_WEIGHT}, in {key!r} of this edge, found {record[key]}", place)
    return weights


def write(graph: Graph, out: BinaryIO) -> None:
    """Write GML; string ids become labels, with all but printable ASCII as &#N;; integers become ids."""
    ids = writable_ids(graph)
    integers = pa.types.is_integer(ids.type)
    numbers = ids.cast(pa.large_string()) if integers else as_text(np.arange(graph.n_nodes))
    out.write(b"graph [\n" + b"  directed 1\n" * graph.directed)
    labels = [] if integers else ['    label "', escape(ids), '"\n']
    write_texts(out, join("  node [\n    id ", numbers, "\n", *labels, "  ]\n"))
    for sources, targets, weights in edge_blocks(graph):
        parts = ["  edge [\n    source ", numbers.take(pa.array(sources)), "\n    target "]
        parts += [numbers.take(pa.array(targets)), "\n"]
        if weights is not None:
            # A real number in GML has a decimal point.
            reals = pc.replace_substring_regex(as_text(weights), r"^([0-9]+)(e|$)", r"\1.0\2")
            parts += ["    weight ", reals, "\n"]
        write_texts(out, join(*parts, "  ]\n"))
    out.write(b"]\n")
