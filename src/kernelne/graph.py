"""Graph: frozen CSR adjacency, weights, and node ids in a stated order."""

from __future__ import annotations

import difflib
import hashlib
import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
from numba import njit
from numpy.typing import NDArray

from kernelne.errors import InputError

_INT32_MAX = 2**31 - 1
_ACCEPTED = "a Graph, a SciPy sparse matrix, a networkx graph, or edges of shape (m, 2) or (m, 3)"


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A graph that never changes: row i of every embedding of it is the node `nodes[i]`.

    Build one with a `from_` method, `as_graph` or `read_graph`: the constructor trusts its arrays, and makes
    them read-only. An undirected edge stands in the rows of both its ends, a self-loop once in its row.

    Attributes
    ----------
    offsets: (n_nodes + 1,) int64; row i is `neighbours[offsets[i]:offsets[i + 1]]`.
    neighbours: (n_entries,) int32 (int64 beyond 2**31 - 1 nodes), ascending and unique within a row.
    weights: (n_entries,) float32 above zero, aligned with `neighbours`; None when unweighted.
    directed: whether an entry in row i is an arc that leaves i.
    nodes: (n_nodes,) ids, all different: int64, or objects (str; any hashable when networkx had others).
    """

    offsets: NDArray[np.int64]
    neighbours: NDArray[Any]
    weights: NDArray[np.float32] | None
    directed: bool
    nodes: NDArray[Any]

    def __post_init__(self) -> None:
        for array in (self.offsets, self.neighbours, self.weights, self.nodes):
            if array is not None:
                array.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle forgets that an array is read-only; the constructor puts it back.
        return Graph, (self.offsets, self.neighbours, self.weights, self.directed, self.nodes)

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        weighted = "unweighted" if self.weights is None else "weighted"
        return f"<Graph: {self.n_nodes:,} nodes, {self.n_edges:,} edges, {kind}, {weighted}>"

    @property
    def n_nodes(self) -> int:
        """Number of nodes, isolated ones included."""
        return len(self.nodes)

    @cached_property
    def n_edges(self) -> int:
        """Number of edges, each once (directed: of arcs); a self-loop counts once."""
        if self.directed:
            return len(self.neighbours)
        return int(len(self.neighbours) + _count_loops(self.offsets, self.neighbours)) // 2

    @property
    def degrees(self) -> NDArray[np.int64]:
        """(n_nodes,) int64 row lengths; a self-loop counts once."""
        return np.diff(self.offsets)

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest of all that makes the graph: direction, adjacency, weights, ids and their order."""
        digest = hashlib.blake2b(digest_size=20)
        ids = id_column(self.nodes)
        kind = "hashable" if ids is None else str(ids.type)
        digest.update(f"{self.directed} {self.weights is not None} {self.n_nodes} {kind}|".encode())
        digest.update(self.offsets.data)
        digest.update(self.neighbours.data)
        if self.weights is not None:
            digest.update(self.weights.data)
        if ids is None:
            digest.update("\0".join(map(repr, self.nodes)).encode("utf-8", "surrogatepass"))
        else:
            for buffer in ids.buffers()[1:]:
                digest.update(buffer)
        return digest.hexdigest()

    def index_of(self, ids: Any) -> NDArray[np.int64]:
        """Rows of `ids`, as (len(ids),) int64; each call costs O(n_nodes), so ask for many ids at once."""
        known = id_column(self.nodes)
        if known is None:
            rows = {node: row for row, node in enumerate(self.nodes)}
            wanted = list(ids)
            found = np.fromiter((rows.get(i, -1) for i in wanted), np.int64, len(wanted))
        else:
            wanted = read_ids(ids, "ids")
            if not len(wanted):
                return np.empty(0, np.int64)
            _check_same_kind({"nodes": known, "ids": wanted})
            found = pc.fill_null(pc.index_in(wanted.cast(known.type), value_set=known), -1).to_numpy()
            found = found.astype(np.int64)
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            missing = wanted[int(unknown[0])]
            missing = missing.as_py() if isinstance(missing, pa.Scalar) else missing
            close = ", ".join(map(repr, _close_ids(missing, self.nodes)))
            more = f" ({len(unknown) - 1} more are unknown)" if len(unknown) > 1 else ""
            raise InputError(
                f"unknown node id {missing!r}{more}" + (f"; close ids: {close}" if close else "")
            )
        return found

    @classmethod
    def from_edges(
        cls,
        sources: Any,
        targets: Any,
        weights: Any = None,
        nodes: Any = None,
        directed: bool = False,
        drop_self_loops: bool = False,
    ) -> Graph:
        """A graph from aligned columns: `sources[i]`, `targets[i]` and, if given, `weights[i]` are edge i.

        Ids are all ints (int64) or all strs, in lists, NumPy or pyarrow arrays. The order of nodes: those in
        `nodes`, as given, then all others sorted (ints ascending, strings by code point). Ids that stand only
        in `nodes` are isolated nodes. Repeated edges merge and their weights add; in an undirected graph
        (u, v) and (v, u) are one edge. An edge of weight zero is dropped with a warning; its end nodes stay.

        >>> Graph.from_edges([1, 2, 2], [2, 3, 1], nodes=[7])
        <Graph: 4 nodes, 2 edges, undirected, unweighted>
        """
        columns = {
            "nodes": read_ids([] if nodes is None else nodes, "nodes"),
            "sources": read_ids(sources, "sources"),
            "targets": read_ids(targets, "targets"),
        }
        return graph_from_columns(columns, weights, directed, drop_self_loops)

    @classmethod
    def from_scipy(
        cls, matrix: Any, nodes: Any = None, directed: bool | None = None, drop_self_loops: bool = False
    ) -> Graph:
        """A graph from a square adjacency matrix, SciPy sparse or dense: entry (i, j) is the weight of i → j.

        `directed=None` takes a symmetric matrix as undirected, any other as directed. A zero is no edge; when
        all other entries are 1 the graph is unweighted. `nodes` names the rows (default 0, 1, ...).
        """
        shape = np.shape(matrix)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise InputError(f"an adjacency matrix must be square; this one has shape {shape}")
        n = int(shape[0])
        csr = scipy.sparse.csr_array(matrix, copy=True)
        if csr.dtype.kind not in "biuf":
            raise InputError(f"an adjacency matrix must hold real numbers, not {csr.dtype}")
        csr.sum_duplicates()
        csr.eliminate_zeros()
        bad = np.flatnonzero(~(np.isfinite(csr.data) & (csr.data >= 0)))
        if len(bad):
            row, column = _entry(csr.indptr, csr.indices, int(bad[0]))
            raise InputError(
                f"entry ({row}, {column}) is {csr.data[bad[0]]}: weights must be finite and not negative"
            )
        if directed is not True:
            mirrored = csr.T.tocsr()
            symmetric = all(
                np.array_equal(getattr(csr, part), getattr(mirrored, part))
                for part in ("indptr", "indices", "data")
            )
            del mirrored
            if directed is False and not symmetric:
                raise InputError(
                    "the matrix is not symmetric: pass directed=True, or add its transpose to it"
                )
            directed = not symmetric
        ids = _read_nodes(nodes, n)
        offsets = csr.indptr.astype(np.int64)
        neighbours = csr.indices.astype(_code_dtype(n), copy=False)
        values = csr.data
        if drop_self_loops:
            rows = np.repeat(np.arange(n, dtype=neighbours.dtype), np.diff(offsets))
            keep = rows != neighbours
            np.cumsum(np.bincount(rows[keep], minlength=n), out=offsets[1:])
            neighbours, values = neighbours[keep], values[keep]
        weights = None if (values == 1).all() else _to_float32(values, offsets, neighbours, ids)
        return cls(offsets, neighbours, weights, directed, ids)

    @classmethod
    def from_networkx(cls, g: Any, weight: str = "weight") -> Graph:
        """A graph from a networkx (multi)graph, its nodes in the order of `g.nodes`.

        Edges without the attribute `weight` count 1; when no edge has it the graph is unweighted. Parallel
        edges merge and their weights add.
        """
        ids = list(g.nodes)
        if not ids:
            raise InputError("the graph has no nodes: nothing to embed")
        absent = object()
        edges = list(g.edges(data=weight, default=absent))
        row = {node: i for i, node in enumerate(ids)}
        dtype = _code_dtype(len(ids))
        sources = np.fromiter((row[u] for u, _, _ in edges), dtype, len(edges))
        targets = np.fromiter((row[v] for _, v, _ in edges), dtype, len(edges))
        weights = None
        if any(value is not absent for _, _, value in edges):
            weights = np.fromiter(
                (1.0 if value is absent else _number(u, v, value, weight) for u, v, value in edges),
                np.float64,
            )
        return _assemble(_hashable_ids(ids), [sources, targets], weights, g.is_directed(), False)

    def to_scipy(self) -> Any:
        """The adjacency matrix as a (n_nodes, n_nodes) float32 csr_array, sharing memory where it can."""
        data = np.ones(len(self.neighbours), np.float32) if self.weights is None else self.weights
        return scipy.sparse.csr_array(
            (data, self.neighbours, self.offsets), shape=(self.n_nodes,) * 2, copy=False
        )


