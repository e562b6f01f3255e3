"""Peak memory of `MKernelNE().fit` and of its embedding for a million nodes, compared with its tables.

    python benchmarks/memory.py [--nodes 1000000] [--degree 10] [--output results.json]

A child process makes the graph and compiles; another loads both and fits, like every run except the first.
One walk per node is enough, because memory does not depend on the number of walks.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

import common
from generate import power_law
from kernelne import Graph, MKernelNE

DIM = 128


def _model(threads: int) -> MKernelNE:
    warnings.simplefilter("ignore", UserWarning)  # so few walks teach little
    return MKernelNE(dim=DIM, walks_per_node=1, n_threads=threads, random_state=0, progress=False)


def save_graph(threads: int, path: str, nodes: int, degree: float) -> dict[str, Any]:
    edges, _ = power_law(nodes, degree)
    graph = Graph.from_edges(edges[:, 0], edges[:, 1], nodes=np.arange(nodes))
    np.savez(path, offsets=graph.offsets, neighbours=graph.neighbours)
    _model(threads).fit([(0, 1), (1, 2)])
    return {"edges": graph.n_edges}


def fit(threads: int, path: str, nodes: int) -> dict[str, Any]:
    with np.load(path) as arrays:
        graph = Graph(arrays["offsets"], arrays["neighbours"], None, False, np.arange(nodes))
    model = _model(threads).fit([(0, 1), (1, 2)])
    before = common.peak_mb()
    model.fit(graph)
    fitted = common.peak_mb()
    model.embedding_  # noqa: B018  (made when it is first asked for)
    return {
        "before_mb": before,
        "fit_mb": fitted,
        "embedding_mb": common.peak_mb(),
        "table_mb": nodes * DIM * 4 / 2**20,
        "graph_mb": (graph.offsets.nbytes + graph.neighbours.nbytes + graph.nodes.nbytes) / 2**20,
    }


def main() -> None:
    parser = common.parser(__doc__, "memory")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--degree", type=float, default=10.0)
    args = parser.parse_args()
    bench = common.Bench(__file__)
    path = str(bench.folder / "graph.npz")
    made = bench.run("save_graph", args.threads, path=path, nodes=args.nodes, degree=args.degree)
    found = bench.run("fit", args.threads, path=path, nodes=args.nodes)
    if "error" in made | found:
        sys.exit((made | found)["error"])
    table, allowed = found["table_mb"], 2.5 * found["table_mb"] + found["graph_mb"] + 200
    rows = [
        [name, f"{found[key]:,.0f}", f"{(found[key] - found['before_mb']) / table:.2f}"]
        for name, key in (
            ("process, code loaded", "before_mb"),
            ("fit", "fit_mb"),
            ("embedding_", "embedding_mb"),
        )
    ]
    print(common.table(["peak", "MB", "tables of its own"], rows))
    print(f"{args.nodes:,} nodes, {made['edges']:,} edges: a table {table:,.0f} MB, ", end="")
    print(f"graph {found['graph_mb']:,.0f} MB; 2.5 tables + graph + 200 MB are {allowed:,.0f} MB")
    common.save(args, {"made": made, "found": found, "allowed_mb": allowed})


if __name__ == "__main__" and not common.child_main([save_graph, fit]):
    main()
