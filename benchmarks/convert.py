"""Convert an edge list larger than an enforced memory limit to .kne, and check every degree of the result.

    python benchmarks/convert.py [--nodes 5000000] [--edges 50000000] [--limit 2GB] [--output results.json]

The edge list, of ids of 29 characters and weights, is written in blocks: 3.4 GB by default, and about 10 GB
of disk in all, in $TMPDIR. `kernelne convert` runs in a process whose address space is limited (RLIMIT_AS):
that counts all memory, used or only reserved (Arrow's allocator reserves 1 GiB at once), and all files that
are mapped, code included, so it is stricter than a limit on resident memory; the conversion maps no file.
Another process then maps the result, and compares the degree of each node, and the sum of its weights, with
those of the edges, made once more.
"""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import common
from kernelne import read_graph
from kernelne._common.memory import parse_size

BLOCK = 1_000_000


def blocks(nodes: int, edges: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield edges (m, 2) and their weights: one end is popular by a power law, the other is any node."""
    for start in range(0, edges, BLOCK):
        rng = np.random.default_rng(start)
        size = min(BLOCK, edges - start)
        popular = (nodes * rng.random(size) ** 3).astype(np.int64)
        yield np.column_stack([popular, rng.integers(0, nodes, size)]), rng.integers(1, 9, size)


def generate(threads: int, path: str, nodes: int, edges: int) -> dict[str, Any]:
    empty = pa.scalar("")

    def texts(numbers: NDArray[np.int64]) -> Any:
        digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 12, "0")
        return pc.binary_join_element_wise("customer-account-", digits, empty)

    with open(path, "wb") as file:
        for ends, weights in blocks(nodes, edges):
            amounts = pc.binary_join_element_wise(pa.array(weights).cast(pa.string()), ".000000", empty)
            lines = pc.binary_join_element_wise(texts(ends[:, 0]), texts(ends[:, 1]), amounts, "\t")
            lines = pc.binary_join_element_wise(lines, "\n", empty)
            _, offsets, data = lines.buffers()
            file.write(data.slice(0, int(np.frombuffer(offsets, np.int32)[len(lines)])))
    return {"bytes": Path(path).stat().st_size}


def convert(threads: int, path: str, made: str, limit: int) -> dict[str, Any]:
    from kernelne.cli import main

    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    sizes, ended = [0], threading.Event()
    watch = threading.Thread(target=_watch, args=(Path(made).parent, sizes, ended))
    watch.start()
    with common.timed() as times:
        code = main(["convert", path, made, "--no-header", "--quiet"])
    ended.set()
    watch.join()
    if code:
        sys.exit(code)  # its last line says why
    status = Path("/proc/self/status").read_text().split()
    address_mb = int(status[status.index("VmPeak:") + 1]) / 1024
    size = Path(made).stat().st_size
    return {**times, "address_mb": address_mb, "bytes": size, "temporary_bytes": max(sizes)}


def _watch(folder: Path, sizes: list[int], ended: threading.Event) -> None:
    """Note the size of all temporary files twice a second."""
    while not ended.wait(0.5):
        total = 0
        for path in folder.glob(".*/*"):
            with suppress(OSError):
                total += path.stat().st_size
        sizes.append(total)


def check(threads: int, made: str, nodes: int, edges: int) -> dict[str, Any]:
    with common.timed() as times:
        graph = read_graph(made)
    keys, strengths = np.empty(edges, np.int64), np.zeros(nodes)
    start = 0
    for ends, weights in blocks(nodes, edges):
        keys[start : start + len(ends)] = ends.min(axis=1) * nodes + ends.max(axis=1)
        start += len(ends)
        loops = ends[:, 0] == ends[:, 1]
        strengths += np.bincount(ends[:, 0], weights, nodes)
        strengths += np.bincount(ends[~loops, 1], weights[~loops], nodes)
    keys.sort()
    keys = keys[np.append(True, keys[1:] != keys[:-1])]
    low, high = keys // nodes, keys % nodes
    degrees = np.bincount(low, minlength=nodes) + np.bincount(high[low != high], minlength=nodes)
    there = np.flatnonzero(degrees)
    rows = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    found = np.bincount(rows, graph.weights, graph.n_nodes)
    first, last = graph.nodes[0], graph.nodes[-1]
    return {
        **times,
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "merged": graph.n_merged,
        "same_ids": [first, last] == [f"customer-account-{there[at]:012}" for at in (0, -1)],
        "same_edges": graph.n_edges == len(keys) and graph.n_merged == edges - len(keys),
        "same_degrees": bool(np.array_equal(graph.degrees, degrees[there])),
        "same_weights": bool(np.array_equal(found, strengths[there])),
    }


def main() -> None:
    parser = common.parser(__doc__, "convert")
    parser.add_argument("--nodes", type=int, default=5_000_000)
    parser.add_argument("--edges", type=int, default=50_000_000)
    parser.add_argument("--limit", default="2GB")
    args = parser.parse_args()
    bench = common.Bench(__file__)
    path, made = (str(bench.folder / name) for name in ("edges.tsv", "graph.kne"))
    size = {"nodes": args.nodes, "edges": args.edges}
    steps = {"generate": bench.run("generate", args.threads, path=path, **size)}
    limit = parse_size("--limit", args.limit)
    steps["convert"] = bench.run("convert", args.threads, path=path, made=made, limit=limit)
    left = sorted(entry.name for entry in bench.folder.iterdir() if entry.name.startswith("."))
    if "error" not in steps["convert"]:
        Path(path).unlink()
        steps["check"] = bench.run("check", args.threads, made=made, **size)
    for name, step in steps.items():
        if "error" in step:
            sys.exit(f"{name}: {step['error']}")
    converted, checked = steps["convert"], steps["check"]
    rows = [
        ["edge list", f"{steps['generate']['bytes'] / 2**30:.2f} GiB"],
        [".kne file", f"{converted['bytes'] / 2**30:.2f} GiB"],
        ["temporary files at most", f"{converted['temporary_bytes'] / 2**30:.2f} GiB"],
        ["limit of the address space", f"{limit / 2**30:.2f} GiB"],
        ["largest address space", f"{converted['address_mb'] / 2**10:.2f} GiB"],
        ["largest resident memory", f"{converted['peak_mb'] / 2**10:.2f} GiB"],
        ["conversion", f"{converted['seconds']:.0f} s, {converted['cpu_seconds']:.0f} s of CPU"],
        ["mapping and checking the file", f"{checked['seconds']:.1f} s"],
        ["temporary files left", str(len(left))],
        *([name.replace("_", " "), str(checked[name])] for name in checked if name.startswith("same_")),
    ]
    print(common.table([f"{checked['nodes']:,} nodes, {checked['edges']:,} edges", ""], rows))
    print(common.disturbed([converted]))
    common.save(args, {"steps": steps, "left": left})


if __name__ == "__main__" and not common.child_main([generate, convert, check]):
    main()