def as_graph(obj: Any) -> Graph:
    """`obj` as a Graph: a Graph, a SciPy sparse matrix, a networkx graph, or edges of shape (m, 2) or (m, 3).

    In an array or list of edges each row is (source, target) or (source, target, weight), undirected.
    """
    if isinstance(obj, Graph):
        return obj
    if isinstance(obj, str | os.PathLike):
        raise InputError(
            f"{os.fspath(obj)!r} is a path: read_graph(path) reads a file; accepted here is {_ACCEPTED}"
        )
    if scipy.sparse.issparse(obj):
        return Graph.from_scipy(obj)
    if all(hasattr(obj, name) for name in ("nodes", "edges", "is_directed")):
        return Graph.from_networkx(obj)
    if isinstance(obj, np.ndarray) and obj.ndim == 2 and obj.shape[1] in (2, 3):
        ids, weights = obj[:, :2], obj[:, 2] if obj.shape[1] == 3 else None
        # One float array for ids and weights is common: take the ids where they are exact integers.
        if weights is not None and obj.dtype.kind == "f":
            if not (np.isfinite(ids) & (np.abs(ids) < 2**53) & (ids == np.floor(ids))).all():
                raise InputError("the first two columns are node ids and must be whole numbers below 2**53")
            ids = ids.astype(np.int64)
        return Graph.from_edges(ids[:, 0], ids[:, 1], weights)
    if isinstance(obj, list | tuple):
        try:
            columns = list(zip(*obj, strict=True))
        except (TypeError, ValueError):
            columns = [()]
        if not obj or len(columns) in (2, 3):
            return Graph.from_edges(*(columns or ([], [])))
    shape = f" of shape {obj.shape}" if isinstance(obj, np.ndarray) else ""
    raise InputError(f"cannot make a graph of a {type(obj).__name__}{shape}: accepted is {_ACCEPTED}")


