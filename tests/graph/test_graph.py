from __future__ import annotations

import pickle
from collections import defaultdict
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelne.errors import InputError, UnknownNodeError
from kernelne.graph import Graph, as_graph

small_ints = st.integers(0, 12)
any_ints = st.one_of(small_ints, st.integers(-(2**63), 2**63 - 1))
strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
weights = st.floats(0.125, 1000, width=32)


def edges_of(ids: Any) -> Any:
    return st.lists(st.tuples(ids, ids, weights), min_size=1, max_size=40)


def rows_of(graph: Graph) -> dict[Any, dict[Any, float]]:
    """The graph as a dict of dicts, read by the definition of its arrays."""
    rows: dict[Any, dict[Any, float]] = {}
    for i, node in enumerate(graph.nodes.tolist()):
        span = slice(graph.offsets[i], graph.offsets[i + 1])
        values = np.ones(span.stop - span.start) if graph.weights is None else graph.weights[span]
        rows[node] = dict(zip(graph.nodes[graph.neighbours[span]].tolist(), values.tolist(), strict=True))
    return rows


def reference(
    edges: Any, nodes: Any, directed: bool, weighted: bool, drop_self_loops: bool
) -> dict[Any, Any]:
    rows: dict[Any, Any] = {node: defaultdict(float) for node in nodes}
    for node in sorted({node for u, v, _ in edges for node in (u, v)} - set(nodes)):
        rows[node] = defaultdict(float)
    for u, v, w in edges:
        if u == v and drop_self_loops:
            continue
        for a, b in {(u, v)} if directed or u == v else {(u, v), (v, u)}:
            rows[a][b] = rows[a][b] + w if weighted else 1.0
    return {a: {b: float(np.float32(w)) for b, w in row.items()} for a, row in rows.items()}


def check_invariants(graph: Graph) -> None:
    assert graph.offsets.dtype == np.int64
    assert graph.neighbours.dtype == np.int32
    assert graph.offsets[0] == 0
    assert graph.offsets[-1] == len(graph.neighbours)
    assert len(graph.offsets) == graph.n_nodes + 1
    for i in range(graph.n_nodes):
        assert (np.diff(graph.neighbours[graph.offsets[i] : graph.offsets[i + 1]]) > 0).all()
    if graph.weights is not None:
        assert graph.weights.dtype == np.float32
        assert graph.weights.shape == graph.neighbours.shape
    for array in (graph.offsets, graph.neighbours, graph.weights, graph.nodes):
        assert array is None or not array.flags.writeable


