"""How far the estimates of `kernelne info` are off: seconds and memory, against those of a run.

    python benchmarks/estimates.py [--threads 2] [--walks 40]

Three graphs: dense blocks, a large graph of blocks, and one with hubs and weights. Each is embedded in a
process of its own, with string ids, and written as .csv: the estimate of the memory is that of the whole
command.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from blocks import blocks
from generate import power_law
from kernelne import Graph, load_dataset
from kernelne.graph.ops import edges_of

_PEAK = (
    "import re, sys; from kernelne.__main__ import main; code = main(sys.argv[1:]);"
    "print('peak', re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]); sys.exit(code)"
)


def graphs() -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """Return edges and weights by name."""
    hubs, _ = power_law(100_000, 10)
    found: dict[str, Graph] = {
        "dense blocks": load_dataset("planted:n=3000,k=5,p_in=0.05,p_out=0.005,seed=1").graph,
        "blocks": blocks(100_000),
    }
    made = {name: (edges_of(graph)[0], None) for name, graph in found.items()}
    weights = np.random.default_rng(0).integers(1, 9, len(hubs))
    return made | {"hubs, weighted": (hubs, weights)}


def run(folder: Path, *args: str) -> str:
    command = [sys.executable, "-c", _PEAK, *args]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", default="2")
    parser.add_argument("--walks", default="40", help="walks per node")
    args = parser.parse_args()
    options = ["-j", args.threads, "--walks-per-node", args.walks]
    for name, (edges, weights) in graphs().items():
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home)
            columns = [[f"node-{i}" for i in column] for column in edges.T.tolist()]
            columns += [] if weights is None else [[str(weight) for weight in weights.tolist()]]
            (folder / "g.edges").write_text("\n".join(map(" ".join, zip(*columns, strict=True))))
            run(folder, "embed", "g.edges", "-o", "x.csv", "--quiet", "-j", "1", "--walks-per-node", "1")
            told = json.loads(run(folder, "info", "g.edges", "--json", *options).partition("\npeak")[0])
            made = run(folder, "embed", "g.edges", "-o", "y.csv", *options)
        seconds, peak = (
            float(re.findall(r", ([\d.]+) s$", made, re.MULTILINE)[0]),
            int(made.split()[-1]) / 1024,
        )
        line = f"{name}: {told['estimated_seconds']} s told, {seconds} s taken; "
        line += f"{told['estimated_memory_MiB']} MiB told, {peak:.0f} MiB taken"
        print(line, flush=True)


if __name__ == "__main__":
    main()