def graph_from_columns(columns: dict[str, Any], weights: Any, directed: bool, drop_self_loops: bool) -> Graph:
    """The graph of the columns `nodes`, `sources` and `targets`, in this order, as `read_ids` returns them.

    `columns` is emptied, so that a caller with no other reference frees them before the adjacency is built.
    """
    _check_same_kind(columns)
    n_sources, n_targets = len(columns["sources"]), len(columns["targets"])
    if n_sources != n_targets:
        raise InputError(f"sources and targets differ in length: {n_sources} and {n_targets}")
    if not any(map(len, columns.values())):
        raise InputError("the graph has no nodes: give edges, or nodes=")
    checked = None if weights is None else _check_weights(weights, n_sources)
    del weights
    values = list(columns.values())
    columns.clear()
    nodes, codes = _encode(values)
    return _assemble(nodes, codes, checked, directed, drop_self_loops)


def id_column(nodes: NDArray[Any]) -> Any:
    """Node ids as a pyarrow int64 or large_string array; None when they are other hashables."""
    if nodes.dtype != object:
        return pa.array(nodes)
    try:
        ids = pa.array(nodes)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None
    return ids.cast(pa.large_string()) if pa.types.is_string(ids.type) else None


def read_ids(ids: Any, name: str) -> Any:
    """`ids` as a pyarrow ChunkedArray of int32, int64 or large_string (null type when empty)."""
    if isinstance(ids, str | bytes) or not (hasattr(ids, "__iter__") or hasattr(ids, "__array__")):
        raise InputError(f"{name} must be a list or array of node ids, not {ids!r}")
    if not isinstance(ids, pa.Array | pa.ChunkedArray):
        ids = np.asarray(ids) if hasattr(ids, "__array__") else list(ids)
        if np.ndim(ids) != 1 and isinstance(ids, np.ndarray):
            raise InputError(f"{name} must have one dimension; its shape is {ids.shape}")
        try:
            ids = pa.array(ids)
        except OverflowError:
            raise InputError(f"{name}: an integer id does not fit int64; pass the ids as strings") from None
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise InputError(
                f"{name}: ids must be all ints or all strs ({error}); str() on each makes them strings"
            ) from None
    column = ids if isinstance(ids, pa.ChunkedArray) else pa.chunked_array([ids])
    if not len(column):
        return pa.chunked_array([], pa.null())
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        raise InputError(f"{name}: an id is missing (null)")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_integer(column.type):
        try:
            return column if column.type == pa.int32() else column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise InputError(f"{name}: an integer id does not fit int64; pass the ids as strings") from None
    raise InputError(f"{name}: ids must be ints or strs, not {column.type}; convert them to one of these")


