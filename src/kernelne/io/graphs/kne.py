"""The .kne format: the arrays of a graph as they are in memory, to be mapped instead of read.

The file has a header of 1,024 bytes and sections, each padded with zeros to a multiple of 64 bytes; all
numbers are little-endian. The header is 8 bytes that are the same in all files, a JSON text padded with
blanks, and a hash of both (BLAKE2b, 16 bytes). The text says the version, the byte order, the counts from
which the sizes of all sections follow, and the CRC-32 of each. The sections:

    offsets      (n_nodes + 1,) int64
    neighbours   (n_entries,) int32, int64 from 2**31 nodes on
    weights      (n_entries,) float32, if weighted
    nodes        (n_nodes,) int64, or for ids that are strings:
    id_offsets   (n_nodes + 1,) int64; id i is id_text[id_offsets[i]:id_offsets[i + 1]]
    id_text      (id_bytes,) uint8, UTF-8
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.errors import FileFormatError
from kernelne.graph import Graph
from kernelne.graph.edges import writable_ids
from kernelne.graph.ids import code_dtype
from kernelne.graph.string_ids import ascends, string_ids, text_arrays
from kernelne.io.files import check_input
from kernelne.io.graphs.shared import Options

MAGIC = b"\x89KNE\r\n\x1a\n"
HEADER, _DIGEST, _ALIGNED = 1024, 16, 64
VERSION = 1
_BLOCK = 2**24  # bytes
_MOST = 2**60  # of any count: sums and products stay below 2**63


class Counts(NamedTuple):
    """What a file holds; id_bytes is None if the ids are integers."""

    n_nodes: int
    n_entries: int
    directed: bool
    weighted: bool
    id_bytes: int | None
    n_merged: int

    def sections(self) -> dict[str, tuple[np.dtype[Any], int]]:
        """Return dtype and length of each section, in the order of the file."""
        n, entries = self.n_nodes, self.n_entries
        found: dict[str, tuple[Any, int]] = {
            "offsets": ("<i8", n + 1),
            "neighbours": (np.dtype(code_dtype(n)).newbyteorder("<"), entries),
        }
        if self.weighted:
            found["weights"] = "<f4", entries
        if self.id_bytes is None:
            found["nodes"] = "<i8", n
        else:
            found |= {"id_offsets": ("<i8", n + 1), "id_text": ("<u1", self.id_bytes)}
        return {name: (np.dtype(kind), length) for name, (kind, length) in found.items()}


class Section:
    """The bytes of a section: blocks that can be gone through once, and their checksum, known beforehand."""

    def __init__(self, blocks: Iterable[Any], checksum: int) -> None:
        self.blocks, self.checksum = blocks, checksum

    @classmethod
    def of(cls, array: NDArray[Any]) -> Section:
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        return cls([little.data.cast("B")] if little.size else [], _checksum(little))


def write(graph: Graph, out: BinaryIO) -> None:
    """Write the arrays of a graph."""
    ids = writable_ids(graph)
    arrays = {"offsets": graph.offsets, "neighbours": graph.neighbours}
    if graph.weights is not None:
        arrays["weights"] = graph.weights
    id_bytes = None
    if pa.types.is_integer(ids.type):
        arrays["nodes"] = graph.nodes
    else:
        arrays["id_offsets"], arrays["id_text"] = text_arrays(ids)
        id_bytes = len(arrays["id_text"])
    counts = Counts(
        graph.n_nodes,
        len(graph.neighbours),
        graph.directed,
        graph.weights is not None,
        id_bytes,
        graph.n_merged,
    )
    write_sections(out, counts, {name: Section.of(array) for name, array in arrays.items()})


def write_sections(out: BinaryIO, counts: Counts, sections: Mapping[str, Section]) -> None:
    """Write the header and the sections, which come in the order of the file."""
    layout = counts.sections()
    assert list(sections) == list(layout)
    told = {"version": VERSION, "byteorder": "little"} | counts._asdict()
    told["crc32"] = {name: section.checksum for name, section in sections.items()}
    out.write(make_header(told))
    for name, section in sections.items():
        kind, length = layout[name]
        size = 0
        for block in section.blocks:
            out.write(block)
            size += len(block)
        assert size == length * kind.itemsize, name
        out.write(bytes(-size % _ALIGNED))


def make_header(told: Mapping[str, Any]) -> bytes:
    """Return the header that says this."""
    content = MAGIC + json.dumps(told).encode().ljust(HEADER - len(MAGIC) - _DIGEST)
    return content + hashlib.blake2b(content, digest_size=_DIGEST).digest()


def read(path: str, options: Options) -> Graph:
    """Map a file, checked from its first to its last byte: compiled code believes what is in a graph."""
    counts, checksums = _read_header(path, check_input(path))
    whole = np.memmap(path, np.uint8, "r")
    parts, start = {}, HEADER
    for name, (kind, length) in counts.sections().items():
        parts[name] = np.asarray(whole[start : start + length * kind.itemsize]).view(kind)
        start += -(-length * kind.itemsize // _ALIGNED) * _ALIGNED
        if _checksum(parts[name]) != checksums.get(name):
            raise _damaged(path, f"the bytes of {name!r} are not those that were written")
    _check_arrays(path, counts, parts)
    return Graph(
        parts["offsets"],
        parts["neighbours"],
        parts.get("weights"),
        counts.directed,
        _read_ids(path, counts, parts),
        counts.n_merged,
    )


def _read_header(path: str, size: int) -> tuple[Counts, dict[str, Any]]:
    with open(path, "rb") as file:
        header = file.read(HEADER)
    if header[: len(MAGIC)] != MAGIC:
        raise FileFormatError(path, "not a .kne graph: `kernelne convert GRAPH g.kne` makes one")
    content = header[:-_DIGEST]
    if len(header) < HEADER or hashlib.blake2b(content, digest_size=_DIGEST).digest() != header[-_DIGEST:]:
        raise _damaged(path, "the header is not as it was written")
    try:
        told = json.loads(content[len(MAGIC) :])
        version, order = told.pop("version"), told.pop("byteorder")
        checksums = dict(told.pop("crc32"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _damaged(path, "the header cannot be read") from None
    if version != VERSION:
        raise FileFormatError(path, f"version {version!r} of the format is unknown, {VERSION} is supported")
    if order != "little" or sys.byteorder != "little":
        raise FileFormatError(
            path, f"numbers are in byte order {order!r}, those of this machine {sys.byteorder!r}"
        )
    if set(told) != set(Counts._fields):
        raise _damaged(path, f"the header tells {sorted(map(str, told))[:9]}")
    counts = Counts(**told)
    flags = counts.directed, counts.weighted
    numbers = [counts.n_nodes, counts.n_entries, counts.n_merged]
    numbers += [] if counts.id_bytes is None else [counts.id_bytes]
    whole = all(type(number) is int and 0 <= number < _MOST for number in numbers)
    if not whole or counts.n_nodes < 1 or any(type(flag) is not bool for flag in flags):
        raise _damaged(path, f"the header tells {counts}")
    sizes = [length * kind.itemsize for kind, length in counts.sections().values()]
    expected = HEADER + sum(-(-size // _ALIGNED) * _ALIGNED for size in sizes)
    if size != expected:
        raise _damaged(path, f"it has {size:,} bytes, and the header tells {expected:,}")
    return counts, checksums


def _damaged(path: str, told: str) -> FileFormatError:
    return FileFormatError(path, f"damaged or cut short: {told}")


def _checksum(array: NDArray[Any]) -> int:
    content = array.view(np.uint8) if array.size else array
    total = 0
    for start in range(0, content.nbytes, _BLOCK):
        total = zlib.crc32(content[start : start + _BLOCK].data, total)
    return total


def _check_arrays(path: str, counts: Counts, parts: Mapping[str, NDArray[Any]]) -> None:
    """Raise FileFormatError unless the rows are sorted, within the graph and, if undirected, symmetric."""
    offsets, neighbours = parts["offsets"], parts["neighbours"]
    weights = parts.get("weights", np.empty(0, np.float32))
    if not _offsets_fit(offsets, counts.n_entries):
        raise _damaged(path, "the rows do not follow each other")
    if not _rows_fit(offsets, neighbours, weights, weights.view(np.uint32), not counts.directed):
        raise _damaged(
            path, "rows are not sorted, leave the graph, have bad weights, or lack their counterpart"
        )


@cached()
def _offsets_fit(offsets, n_entries):  # type: ignore[no-untyped-def]
    for row in range(len(offsets) - 1):
        if offsets[row] > offsets[row + 1]:
            return False
    return offsets[0] == 0 and offsets[-1] == n_entries


@cached()
def _rows_fit(offsets, neighbours, weights, bits, undirected):  # type: ignore[no-untyped-def]
    """Check rows that follow each other; of an undirected graph, that hashes of both triangles are equal."""
    n = len(offsets) - 1
    total = np.uint64(0)
    for row in range(n):
        previous = np.int64(-1)
        for k in range(offsets[row], offsets[row + 1]):
            node = np.int64(neighbours[k])
            if node <= previous or node >= n:
                return False
            previous = node
            if len(weights) > 0 and not 0.0 < weights[k] < np.inf:
                return False
            if undirected and node != row:
                x = np.uint64(row if row < node else node) * np.uint64(0x9E3779B97F4A7C15)
                if len(weights) > 0:
                    x += np.uint64(bits[k])
                x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(
                    node if row < node else row
                )
                x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                x ^= x >> np.uint64(31)
                total = total + x if node > row else total - x
    return total == np.uint64(0)


def _read_ids(path: str, counts: Counts, parts: Mapping[str, NDArray[Any]]) -> Any:
    if counts.id_bytes is None:
        nodes = parts["nodes"]
        if not ascends(pa.array(nodes)) and len(np.unique(nodes)) < len(nodes):
            raise _damaged(path, "a node id appears more than once")
        return nodes
    ids = string_ids(parts["id_offsets"], parts["id_text"])
    if ids is None or ids.repeated() is not None:
        raise _damaged(path, "the node ids are not UTF-8 text, or one appears more than once")
    return ids


def blocks_of(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks."""
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            yield block
