"""The demo: a real graph that comes with scikit-learn, embedded, scored and drawn."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._figures import new_figure
from kernelne._files import atomic_output, check_output
from kernelne.datasets.small import digits
from kernelne.embedding import check_save
from kernelne.estimators import MKernelNE
from kernelne.evaluation.classification import classify_nodes
from kernelne.explorer import write_explorer
from kernelne.io import write_graph
from kernelne.layout import layout_nodes

_SEED = 0


def draw_map(
    places: NDArray[np.float32], labels: NDArray[np.int64], title: str, path: Path, overwrite: bool
) -> None:
    """The places (n, 2) of nodes as a PNG, coloured by label."""
    figure = new_figure(8, 7)
    axes: Any = figure.add_subplot()
    for label in np.unique(labels):
        chosen = places[labels == label]
        axes.scatter(*chosen.T, s=7, color=f"C{label}", linewidths=0)
        axes.annotate(
            str(label), np.median(chosen, axis=0), fontsize=18, weight="bold", ha="center", va="center",
            bbox={"boxstyle": "circle,pad=0.15", "fc": "white", "ec": f"C{label}", "alpha": 0.85},
        )  # fmt: skip
    axes.set(title=title, xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    with atomic_output(path, overwrite) as temporary:
        figure.savefig(temporary, format="png", dpi=110)


def run_demo(folder: Path, overwrite: bool, begin: Callable[[], None] = lambda: None) -> None:
    """Embed the digits graph, print a score beside the majority class, write graph, embedding and picture."""
    new_figure(8, 7)  # if it is missing, say so before the work
    folder.mkdir(parents=True, exist_ok=True)
    edges, vectors = folder / "digits.edges", folder / "digits.safetensors"
    picture, page = folder / "digits.png", folder / "explore.html"
    check_save(vectors, overwrite)
    for path in (edges, picture, page):
        check_output(path, overwrite)
    begin()
    start = time.perf_counter()
    print("Graph      1,797 handwritten digits, each linked to its 10 nearest neighbours …", flush=True)
    graph, labels = digits()
    truth = labels.classes[labels.single]
    print(f"           {graph.n_nodes:,} nodes, {graph.n_edges:,} edges")
    print("Embedding  MKernelNE, 128 dimensions, kernels chosen by a pilot run …", flush=True)
    model = MKernelNE(random_state=_SEED).fit(graph)
    mixture = " ".join(
        f"{c:+.2f}·{name}({sigma:g})"
        for (name, sigma), c in zip(model.kernels_, model.coefficients_, strict=True)
    )
    print(f"           {model.seconds_:.1f} s, learned mixture {mixture}")
    scores = classify_nodes(model.embedding_, truth, train_sizes=[0.1], n_repeats=10)
    majority = np.bincount(truth).max() / truth.size
    print("Score      micro-F1 when 10 % of the labels are known")
    f1 = scores.micro_f1
    print(f"           {f1.mean():.3f} ± {f1.std():.3f}, majority class {majority:.3f}")
    print("Map        drawing …", flush=True)
    places = layout_nodes(model.embedding_, random_state=_SEED)
    title = "Handwritten digits, embedded by MKernelNE from links alone"
    draw_map(places, truth, title, picture, overwrite)
    write_graph(graph, edges, overwrite)
    embedding = model.to_embedding()
    embedding.save(vectors, overwrite)
    write_explorer(page, embedding, graph, labels, layout=places, title=title, overwrite=overwrite)
    print(f"           {time.perf_counter() - start:.1f} s in all. Written:")
    for path in (edges, vectors, picture, page):
        print(f"             {path}")
    found = shutil.which("kernelne")
    command = "kernelne" if found else os.path.relpath(sys.argv[0])
    print(f"Next       open {page} in a browser: the map to search, filter and select in")
    print(f"           {command} info {edges}")
    print(f"           {command} embed {edges} -o {folder / 'mine.csv'} --model kernelne --kernel schoenberg")
    if not found:
        print("           (without the path after: . .venv/bin/activate)")
