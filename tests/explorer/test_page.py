"""The page without a browser: what is in it, what is refused, and that nothing in it can get out."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from kernelne import (
    Embedding,
    Graph,
    InputError,
    Labels,
    OutputError,
    ParameterError,
    UnknownNodeError,
    write_explorer,
)
from kernelne.graph.communities import louvain, modularity
from kernelne.view.explorer import facts
from kernelne.view.explorer import page as page_module

HOSTILE = ["</script><script>x()</script>", "<!--", "{{script}}", "\u2028", "a,\"b\"\n'c'", "ü \U0001f600"]
_TYPES = {"f4": "<f4", "i2": "<i2", "i4": "<i4", "u1": "u1", "u2": "<u2", "u4": "<u4"}


class _Reader(HTMLParser):
    """The scripts, styles and tags of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.policy, self.inside = [], {}, None, None

    def handle_endtag(self, tag):
        self.inside = None

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.inside = given.get("id", tag) if tag in ("script", "style", "title") else None
        self.tags.append((tag, given))
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]

    def handle_data(self, data):
        if self.inside:
            self.texts[self.inside] = self.texts.get(self.inside, "") + data


def read(path):
    reader = _Reader()
    reader.feed(path.read_text("utf-8"))
    reader.close()
    return reader


def content(path):
    return json.loads(read(path).texts["data"])


def unpack(packed):
    return np.frombuffer(base64.b64decode(packed["data"]), _TYPES[packed["type"]])


@pytest.fixture
def groups(random_graph):
    """Forty nodes by name, their vectors in another order than the graph's."""
    plain = random_graph(3, 40, directed=False, weighted=True, density=0.1)
    names = [f"n{i}" for i in range(40)]
    graph = Graph.from_scipy(plain.to_scipy(), nodes=names)
    vectors = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    return graph, Embedding(vectors[::-1], names[::-1])


def test_everything_is_there_and_row_by_row(groups, tmp_path):
    graph, embedding = groups
    values = [f"class {i % 3}" for i in range(40)]
    labels = Labels.from_values(embedding.nodes, values)
    path = tmp_path / "page.html"
    write_explorer(embedding, path, labels, graph=graph, layout="pca", n_nearest=4, title="Forty & <one>")
    page = content(path)
    assert page["title"] == "Forty & <one>"
    assert page["facts"] == ["40 nodes", f"{graph.n_edges} edges", "6 dimensions", "PCA"]
    assert page["ids"] == embedding.nodes.tolist()
    places = unpack(page["places"]).reshape(40, 2)
    assert np.abs(places).max() == 1
    by_key = {one["key"]: one for one in page["colourings"]}
    assert list(by_key) == ["label", "community", "degree"]
    label = by_key["label"]
    assert [label["classes"][code] for code in unpack(label["codes"])] == values
    degrees = dict(zip(graph.nodes, graph.degrees, strict=True))
    assert unpack(by_key["degree"]["values"]).tolist() == [degrees[node] for node in embedding.nodes]
    codes = unpack(by_key["community"]["codes"])
    assert by_key["community"]["classes"] == [str(i + 1) for i in range(codes.max() + 1)]
    # Which of many good partitions is found depends on the order of nodes; a good one it is.
    own = codes[embedding.index_of(graph.nodes)]
    assert modularity(graph, own) > 0.9 * modularity(graph, louvain(graph))
    starts, ends = unpack(page["links"]["starts"]), unpack(page["links"]["ends"])
    for row, node in enumerate(embedding.nodes):
        own = graph.index_of([node])[0]
        neighbours = graph.nodes[graph.neighbours[graph.offsets[own] : graph.offsets[own + 1]]]
        assert set(embedding.nodes[ends[starts[row] : starts[row + 1]]]) == set(neighbours)
    assert page["nearest"]["k"] == 4
    unit = embedding.vectors / np.linalg.norm(embedding.vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -2)
    rows = unpack(page["nearest"]["rows"]).reshape(40, 4)
    np.testing.assert_array_equal(rows, np.argsort(-cosines, axis=1)[:, :4])
    similarities = unpack(page["nearest"]["similarities"]) / 65535 * 2 - 1
    exact = np.take_along_axis(cosines, rows.astype(int), 1)
    np.testing.assert_allclose(similarities, exact.ravel(), atol=1e-4)


def test_hostile_ids_and_names_stay_data(tmp_path):
    path = tmp_path / "page.html"
    embedding = Embedding(np.random.default_rng(0).normal(size=(len(HOSTILE), 3)), HOSTILE)
    labels = Labels.from_values(HOSTILE, HOSTILE)
    write_explorer(embedding, path, labels, title=HOSTILE[0])
    page = read(path)
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert page.texts["title"] == HOSTILE[0]
    known = json.loads(page.texts["data"])
    assert known["ids"] == HOSTILE
    assert set(known["colourings"][0]["classes"]) == set(HOSTILE)
    half = "\ud800"
    write_explorer(Embedding(np.eye(2), [half, "b"]), path, title=half, overwrite=True)
    assert content(path)["ids"] == [half, "b"]


