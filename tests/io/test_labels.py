"""Labels: what a file of them may look like, and how they meet the nodes of a graph."""

from __future__ import annotations

import gzip
import os
import pickle
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernelne import Embedding, classify_nodes, cluster_nodes
from kernelne.errors import FileFormatError, InputError, ParameterError, UnknownNodeError
from kernelne.graph import Graph
from kernelne.io.labels import Labels, as_labels, by_id
from kernelne.io.read_labels import read_labels


def _write(tmp_path, text, name="labels.txt"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def _as_dict(labels):
    return {
        node: labels.classes[row].tolist()
        for node, row in zip(labels.nodes.tolist(), labels.indicator, strict=True)
    }


WANTED = {0: [5, 15], 1: [3], 7: [5]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.labels", "0 5,15\n1 3\n7 5\n"),
        ("a.labels", "0 15,5\n1 3,3\n7 5"),  # no order, a label twice, no end of line
        ("a.txt", "# c\n\n% c\n0\t5,15\r\n1\t3\r\n7\t5\r\n"),
        ("a.csv", "0,5;15\n1,3\n7,5\n"),
        ("a.csv", "node,label\n0,5\n1,3\n0,15\n7,5\n0,5\n"),
        ("a.csv", '"id","class"\n"0"," 5 ; 15"\n"1","3"\n"7",5\n'),
        ("a.csv", "0;5,15\n1;3\n7;5\n"),
        ("a.tsv", "node\tcommunity\n0\t5, 15\n1\t3\n7\t5\n"),
        ("a.txt", "0, 5;15\n1, 3\n7, 5\n"),
        ("a.txt", "paper subject\n0 5,15\n1 3\n7 5\n"),  # words above integers
        ("a.txt", "﻿0 5,15\n1 3\n7 5\n"),
    ],
)
def test_spellings_of_one_file(tmp_path, name, text):
    labels = read_labels(_write(tmp_path, text, name))
    assert _as_dict(labels) == WANTED
    assert labels.nodes.dtype == labels.classes.dtype == np.int64
    assert labels.classes.tolist() == [3, 5, 15]
    assert labels.single is None


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed(tmp_path, suffix):
    text = b"0 5,15\n1 3\n7 5\n"
    data = gzip.compress(text) if suffix == ".gz" else pa.compress(text, "zstd", asbytes=True)
    assert _as_dict(read_labels(_write(tmp_path, data, f"a.labels{suffix}"))) == WANTED


def test_strings_keep_their_spelling_and_order(tmp_path):
    labels = read_labels(_write(tmp_path, 'Åsa,Mr. Hi\n"Smith, J",Officer\n007,Mr. Hi\n', "a.csv"))
    assert labels.nodes.tolist() == ["Åsa", "Smith, J", "007"]
    assert labels.classes.tolist() == ["Mr. Hi", "Officer"]
    assert labels.single.tolist() == [0, 1, 0]
    assert labels.single.dtype == np.int64


def test_the_first_separator_of_a_line_counts(tmp_path):
    for text in ("1 a,b\n2 c,d\n", "1\ta,b\n2\tc,d\n", "1,a;b\n2,c;d\n", "1;a,b\n2;c,d\n"):
        assert _as_dict(read_labels(_write(tmp_path, text))) == {1: ["a", "b"], 2: ["c", "d"]}
    # Blanks belong to names in a .csv, and where the separator is given.
    text = "ann smith,x\nbob jones,y\n"
    assert read_labels(_write(tmp_path, text, "a.csv")).nodes.tolist() == ["ann smith", "bob jones"]
    given = read_labels(_write(tmp_path, text), separator="comma")
    assert given.nodes.tolist() == ["ann smith", "bob jones"]
    assert read_labels(_write(tmp_path, text)).nodes.tolist() == ["ann", "bob"]


