"""Score against CPU seconds: the default with few and many walks, beside GRAPE, gensim, ProNE and NetMF.

    KERNELNE_DATA=FOLDER python benchmarks/score_time.py [--graphs dblp,blocks] [--methods ProNE]

The score is micro-F1 with 10 % of the labels, mean of ten splits, or on the graph of blocks (100,000 nodes,
500,000 edges, 60 % of them in the own block of 1,000) the share of the ten nearest nodes that are in it.
Seconds are those of all threads, from the graph in memory to the vectors, after a tiny run that compiles.
gensim trains on walks of kernelne's, whose seconds count. Run it in the environment of `make bench`. With
--methods the others' runs are taken from the kept results.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

import adapters
from blocks import blocks, purity
from common import HERE, Bench, child_main, disturbed, parser, save, table, timed
from generate import erdos_renyi
from peers import DIM, LENGTH, METHODS, NEGATIVES, WINDOW, Run, read_labels

WALKS = (5, 10, 20, 40, 80, 170)
#: Methods by name: colour in the plot, and numbers of walks per node, or None where there are no walks.
SHOWN: dict[str, tuple[str, tuple[int | None, ...]]] = {
    "MKernelNE()": ("#0b6e4f", WALKS),
    "GRAPE DeepWalk": ("#c1440e", WALKS[:-1]),
    "gensim DeepWalk": ("#7a4fb5", WALKS[:-2]),
    "ProNE": ("#3b6fb6", (None,)),
    "NetMF": ("#8a8a8a", (None,)),
}
_BLOCK_NODES = 100_000


def prepare(method: str, n: int, edges: Any, walks: int | None, threads: int, seed: int) -> Run:
    from kernelne import MKernelNE, baselines

    if method == "GRAPE DeepWalk":
        return METHODS["grape"](n, edges, walks, threads, seed)  # type: ignore[no-any-return]
    graph = adapters.kernelne_graph(n, edges)
    if method == "gensim DeepWalk":
        return lambda: _gensim(graph, int(walks or 1), threads, seed)
    if method == "MKernelNE()":
        model: Any = MKernelNE(walks_per_node=walks, n_threads=threads, progress=False)
    else:
        model = getattr(baselines, method)()
    return lambda: model.set_params(random_state=seed).fit_transform(graph)


def _gensim(graph: Any, walks: int, threads: int, seed: int) -> Any:
    from gensim.models import Word2Vec

    from kernelne.walks.sample import WalkPlan, sample_walks, walk_graph

    n = graph.n_nodes
    nodes, lengths = np.zeros((n * walks, LENGTH), np.int64), np.zeros(n * walks, np.int64)
    sample_walks(walk_graph(graph), WalkPlan(np.uint64(seed), LENGTH, 1.0, 1.0), 0, nodes, lengths)
    sentences = [row[:length].tolist() for row, length in zip(nodes.astype(str), lengths, strict=True)]
    trained = Word2Vec(
        sentences, vector_size=DIM, window=WINDOW, negative=NEGATIVES, sg=1, epochs=1, min_count=0, sample=0,
        workers=threads, seed=seed,
    )  # fmt: skip
    return np.array([trained.wv[str(node)] for node in range(n)])


def embed(method: str, graph: str, walks: int | None, threads: int, seed: int) -> dict[str, Any]:
    """Child: run one repeat of one method on the saved graph."""
    prepare(method, 60, erdos_renyi(60)[0], 2, threads, seed)()
    with np.load(graph) as file:
        n, edges, labels = int(file["n"]), file["edges"], file["labels"]
    run = prepare(method, n, edges, walks, threads, seed)
    with timed() as result:
        vectors = run()
    if labels.size:
        from kernelne import classify_nodes

        found = classify_nodes(
            vectors[: len(labels)], labels, train_sizes=[0.1], n_repeats=10, random_state=0
        )
        result["score"] = float(found.micro_f1.mean())
    else:
        result["score"] = purity(vectors)
    return result


def load(name: str) -> tuple[int, Any, Any]:
    """Return (n, edges, labels); the graph of blocks has no labels."""
    if name == "blocks":
        graph, truth = blocks(_BLOCK_NODES), np.empty(0)
    else:
        from kernelne import read_graph

        folder = Path(os.environ["KERNELNE_DATA"])
        labels = folder / f"{name}.labels.gz"
        graph = read_graph(folder / f"{name}.edges.gz", weighted=False, nodes=labels, drop_self_loops=True)
        truth = read_labels(labels)
    rows = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    once = rows < graph.neighbours
    return graph.n_nodes, np.column_stack([rows, graph.neighbours])[once], truth


def draw(runs: list[dict[str, Any]], graphs: list[str], path: Any) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "scores"}
    with plt.rc_context(style):
        figure, axes = plt.subplots(
            1, len(graphs), figsize=(3.0 * len(graphs), 2.8), squeeze=False, layout="constrained"
        )
        for panel, graph in zip(axes[0], graphs, strict=True):
            for method, (colour, walks) in SHOWN.items():
                points = [p for w in walks if (p := _point(runs, graph, method, w))]
                panel.plot(
                    *zip(*points, strict=True) if points else ([], []), ".-", color=colour, label=method
                )
            what = "share of near nodes in the own block" if graph == "blocks" else "micro-F1, 10 % of labels"
            panel.set(title=graph, xscale="log", xlabel="CPU seconds", ylabel=what)
        axes[0, 0].legend()
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _point(
    runs: list[dict[str, Any]], graph: str, method: str, walks: int | None
) -> tuple[float, float] | None:
    """Median CPU seconds and mean score."""
    good = [
        r
        for r in runs
        if (r["graph"], r["method"], r["walks"]) == (graph, method, walks) and "error" not in r
    ]
    if not good:
        return None
    return float(np.median([r["cpu_seconds"] for r in good])), float(np.mean([r["score"] for r in good]))


def main() -> None:
    made = parser(__doc__, "score_time")
    made.add_argument("--graphs", default="dblp,wikipedia_pos,blocks")
    made.add_argument("--methods", default=",".join(SHOWN))
    args = made.parse_args()
    graphs, methods = args.graphs.split(","), args.methods.split(",")
    kept = HERE / "results" / "score_time.json"
    bench = Bench(__file__)
    bench.run("compile_kernelne", args.threads)
    runs = []
    if set(methods) < set(SHOWN):
        runs = [run for run in json.loads(kept.read_text("utf-8"))["runs"] if run["method"] not in methods]
    for name in graphs:
        path = bench.folder / f"{name}.npz"
        n, edges, labels = load(name)
        np.savez(path, n=n, edges=edges, labels=labels)
        for repeat in range(args.repeats):
            for method in methods:
                for each in SHOWN[method][1]:
                    task = {"method": method, "graph": str(path), "walks": each, "seed": repeat}
                    result = bench.run("embed", args.threads, **task)
                    runs.append({"graph": name, "method": method, "walks": each, "repeat": repeat} | result)
    rows = []
    for name in graphs:
        for method, (_, walks) in SHOWN.items():
            points = [_point(runs, name, method, each) for each in walks]
            told = [f"{p[1]:.3f} in {p[0]:.1f} s" if p else "failed" for p in points]
            rows.append([name, method, *told, *[""] * (len(WALKS) - len(told))])
    print(table(["graph", "method", *(f"{each} walks" for each in WALKS)], rows) + "\n\n" + disturbed(runs))
    draw(runs, graphs, HERE / "results" / "score_time.svg")
    save(args, {"runs": runs})


if __name__ == "__main__" and not child_main([adapters.compile_kernelne, embed]):
    main()
