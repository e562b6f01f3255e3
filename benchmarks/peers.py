"""Time, memory and classification score of kernelne and other programs, with the same walks and sizes.

    python benchmarks/peers.py --graph FILE [--labels FILE]
    python benchmarks/peers.py --generate planted:n=3000,groups=6,degree=5,inside=0.8

The graph is read as undirected and unweighted, without self-loops. A labels file has a line
`node label[,label...]` for each node to be scored, which may have no edges. Walks and training are timed
together, from the graph in the program's own format to the vectors in memory, after a tiny run that imports
and compiles everything. Every repeat of every method is a new process, and methods take turns, so that all
are affected alike if the machine is slow for a while.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import adapters
from common import Bench, child_main, disturbed, parser, peak_mb, save, spread, table, timed
from generate import erdos_renyi, generate

WALKS, LENGTH, WINDOW, DIM, NEGATIVES = 80, 10, 10, 128, 5
TRAIN_SHARES = (0.02, 0.1, 0.5, 0.9)
SPLITS = 10
P, Q = 0.5, 2.0  # of node2vec

Run = Callable[[], Any]


def _kernelne(model: str, **parameters: Any) -> Callable[..., Run]:
    def prepare(n: int, edges: Any, walks: int, threads: int, seed: int) -> Run:
        import kernelne
        import kernelne.baselines

        graph = adapters.kernelne_graph(n, edges)
        estimator = (getattr(kernelne, model, None) or getattr(kernelne.baselines, model))(
            dim=DIM, walks_per_node=walks, walk_length=LENGTH, window=WINDOW, n_negative=NEGATIVES,
            n_threads=threads, random_state=seed, progress=False, **parameters,
        )  # fmt: skip
        return lambda: estimator.fit_transform(graph)

    return prepare


def _grape(p: float, q: float) -> Callable[..., Run]:
    def prepare(n: int, edges: Any, walks: int, threads: int, seed: int) -> Run:
        from embiggen.embedders import ensmallen_embedders as embedders

        graph = adapters.grape_graph(n, edges)
        second_order = {"return_weight": 1 / p, "explore_weight": 1 / q} if (p, q) != (1, 1) else {}
        kind = embedders.Node2VecSkipGramEnsmallen if second_order else embedders.DeepWalkSkipGramEnsmallen
        model = kind(
            embedding_size=DIM, epochs=1, iterations=walks, walk_length=LENGTH, window_size=WINDOW,
            number_of_negative_samples=NEGATIVES, max_neighbours=n, random_state=seed, verbose=False,
            **second_order,
        )  # fmt: skip
        rows = np.array(graph.get_node_names()).astype(int)

        def run() -> Any:
            center, _ = model.fit_transform(graph, return_dataframe=False).get_all_node_embedding()
            vectors = np.zeros((n, DIM), np.float32)
            vectors[rows] = center
            return vectors

        return run

    return prepare


def _pecanpy_gensim(shrink_windows: bool, p: float = 1, q: float = 1) -> Callable[..., Run]:
    def prepare(n: int, edges: Any, walks: int, threads: int, seed: int) -> Run:
        from gensim.models import Word2Vec

        graph = adapters.pecanpy_graph(n, edges, p, q, threads, seed)

        def run() -> Any:
            sentences = graph.simulate_walks(walks, LENGTH - 1)
            model = Word2Vec(
                sentences, vector_size=DIM, window=WINDOW, negative=NEGATIVES, sg=1, epochs=1, min_count=0,
                sample=0, workers=threads, seed=seed, shrink_windows=shrink_windows,
            )  # fmt: skip
            vectors = np.zeros((n, DIM), np.float32)
            vectors[[int(name) for name in model.wv.index_to_key]] = model.wv.vectors
            return vectors

        return run

    return prepare


METHODS: dict[str, Callable[..., Run]] = {
    "kernelne-gaussian": _kernelne("KernelNE", kernel="gaussian"),
    "kernelne-schoenberg": _kernelne("KernelNE", kernel="schoenberg"),
    "kernelne-multiple": _kernelne("MKernelNE", kernels=[("gaussian", sigma) for sigma in (1.0, 2.0, 3.0)]),
    "kernelne-deepwalk": _kernelne("DeepWalk"),
    "kernelne-node2vec": _kernelne("Node2Vec", p=P, q=Q),
    "grape": _grape(1, 1),
    "grape-node2vec": _grape(P, Q),
    "pecanpy+gensim": _pecanpy_gensim(shrink_windows=False),
    "pecanpy+gensim-shrunk": _pecanpy_gensim(shrink_windows=True),
    "pecanpy+gensim-node2vec": _pecanpy_gensim(False, P, Q),
}
NOTES = {
    "kernelne": "other parameters are its defaults; negatives are shared by the pairs of a walk",
    "node2vec": f"p = {P}, q = {Q}; by GRAPE Node2VecSkipGramEnsmallen, by PecanPy SparseOTF",
    "grape": "DeepWalkSkipGramEnsmallen, center vectors; max_neighbours = n, for exact walks; learning rate "
    "its default, 0.01, and constant: it can only fall between epochs",
    "pecanpy+gensim": "FirstOrderUnweighted (walk_length=9: it counts steps); compiled walks kept, which "
    "PecanPy compiles anew at each call; sample=0, or gensim would skip frequent nodes; windows of the same "
    "width for every node, as in the other programs",
    "pecanpy+gensim-shrunk": "the same with gensim's default, windows that shrink at random: of a walk's 90 "
    "pairs it trains on 66 on average",
}


def embed(method: str, graph: str, threads: int, seed: int) -> dict[str, Any]:
    """Child: run one repeat of one method on the saved graph."""
    prepare = METHODS[method]
    prepare(60, erdos_renyi(60)[0], 2, threads, seed)()
    with np.load(graph) as file:
        n, edges, labels = int(file["n"]), file["edges"], file["labels"]
    run = prepare(n, edges, WALKS, threads, seed)
    with timed() as result:
        vectors = run()
    result["peak_mb"] = peak_mb()
    if labels.size:
        from kernelne import classify_nodes

        scores = classify_nodes(
            vectors[: len(labels)], labels, train_sizes=TRAIN_SHARES, n_repeats=SPLITS, random_state=0
        )
        result |= {"micro_f1": scores.micro_f1.tolist(), "macro_f1": scores.macro_f1.tolist()}
    return result


def read_labels(path: Path) -> Any:
    """Return the indicator matrix, a row for each line."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as lines:
        sets = [line.split()[1].split(",") for line in lines if line.strip()]
    names = sorted({name for row in sets for name in row})
    return np.array([[name in row for name in names] for row in sets])