@settings(deadline=None)
@given(
    st.one_of(edges_of(small_ints), edges_of(any_ints), edges_of(strings)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_from_edges_is_the_dict_of_dicts(edges, directed, weighted, drop_self_loops, data):
    known = sorted({node for u, v, _ in edges for node in (u, v)})
    pool = st.sampled_from(known) | (any_ints if isinstance(known[0], int) else strings)
    nodes = data.draw(st.lists(pool, max_size=5, unique=True))
    sources, targets, values = zip(*edges, strict=True)
    graph = Graph.from_edges(sources, targets, values if weighted else None, nodes, directed, drop_self_loops)
    check_invariants(graph)
    expected = reference(edges, nodes, directed, weighted, drop_self_loops)
    assert graph.nodes.tolist() == list(expected)
    assert rows_of(graph) == expected
    assert (graph.weights is not None) == weighted
    kept = {
        (u, v) if directed else tuple(sorted((u, v))) for u, v, _ in edges if u != v or not drop_self_loops
    }
    assert graph.n_edges == len(kept)
    assert graph.degrees.tolist() == [len(row) for row in expected.values()]
    assert graph.index_of(known[::-1]).tolist() == [list(expected).index(i) for i in known[::-1]]


@settings(deadline=None)
@given(edges_of(small_ints), st.booleans(), st.randoms())
def test_fingerprint_does_not_tell_how_a_graph_was_built(edges, directed, random):
    sources, targets, values = (list(column) for column in zip(*edges, strict=True))
    graph = Graph.from_edges(sources, targets, np.ceil(values), directed=directed)
    order = list(range(len(edges)))
    random.shuffle(order)
    shuffled = [[column[i] for i in order] for column in (sources, targets, np.ceil(values))]
    if not directed:
        shuffled[:2] = shuffled[1::-1]
    again = Graph.from_edges(
        np.array(shuffled[0], np.int16),
        pa.array(shuffled[1]),
        shuffled[2],
        nodes=graph.nodes,
        directed=directed,
    )
    assert again.fingerprint == graph.fingerprint
    assert Graph.from_scipy(graph.to_scipy(), graph.nodes, directed).n_edges == graph.n_edges


def test_fingerprint_sees_every_part():
    parts = [
        Graph.from_edges([1], [2]),
        Graph.from_edges([1], [2], directed=True),
        Graph.from_edges([1], [2], [1.0]),
        Graph.from_edges([1], [2], [2.0]),
        Graph.from_edges([1], [2], nodes=[2, 1]),
        Graph.from_edges([1], [2], nodes=[1, 2, 3]),
        Graph.from_edges([1], [3]),
        Graph.from_edges(["1"], ["2"]),
        Graph.from_networkx(nx.Graph([((1,), 2)])),
        Graph.from_networkx(nx.Graph([((2,), 2)])),
    ]
    assert len({graph.fingerprint for graph in parts}) == len(parts)


def test_the_example_worked_by_hand():
    graph = Graph.from_edges([5, 3, 3, 9], [3, 5, 3, 5], [1, 2, 4, 8], nodes=[9, 7])
    assert graph.nodes.tolist() == [9, 7, 3, 5]
    assert graph.nodes.dtype == np.int64
    assert graph.offsets.tolist() == [0, 1, 1, 3, 5]
    assert graph.neighbours.tolist() == [3, 2, 3, 0, 2]
    assert graph.weights.tolist() == [8, 4, 3, 8, 3]
    assert graph.n_edges == 3
    assert repr(graph) == "<Graph: 4 nodes, 3 edges, undirected, weighted>"


def test_strings_sort_by_code_point():
    graph = Graph.from_edges(["é", "Z", "a"], ["10", "2", "𝔸"])
    assert graph.nodes.tolist() == ["10", "2", "Z", "a", "é", "𝔸"]
    assert graph.nodes.dtype == object


@pytest.mark.parametrize("make", [list, tuple, np.array, pa.array, lambda x: np.array(x, object), iter])
def test_columns_of_many_types(make):
    for ids in ([3, 1, 3], ["c", "a", "c"]):
        expected = Graph.from_edges(ids, ids[::-1])
        assert Graph.from_edges(make(ids), make(ids[::-1])).fingerprint == expected.fingerprint
    dictionary = pa.chunked_array([pa.array(["c", "a", "c"]).dictionary_encode()])
    assert Graph.from_edges(dictionary, ["c", "a", "c"]).nodes.tolist() == ["a", "c"]


def test_sums_of_weights_are_made_in_float64():
    graph = Graph.from_edges([0] * 3, [1] * 3, [2.0**24, 1, 1])
    assert graph.weights.tolist() == [2**24 + 2] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "the graph has no nodes"),
        (([1], [1, 2]), "differ in length: 1 and 2"),
        (([1], [2], [1, 2]), "weights has 2 values for 1 edges"),
        (([1], [2], None, [3, 4, 3]), "the id 3 appears more than once"),
        (([10**12], [2], None, [3, 4, 3]), "the id 3 appears more than once"),
        ((["a"], ["b"], None, ["c", "c"]), "the id 'c' appears more than once"),
        (([1], ["2"]), "sources are int, targets are str.*convert"),
        (([1], [2], None, ["a"]), "nodes are str, sources are int"),
        (([1, "a"], [1, 2]), "sources: ids must be all ints or all strs"),
        (([1.0], [2]), "sources: ids must be ints or strs, not double"),
        ((np.array([1.0]), [2]), "sources: ids must be ints or strs, not double"),
        (([True], [2]), "sources: ids must be ints or strs, not bool"),
        (([b"a"], ["a"]), "sources: ids must be ints or strs, not binary"),
        (([2**63], [2]), "does not fit int64; pass the ids as strings"),
        ((np.array([2**63], np.uint64), [2]), "does not fit int64; pass the ids as strings"),
        (([1, None], [2, 3]), "an id is missing"),
        (("ab", ["a", "b"]), "must be a list or array"),
        ((5, [1]), "must be a list or array"),
        (([[1]], [1]), "ids must be ints or strs"),
        ((np.array([[1]]), [1]), "one dimension"),
        ((["\ud800"], ["a"]), "ids must be all ints or all strs"),
        (([1, 1], [2, 2], [1, np.nan]), r"weights\[1\] is nan"),
        (([1, 1], [2, 2], [np.inf, 1]), r"weights\[0\] is inf"),
        (([1, 1], [2, 2], [1, -0.5]), r"weights\[1\] is -0.5"),
        (([1, 1], [2, 2], ["1", "2"]), "weights must be a list or array of numbers"),
        (([1, 1], [2, 2], [3e38, 3e38]), r"edge \(1, 2\): its weight 6e\+38 is outside the range of float32"),
        (([1], [2], [1e-60]), r"edge \(1, 2\): its weight 1e-60 is outside the range of float32"),
    ],
)
def test_bad_edges_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Graph.from_edges(*arguments)


