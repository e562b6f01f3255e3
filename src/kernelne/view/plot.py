"""Draw a map of an embedding to an image file: each node is a point in the plane, coloured by its label."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._common.checks import check_seed
from kernelne.embedding import Embedding
from kernelne.errors import InputError, ParameterError, warn
from kernelne.graph.ops import as_undirected, edges_of
from kernelne.io.files import PathLike, atomic_output, check_output
from kernelne.io.labels import Labels, as_labels
from kernelne.progress import Progress
from kernelne.view.density import densest, densities, pixels_for, shade, square_around
from kernelne.view.figures import new_figure
from kernelne.view.kept import kept_layout
from kernelne.view.layout import check_layout

#: File types, and the metadata that keep the date out of the file, so that equal maps are equal files.
FORMATS: Mapping[str, dict[str, None]] = {
    ".png": {},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
#: The colours of Petroff, Accessible Color Sequences for Data Visualization, 2021, with a teal and a pink in
#: place of its two greys, as grey marks nodes without a label. A test checks that colour-blind people can
#: distinguish them.
COLOURS = (
    "#3f90da", "#ffa90e", "#bd1f01", "#832db6", "#92dadd", "#a96b59", "#e76300", "#005f73", "#b9ac70",
    "#d16ba5",
)  # fmt: skip
_MARKERS = "o^sD"  # after ten classes the colours repeat with another marker
_MOST_CLASSES = len(COLOURS) * len(_MARKERS)
#: Class names are also drawn on the map, for at least so many nodes, where they do not cover each other.
_NODES_NAMED = 200
#: Beyond this many nodes the picture shows their density; classes then differ by colour alone.
_MOST_POINTS = 20_000
#: Shades of the colours for the second ten classes and so on: towards white (above 0) or black.
_SHADES = 0.0, 0.4, -0.4, 0.6
_LEGEND_ROWS = 24
_OTHER: dict[str, Any] = {"color": "#717581", "marker": "o"}
_MOST_EDGES = 20_000
_MOST_VECTORS = 5_000  # with more points a .svg or .pdf holds them as a raster image
_DPI = 160
_HEIGHT = 7.2  # inches, the width without the legend too
_LONGEST_NAME, _LONGEST_ON_MAP, _TITLE_LINE = 30, 18, 64  # characters


@dataclass(frozen=True)
class _Theme:
    paper: str
    ink: str
    faint: str  # nodes without a label, which are also smaller
    edges: str


_LIGHT = _Theme(paper="#ffffff", ink="#22272e", faint="#c0c5cc", edges="#5b6673")
_DARK = _Theme(paper="#14181f", ink="#e6eaf0", faint="#4b5563", edges="#93a1b3")


def plot_map(
    embedding: Embedding,
    path: PathLike | None = None,
    labels: Any = None,
    *,
    graph: Any = None,
    highlight: Iterable[Any] = (),
    layout: str | NDArray[np.float32] = "auto",
    title: str | None = None,
    dark: bool = False,
    beside: PathLike | None = None,
    backend: str = "cpu",
    random_state: int = 0,
    overwrite: bool = False,
    progress: Progress = False,
) -> Any:
    """Draw a map of an embedding's nodes to a .png, .svg or .pdf (needs kernelne[plot]).

    path: the file to write; None: return the map as a matplotlib Figure, which notebooks show after
        `%matplotlib inline`. A file that exists is replaced only with overwrite=True.
    labels: Labels, {node: label}, a pandas Series by its index, or one value per node. Nodes are coloured by
        label; nodes without one are grey. A node with several labels is filled with the colour of its most
        frequent one and outlined with that of the next. Beyond 40 classes the rarest are merged into
        "other". Labels of nodes that are not in the embedding are ignored. Beyond 20,000 nodes the picture
        shows their density: the more nodes at a place, the stronger its colour.
    highlight: classes of the labels, by name; these are coloured, and all other nodes are grey.
    graph: any graph that `fit` accepts; its edges are drawn as thin lines, a random sample of 20,000 if there
        are more. Edges of nodes that are not in the embedding are ignored.
    layout, random_state: as in `layout_nodes`: "auto", "map", "pca", "tsne" or "umap", and its seed; or
        the coordinates (n, 2) of a layout computed before.
    backend: where "map" is computed, "cpu" or "gpu".
    title: shown above the map; None: the number of nodes; "": no title.
    dark: whether to draw on a dark background.
    beside: the vectors' file; the layout is kept in a file beside it and read from there the next time.
    """
    kind = ".png" if path is None else check_map(path, overwrite)
    if not isinstance(embedding, Embedding):
        raise InputError(
            f"embedding: must be an Embedding, not {type(embedding).__name__}: use Embedding(vectors, nodes)"
        )
    if isinstance(layout, str):
        check_layout(layout, backend)
    elif np.shape(layout) != (len(embedding), 2) or not np.isfinite(layout).all():
        raise InputError(
            f"layout: shape {np.shape(layout)}: give a name, or finite coordinates ({len(embedding)}, 2)"
        )
    seed = check_seed(random_state)
    theme = _DARK if dark else _LIGHT
    known = None if labels is None else as_labels(labels, embedding.nodes)
    wanted = [*map(str, highlight)]
    if wanted and known is None:
        raise InputError("highlight: names classes of labels: give labels, too")
    classes = None if known is None else _Classes(known, embedding.nodes, wanted)
    for name in [] if classes is None else classes.names:
        _check_text("the label", name)
    _check_text("the title", title or "")
    segments = None if graph is None else _edges(graph, embedding, seed)
    places = layout
    if isinstance(places, str):
        places = kept_layout(
            embedding.vectors, places, seed, beside=beside, backend=backend, progress=progress
        )
    figure = new_figure(_HEIGHT + (0.0 if classes is None else classes.width), _HEIGHT)
    figure.set_facecolor(theme.paper)
    axes: Any = figure.add_subplot()
    axes.set_facecolor(theme.paper)
    as_picture = kind != ".png" and len(places) > _MOST_VECTORS
    if segments is not None:
        _draw_edges(axes, places, segments, theme, kind != ".png")
    if classes is None and len(places) > _MOST_POINTS:
        _draw_shades(axes, places, theme, None)
    elif classes is None:
        _scatter(axes, places, as_picture, len(places), color=COLOURS[0])
    else:
        _draw_classes(axes, places, classes, theme, as_picture)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.margins(0.04)
    axes.set_aspect("equal", adjustable="datalim")
    shown = f"{len(embedding):,} nodes" if title is None else title
    if shown:
        lines = "\n".join(textwrap.wrap(_plain(shown), _TITLE_LINE))
        axes.set_title(lines, color=theme.ink, fontsize=14, loc="left", pad=10)
    if path is None:
        return figure
    _save(figure, path, kind, overwrite)
    return None


def check_map(path: PathLike, overwrite: bool = False) -> str:
    """Raise what `plot_map` would raise for this path or if matplotlib is missing; return the suffix."""
    kind = Path(path).suffix.lower()
    if kind not in FORMATS:
        raise ParameterError("path", str(path), f"must end in {', '.join(FORMATS)}")
    check_output(path, overwrite)
    new_figure(1, 1)
    return kind


class _Classes:
    """Classes to draw: their names, and the most and the second most frequent class of each node.

    first, second: (n,) positions in `names`; -1: none.
    """

    def __init__(self, labels: Labels, nodes: NDArray[Any], highlight: Sequence[str] = ()) -> None:
        rows, table = labels.for_nodes(nodes, unknown="skip")
        if not len(rows):
            raise InputError(
                f"labels: none of its {len(labels):,} nodes is in the embedding of {len(nodes):,} nodes"
            )
        names = np.array([*map(str, labels.classes.tolist())], object)
        self.rest = "other nodes" if highlight else "no label"
        if highlight:
            for name in highlight:
                if name not in names:
                    some = ", ".join(map(repr, names[:5])) + (" …" if len(names) > 5 else "")
                    raise InputError(f"highlight: there is no class {name!r}; the classes are {some}")
            chosen = np.isin(names, highlight)
            names, table = names[chosen], table[:, chosen]
            kept = table.any(axis=1)
            rows, table = rows[kept], table[kept]
            if not len(rows):
                raise InputError(f"highlight: no node of the embedding is of class {highlight[0]!r}")
        counts = table.sum(axis=0)
        n_classes = int((counts > 0).sum())
        n_shown = n_classes if n_classes <= _MOST_CLASSES else _MOST_CLASSES - 1
        frequent = np.argsort(-counts, kind="stable")[:n_shown]
        rank = np.full(len(counts), len(frequent))  # all others share the last rank
        rank[frequent] = np.arange(len(frequent))
        by_rank = np.zeros((len(rows), len(frequent) + 1), bool)
        np.logical_or.at(by_rank.T, rank, table.T)
        first = by_rank.argmax(axis=1)
        by_rank[np.arange(len(rows)), first] = False
        second = np.where(by_rank.any(axis=1), by_rank.argmax(axis=1), -1)
        order = np.append(np.sort(frequent), len(counts))  # shown in the order of names, "other" last
        place = np.append(np.argsort(np.argsort(frequent)), len(frequent))
        self.names = names[order[:-1]].tolist()
        if n_shown < n_classes:
            self.names.append(f"other ({n_classes - n_shown})")
        self.looks = [*map(_look, range(n_shown)), _OTHER]
        self.first, self.second = np.full((2, len(nodes)), -1)
        self.first[rows] = place[first]
        self.second[rows] = np.where(second < 0, -1, place[second])
        self.n_columns = -(-(len(self.names) + bool((self.first < 0).any())) // _LEGEND_ROWS)
        longest = min(max(map(len, self.names)), _LONGEST_NAME)
        self.width = self.n_columns * (0.7 + 0.09 * longest)  # approximate width of the legend in inches


def _draw_classes(
    axes: Any, places: NDArray[np.float32], classes: _Classes, theme: _Theme, raster: bool
) -> None:
    """Draw points by class, those without a label first; names go to a legend and, if few, on the map."""
    n = len(places)
    without = classes.first < 0
    shown = np.full(n, n <= _MOST_POINTS)  # with more, points are drawn for the legend only
    if without.any():
        grey = {"color": theme.faint, "label": classes.rest}
        _scatter(axes, places[without & shown], raster, n, share=0.4, **grey)
    several = classes.second >= 0
    if n > _MOST_POINTS:
        classes.looks = [*map(_shade_look, range(len(classes.looks) - 1)), _OTHER]
        _draw_shades(axes, places, theme, classes)
    for number, name in enumerate(classes.names):
        mine = (classes.first == number) & shown
        look = classes.looks[number]
        _scatter(axes, places[mine & ~several], raster, n, **look, label=_plain(name, _LONGEST_NAME))
        for other in np.unique(classes.second[mine & several]):
            both = mine & (classes.second == other)
            rim = {"edgecolors": classes.looks[other]["color"], "linewidths": 0.35 * np.sqrt(_size(n))}
            _scatter(axes, places[both], raster, n, **look, **rim)
    legend = axes.legend(
        loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, labelcolor=theme.ink, fontsize=10,
        ncols=classes.n_columns, handletextpad=0.3, borderaxespad=0.5, labelspacing=0.6,
    )  # fmt: skip
    for handle in legend.legend_handles:
        handle.set_sizes([46])
        handle.set_alpha(1)
    if (len(classes.names) > 1 or classes.rest != "no label") and n >= _NODES_NAMED and not several.any():
        _name_on_map(axes, places, classes, theme)


def _draw_shades(axes: Any, places: NDArray[np.float32], theme: _Theme, classes: _Classes | None) -> None:
    """Draw the density of the nodes, of those without a label below the others."""
    from matplotlib.colors import to_rgb

    square, pixels = square_around(places), pixels_for(len(places))
    mine = np.ones(len(places), bool) if classes is None else classes.first >= 0
    looks = [{"color": COLOURS[0]}] if classes is None else classes.looks
    first = np.zeros(len(places), np.int64) if classes is None else classes.first
    table = np.array([to_rgb(look["color"]) for look in looks])
    layers = [(~mine, np.array(to_rgb(theme.faint))), (mine, table[first[mine]])]
    for some, colours in layers:
        if some.any():
            axes.imshow(
                shade(places[some], colours, square, pixels), extent=square, origin="lower", zorder=2,
                interpolation="nearest", aspect="auto",
            )  # fmt: skip


def _name_on_map(axes: Any, places: NDArray[np.float32], classes: _Classes, theme: _Theme) -> None:
    """Write the name of each class where it is dense, the largest first, unless another name is there."""
    from matplotlib.patheffects import withStroke

    square = square_around(places)
    n_named = len(classes.names) - (classes.names[-1].startswith("other (") and len(classes.names) > 1)
    sizes = np.bincount(classes.first[classes.first >= 0], minlength=len(classes.names))[:n_named]
    font = 13 if n_named <= 12 else 10
    unit = (square[1] - square[0]) / (72 * _HEIGHT)  # of a point, 1/72 inch, on the map
    # Highlighted classes, and those of a large graph, may be as small as their names: above them.
    lift = font if classes.rest != "no label" or len(places) > _MOST_POINTS else 0
    taken = np.empty((0, 3))
    every = densities(places, square)
    for number in np.argsort(-sizes, kind="stable"):
        name = _plain(classes.names[number], _LONGEST_ON_MAP)
        x, y = densest(places[classes.first == number], square, every).tolist()
        half = 0.31 * font * len(name) * unit
        beside = np.abs(taken[:, 0] - x) < taken[:, 2] + half
        if (beside & (np.abs(taken[:, 1] - y) < 1.2 * font * unit)).any():
            continue
        taken = np.vstack([taken, [x, y, half]])
        halo = withStroke(linewidth=3.5, foreground=theme.paper)
        axes.annotate(
            name, (x, y), (0, lift), textcoords="offset points", ha="center", va="center", weight="bold",
            fontsize=font, color=theme.ink, zorder=5, path_effects=[halo],
        )  # fmt: skip


def _scatter(
    axes: Any, places: NDArray[np.float32], raster: bool, n: int, *, share: float = 1.0, **look: Any
) -> None:
    """Draw points at the size used for n nodes in all, times `share`."""
    axes.scatter(
        *places.T, s=share * _size(n), alpha=0.9 if n < 3000 else 0.75, rasterized=raster, zorder=2,
        **({"linewidths": 0.0} | look),
    )  # fmt: skip


def _look(number: int) -> dict[str, Any]:
    """Return the colour and the marker of a class."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": _MARKERS[number // len(COLOURS) % len(_MARKERS)],
    }


