"""What the default reads of a graph: what its walks remember, and whether it has two sides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached
from kernelne.graph.csr import transpose

_NO_WEIGHTS = np.empty(0, np.float32)


def memory_of_walks(graph: Any) -> float:
    """The root mean square of the singular values of a walk's matrix, D^-½ A D^-½.

    It is 1/√degree where all nodes have the same degree, more where walks stay in small groups.
    """
    weights = _NO_WEIGHTS if graph.weights is None else graph.weights
    return math.sqrt(_walk_squares(graph.offsets, graph.neighbours, weights) / max(graph.n_nodes, 1))


def sides(graph: Any) -> NDArray[np.int8] | None:
    """int8 (n,), 0 or 1, if all edges go between two sides, else None.

    The first node of every component is on side 0, as where each edge of a file names a user first.
    """
    incoming = graph.offsets[:0], graph.neighbours[:0]
    if graph.directed:
        incoming = transpose(graph.offsets, graph.neighbours, _NO_WEIGHTS)[:2]
    found: NDArray[np.int8] = _color(graph.offsets, graph.neighbours, *incoming)
    return found if len(found) else None


def component_sizes(graph: Any) -> NDArray[np.int64]:
    """Return the number of nodes of each component, directions ignored."""
    sizes = np.bincount(components(graph))
    return sizes[sizes > 0]


def components(graph: Any) -> NDArray[np.int64]:
    """int64 (n,), the number of a node of each node's component, directions ignored."""
    found: NDArray[np.int64] = _roots(graph.offsets, graph.neighbours)
    return found


def outside_largest(graph: Any) -> NDArray[np.bool_]:
    """Return which nodes are not in the largest component (of equal ones, the first), directions ignored."""
    roots = components(graph)
    outside: NDArray[np.bool_] = roots != (np.bincount(roots).argmax() if len(roots) else 0)
    return outside


@cached()
def _roots(offsets, neighbours):  # type: ignore[no-untyped-def]
    """Return a node of each node's component, the same for all of its nodes: a forest in which trees join."""
    above = np.arange(len(offsets) - 1)
    for row in range(len(above)):
        for k in range(offsets[row], offsets[row + 1]):
            one, other = row, np.int64(neighbours[k])
            while above[one] != one:
                above[one] = above[above[one]]
                one = above[one]
            while above[other] != other:
                above[other] = above[above[other]]
                other = above[other]
            if one < other:
                above[other] = one
            else:
                above[one] = other
    for row in range(len(above)):  # a node above has a lower number, and is done already
        above[row] = above[above[row]]
    return above


@cached()
def _walk_squares(offsets, neighbours, weights):  # type: ignore[no-untyped-def]
    """Sum of squares of the entries of D^-½ A D^-½: D holds sums of rows and of columns."""
    n = len(offsets) - 1
    leaving, arriving = np.zeros(n), np.zeros(n)
    for row in range(n):
        for k in range(offsets[row], offsets[row + 1]):
            weight = np.float64(weights[k]) if len(weights) > 0 else 1.0
            leaving[row] += weight
            arriving[neighbours[k]] += weight
    total = 0.0
    for row in range(n):
        for k in range(offsets[row], offsets[row + 1]):
            weight = np.float64(weights[k]) if len(weights) > 0 else 1.0
            if weight > 0.0:
                total += weight / leaving[row] * (weight / arriving[neighbours[k]])
    return total


@cached()
def _color(offsets, neighbours, incoming_offsets, incoming):  # type: ignore[no-untyped-def]
    """Return the side, 0 or 1, of each node if all arcs go between sides, else an empty array.

    The first node of every component is on side 0. Arcs are followed in both directions; for an undirected
    graph the arrays of incoming arcs may be empty.
    """
    n = len(offsets) - 1
    sides = np.full(n, -1, np.int8)
    waiting = np.empty(n, np.int64)
    for first in range(n):
        if sides[first] >= 0:
            continue
        sides[first] = 0
        waiting[0], done, found = first, 0, 1
        while done < found:
            node = waiting[done]
            done += 1
            for way in range(2 if len(incoming_offsets) > 0 else 1):
                begin = offsets if way == 0 else incoming_offsets
                for k in range(begin[node], begin[node + 1]):
                    other = neighbours[k] if way == 0 else incoming[k]
                    if sides[other] < 0:
                        sides[other] = 1 - sides[node]
                        waiting[found] = other
                        found += 1
                    elif sides[other] == sides[node]:
                        return sides[:0]
    return sides
