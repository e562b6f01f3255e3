"""The same graph in the format of each program. Node i is named str(i) if names must be strings."""

from __future__ import annotations

from typing import Any

import numpy as np


def kernelne_graph(n: int, edges: Any) -> Any:
    from kernelne import Graph

    return Graph.from_edges(edges[:, 0], edges[:, 1], nodes=np.arange(n))


def grape_graph(n: int, edges: Any) -> Any:
    import pandas as pd
    from ensmallen import Graph

    names = np.arange(n).astype(str)
    return Graph.from_pd(
        edges_df=pd.DataFrame({"subject": names[edges[:, 0]], "object": names[edges[:, 1]]}),
        nodes_df=pd.DataFrame({"name": names}),
        directed=False,
        name="benchmark",
    )


def pecanpy_graph(n: int, edges: Any, p: float, q: float, threads: int, seed: int) -> Any:
    """Return PecanPy's fastest mode for p and q that needs no table per edge, with compiled walks.

    PecanPy compiles its walks at every call, for the given graph. Here the compiled function is kept and
    called once before, so that no compilation is timed.
    """
    from pecanpy import pecanpy

    adjacency = kernelne_graph(n, edges)
    kind = pecanpy.FirstOrderUnweighted if p == q == 1 else pecanpy.SparseOTF
    graph = kind(p=p, q=q, workers=threads, random_state=seed)
    graph.set_node_ids([str(i) for i in range(n)])
    graph.indptr = adjacency.offsets.astype(np.uint32)
    graph.indices = adjacency.neighbours.astype(np.uint32)
    graph.data = np.ones(len(graph.indices), np.float32)
    move, has_neighbours = graph.get_move_forward(), graph.get_has_nbrs()
    graph.get_move_forward, graph.get_has_nbrs = lambda: move, lambda: has_neighbours
    graph.simulate_walks(1, 2)
    return graph


def compile_kernelne(threads: int) -> dict[str, Any]:
    """Child: fill the Numba cache, so that the peak memory of later children does not include compilation."""
    from kernelne import KernelNE, MKernelNE

    edges = np.column_stack([np.arange(99), np.arange(1, 100)])
    for model in (KernelNE(), KernelNE(deterministic=True), MKernelNE()):
        model.set_params(walks_per_node=1, n_threads=threads, progress=False).fit(edges)
    return {}
