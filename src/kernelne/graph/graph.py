"""The Graph class: immutable CSR adjacency, weights, and node ids in a documented order."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelne._common.html import html_facts
from kernelne.errors import InputError, MissingDependencyError
from kernelne.graph import shape
from kernelne.graph.adapters import Rows, make_networkx, read_networkx, reader_of
from kernelne.graph.build import (
    GOOD_WEIGHTS,
    assemble,
    bad_weight,
    check_weights,
    checked_csr,
    entry,
    to_float32,
)
from kernelne.graph.csr import count_loops
from kernelne.graph.ids import (
    check_same_kind,
    code_dtype,
    encode_columns,
    id_column,
    node_array,
    read_ids,
    rows_of,
)
from kernelne.graph.tables import is_table, read_edges, table_columns
from kernelne.graph.times import TimedArcs, timed_arcs

_ACCEPTED = (
    "a Graph, a SciPy sparse matrix, a graph of networkx, igraph, rustworkx or torch_geometric, a table of "
    "edges (pandas, polars, pyarrow), or edges of shape (m, 2) or (m, 3)"
)


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An immutable graph: row i of each of its embeddings belongs to the node `nodes[i]`.

    Build one with a `from_` method, `as_graph` or `read_graph`: the constructor does not check its arrays,
    and makes them read-only. An undirected edge is stored in the rows of both its nodes, a self-loop once.

    Attributes
    ----------
    offsets: (n_nodes + 1,) int64; row i is `neighbours[offsets[i]:offsets[i + 1]]`.
    neighbours: (n_entries,) int32 (int64 beyond 2**31 - 1 nodes), ascending and unique within a row.
    weights: (n_entries,) float32, positive, aligned with `neighbours`; None when unweighted.
    directed: whether an entry in row i is an arc that leaves i.
    nodes: (n_nodes,) unique ids: int64, or objects (str, if of a .kne file StringIds; else any hashable).
    n_merged: number of repeated edges that were merged into others; 0 if built from a matrix.
    timed: all arcs in the order of time, if they have times: walks then follow that order; else None.
    """

    offsets: NDArray[np.int64]
    neighbours: NDArray[Any]
    weights: NDArray[np.float32] | None
    directed: bool
    nodes: NDArray[Any]
    n_merged: int = 0
    timed: TimedArcs | None = None

    def __post_init__(self) -> None:
        for array in (self.offsets, self.neighbours, self.weights, self.nodes, *(self.timed or ())):
            if isinstance(array, np.ndarray):  # not ids that stay text
                array.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle does not keep the read-only flag of arrays; the constructor sets it again.
        return Graph, tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def __deepcopy__(self, memo: Any) -> Graph:
        return self  # nothing of it changes

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        weighted = "unweighted" if self.weights is None else "weighted"
        return f"<Graph: {self.n_nodes:,} nodes, {self.n_edges:,} edges, {kind}, {weighted}>"

    def _repr_html_(self) -> str:
        kind = f"{'directed' if self.directed else 'undirected'}, {'un' * (self.weights is None)}weighted"
        first = ", ".join(map(str, self.nodes[:5].tolist())) + ", …" * (self.n_nodes > 5)
        return html_facts("Graph", {"nodes": self.n_nodes, "edges": self.n_edges, "kind": kind, "ids": first})

    @property
    def n_nodes(self) -> int:
        """Number of nodes, including isolated ones."""
        return len(self.nodes)

    @cached_property
    def n_edges(self) -> int:
        """Number of edges (arcs if directed), each counted once; a self-loop counts once."""
        if self.directed:
            return len(self.neighbours)
        return int(len(self.neighbours) + count_loops(self.offsets, self.neighbours)) // 2

    @property
    def degrees(self) -> NDArray[np.int64]:
        """(n_nodes,) int64 row lengths; a self-loop counts once."""
        return np.diff(self.offsets)

    @cached_property
    def memory_of_walks(self) -> float:
        """What a random walk remembers of its start after a step, from 0 to 1."""
        return shape.memory_of_walks(self)

    @cached_property
    def sides(self) -> NDArray[np.int8] | None:
        """int8 (n,), 0 or 1, if all edges go between two sides, such as users and items; else None."""
        return shape.sides(self)

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest of the graph: direction, adjacency, weights, node ids and their order."""
        digest = hashlib.blake2b(digest_size=20)
        ids = id_column(self.nodes)
        kind = "hashable" if ids is None else str(ids.type)
        digest.update(f"{self.directed} {self.weights is not None} {self.n_nodes} {kind}|".encode())
        digest.update(self.offsets.data)
        digest.update(self.neighbours.data)
        for array in (self.weights, *(self.timed or ())):
            if array is not None:
                digest.update(array.data)
        if ids is None:
            digest.update("\0".join(map(repr, self.nodes)).encode("utf-8", "surrogatepass"))
        else:
            for buffer in ids.buffers()[1:]:
                digest.update(buffer)
        return digest.hexdigest()

    def index_of(self, ids: Any) -> NDArray[np.int64]:
        """Return the rows of `ids`, (len(ids),) int64; a call costs O(n_nodes), so pass many ids at once.

        Raises UnknownNodeError if an id is not in the graph.
        """
        return rows_of(ids, self.nodes)

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
        """Build a graph from aligned columns: edge i is `sources[i]`, `targets[i]`, with weight `weights[i]`.

        Node ids are all ints (int64) or all strs, in lists, NumPy or pyarrow arrays. The order of nodes is
        `nodes`, as given, then all others sorted (ints ascending, strings by code point). Ids that occur only
        in `nodes` are isolated nodes. Repeated edges are merged and their weights added; in an undirected
        graph (u, v) and (v, u) are the same edge. An edge of weight zero is dropped with a warning; its nodes
        are kept.

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
        """Build a graph from a square matrix, SciPy sparse or dense: entry (i, j) is the weight of i → j.

        `directed=None` reads a symmetric matrix as undirected, any other as directed. Zeros are not edges; if
        all other entries are 1 the graph is unweighted. `nodes` are the ids of the rows (default 0, 1, ...).
        """
        csr = checked_csr(matrix)
        n = int(csr.shape[0])
        if (bad := bad_weight(csr.data)) is not None:
            row, column = entry(csr.indptr, csr.indices, bad)
            raise InputError(f"entry ({row}, {column}) is {csr.data[bad]}: {GOOD_WEIGHTS}")
        if directed is not True:
            mirrored = csr.T.tocsr()
            symmetric = all(
                np.array_equal(getattr(csr, part), getattr(mirrored, part))
                for part in ("indptr", "indices", "data")
            )
            del mirrored
            if directed is False and not symmetric:
                raise InputError("the matrix is not symmetric: pass directed=True, or add its transpose")
            directed = not symmetric
        ids = _read_nodes(nodes, n)
        offsets = csr.indptr.astype(np.int64)
        neighbours = csr.indices.astype(code_dtype(n), copy=False)
        values = csr.data
        if drop_self_loops:
            rows = np.repeat(np.arange(n, dtype=neighbours.dtype), np.diff(offsets))
            keep = rows != neighbours
            np.cumsum(np.bincount(rows[keep], minlength=n), out=offsets[1:])
            neighbours, values = neighbours[keep], values[keep]
        weights = None if (values == 1).all() else to_float32(values, offsets, neighbours, ids)
        return cls(offsets, neighbours, weights, directed, ids)

    @classmethod
    def from_networkx(cls, g: Any, weight: str = "weight") -> Graph:
        """Build a graph from a networkx (multi)graph, nodes in the order of `g.nodes`.

        Edges without the attribute `weight` have weight 1; if no edge has it the graph is unweighted.
        Parallel edges are merged and their weights added.
        """
        return _from_rows(read_networkx(g, weight))

    @classmethod
    def from_table(
        cls,
        table: Any,
        source: Any = None,
        target: Any = None,
        weight: Any = None,
        nodes: Any = None,
        directed: bool = False,
        drop_self_loops: bool = False,
        time: Any = None,
        half_life: Any = None,
        bipartite: bool | None = None,
    ) -> Graph:
        """Build a graph from a table of edges: pandas, polars, pyarrow, a dict, or any that Arrow can read.

        `source` and `target` are the names of the id columns. The default is a common pair of names (source
        and target, src and dst, user and item, from_account and to_account …; case is ignored), else the only
        two columns, or the first two of three if the third holds numbers. `weight` is the name of the weight
        column, by default weight, else the only other column; False means no weights. A table that does not
        tell its columns is refused. `time` is a column of dates or numbers: walks follow edges in its order,
        or, with `half_life`, an edge weighs half for every half-life before the newest, such as "30d" (s,
        min, h, d, w, y) for dates and Unix times, else a number in the unit of the column. `bipartite` is as
        in `read_graph`. Otherwise as in `from_edges`.

        >>> Graph.from_table({"weight": [0.5, 2.0], "from": ["a", "b"], "to": ["b", "c"]}, directed=True)
        <Graph: 3 nodes, 2 edges, directed, weighted>
        """
        named = table_columns(table)
        columns, *values = read_edges(named, source, target, weight, time, half_life, bipartite)
        columns = {"nodes": read_ids([] if nodes is None else nodes, "nodes")} | columns
        return graph_from_columns(columns, values[0], directed, drop_self_loops, values[1])

    def to_arrow(self) -> Any:
        """Return the edges as a pyarrow Table with the columns source, target and, if weighted, weight.

        Each edge appears once. `from_table(table, nodes=graph.nodes, directed=graph.directed)` returns it.
        """
        from kernelne.graph.edges import edge_table

        return edge_table(self)

    def to_pandas(self) -> Any:
        """Return the edges as a pandas DataFrame; see `to_arrow`."""
        try:
            import pandas  # noqa: F401  (pyarrow would fail without a hint)
        except ImportError:
            raise MissingDependencyError("pandas", "graphs") from None
        return self.to_arrow().to_pandas()

    def to_networkx(self) -> Any:
        """Return the graph as a networkx Graph or DiGraph, weights in the attribute `weight`."""
        return make_networkx(self)

    def to_scipy(self) -> Any:
        """Return the adjacency matrix, a (n_nodes, n_nodes) float32 csr_array sharing memory if possible."""
        data = np.ones(len(self.neighbours), np.float32) if self.weights is None else self.weights
        return scipy.sparse.csr_array(
            (data, self.neighbours, self.offsets), shape=(self.n_nodes,) * 2, copy=False
        )