def test_the_policy_allows_this_script_and_style_and_no_request(tmp_path):
    path = tmp_path / "page.html"
    write_explorer(np.eye(3), path)
    page = read(path)

    def digest(text):
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    policy = dict(part.split(" ", 1) for part in page.policy.split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": digest(page.texts["script"]),
        "style-src": digest(page.texts["style"]),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    text = path.read_text("utf-8")
    assert "{{" not in text
    # A name in the language, never asked for.
    assert set(re.findall(r"https?://[^\"'\s]+", text)) == {"http://www.w3.org/2000/svg"}
    markup = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "XMLHttp")
    assert not [way for way in markup if way in page.texts["script"]]
    for tag, given in page.tags:
        assert not {"src", "style", *(name for name in given if name.startswith("on"))} & set(given), tag
        assert given.get("href", "data:,") == "data:,"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_stand_out_from_the_ground(theme, tmp_path):
    """At least 3 to 1, what the Web Content Accessibility Guidelines ask of graphics."""
    path = tmp_path / "page.html"
    write_explorer(np.eye(3), path)
    page = read(path)
    ground = re.findall(r"--ground: (#\w{6})", page.texts["style"])[theme == "dark"]
    lists = re.findall(rf"\b{theme}: (\[.*?\]|\"#\w+\")", page.texts["script"])
    colours = re.findall(r"#\w{6}", " ".join(lists))
    assert len(colours) == 8 + 6 + 1

    def luminance(colour):
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05

    for colour in colours:
        low, high = sorted([luminance(colour), luminance(ground)])
        assert high / low >= 3, colour


def test_several_labels_a_node_and_none(tmp_path):
    indicator = np.array([[True, True, False], [False, True, False]])
    labels = Labels([7, 9], ["x", "y", "z"], indicator)
    path = tmp_path / "page.html"
    write_explorer(Embedding(np.eye(3, 2), [9, 8, 7]), path, labels)
    page = content(path)
    (label,) = page["colourings"]
    codes, starts = unpack(label["codes"]), unpack(label["starts"])
    classes = [[label["classes"][c] for c in codes[a:b]] for a, b in pairwise(starts)]
    assert classes == [["y"], [], ["x", "y"]]
    assert page["ids"] == ["9", "8", "7"]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_nodes(n, tmp_path):
    path = tmp_path / "page.html"
    graph = Graph.from_edges([0], [0], nodes=np.arange(n))
    write_explorer(np.random.default_rng(0).normal(size=(n, 3)), path, np.zeros(n, int), graph=graph)
    page = content(path)
    assert page["ids"] is None
    assert np.isfinite(unpack(page["places"])).all()
    assert page.get("nearest", {"k": 0})["k"] == n - 1
    assert unpack(page["links"]["ends"]).tolist() == [0]


def test_without_graph_and_labels_there_is_one_colour(tmp_path):
    path = tmp_path / "page.html"
    write_explorer(np.eye(4), path, n_nearest=0)
    page = content(path)
    assert [one["key"] for one in page["colourings"]] == ["all"]
    assert "links" not in page
    assert "nearest" not in page


def test_vectors_of_two_columns_are_the_places(tmp_path):
    path = tmp_path / "page.html"
    write_explorer([[0.0, 0.0], [4.0, 0.0], [4.0, 2.0]], path)
    assert unpack(content(path)["places"]).tolist() == [-1, -0.5, 1, -0.5, 1, 0.5]
    write_explorer(np.eye(3), path, layout=np.array([[0, 5], [0, 5], [0, 5]]), overwrite=True)
    assert unpack(content(path)["places"]).tolist() == 6 * [0.0]


def test_direction_is_ignored_and_hubs_are_cut(tmp_path):
    n = facts.MOST_LINKS + 20
    hub, others = np.zeros(n - 1, int), np.arange(1, n)
    graph = Graph.from_edges(others, hub, weights=others.astype(float), directed=True)
    path = tmp_path / "page.html"
    write_explorer(np.random.default_rng(0).normal(size=(n, 2)), path, graph=graph)
    page = content(path)
    starts, ends = unpack(page["links"]["starts"]), unpack(page["links"]["ends"])
    assert ends[: starts[1]].tolist() == others[::-1][: facts.MOST_LINKS].tolist()  # the heaviest
    assert np.diff(starts)[1:].tolist() == (n - 1) * [1]
    assert f"{n - 1} edges" in page["facts"]
    degree = page["colourings"][1]
    assert unpack(degree["values"])[0] == n - 1
    assert degree["classes"] == ["0", "1", "2–3", "4–7", "8–15", "16–31", "32–63", "64–127"]
    assert unpack(degree["codes"])[:2].tolist() == [7, 1]


