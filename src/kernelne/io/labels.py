"""Node labels, and how they match the rows of a graph or an embedding."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne.errors import InputError, ParameterError
from kernelne.graph.ids import id_column, node_array, unknown_node
from kernelne.graph.string_ids import positions

_SEVERAL = (list, tuple, set, frozenset, np.ndarray)  # of labels of one node
_LARGEST = 1 << 32  # bytes of the indicator: a larger file probably contains names, not labels


def by_id(given: Any, nodes: Any = None) -> Any:
    """Convert a mapping {node: label}, or a pandas Series indexed by node ids, to Labels.

    A node may have a list, tuple, set or array of labels, or none: see `given_labels`. Other values are
    returned unchanged. So is a Series with the default index 0, 1, …, unless these are node ids: all of them
    are in `nodes`, or all of `nodes` are in the index.
    """
    if isinstance(given, Mapping):
        return given_labels(list(given), list(given.values()))
    index: Any = getattr(given, "index", None)
    if hasattr(index, "to_numpy") and hasattr(given, "to_numpy") and np.ndim(given) == 1:
        ids = index.to_numpy()
        if np.array_equal(ids, np.arange(len(ids))):
            if nodes is None or not _are_ids(len(ids), node_array(nodes)):
                return given
            ids = np.arange(len(ids))
        return given_labels(ids, given.to_numpy())
    return given


def given_labels(nodes: Any, values: Any) -> Labels:
    """Build Labels where `values[i]` is the label of `nodes[i]`, or a list, tuple, set or array of labels.

    Nodes are left out whose value is None, NaN, pandas.NA or empty.
    """
    shape = getattr(values, "shape", (len(values),))
    if shape != (len(nodes),):
        raise InputError(f"labels: values has shape {shape} for {len(nodes)} nodes: give one per node")
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    if kind == "f" and (np.floor(values) == values)[known := values == values].all():
        # Integers beside missing ones are floats in pandas.
        return Labels.from_values(node_array(nodes)[known], values[known].astype(np.int64))
    if kind not in "fO":  # none is missing
        return Labels.from_values(nodes, values)
    lists = [value if isinstance(value, _SEVERAL) else (value,) for value in values]
    owners = np.repeat(np.arange(len(lists)), np.fromiter(map(len, lists), np.int64, len(lists)))
    flat = np.fromiter(chain.from_iterable(lists), object, len(owners))
    known = ~np.fromiter(map(is_missing, flat), bool, len(flat))
    if not known.any():
        raise InputError("labels: no node has a label")
    kept, owners = np.unique(owners[known], return_inverse=True)
    classes, codes = _coded(flat[known].tolist())
    return Labels.from_pairs(node_array(nodes)[kept], classes, owners, codes)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas.NA; the last two are not equal to themselves."""
    same = value == value
    return value is None or not isinstance(same, bool | np.bool_) or not same


