"""A model of the time of training in parts, from measured rates; it predicts runs that fit on this machine, which are
then made, and graphs that do not. Needs Ray.

python benchmarks/cluster_model.py [--nodes 400000] [--walks 10] [--gigabits 10] [--cores 16]

    pairs    = nodes · walks per node · pairs kept of a walk
    work     = pairs · (train + find) / workers                every worker trains and finds its share
    moved    = disk: rounds · both tables, read and written; network: episodes · context table, as each machine
               keeps its center parts and all context parts go round the machines
    run      = prepare + max(work, moved / rate)               reading and sending overlap with training
               on disk, at least (work of all workers + moved / rate) / cores, as the system copies what is read

On a cluster every machine has `cores` workers, and sends and receives at `gigabits`; each block also copies its two
parts to the object store and from it, and takes `task` seconds of the driver, which is an assumption.
"""  # noqa: E501

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import adapters
from common import parser, save, spread, table
from generate import power_law
from kernelne.training.parts.schedule import TOGETHER

DIM, EPISODES = 128, 10


def rates(graph: Any, config: Any) -> dict[str, float]:
    """Measure seconds per pair of training and finding on one thread, seconds to prepare, bytes a second."""
    from kernelne.training.parts.backend import PartsBackend
    from kernelne.training.parts.block import train_block
    from kernelne.training.parts.memory import InMemory
    from kernelne.training.parts.pairs import Pairs, find_all, pairs_per_walk

    backend = PartsBackend(InMemory())
    start = time.perf_counter()
    prepared = backend.prepare(graph, config)
    state = backend.start(prepared)
    prepare = time.perf_counter() - start
    task, sub = prepared.graph, prepared.graph.schedule.at(0)
    start = time.perf_counter()
    pairs, starts = find_all(task.find, *sub.walks)
    find = (time.perf_counter() - start) / starts[-1]
    trained, start = 0, time.perf_counter()
    for block in sub.blocks:
        place = block.center * config.parts + block.context
        here = slice(starts[place], starts[place + 1])
        mine = Pairs(pairs.centers[here], pairs.contexts[here])
        parts = state.center[block.center], state.context[block.context]
        train_block(block, config, state.coefficients, mine, task.noise[block.context], *parts)
        trained += len(mine.centers)
    return {
        "pairs": pairs_per_walk(config),
        "prepare": prepare,
        "find": find,
        "train": (time.perf_counter() - start) / trained,
        "objects": _object_rate(graph.n_nodes // config.parts),
        "disk": _disk_rate(graph.n_nodes // config.parts),
    }


def _object_rate(rows: int) -> float:
    """Bytes a second of copying parts of so many rows from Ray's object store and to it, in a task."""
    import ray

    def copied(part: Any) -> Any:
        return part.copy()

    _start_ray(1)
    task, table, times = ray.remote(copied), np.ones((rows, DIM), np.float32), 8
    parts = [ray.put(table) for _ in range(8)]
    for timed in (False, True):
        start = time.perf_counter()
        for _ in range(times if timed else 1):
            parts = [task.remote(part) for part in parts]
        ray.wait(parts, num_returns=len(parts))
    seconds = time.perf_counter() - start
    ray.shutdown()
    return 2 * times * len(parts) * table.nbytes / seconds


def _start_ray(workers: int) -> None:
    import ray

    ray.shutdown()
    given: dict[str, Any] = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    ray.init(address="local", num_cpus=workers, log_to_driver=False, configure_logging=False, **given)


def _disk_rate(rows: int) -> float:
    """Bytes a second of reading and writing parts of so many rows as training does, by the system's cache."""
    from kernelne.training.part_files import PartFiles

    part, count, times = np.ones((rows, DIM), np.float32), 8, 8
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, str(i)) for i in range(count * (times + 1))]
        for path in paths[:count]:
            part.tofile(path)
        files = PartFiles(paths[:count], DIM)
        start = time.perf_counter()
        for i, path in enumerate(paths[count:]):
            files.read(i % count, part.reshape(-1))
            files.put(i % count, part, path)
        return 2 * count * times * part.nbytes / (time.perf_counter() - start)


