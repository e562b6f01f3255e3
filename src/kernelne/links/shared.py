"""What predicting links and ranking them share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelne.embedding import Embedding
from kernelne.errors import InputError, warn
from kernelne.graph import Graph
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