def test_header(tmp_path):
    path = _write(tmp_path, "user label\nann x\n")
    assert read_labels(path).nodes.tolist() == ["ann"]
    assert read_labels(path, header=False).nodes.tolist() == ["user", "ann"]
    path = _write(tmp_path, "zoe blue\nann red\n")
    assert read_labels(path).nodes.tolist() == ["zoe", "ann"]
    assert read_labels(path, header=True).nodes.tolist() == ["ann"]
    # A label that is a number names nothing, whatever the nodes below are.
    assert read_labels(_write(tmp_path, "zoe 1\n5 1\n")).nodes.tolist() == ["zoe", "5"]


@pytest.mark.parametrize(
    ("text", "line", "found", "message"),
    [
        ("1 a\n\n# c\n2\n", 4, "2", "a node and its labels separated by whitespace, several labels by ','"),
        ("1 a\n2 b c\n", 2, "2 b c", "separated by whitespace"),
        ("1,a\n2,b,c\n", 2, "2,b,c", "several labels by ';'"),
        ("1,a\n,b\n", 2, ",b", "a field is empty"),
        ("1 a\n2 a,,b\n", 2, "2 a,,b", "a label before and after each ','"),
        ("node label\n1 a\n2 a,\n", 3, "2 a,", "a label before and after"),
        ('1,a\n2,"b\n', 2, '2,"b', "closing quote"),
        ("1 a\r2 b\n", 1, "1 a\r2 b", "carriage return"),
        (b"1 a\n2 \xff\n", 2, "2 \\xff", "not UTF-8"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, line, found, message):
    path = _write(tmp_path, text)
    with pytest.raises(FileFormatError, match=f"labels.txt:{line}: ") as caught:
        read_labels(path)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.text) == (line, found)


def test_bad_lines_far_into_a_file(tmp_path):
    lines = [f"node{i} c{i % 3}" for i in range(300_000)]
    lines[250_000] += ","
    with pytest.raises(FileFormatError, match=r"labels.txt:250001: .*'node250000 c1,'"):
        read_labels(_write(tmp_path, "\n".join(lines)))


@pytest.mark.parametrize(
    ("text", "message"), [("", "no labels"), ("# only\n\n", "no labels"), ("node label\n", "as a header")]
)
def test_no_labels(tmp_path, text, message):
    with pytest.raises(FileFormatError, match=message):
        read_labels(_write(tmp_path, text))


def test_not_a_file_of_labels(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_labels(tmp_path / "none.txt")
    with pytest.raises(FileFormatError, match="gzip"):
        read_labels(_write(tmp_path, "1 a\n", "a.gz"))
    with pytest.raises(ParameterError, match="separator"):
        read_labels(_write(tmp_path, "1 a\n"), separator="||")
    with pytest.raises(ParameterError, match="header='yes'"):
        read_labels(_write(tmp_path, "1 a\n"), header="yes")
    monkeypatch.setattr("kernelne.io.labels._LARGEST", 8)
    names = read_labels(_write(tmp_path, "1 a\n2 b\n3 c\n"))
    assert names.single.tolist() == [0, 1, 2]
    for ask in (lambda: names.indicator, lambda: names.for_nodes([1, 2, 3])):
        with pytest.raises(InputError, match="3 different labels for 3 nodes"):
            ask()
    assert names.for_nodes([3, 1], unknown="skip")[1].tolist() == [[False, False, True], [True, False, False]]


def test_rows_follow_the_nodes_of_the_graph():
    labels = Labels.from_values([3, 1, 2], ["b", "a", "b"])
    rows, indicator = labels.for_nodes(np.array([9, 1, 2, 3, 8]))
    assert rows.tolist() == [1, 2, 3]
    assert rows.dtype == np.int64
    assert indicator.tolist() == [[True, False], [False, True], [False, True]]


def test_among_keeps_names_of_those_that_are_there():
    table = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0]], bool)
    labels = Labels([5, 3, 9], ["x", "y", "z"], table)
    rows, found = labels.among([3, 4, 5], unknown="skip")
    assert rows.tolist() == [0, 2]
    assert found.nodes.tolist() == [3, 5]
    assert found.classes.tolist() == ["x", "y", "z"]
    owners, columns = found.pairs
    assert list(zip(owners.tolist(), columns.tolist(), strict=True)) == [(0, 2), (1, 0), (1, 1)]
    np.testing.assert_array_equal(found.indicator, labels.for_nodes([3, 4, 5], unknown="skip")[1])
    with pytest.raises(UnknownNodeError, match="the first is 9"):
        labels.among([3, 5])
    assert len(labels.among([1, 2], unknown="skip")[1]) == 0