def as_graph(obj: Any) -> Graph:
    """Convert `obj` to a Graph.

    `obj` is a Graph, a SciPy sparse matrix, a graph of networkx, igraph (ids are the attribute `name`, else
    0 … n - 1), rustworkx (ids are the node payloads if all are strings or all integers, and unique, else the
    node indices) or torch_geometric (ids are 0 … n - 1; undirected if every edge is present in both
    directions), a table of edges (see `Graph.from_table`), or an array or a list of edges, where each row is
    (source, target) or (source, target, weight). Tables, arrays and lists are read as undirected.
    """
    if isinstance(obj, Graph):
        return obj
    if isinstance(obj, str | os.PathLike):
        raise InputError(f"{os.fspath(obj)!r} is a path: read_graph(path) reads a file; expected {_ACCEPTED}")
    if scipy.sparse.issparse(obj):
        return Graph.from_scipy(obj)
    if (read := reader_of(obj)) is not None:
        return _from_rows(read(obj))
    if is_table(obj):
        return Graph.from_table(obj)
    if isinstance(obj, np.ndarray) and obj.ndim == 2 and obj.shape[1] in (2, 3):
        obj = np.asarray(obj)  # a row of np.matrix has two dimensions
        _refuse_matrix(obj)
        ids, weights = obj[:, :2], obj[:, 2] if obj.shape[1] == 3 else None
        if weights is not None and obj.dtype == object:
            weights = weights.tolist()
        # A single float array of ids and weights is common: accept ids that are exact integers.
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
            _refuse_matrix(obj)
            return Graph.from_edges(*(columns or ([], [])))
    shape = f" of shape {obj.shape}" if isinstance(obj, np.ndarray) else ""
    square = shape and len({*obj.shape}) < obj.ndim == 2
    matrix = "; if it is an adjacency matrix, pass scipy.sparse.csr_array(array)" if square else ""
    raise InputError(f"cannot make a graph from a {type(obj).__name__}{shape}: expected {_ACCEPTED}{matrix}")