def predict(
    found: dict[str, float], n: float, walks: float, parts: int, workers: int, engine: str, episodes: int,
    machines: int = 1, gigabits: float = 10.0, task: float = 1e-3,
) -> float:  # fmt: skip
    """Seconds of a run. `n` scales the seconds to prepare, which were measured for `found["nodes"]`."""
    pairs, tables = n * walks * found["pairs"], 2 * n * DIM * 4
    idle = -(-parts // workers) * workers / parts
    work = pairs * (found["train"] + found["find"]) / workers * idle
    moved = 0.0
    if engine == "disk":
        rounds = TOGETHER + episodes * -(-parts // TOGETHER)
        moved = (rounds * 2 * tables + 2 * 8 * pairs) / found["disk"]
        moved = max(moved, (work * workers + moved) / len(os.sched_getaffinity(0)))
    elif engine == "ray":
        work += episodes * parts * 2 * tables / found["objects"] / workers + episodes * parts**2 * task
        if machines > 1:
            moved = episodes * tables / 2 / (gigabits / 8 * 1e9)
    prepare = found["prepare"] * n / found["nodes"]
    return prepare + max(work, moved)


def measured(graph: Any, config: Any, engine: str) -> float:
    if engine == "ray":
        _start_ray(config.n_threads)
        tiny = adapters.kernelne_graph(99, np.column_stack([np.arange(98), np.arange(1, 99)]))
        _run(tiny, replace(config, parts=config.n_threads), engine)  # workers start, and load compiled code
    return _run(graph, config, engine)


def _run(graph: Any, config: Any, engine: str) -> float:
    from kernelne.training.backend import load_backend
    from kernelne.training.parts.plan import Engine, make_plan

    start = time.perf_counter()
    backend = make_plan(graph, config, Engine(engine, config.parts), load_backend("cpu"), 3.25).backend
    prepared = backend.prepare(graph, config)
    backend.run(prepared, backend.start(prepared))
    return time.perf_counter() - start


def main() -> None:
    made = parser(__doc__, "cluster_model")
    made.add_argument("--nodes", type=int, default=400_000)
    made.add_argument("--degree", type=float, default=20.0)
    made.add_argument("--walks", type=int, default=10)
    made.add_argument("--parts", type=int, default=8)
    made.add_argument("--gigabits", type=float, default=10.0)
    made.add_argument("--task", type=float, default=2e-4, help="seconds of the driver for a block")
    made.add_argument("--cores", type=int, default=16)
    made.add_argument("--engines", default="memory,disk")
    args = made.parse_args()
    from kernelne import MKernelNE

    tiny = adapters.kernelne_graph(99, np.column_stack([np.arange(98), np.arange(1, 99)]))
    graph = adapters.kernelne_graph(args.nodes, power_law(args.nodes, args.degree)[0])
    config = MKernelNE(walks_per_node=args.walks, random_state=0, n_threads=1).config(graph)
    config = replace(config, parts=args.parts)
    rates(tiny, replace(config, parts=2))  # compile
    every = [rates(graph, config) for _ in range(args.repeats)]
    found = {name: float(np.median([each[name] for each in every])) for name in every[0]}
    found |= {"nodes": float(args.nodes)}
    print({name: f"{value:.3g}" for name, value in found.items()})
    runs, rows = [], []
    for engine in args.engines.split(","):
        for workers in range(1, len(os.sched_getaffinity(0)) + 1):
            expected = predict(found, args.nodes, args.walks, args.parts, workers, engine, EPISODES)
            here = replace(config, n_threads=workers)
            took = [measured(graph, here, engine) for _ in range(args.repeats)]
            runs.append({"engine": engine, "workers": workers, "predicted": expected, "seconds": took})
            error = f"{expected / float(np.median(took)) - 1:+.0%}"
            rows.append([engine, str(workers), f"{expected:.1f}", spread(took, 1), error])
    print(table(["engine", "workers", "predicted, s", "measured, s", "error"], rows))
    rows = []
    for machines in (8, 32, 128):
        workers = machines * args.cores
        cluster = {"machines": machines, "gigabits": args.gigabits, "task": args.task}
        hours = predict(found, 1e9, 22, workers, workers, "ray", EPISODES, **cluster) / 3600
        rows.append([str(machines), str(workers), f"{hours:.1f}"])
    told = f"Computed: 1 G nodes, 30 G edges, 22 walks per node, {args.gigabits:g} Gb/s"
    print(f"\n{told}\n\n" + table(["machines", "workers", "hours"], rows))
    save(args, {"rates": found, "runs": runs, "computed": rows})


if __name__ == "__main__":
    main()