def test_zero_weights_drop_the_edge_and_keep_its_nodes():
    with pytest.warns(UserWarning, match="edges of weight zero dropped: 2; their nodes are kept") as caught:
        graph = Graph.from_edges([1, 2, 3], [2, 3, 3], [0, 5, -0.0])
    assert caught[0].filename == __file__
    assert rows_of(graph) == {1: {}, 2: {3: 5}, 3: {2: 5}}


def test_only_nodes_are_a_graph():
    graph = Graph.from_edges([], [], nodes=["b", "a"])
    assert graph.nodes.tolist() == ["b", "a"]
    assert graph.offsets.tolist() == [0, 0, 0]
    assert graph.n_edges == 0


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("drop_self_loops", [False, True])
@pytest.mark.parametrize(
    ("ends", "nodes", "expected"),
    [
        ([], ["b", "a"], ["b", "a"]),
        ([], [7], [7]),
        ([7], None, [7]),
        ([7], [7], [7]),
        ([3, 10**12, 3], [5], [5, 3, 10**12]),
        (["y", "x"], ["z"], ["z", "x", "y"]),
    ],
)
def test_graphs_without_an_edge_between_two_nodes(ends, nodes, expected, directed, weighted, drop_self_loops):
    values = [2.0] * len(ends) if weighted else None
    graph = Graph.from_edges(ends, ends, values, nodes, directed, drop_self_loops)
    check_invariants(graph)
    kept = [] if drop_self_loops else ends
    assert graph.nodes.tolist() == expected
    assert graph.n_edges == len(set(kept))
    assert graph.degrees.tolist() == [int(node in kept) for node in expected]
    loops = [kept.count(node) * 2.0 if weighted else float(node in kept) for node in expected]
    assert (graph.to_scipy().toarray() == np.diag(loops)).all()
    assert (graph.weights is not None) == weighted
    assert graph.index_of(expected[::-1]).tolist() == list(range(len(expected)))[::-1]
    assert pickle.loads(pickle.dumps(graph)).fingerprint == graph.fingerprint
    assert rows_of(Graph.from_scipy(graph.to_scipy(), expected)) == rows_of(graph)


def test_index_of_names_unknown_ids():
    graph = Graph.from_edges(["anna", "bert"], ["carl", "hanna"])
    assert graph.index_of(np.array(["carl", "anna", "carl"])).tolist() == [2, 0, 2]
    assert graph.index_of([]).dtype == np.int64
    with pytest.raises(
        InputError, match=r"unknown node id 'ana' \(1 more are unknown\); close ids: 'anna', 'hanna'"
    ):
        graph.index_of(["bert", "ana", "zzz"])
    with pytest.raises(InputError, match="mix ints and strs"):
        graph.index_of([1])
    with pytest.raises(InputError, match="list or array"):
        graph.index_of("anna")
    with pytest.raises(InputError, match="unknown node id 12; close ids: 11, 10, 20"):
        Graph.from_edges([10, 20, 40], [11, 30, 50]).index_of([12])
    tuples = Graph.from_networkx(nx.Graph([((0, 1), "a")]))
    assert tuples.index_of(["a", (0, 1)]).tolist() == [1, 0]
    with pytest.raises(InputError, match=r"unknown node id \(5,\)"):
        tuples.index_of([(5,)])
    with pytest.raises(UnknownNodeError, match=r"unknown node id 'zzz'; the first ids are \(0, 1\), 'a'"):
        tuples.index_of(["zzz"])
    with pytest.raises(InputError, match="not a node id: unhashable"):
        tuples.index_of([[5]])


def test_a_graph_cannot_be_changed():
    graph = pickle.loads(pickle.dumps(Graph.from_edges([1, 2], [2, 3], [1, 2])))
    check_invariants(graph)
    with pytest.raises(AttributeError):
        graph.directed = True
    with pytest.raises(ValueError, match="read-only"):
        graph.weights[0] = 7


