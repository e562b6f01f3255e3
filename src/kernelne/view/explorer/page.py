"""Write the page: the template, style and scripts of this folder and the data, in one self-contained file.

Arrays are stored as base64 of little-endian numbers, ids and names as JSON in which no character can end the
script. A Content-Security-Policy allows only this script and this style, by hash, and no requests.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._version import __version__
from kernelne.io.files import PathLike, atomic_output, check_output
from kernelne.progress import Progress
from kernelne.view.explorer.facts import EXACT_UP_TO, Colouring, Shown

#: In this order: later scripts use definitions of earlier ones.
_SCRIPTS = ("data", "view", "looks", "points", "overlay", "app", "panel", "input")
_TYPES = {"float32": "f4", "int32": "i4", "int16": "i2", "uint8": "u1", "uint16": "u2", "uint32": "u4"}


def write_explorer(
    embedding: Any,
    path: PathLike,
    labels: Any = None,
    *,
    graph: Any = None,
    layout: Any = "auto",
    n_nearest: int | None = None,
    title: str | None = None,
    beside: PathLike | None = None,
    backend: str = "cpu",
    random_state: int = 0,
    overwrite: bool = False,
    progress: Progress = False,
) -> None:
    """Write an interactive page of an embedding: a map of the nodes to search, filter, select and export.

    The file is self-contained, makes no network requests, and opens in any browser.

    Parameters
    ----------
    embedding: an Embedding, or vectors (n, d), whose row i is node i of the graph, or has id i without graph.
    labels: Labels, {node: label} or a pandas Series by its index, which may lack some of the nodes; or one
        value per node (n,) in the order of the vectors.
    graph: any graph that `fit` accepts, with the nodes of the embedding. Adds edges, communities and degrees;
        directions are ignored.
    layout: "auto", "map", "pca", "tsne" or "umap", see `view.layout.layout_nodes`; or coordinates (n, 2).
    n_nearest: number of nearest neighbours by cosine per node; None: 10 up to 100,000 nodes, 5 beyond;
        the search is exact up to 100,000 nodes and approximate beyond.
    title: title of the page.
    beside: the vectors' file; the layout is kept in a file beside it and read from there the next time.
    backend: where the layout "map" is computed, "cpu" or "gpu".
    random_state: seed of the layout and of the communities.
    progress: None for a bar if standard error is a terminal, True, False, or a function (done, total, nan).
    """
    check_output(path, overwrite)
    shown = Shown.gather(
        embedding, graph, labels, layout=layout, n_nearest=n_nearest, title=title, random_state=random_state,
        progress=progress, beside=beside, backend=backend,
    )  # fmt: skip
    write_page(path, shown, overwrite)


def write_page(path: PathLike, shown: Shown, overwrite: bool = False) -> None:
    """Write the page of this data; the file is written whole or not at all."""
    page = render(shown)
    with atomic_output(path, overwrite) as temporary:
        temporary.write_bytes(page)


def render(shown: Shown) -> bytes:
    """Return the page as UTF-8."""
    style, script = _read("style.css"), "\n".join(_read(f"{name}.js") for name in _SCRIPTS)
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    parts = {
        "policy": policy,
        "title": html.escape(shown.title),
        "version": __version__,
        "style": style,
        "script": script,
        "data": _json(_content(shown)),
    }
    # In one pass, so that nothing in the data is taken for a placeholder.
    filled = re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _read("page.html"))
    return filled.encode("utf-8", "replace")  # a title may contain half a surrogate pair


def _read(name: str) -> str:
    return files("kernelne.view.explorer").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(content: Any) -> str:
    """Return JSON in ASCII without "<", so that nothing in it can end the script or start a comment."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _content(shown: Shown) -> dict[str, Any]:
    """Return the data that data.js unpacks."""
    content: dict[str, Any] = {
        "title": shown.title,
        "facts": shown.facts,
        "ids": _ids(shown.ids),
        "places": _pack(shown.places.ravel()),
        "colourings": [_colouring(one) for one in shown.colourings],
    }
    if shown.nearest is not None:
        rows, similarities = shown.nearest
        # In fewer steps for many nodes: the page is downloaded and read as a whole.
        kind = np.uint16 if len(rows) <= EXACT_UP_TO else np.uint8
        steps = np.rint((similarities + 1) / 2 * np.iinfo(kind).max)
        content["nearest"] = {
            "k": rows.shape[1],
            "steps": int(np.iinfo(kind).max),
            "rows": _pack(_narrow(rows.ravel())),
            "similarities": _pack(steps.astype(kind).ravel()),
        }
    if shown.links is not None:
        starts, ends = shown.links
        content["links"] = {"starts": _pack(starts.astype(np.uint32)), "ends": _pack(_narrow(ends))}
    return content


def _ids(nodes: NDArray[Any]) -> list[str] | None:
    """Return the ids as text; None if they are 0, 1, 2 …"""
    if nodes.dtype != object and np.array_equal(nodes, np.arange(len(nodes))):
        return None
    return list(map(str, nodes.tolist()))


def _colouring(one: Colouring) -> dict[str, Any]:
    return {
        "key": one.key,
        "name": one.name,
        "ordered": one.ordered,
        "classes": _texts(one.classes),
        "codes": _pack(one.codes.astype(np.int16 if len(one.classes) < 2**15 else np.int32)),
        "starts": None if one.starts is None else _pack(one.starts.astype(np.uint32)),
        "values": None if one.values is None else _pack(one.values.astype(np.uint32)),
    }


def _texts(names: Sequence[Any]) -> list[str]:
    return list(map(str, names))


def _narrow(rows: NDArray[Any]) -> NDArray[Any]:
    """Return row numbers as two-byte integers if they fit, else four-byte."""
    return rows.astype(np.uint16 if rows.max(initial=0) <= np.iinfo(np.uint16).max else np.uint32)


def _pack(array: NDArray[Any]) -> dict[str, str]:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return {"type": _TYPES[array.dtype.name], "data": base64.b64encode(little.tobytes()).decode("ascii")}