def _check_same_kind(columns: dict[str, Any]) -> None:
    kinds = {name: "int" if pa.types.is_integer(c.type) else "str" for name, c in columns.items() if len(c)}
    if len(set(kinds.values())) > 1:
        listed = ", ".join(f"{name} are {kind}" for name, kind in kinds.items())
        raise InputError(f"ids mix ints and strs ({listed}): convert them all to one kind")


def _read_nodes(nodes: Any, n: int) -> NDArray[Any]:
    """Ids given for the n rows of a matrix."""
    if n == 0:
        raise InputError("the graph has no nodes: the matrix is empty")
    if nodes is None:
        return np.arange(n)
    column = read_ids(nodes, "nodes")
    if len(column) != n:
        raise InputError(f"nodes has {len(column)} ids for a matrix of {n} rows")
    return _encode([column, column.slice(n), column.slice(n)])[0]


def _hashable_ids(ids: list[Any]) -> NDArray[Any]:
    """Node ids of networkx: int64 if all are ints that fit, else objects (plain str if all are strings)."""
    if all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in ids):
        try:
            return np.array(ids, np.int64)
        except OverflowError:
            pass
    elif all(isinstance(i, str) for i in ids):
        return np.array(read_ids(ids, "nodes").to_numpy(zero_copy_only=False))
    return np.fromiter(ids, object, len(ids))


def _number(u: Any, v: Any, value: Any, attribute: str) -> float:
    if isinstance(value, str | bytes):
        raise InputError(f"edge ({u!r}, {v!r}): {attribute} is {value!r}, not a number")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"edge ({u!r}, {v!r}): {attribute} is {value!r}, not a number") from None


def _check_weights(weights: Any, n_edges: int) -> NDArray[np.float64]:
    values = np.asarray(weights)
    if values.ndim != 1 or (len(values) and values.dtype.kind not in "biuf"):
        raise InputError("weights must be a list or array of numbers, one for each edge")
    if len(values) != n_edges:
        raise InputError(f"weights has {len(values)} values for {n_edges} edges")
    return values.astype(np.float64, copy=False)


