"""Training in parts by 1, 2, … workers, beside training without parts on one thread.

python benchmarks/workers.py [--nodes 1000000] [--walks 2] [--counts 1,2] [--engines memory,disk]

A worker is a thread of the engines "memory" and "disk", and a process of "ray" (needs kernelne[cluster]).
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

import adapters
from blocks import blocks
from common import Bench, child_main, parser, save, spread, table
from generate import power_law
from kernelne.graph.ops import edges_of


def fit(graph: str, engine: str, parts: int, walks: int, threads: int) -> dict[str, Any]:
    """Child: seconds of training, without compiling, preparing and reading."""
    from kernelne import MKernelNE
    from kernelne.training.backend import load_backend
    from kernelne.training.parts.plan import Engine, make_plan

    def train(loaded: Any) -> tuple[float, float, float]:
        model = MKernelNE(walks_per_node=walks, random_state=0, n_threads=threads)
        config = model.config(loaded)
        backend = load_backend("cpu")
        if engine != "plain":
            plan = make_plan(loaded, config, Engine(engine, parts), backend, 3.25)
            backend, config = plan.backend, _with(config, parts=plan.parts)
        prepared = backend.prepare(loaded, config)
        state = backend.start(prepared)
        start = time.perf_counter()
        state = backend.run(prepared, state)
        return time.perf_counter() - start, float(state.history["walks"][-1]), state.loss

    if engine == "ray":
        import ray

        ray.init(address="local", num_cpus=threads, include_dashboard=False, _node_ip_address="127.0.0.1")
    train(adapters.kernelne_graph(99, np.column_stack([np.arange(98), np.arange(1, 99)])))
    with np.load(graph) as file:
        loaded = adapters.kernelne_graph(int(file["n"]), file["edges"])
    seconds, trained, loss = train(loaded)
    return {"seconds": seconds, "walks": trained, "loss": loss}


def _with(config: Any, **changes: Any) -> Any:
    from dataclasses import replace

    return replace(config, **changes)


def main() -> None:
    made = parser(__doc__, "workers")
    made.add_argument("--nodes", type=int, default=1_000_000)
    made.add_argument("--degree", type=float, default=20.0)
    made.add_argument("--walks", type=int, default=2)
    made.add_argument("--parts", type=int, default=8)
    made.add_argument("--counts", default=",".join(map(str, range(1, len(os.sched_getaffinity(0)) + 1))))
    made.add_argument("--engines", default="memory")
    made.add_argument("--graph", choices=["hubs", "blocks"], default="hubs")
    args = made.parse_args()
    bench = Bench(__file__)
    if args.graph == "hubs":
        edges, _ = power_law(args.nodes, args.degree)
    else:
        edges = edges_of(blocks(args.nodes, int(args.degree / 2)))[0]
    path = bench.folder / "graph.npz"
    np.savez(path, n=args.nodes, edges=edges)
    task = {"graph": str(path), "parts": args.parts, "walks": args.walks}
    runs = []
    for _ in range(args.repeats):
        runs.append({"engine": "plain", "workers": 1} | bench.run("fit", 1, engine="plain", **task))
        for engine in args.engines.split(","):
            for count in map(int, args.counts.split(",")):
                result = bench.run("fit", count, engine=engine, **task)
                runs.append({"engine": engine, "workers": count} | result)
    print(report(runs, len(edges), args))
    save(args, {"runs": runs})


def report(runs: list[dict[str, Any]], n_edges: int, args: Any) -> str:
    speeds: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        if "seconds" in run:
            key = run["engine"], run["workers"]
            speeds.setdefault(key, []).append(run["walks"] / run["seconds"] / 1e3)
    plain = float(np.median(speeds.get(("plain", 1), [np.nan])))
    rows = []
    for (engine, workers), found in speeds.items():
        one = float(np.median(speeds.get((engine, 1), [np.nan])))
        speed = float(np.median(found))
        rows.append([engine, str(workers), spread(found), f"{speed / one:.2f}", f"{speed / plain:.2f}"])
    head = ["engine", "workers", "thousand walks a second", "of one worker", "of one thread without parts"]
    told = f"{args.nodes:,} nodes, {n_edges:,} edges, {args.walks} walks per node, {args.parts} parts.\n\n"
    return told + table(head, rows)


if __name__ == "__main__" and not child_main([fit]):
    main()
