"""GraphML (.graphml), parsed as a stream: no entity is expanded, and no other file is opened."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, BinaryIO
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernelne.errors import FileFormatError
from kernelne.graph.edges import edge_blocks, writable_ids
from kernelne.graph.ids import plain_integers
from kernelne.io.graphs.shared import (
    GOOD_WEIGHT,
    EdgeColumns,
    Options,
    as_text,
    column,
    join,
    look_like_integers,
    refuse_ids,
    write_texts,
)
from kernelne.io.text import lines as text_lines

if TYPE_CHECKING:
    from kernelne.graph import Graph

_HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
"""
_WEIGHT = '  <key id="weight" for="edge" attr.name="weight" attr.type="double"/>\n'
# Declares that ids that look like integers are strings.
_ID_TYPE = '  <key id="id_type" for="graph" attr.name="id_type" attr.type="string"/>\n'
# Characters that XML 1.0 cannot represent; UTF-8 already excludes surrogates.
_REFUSED = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x{FFFE}\x{FFFF}]"
_ENTITY = re.compile(rb"&(?!#|amp;|lt;|gt;|quot;|apos;)[^;\s]*;?")
_PIECE = 1 << 17  # bytes parsed at a time
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


class _Handler:
    """Collects what the parser reports."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.nodes: list[str] = []
        self.sources: list[str] = []
        self.targets: list[str] = []
        self.weights: list[str | None] = []
        self.directed: list[bool] = []
        self.node_lines: list[int] = []
        self.edge_lines: list[int] = []
        self.id_type: str | None = None
        self.default: bool | None = None
        self._default_weight: str | None = None
        self._keys: dict[str, str] = {}  # keys of weights and of the type of ids
        self._last_key = ""
        self._has_doctype = False
        self._key: str | None = None  # key of the element whose text follows
        self._text: list[str] = []
        self._stack: list[str] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._refuse_entity
        self.parser.StartDoctypeDeclHandler = self._note_doctype

    @property
    def line(self) -> int:
        return int(self.parser.CurrentLineNumber)

    def error(self, expected: str, text: str | None = None) -> FileFormatError:
        return FileFormatError(self.path, expected, line=self.line, text=text)

    def _refuse_entity(self, name: str, *_: Any) -> None:
        raise self.error("defines an entity, which is never expanded", name)

    def _note_doctype(self, *_: Any) -> None:
        self._has_doctype = True

    def _start(self, name: str, given: dict[str, str]) -> None:
        element = name.rpartition(" ")[2]
        parent = self._stack[-1] if self._stack else None
        self._stack.append(element)
        if parent is None and element != "graphml":
            raise self.error("expected <graphml>", f"<{element}>")
        if element == "edge":
            self.sources.append(self._attribute(given, "source"))
            self.targets.append(self._attribute(given, "target"))
            self.weights.append(None)
            self.edge_lines.append(self.line)
            directed = given.get("directed")
            if directed is not None and directed.strip() not in _BOOLEANS:
                raise self.error("expected directed true or false", directed)
            self.directed.append(bool(self.default) if directed is None else _BOOLEANS[directed.strip()])
        elif element == "data":
            kind = self._keys.get(given.get("key", ""))
            if (kind, parent) in (("weight", "edge"), ("id_type", "graph")):
                self._key = kind
        elif element == "node":
            self.nodes.append(self._attribute(given, "id"))
            self.node_lines.append(self.line)
        elif element == "graph":
            if parent == "node":
                raise self.error("a graph inside a node: nested graphs are not supported")
            if self.default is not None:
                raise self.error("a second graph: write each graph to its own file")
            kind = given.get("edgedefault", "undirected")
            if kind not in ("directed", "undirected"):
                raise self.error("expected edgedefault directed or undirected", kind)
            self.default = kind == "directed"
        elif element == "key":
            self._last_key = given.get("id", "")
            attribute, where = given.get("attr.name"), given.get("for", "all")
            if (attribute, where) in (("weight", "edge"), ("weight", "all"), ("id_type", "graph")):
                self._keys[self._last_key] = attribute or ""
        elif element == "default" and parent == "key":
            self._key = "default"
        elif element == "hyperedge":
            raise self.error("hyperedges are not supported")

    def _attribute(self, given: dict[str, str], name: str) -> str:
        if name not in given:
            raise self.error(f"expected an attribute {name!r} of <{self._stack[-1]}>")
        if self.default is None:
            raise self.error(f"expected <{self._stack[-1]}> inside <graph>")
        return given[name]

    def _characters(self, text: str) -> None:
        if self._key is not None:
            self._text.append(text)

    def _end(self, name: str) -> None:
        self._stack.pop()
        if self._key is None:
            return
        text = "".join(self._text).strip()
        if self._key == "weight":
            self.weights[-1] = text
        elif self._key == "id_type":
            self.id_type = text
        elif self._keys.get(self._last_key) == "weight":
            self._default_weight = text
        self._key = None
        self._text.clear()

    def parse(self, data: bytes) -> None:
        try:
            # In pieces: a signal is handled between two of them. The parser reads a tag or a comment again
            # with every piece until it has its end.
            for start in range(0, len(data), _PIECE):
                self.parser.Parse(data[start : start + _PIECE], False)
                if start + _PIECE - self.parser.CurrentByteIndex > text_lines.MAX_LINE + _PIECE:
                    raise self.error(f"a tag or comment longer than {text_lines.MAX_LINE} bytes")
            self.parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise FileFormatError(self.path, f"not well-formed XML: {error}", line=error.lineno) from None
        except (ValueError, LookupError) as error:  # an unknown encoding
            if isinstance(error, FileFormatError):
                raise
            raise FileFormatError(self.path, f"not readable XML: {error}") from None
        if self._has_doctype and (used := _ENTITY.search(data)):
            # Defined in an external file, which is not opened: the parser would silently drop it.
            line = 1 + data.count(b"\n", 0, used.start())
            told = "uses an entity, which is never expanded"
            raise FileFormatError(self.path, told, line=line, text=used[0].decode("utf-8", "replace"))
        if self.default is None:
            raise FileFormatError(self.path, "no <graph> in the file")

    def edge_weights(self) -> Any:
        """Return weights (m,) float64, the key's default or 1 where missing; None if no edge has a weight."""
        if self._default_weight is None and not any(text is not None for text in self.weights):
            return None
        default = "1" if self._default_weight is None else self._default_weight
        values = np.empty(len(self.weights))
        for k, text in enumerate(self.weights):
            try:
                values[k] = float(default if text is None else text)
            except ValueError:
                values[k] = np.nan
            if not 0 <= values[k] < np.inf:
                found = default if text is None else text
                raise FileFormatError(self.path, GOOD_WEIGHT, line=self.edge_lines[k], text=found)
        return values


