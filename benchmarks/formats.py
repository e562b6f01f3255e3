"""Seconds to write and read a graph in every format on one core; prints the table of docs/formats.md.

python benchmarks/formats.py [--edges 1000000]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from kernelne import Graph, read_graph, write_graph
from kernelne.io.graphs.registry import FORMATS

REPEATS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=1_000_000)
    n_edges = parser.parse_args().edges
    rng = np.random.default_rng(0)
    n = n_edges // 5
    sources, targets = rng.integers(0, n, (2, n_edges))
    weights = rng.integers(1, 9, n_edges)
    graph = Graph.from_edges(sources, targets, weights, np.arange(n), drop_self_loops=True)
    small = Graph.from_edges([0], [1], [2])
    print(f"{graph!r}\n\n| format | write | read | MB |\n|---|---:|---:|---:|")
    warnings.simplefilter("ignore")  # edge lists leave isolated nodes out
    with tempfile.TemporaryDirectory() as folder:
        for suffix in {format.write: format.suffixes[-1] for format in FORMATS}.values():
            path = Path(folder, f"graph{suffix}")
            write_graph(small, path, lossy=True)
            read_graph(path)  # compiles
            written, read = [], []
            for _ in range(REPEATS):
                start = time.process_time()
                write_graph(graph, path, overwrite=True, lossy=True)
                written.append(time.process_time() - start)
                start = time.process_time()
                read_graph(path)
                read.append(time.process_time() - start)
            seconds = [f"{statistics.median(times):.1f}" for times in (written, read)]
            print(f"| `{suffix}` | {seconds[0]} | {seconds[1]} | {path.stat().st_size / 1e6:.0f} |")
            path.unlink()


if __name__ == "__main__":
    main()
