r"""Layouts in the plane: time, and how well neighbours are kept, of our map, t-SNE, openTSNE and UMAP.

    KERNELNE_DATA=FOLDER python benchmarks/layouts.py [--graphs digits,cora,lastfm_asia,astroph,dblp]
                                                      [--methods map,umap,opentsne,sklearn]
    python benchmarks/layouts.py --graphs blocks:1000000 --methods map --output results/layouts_million.json
    python benchmarks/layouts.py --graphs dblp,blocks:1000000 --methods map,map-gpu --threads 16 \
        --output results/layouts_gpu.json

The graphs have 1,797 to 27,199 nodes; those that the package does not know are read from FOLDER. The vectors
are those of MKernelNE(); of blocks:N, the graph of blocks.py, with 20 walks per node. All methods run in
turn, each in a process of its own, on the same threads, after it has laid out 500 rows, which compiles it.
map-gpu, which is not run unless asked for, needs an NVIDIA GPU.
Trustworthiness is that of the fifteen nearest on the map, purity the share of them with the same label, where
nodes have one; both for 2,000 nodes at random, compared with all others. Needs umap-learn and openTSNE.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import Bench, child_main, disturbed, parser, save, spread, table, timed

K, QUERIES, TOGETHER = 15, 2000, 100


def make(graph: str, path: str, threads: int) -> dict[str, Any]:
    """Child: train the vectors of one graph and save them with its labels."""
    from kernelne import MKernelNE, ParameterError, load_dataset, read_graph, read_labels

    if graph.startswith("blocks:"):
        from blocks import blocks

        network = blocks(int(graph.partition(":")[2]))
        labels = np.arange(network.n_nodes) // 1000
        model = MKernelNE(walks_per_node=20, n_threads=threads, random_state=0)
    else:
        try:
            data = load_dataset(graph)
            network, known = data.graph, data.labels
        except ParameterError:
            folder = Path(os.environ["KERNELNE_DATA"])
            network = read_graph(folder / f"{graph}.edges.gz")
            known = read_labels(folder / f"{graph}.labels.gz")
        labels = np.full(network.n_nodes, -1)
        if known is not None:
            rows, found = known.for_nodes(network.nodes, unknown="skip")
            labels[rows] = found.argmax(axis=1)
        model = MKernelNE(n_threads=threads, random_state=0)
    np.savez(path, vectors=model.fit(network).embedding_.astype(np.float32), labels=labels)
    return {}


def layouts(threads: int, seed: int) -> dict[str, Callable[[NDArray[Any]], NDArray[Any]]]:
    def ours(x: NDArray[Any]) -> NDArray[Any]:
        from kernelne.view.layout import layout_nodes

        return layout_nodes(x, "map", seed)

    def umap(x: NDArray[Any]) -> NDArray[Any]:
        import umap

        return umap.UMAP(n_jobs=threads).fit_transform(x)  # with a seed it would run on one thread

    def opentsne(x: NDArray[Any]) -> NDArray[Any]:
        from openTSNE import TSNE

        return np.asarray(TSNE(n_jobs=threads, random_state=seed).fit(x))

    def sklearn(x: NDArray[Any]) -> NDArray[Any]:
        from sklearn.manifold import TSNE

        return TSNE(n_jobs=threads, random_state=seed).fit_transform(x)

    def on_gpu(x: NDArray[Any]) -> NDArray[Any]:
        from kernelne.view.layout import layout_nodes

        return layout_nodes(x, "map", seed, backend="gpu")

    return {"map": ours, "map-gpu": on_gpu, "umap": umap, "opentsne": opentsne, "sklearn": sklearn}


def measure(path: str, method: str, seed: int, threads: int) -> dict[str, Any]:
    """Child: lay out one table."""
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    with np.load(path) as file:
        vectors, labels = file["vectors"], file["labels"]
    lay_out = layouts(threads, seed)[method]
    lay_out(vectors[:500])
    with timed() as facts:
        places = lay_out(vectors)
    return facts | {"nodes": len(vectors)} | scores(vectors, places.astype(np.float32), labels)


def scores(vectors: NDArray[Any], places: NDArray[Any], labels: NDArray[Any]) -> dict[str, float]:
    from sklearn.neighbors import NearestNeighbors

    n = len(vectors)
    queries = np.random.default_rng(0).choice(n, min(QUERIES, n), replace=False)
    near = NearestNeighbors(n_neighbors=K + 1).fit(places).kneighbors(places[queries])[1]
    own = near == queries[:, None]
    own[~own.any(axis=1), -1] = True  # equal places may hide the node itself
    near = near[~own].reshape(-1, K)
    centred = vectors - vectors.mean(axis=0)
    squares = np.square(centred).sum(axis=1)
    beyond = 0.0
    for some in range(0, len(queries), TOGETHER):
        part = slice(some, some + TOGETHER)
        apart = squares - 2 * centred[queries[part]] @ centred.T
        apart[np.arange(len(apart)), queries[part]] = -np.inf
        for column in near[part].T:
            rank = (apart < np.take_along_axis(apart, column[:, None], 1)).sum(axis=1)
            beyond += float(np.maximum(rank - K, 0).sum())
    known = labels[queries] >= 0
    same = (labels[near] == labels[queries][:, None])[known]
    trust = {"trustworthiness": 1 - 2 * beyond / (len(queries) * K * (2 * n - 3 * K - 1))}
    return trust | ({"purity": float(same.mean())} if known.any() else {})


def main() -> None:
    args = parser(__doc__, "layouts")
    args.add_argument("--graphs", default="digits,cora,lastfm_asia,astroph,dblp")
    args.add_argument("--methods", default="map,umap,opentsne,sklearn")
    args.add_argument(
        "--vectors", type=Path, help="folder with vectors of an earlier run, or to keep them in"
    )
    args = args.parse_args()
    bench = Bench(__file__)
    folder = args.vectors or bench.folder
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    rows = []
    for graph in args.graphs.split(","):
        path = folder / f"{graph.replace(':', '_')}.npz"
        if not path.exists():
            bench.run("make", args.threads, graph=graph, path=str(path))
        for method in args.methods.split(","):
            runs = [
                bench.run("measure", args.threads, path=str(path), method=method, seed=seed)
                for seed in range(args.repeats)
            ]
            found.setdefault(graph, {})[method] = runs
            good = [run for run in runs if "error" not in run]
            if good:
                shown = {"seconds": 1, "cpu_seconds": 1, "trustworthiness": 3, "purity": 3}
                cells = [
                    spread([run[key] for run in good], digits) if key in good[0] else "–"
                    for key, digits in shown.items()
                ]
                rows.append([graph, f"{good[0]['nodes']:,}", method, *cells])
    head = ["graph", "nodes", "layout", "seconds", "CPU seconds", "trustworthiness", "purity"]
    print(table(head, rows))
    print(disturbed(run for methods in found.values() for runs in methods.values() for run in runs))
    save(args, {"results": found})


if __name__ == "__main__" and not child_main([make, measure]):
    main()
