"""Read node labels from a file: text with columns of nodes and labels, a table, or a .mat file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kernelne.errors import FileFormatError, InputError, ParameterError, warn
from kernelne.graph.ids import plain_integers, string_objects
from kernelne.io.labels import Labels
from kernelne.io.text import lines as text_lines
from kernelne.io.text import sniff, tokens
from kernelne.io.text.columns import Layout, read_columns
from kernelne.io.text.sniff import Field
from kernelne.io.text.tokens import WHITESPACE

_TABLES = (".parquet", ".arrow", ".feather")
_MISSING = ["NA", "N/A", "nan", "NaN", "null", "NULL", "None"]  # what programs write where there is no label
_JOINTS = "|/;"  # may separate labels, or be part of one
_NODE_NAMES = {"node", "nodes", "node_id", "nodeid", "node id", "id", "name", "vertex", "vertex_id"}
_LABEL_NAMES = {
    "label", "labels", "class", "classes", "group", "groups", "community", "communities", "category",
    "categories", "cluster", "topic", "type", "target", "y", "term", "terms", "function", "functions",
    "department", "role", "status", "fraud",
}  # fmt: skip


def read_labels(
    path: str | bytes | os.PathLike[str],
    *,
    header: bool | None = None,
    separator: str | None = None,
    joint: str | None = None,
    node: str | int | None = None,
    label: str | int | None = None,
) -> Labels:
    """Read node labels: each line has a node and its label, or several labels separated by commas.

    The file is UTF-8 text, compressed if its name ends in .gz or .zst. Node and labels are separated by tabs,
    whitespace, semicolons or commas; with commas, several labels are separated by semicolons, or by commas in
    quotes. A node may also have one line for each of its labels; a node without a label (`ann,`) is left out.
    Blank lines and lines that start with # or % are skipped. There may be more columns if a header, or `node`
    and `label`, tell which ones these are. The labels NA, N/A, nan, null and None are left out, with a
    warning. A table (.parquet, .arrow, .feather) has such columns; several labels are a list, or as in CSV.

    Node ids are read as by `read_graph`: integers if all are, else strings. The same applies to labels.

    In a .mat file, labels are the variable `group`: an indicator (n, K), or one class number for each node.
    Nodes are 0 … n - 1, as in `read_graph`; those without a class are left out.

    Parameters
    ----------
    header: whether the first data line is a header. None: it is one if it looks like `node label`, or if it
        has words where all other lines have an integer node id; a line that may be a header or labels raises
        an error.
    separator: the character between node and labels, or tab, comma, semicolon or space; None detects it from
        the first lines and the suffix: a .csv is not separated by whitespace.
    joint: the separator of several labels of a node, or "none" if labels contain these characters.
    node, label: the columns, by name or by number from 1; None takes the two there are, or those whose names
        tell.
    """
    path = os.fsdecode(path)
    if Path(path).suffix.lower() == ".mat":
        options = {"header": header, "separator": separator, "joint": joint, "node": node, "label": label}
        return _read_mat(path, options)
    if Path(path).suffix.lower() in _TABLES:
        return _read_table(path, {"header": header, "separator": separator}, joint, node, label)
    if header not in (None, True, False):
        raise ParameterError("header", header, "must be True, False or None")
    mark = sniff.read_separator(separator)
    sample = text_lines.sample_lines(path)
    if not sample:
        raise FileFormatError(path, "no labels in the file")
    if mark is None:
        mark = _find_separator(path, [raw for _, raw in sample], node is not None or label is not None)
    rows = [sniff.split(raw, mark) for _, raw in sample]
    sniff.check_width(path, *sample[0], rows[0])
    try:
        places, told = _columns(rows, header, node, label)
    except InputError as error:
        message = str(error) + (_several_labels(mark) if header is None and node is None else "")
        raise FileFormatError(path, message, line=sample[0][0], text=text_lines.shown(sample[0][1])) from None
    first_line = sample[0][0] + bool(told)
    layout = Layout(mark, max(2, len(rows[0])), places, first_line, may_lack_last_id=True)
    found = read_columns(path, layout, True, partial(_line_error, path, layout))
    assert found is not None  # as text, every file can be read or is an error
    nodes, lists = (column.cast(pa.large_string()).combine_chunks() for column in found[0])
    if not len(nodes):
        raise FileFormatError(
            path,
            "no labels in the file: its only line was read as a header; header=False (--no-labels-header) "
            "reads it as a label",
        )
    if told is None and all(pc.sum(pc.equal(column, column[0])).as_py() == 1 for column in (nodes, lists)):
        message = "are these column names, or a node and its label? header=True (--labels-header) or "
        message += "header=False (--no-labels-header)"
        raise FileFormatError(path, message, line=sample[0][0], text=text_lines.shown(sample[0][1]))
    given = np.flatnonzero(pc.not_equal(lists, "").to_numpy(zero_copy_only=False))
    if not len(given):
        raise FileFormatError(path, "no labels in the file: the label of every node is empty")
    nodes, lists = nodes.take(pa.array(given)), lists.take(pa.array(given))
    between = _joint(mark, lists, joint)
    owners, names, empty = _split(lists, between)
    if empty is not None:
        line, raw = next(islice(text_lines.data_lines(path, first_line), int(given[empty]), None))
        expected = f"expected a label before and after each {between!r}"
        raise FileFormatError(path, expected, line=line, text=text_lines.shown(raw))
    return _labels(path, nodes, owners, names, joint)


def _split(lists: Any, between: str) -> tuple[NDArray[Any], Any, int | None]:
    """Return the positions of nodes and their labels, a pair each, and the first node with an empty label."""
    split = pc.split_pattern(lists, between)
    owners = pc.list_parent_indices(split).to_numpy()
    names = pc.utf8_trim_whitespace(pc.list_flatten(split))
    empty = pc.index(names, pa.scalar("", pa.large_string())).as_py()
    return owners, names, int(owners[empty]) if empty >= 0 else None


def _labels(path: str, nodes: Any, owners: NDArray[Any], names: Any, joint: str | None) -> Labels:
    """Return labels: the node `nodes[owners[k]]` has the label `names[k]`, unless that is a missing value."""
    missing = pc.is_in(names, value_set=pa.array(_MISSING, names.type)).to_numpy(zero_copy_only=False)
    if missing.any():
        first = names[int(missing.argmax())].as_py()
        n_missing = int(np.count_nonzero(missing))
        told = f"{n_missing:,} of {len(names):,} labels are missing values, such as {first!r}"
        if n_missing == len(names):
            raise FileFormatError(path, f"no labels in the file: {told}")
        warn(f"{path}: {told}, and are left out")
        owners, names = owners[~missing], names.filter(pa.array(~missing))
    if joint is None:
        _tell_joint(path, names)
    ids, places_of = _encode(nodes.take(pa.array(owners)))
    classes, columns = _encode(names)
    order = np.argsort(classes, kind="stable")
    ranks = np.argsort(order)
    return Labels.from_pairs(ids, classes[order], places_of, ranks[columns])


def _tell_joint(path: str, names: Any) -> None:
    """Warn if labels seem to be several, joined by a character that is not taken as a separator.

    They seem so if most labels have the character and many of the parts are in several labels, or if the
    parts of those that have it are labels themselves.
    """
    for mark in _JOINTS:
        with_mark = names.filter(pc.match_substring(names, mark))
        if not len(with_mark):
            continue
        whole = set(names.unique().to_pylist())
        split = [{*filter(None, map(str.strip, name.split(mark)))} for name in sorted(whole)]
        parts = {part for each in split for part in each}
        joined = {part for each in split if len(each) > 1 for part in each}
        most = 2 * len(with_mark) > len(names)
        repeated = len(split) > 1 and 2 * sum(map(len, split)) >= 3 * len(parts)
        if (most and repeated) or (joined and 10 * len(joined & whole) >= 9 * len(joined)):
            warn(
                f"{path}: {'most' if most else 'some'} labels contain {mark!r}, such as "
                f"{with_mark[0].as_py()!r}, and are taken as they are: joint={mark!r} "
                f"(--labels-joint {mark!r}) splits them, joint='none' does not"
            )
            return


def _read_table(path: str, given: dict[str, Any], joint: str | None, node: Any, label: Any) -> Labels:
    from kernelne.io.graphs.arrow import ipc_table, parquet_table

    for name, value in given.items():
        if value is not None:
            raise ParameterError(name, value, "applies to text files, not to a table")
    table = (parquet_table if path.lower().endswith(".parquet") else ipc_table)(path)
    if table.num_columns < 2:
        raise FileFormatError(path, f"expected columns of nodes and labels, found {table.column_names!r}")
    try:
        places, _ = _columns([[Field(name, False) for name in table.column_names]], True, node, label)
    except InputError as error:
        raise FileFormatError(path, str(error)) from None
    nodes, values = (table.column(place).combine_chunks() for place in places)
    keep = pc.and_(pc.is_valid(nodes), pc.is_valid(values))
    nodes, values = _texts(path, nodes.filter(keep)), values.filter(keep)
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        owners, names = pc.list_parent_indices(values).to_numpy(), _texts(path, pc.list_flatten(values))
    else:
        lists = _texts(path, values)
        some = pc.not_equal(lists, "")
        nodes, lists = nodes.filter(some), lists.filter(some)
        between = _joint(ord(","), lists, joint)
        owners, names, empty = _split(lists, between)
        if empty is not None:
            told = f"expected a label before and after each {between!r}"
            raise FileFormatError(path, told, text=lists[empty].as_py())
    if not len(names):
        raise FileFormatError(path, "no labels in the file")
    return _labels(path, nodes, owners, names, joint)


def _texts(path: str, values: Any) -> Any:
    """Return integers, words or truth values as texts; whole numbers that are floats as integers."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        if pa.types.is_floating(values.type):
            values = values.cast(pa.int64())
        return values.cast(pa.large_string())
    except pa.ArrowException as error:
        raise FileFormatError(path, f"expected integers or words as nodes and labels ({error})") from None


