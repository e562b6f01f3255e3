"""Node ids: validate them, map them to rows, look them up, and suggest close ids for unknown ones.

This module does not use Numba, because loading an embedding must not need it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kernelne.errors import InputError, UnknownNodeError
from kernelne.graph.string_ids import StringIds, positions

_INT32_MAX = 2**31 - 1
_STRING_BYTES = 2**31 - 1  # limit of an array of type string; large_string has no limit
_HINT_FROM = 1_000  # ids compared with an unknown id: enough for a hint, and fast
_HINT_PIECES = 24  # pairs of letters used to select them
_HINT_LENGTH = 200  # characters of an id; difflib takes the square of it
_HINT_ROWS = 2**22  # ids that are looked at for a hint


def node_array(given: Any) -> NDArray[Any]:
    """Return node ids as int64 if all are integers that fit, else as objects, strings as plain `str`.

    StringIds, the ids of a mapped file, are returned as they are.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(f"node ids must be a list or an array, not {given!r}")
    if isinstance(given, StringIds):
        same: Any = given  # used like an array
        return same  # type: ignore[no-any-return]
    if hasattr(given, "__array__"):  # pandas, arrow
        given = np.asarray(given)
        if given.ndim != 1:
            raise InputError(f"node ids must have one dimension; their shape is {given.shape}")
        if given.dtype.kind == "i":
            integers: NDArray[Any] = given.astype(np.int64, copy=False)
            return integers
        given = given.tolist()
    items = [item.item() if isinstance(item, np.generic) else item for item in given]
    kinds = set(map(type, items))
    if kinds and all(issubclass(kind, int) and kind is not bool for kind in kinds):
        try:
            return np.fromiter(items, np.int64, len(items))
        except OverflowError:
            pass  # kept as objects: usable in memory
    if kinds - {str} and all(issubclass(kind, str) for kind in kinds):
        items = list(map(str.__str__, items))  # not str(), which returns the name of an Enum
    return np.fromiter(items, object, len(items))


def read_ids(ids: Any, name: str) -> Any:
    """Return `ids` as a pyarrow ChunkedArray of int32, int64 or large_string (null type if empty)."""
    if isinstance(ids, str | bytes) or not (hasattr(ids, "__iter__") or hasattr(ids, "__array__")):
        raise InputError(f"{name} must be a list or array of node ids, not {ids!r}")
    ids = ids.column if isinstance(ids, StringIds) else ids
    if not isinstance(ids, pa.Array | pa.ChunkedArray):
        if hasattr(ids, "__arrow_c_stream__"):  # a column of pandas or polars
            return read_ids(pa.chunked_array(ids), name)
        ids = np.asarray(ids) if hasattr(ids, "__array__") else list(ids)
        if np.ndim(ids) != 1 and isinstance(ids, np.ndarray):
            raise InputError(f"{name} must have one dimension; its shape is {ids.shape}")
        try:
            ids = pa.array(ids)
        except OverflowError:
            raise _too_large(name) from None
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise InputError(
                f"{name}: ids must be all ints or all strs ({error}); str() on each makes them strings"
            ) from None
    column = ids if isinstance(ids, pa.ChunkedArray) else pa.chunked_array([ids])
    if not len(column):
        return pa.chunked_array([], pa.null())
    if pa.types.is_dictionary(column.type):
        # Not a cast, which does not support the string_view of polars. A short dictionary may expand a lot.
        column = pa.chunked_array([plain_strings(c.dictionary).take(c.indices) for c in column.chunks])
    if column.null_count:
        raise InputError(f"{name}: an id is missing (null)")
    column = plain_strings(column)
    if pa.types.is_large_string(column.type):
        return column
    if pa.types.is_integer(column.type):
        try:
            return column if column.type == pa.int32() else column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise _too_large(name) from None
    raise InputError(f"{name}: ids must be ints or strs, not {column.type}; convert them to one of these")


def plain_strings(values: Any) -> Any:
    """Cast strings of any type to large_string, which has no size limit; other values are returned unchanged.

    The type of polars, string_view, is newer than the oldest supported pyarrow, hence the test by name.
    """
    return values.cast(pa.large_string()) if str(values.type) in ("string", "string_view") else values


