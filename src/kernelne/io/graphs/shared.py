"""Shared parts of graph readers and writers: the edges of a file, and edges as blocks of text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.entities import name2codepoint
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kernelne.errors import FileFormatError, InputError
from kernelne.graph.ids import plain_integers

if TYPE_CHECKING:
    from kernelne.graph import Graph

_BELIEVED = 10_000_000  # nodes accepted without further evidence
EMPTY = pa.scalar("", pa.large_string())
_ENTITY = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z0-9]+));")
GOOD_WEIGHT = "expected a weight, a finite number that is not negative"


class EdgeColumns(NamedTuple):
    """The content of a graph file.

    nodes, sources, targets: columns of ids as `read_ids` returns them; nodes are in order, or None
    weights: (m,) float64, or None
    directed: whether edges are arcs; None if the file does not say
    times: (m,) float64, or None
    """

    nodes: Any
    sources: Any
    targets: Any
    weights: NDArray[np.float64] | None
    directed: bool | None
    times: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Options:
    """The reading options of `read_graph`."""

    directed: bool | None = None
    header: bool | None = None
    weighted: bool | None = None
    nodes: Any = None
    separator: str | None = None
    skip_bad: bool = False
    source: Any = None
    target: Any = None
    weight: Any = None
    time: Any = None
    half_life: Any = None
    bipartite: bool | None = None

    @property
    def asked_weight(self) -> Any:
        """The column of weights, None if it is to be found, False if there is to be none."""
        return False if self.weighted is False else self.weight


def check_declared(path: str, n_nodes: int, size: int, line: int | None) -> None:
    """Raise FileFormatError if far more nodes are declared than is plausible for `size`, in bytes or entries.

    Nodes without edges take no space in some formats; a few bytes must not allocate all memory.
    """
    if n_nodes > max(_BELIEVED, 1000 * size):
        told = f"{n_nodes} nodes are declared, but there is almost no data for them: is the number right?"
        raise FileFormatError(path, told, line=line)


def column(values: Any) -> Any:
    """Return an array of ids as a column like those of `read_ids`."""
    return pa.chunked_array([values]) if len(values) else pa.chunked_array([], pa.null())


def take(names: Any, rows: NDArray[Any]) -> Any:
    """Return the column of the ids `names[rows]`."""
    return column(names.take(pa.array(rows)))


def are_numbered(graph: Graph) -> bool:
    """Whether the node ids are 0, 1, …, n - 1 in this order, as for a matrix."""
    return graph.nodes.dtype != object and bool((graph.nodes == np.arange(graph.n_nodes)).all())


def look_like_integers(ids: Any) -> bool:
    """Whether the ids are strings that would be read as integers if unquoted."""
    return pa.types.is_large_string(ids.type) and plain_integers(ids) is not None


def refuse_ids(ids: Any, pattern: str, what: str) -> None:
    """Raise InputError if a string id matches the regular expression `pattern`; `what` says why."""
    if pa.types.is_integer(ids.type):
        return
    refused = ids.filter(pc.match_substring_regex(ids, pattern))
    if len(refused):
        raise InputError(f"the id {refused[0].as_py()!r} {what}")


def join(*parts: Any) -> Any:
    """Concatenate parts element-wise, arrays or constant strings; returns a large_string array."""
    scalars = [pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*scalars, EMPTY)


def join_lists(offsets: NDArray[np.int64], words: Any, between: str = " ") -> Any:
    """Join tokens `offsets[i]` to `offsets[i + 1]` with `between` to text i; returns a large_string array."""
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), words)
    return pc.binary_join(lists, pa.scalar(between, pa.large_string()))


def as_text(values: NDArray[Any]) -> Any:
    """Return numbers as their shortest exact texts, a large_string array."""
    return pa.array(values).cast(pa.large_string())


def write_texts(out: BinaryIO, texts: Any) -> None:
    """Write the concatenated texts of a large_string array whose offset is 0."""
    if len(texts):
        _, offsets, text = texts.buffers()
        out.write(text.slice(0, int(np.frombuffer(offsets, np.int64)[len(texts)])))


def escape(ids: Any) -> Any:
    """Replace & and " and all characters that are not printable ASCII by &#N;, as in GML and Pajek."""
    pattern = r'[^ -~]|[&"]'
    if not pc.any(pc.match_substring_regex(ids, pattern)).as_py():
        return ids
    coded = re.compile(pattern)
    texts = [coded.sub(lambda found: f"&#{ord(found[0])};", text) for text in ids.to_pylist()]
    return pa.array(texts, pa.large_string())


def unescape(text: str) -> str:
    """Replace &#N;, &#xN; and named entities by their characters, in one pass."""
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(found: re.Match[str]) -> str:
    number, hexadecimal, name = found.groups()
    code = int(number) if number else int(hexadecimal, 16) if hexadecimal else name2codepoint.get(name, -1)
    valid = 0 <= code < 0xD800 or 0xDFFF < code <= 0x10FFFF
    return chr(code) if valid else found[0]