def _refuse_matrix(rows: Any) -> None:
    """Raise InputError if rows of two or three values are, or may be, a matrix instead of edges."""
    if isinstance(rows, np.ndarray) and rows.dtype == bool:
        raise InputError(
            f"a bool array of shape {rows.shape} contains no node ids: give edges as ids, or, if it is an "
            "adjacency matrix, scipy.sparse.csr_array(array)"
        )
    if len(rows) != 3 or len(rows[0]) != 3:
        return
    table = [tuple(row) for row in rows]
    if table == list(zip(*table, strict=True)) and not any(table[i][i] for i in range(3)):
        raise InputError(
            "a symmetric array of shape (3, 3) may be three weighted edges or the matrix of three nodes: "
            "pass Graph.from_edges(...), or scipy.sparse.csr_array(array)"
        )


def graph_from_columns(
    columns: dict[str, Any], weights: Any, directed: bool, drop_self_loops: bool, times: Any = None
) -> Graph:
    """Build a graph from the columns `nodes`, `sources` and `targets`, in this order, as from `read_ids`.

    `columns` is emptied, so that the columns are freed before the adjacency is built, unless referenced
    elsewhere.
    """
    check_same_kind(columns)
    n_sources, n_targets = len(columns["sources"]), len(columns["targets"])
    if n_sources != n_targets:
        raise InputError(f"sources and targets differ in length: {n_sources} and {n_targets}")
    if not any(map(len, columns.values())):
        raise InputError("the graph has no nodes: give edges, or nodes=")
    checked = None if weights is None else check_weights(weights, n_sources)
    del weights
    values = list(columns.values())
    columns.clear()
    nodes, codes = encode_columns(values)
    kind = directed, drop_self_loops
    timed = None if times is None else timed_arcs(codes, times, checked, len(nodes), *kind)
    return _from_codes(nodes, codes, checked, *kind, timed)


