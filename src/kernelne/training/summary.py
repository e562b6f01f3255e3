"""Properties of a graph, and the memory and time that embedding it needs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from kernelne.errors import InputError
from kernelne.graph import Graph
from kernelne.graph.csr import count_loops
from kernelne.graph.ops import count_isolated
from kernelne.graph.shape import component_sizes
from kernelne.training.backend import load_backend
from kernelne.training.parts.plan import Engine, make_plan
from kernelne.training.timing import run_seconds


def summarise(graph: Graph, estimator: Any) -> dict[str, Any]:
    """Return properties by name, in the order to show them; all values can be written as JSON.

    Memory and time are those of `estimator`, a KernelNE or MKernelNE.
    """
    config = estimator.config(graph)
    n_tables = estimator.n_tables()
    degrees = graph.degrees
    components = component_sizes(graph)
    plan = estimator.plan(graph)
    seconds: Any = "not estimated for training in parts"
    try:
        plan.backend.check(graph, config, n_tables, estimator.dim)
        if plan.parts is None:
            seconds = round(run_seconds(plan.backend, graph, config), 1)
    except InputError:
        seconds = "does not fit in memory"
        with suppress(InputError):
            plan = make_plan(graph, config, Engine("disk"), load_backend("cpu"), n_tables)
    needed = plan.needed or plan.backend.run_bytes(graph, config, n_tables)
    return {
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "directed": graph.directed,
        "weighted": graph.weights is not None,
        "ids": "integers" if graph.nodes.dtype != object else "strings",
        "components": len(components),
        "largest_component": int(components.max()),
        "isolated_nodes": count_isolated(graph),
        "nodes_without_successors": int((degrees == 0).sum()),
        "repeated_edges_merged": graph.n_merged,
        "self_loops": int(count_loops(graph.offsets, graph.neighbours)),
        "degree_min": int(degrees.min()),
        "degree_median": float(np.median(degrees)),
        "degree_mean": round(float(degrees.mean()), 2),
        "degree_max": int(degrees.max()),
        "dim": estimator.dim,
        "walks": graph.n_nodes * config.walks_per_node,
        "threads": config.n_threads,
        "plan": plan.told,
        "estimated_memory_MiB": round(needed / 2**20),
        "estimated_seconds": seconds,
        "fingerprint": graph.fingerprint,
    }
