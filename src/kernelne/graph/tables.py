"""Tables of edges: pandas, polars, pyarrow or a dict, and which columns hold source, target, weight and time.

Columns are found by their names. A table of many columns whose names do not tell is refused, never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kernelne.errors import InputError, ParameterError, warn
from kernelne.graph.ids import id_column, read_ids
from kernelne.graph.times import timed

_INDEX = re.compile(r"__index_level_\d+__")  # name that pandas gives the column of an unnamed index
#: Common names of the two id columns, without blanks and underscores, nor a final id or name.
COLUMN_PAIRS = (
    ("source", "target"), ("src", "dst"), ("src", "dest"), ("source", "destination"), ("from", "to"),
    ("fromnode", "tonode"), ("start", "end"), ("head", "tail"), ("u", "v"), ("node1", "node2"),
    ("id1", "id2"), ("orig", "dest"), ("origin", "destination"), ("user", "item"), ("user", "product"),
    ("user", "movie"), ("user", "artist"), ("user", "business"), ("customer", "product"),
    ("customer", "item"), ("customer", "merchant"), ("buyer", "seller"), ("sender", "receiver"),
    ("sender", "recipient"), ("payer", "payee"), ("follower", "followee"), ("follower", "followed"),
    ("citing", "cited"), ("caller", "callee"), ("parent", "child"), ("subject", "object"),
    ("author", "paper"), ("bait", "prey"), ("ligand", "receptor"), ("regulator", "target"), ("tf", "target"),
)  # fmt: skip
#: Nodes of different kinds, whose numbers do not mean the same.
_TWO_KINDS = (
    {"user", "customer", "buyer", "author", "reader", "viewer", "listener", "person", "member", "reviewer",
     "client", "uid"},
    {"item", "product", "movie", "artist", "business", "merchant", "paper", "book", "song", "article", "sku",
     "stock", "track", "film", "iid"},
)  # fmt: skip
_TIME = re.compile(
    r"(time|timestamp|ts|date|datetime|year|month|day|when|created|updated|.*(time|date|stamp))(at)?"
)
_ROW = re.compile(
    r"((tx|txn|trans|transaction|event|record|row|edge|link|rating|review|trip)(id|no|nr|number)?|id|index|row|uuid)"
)
_NUMBERED = {("1", "2"), ("a", "b"), ("x", "y")}


class Chosen(NamedTuple):
    """The names of the columns of a table of edges; weight and time are None if there are none."""

    source: Any
    target: Any
    weight: Any
    time: Any


class Columns(list[Any]):
    """The column names of a table; `get` returns a column by its name.

    stored_index: names of the columns that hold the index of a pandas DataFrame
    by_number: whether a column may be given by its number, from 1, as for a file
    """

    def __init__(
        self,
        names: Iterable[Any],
        get: Callable[[Any], Any],
        stored: Iterable[Any] = (),
        by_number: bool = False,
    ) -> None:
        super().__init__(names)
        self.get, self.stored_index, self.by_number = get, set(stored), by_number

    def find(self, given: Any) -> Any:
        """Return the name of a column that is given by its name or its number."""
        if given in self or not self.by_number or not str(given).isdecimal():
            return given
        return self[int(given) - 1] if 0 < int(given) <= len(self) else given

    @property
    def shown(self) -> str:
        return ", ".join(map(repr, self[:20])) + (", …" if len(self) > 20 else "")


def is_table(obj: Any) -> bool:
    """Whether an object is a table: pandas, polars, pyarrow or any other that Arrow can read."""
    return hasattr(obj, "__arrow_c_stream__") or hasattr(obj, "__dataframe__")


def table_columns(table: Any) -> Columns:
    """Return the columns of a table."""
    ours = isinstance(table, pa.Table | pa.RecordBatch)
    if not ours and _is_adjacency(table):
        raise InputError(
            "rows and columns of this table have the same names, like an adjacency matrix: pass "
            "Graph.from_scipy(table.to_numpy(), nodes=table.columns), or reset its index"
        )
    if not ours and hasattr(table, "columns") and hasattr(table, "__getitem__"):
        # pandas, polars: unused columns are not converted
        return Columns(table.columns, table.__getitem__)
    if isinstance(table, Mapping):
        return Columns(table, table.__getitem__)
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
    return arrow_columns(whole)


def arrow_columns(table: pa.Table, by_number: bool = False) -> Columns:
    """Return the columns of an Arrow table."""
    names = table.column_names
    try:
        told = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
        index = [name for name in told if isinstance(name, str)]
    except (ValueError, LookupError, TypeError, RecursionError):  # the metadata may come from any writer
        index = []
    index += [name for name in names if _INDEX.fullmatch(name)]
    places = {name: k for k, name in reversed([*enumerate(names)])}  # the first of equal names
    return Columns(names, lambda name: table.column(places[name]), index, by_number)


def _is_adjacency(table: Any) -> bool:
    """Whether a data frame is an adjacency matrix rather than an edge table: row and column names are equal.

    A frame of two or three columns named 0, 1 (, 2) may hold edges, like an array of that shape.
    """
    index, names = getattr(table, "index", None), getattr(table, "columns", None)
    if index is None or names is None or callable(index) or len(index) != len(names):
        return False
    return list(index) == list(names) and (len(names) > 3 or list(names) != list(range(len(names))))


def choose_columns(
    names: Columns, source: Any = None, target: Any = None, weight: Any = None, time: Any = None
) -> Chosen:
    """Return the names of the columns of sources, targets, weights and times.

    By default source and target are a common pair of names (see `pair_of`), else the only two columns besides
    weight and time, else the first two of three if the third holds numbers; other tables are refused. The
    default weight is the column named weight, else, if no column of times is given, the only column left
    unless it is one of times; else there is none, with a warning if other columns are numeric. A stored
    pandas index is used only under a common name or if it is named explicitly.
    """
    if (source is None) != (target is None):
        raise InputError("give both column names, source= and target= (--source, --target), or neither")
    source, target, time = (None if name is None else names.find(name) for name in (source, target, time))
    weight = weight if weight is None or weight is False else names.find(weight)
    if source is None:
        pair = pair_of(names)
        source, target = (names[k] for k in pair) if pair else _by_place(names, weight, time)
    if weight is None and source in names and target in names:
        weight = _weight_of(names, source, target, time)
    for name in (
        source,
        target,
        *(other for other in (weight, time) if other is not None and other is not False),
    ):
        if names.count(name) != 1:
            told = "appears more than once" if name in names else "does not exist"
            raise InputError(f"the column {name!r} {told}; columns: {names.shown}")
    return Chosen(source, target, None if weight is False else weight, time)


def _by_place(names: Columns, weight: Any, time: Any) -> tuple[Any, Any]:
    """Return the first two columns if these can only be source and target; raises InputError otherwise."""
    taken = names.stored_index | {weight, time}
    rest = [n for n in names if n not in taken and str(n).strip() and str(n).lower() != "weight"]
    if len(rest) < 2:
        raise InputError(f"a table of edges needs at least two columns, this one has {list(names)!r}")
    three = len(rest) == 3 and not _is(_ROW, rest[0]) and not any(_is(_TIME, n) for n in rest[:2])
    if len(rest) == 2 or (three and (weight is False or _holds_numbers(names.get(rest[2])))):
        return rest[0], rest[1]
    numbers = " or give their numbers" if names.by_number else ""
    raise InputError(
        f"which of the columns {names.shown} are source and target? Name them{numbers}: source=NAME, "
        "target=NAME (--source NAME --target NAME), and weight=NAME (--weight NAME) if there are weights"
    )


def _weight_of(names: Columns, source: Any, target: Any, time: Any) -> Any:
    """Return the name of the weight column, or False."""
    others = [name for name in names if name not in (source, target, time) and str(name).strip()]
    called = [name for name in others if str(name).lower() == "weight"]
    rest = [name for name in others if name not in names.stored_index]
    if called:
        return called[0]
    if (
        len(rest) == 1
        and time is None
        and source != target
        and not _is(_TIME, rest[0])
        and not _holds_times(names.get(rest[0]))
    ):
        return rest[0]
    if any(_holds_numbers(names.get(name)) for name in rest):
        told = "the graph is unweighted" if time is None else "edges have no weights of their own"
        warn(
            f"no column is named weight, so {told}; not used: "
            f"{', '.join(map(repr, rest[:20]))}; weight=NAME (--weight NAME) takes one of them, weight=False "
            "(--unweighted) none"
        )
    return False


def pair_of(names: Sequence[Any], certain: bool = False) -> tuple[int, int] | None:
    """Return the positions of source and target if these names tell them, else None.

    Source and target are a common pair of names (case, blanks, underscores and a final id or name are
    ignored), else the only two with one of these pairs before or after the same word (from_account,
    to_account), else the only two that end in 1 and 2, or a and b. If `certain`, only a common pair counts.
    """
    plain = [_plain(name) for name in names]
    found = [(plain.index(a), plain.index(b)) for a, b in COLUMN_PAIRS if a in plain and b in plain]
    if found or certain:
        return found[0] if found else None
    words = [None if _is(_TIME, name) or len(name) < 2 else name for name in plain]
    places: dict[str, list[int]] = {}
    for k, word in enumerate(words):
        if word:
            places.setdefault(word, []).append(k)
    for targets_of in (_same_word, _numbered):
        # A file may have any number of columns: a target is looked up, and two are enough to know.
        pairs = ((i, k) for i, a in enumerate(words) if a for b in targets_of(a) for k in places.get(b, ()))
        some = set(islice(pairs, 2 * len(COLUMN_PAIRS)))
        if len(some) == 1:
            return some.pop()
    return None


def _same_word(first: str) -> Iterator[str]:
    """Yield the targets of a source, one of the common pairs before or after the same word."""
    for a, b in COLUMN_PAIRS:
        for word in (first.removeprefix(a), first.removesuffix(a)):
            if 2 <= len(word) < len(first) and word.isalpha():
                yield b + word if first == a + word else word + b


def _numbered(first: str) -> Iterator[str]:
    """Yield the targets that differ from a source in their last character only: gene A, gene B."""
    word = first[:-1]
    if re.search(r"[^\W\d]{2}", word):
        yield from (word + b for a, b in _NUMBERED if a == first[-1:])


def like_pair(first: str, second: str) -> bool:
    """Whether two words may be names of the columns source and target."""
    return pair_of([first, second]) == (0, 1)


def _plain(name: Any) -> str:
    """Return a name in lower case without blanks, underscores and a final id or name."""
    word = re.sub(r"[\W_]+", "", str(name).lower())
    return re.sub(r"(?<=.)(id|ids|name)$", "", word)


def _is(pattern: re.Pattern[str], name: Any) -> bool:
    return pattern.fullmatch(re.sub(r"[\W_]+", "", str(name).lower())) is not None


def is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _holds_numbers(values: Any) -> bool:
    """Whether a column is numeric, judged by its type or else by its first value."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _is_numeric(values.type)
    dtype = getattr(values, "dtype", None)
    if dtype is None:
        return is_number(next(iter(values), None))
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
        remedy = "weight=NAME (--weight NAME) takes another column, weight=False (--unweighted) none"
        raise InputError(f"the column {name!r} holds {kind}, not weights: {remedy}")
    if values.null_count:
        row = int(np.argmax(np.asarray(values.is_null()))) + 1
        raise InputError(f"the column {name!r}: a weight is missing (null) in row {row:,}")
    weights: NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy()
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        told = f"the weight of row {bad[0] + 1:,} is {weights[bad[0]]}"
        raise InputError(f"the column {name!r}: {told}: weights must be finite and not negative")
    return weights