def read(path: str, options: Options) -> EdgeColumns:
    """Read GraphML; ids are integers if all are plain integers, unless the file says otherwise.

    If only some edges are directed, the graph is directed, and each undirected edge becomes two arcs.
    """
    found = _Handler(path)
    found.parse(text_lines.read_bytes(path, xml=True).tobytes())
    texts = [pa.array(t, pa.large_string()) for t in (found.nodes, found.sources, found.targets)]
    nodes, sources, targets = texts
    if len(counted := nodes.value_counts()) < len(nodes):
        repeated = counted.field("values")[
            pc.index(pc.greater(counted.field("counts"), 1), True).as_py()
        ].as_py()
        again = [k for k, node in enumerate(found.nodes) if node == repeated][1]
        raise FileFormatError(path, "a second node with this id", line=found.node_lines[again], text=repeated)
    for ends in (sources, targets):
        known = pc.is_in(ends, value_set=nodes)
        if not pc.all(known, min_count=0).as_py():
            k = pc.index(known, False).as_py()
            line, text = found.edge_lines[k], ends[k].as_py()
            raise FileFormatError(path, "no node has this id, an end of this edge", line=line, text=text)
    numbers = None if found.id_type == "string" else plain_integers(nodes)
    if numbers is not None:
        nodes, sources, targets = numbers, sources.cast(pa.int64()), targets.cast(pa.int64())
    weights = found.edge_weights()
    arcs = np.array(found.directed, bool)
    directed = bool(arcs.any()) if len(arcs) else found.default
    if directed and not arcs.all() and options.directed is not False:
        back = ~arcs & ~pc.equal(sources, targets).to_numpy(zero_copy_only=False)
        mask = pa.array(back)
        sources, targets = (
            pa.concat_arrays([sources, targets.filter(mask)]),
            pa.concat_arrays([targets, sources.filter(mask)]),
        )
        weights = None if weights is None else np.concatenate([weights, weights[back]])
    return EdgeColumns(column(nodes), column(sources), column(targets), weights, directed)


def write(graph: Graph, out: BinaryIO) -> None:
    """Write GraphML; if all string ids look like integers, they are declared to be strings."""
    ids = writable_ids(graph)
    refuse_ids(ids, _REFUSED, "contains a character that XML cannot represent")
    strings = look_like_integers(ids)
    names = ids.cast(pa.large_string())
    if not pa.types.is_integer(ids.type):
        for mark, entity in _SPECIAL.items():
            names = pc.replace_substring(names, mark, entity)
    head = _HEADER + _WEIGHT * (graph.weights is not None) + _ID_TYPE * strings
    head += f'  <graph edgedefault="{"directed" if graph.directed else "undirected"}">\n'
    out.write((head + '    <data key="id_type">string</data>\n' * strings).encode())
    write_texts(out, join('    <node id="', names, '"/>\n'))
    for sources, targets, weights in edge_blocks(graph):
        parts = ['    <edge source="', names.take(pa.array(sources)), '" target="']
        parts += [names.take(pa.array(targets)), '"']
        if weights is None:
            parts.append("/>\n")
        else:
            parts += ['><data key="weight">', as_text(weights), "</data></edge>\n"]
        write_texts(out, join(*parts))
    out.write(b"  </graph>\n</graphml>\n")
