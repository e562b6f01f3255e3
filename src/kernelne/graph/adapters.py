"""Read graphs of other packages and edge tables, recognised by their attributes without importing them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne.errors import InputError, warn
from kernelne.graph.csr import half
from kernelne.graph.ids import code_dtype

_INDEX = re.compile(r"__index_level_\d+__")  # name that pandas gives the column of an unnamed index


class Rows(NamedTuple):
    """A graph: unique node ids (a list or an array), edges between their rows, weights or None."""

    ids: Any
    sources: NDArray[Any]
    targets: NDArray[Any]
    weights: NDArray[np.float64] | None
    directed: bool


class Columns(list[Any]):
    """The column names of a table; `get` returns a column by its name.

    stored_index: names of the columns that hold the index of a pandas DataFrame
    """

    def __init__(self, names: Iterable[Any], get: Callable[[Any], Any], stored: Iterable[Any] = ()) -> None:
        super().__init__(names)
        self.get, self.stored_index = get, set(stored)


def reader_of(obj: Any) -> Callable[[Any], Rows] | None:
    """Return the function that reads this object as a graph; None if its type is not known."""
    if is_table(obj):  # its columns may have the same names as the attributes below
        return None
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
    """Whether an object is a table: pandas, polars, pyarrow or any other that Arrow can read."""
    return hasattr(obj, "__arrow_c_stream__") or hasattr(obj, "__dataframe__")


def read_networkx(g: Any, weight: str = "weight") -> Rows:
    """Read a networkx graph; edges without the attribute `weight` have weight 1.

    If no edge has it the graph is unweighted, with a warning if edges have other numeric attributes.
    """
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
    elif edges and weight == "weight":  # otherwise the caller chose the name
        attributes = next(iter(g.edges(data=True)))[2]
        numbers = [name for name, value in attributes.items() if _is_number(value)]
        if numbers:
            warn(
                f"no edge has the attribute 'weight', so the graph is unweighted; not used: "
                f"{', '.join(map(repr, numbers))}; Graph.from_networkx(g, weight=NAME) takes one of them"
            )
    return Rows(ids, sources, targets, weights, g.is_directed())


def read_igraph(g: Any) -> Rows:
    """Read an igraph graph; ids are the vertex attribute `name`, else 0 … n - 1, weights the edge attribute
    `weight`.
    """
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
    """Read a rustworkx graph; ids are the node payloads if all are strings or all integers, and unique.

    Otherwise ids are the node indices. The payload of an edge is its weight if it is a number, or a mapping
    with the key `weight`; other edges have weight 1.
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
    numbers = [float(v) if v is not None and _is_number(v) else None for v in values]
    weights = None
    if any(number is not None for number in numbers):
        weights = np.fromiter((1.0 if number is None else number for number in numbers), np.float64)
    # Only a directed graph distinguishes incoming from outgoing edges.
    return Rows(payloads if usable else indices, sources, targets, weights, hasattr(g, "predecessors"))


def read_torch_geometric(data: Any) -> Rows:
    """Read a torch_geometric Data; ids are 0 … n - 1, weights `edge_weight`, or `edge_attr` of one column.

    The graph is undirected if every edge is present in both directions with the same weight.
    """
    if data.edge_index is None or data.num_nodes is None:
        raise InputError("this Data has no edges: edge_index and num_nodes are required")
    n = int(data.num_nodes)
    sources, targets = _host(data.edge_index).astype(np.int64)
    ends = np.concatenate([sources, targets])
    if ((ends < 0) | (ends >= n)).any():
        raise InputError(f"edge_index contains nodes outside 0 … {n - 1} (num_nodes={n})")
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
    raise InputError("heterogeneous graphs are not supported: pass data.to_homogeneous()")


def _host(tensor: Any) -> NDArray[Any]:
    """Copy a tensor from any device to a NumPy array."""
    return np.asarray(tensor.detach().cpu() if hasattr(tensor, "detach") else tensor)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


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
        raise InputError(f"{what}: {counts.most_common(1)[0][0]!r} appears more than once; make them unique")


def table_columns(table: Any) -> tuple[Columns, Callable[[Any], Any]]:
    """Return the column names of a table, and a function that returns a column by its name."""
    ours = isinstance(table, pa.Table | pa.RecordBatch)
    if not ours and _is_adjacency(table):
        raise InputError(
            "rows and columns of this table have the same names, like an adjacency matrix: pass "
            "Graph.from_scipy(table.to_numpy(), nodes=table.columns), or reset its index"
        )
    if not ours and hasattr(table, "columns") and hasattr(table, "__getitem__"):
        # pandas, polars: unused columns are not converted
        return Columns(table.columns, table.__getitem__), table.__getitem__
    if isinstance(table, Mapping):
        return Columns(table, table.__getitem__), table.__getitem__
    try:
        if hasattr(table, "__arrow_c_stream__") or ours:
            whole = (
                pa.table(table) if not isinstance(table, pa.RecordBatch) else pa.Table.from_batches([table])
            )
        else:
            from pyarrow.interchange import from_dataframe

            whole = from_dataframe(table)
    except (pa.ArrowException, TypeError, AttributeError) as error:
        raise InputError(f"cannot read a {type(table).__name__} as a table: {error}") from None
    columns = arrow_columns(whole)
    return columns, columns.get