def _read_nodes(nodes: Any, n: int) -> NDArray[Any]:
    """Return the node ids of the n rows of a matrix."""
    if n == 0:
        raise InputError("the graph has no nodes: the matrix is empty")
    if nodes is None:
        return np.arange(n)
    column = read_ids(nodes, "nodes")
    if len(column) != n:
        raise InputError(f"nodes has {len(column)} ids for a matrix of {n} rows")
    return encode_columns([column, column.slice(n), column.slice(n)])[0]


def _from_rows(rows: Rows) -> Graph:
    if not len(rows.ids):
        raise InputError("the graph has no nodes: nothing to embed")
    dtype = code_dtype(len(rows.ids))
    codes = [rows.sources.astype(dtype, copy=False), rows.targets.astype(dtype, copy=False)]
    return _from_codes(node_array(rows.ids), codes, rows.weights, rows.directed, False)


def _from_codes(
    nodes: NDArray[Any],
    codes: list[NDArray[Any]],
    weights: Any,
    directed: bool,
    drop_self_loops: bool,
    timed: TimedArcs | None = None,
) -> Graph:
    """Build a graph from edges between rows of `nodes`; `codes` is [sources, targets] and is emptied."""
    offsets, neighbours, merged, n_merged = assemble(nodes, codes, weights, directed, drop_self_loops)
    return Graph(offsets, neighbours, merged, directed, nodes, n_merged, timed)
