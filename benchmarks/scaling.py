"""Scaling: time by number and length of walks, a large graph, reading files, deterministic mode.

    python benchmarks/scaling.py [--parts length,large,read,deterministic] [--nodes 1000000] [--edges 5000000]

length: seconds on a power-law graph of 20,000 nodes as walks per node and walk length double.
large: a power-law graph, 10 walks per node, d = 128: time, and peak memory against
    1.25 × (two tables of n · d float32 + the adjacency) + 200 MB. The graph is made by another process.
read: edges per second of read_graph on the same graph, as integers and as strings, and its peak memory.
deterministic: cost of deterministic=True on a graph of CiteSeer's size, with 1 and 2 threads.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

import adapters
from common import Bench, child_main, disturbed, parser, peak_mb, save, spread, table, timed
from generate import planted, power_law

DIM = 128
LARGE_WALKS = 10
LENGTHS = ((20, 5), (20, 10), (20, 20), (20, 40), (5, 10), (10, 10), (40, 10), (80, 10))


def make(folder: str, nodes: int, edges: int, seed: int, threads: int) -> dict[str, Any]:
    """Child: write a power-law graph as arrays and as two edge lists."""
    drawn, _ = power_law(nodes, 2 * edges / nodes, seed=seed)
    graph = adapters.kernelne_graph(nodes, drawn)
    np.savez(f"{folder}/graph.npz", offsets=graph.offsets, neighbours=graph.neighbours)
    # In random order, as files are.
    np.random.default_rng(seed).shuffle(drawn)
    np.savetxt(f"{folder}/integers.edges", drawn, fmt="%d")
    with open(f"{folder}/strings.edges", "w") as file:
        file.writelines(f"user_{u} user_{v}\n" for u, v in drawn.tolist())
    return {"n_edges": len(drawn)}


def fit(
    graph: str, walks: int, length: int, threads: int, seed: int = 0, deterministic: bool = False
) -> dict[str, Any]:
    """Child: one run of KernelNE on the saved graph."""
    from kernelne import Graph, KernelNE

    def model(walks: int) -> KernelNE:
        return KernelNE(
            dim=DIM, walks_per_node=walks, walk_length=length, n_threads=threads, deterministic=deterministic,
            random_state=seed, progress=False,
        )  # fmt: skip

    model(1).fit([(i, i + 1) for i in range(99)])
    with np.load(graph) as file:
        offsets, neighbours = file["offsets"], file["neighbours"]
    loaded = Graph(offsets, neighbours, None, False, np.arange(len(offsets) - 1))
    with timed() as result:
        model(walks).fit(loaded)
    adjacency = offsets.nbytes + neighbours.nbytes
    tables = 2 * loaded.n_nodes * DIM * 4
    return result | {"bound_mb": 1.25 * (tables + adjacency) / 2**20 + 200}


def read(path: str, tiny: str, threads: int) -> dict[str, Any]:
    """Child: read an edge list once."""
    from kernelne import read_graph

    read_graph(tiny)
    before = peak_mb()
    with timed() as result:
        graph = read_graph(path)
    arrays = (graph.offsets.nbytes + graph.neighbours.nbytes + graph.nodes.nbytes) / 2**20
    return result | {"edges": graph.n_edges, "before_mb": before, "arrays_mb": arrays}


def length_part(bench: Bench, args: Any) -> list[dict[str, Any]]:
    path = _save(bench, "length", 20_000, power_law(20_000, 10.0)[0])
    tasks = [{"graph": path, "walks": walks, "length": length} for walks, length in LENGTHS]
    runs = _repeat(bench, args, [(args.threads, task) for task in tasks])
    base = _median(runs, "cpu_seconds", walks=20, length=10)
    rows = []
    for walks, length in sorted(LENGTHS):
        mine = {"walks": walks, "length": length}
        seconds, cpu_seconds = _seconds(runs, **mine), _seconds(runs, "cpu_seconds", **mine)
        times = f"{_median(runs, 'cpu_seconds', **mine) / base:.2f}"
        rows.append([f"{walks} × {length}", seconds, cpu_seconds, times, f"{walks * length / 200:.2f}"])
    head = ["walks a node × length", "seconds", "CPU seconds", "CPU times 20 × 10", "if linear"]
    print(table(head, rows) + "\n")
    return runs


def large_part(bench: Bench, args: Any) -> list[dict[str, Any]]:
    task = {"graph": str(bench.folder / "graph.npz"), "walks": LARGE_WALKS, "length": 10}
    runs = [task | bench.run("fit", args.threads, **task)]
    run = runs[0]
    if "error" in run:
        print(f"large run failed: {run['error']}\n")
        return runs
    row = [f"{args.nodes:,}", f"{args.made_edges:,}", f"{run['seconds'] / 60:.2f}", f"{run['peak_mb']:.0f}",
           f"{run['bound_mb']:.0f}", f"{run['peak_mb'] / run['bound_mb']:.2f}"]  # fmt: skip
    print(table(["nodes", "edges", "minutes", "peak MB", "bound MB", "peak / bound"], [row]) + "\n")
    return runs


def read_part(bench: Bench, args: Any) -> list[dict[str, Any]]:
    runs, rows = [], []
    for kind in ("integers", "strings"):
        for repeat in range(args.repeats):
            path = bench.folder / f"{kind}.edges"
            tiny = bench.folder / f"tiny_{kind}.edges"
            with open(path) as lines:
                tiny.write_text("".join(next(lines) for _ in range(100)))
            result = bench.run("read", args.threads, path=str(path), tiny=str(tiny))
            runs.append({"kind": kind, "repeat": repeat, "file_mb": path.stat().st_size / 2**20} | result)
        good = [r for r in runs if r["kind"] == kind and "error" not in r]
        if not good:
            rows.append([kind, f"failed: {runs[-1]['error']}", "", "", ""])
            continue
        last = good[-1]
        rows.append([kind, f"{last['file_mb']:.0f}", spread([r["edges"] / r["seconds"] / 1e6 for r in good]),
                     f"{last['peak_mb']:.0f}", f"{last['arrays_mb']:.0f}"])  # fmt: skip
    print(table(["ids", "file MB", "M edges a second", "peak MB", "graph's arrays MB"], rows) + "\n")
    return runs


def deterministic_part(bench: Bench, args: Any) -> list[dict[str, Any]]:
    path = _save(bench, "deterministic", 3312, planted(3312, degree=2.74)[0])
    tasks = [
        (threads, {"graph": path, "walks": 80, "length": 10, "deterministic": mode})
        for threads in (1, 2)
        for mode in (False, True)
    ]
    runs = _repeat(bench, args, tasks)
    rows = []
    for threads in (1, 2):
        fast, exact = ({"threads": threads, "deterministic": mode} for mode in (False, True))
        ratio = _median(runs, **exact) / _median(runs, **fast)
        rows.append([str(threads), _seconds(runs, **fast), _seconds(runs, **exact), f"{ratio:.2f}"])
    print(table(["threads", "default, seconds", "deterministic, seconds", "ratio"], rows) + "\n")
    return runs


def _save(bench: Bench, name: str, n: int, edges: Any) -> str:
    path = bench.folder / f"{name}.npz"
    graph = adapters.kernelne_graph(n, edges)
    np.savez(path, offsets=graph.offsets, neighbours=graph.neighbours)
    return str(path)


def _repeat(bench: Bench, args: Any, tasks: list[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Run every task in every repeat, in turns."""
    return [
        {"threads": threads, "repeat": repeat} | task | bench.run("fit", threads, seed=repeat, **task)
        for repeat in range(args.repeats)
        for threads, task in tasks
    ]