@settings(deadline=None)
@given(edges_of(small_ints), st.booleans(), st.booleans())
def test_round_trip_through_scipy(edges, directed, weighted):
    sources, targets, values = zip(*edges, strict=True)
    graph = Graph.from_edges(sources, targets, values if weighted else None, directed=directed)
    matrix = graph.to_scipy()
    assert matrix.dtype == np.float32
    dense = np.zeros((graph.n_nodes, graph.n_nodes))
    for u, row in rows_of(graph).items():
        for v, w in row.items():
            dense[graph.index_of([u])[0], graph.index_of([v])[0]] = w
    assert (matrix.toarray() == dense).all()
    back = Graph.from_scipy(matrix.tocoo(), nodes=graph.nodes, directed=directed)
    assert rows_of(back) == rows_of(graph)
    assert back.directed == directed
    check_invariants(back)
    guessed = Graph.from_scipy(dense, nodes=graph.nodes)
    assert guessed.directed == (not (dense == dense.T).all())
    assert rows_of(guessed) == rows_of(graph)


def test_from_scipy_keeps_the_weights_of_a_symmetric_matrix():
    matrix = scipy.sparse.coo_matrix(([2.0, 2.0, 3.0, 0.0], ([0, 1, 2, 0], [1, 0, 2, 2])), shape=(3, 3))
    graph = Graph.from_scipy(matrix)
    assert not graph.directed
    assert rows_of(graph) == {0: {1: 2.0}, 1: {0: 2.0}, 2: {2: 3.0}}
    assert graph.n_edges == 2
    dropped = Graph.from_scipy(matrix, nodes=["a", "b", "c"], drop_self_loops=True)
    assert rows_of(dropped) == {"a": {"b": 2.0}, "b": {"a": 2.0}, "c": {}}
    assert matrix.nnz == 4
    matrix.data[:] = 9
    assert graph.weights.tolist() == [2, 2, 3]


def test_from_scipy_adds_duplicates_and_reads_bool_and_int():
    doubled = scipy.sparse.coo_array(([1, 1, 1], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert rows_of(Graph.from_scipy(doubled)) == {0: {1: 2.0}, 1: {0: 1.0}}
    for dtype in (np.bool_, np.int8, np.float64):
        ring = scipy.sparse.csr_array(np.array([[0, 1], [1, 0]], dtype))
        assert Graph.from_scipy(ring).weights is None


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        (np.ones((2, 3)), {}, r"must be square; this one has shape \(2, 3\)"),
        (np.array([[0, 1], [0, 0]]), {"directed": False}, "not symmetric: pass directed=True"),
        (np.array([[0, 1], [2, 0]]), {"directed": False}, "not symmetric"),
        (np.array([[0, np.nan], [0, 0]]), {}, r"entry \(0, 1\) is nan"),
        (np.array([[0, 0], [-2, 0]]), {}, r"entry \(1, 0\) is -2"),
        (np.array([[0, 1j], [1j, 0]]), {}, "real numbers, not complex128"),
        (np.eye(2) * 1e300, {}, "outside the range of float32"),
        (np.eye(2), {"nodes": [1]}, "nodes has 1 ids for a matrix of 2 rows"),
        (np.eye(2), {"nodes": [1, 1]}, "the id 1 appears more than once"),
        (np.zeros((0, 0)), {}, "the graph has no nodes"),
    ],
)
def test_bad_matrices_are_refused(matrix, options, message):
    with pytest.raises(InputError, match=message):
        Graph.from_scipy(scipy.sparse.csr_array(matrix), **options)


