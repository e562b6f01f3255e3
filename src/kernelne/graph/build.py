"""Build a CSR adjacency from columns of edges: check weights, merge repeated edges, sort rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelne.errors import InputError, warn
from kernelne.graph.csr import by_target, merge, mirror, transpose

GOOD_WEIGHTS = "weights must be finite and not negative"


def check_weights(weights: Any, n_edges: int) -> NDArray[np.float64]:
    values = np.asarray(weights)
    if values.ndim != 1 or (len(values) and values.dtype.kind not in "biuf"):
        raise InputError("weights must be a list or array of numbers, one for each edge")
    if len(values) != n_edges:
        raise InputError(f"weights has {len(values)} values for {n_edges} edges")
    return values.astype(np.float64, copy=False)


def bad_weight(weights: NDArray[Any]) -> int | None:
    """Return the position of the first negative or non-finite weight; None if all are valid."""
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    return int(bad[0]) if len(bad) else None


def checked_csr(matrix: Any) -> Any:
    """Return a square matrix, sparse or dense, as a CSR array of its own, sorted and without zeros."""
    shape = np.shape(matrix)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(f"an adjacency matrix must be square; this one has shape {shape}")
    sparse = scipy.sparse.issparse(matrix)
    given = matrix if sparse else np.asarray(matrix)
    dtype = given.dtype
    if dtype.kind not in "biuf":
        raise InputError(f"an adjacency matrix must contain real numbers, not {dtype}")
    # SciPy has no code for half precision, long doubles and foreign byte orders.
    wanted = np.dtype(np.float32 if dtype.itemsize == 2 else np.float64) if dtype.kind == "f" else dtype
    wanted = dtype.newbyteorder("=") if dtype.itemsize in (4, 8) else wanted.newbyteorder("=")
    if sparse:
        _check_indices(given)  # before any conversion: SciPy's compiled code trusts them
    csr = scipy.sparse.csr_array(
        given if wanted == dtype and dtype.isnative else given.astype(wanted), copy=True
    )
    csr.sum_duplicates()
    csr.eliminate_zeros()
    return csr


def _check_indices(matrix: Any) -> None:
    """Raise InputError if the indices of a sparse matrix point outside it."""
    try:
        if matrix.format in ("csr", "csc", "bsr"):
            matrix.check_format(full_check=True)
            parts: Any = ()
        elif matrix.format == "coo":
            parts = zip((matrix.row, matrix.col), matrix.shape, strict=True)
        elif matrix.format == "lil":
            parts = [(np.concatenate([[0], *matrix.rows]), matrix.shape[1])]
        else:
            parts = ()  # no indices (dia), or keys that SciPy has checked (dok)
    except ValueError as error:
        raise InputError(f"the adjacency matrix is damaged: {error}") from None
    for indices, size in parts:
        if len(indices) and size and (indices.min() < 0 or indices.max() >= size):
            raise InputError("the adjacency matrix is damaged: an index points outside it")


def assemble(
    nodes: NDArray[Any],
    codes: list[NDArray[Any]],
    weights: NDArray[np.float64] | None,
    directed: bool,
    drop_self_loops: bool,
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float32] | None, int]:
    """Build the CSR adjacency of edges between rows; returns offsets, neighbours, weights and n_merged.

    `codes` is [sources, targets] and is emptied to free memory early.
    """
    targets, sources = codes.pop(), codes.pop()
    keep = sources != targets if drop_self_loops else None
    if weights is not None:
        if (bad := bad_weight(weights)) is not None:
            raise InputError(f"weights[{bad}] is {weights[bad]}: {GOOD_WEIGHTS}")
        n_zero = int(len(weights) - np.count_nonzero(weights))
        if n_zero:
            warn(f"edges of weight zero dropped: {n_zero}; their nodes are kept")
            keep = weights > 0 if keep is None else keep & (weights > 0)
    if keep is not None:
        sources, targets = sources[keep], targets[keep]
        weights = None if weights is None else weights[keep]
    # Two transpositions are a counting sort of the rows.
    values = np.empty(0) if weights is None else weights
    offsets, neighbours, values = by_target(sources, targets, values, len(nodes), not directed)
    del sources, targets, keep
    offsets, neighbours, values = transpose(offsets, neighbours, values)
    size = merge(offsets, neighbours, values)
    n_merged = len(neighbours) - int(size)
    if weights is None:
        merged = np.empty(0, np.float32)
    else:
        merged = to_float32(values[:size], offsets, neighbours, nodes)
    del values
    if not directed:
        offsets, neighbours, merged = mirror(offsets, neighbours, merged)
    elif size < len(neighbours):
        neighbours = neighbours[:size].copy()
    return offsets, neighbours, None if weights is None else merged, n_merged


def entry(offsets: NDArray[Any], neighbours: NDArray[Any], position: int) -> tuple[int, int]:
    """Return row and column of an entry of a CSR matrix."""
    return int(np.searchsorted(offsets, position, side="right")) - 1, int(neighbours[position])


def to_float32(
    values: NDArray[Any], offsets: NDArray[np.int64], neighbours: NDArray[Any], nodes: NDArray[Any]
) -> NDArray[np.float32]:
    with np.errstate(over="ignore", under="ignore"):
        weights = values.astype(np.float32)
    bad = np.flatnonzero(np.isinf(weights) | (weights == 0))
    if len(bad):
        row, column = entry(offsets, neighbours, int(bad[0]))
        raise beyond_float32(nodes[row], nodes[column], values[bad[0]])
    return weights


def beyond_float32(source: Any, target: Any, weight: float) -> InputError:
    """Return the error about the weight of an edge, zero or infinite in float32."""
    told = f"its weight {weight} is outside the range of float32: rescale the weights"
    return InputError(f"edge ({source}, {target}): {told}")
