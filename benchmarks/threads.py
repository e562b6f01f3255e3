"""Walks per second by number of threads, beside as many separate processes and beside GRAPE.

    python benchmarks/threads.py [--counts 1,2,4,8,16] [--graphs small,random,power-law]

small: a planted partition of CiteSeer's size; random: Erdős–Rényi, 100,000 nodes, 500,000 edges; power-law:
300,000 nodes, 1.5 million edges. Separate processes of one thread each share nothing but the machine: they
show what it can do. The score is micro-F1 with 10 % of the labels where there are any, else the loss. All of
KernelNE with a Gaussian kernel unless told; seconds are those of `fit`, after a run that compiles. GRAPE is
measured where it is installed (`make bench`). Use a quiet machine.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import adapters
from common import HERE, Bench, child_main, parser, save, table
from generate import erdos_renyi, planted, power_law

#: Graphs by name: what makes them, and walks per node.
GRAPHS: dict[str, tuple[Any, int]] = {
    "small": (lambda: planted(3300, 6, 2.8, 0.8), 400),
    "random": (lambda: erdos_renyi(100_000, 10.0), 30),
    "power-law": (lambda: power_law(300_000, 10.0), 12),
}
METHODS = ("KernelNE", "KernelNE, deterministic", "MKernelNE()", "DeepWalk", "GRAPE")
_PATIENCE = 600


def _model(method: str, walks: int, threads: int) -> Any:
    import kernelne
    from kernelne import baselines

    given = {"n_threads": threads, "random_state": 0, "progress": False, "walks_per_node": walks}
    if method == "DeepWalk":
        return baselines.DeepWalk(**given)
    if method == "MKernelNE()":
        return kernelne.MKernelNE(**given)
    return kernelne.KernelNE(**given, deterministic="deterministic" in method)


def fit(graph: str, method: str, walks: int, threads: int, begin: float = 0.0) -> dict[str, Any]:
    """Child: seconds of one run, and what it learned; it starts at the time `begin`."""
    with np.load(graph) as file:
        n, edges, labels = int(file["n"]), file["edges"], file["labels"]
    if method == "GRAPE":
        from peers import METHODS as PEERS

        runs = [
            PEERS["grape"](*task, threads, 0) for task in ((60, erdos_renyi(60)[0], 2), (n, edges, walks))
        ]
    else:
        loaded = adapters.kernelne_graph(n, edges)
        tiny = adapters.kernelne_graph(99, np.column_stack([np.arange(98), np.arange(1, 99)]))
        model = _model(method, walks, threads)
        runs = [lambda: _model(method, 1, threads).fit(tiny), lambda: model.fit(loaded)]
    runs[0]()
    time.sleep(max(0.0, begin - time.time()))
    start = time.perf_counter()
    found = runs[1]()
    result: dict[str, Any] = {"seconds": time.perf_counter() - start, "walks": n * walks}
    if labels.size:
        from kernelne import classify_nodes

        vectors = found if method == "GRAPE" else found.embedding_
        scores = classify_nodes(vectors, labels, train_sizes=[0.1], n_repeats=5, random_state=0)
        result["micro_f1"] = float(scores.micro_f1.mean())
    elif method != "GRAPE":
        result["loss"] = float(found.loss_)
    return result


def apart(bench: Bench, graph: str, walks: int, count: int) -> float:
    """Walks per second of `count` processes that run at the same time, one thread each."""
    begin = time.time() + 6 + count / 2  # all have started by then
    environment = os.environ | {"NUMBA_CACHE_DIR": str(bench.folder / "numba"), "OMP_NUM_THREADS": "1"}
    answers = [bench.folder / f"apart{i}.json" for i in range(count)]
    children = []
    for answer in answers:
        task = {"graph": graph, "method": "KernelNE", "walks": walks, "threads": 1, "begin": begin}
        command = [sys.executable, bench.script, "--child", "fit", json.dumps(task), str(answer)]
        children.append(subprocess.Popen(command, env=environment))
    for child in children:
        child.wait(_PATIENCE)
    found = [json.loads(answer.read_text()) for answer in answers]
    return float(sum(each["walks"] / each["seconds"] for each in found))


def draw(runs: list[dict[str, Any]], graphs: list[str], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "threads"}
    with plt.rc_context(style):
        figure, axes = plt.subplots(
            1, len(graphs), figsize=(2.8 * len(graphs), 2.6), squeeze=False, layout="constrained"
        )
        for panel, graph in zip(axes[0], graphs, strict=True):
            for method in ("separate processes", *METHODS):
                points = [(r["threads"], r["speed"] / 1000) for r in runs if _is(r, graph, method)]
                dashes = "--" if method == "separate processes" else ".-"
                if points:
                    panel.plot(*zip(*sorted(points), strict=True), dashes, label=method)
            panel.set(
                title=graph, xlabel="threads or processes", ylabel="1,000 walks per second", ylim=(0, None)
            )
        axes[0, 0].legend()
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _is(run: dict[str, Any], graph: str, method: str) -> bool:
    return (run["graph"], run["method"]) == (graph, method) and "speed" in run


def main() -> None:
    made = parser(__doc__, "threads")
    cores = len(os.sched_getaffinity(0))
    counts = sorted({1, cores} | {2**k for k in range(8) if 2**k < cores})
    made.add_argument("--counts", default=",".join(map(str, counts)), help="numbers of threads")
    made.add_argument("--graphs", default=",".join(GRAPHS))
    made.add_argument("--methods", default=";".join(METHODS), help="separated by semicolons")
    args = made.parse_args()
    counts, graphs = [int(each) for each in args.counts.split(",")], args.graphs.split(",")
    methods = args.methods.split(";")
    if importlib.util.find_spec("embiggen") is None:
        methods = [each for each in methods if each != "GRAPE"]
    bench = Bench(__file__)
    bench.run("compile_kernelne", 1)
    runs: list[dict[str, Any]] = []
    for name in graphs:
        make, walks = GRAPHS[name]
        edges, labels = make()
        path = bench.folder / f"{name}.npz"
        n = int(edges.max()) + 1 if labels is None else len(labels)
        np.savez(path, n=n, edges=edges, labels=np.empty(0) if labels is None else labels)
        for count in counts:
            for _ in range(args.repeats):
                for method in methods:
                    fewer = max(walks // (8 if count == 1 else 2 if count < 8 else 1), 1)
                    task = {"graph": str(path), "method": method, "walks": fewer}
                    result = bench.run("fit", count, **task)
                    if "seconds" in result:
                        result["speed"] = result["walks"] / result["seconds"]
                    runs.append({"graph": name, "method": method, "threads": count} | result)
            speed = apart(bench, str(path), max(walks // 8, 1), count)
            runs.append({"graph": name, "method": "separate processes", "threads": count, "speed": speed})
    print(report(runs, graphs, counts, methods))
    draw(_medians(runs), graphs, HERE / "results" / f"{args.output.stem}.svg")
    save(args, {"runs": runs})


def _medians(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = dict.fromkeys((r["graph"], r["method"], r["threads"]) for r in runs)
    found = []
    for graph, method, threads in keys:
        speeds = [r["speed"] for r in runs if _is(r, graph, method) and r["threads"] == threads]
        if speeds:
            speed = float(np.median(speeds))
            found.append({"graph": graph, "method": method, "threads": threads, "speed": speed})
    return found


def report(runs: list[dict[str, Any]], graphs: list[str], counts: list[int], methods: list[str]) -> str:
    speeds = {(r["graph"], r["method"], r["threads"]): r["speed"] for r in _medians(runs)}
    rows = []
    for name in graphs:
        for method in ("separate processes", *methods):
            cells = []
            for count in counts:
                speed, limit = (speeds.get((name, m, count)) for m in (method, "separate processes"))
                share = (
                    f" ({speed / limit:.0%})" if speed and limit and method != "separate processes" else ""
                )
                cells.append(f"{speed / 1000:,.0f}{share}" if speed else "–")
            learned = [r.get("micro_f1", r.get("loss")) for r in runs if _is(r, name, method)]
            known = [each for each in learned if each is not None]
            rows.append([name, method, *cells, f"{min(known):.3f}–{max(known):.3f}" if known else "–"])
    head = ["graph", "", *map(str, counts), "micro-F1 or loss"]
    return "1,000 walks per second; in brackets, of separate processes.\n\n" + table(head, rows)


if __name__ == "__main__" and not child_main([adapters.compile_kernelne, fit]):
    main()