@settings(deadline=None)
@given(
    edges_of(st.one_of(small_ints, strings, st.tuples(small_ints))),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_from_networkx_agrees_with_networkx(edges, directed, multi, weighted):
    kind = {
        (False, False): nx.Graph,
        (True, False): nx.DiGraph,
        (False, True): nx.MultiGraph,
        (True, True): nx.MultiDiGraph,
    }[directed, multi]
    g = kind()
    g.add_node("alone")
    for u, v, w in edges:
        g.add_edge(u, v, **({"weight": w} if weighted and w > 1 else {}))
    graph = Graph.from_networkx(g)
    check_invariants(graph)
    assert graph.nodes.tolist() == list(g.nodes)
    assert graph.directed == directed
    has_weight = any("weight" in data for _, _, data in g.edges(data=True))
    assert (graph.weights is not None) == has_weight
    if has_weight or not multi:
        expected = nx.to_scipy_sparse_array(g, weight="weight", dtype=np.float64).toarray()
        assert graph.to_scipy().toarray() == pytest.approx(expected)


def test_ids_of_networkx():
    assert Graph.from_networkx(nx.Graph([(7, np.int64(3))])).nodes.dtype == np.int64
    strs = Graph.from_networkx(nx.Graph([("b", np.str_("a"))]))
    assert strs.nodes.tolist() == ["b", "a"]
    assert strs.fingerprint == Graph.from_edges(["a"], ["b"], nodes=["b", "a"]).fingerprint
    mixed = Graph.from_networkx(nx.Graph([(1, "1"), ((1, 2), 2**70)]))
    assert mixed.nodes.tolist() == [1, "1", (1, 2), 2**70]
    assert Graph.from_networkx(nx.Graph([(2**70, 1)])).nodes.tolist() == [2**70, 1]
    assert Graph.from_networkx(nx.Graph([(1, 2, {"w": 3})]), weight="w").weights.tolist() == [3, 3]
    with pytest.raises(InputError, match="no nodes"):
        Graph.from_networkx(nx.Graph())
    for value in ("3", None, [1]):
        with pytest.raises(InputError, match=r"edge \(1, 2\): weight is .*, not a number"):
            Graph.from_networkx(nx.Graph([(1, 2, {"weight": value})]))
    with pytest.raises(InputError, match=r"weights\[0\] is -1"):
        Graph.from_networkx(nx.Graph([(1, 2, {"weight": -1})]))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_as_graph_takes_what_it_says():
    graph = Graph.from_edges([0, 1], [1, 2])
    assert as_graph(graph) is graph
    same = [
        graph.to_scipy(),
        nx.path_graph(3),
        [(0, 1), (1, 2)],
        ((0, 1), (1, 2)),
        np.array([[0, 1], [2, 1]]),
        np.matrix([[0, 1], [2, 1]]),
    ]
    assert {as_graph(obj).fingerprint for obj in same} == {graph.fingerprint}
    weighted = Graph.from_edges([0, 1], [1, 2], [0.5, 2])
    for obj in ([(0, 1, 0.5), (1, 2, 2)], np.array([[0, 1, 0.5], [1, 2, 2]])):
        assert as_graph(obj).fingerprint == weighted.fingerprint
    assert as_graph([("a", "b", 3)]).nodes.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ("edges.txt", "'edges.txt' is a path: read_graph"),
        (np.eye(4), r"ndarray of shape \(4, 4\): expected a Graph, a SciPy sparse matrix"),
        (np.eye(4), r"adjacency matrix, pass scipy.sparse.csr_array\(array\)$"),
        (np.eye(4, dtype=bool), r"adjacency matrix, pass scipy.sparse.csr_array\(array\)$"),
        (
            np.ones((3, 3), bool) ^ np.eye(3, dtype=bool),
            r"bool array of shape \(3, 3\) .* adjacency matrix, scipy.sparse.csr_array\(array\)",
        ),
        (np.eye(3, dtype=bool), r"bool array of shape \(3, 3\) .* adjacency matrix"),
        (np.eye(2, dtype=bool), r"bool array of shape \(2, 2\) .* adjacency matrix"),
        (np.ones((5, 2), bool), r"bool array of shape \(5, 2\) contains no node ids: give edges as ids"),
        (np.array([[0.5, 1, 1]]), "must be whole numbers"),
        (np.array([[np.nan, 1, 1]]), "must be whole numbers"),
        (np.array([[1.0, 2.0]]), "not double"),
        ([(1, 2), (1, 2, 3)], "cannot make a graph from a list"),
        ([1, 2], "cannot make a graph from a list"),
        ([], "no nodes"),
        (None, "cannot make a graph from a NoneType"),
    ],
)
def test_as_graph_refuses_the_rest(obj, message):
    with pytest.raises(InputError, match=message):
        as_graph(obj)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_small_symmetric_array_is_ambiguous():
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    for array in (path, path.astype(np.uint8), path.astype(object), np.matrix(path), path.tolist()):
        with pytest.raises(InputError, match=r"three weighted edges or the matrix"):
            as_graph(array)
    assert as_graph(np.array([[0, 1, 5], [1, 2, 6], [2, 0, 7]])).n_edges == 3


def test_names_and_weights_in_one_object_array():
    table = np.array([["a", "b", 0.5], ["b", "c", 2]], dtype=object)
    graph = as_graph(table)
    assert graph.nodes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(graph.weights, [0.5, 0.5, 2.0, 2.0])


def test_repeated_edges_are_counted():
    edges = [1, 2, 1, 3, 3], [2, 1, 2, 3, 3]
    assert Graph.from_edges(*edges).n_merged == 3
    assert Graph.from_edges(*edges, directed=True).n_merged == 2
    assert Graph.from_edges(*edges, drop_self_loops=True).n_merged == 2
    assert Graph.from_edges(*edges, weights=[1, 2, 1, 1, 0.5]).n_merged == 3
    again = pickle.loads(pickle.dumps(Graph.from_edges(*edges)))
    assert again.n_merged == 3
    assert again.fingerprint == Graph.from_edges([1, 3], [2, 3]).fingerprint
