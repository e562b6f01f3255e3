"""Tables as people have them: the right graph or labels, or an error that says how to settle it."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernelne import Graph, ParameterError, read_graph, read_labels, write_graph
from kernelne._common.checks import check_duration
from kernelne.errors import FileFormatError, InputError
from kernelne.graph.tables import pair_of

TRANSACTIONS = pa.table(
    {
        "tx_id": [101, 102, 103, 104],
        "channel": ["web", "app", "web", "web"],
        "sender": ["ann", "bob", "ann", "cid"],
        "receiver": ["bob", "cid", "cid", "ann"],
        "amount": [10.0, 20.0, 30.0, 40.0],
        "timestamp": ["2024-01-01", "2024-01-31", "2024-03-01", "2024-03-31"],
    }
)


def _files(tmp_path, table):
    pq.write_table(table, tmp_path / "t.parquet")
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    frame = table.to_pandas()
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "i.csv")
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    return [tmp_path / name for name in ("t.parquet", "t.arrow", "t.csv", "i.csv", "t.tsv")]


def test_a_table_of_transactions(tmp_path):
    expected = Graph.from_edges(["ann", "bob", "ann", "cid"], ["bob", "cid", "cid", "ann"]).fingerprint
    for path in _files(tmp_path, TRANSACTIONS):
        with pytest.warns(
            UserWarning, match=r"unweighted; not used: 'tx_id', 'channel', 'amount', 'timestamp'"
        ):
            assert read_graph(path).fingerprint == expected
        paid = read_graph(path, weight="amount")
        assert sorted(paid.weights.tolist()) == [10, 10, 20, 20, 70, 70]
        other = read_graph(path, source="sender", target="channel", weighted=False)
        assert other.nodes.tolist() == ["ann", "app", "bob", "cid", "web"]
    by_number = read_graph(tmp_path / "t.csv", source=3, target="2", weight=5)
    assert by_number.nodes.tolist() == ["ann", "app", "bob", "cid", "web"]
    assert by_number.weights is not None


def test_columns_that_do_not_tell_are_refused(tmp_path):
    unknown = TRANSACTIONS.rename_columns(["tx_id", "channel", "x", "left", "amount", "timestamp"])
    for path in _files(tmp_path, unknown):
        with pytest.raises(
            FileFormatError, match=r"'tx_id', 'channel', .* are source and target\? .*--source"
        ):
            read_graph(path)
    for frame in (unknown, unknown.to_pandas()):
        with pytest.raises(InputError, match="are source and target"):
            Graph.from_table(frame)
    # Three columns of which the first numbers the rows, or that are times.
    for names in (["tx_id", "channel", "amount"], ["date", "place", "n"], ["a", "b", "kind"]):
        three = pa.table([pa.array(["1", "2"]), pa.array(["x", "y"]), pa.array(["u", "v"])], names)
        with pytest.raises(InputError, match="are source and target"):
            Graph.from_table(three)
    with pytest.raises(FileFormatError, match=r"the column 'nobody' does not exist; columns: 'tx_id'"):
        read_graph(tmp_path / "t.csv", source="nobody", target="channel")
    with pytest.raises(FileFormatError, match="both column names"):
        read_graph(tmp_path / "t.csv", source="sender")
    with pytest.raises(ParameterError, match="contradicts weighted=False"):
        read_graph(tmp_path / "t.csv", weight="amount", weighted=False)


@pytest.mark.parametrize(
    "names",
    [
        "user,item",
        "sender,receiver",
        "customer_id,product_id",
        "source,target",
        "User ID,Item ID",
        "TF,target",
    ],
)
def test_known_pairs_of_names_are_a_header(tmp_path, names):
    (tmp_path / "g.csv").write_text(f"{names}\nann,tea\nbob,tea\n")
    assert read_graph(tmp_path / "g.csv").nodes.tolist() == ["ann", "bob", "tea"]


@pytest.mark.parametrize("names", ["gene_a,gene_b", "protein,GO terms", "playlist,song", "wer,was"])
def test_names_that_may_be_nodes_must_be_settled(tmp_path, names):
    (tmp_path / "g.csv").write_text(f"{names}\nAC33,GO:0050314\nAC34,GO:1\nAC35,GO:1\n")
    with pytest.raises(FileFormatError, match=r"g\.csv:1: are these column names, or an edge\?"):
        read_graph(tmp_path / "g.csv")
    assert read_graph(tmp_path / "g.csv", header=True).n_nodes == 5
    assert read_graph(tmp_path / "g.csv", header=False).n_nodes == 7


def test_words_among_words_are_an_edge(tmp_path):
    (tmp_path / "g.csv").write_text("ann,tea\nbob,tea\ncid,water\ndora,tea\n")
    assert read_graph(tmp_path / "g.csv").n_edges == 4


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        (["id", "Source", "Target"], (1, 2)),
        (["nameOrig", "type", "nameDest"], (0, 2)),
        (["from_account", "to_account"], (0, 1)),
        (["start_time", "end_time", "start_station", "end_station"], (2, 3)),
        (["from_name", "to_name", "from_bank", "to_bank"], (0, 1)),  # the names without "name" are a pair
        (["from_city", "to_city", "from_bank", "to_bank"], None),  # which of the two?
        (["protein1", "protein2", "score"], (0, 1)),
        (["Gene A", "x", "Gene B"], (0, 2)),
        (["a1", "b2"], None),
        (["source1", "target1"], None),
        (["amount", "channel"], None),
    ],
)
def test_pairs_of_names(names, pair):
    assert pair_of(names) == pair


def test_ages(tmp_path):
    days = [0, 30, 60, 90]
    for path in _files(tmp_path, TRANSACTIONS):
        graph = read_graph(path, time="timestamp", half_life="30d", weight="amount", directed=True)
        expected = Graph.from_edges(
            TRANSACTIONS["sender"].to_pylist(), TRANSACTIONS["receiver"].to_pylist(),
            [10 / 8, 20 / 4, 30 / 2, 40], directed=True,
        )  # fmt: skip
        assert graph.fingerprint == expected.fingerprint
    numbers = TRANSACTIONS.to_pandas().assign(timestamp=days)
    plain = Graph.from_table(numbers, time="timestamp", half_life=15, weight=False)
    assert sorted(plain.weights.tolist()) == [2**-6, 2**-6, 0.0625, 0.0625, 1.25, 1.25]
    dated = numbers.assign(timestamp=pd.to_datetime(TRANSACTIONS["timestamp"].to_pylist(), utc=True))
    aged = Graph.from_table(dated, time="timestamp", half_life="15d", weight=False)
    assert aged.fingerprint == plain.fingerprint
    ancient = Graph.from_table({"u": [1, 2], "v": [2, 3], "t": [0, 1e9]}, time="t", half_life=1)
    assert ancient.n_edges == 2  # the oldest edge weighs next to nothing, and stays
    for options, message in (
        ({"half_life": 3}, "needs the column of times"),
        ({"time": "timestamp", "half_life": "3 weeks"}, "s, min, h, d, w, y"),
        ({"time": "channel", "half_life": 3}, "'channel': expected numbers, or dates such as 2024-01-31"),
        ({"time": "when", "half_life": 3}, "'when' does not exist"),
    ):
        for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
            with pytest.raises(InputError, match=message):
                read_graph(path, weight="amount", **options)
    with pytest.raises(InputError, match="'t': the time of row 1 is nan"):
        Graph.from_table({"u": [1], "v": [2], "t": [np.nan]}, time="t", half_life=1)


def test_ages_of_unweighted_graphs(tmp_path):
    with pytest.warns(UserWarning, match="no weights of their own; not used: 'tx_id', 'channel', 'amount'"):
        expected = Graph.from_table(TRANSACTIONS, time="timestamp", half_life="30d")
    assert sorted(expected.weights.tolist()) == [0.125, 0.125, 0.25, 0.25, 1.5, 1.5]
    for path in _files(tmp_path, TRANSACTIONS):
        graph = read_graph(path, weighted=False, time="timestamp", half_life="30d")
        assert graph.fingerprint == expected.fingerprint
    four = pa.table({"a": ["x", "y"], "b": ["y", "z"], "c": [5, 7], "d": [1, 2]})
    for path in _files(tmp_path, four):
        if path.name == "i.csv":
            continue
        with pytest.warns(UserWarning, match="have no weights of their own; not used: 'c'"):
            graph = read_graph(path, time="d", half_life=1)
        assert sorted(graph.weights.tolist()) == [0.5, 0.5, 1, 1]
    for path in _files(tmp_path, four.select([0, 1, 3])):
        with pytest.raises(FileFormatError, match="no weights"):
            read_graph(path, weighted=True, source="a", target="b", time="d", half_life=1)
    named = Graph.from_table(four.rename_columns(["a", "b", "weight", "d"]), time="d", half_life=1)
    assert sorted(named.weights.tolist()) == [2.5, 2.5, 7, 7]


def test_times(tmp_path):
    """With times, but no half-life, walks follow the order: the arcs are kept one by one."""
    graphs = [
        read_graph(path, time="timestamp", weight="amount", directed=True)
        for path in _files(tmp_path, TRANSACTIONS)
    ]
    assert len({graph.fingerprint for graph in graphs}) == 1
    graph = graphs[0]
    plain = read_graph(tmp_path / "t.csv", weight="amount", directed=True)
    assert graph.fingerprint != plain.fingerprint
    np.testing.assert_array_equal(graph.neighbours, plain.neighbours)
    np.testing.assert_array_equal(graph.weights, plain.weights)
    sources = np.repeat(np.arange(graph.n_nodes), np.diff(graph.timed.offsets))
    found = sorted(
        zip(graph.timed.times, graph.nodes[sources], graph.nodes[graph.timed.neighbours], strict=True)
    )
    ids = (TRANSACTIONS[name].to_pylist() for name in ("sender", "receiver"))
    assert [each[1:] for each in found] == list(zip(*ids, strict=True))
    assert np.diff([each[0] for each in found]).tolist() == [30 * 86400.0] * 3
    assert pickle.loads(pickle.dumps(graph)).fingerprint == graph.fingerprint
    with pytest.warns(UserWarning, match="times of edges are left out"):
        write_graph(graph, tmp_path / "again.parquet")
    assert read_graph(tmp_path / "again.parquet").fingerprint == plain.fingerprint


def _aged(times, half_life):
    edges = {"u": range(len(times)), "v": range(1, len(times) + 1), "t": times}
    return Graph.from_table(edges, time="t", half_life=half_life).to_arrow()["weight"].to_pylist()


@pytest.mark.parametrize(
    "names", [("user_id", "item_id"), ("Customer ID", "Product ID"), ("author", "paper")]
)
def test_users_and_items_share_numbers(tmp_path, names):
    one, other = names
    table = pa.table({one: [1, 2, 3], other: [3, 4, 5]})
    apart = Graph.from_edges([f"{one}:1", f"{one}:2", f"{one}:3"], [f"{other}:3", f"{other}:4", f"{other}:5"])
    for path in _files(tmp_path, table):
        with pytest.raises(
            InputError, match=f"1 numbers in common, such as 3: .*--bipartite.*{one}:3 and {other}:3"
        ):
            read_graph(path, weighted=False)
        assert read_graph(path, weighted=False, bipartite=False).n_nodes == 5
        assert read_graph(path, weighted=False, bipartite=True).fingerprint == apart.fingerprint
    with pytest.raises(InputError, match="in common"):
        Graph.from_table(table)
    assert Graph.from_table(table, bipartite=True).fingerprint == apart.fingerprint
    more = Graph.from_table(table, bipartite=True, nodes=[f"{one}:9"])
    assert more.nodes[0] == f"{one}:9"
    for other_table in (
        table.rename_columns(["source", "target"]),
        pa.table({one: ["1", "3"], other: ["3", "4"]}),
        pa.table({one: [1, 2], other: [3, 4]}),
    ):
        assert Graph.from_table(other_table).n_edges > 1
    (tmp_path / "n.csv").write_text("1,2\n2,3\n")
    plain = read_graph(tmp_path / "n.csv", bipartite=True)
    assert plain.nodes.tolist() == ["source:1", "source:2", "target:2", "target:3"]
    with pytest.raises(ParameterError, match="bipartite"):
        Graph.from_table(table, bipartite="yes")


def test_bad_values_are_named_by_column_and_row(tmp_path):
    ids = {"u": [1, 2, 3], "v": [2, 3, 4]}
    for weights, message in (
        ([1.0, -12.5, 2.0], "'amount': the weight of row 2 is -12.5: weights must be finite"),
        ([1.0, 2.0, np.inf], "'amount': the weight of row 3 is inf"),
        ([1.0, None, 2.0], r"'amount': a weight is missing \(null\) in row 2"),
    ):
        pq.write_table(pa.table({**ids, "amount": weights}), tmp_path / "w.parquet")
        for ask in (
            lambda: read_graph(tmp_path / "w.parquet", weight="amount"),
            lambda given=weights: Graph.from_table(pa.table({**ids, "amount": given}), weight="amount"),
        ):
            with pytest.raises(InputError, match=message):
                ask()
    with pytest.raises(InputError, match=r"'t': the time of row 3 is missing \(null\)"):
        Graph.from_table(pa.table({**ids, "t": [1, 2, None]}), time="t", half_life=1)


def test_units_of_times():
    day = 86400
    start = 1.7e9
    assert _aged([start, start + day], "1d") == [0.5, 1]
    assert _aged([1000 * start, 1000 * (start + day)], "1d") == [0.5, 1]
    assert _aged([int(1e6 * start), int(1e6 * (start + day))], "1d") == [0.5, 1]
    assert _aged([int(1e9 * start), int(1e9 * (start + day))], "1d") == [0.5, 1]
    for written in ("%Y%m%d", "%Y%m%d%H", "%Y%m%d%H%M", "%Y%m%d%H%M%S"):  # dates, not numbers
        dates = [pd.Timestamp(text).strftime(written) for text in ("2024-02-28", "2024-03-01")]
        for times in (dates, [int(date) for date in dates]):
            assert _aged(times, "2d") == [0.5, 1]
            with pytest.raises(ParameterError, match="'t' holds dates, so give a unit"):
                _aged(times, 2)
    for times in (
        [20240130, 20240132],
        [20240130, 20241301],
        [19000, 19001],
        [202401310000, 202401320000],
        [202401310000, 202401312400],
        [2020, 2021],
        [1, start],
    ):
        with pytest.raises(
            ParameterError, match=r"'t' holds numbers from .* a number in the unit of the column"
        ):
            _aged(times, "1d")
    for half_life in (30, "30"):
        with pytest.raises(ParameterError, match=r"'t' holds dates, so give a unit .* such as 30d"):
            _aged(["2024-01-30", "2024-01-31"], half_life)
    with pytest.warns(UserWarning, match="2 of 3 edges are more than 20 half-lives .* newest is 2124-01-01"):
        _aged(["2024-01-30", "2024-01-31", "2124-01-01"], "30d")
    with pytest.warns(UserWarning, match="2 of 3 edges .* newest is 99: is one time wrong"):
        _aged([1, 2, 99], 2)


def test_half_lives():
    assert [check_duration("half_life", x) for x in (3, 0.5, "2", "90s", "1.5h", "2 d", "1w")] == [
        3,
        0.5,
        2,
        90,
        5400,
        172800,
        604800,
    ]
    for bad in (0, -1, np.inf, np.nan, True, "", "d", "1..5d", "1e3", "5 days", None, "-3d"):
        with pytest.raises(ParameterError, match="half_life"):
            check_duration("half_life", bad)


def test_columns_apply_to_tables(tmp_path):
    (tmp_path / "g.gml").write_text("graph [ node [ id 1 ] ]")
    with pytest.raises(ParameterError, match="applies to edge lists and tables, not to GML"):
        read_graph(tmp_path / "g.gml", source="a", target="b")


LONG = "protein,go_term,evidence\nAC33,GO:1,IEA\nAC33,GO:2,IDA\nAC34,GO:1,IEA\n"


def test_labels_of_wide_tables(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(LONG)
    for options in ({}, {"node": "protein", "label": "go_term"}, {"node": 1, "label": "2", "header": True}):
        labels = read_labels(path, **options)
        assert labels.nodes.tolist() == ["AC33", "AC34"]
        assert labels.indicator.tolist() == [[True, True], [True, False]]
    assert read_labels(path, node="protein", label="evidence").classes.tolist() == ["IDA", "IEA"]
    path.write_text("a,b,c\nx,1,2\n")
    with pytest.raises(
        FileFormatError, match=r"which of the columns 'a', 'b', 'c' are node and label\? .*--labels-node"
    ):
        read_labels(path)
    assert read_labels(path, node="a", label="c").classes.tolist() == [2]
    with pytest.raises(FileFormatError, match="label='z': no such column; columns: 'a', 'b', 'c'"):
        read_labels(path, node="a", label="z")
    path.write_text("node\tlabel\tnote\n1\tx\tvery good\n2\ty\tbad\n")
    assert read_labels(path).classes.tolist() == ["x", "y"]


def test_several_labels_in_quotes(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text('protein,GO terms\nAC33,"GO:0050314, GO:0019163"\nAC34,GO:0050314\n')
    labels = read_labels(path)
    assert labels.classes.tolist() == ["GO:0019163", "GO:0050314"]
    assert labels.indicator.tolist() == [[True, True], [False, True]]
    whole = read_labels(path, joint="none")
    assert whole.classes.tolist() == ["GO:0050314", "GO:0050314, GO:0019163"]
    path.write_text('ann,"red; blue, dark"\nbob,red\n')  # where semicolons are there, they count
    assert read_labels(path).classes.tolist() == ["blue, dark", "red"]
    path.write_text("ann\tred|blue\n")
    assert read_labels(path, joint="|").classes.tolist() == ["blue", "red"]
    with pytest.raises(InputError, match=r"joint='\|\|'"):
        read_labels(path, joint="||")


def test_headers_of_labels(tmp_path):
    path = tmp_path / "labels.csv"
    for names in ("protein,GO terms", "user,role", "account_id,fraud", "node,anything"):
        path.write_text(f"{names}\nAC33,x\nAC34,y\nAC35,x\n")
        assert read_labels(path).nodes.tolist() == ["AC33", "AC34", "AC35"]
    for names in ("gene,kind", "wer,was"):
        path.write_text(f"{names}\nAC33,x1\nAC34,y1\nAC35,x1\n")
        with pytest.raises(
            FileFormatError, match=r"labels.csv:1: are these column names, or a node and its label"
        ):
            read_labels(path)
        assert len(read_labels(path, header=False)) == 4
        assert len(read_labels(path, header=True)) == 3


@pytest.mark.parametrize(
    ("text", "columns", "nodes"),
    [
        ("P00,GENE458,x\nP01,GENE459,y\nP02,GENE460,x\n", (2, 3), ["GENE458", "GENE459", "GENE460"]),
        ("5,1,x\n6,2,y\n7,1,x\n", (1, 3), [5, 6, 7]),  # 1 is a number, not the name of the second column
        ("1,2\n3,4\n", (1, 2), [1, 3]),
        ("gene,score,term\nP1,3,a\nP2,4,b\n", (1, 3), ["P1", "P2"]),
        ("gene,score,term\nP1,3,a\nP2,4,b\n", ("gene", 3), ["P1", "P2"]),
        ("a,2019,2020\nn1,x,y\nn2,y,x\n", ("a", "2020"), ["n1", "n2"]),
    ],
)
def test_label_columns_by_number(tmp_path, text, columns, nodes):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    assert read_labels(path, node=columns[0], label=columns[1]).nodes.tolist() == nodes


@pytest.mark.parametrize("mark", "|/;")
def test_joined_labels_are_told(tmp_path, mark):
    path = tmp_path / "labels.tsv"
    path.write_text(f"n1\ta\nn2\tb\nn3\ta{mark} b\nn4\tb\n")
    with pytest.warns(UserWarning, match=f"some labels contain .{re.escape(mark)}.*--labels-joint"):
        read_labels(path)
    path.write_text(f"n1\tc\nn2\tx{mark}y\nn3\tx{mark}y\nn4\td\n")
    read_labels(path)  # parts that are no labels: no warning


@pytest.mark.parametrize("names", [("CustomerID", "StockCode"), ("uid", "iid"), ("client", "where")])
def test_the_same_numbers_of_two_kinds_are_refused(names):
    table = {names[0]: [1, 2, 3], names[1]: [2, 3, 4]}
    with pytest.raises(InputError, match="2 numbers in common, such as 2: bipartite=True"):
        Graph.from_table(table, source=names[0], target=names[1])
    assert Graph.from_table(table, source=names[0], target=names[1], bipartite=True).n_nodes == 6
    assert Graph.from_table(table, source=names[0], target=names[1], bipartite=False).n_nodes == 4