def load(args: argparse.Namespace) -> tuple[int, Any, Any]:
    """Return (n, edges between rows, labels of the first rows)."""
    if args.generate:
        return generate(args.generate)
    from kernelne import read_graph

    graph = read_graph(args.graph, weighted=False, nodes=args.labels, drop_self_loops=True)
    sources = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    once = sources < graph.neighbours
    edges = np.column_stack([sources, graph.neighbours])[once]
    return graph.n_nodes, edges, read_labels(args.labels) if args.labels else None


def report(runs: list[dict[str, Any]], methods: list[str]) -> str:
    shares = [f"F1 at {share:.0%}" for share in TRAIN_SHARES] if any("micro_f1" in r for r in runs) else []
    rows = []
    base = None
    for method in methods:
        good = [r for r in runs if r["method"] == method and "error" not in r]
        errors = {r["error"] for r in runs if r["method"] == method and "error" in r}
        if not good:
            rows.append([method, f"failed: {'; '.join(errors)}", *[""] * (3 + len(shares))])
            continue
        seconds = [r["seconds"] for r in good]
        base = base or statistics.median(seconds)
        f1 = np.mean([r["micro_f1"] for r in good], axis=(0, 2)) if shares else []
        rows.append([
            method + (f" ({len(errors)} kinds of failure)" if errors else ""),
            spread(seconds),
            f"{statistics.median(seconds) / base:.2f}",
            spread([r["cpu_seconds"] for r in good]),
            f"{statistics.median(r['peak_mb'] for r in good):.0f}",
            *(f"{x:.3f}" for x in f1),
        ])  # fmt: skip
    return table(["method", "seconds", "times the first", "CPU seconds", "peak MB", *shares], rows)


def main() -> None:
    made = parser(__doc__, "peers")
    source = made.add_mutually_exclusive_group()
    source.add_argument("--graph", type=Path)
    source.add_argument("--generate", metavar="NAME:key=value,...")
    made.add_argument("--labels", type=Path)
    made.add_argument("--methods", default=",".join(METHODS))
    args = made.parse_args()
    if not args.graph and not args.generate:
        args.generate = "planted:n=3000,groups=6,degree=5,inside=0.8"
    methods = args.methods.split(",")
    if unknown := set(methods) - set(METHODS):
        made.error(f"--methods {', '.join(unknown)}: known are {', '.join(METHODS)}")
    n, edges, labels = load(args)
    bench = Bench(__file__)
    path = bench.folder / "graph.npz"
    np.savez(path, n=n, edges=edges, labels=np.empty(0) if labels is None else labels)
    bench.run("compile_kernelne", args.threads)
    runs = []
    for repeat in range(args.repeats):
        turn = repeat % len(methods)
        for method in methods[turn:] + methods[:turn]:
            result = bench.run("embed", args.threads, method=method, graph=str(path), seed=repeat)
            runs.append({"method": method, "repeat": repeat} | result)
    settings = {
        "walks": WALKS, "length": LENGTH, "window": WINDOW, "dim": DIM, "negatives": NEGATIVES,
        "threads": args.threads, "train_shares": TRAIN_SHARES, "splits": SPLITS,
    }  # fmt: skip
    name = args.generate or args.graph.name
    print(f"{name}: {n:,} nodes, {len(edges):,} edges; {args.repeats} repeats; {settings}\n")
    print(report(runs, methods) + "\n\n" + disturbed(runs) + "\n")
    for method, note in NOTES.items():
        print(f"- {method}: {note}.")
    graph = {"name": name, "nodes": n, "edges": len(edges)}
    save(args, {"graph": graph, "settings": settings, "notes": NOTES, "runs": runs})


if __name__ == "__main__" and not child_main([adapters.compile_kernelne, embed]):
    main()
