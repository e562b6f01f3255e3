"""MATLAB files (.mat) as commonly published: the adjacency matrix `network`, and labels in `group`.

Only these variables (and `directed`) are read, by name, and only if they are numeric matrices.
"""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import NDArray

from kernelne.errors import FileFormatError
from kernelne.graph.csr import half
from kernelne.io.files import check_input
from kernelne.io.graphs.mat5 import TooSmallError, Variable, find_variables, load_matrix
from kernelne.io.graphs.shared import EdgeColumns, Options, are_numbered, check_declared, column

if TYPE_CHECKING:
    from kernelne.graph import Graph

_KINDS = {
    "sparse",
    "double",
    "single",
    "logical",
    *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)),
}
_DIRECTED = "directed"


def read(path: str, options: Options) -> EdgeColumns:
    """Read nodes 0 … n - 1; a symmetric matrix is undirected unless the file or the options say otherwise."""
    matrix = read_matrix(path, "network")
    n, n_columns = matrix.shape
    if n != n_columns or not n:
        raise FileFormatError(path, f"'network' must be square, its shape is {matrix.shape}")
    entries = scipy.sparse.coo_array(matrix)
    rows, columns = entries.row.astype(np.int64), entries.col.astype(np.int64)
    values = entries.data.astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        place = f"{rows[bad[0]] + 1}, {columns[bad[0]] + 1}"
        told = f"'network'({place}) is {values[bad[0]]}: weights must be finite and not negative"
        raise FileFormatError(path, told)
    present = values != 0
    rows, columns, values = rows[present], columns[present], values[present]
    weights = None if (values == 1).all() else values
    directed = options.directed
    if directed is None and _DIRECTED in variables(path):
        directed = bool(read_matrix(path, _DIRECTED).data.any())
    if directed is not True:
        kept = half(rows, columns, weights, n)
        if not isinstance(kept, int):
            rows, columns, weights = rows[kept], columns[kept], None if weights is None else weights[kept]
        elif directed is False:
            place = f"'network'({rows[kept] + 1}, {columns[kept] + 1})"
            raise FileFormatError(path, f"{place} has no mirror image, but the graph should be undirected")
        directed = isinstance(kept, int)
    nodes, sources, targets = (column(pa.array(ids)) for ids in (np.arange(n), rows, columns))
    return EdgeColumns(nodes, sources, targets, weights, directed)


def read_groups(path: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return rows of nodes and their classes from `group`: an indicator (n, K), or one class per node."""
    groups, network = read_matrix(path, "group"), variables(path).get("network")
    n = max(groups.shape) if network is None else network.shape[0]
    is_single = groups.shape in ((n, 1), (1, n))
    if network is not None and groups.shape[0] != n and not is_single:
        told = f"'group' has shape {groups.shape}, but 'network' has {n} rows: these must match"
        raise FileFormatError(path, told)
    if is_single:
        check_declared(path, n, os.path.getsize(path), None)
        classes = groups.toarray().ravel()
        if not ((np.abs(classes) < 2**53) & (classes == np.floor(classes))).all():
            raise FileFormatError(path, f"'group' of shape {groups.shape} must contain integers")
        return np.arange(n), classes.astype(np.int64)
    groups.eliminate_zeros()
    pairs = scipy.sparse.coo_array(groups)
    return pairs.row.astype(np.int64), pairs.col.astype(np.int64)


def variables(path: str) -> dict[str, Variable]:
    """Return the variables of a file by name."""
    check_input(path)
    try:
        with open(path, "rb") as file:
            return find_variables(file)
    except NotImplementedError as error:
        raise FileFormatError(path, f"is of version {error}: save it in MATLAB with -v7") from None
    except (ValueError, zlib.error) as error:
        raise _damaged(path, error) from error


def read_matrix(path: str, name: str) -> Any:
    """Return the variable `name` as a csc_array of float64 with validated indices."""
    there = variables(path)
    if name not in there:
        raise FileFormatError(path, f"no variable {name!r}; the file has: {', '.join(there) or 'none'}")
    found = there[name]
    shape, kind = found.shape, found.kind
    if kind not in _KINDS or len(shape) != 2 or min(shape) < 0:
        raise FileFormatError(path, f"{name!r} must be a numeric matrix, it is {kind} of shape {shape}")
    if found.is_complex:
        raise FileFormatError(path, f"{name!r} must contain real numbers, not complex ones")
    try:
        with open(path, "rb") as file:
            return load_matrix(file, found)
    except TooSmallError:
        told = f"{name!r} declares the shape {shape}, but the file is too small for it"
        raise FileFormatError(path, told) from None
    except (ValueError, zlib.error) as error:
        raise _damaged(path, error) from error


def _damaged(path: str, error: Exception) -> FileFormatError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return FileFormatError(path, f"not a readable MATLAB file: {reason}")


def losses(graph: Graph) -> list[str]:
    """Return what the format cannot store."""
    return [] if are_numbered(graph) else ["node ids (they would become 0, 1, 2 …)"]


def write(graph: Graph, out: BinaryIO) -> None:
    """Write `network`, and `directed` to distinguish a symmetric directed graph from an undirected one."""
    import scipy.io

    content = {
        "network": scipy.sparse.csc_array(graph.to_scipy(), dtype=np.float64),
        _DIRECTED: graph.directed,
    }
    scipy.io.savemat(out, content, do_compression=True)