def _values(runs: list[dict[str, Any]], key: str, **wanted: Any) -> list[float]:
    mine = [r for r in runs if all(r[name] == value for name, value in wanted.items())]
    return [r[key] for r in mine if "error" not in r] or [float("nan")]


def _median(runs: list[dict[str, Any]], key: str = "seconds", **wanted: Any) -> float:
    return statistics.median(_values(runs, key, **wanted))


def _seconds(runs: list[dict[str, Any]], key: str = "seconds", **wanted: Any) -> str:
    return spread(_values(runs, key, **wanted))


PARTS = {"length": length_part, "large": large_part, "read": read_part, "deterministic": deterministic_part}


def main() -> None:
    made = parser(__doc__, "scaling")
    made.add_argument("--parts", default=",".join(PARTS))
    made.add_argument("--nodes", type=int, default=1_000_000)
    made.add_argument("--edges", type=int, default=5_000_000)
    args = made.parse_args()
    chosen = args.parts.split(",")
    if unknown := set(chosen) - set(PARTS):
        made.error(f"--parts {', '.join(unknown)}: known are {', '.join(PARTS)}")
    bench = Bench(__file__)
    bench.run("compile_kernelne", args.threads)
    if {"large", "read"} & set(chosen):
        task = {"folder": str(bench.folder), "nodes": args.nodes, "edges": args.edges, "seed": 0}
        result = bench.run("make", args.threads, **task)
        if "error" in result:
            raise SystemExit(f"making the graph failed: {result['error']}")
        args.made_edges = result["n_edges"]
    print(f"threads: {args.threads} where not said otherwise; d = {DIM}; seconds: median (lowest–highest)\n")
    results = {name: PARTS[name](bench, args) for name in chosen}
    print(disturbed(run for runs in results.values() for run in runs))
    save(args, {"parts": results})


if __name__ == "__main__" and not child_main([adapters.compile_kernelne, make, fit, read]):
    main()
