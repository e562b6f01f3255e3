"""Maps: what is drawn, in which colours, and that the same map is the same file."""

from __future__ import annotations

import itertools
import re
import sys

import numpy as np
import pytest

from kernelne import Embedding, Graph, InputError, Labels, MissingDependencyError, ParameterError, plot_map
from kernelne.view import plot

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def groups():
    """Three groups of 100 nodes in the plane, as they are laid out; and their names."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 100)
    places = np.array([[0, 0], [10, 0], [0, 10]])[codes] + rng.normal(size=(300, 2))
    names = [f"n{i}" for i in range(300)]
    return Embedding(places, names), Labels.from_values(names, np.array(["ant", "bee", "cat"])[codes])


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved."""
    figures = []
    save = plot._save
    monkeypatch.setattr(plot, "_save", lambda figure, *args: figures.append(figure) or save(figure, *args))
    return figures


def legend(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def points(figure):
    """By colour the places of points."""
    found = {}
    for collection in figure.axes[0].collections:
        if type(collection).__name__ == "PathCollection" and len(collection.get_offsets()):
            colour = tuple(np.round(collection.get_facecolor()[0][:3] * 255).astype(int))
            found.setdefault("#{:02x}{:02x}{:02x}".format(*colour), []).append(collection.get_offsets())
    return {colour: np.vstack(parts) for colour, parts in found.items()}


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_same_map_is_the_same_file(groups, tmp_path, suffix):
    embedding, labels = groups
    files = [tmp_path / f"{i}{suffix}" for i in range(2)]
    for file in files:
        plot_map(embedding, file, labels, graph=[("n0", "n1"), ("n1", "n299")])
    first, second = (file.read_bytes() for file in files)
    assert first == second
    assert first.startswith({".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix])
    with pytest.raises(InputError, match="already exists; pass overwrite=True"):
        plot_map(embedding, files[0], labels)
    plot_map(embedding, files[0], labels, dark=True, title="", overwrite=True)
    assert files[0].read_bytes() != first


def test_without_a_path_the_figure_is_returned(groups, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    monkeypatch.chdir(tmp_path)
    figure = plot_map(groups[0], labels=groups[1], title="Groups")
    assert isinstance(figure, Figure)
    assert figure.axes[0].get_title(loc="left") == "Groups"
    assert list(tmp_path.iterdir()) == []
    assert plot_map(groups[0], tmp_path / "a.png") is None


def test_classes_have_colours_and_names(groups, tmp_path, drawn):
    embedding, labels = groups
    plot_map(embedding, tmp_path / "a.png", labels)
    (figure,) = drawn
    assert legend(figure) == ["ant", "bee", "cat"]
    assert [text.get_text() for text in figure.axes[0].texts] == ["ant", "bee", "cat"]
    assert figure.axes[0].get_title("left") == "300 nodes"
    found = points(figure)
    assert list(found) == list(plot.COLOURS[:3])
    for number, colour in enumerate(found):
        expected = embedding.vectors[100 * number : 100 * (number + 1)]
        assert sorted(found[colour].tolist()) == sorted(expected.astype(float).tolist())
    # The legend is beside the map, not on it.
    figure.canvas.draw()
    box, inside = figure.axes[0].get_legend().get_window_extent(), figure.axes[0].get_window_extent()
    assert box.x0 >= inside.x1 - 1
    assert box.x1 <= figure.bbox.x1


def test_places_found_before(groups, tmp_path, drawn):
    places = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    plot_map(groups[0], tmp_path / "a.png", layout=places)
    (found,) = points(drawn[0]).values()
    assert (found == places).all()


def test_long_titles_are_broken(groups, tmp_path, drawn):
    plot_map(groups[0], tmp_path / "a.png", title="every good boy does fine " * 6)
    (figure,) = drawn
    figure.canvas.draw()
    extent = figure.axes[0]._left_title.get_window_extent()
    assert figure.axes[0].get_title("left").count("\n") == 2
    assert extent.x1 <= figure.bbox.x1


def test_nodes_without_a_label_are_grey_and_strangers_left_out(groups, tmp_path, drawn):
    embedding, _ = groups
    some = Labels.from_values(["n0", "n1", "who"], ["b", "a", "a"])
    plot_map(embedding, tmp_path / "a.png", some)
    assert legend(drawn[0]) == ["no label", "a", "b"]
    assert [len(part) for part in points(drawn[0]).values()] == [298, 1, 1]
    with pytest.raises(InputError, match="none of its 1 nodes is in the embedding of 300 nodes"):
        plot_map(embedding, tmp_path / "b.png", Labels.from_values(["who"], [0]))


def test_several_labels_fill_and_rim(tmp_path, drawn):
    embedding = Embedding(np.arange(8.0).reshape(4, 2), [0, 1, 2, 3])
    indicator = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 1], [1, 0, 0]], bool)
    plot_map(embedding, tmp_path / "a.svg", Labels(range(4), ["x", "y", "z"], indicator))
    from matplotlib.colors import to_hex

    looks = {
        tuple(place): (
            to_hex(part.get_facecolor()[0]),
            to_hex(part.get_edgecolor()[0]),
            *part.get_linewidth(),
        )
        for part in drawn[0].axes[0].collections
        for place in part.get_offsets().tolist()
    }
    found = [looks[tuple(place)] for place in embedding.vectors.tolist()]
    x, y, z = plot.COLOURS[:3]
    assert [look[:2] for look in found] == [(y, x), (y, y), (y, z), (x, x)]
    assert [look[2] > 0 for look in found] == [True, False, True, False]


def test_many_classes(tmp_path, drawn):
    n = 5000
    codes = np.minimum(np.random.default_rng(0).geometric(0.05, n), 70)
    embedding = Embedding(np.random.default_rng(1).normal(size=(n, 2)), np.arange(n))
    labels = Labels.from_values(np.arange(n), codes)
    plot_map(embedding, tmp_path / "a.png", labels)
    names = legend(drawn[0])
    assert len(names) == 40
    rare = len(labels.classes) - 39
    assert names[-1] == f"other ({rare})"
    assert names[:5] == ["1", "2", "3", "4", "5"]
    looks = {
        (part.get_facecolor()[0].tobytes(), part.get_paths()[0].vertices.tobytes())
        for part in drawn[0].axes[0].collections
    }
    assert len(looks) == 40
    drawn[0].draw_without_rendering()
    boxes = [text.get_window_extent() for text in drawn[0].axes[0].texts]
    assert 0 < len(boxes) < 40
    for one, other in itertools.combinations(boxes, 2):
        assert not one.shrunk(0.8, 0.8).overlaps(other.shrunk(0.8, 0.8))
    figure = drawn[0]
    figure.canvas.draw()
    assert figure.axes[0].get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_names_are_taken_as_they_are(tmp_path, drawn):
    names = ["$x$", "_a", "b" * 40, "Zoë"]
    embedding = Embedding(np.random.default_rng(0).normal(size=(400, 2)), np.arange(400))
    labels = Labels.from_values(np.arange(400), np.repeat(names, 100))
    plot_map(embedding, tmp_path / "a.svg", labels, title="50 $ or $x$")
    text = (tmp_path / "a.svg").read_text()
    assert "50 $ or $x$" in text.replace("\\", "")
    assert legend(drawn[0])[3] == "b" * 29 + "…"
    assert len(legend(drawn[0])) == 4  # a name that starts with _ would be left out
    with pytest.warns(UserWarning, match="drawn as boxes") as told:
        plot_map(embedding, tmp_path / "b.svg", labels, title="山水")
    assert len(told) == 1


def test_names_that_are_no_text(groups, tmp_path):
    """Half of a surrogate pair, as labels of other programs may hold; no font can show it."""
    embedding, labels = groups
    bad = dict.fromkeys(labels.nodes.tolist(), "ant") | {"n7": "caf\ud800"}
    with pytest.raises(InputError, match=r"the label 'caf\\ud800' is not Unicode text \(character 4\)"):
        plot_map(embedding, tmp_path / "a.png", bad)
    with pytest.raises(InputError, match=r"the title 'caf\\ud800' is not Unicode text"):
        plot_map(embedding, tmp_path / "a.png", title="caf\ud800")
    assert list(tmp_path.iterdir()) == []


def test_edges(groups, tmp_path, drawn, monkeypatch):
    embedding, _ = groups
    graph = Graph.from_edges(["n0", "n0", "n5", "who"], ["n1", "n0", "n6", "n1"], directed=True)
    plot_map(embedding, tmp_path / "a.png", graph=graph)
    (lines,) = (part for part in drawn[0].axes[0].collections if hasattr(part, "get_segments"))
    expected = embedding[["n0", "n1"]], embedding[["n5", "n6"]]
    assert np.allclose(lines.get_segments(), expected)
    monkeypatch.setattr(plot, "_MOST_EDGES", 1)
    plot_map(embedding, tmp_path / "b.png", graph=graph)
    (lines,) = (part for part in drawn[1].axes[0].collections if hasattr(part, "get_segments"))
    assert len(lines.get_segments()) == 1


def test_many_points_of_an_svg_are_a_picture(tmp_path, monkeypatch, groups):
    embedding, labels = groups
    plot_map(embedding, tmp_path / "few.svg", labels)
    monkeypatch.setattr(plot, "_MOST_VECTORS", 200)
    plot_map(embedding, tmp_path / "many.svg", labels)
    assert "<image" not in (tmp_path / "few.svg").read_text()
    assert "<image" in (tmp_path / "many.svg").read_text()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_nodes(tmp_path, n):
    embedding = Embedding(np.ones((n, 7)), np.arange(n))
    plot_map(embedding, tmp_path / "a.png", Labels.from_values(np.arange(n), np.arange(n)), graph=[(0, 0)])
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_bad_arguments(groups, tmp_path, monkeypatch):
    embedding, _ = groups
    for arguments, options, words in (
        ((embedding, tmp_path / "a.jpg"), {}, "must end in .png, .svg, .pdf"),
        ((embedding.vectors, tmp_path / "a.png"), {}, "must be an Embedding"),
        ((embedding, tmp_path / "a.png"), {"layout": "spiral"}, "layout='spiral'"),
        ((embedding, tmp_path / "a.png"), {"random_state": -1}, "random_state"),
        ((embedding, tmp_path / "a.png"), {"layout": np.zeros((7, 2))}, "shape (7, 2)"),
        ((embedding, tmp_path / "a.png"), {"layout": np.full((300, 2), np.nan)}, "coordinates (300, 2)"),
    ):
        with pytest.raises((InputError, ParameterError), match=re.escape(words)):
            plot_map(*arguments, **options)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"\[plot\]"):
        plot_map(embedding, tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


#: What linear RGB is to those who lack the cones for long, middle or short waves: Machado, Oliveira,
#: Fernandes, A Physiologically-based Model for Simulation of Color Vision Deficiency, 2009.
VISION = {
    "full": [1, 0, 0, 0, 1, 0, 0, 0, 1],
    "protan": [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
    "deutan": [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881],
    "tritan": [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900],
}


def _lab(linear):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    f = np.array([v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz / [0.9505, 1, 1.089]])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
def test_colours_are_told_apart(vision):
    from matplotlib.colors import to_rgb

    seen = []
    for colour in (*plot.COLOURS, plot._LIGHT.paper, plot._DARK.paper):
        rgb = np.array(to_rgb(colour))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        seen.append(_lab(np.clip(np.reshape(VISION[vision], (3, 3)) @ linear, 0, 1)))
    # 2 is what can be told side by side; across a map it takes several times as much.
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 15


def test_labels_of_a_series_go_by_id(drawn, tmp_path):
    pandas = pytest.importorskip("pandas")
    order = [2, 0, 1]
    embedding = Embedding([[2.0, 2.0], [0.0, 0.0], [1.0, 1.0]], order)
    plot_map(embedding, tmp_path / "map.png", pandas.Series(["a", "b", "c"]))
    assert [places.tolist() for places in points(drawn[0]).values()] == [[[i, i]] for i in range(3)]


def test_highlighted_classes_are_coloured_and_all_others_grey(groups, tmp_path, drawn):
    embedding, labels = groups
    plot_map(embedding, tmp_path / "a.png", labels, highlight=["bee"])
    assert legend(drawn[0]) == ["other nodes", "bee"]
    shown = points(drawn[0])
    np.testing.assert_allclose(shown.pop(plot.COLOURS[0]), embedding.vectors[100:200], rtol=1e-6)
    assert [*map(len, shown.values())] == [200]
    assert [text.get_text() for text in drawn[0].axes[0].texts] == ["bee"]
    with pytest.raises(InputError, match="there is no class 'dog'; the classes are 'ant', 'bee', 'cat'"):
        plot_map(embedding, tmp_path / "b.png", labels, highlight=["dog"])
    with pytest.raises(InputError, match=r"highlight: .*give labels"):
        plot_map(embedding, tmp_path / "b.png", highlight=["bee"])
    assert not (tmp_path / "b.png").exists()


def test_many_nodes_are_drawn_by_density(monkeypatch, groups, tmp_path, drawn):
    monkeypatch.setattr(plot, "_MOST_POINTS", 200)
    embedding, labels = groups
    plot_map(embedding, tmp_path / "a.png", labels, highlight=np.array(["ant", "bee"]))
    plot_map(embedding, tmp_path / "b.svg")
    assert not points(drawn[0])
    assert not points(drawn[1])
    assert legend(drawn[0]) == ["other nodes", "ant", "bee"]
    grey, coloured = drawn[0].axes[0].images
    for image, rows, colours in ((grey, [200, 300], ["#c0c5cc"]), (coloured, [0, 200], plot.COLOURS[:2])):
        left, right, low, high = image.get_extent()
        pixels = image.get_array()
        there = embedding.vectors[slice(*rows)]
        at = ((there - [left, low]) / [right - left, high - low] * pixels.shape[0]).astype(int)
        assert (pixels[at[:, 1], at[:, 0], 3] > 0.25).all()
        seen = np.round(pixels[at[:, 1], at[:, 0], :3] * 255).astype(int)
        wanted = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours]
        np.testing.assert_allclose(seen, np.repeat(wanted, 100, axis=0), atol=1)


def test_names_are_where_their_class_is_dense(tmp_path, drawn):
    """The median of a class in two parts is between them, where it has no nodes at all."""
    rng = np.random.default_rng(0)
    parts = [rng.normal(-20, 1, (120, 2)), rng.normal(20, 0.3, (130, 2)), rng.normal([20, -20], 1, (100, 2))]
    embedding = Embedding(np.vstack(parts), np.arange(350))
    plot_map(embedding, tmp_path / "a.png", Labels.from_values(np.arange(350), ["a"] * 250 + ["b"] * 100))
    named = {text.get_text(): text.xy for text in drawn[0].axes[0].texts}
    np.testing.assert_allclose(named["a"], [20, 20], atol=1)
    np.testing.assert_allclose(named["b"], [20, -20], atol=2)
