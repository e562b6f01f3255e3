"""Convert the original files of the paper's graphs to the texts of their canonical form (see `registry`).

A converter takes the path of the original and returns part → text. It checks little, because the hash of the
text is verified.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from kernelne.errors import FileFormatError
from kernelne.io.graphs.gml import Lists
from kernelne.io.graphs.mat import read_matrix
from kernelne.io.graphs.read_write import read_graph

Texts = dict[str, bytes]

#: Maximum bytes of a text: more than ten times the largest graph here; larger files are not accepted.
LARGEST = 1 << 26


def giant_component(path: Path) -> Texts:
    """Convert SNAP edge lists: drop directions, keep the largest component, renumber ids in order."""
    adjacency = read_graph(path, weighted=False).to_scipy()
    _, component = connected_components(adjacency, directed=False)
    rows = np.flatnonzero(component == np.bincount(component).argmax())
    return _texts(adjacency[rows][:, rows])


def mat_groups(path: Path) -> Texts:
    """Convert MATLAB files with the adjacency `network` and the indicator `group`."""
    network, groups = (read_matrix(str(path), name) for name in ("network", "group"))
    return _texts(network, scipy.sparse.csr_array(groups))


def mat_memberships(path: Path) -> Texts:
    """Convert MATLAB files with `network` and memberships `F`; the label is the (first) strongest."""
    network, memberships = (read_matrix(str(path), name) for name in ("network", "F"))
    return _texts(network, _indicator(memberships.toarray().argmax(axis=1)))


def zipped_gml(path: Path) -> Texts:
    """Convert the only .gml in a zip file; nodes are numbered by `id`."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".gml") and "/" not in name]
        if len(names) != 1:
            raise FileFormatError(path, f"expected one .gml file in the archive, found {len(names)}")
        if archive.getinfo(names[0]).file_size > LARGEST:
            raise FileFormatError(path, f"{names[0]} unpacks to more than {LARGEST >> 20} MiB")
        lists = Lists(str(path), archive.read(names[0]).decode())
    return _texts(_adjacency(_numbers(lists.nodes, "id"), lists))


def gml_communities(path: Path) -> Texts:
    """Convert GML; nodes are numbered by the integer in `label`, and labelled by `community`."""
    lists = Lists(str(path), path.read_text())
    numbers, communities = (_numbers(lists.nodes, key) for key in ("label", "community"))
    labels = np.empty_like(communities)
    labels[numbers] = communities
    return _texts(_adjacency(numbers, lists), _indicator(labels))


def _numbers(lists: list[tuple[int, dict[str, str]]], key: str) -> NDArray[np.int64]:
    """Return the integer `key`, quoted or not, of all nodes or edges of a GML text."""
    return np.array([int(record.get(key, "-1").strip('"')) for _, record in lists], np.int64)


def _adjacency(numbers: NDArray[np.int64], lists: Lists) -> Any:
    """Return the adjacency matrix of a GML text whose k-th node gets the row `numbers[k]`."""
    ids = _numbers(lists.nodes, "id")
    order = np.argsort(ids)
    ends = [
        numbers[order[np.searchsorted(ids, _numbers(lists.edges, key), sorter=order)]]
        for key in ("source", "target")
    ]
    return scipy.sparse.csr_array((np.ones(len(ends[0])), tuple(ends)), shape=(len(ids),) * 2)


def _indicator(labels: NDArray[np.int64]) -> Any:
    return scipy.sparse.csr_array((np.ones(len(labels)), labels, np.arange(len(labels) + 1)))


def _texts(adjacency: Any, labels: Any = None) -> Texts:
    """Return the canonical texts of a sparse adjacency matrix, upper, lower or both triangles, and labels."""
    entries = scipy.sparse.coo_array(adjacency)
    present = entries.data != 0
    low = np.minimum(entries.row, entries.col)[present].astype(np.int64)
    high = np.maximum(entries.row, entries.col)[present].astype(np.int64)
    codes = np.unique(low * adjacency.shape[0] + high)
    sources, targets = np.divmod(codes, adjacency.shape[0])
    loops = sources == targets
    texts = {"edges": _lines(sources[~loops], targets[~loops])}
    if loops.any():
        texts["selfloops"] = _lines(sources[loops])
    if labels is not None:
        labels.eliminate_zeros()
        labels.sort_indices()
        names = pa.array(labels.indices).cast(pa.string())
        lists = pc.binary_join(pa.ListArray.from_arrays(pa.array(labels.indptr, pa.int32()), names), ",")
        texts["labels"] = _lines(np.arange(len(lists)), lists)
    return texts


def _lines(*columns: Any) -> bytes:
    """Return lines of fields separated by spaces."""
    sink = pa.BufferOutputStream()
    options = pa.csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    pa.csv.write_csv(pa.table([pa.array(c) for c in columns], names=[*"ab"][: len(columns)]), sink, options)
    return bytes(sink.getvalue().to_pybytes())
