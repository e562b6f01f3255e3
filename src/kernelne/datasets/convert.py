"""Original files of the paper's graphs → the texts of their canonical form (see `registry`).

A converter takes the path of the original and returns part → text. None of them checks much: the hash of the
text decides.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import scipy.io
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from kernelne.errors import FileFormatError
from kernelne.io import read_graph

Texts = dict[str, bytes]


def giant_component(path: Path) -> Texts:
    """SNAP's edge lists: directions dropped, the largest component, ids renumbered in ascending order."""
    adjacency = read_graph(path, weighted=False).to_scipy()
    _, component = connected_components(adjacency, directed=False)
    rows = np.flatnonzero(component == np.bincount(component).argmax())
    return _texts(adjacency[rows][:, rows])


def mat_groups(path: Path) -> Texts:
    """MATLAB: adjacency `network`, indicator `group`."""
    content = scipy.io.loadmat(path)
    return _texts(content["network"], scipy.sparse.csr_array(content["group"]))


def mat_memberships(path: Path) -> Texts:
    """MATLAB: adjacency `network`, memberships `F`: a node's label is its strongest, the first if equal."""
    content = scipy.io.loadmat(path)
    memberships = content["F"]
    dense = memberships.toarray() if scipy.sparse.issparse(memberships) else np.asarray(memberships)
    return _texts(content["network"], _indicator(dense.argmax(axis=1)))


def zipped_gml(path: Path) -> Texts:
    """The one .gml in a zip file, nodes by their `id`."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".gml") and "/" not in name]
        if len(names) != 1:
            raise FileFormatError(path, f"one .gml file is expected in it, there are {len(names)}")
        text = archive.read(names[0]).decode()
    return _texts(_adjacency(_gml_numbers(text, "node", "id"), text))


def gml_communities(path: Path) -> Texts:
    """GML: nodes by the integer in their `label`, labelled by `community`."""
    text = path.read_text()
    numbers, communities = (_gml_numbers(text, "node", key) for key in ("label", "community"))
    labels = np.empty_like(communities)
    labels[numbers] = communities
    return _texts(_adjacency(numbers, text), _indicator(labels))


def _gml_numbers(text: str, kind: str, key: str) -> NDArray[np.int64]:
    """The integer `key`, in quotes or not, of all nodes or edges."""
    blocks = re.findall(rf"\b{kind}\s*\[([^\]]*)\]", text)
    found = (re.search(rf'\b{key}\s+"?(\d+)"?\s', block) for block in blocks)
    return np.array([int(match[1]) if match else -1 for match in found], np.int64)


def _adjacency(numbers: NDArray[np.int64], text: str) -> Any:
    """Adjacency of a GML text whose k-th node is to have `numbers[k]`."""
    ids = _gml_numbers(text, "node", "id")
    order = np.argsort(ids)
    ends = [
        numbers[order[np.searchsorted(ids, _gml_numbers(text, "edge", key), sorter=order)]]
        for key in ("source", "target")
    ]
    return scipy.sparse.csr_array((np.ones(len(ends[0])), tuple(ends)), shape=(len(ids),) * 2)


def _indicator(labels: NDArray[np.int64]) -> Any:
    return scipy.sparse.csr_array((np.ones(len(labels)), labels, np.arange(len(labels) + 1)))


def _texts(adjacency: Any, labels: Any = None) -> Texts:
    """Canonical texts of a sparse adjacency matrix, whose entries may stand on either side, and labels."""
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
    """Lines of fields with blanks between."""
    sink = pa.BufferOutputStream()
    options = pa.csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    pa.csv.write_csv(pa.table([pa.array(c) for c in columns], names=[*"ab"][: len(columns)]), sink, options)
    return bytes(sink.getvalue().to_pybytes())
