"""Speed of random walks on one core: kernelne, GRAPE and PecanPy, first-order and node2vec (p = 0.5, q = 2).

    python benchmarks/walks.py [--nodes 100000] [--degree 10] [--threads 1]

Erdős–Rényi graph, 10 walks of 10 nodes per node; a step is one move. Also measures the time to build
kernelne's alias table for a million nodes. Compilation is not timed; programs take turns, each repeat in its
own process.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import adapters
from common import Bench, child_main, disturbed, parser, save, spread, table, timed
from generate import erdos_renyi

WALKS, LENGTH = 10, 10
BIASES = {"first-order": (1.0, 1.0), "p = 0.5, q = 2": (0.5, 2.0)}
ALIAS_NODES = 1_000_000

Count = Callable[[], int]
Run = Callable[[], Count]


def _kernelne(n: int, edges: Any, p: float, q: float, threads: int, seed: int) -> Run:
    from numba import njit

    from kernelne.walks.sample import WalkPlan, sample_walks, walk_graph

    @njit(nogil=True)
    def fill(graph: Any, plan: Any, first: int, last: int, walks: Any, lengths: Any) -> None:
        for start in range(first, last, 64):  # as training does
            stop = min(start + 64, last)
            sample_walks(graph, plan, start, walks[start:stop], lengths[start:stop])

    graph = walk_graph(adapters.kernelne_graph(n, edges))
    plan = WalkPlan(np.uint64(seed), LENGTH, 1 / p, 1 / q)
    walks, lengths = np.zeros((n * WALKS, LENGTH), np.int64), np.zeros(n * WALKS, np.int64)
    cuts = np.arange(threads + 1) * (n * WALKS) // threads
    fill(graph, plan, cuts[0], cuts[0], walks, lengths)

    def run() -> Count:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda t: fill(graph, plan, cuts[t], cuts[t + 1], walks, lengths), range(threads)))
        return lambda: int((lengths - 1).sum())

    return run


def _grape(n: int, edges: Any, p: float, q: float, threads: int, seed: int) -> Run:
    graph = adapters.grape_graph(n, edges)

    def run() -> Count:
        walks = graph.complete_walks(
            walk_length=LENGTH, iterations=WALKS, return_weight=1 / p, explore_weight=1 / q,
            max_neighbours=None, random_state=seed,
        )  # fmt: skip
        return lambda: walks.shape[0] * (walks.shape[1] - 1)

    return run


def _pecanpy(n: int, edges: Any, p: float, q: float, threads: int, seed: int, names: bool = True) -> Run:
    graph = adapters.pecanpy_graph(n, edges, p, q, threads, seed)
    if not names:
        graph._map_walk = lambda row: row[: row[-1]]

    def run() -> Count:
        walks = graph.simulate_walks(WALKS, LENGTH - 1)
        return lambda: sum(len(walk) - 1 for walk in walks)

    return run


def _pecanpy_numbers(*args: Any) -> Run:
    return _pecanpy(*args, names=False)


PROGRAMS = {
    "kernelne": _kernelne,
    "grape": _grape,
    "pecanpy": _pecanpy,
    "pecanpy, rows not turned into lists of names": _pecanpy_numbers,
}


def walk(method: str, graph: str, p: float, q: float, threads: int, seed: int) -> dict[str, Any]:
    """Child: run one repeat of one program."""
    with np.load(graph) as file:
        run = PROGRAMS[method](int(file["n"]), file["edges"], p, q, threads, seed)
    with timed() as result:
        count = run()
    return result | {"steps": count()}


def alias(threads: int) -> dict[str, Any]:
    """Child: build one alias table."""
    from kernelne.walks.negatives import alias_table

    alias_table(np.ones(10))
    weights = np.random.default_rng(0).pareto(1.5, ALIAS_NODES)
    with timed() as result:
        alias_table(weights)
    return result


def report(runs: list[dict[str, Any]], threads: int) -> str:
    rows = []
    for method in PROGRAMS:
        row = [method]
        for bias in BIASES:
            mine = [r for r in runs if (r["method"], r["bias"]) == (method, bias)]
            errors = {r["error"] for r in mine if "error" in r}
            speeds = [r["steps"] / r["seconds"] / threads / 1e6 for r in mine if "error" not in r]
            row.append(spread(speeds) if speeds else f"failed: {'; '.join(errors)}")
        rows.append(row)
    return table(["M steps a second and thread", *BIASES], rows)


def main() -> None:
    made = parser(__doc__, "walks")
    made.add_argument("--nodes", type=int, default=100_000)
    made.add_argument("--degree", type=float, default=10.0)
    made.set_defaults(threads=1)
    args = made.parse_args()
    bench = Bench(__file__)
    path = bench.folder / "graph.npz"
    edges, _ = erdos_renyi(args.nodes, args.degree)
    np.savez(path, n=args.nodes, edges=edges)
    runs = []
    for repeat in range(args.repeats):
        for bias, (p, q) in BIASES.items():
            for method in PROGRAMS:
                result = bench.run(
                    "walk", args.threads, method=method, graph=str(path), p=p, q=q, seed=repeat
                )
                runs.append({"method": method, "bias": bias, "repeat": repeat} | result)
    aliases = [bench.run("alias", 1) for _ in range(args.repeats)]
    print(f"Erdős–Rényi: {args.nodes:,} nodes, {len(edges):,} edges; {args.threads} threads\n")
    print(report(runs, args.threads))
    milliseconds = statistics.median(r["seconds"] for r in aliases) * 1000
    print(
        f"\nkernelne's alias table of {ALIAS_NODES:,} nodes: {milliseconds:.0f} ms\n\n"
        + disturbed(runs + aliases)
    )
    save(args, {"edges": len(edges), "runs": runs, "alias": aliases})


if __name__ == "__main__" and not child_main([walk, alias]):
    main()