def arrow_columns(table: pa.Table) -> Columns:
    """Return the columns of an Arrow table."""
    names = table.column_names
    try:
        told = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
        index = [name for name in told if isinstance(name, str)]
    except (ValueError, LookupError, TypeError, RecursionError):  # the metadata may come from any writer
        index = []
    index += [name for name in names if _INDEX.fullmatch(name)]
    return Columns(names, lambda name: table.column(names.index(name)), index)


def _is_adjacency(table: Any) -> bool:
    """Whether a data frame is an adjacency matrix rather than an edge table: row and column names are equal.

    A frame of two or three columns named 0, 1 (, 2) may hold edges, like an array of that shape.
    """
    index, names = getattr(table, "index", None), getattr(table, "columns", None)
    if index is None or names is None or callable(index) or len(index) != len(names):
        return False
    return list(index) == list(names) and (len(names) > 3 or list(names) != list(range(len(names))))


def choose_columns(
    names: Columns, source: Any = None, target: Any = None, weight: Any = None
) -> tuple[Any, Any, Any]:
    """Return the names of the columns of sources, targets and weights (None: no weights).

    By default source and target are a common pair of names, such as source and target or src and dst (case
    is ignored), else the first two columns not named weight. The default weight is the column named weight,
    else the third of three columns, as in a text file; else there is none, with a warning if other columns
    are numeric. A stored pandas index is used only under a common name or if it is named explicitly.
    """
    if (source is None) != (target is None):
        raise InputError("give both column names, source= and target=, or neither")
    lower = [str(name).lower() for name in names]
    if source is None:
        pairs = [(a, b) for a, b in COLUMN_PAIRS if a in lower and b in lower]
        plain = [n for n in names if n not in names.stored_index and str(n).lower() != "weight"]
        if len(plain) < 2 and not pairs:
            raise InputError(f"a table of edges needs at least two columns, this one has {list(names)!r}")
        source, target = (names[lower.index(name)] for name in pairs[0]) if pairs else plain[:2]
    if weight is None:
        others = [name for name in names if name not in (source, target)]
        called = [name for name in others if str(name).lower() == "weight"]
        rest = [name for name in others if name not in names.stored_index]
        weight = called[0] if called else rest[0] if len(rest) == 1 and source != target else False
        if weight is False and any(_holds_numbers(names.get(name)) for name in rest):
            warn(
                f"no column is named weight, so the graph is unweighted; not used: "
                f"{', '.join(map(repr, rest[:20]))}; Graph.from_table(table, weight=NAME) takes one of them, "
                "weight=False none"
            )
    for name in (source, target, *([] if weight is False else [weight])):
        if names.count(name) != 1:
            told = "appears more than once" if name in names else "does not exist"
            raise InputError(f"the column {name!r} {told}; columns: {', '.join(map(repr, names[:20]))}")
    return source, target, None if weight is False else weight


def _holds_numbers(values: Any) -> bool:
    """Whether a column is numeric, judged by its type or else by its first value."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _is_numeric(values.type)
    dtype = getattr(values, "dtype", None)
    if dtype is None:
        return _is_number(next(iter(values), None))
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric())
    return str(getattr(dtype, "kind", "O")) in "iuf"


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def weight_column(values: Any, name: Any) -> NDArray[np.float64]:
    """Return weights as (m,) float64; raises InputError if the column is not numeric."""
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        streams = hasattr(values, "__arrow_c_stream__")
        values = pa.chunked_array(values) if streams else pa.array(np.asarray(values))
    kind = values.type
    if not _is_numeric(kind):
        remedy = "Graph.from_table(table, weight=NAME) takes another column, weight=False none"
        raise InputError(f"the column {name!r} holds {kind}, not weights: {remedy}")
    if values.null_count:
        raise InputError(f"the column {name!r}: a weight is missing (null)")
    weights: NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy()
    return weights


#: Common names of the two id columns of an edge table.
COLUMN_PAIRS = (
    ("source", "target"),
    ("source_id", "target_id"),
    ("src", "dst"),
    ("src", "dest"),
    ("from", "to"),
    ("fromnodeid", "tonodeid"),
    ("start", "end"),
    ("head", "tail"),
    ("u", "v"),
    ("node1", "node2"),
    ("node_1", "node_2"),
    ("id1", "id2"),
    ("id_1", "id_2"),
)