def test_integers_meet_strings():
    as_text = Labels.from_values(["2", "10"], [0, 1])
    assert as_text.for_nodes([10, 2, 5])[0].tolist() == [0, 1]
    as_integers = Labels.from_values([2, 10], [0, 1])
    rows, indicator = as_integers.for_nodes(["10", "x", "2"])
    assert rows.tolist() == [0, 2]
    assert indicator.tolist() == [[False, True], [True, False]]
    # Hashables of networkx, too.
    nodes = np.empty(2, object)
    nodes[:] = [("a", 1), 10]
    assert as_integers.for_nodes(nodes, unknown="skip")[0].tolist() == [1]


def test_unknown_nodes():
    labels = Labels.from_values(["TP53", "BRCA9", "XYZ"], [0, 1, 1])
    graph = Graph.from_edges(["TP53", "BRCA1"], ["BRCA2", "EGFR"])
    with pytest.raises(UnknownNodeError) as caught:
        labels.for_nodes(graph.nodes)
    assert isinstance(caught.value, InputError)
    for part in ("2 of 3 labelled nodes", "'BRCA9'", "unknown='skip'", "close ids: 'BRCA2', 'BRCA1'"):
        assert part in str(caught.value)
    rows, indicator = labels.for_nodes(graph.nodes, unknown="skip")
    assert graph.nodes[rows].tolist() == ["TP53"]
    assert indicator.tolist() == [[True, False]]
    with pytest.raises(UnknownNodeError, match=r"the first is 99 .*close ids: 12, 11, 10"):
        Labels.from_values([11, 99], [0, 1]).for_nodes([10, 11, 12, 1])
    with pytest.raises(UnknownNodeError, match=r"'gene' .*the ids here are integers"):
        Labels.from_values(["gene", "1"], [0, 1]).for_nodes([1, 2])
    rows, indicator = labels.for_nodes([1, 2], unknown="skip")
    assert (rows.shape, indicator.shape) == ((0,), (0, 2))
    with pytest.raises(ParameterError, match="unknown='ignore'"):
        labels.for_nodes(graph.nodes, unknown="ignore")


def test_labels_check_what_they_are_given():
    with pytest.raises(InputError, match=r"bool of shape \(2, 1\)"):
        Labels([1, 2], ["a"], np.ones((2, 2), bool))
    with pytest.raises(InputError, match="bool"):
        Labels([1], ["a"], np.ones((1, 1)))
    with pytest.raises(InputError, match="node 2 has no label"):
        Labels([1, 2], ["a"], np.array([[True], [False]]))
    with pytest.raises(InputError, match="nodes contains duplicates"):
        Labels([1, 1], ["a"], np.ones((2, 1), bool))
    labels = Labels([1, 2], ["a", "b"], np.eye(2, dtype=bool))
    with pytest.raises(ValueError, match="read-only"):
        labels.indicator[0] = False
    both = Labels([1], ["a", "b"], np.ones((1, 2), bool))
    assert repr(both) == "<Labels of 1 nodes, 2 classes, up to 2 a node>"
    assert _as_dict(pickle.loads(pickle.dumps(labels)))[2] == ["b"]


