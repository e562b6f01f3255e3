"""GRAPE's DeepWalk and KernelNE in turn, with nothing of GRAPE but its compiled library.

    python benchmarks/grape.py --graph FILE [--threads 2] [--repeats 3] [--library FOLDER]

For machines on which GRAPE cannot be installed: FOLDER holds ensmallen_haswell.abi3.so of its package ensmallen,
whose classes embiggen only wraps. Settings are those of peers.py: 80 walks of 10 per node, window 10, 128
dimensions, 5 negatives. Each repeat is the fastest of three runs in a process of its own, after one that compiles.
"""  # noqa: E501

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WALKS = 80


def grape(edges: Any, n: int) -> Callable[[int], Any]:
    import ensmallen_haswell as library

    with tempfile.TemporaryDirectory() as folder:
        nodes, links = (Path(folder) / name for name in ("nodes.csv", "edges.csv"))
        nodes.write_text("name\n" + "\n".join(map(str, range(n))) + "\n")
        links.write_text("subject,object\n" + "\n".join(f"{a},{b}" for a, b in edges) + "\n")
        graph = library.Graph.from_csv(
            node_path=str(nodes), node_list_separator=",", node_list_header=True, nodes_column="name",
            edge_path=str(links), edge_list_separator=",", edge_list_header=True, sources_column="subject",
            destinations_column="object", directed=False, name="benchmark",
        )  # fmt: skip

    def run(walks: int) -> Any:
        return library.models.SkipGram(
            embedding_size=128, epochs=1, iterations=walks, walk_length=10, window_size=10, verbose=False,
            number_of_negative_samples=5, max_neighbours=n, random_state=0,
        ).fit_transform(graph)  # fmt: skip

    return run


def kernelne(edges: Any, n: int) -> Callable[[int], Any]:
    import adapters
    from kernelne import KernelNE

    graph = adapters.kernelne_graph(n, edges)
    threads = len(os.sched_getaffinity(0))
    return lambda walks: KernelNE(
        walks_per_node=walks, n_threads=threads, random_state=0, progress=False
    ).fit(graph)


def child(kind: str, path: str, threads: int) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        edges = np.loadtxt(file, dtype=int)
    run = {"GRAPE": grape, "KernelNE": kernelne}[kind](edges, int(edges.max()) + 1)
    run(1)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run(WALKS)
        seconds.append(time.perf_counter() - start)
    print(min(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graph", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--library", default="")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.child, args.graph, args.threads)
    paths = [args.library, os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "RAYON_NUM_THREADS": str(args.threads),
    }
    found: dict[str, list[float]] = {"GRAPE": [], "KernelNE": []}
    for _ in range(args.repeats):
        for kind, seconds in found.items():
            command = [sys.executable, __file__, *sys.argv[1:], "--child", kind]
            done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
            seconds.append(float(done.stdout.split()[-1]))
    times = [a / b for a, b in zip(found["GRAPE"], found["KernelNE"], strict=True)]
    for kind, seconds in found.items():
        print(f"{kind}: {statistics.median(seconds):.2f} s ({min(seconds):.2f}–{max(seconds):.2f})")
    print(f"times: {statistics.median(times):.1f} ({min(times):.1f}–{max(times):.1f})")
    return None


if __name__ == "__main__":
    main()