def _close_ids(missing: Any, nodes: NDArray[Any]) -> list[Any]:
    """Up to three known ids that a mistyped one may have meant."""
    if nodes.dtype != object:
        gaps = np.abs(nodes.astype(np.float64) - missing)
        nearest = np.argpartition(gaps, min(2, len(gaps) - 1))[:3]
        return [int(nodes[row]) for row in nearest[np.argsort(gaps[nearest], kind="stable")]]
    if not isinstance(missing, str):
        return []
    # difflib is slow: let it see a bounded number of ids of about the same length.
    alike = (i for i in nodes if isinstance(i, str) and abs(len(i) - len(missing)) <= 2)
    return difflib.get_close_matches(missing, islice(alike, 20_000), n=3)


def _code_dtype(n_nodes: int) -> type[np.signedinteger[Any]]:
    return np.int32 if n_nodes <= _INT32_MAX else np.int64


def _encode(columns: list[Any]) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """Node ids in their documented order, and the rows of [sources, targets]; empties `columns`."""
    lengths = [len(column) for column in columns]
    kinds = {column.type for column in columns if len(column)}
    if len(kinds) > 1:
        kinds = {pa.int64() if any(map(pa.types.is_integer, kinds)) else pa.large_string()}
    kind = kinds.pop()
    chunks = [chunk for column in columns if len(column) for chunk in column.cast(kind).chunks if len(chunk)]
    columns.clear()
    if pa.types.is_integer(kind):
        dense = [chunk.to_numpy() for chunk in chunks]
        # Ids that are nearly 0..n need no hashing: a table over their range is several times faster.
        if min(c.min() for c in dense) >= 0 and max(c.max() for c in dense) < 4 * sum(lengths) + 1024:
            del chunks
            ids, ranks = _rank_dense(dense, lengths[0])
            return ids, _look_up(ranks, dense, lengths)
        del dense
    encoded = pa.chunked_array(chunks).dictionary_encode()
    del chunks
    # The hash table just freed stays with Arrow's allocator unless it is told: half of the peak otherwise.
    pa.default_memory_pool().release_unused()
    dictionary = encoded.chunk(0).dictionary
    indices = [chunk.indices.to_numpy() for chunk in encoded.chunks]
    del encoded
    # The dictionary is in the order of first sight, so ids given in `nodes` lead it unless one comes twice.
    first, n = lengths[0], len(dictionary)
    given = np.concatenate([np.empty(0, np.int32), *_split_first(indices, first)])
    repeated = np.flatnonzero(given != np.arange(first))
    if len(repeated):
        _raise_duplicate(dictionary[int(given[repeated[0]])].as_py())
    rest = np.asarray(pc.sort_indices(dictionary.slice(first))).astype(np.int64) + first
    order = np.concatenate([np.arange(first), rest])
    ranks = np.empty(n, _code_dtype(n))
    ranks[order] = np.arange(n)
    ids = dictionary.take(pa.array(order)).to_numpy(zero_copy_only=False)
    return np.array(ids, np.int64 if ids.dtype != object else object), _look_up(ranks, indices, lengths)


def _split_first(chunks: list[NDArray[Any]], length: int) -> list[NDArray[Any]]:
    """The leading chunks that together hold `length` values: the column `nodes`."""
    taken = 0
    leading: list[NDArray[Any]] = []
    while taken < length:
        leading.append(chunks[len(leading)])
        taken += len(leading[-1])
    return leading