def _coded(values: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct labels, sorted, and the position of each value among them."""
    try:
        flat = np.asarray(values)
        if flat.ndim > 1:
            raise TypeError("lists of lists")
        classes, codes = np.unique(flat, return_inverse=True)
    except (TypeError, ValueError) as error:
        raise InputError(f"values: all must be ints, or all strs ({error})") from None
    return classes, codes


def _are_ids(count: int, nodes: NDArray[Any]) -> bool:
    """Whether all of 0 … count - 1 are in `nodes`, as integers or as text, or contain all of `nodes`."""
    if nodes.dtype != object:
        n_shared = int(((nodes >= 0) & (nodes < count)).sum())
    else:
        texts = set(map(str, nodes.tolist()))
        n_shared = sum(str(number) in texts for number in range(count))
    return n_shared > 0 and n_shared in (count, len(nodes))


def as_labels(given: Any, nodes: Any) -> Labels:
    """Convert to Labels: Labels, anything `by_id` accepts, or one value per node in the order of `nodes`."""
    named = by_id(given, nodes)
    return named if isinstance(named, Labels) else given_labels(nodes, named)


class Labels:
    """The labels of nodes.

    nodes      (n,) unique node ids, in the order of the file: int64, or objects (str)
    classes    (K,) the distinct labels, sorted: int64 if all are plain integers, else objects (str)
    indicator  (n, K) bool, read-only: whether node i has class j; no row is empty. Computed on first access
    """

    def __init__(self, nodes: Any, classes: Any, indicator: Any) -> None:
        table = np.asarray(indicator)
        shape = len(nodes), len(classes)
        if table.shape != shape or table.dtype != bool:
            raise InputError(
                f"indicator must be bool of shape {shape}, not {table.dtype} of shape {table.shape}"
            )
        self._store(nodes, classes, *table.nonzero())

    @classmethod
    def from_values(cls, nodes: Any, values: Any) -> Labels:
        """Build Labels with one label per node: `values[i]`, an int or a str, is the label of `nodes[i]`."""
        given = np.asarray(values)
        missing = (given == np.array(None)) | (given != given) if given.dtype.kind in "fO" else []
        if (empty := np.flatnonzero(missing)).size:
            raise InputError(f"values[{empty[0]}] is {given[empty[0]]}: leave out nodes without a label")
        if given.shape != (len(nodes),):
            raise InputError(f"values has shape {given.shape} for {len(nodes)} nodes: give one per node")
        classes, codes = _coded(given)
        return cls.from_pairs(nodes, classes, np.arange(len(codes)), codes)

    @classmethod
    def from_pairs(cls, nodes: Any, classes: Any, owners: NDArray[Any], columns: NDArray[Any]) -> Labels:
        """Build Labels where node `owners[k]` has class `columns[k]`; pairs may be unsorted and repeated."""
        made = cls.__new__(cls)
        pairs = np.unique(owners.astype(np.int64) * max(1, len(classes)) + columns)
        made._store(nodes, classes, *np.divmod(pairs, max(1, len(classes))))
        return made

    def _store(self, nodes: Any, classes: Any, owners: NDArray[Any], columns: NDArray[Any]) -> None:
        """Store pairs sorted by node: memory grows with the number of labels, not with n · K."""
        self.nodes, self.classes = (np.asarray(node_array(given)).view() for given in (nodes, classes))
        self._owners, self._columns = owners, columns
        counts = np.bincount(owners, minlength=len(self.nodes))
        if len(empty := np.flatnonzero(counts == 0)):
            node = self.nodes.tolist()[empty[0]]
            raise InputError(f"the node {node!r} has no label: leave it out")
        for name in ("nodes", "classes"):
            array = getattr(self, name)
            if len(set(array.tolist())) < len(array):
                raise InputError(f"{name} contains duplicates; give each once")
            array.flags.writeable = False
        self._most = int(counts.max(initial=0))

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def n_several(self) -> int:
        """The number of nodes with more than one label."""
        return int(np.count_nonzero(np.bincount(self._owners, minlength=1) > 1))

    def __repr__(self) -> str:
        several = "" if self._most <= 1 else f", up to {self._most} a node"
        return f"<Labels of {len(self):,} nodes, {len(self.classes):,} classes{several}>"

    @cached_property
    def indicator(self) -> NDArray[np.bool_]:
        """(n, K) bool, read-only; raises InputError if it would be larger than 4 GiB."""
        table = self._rows(np.arange(len(self)))
        table.flags.writeable = False
        return table

    @property
    def single(self) -> NDArray[np.int64] | None:
        """(n,) int64 positions in `classes` if every node has one label, else None."""
        return self._columns.astype(np.int64) if self._most <= 1 else None

    @property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(k,) and (k,) int64: positions in `nodes`, ascending, and in `classes`, of each pair."""
        return self._owners.astype(np.int64), self._columns.astype(np.int64)

    def among(self, nodes: Any, *, unknown: str = "error") -> tuple[NDArray[np.int64], Labels]:
        """As `for_nodes`, but returns Labels of these rows only, in their order, without an indicator."""
        rows, mine = self._match(nodes, unknown)
        place = np.full(len(self), -1)
        place[mine] = np.arange(len(mine))
        owners = place[self._owners]
        kept = owners >= 0
        ids = node_array(nodes)[rows]
        return rows, Labels.from_pairs(ids, self.classes, owners[kept], self._columns[kept])

    def for_nodes(self, nodes: Any, *, unknown: str = "error") -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the rows of `nodes` that have labels, (m,) int64 ascending, and the indicator (m, K) bool.

        Nodes without a label are left out. A labelled id that is not in `nodes` raises UnknownNodeError, or
        is left out too if `unknown` is "skip". If one side has integers and the other strings, they are
        compared as text.
        """
        rows, mine = self._match(nodes, unknown)
        return rows, self._rows(mine)

    def single_for(
        self, nodes: Any, *, unknown: str = "error"
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As `for_nodes`, but with positions in `classes`, (m,) int64; InputError if a node has several."""
        rows, mine = self._match(nodes, unknown)
        if (np.bincount(self._owners)[mine] > 1).any():
            raise InputError("some nodes have several labels: each must have exactly one")
        codes = np.zeros(len(self), np.int64)
        codes[self._owners] = self._columns
        return rows, codes[mine]

    def _rows(self, mine: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (m, K) bool, the classes of the nodes at positions `mine` (m,), unique."""
        n, n_classes = len(mine), len(self.classes)
        if n * n_classes > _LARGEST:
            raise InputError(
                f"{n_classes:,} different labels for {n:,} nodes: too many for an indicator table; are these "
                "labels, or names?"
            )
        place = np.full(len(self), -1)
        place[mine] = np.arange(n)
        rows = place[self._owners]
        table = np.zeros((n, n_classes), np.bool_)
        table[rows[rows >= 0], self._columns[rows >= 0]] = True
        return table

    def _match(self, nodes: Any, unknown: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of `nodes` that have labels, ascending, and their positions in `self.nodes`."""
        if unknown not in ("error", "skip"):
            raise ParameterError("unknown", unknown, "must be 'error' or 'skip'")
        nodes = node_array(nodes)
        known, mine = (_comparable(ids) for ids in (nodes, self.nodes))
        if known.type != mine.type:
            known, mine = known.cast(pa.large_string()), mine.cast(pa.large_string())
        rows = positions(mine, known)
        missing = np.flatnonzero(rows < 0)
        if len(missing) and unknown == "error":
            node = self.nodes.tolist()[missing[0]]
            raise unknown_node(
                f"{len(missing):,} of {len(self):,} labelled nodes are unknown here, the first is {node!r} "
                "(unknown='skip', or --skip-unknown, leaves them out)",
                node,
                nodes,
            )
        order = np.argsort(rows, kind="stable")[len(missing) :]
        return rows[order].astype(np.int64), order


def _comparable(nodes: NDArray[Any]) -> Any:
    ids = id_column(nodes)
    if ids is not None:
        return ids
    texts = list(map(str, nodes))
    try:
        return pa.array(texts, pa.large_string())
    except UnicodeEncodeError as error:  # a lone surrogate, which UTF-8 cannot encode
        raise InputError(
            f"the id {error.object!r} is not Unicode text (character {error.start + 1}): rename the node"
        ) from None
