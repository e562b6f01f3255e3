"""Graphs of other packages and tables in, graphs and embeddings out: nothing is lost on the way."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import rustworkx as rx
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelne import Embedding, KernelNE, read_graph
from kernelne.errors import InputError, MissingDependencyError, UnknownNodeError
from kernelne.graph import Graph, as_graph

ints = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


@st.composite
def graphs(draw: Any) -> Graph:
    nodes = draw(st.lists(draw(st.sampled_from([ints, texts])), min_size=1, max_size=8, unique=True))
    pairs = draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), min_size=1, max_size=14))
    weights = [draw(st.floats(0.125, 1000, width=32)) for _ in pairs] if draw(st.booleans()) else None
    sources, targets = zip(*pairs, strict=True)
    return Graph.from_edges(sources, targets, weights, nodes, draw(st.booleans()))


@settings(deadline=None)
@given(graphs())
def test_tables_give_the_graph_back(graph):
    table = graph.to_arrow()
    assert table.num_rows == graph.n_edges
    options = {"nodes": graph.nodes, "directed": graph.directed}
    for made in (table, graph.to_pandas(), pl.from_arrow(table), table.to_reader(), table.to_pydict()):
        assert Graph.from_table(made, **options).fingerprint == graph.fingerprint, type(made)
    again = pa.table({"a": table["target"], "b": table["source"], "n": range(graph.n_edges)})
    reverse = Graph.from_table(again, source="b", target="a", weight=False, **options)
    assert (
        reverse.fingerprint
        == Graph(graph.offsets, graph.neighbours, None, graph.directed, graph.nodes).fingerprint
    )


@settings(deadline=None)
@given(graphs())
def test_networkx_gives_the_graph_back(graph):
    made = graph.to_networkx()
    assert made.is_directed() == graph.directed
    assert as_graph(made).fingerprint == graph.fingerprint
    assert made.number_of_edges() == graph.n_edges


@settings(deadline=None)
@given(graphs())
def test_rustworkx_gives_the_graph_back(graph):
    made = rx.networkx_converter(graph.to_networkx())
    assert as_graph(made).fingerprint == graph.fingerprint
    numbers = (rx.PyDiGraph if graph.directed else rx.PyGraph)()
    rows = dict(zip(graph.nodes.tolist(), numbers.add_nodes_from(graph.nodes.tolist()), strict=True))
    table = graph.to_arrow().to_pydict()
    weights = table.get("weight", [None] * graph.n_edges)
    for source, target, weight in zip(table["source"], table["target"], weights, strict=True):
        numbers.add_edge(rows[source], rows[target], weight)
    assert as_graph(numbers).fingerprint == graph.fingerprint


def test_rustworkx_payloads_and_holes():
    g = rx.PyGraph()
    g.add_nodes_from(["a", "b", "c", "d"])
    g.add_edges_from([(0, 1, 2.5), (1, 2, None), (2, 3, {"weight": 3}), (3, 3, "words")])
    g.remove_node(0)
    graph = as_graph(g)
    assert graph.nodes.tolist() == ["b", "c", "d"]
    assert graph.to_scipy().toarray().tolist() == [[0, 1, 0], [1, 0, 3], [0, 3, 1]]
    g.add_node({"x": 1})
    assert as_graph(g).nodes.tolist() == g.node_indices() == [0, 1, 2, 3]
    same = rx.PyDiGraph()
    same.add_nodes_from(["a", "a"])
    same.add_edge(1, 0, True)
    assert as_graph(same).fingerprint == Graph.from_edges([1], [0], nodes=[0, 1], directed=True).fingerprint
    with pytest.raises(InputError, match="no nodes"):
        as_graph(rx.PyGraph())


IGRAPH = """
import igraph
from kernelne.errors import InputError
from kernelne.graph import Graph, as_graph

for directed in (False, True):
    for weighted in (False, True):
        weights = [0.5, 2.0, 4.0] if weighted else None
        g = igraph.Graph(n=4, edges=[(0, 1), (2, 1), (3, 3)], directed=directed)
        if weighted:
            g.es["weight"] = weights
        expected = Graph.from_edges([0, 2, 3], [1, 1, 3], weights, range(4), directed)
        assert as_graph(g).fingerprint == expected.fingerprint
        g.vs["name"] = ["a b", "é", "c", "d"]
        expected = Graph.from_edges(["a b", "c", "d"], ["é", "é", "d"], weights, g.vs["name"], directed)
        assert as_graph(g).fingerprint == expected.fingerprint