def _rank_dense(chunks: list[NDArray[Any]], first: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Ids in documented order and a table id → row, for ids that are nearly 0..n."""
    size = int(max(chunk.max() for chunk in chunks)) + 1
    ranks = np.full(size, -1, _code_dtype(size))
    given = np.concatenate([np.empty(0, np.int64), *_split_first(chunks, first)]).astype(np.int64)
    ranks[given] = np.arange(first)
    repeated = np.flatnonzero(ranks[given] != np.arange(first))
    if len(repeated):
        _raise_duplicate(int(given[repeated[0]]))
    seen = np.zeros(size, np.bool_)
    for chunk in chunks:
        seen[chunk] = True
    seen[given] = False
    rest = np.flatnonzero(seen)
    ranks[rest] = np.arange(first, first + len(rest))
    return np.concatenate([given, rest]), ranks


def _raise_duplicate(node: Any) -> None:
    raise InputError(f"nodes: the id {node!r} comes more than once; give each id once")


def _look_up(ranks: NDArray[Any], indices: list[NDArray[Any]], lengths: list[int]) -> list[NDArray[Any]]:
    """Rows of sources and of targets; frees each chunk of `indices` once it is used."""
    del indices[: len(_split_first(indices, lengths[0]))]
    columns = []
    for length in lengths[1:]:
        codes = np.empty(length, ranks.dtype)
        filled = 0
        while filled < length:
            chunk = indices.pop(0)
            np.take(ranks, chunk, out=codes[filled : filled + len(chunk)], mode="clip")
            filled += len(chunk)
        columns.append(codes)
    return columns


def _assemble(
    nodes: NDArray[Any],
    codes: list[NDArray[Any]],
    weights: NDArray[np.float64] | None,
    directed: bool,
    drop_self_loops: bool,
) -> Graph:
    """The graph of edges between rows; `codes` is [sources, targets] and is emptied."""
    targets, sources = codes.pop(), codes.pop()
    keep = sources != targets if drop_self_loops else None
    if weights is not None:
        bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(bad):
            raise InputError(
                f"weights[{bad[0]}] is {weights[bad[0]]}: weights must be finite and not negative"
            )
        n_zero = int(len(weights) - np.count_nonzero(weights))
        if n_zero:
            warnings.warn(f"edges of weight zero dropped: {n_zero}; their end nodes stay", stacklevel=4)
            keep = weights > 0 if keep is None else keep & (weights > 0)
    if keep is not None:
        sources, targets = sources[keep], targets[keep]
        weights = None if weights is None else weights[keep]
    # Two transpositions sort the rows by counting, without comparisons. An empty array stands for no weights,
    # so that each compiled function has one signature.
    values = np.empty(0) if weights is None else weights
    offsets, neighbours, values = _columns_of(sources, targets, values, len(nodes), not directed)
    del sources, targets, keep
    offsets, neighbours, values = _transpose(offsets, neighbours, values)
    size = _merge(offsets, neighbours, values)
    if weights is None:
        merged = np.empty(0, np.float32)
    else:
        merged = _to_float32(values[:size], offsets, neighbours, nodes)
    del values
    if not directed:
        offsets, neighbours, merged = _mirror(offsets, neighbours, merged)
    elif size < len(neighbours):
        neighbours = neighbours[:size].copy()
    return Graph(offsets, neighbours, None if weights is None else merged, directed, nodes)


def _entry(offsets: NDArray[Any], neighbours: NDArray[Any], position: int) -> tuple[int, int]:
    """Row and column of an entry of a CSR matrix."""
    return int(np.searchsorted(offsets, position, side="right")) - 1, int(neighbours[position])


def _to_float32(
    values: NDArray[Any], offsets: NDArray[np.int64], neighbours: NDArray[Any], nodes: NDArray[Any]
) -> NDArray[np.float32]:
    with np.errstate(over="ignore", under="ignore"):
        weights = values.astype(np.float32)
    bad = np.flatnonzero(np.isinf(weights) | (weights == 0))
    if len(bad):
        row, column = _entry(offsets, neighbours, int(bad[0]))
        raise InputError(
            f"edge ({nodes[row]}, {nodes[column]}): its weight {values[bad[0]]} is outside float32: "
            "rescale the weights"
        )
    return weights


@njit(cache=True, nogil=True)
def _columns_of(sources, targets, weights, n_nodes, undirected):  # type: ignore[no-untyped-def]
    """CSR by target, rows unsorted; an undirected edge goes from its lower end to its higher one."""
    offsets = np.zeros(n_nodes + 1, np.int64)
    for i in range(len(sources)):
        target = max(sources[i], targets[i]) if undirected else targets[i]
        offsets[target + 1] += 1
    for i in range(n_nodes):
        offsets[i + 1] += offsets[i]
    cursor = offsets[:-1].copy()
    entries = np.empty(len(sources), sources.dtype)
    values = np.empty(len(weights), np.float64)
    for i in range(len(sources)):
        source, target = sources[i], targets[i]
        if undirected and source > target:
            source, target = target, source
        k = cursor[target]
        cursor[target] = k + 1
        entries[k] = source
        if len(weights) > 0:
            values[k] = weights[i]
    return offsets, entries, values


@njit(cache=True, nogil=True)
def _transpose(offsets, entries, weights):  # type: ignore[no-untyped-def]
    """The transposed CSR: its rows come out ascending, and equal entries in the order they had."""
    new_offsets = np.zeros(len(offsets), np.int64)
    for k in range(len(entries)):
        new_offsets[entries[k] + 1] += 1
    for row in range(len(offsets) - 1):
        new_offsets[row + 1] += new_offsets[row]
    cursor = new_offsets[:-1].copy()
    new_entries = np.empty_like(entries)
    values = np.empty_like(weights)
    for row in range(len(offsets) - 1):
        for k in range(offsets[row], offsets[row + 1]):
            j = cursor[entries[k]]
            cursor[entries[k]] = j + 1
            new_entries[j] = row
            if len(weights) > 0:
                values[j] = weights[k]
    return new_offsets, new_entries, values


@njit(cache=True, nogil=True)
def _merge(offsets, entries, weights):  # type: ignore[no-untyped-def]
    """Merge equal neighbours in rows that are sorted, in place, adding weights; the new number of entries."""
    size = 0
    start = 0
    for row in range(len(offsets) - 1):
        stop = offsets[row + 1]
        first = size
        for k in range(start, stop):
            if size > first and entries[size - 1] == entries[k]:
                if len(weights) > 0:
                    weights[size - 1] += weights[k]
                continue
            entries[size] = entries[k]
            if len(weights) > 0:
                weights[size] = weights[k]
            size += 1
        start = stop
        offsets[row + 1] = size
    return size


@njit(cache=True, nogil=True)
def _mirror(offsets, entries, weights):  # type: ignore[no-untyped-def]
    """The symmetric CSR of an upper triangle with sorted rows.

    Rows come out sorted: when row i is read, all its lower neighbours have been written to it, in order.
    """
    new_offsets = np.zeros(len(offsets), np.int64)
    for row in range(len(offsets) - 1):
        for k in range(offsets[row], offsets[row + 1]):
            new_offsets[row + 1] += 1
            if entries[k] != row:
                new_offsets[entries[k] + 1] += 1
    for row in range(len(offsets) - 1):
        new_offsets[row + 1] += new_offsets[row]
    cursor = new_offsets[:-1].copy()
    new_entries = np.empty(new_offsets[-1], entries.dtype)
    values = np.empty(new_offsets[-1] if len(weights) > 0 else 0, weights.dtype)
    for row in range(len(offsets) - 1):
        for k in range(offsets[row], offsets[row + 1]):
            column = entries[k]
            j = cursor[row]
            cursor[row] = j + 1
            new_entries[j] = column
            if len(weights) > 0:
                values[j] = weights[k]
            if column != row:
                j = cursor[column]
                cursor[column] = j + 1
                new_entries[j] = row
                if len(weights) > 0:
                    values[j] = weights[k]
    return new_offsets, new_entries, values


@njit(cache=True, nogil=True)
def _count_loops(offsets, neighbours):  # type: ignore[no-untyped-def]
    loops = 0
    for row in range(len(offsets) - 1):
        for k in range(offsets[row], offsets[row + 1]):
            if neighbours[k] == row:
                loops += 1
    return loops
