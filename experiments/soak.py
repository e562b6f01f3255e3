"""Fit, save, load, update and query again and again in one process: nothing it holds may grow.

    python experiments/soak.py [--minutes 60] [--seed 0] [--output experiments/soak.jsonl]

Every `--every` seconds a line is added to the output: rounds, resident memory, threads, open files, temporary
files. After a quarter of the time, in which code is compiled and pools are filled, they may not grow: the
threads and files not at all, the memory by no more than 5 % and 10 MiB. Exits with 1 if one does.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from kernelne import (
    Embedding,
    Graph,
    KernelNE,
    MKernelNE,
    fold_in,
    load_dataset,
    read_graph,
    update_embedding,
    write_graph,
)
from kernelne.graph.ops import edges_of

_FORMATS = (".npz", ".safetensors", ".parquet", ".npy", ".csv", ".emb")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MOST_SHARE, _MOST_BYTES = 0.05, 10 * 2**20


def one_round(folder: Path, number: int) -> None:
    """All that a long-lived service does with a graph, with files and settings that change by round."""
    graph = load_dataset(f"planted:n=300,k=3,p_in=0.1,p_out=0.01,seed={number % 20}").graph
    write_graph(graph, folder / "g.csv", overwrite=True)
    graph = read_graph(folder / "g.csv")
    settings: dict[str, Any] = {"dim": 16, "walks_per_node": 5, "n_threads": 1, "random_state": number}
    settings |= {"deterministic": number % 2 == 1, "checkpoint": folder / "run", "checkpoint_every": 0.05}
    model: Any
    if number % 3:
        model = MKernelNE(kernels=[("gaussian", 1.0), ("schoenberg", 2.0)], **settings).fit(graph)
    else:
        model = KernelNE(**settings).fit(graph)
    for file in (folder / "run").iterdir():
        file.unlink()
    made = model.to_embedding()
    path = folder / f"e{_FORMATS[number % len(_FORMATS)]}"
    made.save(path, overwrite=True)
    loaded = Embedding.load(path)
    assert np.allclose(loaded.vectors, made.vectors, atol=1e-5)
    for how in ("cosine", "euclidean"):
        loaded.neighbours(loaded.nodes[number % len(loaded)], 5, metric=how)
    loaded.build_index(n_threads=1)
    loaded.neighbours(loaded.nodes[:50], 5)
    edges = np.vstack([graph.nodes[edges_of(graph)[0]], [(9_000_000, node) for node in graph.nodes[:2]]])
    grown = Graph.from_edges(*edges.T, nodes=np.append(graph.nodes, 9_000_000))
    updated = update_embedding(made, grown, n_threads=1, random_state=number)
    assert len(updated) == len(made) + 1
    fold_in(made, [(9_000_001, int(graph.nodes[0]))])


def state(began: float, rounds: int, folder: Path) -> dict[str, Any]:
    """What the process holds now."""
    gc.collect()
    return {
        "minute": round((time.monotonic() - began) / 60, 2),
        "rounds": rounds,
        "rss_mib": round(int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 2**20, 1),
        "threads": len(os.listdir("/proc/self/task")),
        "python_threads": threading.active_count(),
        "open_files": len(os.listdir("/proc/self/fd")),
        "files": len(list(folder.iterdir())),
    }


def growth(lines: list[dict[str, Any]]) -> list[str]:
    """Return what has grown since a quarter of the time, in words."""
    settled = [line for line in lines if line["minute"] >= lines[-1]["minute"] / 4]
    found = []
    for name in ("threads", "python_threads", "open_files", "files"):
        # Medians: a thread that is just ending may be seen in one line.
        half = len(settled) // 2
        before, after = (
            float(np.median([x[name] for x in part])) for part in (settled[:half], settled[half:])
        )
        if after > before:
            found.append(f"{name} from {before:g} to {after:g}")
    before, after = settled[0]["rss_mib"], settled[-1]["rss_mib"]
    if after - before > max(_MOST_SHARE * before, _MOST_BYTES / 2**20):
        found.append(f"memory from {before} to {after} MiB")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two lines")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("soak.jsonl"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines: list[dict[str, Any]] = []
    began = time.monotonic()
    rounds, due = 0, began
    with tempfile.TemporaryDirectory() as name, open(given.output, "w") as output:
        while True:
            one_round(Path(name), given.seed + rounds)
            rounds += 1
            ended = time.monotonic() - began > 60 * given.minutes
            if time.monotonic() >= due or ended:
                due += given.every
                lines.append(state(began, rounds, Path(name)))
                print(json.dumps(lines[-1]), file=output, flush=True)
            if ended:
                break
    found = growth(lines)
    told = f"grew: {'; '.join(found)}" if found else "nothing grew"
    print(f"{rounds} rounds in {lines[-1]['minute']} min: {told}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