for name, values, message in (
    ("name", ["a", "a", "b", "c"], "'a' appears more than once"),
    ("weight", [1, None, 2], "None, not a number")
):
    (g.vs if name == "name" else g.es)[name] = values
    try:
        as_graph(g)
    except InputError as error:
        assert message in str(error), error
    else:
        raise AssertionError(message)
    g.vs["name"] = list("abcd")
print("done")
"""


def in_a_process(code: str, package: str) -> None:
    """Run code that imports a package of GPL, or one that warns, in a process of its own."""
    if subprocess.run(
        [sys.executable, "-c", f"import {package}"], capture_output=True, check=False
    ).returncode:
        pytest.skip(f"{package} is not installed")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


def test_igraph():
    in_a_process(IGRAPH, "igraph")


GEOMETRIC = """
import torch
from torch_geometric.data import Data, HeteroData
from kernelne.errors import InputError
from kernelne.graph import Graph, as_graph

both = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 3]])
weights = torch.tensor([0.5, 0.5, 2.0, 2.0, 4.0])
plain = Graph.from_edges([0, 1, 3], [1, 2, 3], nodes=range(5))
weighted = Graph.from_edges([0, 1, 3], [1, 2, 3], [0.5, 2, 4], range(5))
assert as_graph(Data(edge_index=both, num_nodes=5)).fingerprint == plain.fingerprint
for given in ({"edge_weight": weights}, {"edge_attr": weights}, {"edge_attr": weights[:, None]}):
    assert as_graph(Data(edge_index=both, num_nodes=5, **given)).fingerprint == weighted.fingerprint
features = Data(edge_index=both, num_nodes=5, edge_attr=torch.ones(5, 3))
assert as_graph(features).fingerprint == plain.fingerprint
data = Data(edge_index=both, edge_weight=torch.tensor([0.5, 0.25, 2.0, 2.0, 4.0]), x=torch.zeros(5, 2))
graph = as_graph(data)
assert graph.directed and graph.n_nodes == 5 and graph.n_edges == 5
assert as_graph(Data(edge_index=both[:, :1], num_nodes=2)).directed
for bad, message in (
    (Data(edge_index=both, num_nodes=3), "outside 0"),
    (Data(x=torch.zeros(2, 1)), "no edges"),
    (HeteroData(), "to_homogeneous"),
):
    try:
        as_graph(bad)
    except InputError as error:
        assert message in str(error), error
    else:
        raise AssertionError(message)
