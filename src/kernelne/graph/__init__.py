"""Immutable graphs with node ids, built from any common container.

Names are imported lazily: reading the node ids of an embedding file needs no compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelne.graph.graph import Graph, as_graph

__all__ = ["Graph", "as_graph"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'kernelne.graph' has no attribute {name!r}")
    from kernelne.graph import graph

    return getattr(graph, name)