def _holds_times(values: Any) -> bool:
    """Whether a column has a type of dates or times."""
    kind = values.type if isinstance(values, pa.Array | pa.ChunkedArray) else getattr(values, "dtype", None)
    return "date" in str(kind) or "time" in str(kind)


def read_edges(
    names: Columns, source: Any, target: Any, weight: Any, time: Any, half_life: Any, bipartite: bool | None
) -> tuple[dict[str, Any], NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Return the columns of sources and targets as `read_ids` does, weights, and times: see `timed`."""
    check_time(time, half_life)
    chosen = choose_columns(names, source, target, weight, time)
    sources, targets = (read_ids(names.get(name), f"the column {name!r}") for name in chosen[:2])
    sources, targets = apart(sources, targets, chosen[:2], bipartite)
    weights = None if chosen.weight is None else weight_column(names.get(chosen.weight), chosen.weight)
    times = None
    if chosen.time is not None:
        weights, times = timed(weights, names.get(chosen.time), chosen.time, half_life)
    return {"sources": sources, "targets": targets}, weights, times


def apart(sources: Any, targets: Any, names: Sequence[Any], bipartite: bool | None) -> tuple[Any, Any]:
    """Return the columns of ids, if `bipartite` with the name of its column before each: user_id:5.

    If `bipartite` is None, raises InputError if the names are of different kinds, such as user and item, and
    both columns have the same integers: one node would be both.
    """
    if bipartite not in (None, True, False):
        raise ParameterError("bipartite", bipartite, "must be True, False or None")
    if bipartite:
        return _prefixed(sources, names[0]), _prefixed(targets, names[1])
    integers = all(pa.types.is_integer(ids.type) for ids in (sources, targets))
    if bipartite is None and integers and of_two_kinds(names):
        one, other = (ids.unique().cast(pa.int64()) for ids in (sources, targets))
        shared = one.filter(pc.is_in(one, value_set=other))
        if len(shared):
            raise same_numbers(names, len(shared), shared[0].as_py())
    return sources, targets


def of_two_kinds(names: Sequence[Any]) -> bool:
    """Whether two columns of these names hold nodes of different kinds, such as user and item.

    It is enough that one of them is of a known kind and the other is not of the same.
    """
    words = [{_plain(name), str(name).lower()} for name in names]
    return len({next((k for k, kind in enumerate(_TWO_KINDS) if word & kind), None) for word in words}) == 2


def same_numbers(names: Sequence[Any], count: int, first: int) -> InputError:
    """Return the error about columns of two kinds with `count` numbers in common, such as `first`."""
    return InputError(
        f"the columns {names[0]!r} and {names[1]!r} have {count:,} numbers in common, such as "
        f"{first}: bipartite=True (--bipartite) keeps them apart, as {names[0]}:{first} and "
        f"{names[1]}:{first}; bipartite=False (--no-bipartite) takes them as the same nodes"
    )


def lack_prefixes(names: Columns, chosen: Sequence[Any], nodes: NDArray[Any]) -> bool:
    """Whether the ids of these columns are without the prefixes that `apart` gave to those of the nodes."""
    known = id_column(nodes)
    for name in chosen:
        columns = known, read_ids(names.get(name), f"the column {name!r}")
        has = [
            column is not None
            and pa.types.is_large_string(column.type)
            and pc.any(pc.starts_with(column, pattern=f"{name}:")).as_py()
            for column in columns
        ]
        if has != [True, False]:
            return False
    return True


def _prefixed(ids: Any, name: Any) -> Any:
    texts = ids.cast(pa.large_string())
    if not len(ids):
        return ids
    before, nothing = (pa.scalar(text, pa.large_string()) for text in (f"{name}:", ""))
    return pc.binary_join_element_wise(before, texts, nothing)


def check_time(time: Any, half_life: Any) -> None:
    """Raise an error if there is a half-life, but no column of times."""
    if half_life is not None and time is None:
        raise ParameterError("half_life", half_life, "needs the column of times, time (--time)")