def _shade_look(number: int) -> dict[str, Any]:
    """Return the colour of a class in a picture of densities, where markers cannot be seen."""
    from matplotlib.colors import to_hex, to_rgb

    by = _SHADES[number // len(COLOURS) % len(_SHADES)]
    end = 1.0 if by > 0 else 0.0
    colour = [value + (end - value) * abs(by) for value in to_rgb(COLOURS[number % len(COLOURS)])]
    return {"color": to_hex(colour), "marker": "o"}


def _size(n: int) -> float:
    """Return the area of a point in square points: small for many nodes to limit overlap, large for few."""
    return float(np.clip(30_000 / n, 1.2, 90))


def _edges(graph: Any, embedding: Embedding, seed: int) -> NDArray[np.int64]:
    """Return the edges to draw as pairs (m, 2) of rows of the embedding."""
    plain = as_undirected(graph)
    rows = embedding.find(plain.nodes)
    pairs = rows[edges_of(plain)[0]]
    if not (rows >= 0).any():
        raise InputError("graph: none of its nodes are in the embedding: give the graph that was embedded")
    pairs = pairs[(pairs >= 0).all(axis=1)]
    if len(pairs) > _MOST_EDGES:
        pairs = pairs[np.random.default_rng(seed).choice(len(pairs), _MOST_EDGES, replace=False)]
    return pairs


def _draw_edges(
    axes: Any, places: NDArray[np.float32], pairs: NDArray[np.int64], theme: _Theme, raster: bool
) -> None:
    from matplotlib.collections import LineCollection

    alpha = float(np.clip(600 / max(len(pairs), 1), 0.05, 0.5))
    lines = LineCollection(
        list(places[pairs]), colors=theme.edges, linewidths=0.5, alpha=alpha, zorder=1,
        rasterized=raster and len(pairs) > _MOST_VECTORS,
    )  # fmt: skip
    axes.add_collection(lines)


def _check_text(what: str, text: str) -> None:
    """Raise InputError if a text contains half of a surrogate pair, for which no font has a glyph."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        place = error.start + 1
        raise InputError(f"{what} {text!r} is not Unicode text (character {place}): rename it") from None


def _plain(text: str, longest: int = 200) -> str:
    """Shorten text and escape it: "$" would start a formula, and a leading "_" hides a legend entry."""
    shown = (text if len(text) <= longest else text[: longest - 1] + "…").replace("$", r"\$")
    return f"\u200b{shown}" if shown.startswith("_") else shown


def _save(figure: Any, path: PathLike, kind: str, overwrite: bool) -> None:
    import matplotlib

    options: dict[str, Any] = {"format": kind[1:], "dpi": _DPI, "metadata": FORMATS[kind]}
    with atomic_output(path, overwrite) as temporary, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with matplotlib.rc_context({"svg.hashsalt": "kernelne"}):  # ids within an SVG are random otherwise
            figure.savefig(temporary, facecolor=figure.get_facecolor(), **options)
    # matplotlib warns about every missing glyph, each time.
    told = {
        "the font has no glyphs for some characters: they are drawn as boxes" if "Glyph" in text else text
        for text in (str(warning.message) for warning in caught)
    }
    for text in sorted(told):
        warn(text)
