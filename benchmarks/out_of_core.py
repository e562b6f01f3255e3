"""Train a graph whose tables do not fit an enforced limit of memory, and compare with training in memory.

    python benchmarks/out_of_core.py [--nodes 5000000] [--degree 20] [--limit 2GB] [--walks 22]

The graph is that of blocks.py, as a .kne file. `kernelne embed --memory` runs in a process of a control group
with that limit (Linux, version 1 or 2 of control groups, as root): the system ends a process that takes more,
and pages that hold files count, too, until they are given up. Another process embeds the same graph without a
limit. Both write their vectors; the share of the ten nearest nodes that are in the own block tells what was
learned.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import common
from blocks import blocks, purity
from kernelne import Embedding, write_graph
from kernelne._common.memory import parse_size

_GROUPS = Path("/sys/fs/cgroup")


def generate(threads: int, path: str, nodes: int, degree: int) -> dict[str, Any]:
    graph = blocks(nodes, degree // 2)
    write_graph(graph, path)
    return {"edges": graph.n_edges, "bytes": Path(path).stat().st_size}


def embed(threads: int, path: str, output: str, walks: int, limit: int | None, room: str) -> dict[str, Any]:
    """Child: embed as the command does, in a group of its own if there is a limit."""
    group = None if limit is None else _limited(limit)
    from kernelne.cli import main

    given = ["--memory", room, "--engine", "disk"] if group is not None else []
    args = ["embed", path, "-o", output, "-j", str(threads), "--walks-per-node", str(walks), "--seed", "0"]
    with common.timed() as times:
        code = main([*args, *given])
    if code:
        sys.exit(code)  # its last line says why
    embedding = Embedding.load(output, mapped=True)
    found = {**times, "trained": embedding.provenance["seconds"]}
    if group is not None:
        peaks = (group / name for name in ("memory.max_usage_in_bytes", "memory.peak"))
        peak = next(path for path in peaks if path.exists())
        found["group_mb"] = int(peak.read_text()) / 2**20
    return found


def check(threads: int, path: str) -> dict[str, Any]:
    return {"purity": purity(Embedding.load(path).vectors)}


def _limited(limit: int) -> Path:
    """Move this process to a new control group with this limit of memory; return its folder."""
    old = (_GROUPS / "memory").is_dir()
    group = (_GROUPS / "memory" if old else _GROUPS) / f"kernelne-{os.getpid()}"
    group.mkdir()
    (group / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(limit))
    (group / "cgroup.procs").write_text(str(os.getpid()))
    return group


def main() -> None:
    parser = common.parser(__doc__, "out_of_core")
    parser.add_argument("--nodes", type=int, default=5_000_000)
    parser.add_argument("--degree", type=int, default=20)
    parser.add_argument("--walks", type=int, default=22)
    parser.add_argument("--limit", default="2GB", help="what the system enforces")
    parser.add_argument("--memory", default="1.9GB", help="what the command is told")
    args = parser.parse_args()
    limit, bench = parse_size("--limit", args.limit), common.Bench(__file__)
    path = str(bench.folder / "graph.kne")
    made = bench.run("generate", args.threads, path=path, nodes=args.nodes, degree=args.degree)
    runs: dict[str, Any] = {}
    # Compiles for both.
    tiny, first = str(bench.folder / "tiny.kne"), str(bench.folder / "first.safetensors")
    bench.run("generate", args.threads, path=tiny, nodes=2000, degree=4)
    for most in (None, limit):
        bench.run("embed", args.threads, path=tiny, output=first, walks=1, limit=most, room="1GB")
        Path(first).unlink(missing_ok=True)
    for name, most in (("in memory", None), ("out of core", limit)):
        output = str(bench.folder / "vectors.safetensors")
        task = {"path": path, "output": output, "walks": args.walks, "limit": most, "room": args.memory}
        runs[name] = bench.run("embed", args.threads, **task)
        if "error" in runs[name]:
            sys.exit(f"{name}: {runs[name]['error']}")
        runs[name]["purity"] = bench.run("check", args.threads, path=output)["purity"]
        Path(output).unlink()
    rows = []
    for name, run in runs.items():
        pairs = args.nodes * args.walks * 90 / run["trained"] / 1e6
        numbers = run["trained"], run["seconds"], run.get("group_mb", run["peak_mb"])
        rows.append([name, *(f"{x:.0f}" for x in numbers), f"{pairs:.1f}", f"{run['purity']:.3f}"])
    head = ["", "seconds of fit", "of the command", "peak MB", "million pairs a second", "purity"]
    share = runs["in memory"]["trained"] / runs["out of core"]["trained"]
    size = f"{args.nodes:,} nodes, {made['edges']:,} edges, {args.walks} walks per node"
    print(f"{size}, {args.threads} threads\n")
    print(common.table(head, rows))
    print(f"\nOut of core: {share:.0%} of the pairs a second in memory, limit {args.limit}")
    common.save(args, {"graph": made, "runs": runs})


if __name__ == "__main__" and not common.child_main([generate, embed, check]):
    main()