print("done")
"""


def test_torch_geometric():
    in_a_process(GEOMETRIC, "torch_geometric")


def test_columns_are_found_by_name_else_by_place():
    expected = Graph.from_edges(["a", "b"], ["b", "c"], [1.5, 2]).fingerprint
    ends = {"x": ["a", "b"], "y": ["b", "c"]}
    for names in (("source", "target"), ("SRC", "Dst"), ("From", "to"), ("u", "v"), ("left", "right")):
        frame = pd.DataFrame(dict(zip(names, ends.values(), strict=True)) | {"Weight": [1.5, 2]})
        assert as_graph(frame).fingerprint == expected
        assert as_graph(frame.rename(columns={"Weight": "anything"})).fingerprint == expected
    wide = pd.DataFrame({"year": [1, 2], "weight": [1.5, 2]} | {"target": ends["y"], "source": ends["x"]})
    assert as_graph(wide).fingerprint == expected
    with pytest.warns(UserWarning, match="unweighted; not used: 'year'"):  # a time is no weight
        assert as_graph(wide.drop(columns="weight")).weights is None
    third = wide.drop(columns="weight").rename(columns={"year": "n"})
    assert as_graph(third).weights.tolist() == [1, 1, 2, 2]
    told = r"not used: 'year', 'w'; weight=NAME \(--weight NAME\)"
    frame = wide.rename(columns={"weight": "w"})
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), frame.to_dict("list")):
        with pytest.warns(UserWarning, match=told):
            assert Graph.from_table(table).weights is None
        assert Graph.from_table(table, weight=False).weights is None
    words = wide[["source", "target"]].assign(kind="x", other="y")
    assert as_graph(words).weights is None  # nothing to warn of
    reordered = pd.DataFrame({"weight": [1.5, 2], "left": ends["x"], "right": ends["y"]})
    assert as_graph(reordered).fingerprint == expected
    assert Graph.from_table(wide, weight="year").weights.tolist() == [1, 1, 2, 2]
    assert Graph.from_table(wide, weight=False).weights is None
    by_place = pd.DataFrame([["a", "b", 1.5], ["b", "c", 2.0]])  # columns are called 0, 1 and 2
    assert as_graph(by_place).fingerprint == expected
    assert Graph.from_table(by_place, source=0, target=1, weight=2).fingerprint == expected
    some = by_place.loc[[1]].set_index(pd.Index([99], name="id"))  # an index is no column
    assert as_graph(some).nodes.tolist() == ["b", "c"]


def test_a_stored_index_of_pandas_is_no_weight(tmp_path):
    ends = {"source": ["a", "b"], "target": ["b", "c"]}
    plain = Graph.from_edges(*ends.values())
    frames = {
        "unnamed": pd.DataFrame(ends, index=[7, 9]),
        "named": pd.DataFrame(ends, index=pd.Index([7, 9], name="number")),
        "other": pd.DataFrame({"left": ends["source"], "right": ends["target"]}, index=[7, 9]),
    }
    for name, frame in frames.items():
        table = pa.Table.from_pandas(frame)
        assert len(table.column_names) == 3
        frame.to_parquet(tmp_path / "g.parquet")
        for graph in (as_graph(table), as_graph(frame), read_graph(tmp_path / "g.parquet")):
            assert graph.fingerprint == plain.fingerprint, name
    # Without what pandas says of it, it is still known by its name.
    bare = pa.Table.from_pandas(frames["unnamed"]).replace_schema_metadata()
    assert as_graph(bare).fingerprint == plain.fingerprint
    assert Graph.from_table(bare, weight="__index_level_0__").weights.tolist() == [7, 7, 9, 9]
    # Ends that were made an index are found by their usual names.
    indexed = pd.DataFrame(ends | {"w": [1.5, 2]}).set_index(["source", "target"])
    expected = Graph.from_edges(*ends.values(), [1.5, 2]).fingerprint
    assert as_graph(pa.Table.from_pandas(indexed)).fingerprint == expected
    for metadata in (b"{", b"[" * 200_000, b"[]", b'{"index_columns": 3}', b'{"index_columns": [{}]}'):
        odd = pa.table(ends).replace_schema_metadata({b"pandas": metadata})
        assert as_graph(odd).fingerprint == plain.fingerprint


def test_a_frame_whose_columns_are_called_as_parts_of_a_graph():
    frame = pd.DataFrame({"nodes": ["a"], "edges": ["b"], "is_directed": [2.0]})
    expected = Graph.from_edges(["a"], ["b"], [2]).fingerprint
    assert as_graph(frame).fingerprint == expected
    assert as_graph(pl.from_pandas(frame)).fingerprint == expected


def test_networkx_attributes_that_may_be_weights():
    g = nx.Graph([("a", "b", {"capacity": 2.5, "kind": "x", "open": True}), ("b", "c", {})])
    with pytest.warns(UserWarning, match=r"not used: 'capacity'; Graph\.from_networkx\(g, weight=NAME\)"):
        assert as_graph(g).weights is None
    assert Graph.from_networkx(g, weight="capacity").weights.tolist() == [2.5, 2.5, 1, 1]
    assert Graph.from_networkx(g, weight="none").weights is None  # as the caller wants it
    g["b"]["c"]["weight"] = 3  # one edge that has it is enough
    assert as_graph(g).weights.tolist() == [1, 1, 3, 3]
    assert as_graph(nx.Graph([("a", "b", {"kind": "x"})])).weights is None


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ({"a": [1]}, {}, "at least two columns"),
        ({"a": [1], "b": [2]}, {"source": "a"}, "both column names"),
        ({"a": [1], "b": [2]}, {"source": "a", "target": "z"}, "'z' does not exist; columns: 'a', 'b'"),
        ({"a": [1], "b": [2]}, {"weight": "z"}, "'z' does not exist"),
        (
            {"a": [1], "b": [2], "c": ["x"]},
            {},
            r"which of the columns 'a', 'b', 'c' are source and target\?",
        ),
        ({"a": [1], "b": [2], "c": [None]}, {"weight": "c"}, "the column 'c' holds|a weight is missing"),
        ({"a": [1], "b": [2], "weight": [-1.0]}, {}, "not negative"),
        ({"a": [1], "b": ["x"]}, {}, "ids mix ints and strs"),
        ({"a": [1.5], "b": [2.5]}, {}, "the column 'a': ids must be ints or strs, not double"),
        ({"a": [], "b": []}, {}, "no nodes"),
    ],
)
def test_tables_that_are_no_graphs(table, options, message):
    for made in (pd.DataFrame(table), pl.DataFrame(table, strict=False), pa.table(table)):
        with pytest.raises(InputError, match=message):
            Graph.from_table(made, **options)


def test_missing_ids_and_repeated_columns_are_refused():
    for ids in (["a", None], [1, None]):
        for make in (pd.DataFrame, pl.DataFrame, pa.table):
            with pytest.raises(InputError, match=r"an id is missing|not double|all ints or all strs"):
                as_graph(make({"source": ids, "target": ids}))
    frame = pd.DataFrame([[1, 2]], columns=["source", "source"])
    with pytest.raises(InputError, match="'source' appears more than once"):
        as_graph(frame)
    for column in (pa.chunked_array([[1, 2]]), pl.Series([1, 2])):
        with pytest.raises(InputError, match="as a table"):
            as_graph(column)


def test_an_adjacency_matrix_in_a_frame_is_no_list_of_edges():
    g = nx.path_graph(["a", "b", "c", "d"])
    for made in (nx.to_pandas_adjacency(g), nx.to_pandas_adjacency(nx.path_graph(5), dtype=int)):
        with pytest.raises(InputError, match="like an adjacency matrix: pass"):
            as_graph(made)
        assert Graph.from_scipy(made.to_numpy(), nodes=made.columns).n_edges == len(made) - 1
    assert as_graph(pd.DataFrame([[0, 1], [1, 2]])).n_edges == 2


def test_kinds_of_strings_and_integers_in_frames():
    expected = Graph.from_edges(["a", "b"], ["b", "c"]).fingerprint
    ends = {"source": ["a", "b"], "target": ["b", "c"]}
    for dtype in ("object", "str", "category", "string", pd.ArrowDtype(pa.string())):
        assert as_graph(pd.DataFrame(ends).astype(dtype)).fingerprint == expected, dtype
    for kind in (pl.String, pl.Categorical):
        assert as_graph(pl.DataFrame(ends).cast(kind)).fingerprint == expected
    numbers = Graph.from_edges([1, 2], [2, 3]).fingerprint
    for kind in ("int8", "uint32", "int64", "Int16"):
        assert as_graph(pd.DataFrame({"u": [1, 2], "v": [2, 3]}).astype(kind)).fingerprint == numbers


class Stream:
    """A table of a package that nobody here knows."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def test_any_table_that_arrow_can_read():
    graph = Graph.from_edges(["a", "b"], ["b", "c"], [1, 2])
    assert as_graph(Stream(graph.to_arrow())).fingerprint == graph.fingerprint
    assert as_graph(graph.to_arrow().to_batches()[0]).fingerprint == graph.fingerprint


