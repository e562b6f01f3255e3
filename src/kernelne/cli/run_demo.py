"""The demo: embed, score and draw the graph of scikit-learn's handwritten digits."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kernelne.datasets.bundled import digits
from kernelne.estimators import MKernelNE
from kernelne.evaluation.classification import classify_nodes
from kernelne.io.embeddings.registry import check_save
from kernelne.io.files import check_output
from kernelne.io.graphs.read_write import write_graph
from kernelne.view.explorer import write_explorer
from kernelne.view.layout import layout_nodes
from kernelne.view.plot import check_map, plot_map

_SEED = 0


def run_demo(folder: Path, overwrite: bool, begin: Callable[[], None] = lambda: None) -> None:
    """Embed the digits graph, print its score and that of the majority class, and write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    edges, vectors = folder / "digits.edges", folder / "digits.safetensors"
    picture, page = folder / "digits.png", folder / "explore.html"
    check_save(vectors, overwrite)
    check_map(picture, overwrite)
    for path in (edges, page):
        check_output(path, overwrite)
    begin()
    start = time.perf_counter()
    print("Graph      1,797 handwritten digits, each linked to its 10 nearest neighbours …", flush=True)
    graph, labels = digits()
    truth = labels.classes[labels.single]
    print(f"           {graph.n_nodes:,} nodes, {graph.n_edges:,} edges")
    print("Embedding  MKernelNE, 128 dimensions …", flush=True)
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
    embedding = model.to_embedding()
    places = layout_nodes(embedding.vectors, random_state=_SEED)
    title = "Handwritten digits, embedded by MKernelNE from links alone"
    plot_map(embedding, picture, labels, layout=places, title=title, overwrite=overwrite)
    write_graph(graph, edges, overwrite)
    embedding.save(vectors, overwrite)
    write_explorer(embedding, page, labels, graph=graph, layout=places, title=title, overwrite=overwrite)
    print(f"           {time.perf_counter() - start:.1f} s in total. Files written:")
    for path in (edges, vectors, picture, page):
        print(f"             {path}")
    found = shutil.which("kernelne")
    command = "kernelne" if found else os.path.relpath(sys.argv[0])
    print(f"Next       open {page} in a browser to search, filter and select nodes on the map")
    print(f"           {command} info {edges}")
    print(f"           {command} embed {edges} -o {folder / 'mine.csv'} --model kernelne --kernel schoenberg")
    if not found:
        print("           (or just kernelne, after: . .venv/bin/activate)")