def _read_mat(path: str, given: dict[str, Any]) -> Labels:
    from kernelne.io.graphs.mat import read_groups

    for name, value in given.items():
        if value is not None:
            raise ParameterError(name, value, "applies to text files, not to a .mat file")
    rows, groups = read_groups(path)
    if not len(rows):
        raise FileFormatError(path, "no labels in the file: 'group' is empty or all zero")
    nodes, owners = np.unique(rows, return_inverse=True)
    classes, columns = np.unique(groups, return_inverse=True)
    return Labels.from_pairs(nodes, classes, owners, columns)


def _encode(texts: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the distinct values in order of first occurrence, integers if all are, and the code of each."""
    integers = plain_integers(texts)
    encoded = (texts if integers is None else integers).dictionary_encode()
    values = encoded.dictionary
    return (
        string_objects(values) if integers is None else values.to_numpy(zero_copy_only=False),
        encoded.indices.to_numpy(zero_copy_only=False),
    )


def _joint(mark: int, lists: Any = None, given: str | None = None) -> str:
    """Return the separator between several labels of a node."""
    if given == "none":
        return "\n"  # no field contains it
    if given is not None:
        try:
            return chr(sniff.read_separator(given) or ord(" "))
        except ParameterError as error:
            raise InputError(str(error).replace("separator", "joint", 1)) from None
    if mark != ord(","):
        return ","
    # A comma in a column of a comma-separated file is in quotes.
    several = lists is not None and not pc.any(pc.match_substring(lists, ";")).as_py()
    return "," if several and pc.any(pc.match_substring(lists, ",")).as_py() else ";"


def _find_separator(path: str | os.PathLike[str], lines: Sequence[bytes], many: bool) -> int:
    """Return the separator that splits most lines in two; among ties the one that occurs first in a line.

    If no one does, or `many`, the one that splits most lines into as many fields as the first.
    """

    def score(mark: int, n_fields: int = 2) -> tuple[int, int, int]:
        rows = [sniff.split(raw, mark) for raw in lines]
        n_open = sum('"' in field.text and not field.quoted for row in rows for field in row)
        first = min((len(row[0].text) for row in rows if row and len(row) == n_fields), default=0)
        return sum(len(row) == n_fields for row in rows), -n_open, -first

    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    marks = [mark for mark in sniff.SEPARATORS if mark != WHITESPACE or ".csv" not in suffixes]
    for mark in marks:
        names = [field.text.lower() for field in sniff.split(lines[0], mark)]
        if len(names) > 2 and _NODE_NAMES & {*names} and _LABEL_NAMES & {*names}:
            return mark  # a header that tells its columns
    best = max(marks, key=score)
    if score(best)[0] and not many:
        return best
    widths = {mark: len(sniff.split(lines[0], mark)) for mark in marks}
    if max(widths.values()) < 2:
        return WHITESPACE
    return max(marks, key=lambda mark: (widths[mark] > 1, *score(mark, widths[mark])))


def _columns(
    rows: Sequence[Sequence[Field]], header: bool | None, node: Any, label: Any
) -> tuple[tuple[int, int], bool | None]:
    """Return the fields of nodes and labels, and whether the first line is a header; None: it may be one."""
    names = [field.text for field in rows[0]]
    words = [str(name) for name in (node, label) if name is not None and not str(name).isdecimal()]
    if header is None and words and set(words) <= set(names):
        header = True
    known = (
        names if header else [n if not n.isdecimal() else "" for n in names]
    )  # numbers in data are no names
    places = tuple(_place(names, known, *each) for each in ((node, "node"), (label, "label")))
    if len(names) <= 2 or "\r" in "".join(names):  # the reader tells what is wrong
        told = _is_header(rows) if header is None else header
        return (0 if places[0] is None else places[0], 1 if places[1] is None else places[1]), told
    lower = [name.lower() for name in names]
    labels = [k for k, name in enumerate(lower) if name in _LABEL_NAMES] or [
        k for k, name in enumerate(lower) if set(re.split(r"[\W_]+", name)) & _LABEL_NAMES
    ]
    nodes = [k for k, name in enumerate(lower) if name in _NODE_NAMES] or [
        k for k, name in enumerate(lower) if sniff.is_word(name) and k not in labels
    ]
    found = [
        given if given is not None else known[0] if len(known) == 1 else None
        for given, known in zip(places, (nodes, labels), strict=True)
    ]
    if found[0] is None or found[1] is None or found[0] == found[1]:
        shown = ", ".join(map(repr, names[:20]))
        raise InputError(
            f"which of the columns {shown} are node and label? Name them: node=NAME, label=NAME "
            "(--labels-node NAME --labels-label NAME)"
        )
    if header is None:
        both = found[0], found[1]
        chosen = [[row[k] for k in both] for row in rows if len(row) == len(names)]
        header = True if node is None or label is None else _is_header(chosen)
    return (found[0], found[1]), header


def _several_labels(mark: int) -> str:
    """Return how several labels of a node are written."""
    quotes = "put them in quotes or " if mark == ord(",") else ""
    return f"; if a node has several labels, {quotes}separate them by {_joint(mark)!r}"


def _place(names: Sequence[str], known: Sequence[str], given: Any, parameter: str) -> int | None:
    """Return the position of a column that is given by one of the `known` names or by number."""
    if given is None:
        return None
    if str(given) in known:
        return known.index(str(given))
    if str(given).isdecimal() and 0 < int(given) <= len(names):
        return int(given) - 1
    raise InputError(f"{parameter}={given!r}: no such column; columns: {', '.join(map(repr, names[:20]))}")


def _is_header(rows: Sequence[Sequence[Field]]) -> bool | None:
    """Whether the first of these lines is a header; None if it may be one or a node and its labels."""
    if len(rows[0]) != 2:
        return False
    node, label = rows[0]
    if node.text.lower() in _NODE_NAMES and label.is_name:
        return True
    if set(re.split(r"[\W_]+", label.text.lower())) & _LABEL_NAMES and sniff.is_word(node.text):
        return True
    below = [row for row in rows[1:] if len(row) == 2]
    words = node.is_name and label.is_name
    if words and below and len(below) == len(rows) - 1 and all(row[0].is_integer for row in below):
        return True
    doubtful = words and bool(below) and (sniff.is_word(node.text) or sniff.stands_out(rows[0], below))
    return None if doubtful else False


def _line_error(
    path: str | os.PathLike[str], layout: Layout, status: int, line: int, text: str
) -> FileFormatError:
    joint = _joint(layout.separator)
    wanted = f"expected a node and its labels separated by {layout.between}, several labels by {joint!r}"
    wanted += " or in quotes" if layout.separator == ord(",") else ""
    expected = {
        tokens.EMPTY_ID: f"{wanted}; a field is empty",
        tokens.BAD_QUOTE: "expected a closing quote at the end of the field",
        tokens.BAD_RETURN: "a carriage return inside a line: lines must end in \\n or \\r\\n",
        tokens.TOO_LONG: f"a line longer than {text_lines.MAX_LINE} bytes: not a file of labels",
    }.get(status, wanted)
    return FileFormatError(path, expected, line=line, text=text)
