"""Graphs of other packages, and tables of edges, known by what they can do: none is ever imported here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne._csr import half
from kernelne._ids import code_dtype
from kernelne._sniff import HEADERS
from kernelne.errors import InputError


class Rows(NamedTuple):
    """A graph: ids (a list or an array, all different), edges between their rows, weights or None."""

    ids: Any
    sources: NDArray[Any]
    targets: NDArray[Any]
    weights: NDArray[np.float64] | None
    directed: bool


def reader_of(obj: Any) -> Callable[[Any], Rows] | None:
    """What makes rows of a graph of another package; None: it is none that is known."""
    for read, names in (
        (read_networkx, ("nodes", "edges", "is_directed")),
        (read_igraph, ("get_edgelist", "vs", "es", "is_directed")),
        (read_rustworkx, ("edge_list", "edges", "nodes", "node_indices")),
        (read_torch_geometric, ("edge_index", "num_nodes")),
        (_refuse_hetero, ("edge_types", "node_types")),
    ):
        if all(hasattr(obj, name) for name in names):
            return read
    return None


def is_table(obj: Any) -> bool:
    """Whether an object is a table of columns: pandas, polars, pyarrow or any other that Arrow can read."""
    return hasattr(obj, "__arrow_c_stream__") or hasattr(obj, "__dataframe__")


def read_networkx(g: Any, weight: str = "weight") -> Rows:
    """Edges without the attribute count 1; no edge has it: unweighted."""
    ids = list(g.nodes)
    absent = object()
    edges = list(g.edges(data=weight, default=absent))
    row = {node: i for i, node in enumerate(ids)}
    dtype = code_dtype(len(ids))
    sources = np.fromiter((row[u] for u, _, _ in edges), dtype, len(edges))
    targets = np.fromiter((row[v] for _, v, _ in edges), dtype, len(edges))
    weights = None
    if any(value is not absent for _, _, value in edges):
        weights = np.fromiter(
            (1.0 if value is absent else _number(u, v, value, weight) for u, v, value in edges),
            np.float64,
        )
    return Rows(ids, sources, targets, weights, g.is_directed())


def read_igraph(g: Any) -> Rows:
    """Ids are the vertices' attribute `name`, else 0 … n - 1; the edges' attribute `weight` is theirs."""
    pairs = g.get_edgelist()
    ends = np.fromiter(chain.from_iterable(pairs), np.int64, 2 * len(pairs)).reshape(-1, 2)
    ids = g.vs["name"] if "name" in g.vs.attributes() else np.arange(g.vcount())
    _check_different(ids, "the attribute 'name' of vertices")
    weights = None
    if "weight" in g.es.attributes():
        weights = np.fromiter(
            (_number(u, v, value, "weight") for (u, v), value in zip(pairs, g.es["weight"], strict=True)),
            np.float64,
        )
    return Rows(ids, ends[:, 0], ends[:, 1], weights, g.is_directed())


def read_rustworkx(g: Any) -> Rows:
    """Ids are the nodes' payloads if these are all strings or all integers and differ, else their indices.

    An edge's payload is its weight if it is a number, or a mapping with a `weight`; other edges count 1.
    """
    indices = np.asarray(g.node_indices(), np.int64)
    payloads = list(g.nodes())
    kinds = set(map(type, payloads))
    usable = kinds in ({str}, {int}) and len(set(payloads)) == len(payloads)
    ends = np.asarray(g.edge_list(), np.int64).reshape(-1, 2)
    row = np.zeros(int(indices.max(initial=-1)) + 1, np.int64)
    row[indices] = np.arange(len(indices))
    sources, targets = row[ends[:, 0]], row[ends[:, 1]]
    values = [p.get("weight") if isinstance(p, Mapping) else p for p in g.edges()]
    numbers = [float(v) if isinstance(v, Real) and not isinstance(v, bool) else None for v in values]
    weights = None
    if any(number is not None for number in numbers):
        weights = np.fromiter((1.0 if number is None else number for number in numbers), np.float64)
    # Only a directed one tells its edges in from its edges out.
    return Rows(payloads if usable else indices, sources, targets, weights, hasattr(g, "predecessors"))


def read_torch_geometric(data: Any) -> Rows:
    """Ids are 0 … n - 1; weights are `edge_weight`, or `edge_attr` of one column.

    Where every edge is there both ways, with one weight, the graph is undirected.
    """
    if data.edge_index is None or data.num_nodes is None:
        raise InputError("this Data holds no edges: edge_index and num_nodes are needed")
    n = int(data.num_nodes)
    sources, targets = _host(data.edge_index).astype(np.int64)
    ends = np.concatenate([sources, targets])
    if ((ends < 0) | (ends >= n)).any():
        raise InputError(f"edge_index holds nodes outside of 0 … {n - 1} (num_nodes={n})")
    weights = None
    for name in ("edge_weight", "edge_attr"):
        given = getattr(data, name, None)
        values = None if given is None else _host(given)
        if weights is None and values is not None and values.size == len(sources):
            weights = values.reshape(-1).astype(np.float64)
    kept = half(sources, targets, weights, n)
    if isinstance(kept, int):
        return Rows(np.arange(n), sources, targets, weights, True)
    return Rows(np.arange(n), sources[kept], targets[kept], None if weights is None else weights[kept], False)


def _refuse_hetero(data: Any) -> Rows:
    raise InputError("a graph of several kinds of nodes and edges: pass data.to_homogeneous()")


def _host(tensor: Any) -> NDArray[Any]:
    """A tensor, wherever it is, as an array."""
    return np.asarray(tensor.detach().cpu() if hasattr(tensor, "detach") else tensor)


def _number(u: Any, v: Any, value: Any, attribute: str) -> float:
    try:
        if not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise InputError(f"edge ({u!r}, {v!r}): {attribute} is {value!r}, not a number")


def _check_different(ids: Any, what: str) -> None:
    try:
        counts = Counter(ids)
    except TypeError as error:
        raise InputError(f"{what}: node ids must be hashable ({error})") from None
    if len(counts) < len(ids):
        raise InputError(f"{what}: {counts.most_common(1)[0][0]!r} comes more than once; give each its own")


def table_columns(table: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """The names of the columns of a table, and what gets one by its name."""
    ours = isinstance(table, pa.Table | pa.RecordBatch)
    if not ours and _is_adjacency(table):
        raise InputError(
            "rows and columns of this table have the same names, as those of an adjacency matrix: pass "
            "Graph.from_scipy(table.to_numpy(), nodes=table.columns), or reset its index"
        )
    if not ours and hasattr(table, "columns") and hasattr(table, "__getitem__"):
        return list(table.columns), table.__getitem__  # pandas, polars: other columns stay as they are
    if isinstance(table, Mapping):
        return list(table), table.__getitem__
    try:
        if hasattr(table, "__arrow_c_stream__") or ours:
            whole = (
                pa.table(table) if not isinstance(table, pa.RecordBatch) else pa.Table.from_batches([table])
            )
        else:
            from pyarrow.interchange import from_dataframe

            whole = from_dataframe(table)
    except (pa.ArrowException, TypeError, AttributeError) as error:
        raise InputError(f"a {type(table).__name__} is not a table of columns: {error}") from None
    if len(set(whole.column_names)) < len(whole.column_names):
        return whole.column_names, lambda name: whole.column(whole.column_names.index(name))
    return whole.column_names, whole.column


def _is_adjacency(table: Any) -> bool:
    """Whether a data frame is a matrix rather than a list of edges: its rows are called as its columns are.

    One of two or three columns that are only numbered may be edges, as an array of that shape would be.
    """
    index, names = getattr(table, "index", None), getattr(table, "columns", None)
    if index is None or names is None or callable(index) or len(index) != len(names):
        return False
    return list(index) == list(names) and (len(names) > 3 or list(names) != list(range(len(names))))


def choose_columns(
    names: list[Any], source: Any = None, target: Any = None, weight: Any = None
) -> tuple[Any, Any, Any]:
    """The names of the columns of sources, targets and weights (None: there are none).

    Without names: a usual pair of them, such as source and target or src and dst, in any case; else the first
    two columns. The weight is the column called weight; else the third of three columns, as in a text file.
    """
    if (source is None) != (target is None):
        raise InputError("give the names of both columns, source= and target=, or of neither")
    lower = [str(name).lower() for name in names]
    if source is None:
        if len(names) < 2:
            raise InputError(f"a table of edges has two columns or more, this one has {names!r}")
        pairs = [(a, b) for a, b in HEADERS if a in lower and b in lower]
        places = map(lower.index, pairs[0]) if pairs else range(2)
        source, target = (names[place] for place in places)
    if weight is None:
        rest = [name for name in names if name not in (source, target)]
        called = [name for name in rest if str(name).lower() == "weight"]
        weight = called[0] if called else rest[0] if len(names) == 3 and len(rest) == 1 else False
    for name in (source, target, *([] if weight is False else [weight])):
        if names.count(name) != 1:
            told = "comes more than once" if name in names else "is not there"
            raise InputError(f"the column {name!r} {told}: there are {', '.join(map(repr, names[:20]))}")
    return source, target, None if weight is False else weight


def weight_column(values: Any, name: Any) -> NDArray[np.float64]:
    """Weights as (m,) float64; InputError if the column does not hold numbers."""
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        streams = hasattr(values, "__arrow_c_stream__")
        values = pa.chunked_array(values) if streams else pa.array(np.asarray(values))
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        remedy = "weight=NAME takes another column, weight=False none"
        raise InputError(f"the column {name!r} holds {kind}, not weights: {remedy}")
    if values.null_count:
        raise InputError(f"the column {name!r}: a weight is missing (null)")
    weights: NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy()
    return weights