def test_many_nodes_have_neighbours_too(monkeypatch, tmp_path):
    """Beyond the limit, lowered here, they are found by cells and written in fewer steps."""
    monkeypatch.setattr(facts, "EXACT_UP_TO", 1000)
    monkeypatch.setattr(page_module, "EXACT_UP_TO", 1000)
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(12, 6))[rng.integers(0, 12, 1500)] + 0.3 * rng.normal(size=(1500, 6))) * 7
    vectors[5] = 0
    path = tmp_path / "page.html"
    write_explorer(vectors, path, layout="pca")
    near = content(path)["nearest"]
    assert near["k"] == facts.NEAREST_OF_MANY
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors / np.where(lengths > 0, lengths, 1)) @ (vectors / np.where(lengths > 0, lengths, 1)).T
    np.fill_diagonal(cosines, -2)
    rows = unpack(near["rows"]).reshape(1500, -1)
    assert (rows != np.arange(1500)[:, None]).all()
    exact = np.sort(cosines, axis=1)[:, : -near["k"] - 1 : -1]
    found = np.take_along_axis(cosines, rows.astype(np.int64), 1)
    others = np.arange(1500) != 5
    assert (found[others] > exact[others] - 1e-3).mean() > 0.95
    told = unpack(near["similarities"]).reshape(1500, -1) / near["steps"] * 2 - 1
    np.testing.assert_allclose(told[others], found[others], atol=1 / 255 + 1e-3)


def test_nearest_rows_by_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 4)) * 10.0 ** rng.integers(-25, 25, (50, 1))
    vectors[7] = 0
    whole = facts.nearest_rows(vectors, 5)
    monkeypatch.setattr(facts, "_BLOCK", 7)
    calls = []
    rows, cosines = facts.nearest_rows(vectors, 5, lambda done, total, loss: calls.append((done, total)))
    np.testing.assert_array_equal(rows, whole[0])
    np.testing.assert_allclose(cosines, whole[1], atol=1e-6)
    assert np.isfinite(cosines).all()
    assert (cosines[7] == 0).all()
    assert not (rows == np.arange(50)[:, None]).any()
    assert calls[-1] == (50, 50)
    assert len(calls) == 8


def test_refusals(groups, tmp_path):
    embedding = groups[1]
    path = tmp_path / "out.html"
    few = Graph.from_edges(["n1"], ["n2"])
    with pytest.raises(InputError, match="38 of 40 nodes of the embedding are not in it, such as 'n39'"):
        write_explorer(embedding, path, graph=few)
    with pytest.raises(UnknownNodeError, match="no node 'z' in this embedding"):
        write_explorer(embedding, path, graph=Graph.from_edges(["n1"], ["z"]))
    with pytest.raises(InputError, match="40 rows for a graph of 2 nodes"):
        write_explorer(embedding.vectors, path, graph=few)
    with pytest.raises(UnknownNodeError, match=r"1 of 2 labelled nodes are unknown here, the first is 'z'"):
        write_explorer(embedding, path, Labels.from_values(["n1", "z"], [0, 1]))
    with pytest.raises(InputError, match=r"values has shape \(3,\) for 40 nodes"):
        write_explorer(embedding, path, [1, 2, 3])
    with pytest.raises(ParameterError, match="layout='mds'"):
        write_explorer(embedding, path, layout="mds")
    with pytest.raises(InputError, match=r"layout: coordinates of shape \(2, 2\) for 40 nodes"):
        write_explorer(embedding, path, layout=np.eye(2))
    with pytest.raises(ParameterError, match="n_nearest=-1"):
        write_explorer(embedding, path, n_nearest=-1)
    with pytest.raises(ParameterError, match="random_state"):
        write_explorer(embedding, path, random_state="x")
    with pytest.raises(OutputError, match="no folder"):
        write_explorer(embedding, tmp_path / "none" / "out.html")
    assert list(tmp_path.iterdir()) == []
    path.write_text("precious")
    with pytest.raises(InputError, match="already exists"):
        write_explorer(embedding, path)
    assert path.read_text() == "precious"


def test_labels_of_a_series_go_by_id():
    pandas = pytest.importorskip("pandas")
    colouring = facts.label_colouring(pandas.Series(["a", "b", "c"]), np.array([2, 0, 1]))
    assert [colouring.classes[code] for code in colouring.codes] == ["c", "a", "b"]
