"""Before links are predicted or ranked: the embedding is checked, and pairs become rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne.embedding import Embedding
from kernelne.embedding.provenance import changed_kernels
from kernelne.errors import InputError, warn
from kernelne.graph import Graph
from kernelne.graph.ids import read_ids
from kernelne.graph.tables import apart, is_table, lack_prefixes, table_columns
from kernelne.model.kernels import check_kernels


def checked_embedding(embedding: Any, graph: Graph) -> Embedding:
    """Check the embedding; return it with its rows in the order of the graph's nodes."""
    if not isinstance(embedding, Embedding):
        raise InputError(
            f"embedding: must be an Embedding, not {type(embedding).__name__}: pass est.to_embedding(), "
            "Embedding.load(path), or Embedding(vectors, nodes)"
        )
    if embedding.kernels is not None:
        check_kernels(embedding.kernels, "embedding.kernels")
        for name in changed_kernels(embedding.provenance, (name for name, _ in embedding.kernels)):
            warn(f"the kernel {name} is another function now than the one the embedding was trained with")
    if len(embedding) != graph.n_nodes:
        raise InputError(
            f"the embedding has {len(embedding)} nodes, the graph {graph.n_nodes}: they must be the same"
        )
    rows = embedding.index_of(graph.nodes)
    source = embedding.provenance.get("graph")
    if isinstance(source, dict) and source.get("fingerprint") not in (None, graph.fingerprint):
        warn("the embedding was made of another graph with these nodes, or of this one before it changed")
    if (rows == np.arange(len(rows))).all():
        return embedding
    tables: dict[str, Any] = {name: getattr(embedding, name) for name in ("vectors", "center", "context")}
    moved: dict[str, Any] = {name: None if t is None else t[rows] for name, t in tables.items()}
    return replace(embedding, nodes=graph.nodes, neighbourhoods=None, **moved)


def is_forward(embedding: Embedding) -> bool:
    """Return whether centers are sources and contexts targets: whether it was trained with forward=True."""
    parameters = embedding.provenance.get("parameters")
    return isinstance(parameters, dict) and parameters.get("forward") is True


def pair_rows(graph: Graph, pairs: Any, name: str) -> NDArray[np.int64]:
    """Return the rows (k, 2) of pairs of node ids: an array (k, 2), a list of pairs, or a table.

    The names of a table's columns are put before its ids if those of the graph have them: user_id:5.
    """
    if isinstance(pairs, np.ndarray):
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InputError(f"{name}: shape {pairs.shape}: give pairs of node ids, shape (k, 2)")
        ends: Any = pairs.T
    elif is_table(pairs):
        columns = table_columns(pairs)
        if len(columns) != 2:
            raise InputError(f"{name}: a table of the columns {columns.shown}: give only the two of node ids")
        ends = [columns.get(column) for column in columns]
        if lack_prefixes(columns, columns, graph.nodes):
            ends = apart(read_ids(ends[0], name), read_ids(ends[1], name), columns, True)
    else:
        ends = _columns(pairs, name)
    try:
        return np.column_stack([graph.index_of(ids) for ids in ends]).reshape(-1, 2)
    except InputError as error:
        given = np.asarray(ends[0])
        inside = given.dtype.kind in "iu" and given.size and given.min() >= 0 and given.max() < graph.n_nodes
        if not inside or graph.nodes.dtype != object:
            raise
        hint = "these look like row numbers: graph.nodes[split.test_edges] gives ids"
        raise InputError(f"{name}: {error}; {hint}") from None


def _columns(pairs: Any, name: str) -> list[list[Any]]:
    """Return the first and the second ids of a list of pairs; ids, tuples too, are not converted."""
    try:
        rows = [tuple(pair) for pair in pairs]
    except TypeError:
        raise InputError(f"{name}: {pairs!r}: give pairs of node ids, [(id, id), …]") from None
    bad = next((i for i, row in enumerate(rows) if len(row) != 2), None)
    if bad is not None:
        raise InputError(f"{name}: pair {bad} is {rows[bad]!r}: give pairs of node ids, [(id, id), …]")
    return [[row[0] for row in rows], [row[1] for row in rows]]
