"""Nearest neighbours: time to build and query an index, and the share of the ten nearest that it finds.

    python benchmarks/neighbours.py [--nodes 100000] [--dim 128] [--queries 2000] [--repeats 1]

Three tables of vectors: random Gaussian clusters, and embeddings of a graph with groups and of a power-law
graph without groups, which has almost no structure and is the hardest. Recall is relative to the exact
search, whose time is also measured; both by cosine and by Euclidean distance.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from common import Bench, child_main, disturbed, parser, save, spread, table, timed

K = 10
TABLES = ("clusters", "planted", "power_law")


def make(kind: str, folder: str, nodes: int, dim: int, seed: int, threads: int) -> dict[str, Any]:
    """Child: make the vectors of one table."""
    rng = np.random.default_rng(seed)
    if kind == "clusters":
        centres = rng.normal(size=(nodes // 200, dim))
        vectors = centres[rng.integers(len(centres), size=nodes)] + rng.normal(scale=0.5, size=(nodes, dim))
    else:
        from adapters import kernelne_graph
        from generate import generate
        from kernelne import MKernelNE

        groups = f",groups={nodes // 200}" if kind == "planted" else ""
        _, edges, _ = generate(f"{kind}:n={nodes},degree=10.0,seed={seed}{groups}")
        model = MKernelNE(dim=dim, walks_per_node=20, n_threads=threads, random_state=seed, progress=False)
        vectors = model.fit(kernelne_graph(nodes, edges)).embedding_
    np.save(f"{folder}/{kind}.npy", vectors.astype(np.float32))
    return {}


def measure(path: str, metric: str, queries: int, seed: int, threads: int) -> dict[str, Any]:
    """Child: build and query one index, and compare it with the exact search."""
    from kernelne import Embedding

    vectors = np.load(path)
    embedding = Embedding(vectors, np.arange(len(vectors)))
    wanted = np.random.default_rng(seed).choice(len(vectors), queries, replace=False)
    with timed() as exact_time:
        exact = embedding.neighbours(wanted, K, metric=metric)
    with timed() as build_time:
        embedding.build_index(metric, n_threads=threads)
    with timed() as query_time:
        near = embedding.neighbours(wanted, K, metric=metric)
    file = embedding.save_index(path, metric, overwrite=True)
    hits = (near.ids[:, :, None] == exact.ids[:, None]).any(axis=2)
    single = {name: _single(embedding, wanted[:20], metric, name == "exact") for name in ("exact", "index")}
    return build_time | {
        "recall": float(hits.mean()),
        "recall_sd_of_mean": float(hits.mean(axis=1).std() / np.sqrt(queries)),
        "exact_ms": 1e3 * exact_time["seconds"] / queries,
        "index_ms": 1e3 * query_time["seconds"] / queries,
        "exact_single_ms": single["exact"],
        "index_single_ms": single["index"],
        "file_mb": file.stat().st_size / 2**20,
    }


def _single(embedding: Any, nodes: Any, metric: str, exact: bool) -> float:
    """Measure milliseconds for a query with one node."""
    start = time.perf_counter()
    for node in nodes.tolist():
        embedding.neighbours(node, K, metric=metric, exact=exact)
    return 1e3 * (time.perf_counter() - start) / len(nodes)


def main() -> None:
    arguments = parser(__doc__, "neighbours")
    arguments.add_argument("--nodes", type=int, default=100_000)
    arguments.add_argument("--dim", type=int, default=128)
    arguments.add_argument("--queries", type=int, default=2000)
    args = arguments.parse_args()
    bench = Bench(__file__)
    runs = []
    for kind in TABLES:
        made = bench.run(
            "make", args.threads, kind=kind, folder=str(bench.folder), nodes=args.nodes, dim=args.dim, seed=0
        )
        if "error" in made:
            raise SystemExit(f"{kind}: {made['error']}")
        for metric in ("cosine", "euclidean"):
            for repeat in range(args.repeats):
                task = {"path": str(bench.folder / f"{kind}.npy"), "metric": metric, "queries": args.queries}
                result = bench.run("measure", args.threads, seed=repeat, **task)
                runs.append({"table": kind, "metric": metric, "repeat": repeat} | result)
    columns = {
        "recall@10": ("recall", 3), "build s": ("seconds", 1), "index ms": ("index_ms", 2),
        "exact ms": ("exact_ms", 2), "alone: index ms": ("index_single_ms", 2),
        "alone: exact ms": ("exact_single_ms", 2), "file MB": ("file_mb", 0), "peak MB": ("peak_mb", 0),
    }  # fmt: skip
    rows = []
    for kind, metric in dict.fromkeys((run["table"], run["metric"]) for run in runs):
        mine = [run for run in runs if (run["table"], run["metric"]) == (kind, metric)]
        good = [run for run in mine if "error" not in run]
        cells = (
            [spread([run[key] for run in good], digits) for key, digits in columns.values()] if good else []
        )
        rows.append([f"{kind}, {metric}", *(cells or [mine[-1]["error"]])])
    print(table(["vectors", *columns], rows) + "\n")
    print(disturbed(runs))
    save(args, {"runs": runs})


if __name__ == "__main__" and not child_main([make, measure]):
    main()