def test_one_label_of_many_takes_little_memory():
    n = 300_000
    labels = Labels.from_values(np.arange(n), np.arange(n) // 2)  # a table of both would take 42 GiB
    assert len(labels.classes) == n // 2
    rows, codes = labels.single_for(np.arange(n)[::-1])
    assert codes[rows == 0].tolist() == [n // 2 - 1]
    assert repr(labels) == "<Labels of 300,000 nodes, 150,000 classes>"
    with pytest.raises(InputError, match="150,000 different labels"):
        labels.indicator  # noqa: B018


def test_values_that_are_no_labels():
    with pytest.raises(InputError, match=r"values\[1\] is None"):
        Labels.from_values([1, 2], ["a", None])
    with pytest.raises(InputError, match=r"values\[0\] is nan"):
        Labels.from_values([1, 2], [np.nan, 1.0])
    with pytest.raises(InputError, match=r"shape \(1,\) for 2 nodes"):
        Labels.from_values([1, 2], ["a"])


def test_nodes_without_a_label_are_left_out():
    pandas = pytest.importorskip("pandas")
    for missing in (None, float("nan"), np.nan, pandas.NA, [], [None]):
        given = {"a": "x", "b": missing, "c": "y"}
        for labels in (given, pandas.Series(given), pandas.Series(list(given.values()), ["a", "b", "c"])):
            assert _as_dict(by_id(labels)) == {"a": ["x"], "c": ["y"]}
    for series in (pandas.Series({"a": 1, "b": None}), pandas.Series({"a": 1, "b": None}, dtype="Int64")):
        assert _as_dict(by_id(series)) == {"a": [1]}
        assert by_id(series).classes.dtype == np.int64
    assert _as_dict(as_labels(["x", None], [5, 6])) == {5: ["x"]}
    with pytest.raises(InputError, match="no node has a label"):
        by_id({"a": None})


def test_several_labels_of_a_node():
    pandas = pytest.importorskip("pandas")
    wanted = {"a": ["x", "y"], "b": ["x"], "c": ["word"]}
    for kind in (list, set, tuple, frozenset, np.array):
        given = {"a": kind(["y", "x"]), "b": kind(["x"]), "c": "word"}
        for labels in (given, pandas.Series(given), given | {"d": kind([])}):
            assert _as_dict(by_id(labels)) == wanted
    same_length = {"a": ["x", "y"], "b": ["x", "z"]}
    assert _as_dict(by_id(same_length)) == same_length
    assert _as_dict(by_id({1: {3, 5}, 2: 3})) == {1: [3, 5], 2: [3]}
    with pytest.raises(InputError, match="give one per node"):
        as_labels([["x"], ["y"]], [1, 2, 3])
    for nested in ({1: [["x"]], 2: ["y"]}, {1: [["x"]], 2: [["y"]]}):
        with pytest.raises(InputError, match="all must be ints, or all strs"):
            by_id(nested)


def test_an_id_that_is_no_text_is_named():
    """Half of a surrogate pair: graphs of networkx may have such names."""
    good, bad = ["ann", "bob"], ["ann", "bob\ud800"]
    for ours, theirs in ((good, bad), (bad, good)):
        with pytest.raises(InputError, match=r"the id 'bob\\ud800' is not Unicode text \(character 4\)"):
            Labels.from_values(ours, ["x", "y"]).for_nodes(theirs)


def test_empty_cells_are_no_labels(tmp_path):
    labels = read_labels(_write(tmp_path, 'node,label\nann,\nbob,x\ncem,""\ndora,y;x\n', "a.csv"))
    assert _as_dict(labels) == {"bob": ["x"], "dora": ["x", "y"]}
    with pytest.raises(FileFormatError, match=r"a.csv:3: .*'bob,;x'"):
        read_labels(_write(tmp_path, "node,label\nann,\nbob,;x\n", "a.csv"))
    with pytest.raises(FileFormatError, match="every node is empty"):
        read_labels(_write(tmp_path, "ann,\nbob,\n", "a.csv"))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize("suffix", [b"", b".gz"])
def test_names_that_are_not_utf8(tmp_path, suffix):
    name = os.fsencode(tmp_path) + b"/caf\xe9.csv" + suffix
    with open(name, "wb") as file:
        file.write(gzip.compress(b"0,x\n") if suffix else b"0,x\n")
    for path in (name, os.fsdecode(name)):
        assert _as_dict(read_labels(path)) == {0: ["x"]}


def test_labels_that_name_their_nodes_go_by_name():
    """By position they would be told of the wrong nodes."""
    pandas = pytest.importorskip("pandas")
    nodes = [f"n{i}" for i in range(60)]
    vectors = 9.0 * np.repeat(np.eye(3), 20, axis=0) + np.random.default_rng(0).normal(0, 0.1, (60, 3))
    embedding = Embedding(vectors, nodes)
    named = dict(zip(nodes, np.repeat(["a", "b", "c"], 20).tolist(), strict=True))
    shuffled = {node: named[node] for node in np.random.default_rng(1).permutation(nodes).tolist()}
    in_order = pandas.Series(list(named.values()))
    for labels in (shuffled, pandas.Series(shuffled), in_order, list(named.values())):
        scores = classify_nodes(embedding, labels, train_sizes=[0.5], n_repeats=3)
        assert scores.micro_f1.min() == 1.0
        assert cluster_nodes(embedding, n_clusters=3, labels=labels, random_state=0).nmi == pytest.approx(1.0)
        made = as_labels(labels, embedding.nodes)
        assert dict(zip(made.nodes, made.classes[made.single], strict=True)) == named
    missing = dict(list(shuffled.items())[:50])
    assert classify_nodes(embedding, missing, train_sizes=[0.5], n_repeats=3).micro_f1.min() == 1.0
    with pytest.raises(InputError, match="go by node id"):
        classify_nodes(vectors, shuffled)
    with pytest.raises(InputError, match="all must be ints, or all strs"):
        Labels.from_values([1, 2], np.array([1, "a"], object))


@pytest.mark.parametrize("kind", [int, str])
def test_an_index_of_0_1_and_so_on_names_nodes_that_are_called_so(kind):
    """A Series without an index of its own has this one: it tells ids only where there are such ids."""
    pandas = pytest.importorskip("pandas")
    order = np.random.default_rng(0).permutation(60).tolist()
    vectors = 9.0 * np.repeat(np.eye(3), 20, axis=0) + np.random.default_rng(0).normal(0, 0.1, (60, 3))
    embedding = Embedding(vectors, list(map(kind, order)))
    named = dict(zip(order, np.repeat(["a", "b", "c"], 20).tolist(), strict=True))
    series = pandas.Series([named[node] for node in range(60)])
    scores = classify_nodes(embedding, series, train_sizes=[0.5], n_repeats=3)
    assert scores.micro_f1.min() == 1.0
    assert cluster_nodes(embedding, labels=series, random_state=0).nmi == pytest.approx(1.0)
    for labels in (series, series[:20], series.astype("category")):  # some of the nodes, too
        made = as_labels(labels, embedding.nodes)
        assert dict(zip(made.nodes.tolist(), made.classes[made.single], strict=True)) == dict(labels.items())
    # Labels for more nodes than there are: those are unknown, as in a dict.
    few = Embedding(vectors[:30], list(map(kind, order[:30])))
    with pytest.raises(UnknownNodeError, match="30 of 60 labelled nodes"):
        classify_nodes(few, series)


def test_an_index_of_0_1_and_so_on_is_a_position_where_nodes_are_not_called_so():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(["a", "b", "c"])
    for nodes in (["x", "y", "z"], [1, 2, 3], [0, 1, 3], ["x\ud800", "y", "z"], [(0, 0), (0, 1), (1, 1)]):
        made = as_labels(series, nodes)
        assert made.nodes.tolist() == nodes
        assert made.classes[made.single].tolist() == ["a", "b", "c"]
    assert by_id(series) is series  # nothing is known of ids: rows are all there is
    assert by_id(pandas.Series([], dtype=object), [0, 1]).empty
    # Any other index was made on purpose.
    with pytest.raises(UnknownNodeError):
        classify_nodes(Embedding(np.eye(3), ["x", "y", "z"]), series.iloc[::-1])


def test_the_output_of_predict_is_read(tmp_path):
    text = '"node","label","probability"\n"ann","new york",0.5\n"bob",,0.25\n"cem","x",1\n'
    for name in ("p.csv", "p.txt"):
        labels = read_labels(_write(tmp_path, text, name))
        assert _as_dict(labels) == {"ann": ["new york"], "cem": ["x"]}


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_tables_of_labels(tmp_path, suffix):
    def read(table, **options):
        path = tmp_path / f"t{suffix}"
        if suffix == ".parquet":
            pq.write_table(table, path)
        else:
            with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
                writer.write_table(table)
        return _as_dict(read_labels(path, **options))

    predicted = pa.table({"node": ["a", "b", "c"], "label": ["x", None, "y;x"], "probability": [0.5, 0.2, 1]})
    assert read(predicted) == {"a": ["x"], "c": ["x", "y"]}
    assert read(predicted, joint="none") == {"a": ["x"], "c": ["y;x"]}
    assert read(pa.table({"who": [1, 2], "what": [[5, 3], [3]]})) == {1: [3, 5], 2: [3]}
    assert read(pa.table({"who": [1, 2, 3], "what": [5.0, None, 3.0]})) == {1: [5], 3: [3]}
    assert read(pa.table({"k": ["x"], "n": [4], "s": [0]}), node="n", label=1) == {4: ["x"]}
    for table, options, message in (
        (pa.table({"k": ["x"], "n": [4], "s": [0]}), {}, "which of the columns 'k', 'n', 's'"),
        (pa.table({"k": ["x"], "n": [4.5]}), {}, "expected integers or words"),
        (pa.table({"k": ["x"]}), {}, "expected columns of nodes and labels"),
        (pa.table({"k": ["x"], "n": pa.array([None], pa.string())}), {}, "no labels in the file"),
        (predicted, {"separator": ","}, "separator=',': applies to text files"),
    ):
        with pytest.raises(InputError, match=message):
            read(table, **options)


def test_missing_labels_are_left_out(tmp_path):
    path = _write(tmp_path, "node,label\n1,NA\n2,x\n3,nan\n4,none\n5,x;None\n", "a.csv")
    with pytest.warns(UserWarning, match="3 of 6 labels are missing values, such as 'NA', and are left out"):
        labels = read_labels(path)
    assert _as_dict(labels) == {2: ["x"], 4: ["none"], 5: ["x"]}
    with pytest.raises(FileFormatError, match="no labels in the file: 2 of 2 labels are missing"):
        read_labels(_write(tmp_path, "node,label\n1,NA\n2,NA\n", "a.csv"))


def test_labels_that_look_joined(tmp_path):
    path = _write(tmp_path, "node,label\n1,a|b\n2,b|c\n3,a\n", "a.csv")
    with pytest.warns(UserWarning, match=r"most labels contain '\|', such as 'a\|b', .*--labels-joint '\|'"):
        read_labels(path)
    assert _as_dict(read_labels(path, joint="|")) == {1: ["a", "b"], 2: ["b", "c"], 3: ["a"]}
    assert len(read_labels(path, joint="none").classes) == 3
    one_each = _write(tmp_path, "node,label\n1,km/h\n2,m/s\n3,1/x\n", "a.csv")
    assert len(read_labels(one_each).classes) == 3


@pytest.mark.parametrize(
    "text", ["P,GO:1,GO:2\nQ,GO:1,GO:3\n", "P,GO:1\nQ,GO:1,GO:3\n", "P,GO:1,GO:2\nQ,GO:1\n"]
)
def test_several_labels_without_quotes(tmp_path, text):
    with pytest.raises(FileFormatError, match=r"several labels.*(quotes or .*by ';'|by ';' or in quotes)"):
        read_labels(_write(tmp_path, text, "a.csv"))


def test_nodes_with_several_labels_are_counted(tmp_path):
    assert read_labels(_write(tmp_path, "1 a,b\n2 a\n3 b,c,a\n")).n_several == 2
    assert read_labels(_write(tmp_path, "1 a\n2 a\n")).n_several == 0
