"""Edge lists larger than the memory, converted to .kne files: the same graphs as `read_graph` would give.

The lines are read in parts that fit in memory. The ids of a part are sorted and numbered; its edges are kept
as pairs of these numbers. Merging the ids of all parts gives the nodes of the graph, and for each part the
rows of its own numbers. The edges, each in the rows of both its nodes, are then sorted as numbers
row · n_nodes + neighbour, again in parts that are merged. Equal edges meet in the order of the file, so that
sums of weights have the same bits.
"""

from __future__ import annotations

import os
import shutil
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kernelne._common.memory import available_bytes, resident_bytes
from kernelne.errors import FileFormatError, InputError, ParameterError, warn
from kernelne.graph.build import beyond_float32
from kernelne.graph.ids import check_same_kind, code_dtype, encode, plain_strings
from kernelne.graph.string_ids import text_arrays
from kernelne.graph.tables import apart, of_two_kinds, same_numbers
from kernelne.io.files import atomic_output, folder_beside
from kernelne.io.graphs import kne
from kernelne.io.graphs.edgelist import EdgeFile, no_bad_lines, occurrences
from kernelne.io.graphs.shared import Options
from kernelne.io.graphs.sorted_runs import BATCH, SortedRuns
from kernelne.io.text.columns import NotIntegerError, join_pieces
from kernelne.progress import Progress, reporting

#: Bytes of memory for an edge while a part is encoded or sorted, and copies of its ids, at most.
_PER_EDGE, _COPIES = 128, 3
#: Least memory to work with, and what of it buffers for reading take; the share of the rest for a part, as
#: allocators need some; and the share of the free memory that is used by default.
LEAST, _BUFFERS, _FOR_PART, _BY_DEFAULT = 2**26, 2**24, 0.7, 0.5
#: Memory without a limit that the system tells.
_UNKNOWN = 2**31
_ROWS = 2**20  # of offsets written at a time
_EMPTY = pa.chunked_array([], pa.null())


def convert_edges(
    path: str,
    output: str | os.PathLike[str],
    options: Options,
    *,
    drop_self_loops: bool = False,
    memory: int | None = None,
    overwrite: bool = False,
    progress: Progress = None,
) -> tuple[kne.Counts, int]:
    """Convert an edge list to a .kne file; returns what is in it, and the number of edges.

    memory: bytes that the process may use in all; None uses half of what is free. Ids of `options.nodes` are
    held in memory, all others are not. Temporary files, which can take more space than the edge list, lie in
    a folder beside `output`, which is removed in the end.
    """
    if options.time is not None:
        raise ParameterError("time", options.time, "ages edges in memory: write the weights to a file first")
    file = EdgeFile.open(path, options)
    with ExitStack() as stack:
        temporary = stack.enter_context(atomic_output(output, overwrite))
        folder = stack.enter_context(folder_beside(output))
        made = _Conversion(file, drop_self_loops, folder, _room(memory), progress)
        counts, sections = made.run()
        with open(temporary, "wb") as out:
            kne.write_sections(out, counts, {name: each.section() for name, each in sections.items()})
    return counts, made.n_edges