def _too_large(name: str) -> InputError:
    return InputError(f"{name}: an integer id does not fit int64; pass the ids as strings")


def id_column(nodes: NDArray[Any]) -> Any:
    """Return node ids as a pyarrow int64 or large_string array; None if they are other hashables."""
    if isinstance(nodes, StringIds):
        return nodes.column
    if nodes.dtype != object:
        return pa.array(nodes)
    try:
        ids = pa.array(nodes)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None
    if not pa.types.is_string(ids.type):
        return None
    ids = plain_strings(ids)
    return ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids  # beyond 2 GiB


def check_same_kind(columns: dict[str, Any]) -> None:
    """Raise InputError unless the columns, as `read_ids` returns them, are all ints or all strs."""
    kinds = {name: "int" if pa.types.is_integer(c.type) else "str" for name, c in columns.items() if len(c)}
    if len(set(kinds.values())) > 1:
        listed = ", ".join(f"{name} are {kind}" for name, kind in kinds.items())
        raise InputError(f"ids mix ints and strs ({listed}): convert them all to one kind")


def plain_integers(texts: Any) -> Any:
    """Return strings as an int64 column if each is an integer in canonical form that fits, else None."""
    if not pc.all(pc.match_substring_regex(texts, r"^(0|-?[1-9][0-9]*)$")).as_py():
        return None
    try:
        return texts.cast(pa.int64())
    except pa.ArrowInvalid:  # too long for 64 bits
        return None


def string_objects(strings: Any) -> NDArray[Any]:
    """Return a column of strings as an array of objects."""
    # Through a list, because to_numpy may or may not share equal strings, and returns null as None.
    return np.fromiter(strings.to_pylist(), object, len(strings))


def find_rows(lookup: dict[Any, int], ids: list[Any]) -> NDArray[np.int64]:
    """Return the row of each id, (len(ids),) int64; -1 for unknown ids."""
    try:
        return np.fromiter((lookup.get(node, -1) for node in ids), np.int64, len(ids))
    except TypeError as error:
        raise InputError(f"not a node id: {error}") from error


def find_strings(nodes: StringIds, ids: Any) -> NDArray[np.int64]:
    """Return the row of each of the ids, an array, -1 for those that are not among strings that stay text."""
    if isinstance(ids, StringIds):
        return nodes.find(ids.column)
    texts = [str(node) if isinstance(node, str) and _is_utf8(node) else None for node in ids.tolist()]
    wanted = pa.array(texts, pa.large_string())
    rows = np.full(len(texts), -1, np.int64)
    given = np.flatnonzero(wanted.is_valid().to_numpy(zero_copy_only=False))
    rows[given] = nodes.find(wanted.drop_null())
    return rows


