"""Iterate over the edges of a graph, each once: in blocks, or as an Arrow table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne.errors import InputError
from kernelne.graph.ids import id_column

if TYPE_CHECKING:
    from kernelne.graph.graph import Graph


ARROW_KEY = b"kernelne_graph"


def edge_table(graph: Graph) -> Any:
    """Return an Arrow table of source, target and, if weighted, weight, each edge once.

    The metadata says whether the graph is directed.
    """
    ids = writable_ids(graph)
    blocks = list(edge_blocks(graph))
    columns = {}
    for number, name in enumerate(("source", "target")):
        chunks = [ids.take(pa.array(block[number])) for block in blocks]
        columns[name] = pa.chunked_array(chunks, ids.type)
    if graph.weights is not None:
        columns["weight"] = pa.chunked_array([pa.array(block[2]) for block in blocks], pa.float32())
    return pa.table(columns).replace_schema_metadata({ARROW_KEY: json.dumps({"directed": graph.directed})})


_BLOCK = 1 << 18  # edges per block


def writable_ids(graph: Graph) -> Any:
    """Return the node ids as an int64 or large_string array; raises InputError for ids of other types."""
    ids = id_column(graph.nodes)
    if ids is None:
        raise InputError("only graphs whose node ids are all ints or all strs can be written to a file")
    return ids


def edge_blocks(graph: Graph) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[np.float32] | None]]:
    """Yield non-empty blocks of (source rows, target rows, weights), each edge once."""
    for start in range(0, len(graph.neighbours), _BLOCK):
        targets = graph.neighbours[start : start + _BLOCK]
        entries = np.arange(start, start + len(targets))
        sources = np.searchsorted(graph.offsets, entries, side="right") - 1
        if not graph.directed:
            once = sources <= targets
            sources, targets, entries = sources[once], targets[once], entries[once]
        if len(sources):
            yield sources, targets, None if graph.weights is None else graph.weights[entries]