class Interchange:
    """A data frame that only knows the interchange protocol, as older ones do."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        return self._table.__dataframe__(nan_as_null, allow_copy)


@pytest.mark.filterwarnings("ignore:.*interchange.*")
def test_the_interchange_protocol():
    graph = Graph.from_edges(["a", "b"], ["b", "c"], [1, 2])
    assert as_graph(Interchange(graph.to_arrow())).fingerprint == graph.fingerprint


def test_estimators_take_them(two_cliques):
    table, nodes = (
        two_cliques.to_arrow(),
        two_cliques.nodes[:-1],
    )  # the last has no edges, and tables no others
    model = KernelNE(dim=4, walks_per_node=20, random_state=1, n_threads=1)
    fitted = [model.fit(given).to_embedding() for given in (table, table.to_pandas(), pl.from_arrow(table))]
    for embedding in fitted:
        assert embedding.nodes.tolist() == nodes.tolist()
        np.testing.assert_array_equal(embedding.vectors, fitted[0].vectors)


@pytest.fixture
def embedding() -> Embedding:
    vectors = np.random.default_rng(0).normal(size=(3, 4))
    return Embedding(vectors, ["a b", "é", "c"], {"model": "x"})


def same(a: Embedding, b: Embedding) -> bool:
    return a.nodes.tolist() == b.nodes.tolist() and bool((a.vectors == b.vectors).all())


def test_embeddings_as_tables(embedding):
    table = embedding.to_arrow()
    for made in (table, pl.from_arrow(table), Stream(table)):
        back = Embedding.from_arrow(made)
        assert same(back, embedding)
    assert Embedding.from_arrow(table).provenance == {"model": "x"}
    frame = embedding.to_pandas()
    assert frame.index.tolist() == ["a b", "é", "c"]
    assert frame.index.name == "id"
    assert same(Embedding(frame, frame.index), embedding)
    frame.iloc[0, 0] = 7  # a copy
    assert embedding.vectors[0, 0] != 7
    whole = Embedding(np.eye(2), [5, -1])
    assert same(Embedding.from_arrow(whole.to_arrow()), whole)
    assert same(Embedding(whole.to_pandas(), whole.to_pandas().index), whole)
    with pytest.raises(InputError, match="columns 'id' and 'vector' are needed"):
        Embedding.from_arrow(pa.table({"id": [1]}))
    with pytest.raises(InputError, match="strings or 64-bit integers"):
        Embedding(np.eye(2), [(1, 2), 3]).to_arrow()


def test_embeddings_on_networkx_graphs(embedding):
    graph = Graph.from_edges(["a b"], ["é"])
    made = embedding.to_networkx(graph)
    assert set(made) == {"a b", "é"}
    np.testing.assert_array_equal(made.nodes["é"]["vector"], embedding["é"])
    own = nx.DiGraph([("c", "é", {"weight": 2})])
    copy = embedding.to_networkx(own, attribute="z")
    assert copy.is_directed()
    assert copy["c"]["é"] == {"weight": 2}
    np.testing.assert_array_equal(copy.nodes["c"]["z"], embedding["c"])
    assert dict(own.nodes["c"]) == {}
    with pytest.raises(UnknownNodeError, match="no node 'd'"):
        embedding.to_networkx(nx.Graph([("c", "d")]))


def test_embeddings_for_torch_and_gensim(embedding):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = embedding.to_torch()
    assert tensor.dtype == torch.float32
    np.testing.assert_array_equal(tensor.numpy(), embedding.vectors)
    pytest.importorskip("gensim", reason="gensim is not installed")
    keyed = embedding.to_gensim()
    np.testing.assert_array_equal(keyed["é"], embedding["é"])
    assert same(Embedding(keyed.vectors, keyed.index_to_key), embedding)
    assert Embedding(np.eye(2), [5, 7]).to_gensim().index_to_key == ["5", "7"]


@pytest.mark.parametrize(
    ("package", "call", "hint"),
    [
        ("pandas", lambda e, g: e.to_pandas(), r"\[graphs\]"),
        ("pandas", lambda e, g: g.to_pandas(), r"\[graphs\]"),
        ("networkx", lambda e, g: g.to_networkx(), r"\[graphs\]"),
        ("gensim.models", lambda e, g: e.to_gensim(), "needs gensim: pip install gensim"),
        ("torch", lambda e, g: e.to_torch(), r"\[gpu\]"),
    ],
)
def test_what_is_missing_is_named(monkeypatch, embedding, package, call, hint):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=hint):
        call(embedding, Graph.from_edges([1], [2]))


def test_nothing_is_imported_for_it():
    """A frame or a graph of another package is known by what it can do."""
    from pathlib import Path

    import kernelne

    for path in Path(kernelne.__file__).parent.rglob("*.py"):
        text = path.read_text()
        for package in ("igraph", "rustworkx", "torch_geometric", "polars"):
            assert f"import {package}" not in text
            assert f"from {package}" not in text