def are_known(ids: list[Any], nodes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the ids that are among `nodes`; those need not all be made Python objects."""
    if isinstance(nodes, StringIds):
        return find_strings(nodes, node_array(ids)) >= 0
    if nodes.dtype == object:
        among = set(nodes.tolist())
        return np.fromiter((node in among for node in ids), bool, len(ids))
    found = np.zeros(len(ids), bool)
    whole = np.array([type(node) is int and -(2**63) <= node < 2**63 for node in ids], bool)
    found[whole] = np.isin(np.array([n for n, fits in zip(ids, whole, strict=True) if fits], np.int64), nodes)
    return found


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which is in no file
        return False
    return True


def rows_of(ids: Any, nodes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the rows of a list or array of ids, (len(ids),) int64, in O(len(nodes)); no index is kept.

    Ids that stay text are found in O(log(len(nodes))) if they are in order.
    """
    known = id_column(nodes)
    wanted = read_ids(ids, "ids") if known is not None else node_array(ids).tolist()
    if not len(wanted):
        return np.empty(0, np.int64)
    if known is None:
        rows = find_rows({node: row for row, node in enumerate(nodes)}, wanted)
    else:
        _refuse_numbers(wanted, nodes)
        check_same_kind({"nodes": known, "ids": wanted})
        wanted = wanted.cast(known.type)
        rows = nodes.find(wanted) if isinstance(nodes, StringIds) else positions(wanted, known)
    unknown = np.flatnonzero(rows < 0)
    if len(unknown):
        missing = wanted[int(unknown[0])]
        missing = missing.as_py() if isinstance(missing, pa.Scalar) else missing
        more = f" ({len(unknown) - 1} more are unknown)" if len(unknown) > 1 else ""
        raise unknown_node(f"unknown node id {missing!r}{more}", missing, nodes)
    return rows.astype(np.int64, copy=False)


def unknown_node(what: str, node: Any, nodes: NDArray[Any]) -> UnknownNodeError:
    """Return the error `what` about an id that is not in `nodes`, with up to three close ids as a hint."""
    if close := _close_ids(node, nodes):
        hint = f"close ids: {', '.join(map(repr, close))}"
    elif nodes.dtype != object:
        hint = "the ids here are integers"
    else:
        hint = f"the first ids are {', '.join(map(repr, nodes[:3].tolist()))}"
    return UnknownNodeError(f"{what}; {hint}")


def _close_ids(node: Any, nodes: NDArray[Any]) -> list[Any]:
    if nodes.dtype != object:
        if type(node) is not int:
            return []
        within = min(max(node, int(nodes.min())), int(nodes.max()))  # same nearest ids, fits float64
        gaps = np.abs(nodes.astype(np.float64) - within)
        nearest = np.argpartition(gaps, min(2, len(gaps) - 1))[:3]
        return [int(nodes[row]) for row in nearest[np.argsort(gaps[nearest], kind="stable")]]
    text = str(node).lower()
    if len(text) > _HINT_LENGTH:
        return []
    if longer := _prefixed_ids(text, nodes):
        return longer
    known = [k for k in _likely(text, nodes) if len(str(k)) <= 2 * _HINT_LENGTH]
    matches = difflib.get_close_matches(text, dict.fromkeys(str(k).lower() for k in known), n=3)
    return [next(k for k in known if str(k).lower() == match) for match in matches]


def _refuse_numbers(ids: Any, nodes: NDArray[Any]) -> None:
    """Raise UnknownNodeError if the ids are 5 where the nodes are called user_id:5."""
    if nodes.dtype == object and pa.types.is_integer(ids.type):
        first = ids[0].as_py()
        if _prefixed_ids(str(first), nodes):
            raise unknown_node(f"unknown node id {first}", first, nodes)


def _prefixed_ids(text: str, nodes: NDArray[Any]) -> list[Any]:
    """Return up to three ids that are the text with a prefix, as user_id:5 is for 5 in a bipartite graph."""
    ids = id_column(nodes)
    if ids is None:
        return []
    ends = pc.ends_with(pc.utf8_lower(ids), pattern=f":{text}").to_numpy(zero_copy_only=False)
    return list(nodes[np.flatnonzero(ends)[:3]])


def _likely(text: str, nodes: NDArray[Any]) -> list[Any]:
    """Return at most _HINT_FROM ids for difflib, which is slow: those that share most pairs of letters."""
    nodes = nodes[:_HINT_ROWS]
    ids = id_column(nodes)
    if ids is None:
        return list(islice((node for node in nodes if abs(len(str(node)) - len(text)) <= 2), _HINT_FROM))
    pieces = [text[i : i + 2] for i in range(max(len(text) - 1, 1))]
    some = np.unique(np.linspace(0, len(pieces) - 1, _HINT_PIECES).round().astype(int))
    lower = pc.utf8_lower(ids)
    shared = -np.abs(pc.utf8_length(lower).to_numpy() - len(text)) / 2.0  # prefer a similar length
    for piece in {pieces[i] for i in some}:
        shared += pc.match_substring(lower, piece).to_numpy(zero_copy_only=False)
    best = (
        np.argpartition(-shared, _HINT_FROM)[:_HINT_FROM]
        if len(nodes) > _HINT_FROM
        else np.arange(len(nodes))
    )
    return list(nodes[best[np.argsort(-shared[best], kind="stable")]])


def code_dtype(n_nodes: int) -> type[np.signedinteger[Any]]:
    """Return the dtype of row numbers."""
    return np.int32 if n_nodes <= _INT32_MAX else np.int64


def encode_columns(columns: list[Any]) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """Return node ids in their documented order, and the rows of [sources, targets]; empties `columns`."""
    column, codes = encode(columns)
    ids = column.to_numpy(zero_copy_only=False)
    return np.array(ids, np.int64 if ids.dtype != object else object), codes


def encode(columns: list[Any]) -> tuple[Any, list[NDArray[Any]]]:
    """As `encode_columns`, with the ids as a pyarrow array of integers or strings."""
    lengths = [len(column) for column in columns]
    kinds = {column.type for column in columns if len(column)}
    if len(kinds) > 1:
        kinds = {pa.int64() if any(map(pa.types.is_integer, kinds)) else pa.large_string()}
    kind = kinds.pop()
    if pa.types.is_string(kind) and sum(column.nbytes for column in columns) > _STRING_BYTES:
        kind = pa.large_string()  # each column may fit a string array, but all ids together may not
    chunks = [chunk for column in columns if len(column) for chunk in column.cast(kind).chunks if len(chunk)]
    columns.clear()
    if pa.types.is_integer(kind):
        dense = [chunk.to_numpy() for chunk in chunks]
        # Ids close to 0..n need no hashing: a table over their range is several times faster.
        if min(c.min() for c in dense) >= 0 and max(c.max() for c in dense) < 4 * sum(lengths) + 1024:
            del chunks
            ids, ranks = _rank_dense(dense, lengths[0])
            return pa.array(ids), _look_up(ranks, dense, lengths)
        del dense
    encoded = pa.chunked_array(chunks).dictionary_encode()
    del chunks
    # Arrow's allocator would keep the memory of the freed hash table, half of the peak.
    pa.default_memory_pool().release_unused()
    dictionary = encoded.chunk(0).dictionary
    indices = [chunk.indices.to_numpy() for chunk in encoded.chunks]
    del encoded
    # The dictionary is in order of first occurrence, so it starts with `nodes` unless one is repeated.
    first, n = lengths[0], len(dictionary)
    given = np.concatenate([np.empty(0, np.int32), *_split_first(indices, first)])
    repeated = np.flatnonzero(given != np.arange(first))
    if len(repeated):
        raise _duplicate(dictionary[int(given[repeated[0]])].as_py())
    rest = np.asarray(pc.sort_indices(dictionary.slice(first))).astype(np.int64) + first
    order = np.concatenate([np.arange(first), rest])
    ranks = np.empty(n, code_dtype(n))
    ranks[order] = np.arange(n)
    return dictionary.take(pa.array(order)), _look_up(ranks, indices, lengths)


def _split_first(chunks: list[NDArray[Any]], length: int) -> list[NDArray[Any]]:
    """Return the leading chunks that together have `length` values: the column `nodes`."""
    taken = 0
    leading: list[NDArray[Any]] = []
    while taken < length:
        leading.append(chunks[len(leading)])
        taken += len(leading[-1])
    return leading


def _rank_dense(chunks: list[NDArray[Any]], first: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return ids in documented order and a table id → row, for ids close to 0..n."""
    size = int(max(chunk.max() for chunk in chunks)) + 1
    ranks = np.full(size, -1, code_dtype(size))
    given = np.concatenate([np.empty(0, np.int64), *_split_first(chunks, first)]).astype(np.int64)
    ranks[given] = np.arange(first)
    repeated = np.flatnonzero(ranks[given] != np.arange(first))
    if len(repeated):
        raise _duplicate(int(given[repeated[0]]))
    seen = np.zeros(size, np.bool_)
    for chunk in chunks:
        seen[chunk] = True
    seen[given] = False
    rest = np.flatnonzero(seen)
    ranks[rest] = np.arange(first, first + len(rest))
    return np.concatenate([given, rest]), ranks


def _duplicate(node: Any) -> InputError:
    return InputError(f"nodes: the id {node!r} appears more than once; give each id once")


def _look_up(ranks: NDArray[Any], indices: list[NDArray[Any]], lengths: list[int]) -> list[NDArray[Any]]:
    """Return the rows of sources and of targets; frees each chunk of `indices` after use."""
    del indices[: len(_split_first(indices, lengths[0]))]
    columns = []
    for length in lengths[1:]:
        codes = np.empty(length, ranks.dtype)
        filled = 0
        while filled < length:
            chunk = indices.pop(0)
            np.take(ranks, chunk, out=codes[filled : filled + len(chunk)], mode="clip")
            filled += len(chunk)
        columns.append(codes)
    return columns
