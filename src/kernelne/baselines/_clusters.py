"""GEMSEC's part of the loop over walks: every vector and the nearest cluster center attract each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne.training.cpu.evaluate import compiled


class Clusters(NamedTuple):
    """Cluster centers (K, dim), with K = 0 for methods without clusters, and the weight of the first walk."""

    centers: NDArray[np.float32]
    first_weight: float


_LEAST = np.float32(1e-6)  # a vector closer to its cluster center is not moved


@compiled
def _nearest(vector: Any, clusters: Any) -> Any:
    """Return the cluster whose center is nearest to `vector`, and the squared distance."""
    best, least = 0, np.float32(np.inf)
    for c in range(clusters.shape[0]):
        distance = np.float32(0.0)
        for k in range(clusters.shape[1]):
            distance += (vector[k] - clusters[c, k]) ** 2
        if distance < least:
            best, least = c, distance
    return best, least


@compiled
def pull(vector: Any, row: Any, reach: Any, center: Any, clusters: Any) -> Any:
    """Move a row and the cluster center nearest to `vector` by `reach` towards each other.

    This is a gradient step for ‖f − μ‖; returns this distance.
    """
    c, squared = _nearest(vector, clusters)
    distance = np.sqrt(squared)
    if distance > _LEAST:
        scale = np.float32(reach / distance)
        for k in range(clusters.shape[1]):
            change = scale * (vector[k] - clusters[c, k])
            center[row, k] -= change
            clusters[c, k] += change
    return distance


@compiled
def gather(b: Any, rate: Any, progress: Any, clusters: Any, center: Any, s: Any) -> Any:
    """Move the nodes of walk b of the batch towards their clusters; returns the loss of their distances.

    progress: share of the walks that are done; with it the weight rises exponentially to 1.
    """
    if clusters.centers.shape[0] == 0:
        return 0.0
    weight = clusters.first_weight ** (1.0 - progress)
    cost = 0.0
    for i in range(s.lengths[b]):
        cost += weight * pull(s.centers[i], s.walks[b, i], rate * weight, center, clusters.centers)
    return cost