def _room(memory: int | None) -> int:
    """Return the bytes that may be allocated."""
    if memory is None:
        free = available_bytes()
        return max(int(_BY_DEFAULT * (_UNKNOWN if free is None else free)), LEAST)
    used = resident_bytes()
    if memory < used + LEAST:
        least = -(-(used + LEAST) // 2**20)
        raise ParameterError("memory", f"{memory / 2**20:.0f} MiB", f"must be at least {least} MiB")
    return memory - used


class _SectionFile:
    """A section of the output while it is made, in a file of its own."""

    def __init__(self, path: Path) -> None:
        self.path, self.size, self.checksum = path, 0, 0
        path.touch()

    def write(self, array: NDArray[Any]) -> None:
        data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data
        with open(self.path, "ab") as file:
            file.write(data)
        self.size += data.nbytes
        self.checksum = zlib.crc32(data, self.checksum)

    def section(self) -> kne.Section:
        return kne.Section(kne.blocks_of(self.path), self.checksum)


class _Conversion:
    """The conversion of one file. Part k has the files edges-k and, once ids are merged, rows-k."""

    def __init__(
        self, file: EdgeFile, drop_self_loops: bool, folder: Path, room: int, progress: Progress
    ) -> None:
        self.file, self.path, self.options = file, file.path, file.options
        self.drop_self_loops = drop_self_loops
        self.folder, self.room, self.progress = folder, room, progress
        self.directed = bool(file.options.directed)
        self.weighted = self.file.layout is not None and self.file.layout.weight is not None
        self.n_zero = self.n_merged = self.n_loops = self.n_nodes = 0
        self.sections: dict[str, _SectionFile] = {}
        self.sizes: list[int] = []  # edges of each part

    @property
    def n_edges(self) -> int:
        entries = self.sections["neighbours"].size // np.dtype(code_dtype(self.n_nodes)).itemsize
        return entries if self.directed else (entries + self.n_loops) // 2

    def run(self) -> tuple[kne.Counts, dict[str, _SectionFile]]:
        bad = no_bad_lines(self.options)
        for as_strings in self.file.as_strings():
            try:
                given = self._given(as_strings)
                ids = self._read(as_strings, given, bad)
                break
            except NotIntegerError:
                self.sizes = []
                for path in self.folder.iterdir():
                    path.unlink()
        self.file.warn_of_bad(bad)
        strings = pa.types.is_large_string(given.type)
        names = ("id_offsets", "id_text") if strings else ("nodes",)
        for name in ("offsets", "neighbours", *["weights"] * self.weighted, *names):
            self.sections[name] = _SectionFile(self.folder / name)
        self._merge_ids(ids, given, strings)
        edges = self._sort_edges()
        if self.n_zero:
            warn(f"edges of weight zero dropped: {self.n_zero}; their nodes are kept")
        self._merge_edges(edges)
        entries = self.sections["neighbours"].size // np.dtype(code_dtype(self.n_nodes)).itemsize
        id_bytes = self.sections["id_text"].size if strings else None
        told = self.n_nodes, entries, self.directed, self.weighted, id_bytes, self.n_merged
        return kne.Counts(*told), self.sections

    # Reading

    def _given(self, as_strings: bool) -> Any:
        """Return the ids that come first, an array; raises NotIntegerError."""
        nodes = self.file.nodes(as_strings)
        nodes = _EMPTY if nodes is None else nodes
        kind = pa.large_string() if as_strings or self.options.bipartite else pa.int64()
        if len(nodes):
            check_same_kind({"nodes": nodes, "ids": pa.nulls(1, kind)})
            encode([nodes, nodes.slice(0, 0), nodes.slice(0, 0)])  # raises if one is repeated
        return nodes.cast(kind).combine_chunks() if len(nodes) else pa.array([], kind)

    def _read(self, as_strings: bool, given: Any, bad: NDArray[np.int64]) -> SortedRuns:
        """Read all lines in parts; returns the sorted ids of each."""
        runs = SortedRuns(self.folder / "ids")
        part: list[list[Any]] = [[], [], []]
        held, done, total = 0, 0, max(os.path.getsize(self.path), 1)
        names = self.file.names() if self.file.layout is not None else []
        first: tuple[Any, Any] | None = None
        counts = np.zeros(2, np.int64)
        unpacked = 4 * shutil.disk_usage(self.folder).free
        with reporting(self.progress, "reading", "MB") as report:
            for columns, weights, size in self.file.blocks(as_strings, bad, unpacked):
                done += size
                report(min(done, total) >> 20, max(total >> 20, 1), float("nan"))
                if not columns:
                    continue
                sources, targets = (pa.chunked_array([column]) for column in columns)
                ids = apart(sources, targets, names, bool(self.options.bipartite))
                if first is None:
                    first = ids[0][0].as_py(), ids[1][0].as_py()
                if self.file.doubtful:
                    counts += occurrences(first, ids)
                for pieces, piece in zip(part, (*ids, weights), strict=True):
                    pieces.append(piece)
                held += _COPIES * sum(piece.nbytes for piece in (*ids, weights)) + _PER_EDGE * len(ids[0])
                if held > _FOR_PART * (self.room - _BUFFERS):
                    self._end_part(part, runs)
                    held = 0
            if part[0]:
                self._end_part(part, runs)
        if not self.sizes and not len(given):
            raise self.file.refuse_empty()
        if self.file.doubtful and first is not None:
            self.file.refuse_names(counts + occurrences(first, [given]))
        return runs

    def _end_part(self, part: list[list[Any]], runs: SortedRuns) -> None:
        """Sort the ids of a part, write them and its edges, and empty it."""
        if (len(runs) + 1) * 4 * BATCH > self.room:
            raise InputError(
                f"{self.path}: too many parts: more memory makes them larger (--memory, now about "
                f"{self.room >> 20} MiB)"
            )
        sources, targets = (join_pieces([c for ids in pieces for c in ids.chunks]) for pieces in part[:2])
        weights = np.concatenate(part[2])
        for pieces in part:
            pieces.clear()
        columns = [sources.slice(0, 0), sources, targets]
        del sources, targets
        ids, codes = encode(columns)
        ids = ids.cast(pa.int64()) if pa.types.is_integer(ids.type) else plain_strings(ids)
        runs.add(pa.table({"id": ids}))
        with open(self.folder / f"edges-{len(self.sizes)}", "wb") as file:
            for array in (weights, *codes):
                file.write(array.data)
        self.sizes.append(len(codes[0]))
        del ids, codes, weights
        pa.default_memory_pool().release_unused()

    # Nodes

    def _merge_ids(self, runs: SortedRuns, given: Any, strings: bool) -> None:
        """Write the ids, those given first, and for each part the rows of its ids."""
        self._write_ids(given, strings)
        n_given = self.n_nodes = len(given)
        rows = [self.folder / f"rows-{k}" for k in range(len(runs))]
        done = 0
        with reporting(self.progress, "ordering ids", "ids") as report:
            for parts in runs.merge():
                chunks = [chunk for part in parts for chunk in part.column(0).chunks]
                encoded = pa.concat_arrays(chunks).dictionary_encode()
                different = encoded.dictionary
                known = pc.index_in(different, value_set=given) if n_given else pa.nulls(len(different))
                new = different.filter(known.is_null())
                order = pc.sort_indices(new)
                ranks = np.empty(len(new), np.int64)
                ranks[order.to_numpy()] = np.arange(self.n_nodes, self.n_nodes + len(new))
                places = pc.fill_null(known.cast(pa.int64()), -1).to_numpy().copy()
                places[places < 0] = ranks
                found = places[encoded.indices.to_numpy()]
                self._write_ids(new.take(order), strings)
                self.n_nodes += len(new)
                start = 0
                for path, part in zip(rows, parts, strict=True):
                    with open(path, "ab") as file:
                        file.write(found[start : start + len(part)].data)
                    start += len(part)
                done += len(found)
                report(done, runs.n_rows, float("nan"))
        if strings:
            self.sections["id_offsets"].write(np.array([self.sections["id_text"].size]))
        if self.n_nodes >= 2**32:
            raise InputError(f"{self.path}: {self.n_nodes:,} nodes: more than 2**32 - 1 are not supported")

    def _write_ids(self, ids: Any, strings: bool) -> None:
        if not strings:
            self.sections["nodes"].write(ids.to_numpy())
            return
        offsets, text = text_arrays(ids)
        self.sections["id_offsets"].write(offsets[:-1] + self.sections["id_text"].size)
        self.sections["id_text"].write(text)

    def _id(self, row: int) -> Any:
        """Return an id of those that are written, for a message."""
        if "nodes" in self.sections:
            return int(np.fromfile(self.sections["nodes"].path, "<i8", 1, offset=8 * row)[0])
        begin, end = np.fromfile(self.sections["id_offsets"].path, "<i8", 2, offset=8 * row).tolist()
        text = np.fromfile(self.sections["id_text"].path, np.uint8, end - begin, offset=begin)
        return text.tobytes().decode()

    # Edges

    def _sort_edges(self) -> SortedRuns:
        """Return the entries of the adjacency matrix, numbered row · n_nodes + neighbour, sorted by part."""
        runs = SortedRuns(self.folder / "entries")
        seen = self._sides()
        done, total = 0, sum(self.sizes)
        with reporting(self.progress, "sorting edges", "edges") as report:
            for k, size in enumerate(self.sizes):
                sources, targets, weights = self._part(k, size)
                if seen is not None:
                    seen[0, sources] = seen[1, targets] = True
                runs.add(self._entries(sources, targets, weights))
                done += size
                report(done, total, float("nan"))
        if seen is not None and len(shared := np.flatnonzero(seen.all(axis=0))):
            error = same_numbers(self.file.names(), len(shared), self._id(int(shared[0])))
            raise FileFormatError(self.path, str(error))
        return runs

    def _sides(self) -> NDArray[np.bool_] | None:
        """Return an array that notes the nodes that are sources and targets, if none may be both."""
        asked = self.options.bipartite is None and "nodes" in self.sections and self.file.layout is not None
        return np.zeros((2, self.n_nodes), bool) if asked and of_two_kinds(self.file.names()) else None

    def _part(self, k: int, size: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]:
        """Read the edges of a part, as rows of the graph, and remove its files."""
        path, table = self.folder / f"edges-{k}", self.folder / f"rows-{k}"
        rows = np.fromfile(table, np.int64).astype(np.uint64)
        with open(path, "rb") as file:
            weights = np.fromfile(file, np.float64, size) if self.weighted else None
            sources, targets = (rows[np.fromfile(file, np.int32, size)] for _ in range(2))
        path.unlink()
        table.unlink()
        return sources, targets, weights

    def _entries(
        self, sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> pa.Table:
        keep = sources != targets if self.drop_self_loops else np.full(len(sources), True)
        if weights is not None:
            self.n_zero += int(len(weights) - np.count_nonzero(weights))
            keep &= weights > 0
        if not keep.all():
            sources, targets = sources[keep], targets[keep]
            weights = None if weights is None else weights[keep]
        n = np.uint64(self.n_nodes)
        if not self.directed:  # so that equal edges stay in the order of the file
            sources, targets = np.minimum(sources, targets), np.maximum(sources, targets)
        keys = sources * n + targets
        if not self.directed:
            other = sources != targets
            keys = np.concatenate([keys, targets[other] * n + sources[other]])
            weights = None if weights is None else np.concatenate([weights, weights[other]])
        if weights is None:
            return pa.table({"entry": np.sort(keys)})
        order = np.argsort(keys, kind="stable")
        return pa.table({"entry": keys[order], "weight": weights[order]})

    def _merge_edges(self, runs: SortedRuns) -> None:
        """Write the rows of the graph: equal entries are merged, their weights added."""
        n, dtype = np.uint64(self.n_nodes), code_dtype(self.n_nodes)
        written = done = filled = 0  # rows whose offset is written, entries read and written
        with reporting(self.progress, "merging edges", "entries") as report:
            for parts in runs.merge():
                keys = np.concatenate([_column(part, 0) for part in parts])
                done += len(keys)
                if self.weighted:
                    order = np.argsort(keys, kind="stable")
                    keys = keys[order]
                    weights = np.concatenate([_column(part, 1) for part in parts])[order]
                else:
                    keys.sort()
                first = np.append(True, keys[1:] != keys[:-1])
                rows, neighbours = np.divmod(keys, n)
                # Of an undirected edge only one of its two entries counts.
                again = ~first if self.directed else ~first & (rows <= neighbours)
                self.n_merged += int(np.count_nonzero(again))
                if self.weighted:
                    # Added one by one, in the order of the file; np.add.reduceat would add in pairs.
                    sums: Any = np.bincount(np.cumsum(first) - 1, weights)
                    self._write_weights(sums, rows[first], neighbours[first])
                rows, neighbours = rows[first].astype(np.int64), neighbours[first].astype(dtype)
                self.n_loops += int(np.count_nonzero(rows == neighbours))
                self.sections["neighbours"].write(neighbours)
                last = int(rows[-1])
                self._write_offsets(range(written, last + 1), rows, filled)
                written, filled = last + 1, filled + len(rows)
                report(done, runs.n_rows, float("nan"))
        self._write_offsets(range(written, self.n_nodes + 1), np.empty(0, np.int64), filled)

    def _write_weights(self, sums: NDArray[np.float64], rows: Any, neighbours: Any) -> None:
        with np.errstate(over="ignore", under="ignore"):
            weights = sums.astype(np.float32)
        bad = np.flatnonzero(np.isinf(weights) | (weights == 0))
        if len(bad):
            at = int(bad[0])
            ends = self._id(int(rows[at])), self._id(int(neighbours[at]))
            raise FileFormatError(self.path, str(beyond_float32(*ends, sums[at])))
        self.sections["weights"].write(weights)

    def _write_offsets(self, rows: range, owners: NDArray[np.int64], filled: int) -> None:
        """Write where these rows start among entries of which `filled` came before those of `owners`."""
        for start in range(rows.start, rows.stop, _ROWS):
            at = np.arange(start, min(start + _ROWS, rows.stop))
            self.sections["offsets"].write(filled + owners.searchsorted(at))


def _column(table: pa.Table, number: int) -> NDArray[Any]:
    return np.asarray(table.column(number).to_numpy())
