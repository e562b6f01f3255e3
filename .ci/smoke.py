"""Does what is installed work on this system? The command line on a planted graph, and what it wrote.

    python .ci/smoke.py

Needs the package and nothing else; exits with 1 and the reason at the first thing that is wrong.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import kernelne

GROUPS, SIZE = 4, 30
#: Ids as people have them: not ASCII, with blanks, and in no order.
NODES = [f"Gruppe {group}, Knoten №{i}" for i in range(SIZE) for group in range(GROUPS)]
FAST = ["--dim", "16", "--walks-per-node", "40", "--seed", "1", "--quiet"]


def check(told: bool, what: str) -> None:
    if not told:
        sys.exit(f"smoke test failed: {what}")
    print(f"ok: {what}", flush=True)


def run(folder: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The command in this folder; it must end with this exit code, and never with a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "kernelne", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=600,
    )
    if done.returncode != code or "Traceback" in done.stderr:
        sys.exit(f"kernelne {' '.join(arguments)}: exit code {done.returncode}, not {code}\n{done.stderr}")
    return done


def group_of(node: str) -> str:
    return node.partition(",")[0]


def write_planted(path: Path) -> None:
    """Within a group every third pair is linked, between groups one in a hundred."""
    draw = random.Random(7)
    lines = [
        f"{u}\t{v}\n"
        for i, u in enumerate(NODES)
        for v in NODES[i + 1 :]
        if draw.random() < (0.33 if group_of(u) == group_of(v) else 0.01)
    ]
    path.write_text("".join(lines), encoding="utf-8")


def check_vectors(embedding: kernelne.Embedding, what: str) -> None:
    vectors = embedding.vectors
    check(sorted(embedding.nodes.tolist()) == sorted(NODES), f"{what}: every node's id is there, as it was")
    check(vectors.shape == (len(NODES), 16), f"{what}: a row a node")
    check(bool(np.isfinite(vectors).all()), f"{what}: rows are finite")
    check(len(np.unique(vectors, axis=0)) == len(NODES), f"{what}: rows differ")
    groups = np.array([group_of(node) for node in embedding.nodes])
    apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    right = float((groups[apart.argmin(axis=1)] == groups).mean())
    check(right > 0.95, f"{what}: the nearest node is of the same group for {right:.0%} of nodes")


def main() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        told = run(folder, "--version").stdout
        check(told == f"kernelne {kernelne.__version__}\n", f"--version says {kernelne.__version__}")
        write_planted(folder / "graph.tsv")
        facts = json.loads(run(folder, "info", "graph.tsv", "--json").stdout)
        check(facts["nodes"] == len(NODES), "info counts the nodes")

        run(folder, "embed", "graph.tsv", "-o", "default.safetensors", *FAST)
        check_vectors(kernelne.Embedding.load(folder / "default.safetensors"), "MKernelNE")
        run(folder, "embed", "graph.tsv", "-o", "one.npz", "--model", "kernelne", *FAST)
        check_vectors(kernelne.Embedding.load(folder / "one.npz"), "KernelNE")

        tables = []
        for threads in ("1", "3"):
            out = f"threads{threads}.npz"
            run(folder, "embed", "graph.tsv", "-o", out, *FAST, "--deterministic", "--n-threads", threads)
            tables.append(kernelne.Embedding.load(folder / out))
        check_vectors(tables[0], "deterministic")
        same = tables[0].vectors.tobytes() == tables[1].vectors.tobytes()
        check(same, "deterministic: the same bits on one thread and on three")

        run(folder, "convert", "one.npz", "one.csv", "--lossy")
        npz, csv = (kernelne.Embedding.load(folder / file) for file in ("one.npz", "one.csv"))
        same = npz.nodes.tolist() == csv.nodes.tolist() and np.array_equal(npz.vectors, csv.vectors)
        check(same, "convert: ids and values are the same in another format")

        before = (folder / "one.npz").read_bytes()
        run(folder, "embed", "graph.tsv", "-o", "one.npz", *FAST, code=2)
        check((folder / "one.npz").read_bytes() == before, "nothing is overwritten unasked: exit code 2")
        error = run(folder, "embed", "missing.tsv", "-o", "new.npz", code=2).stderr
        check("missing.tsv" in error and error.count("\n") == 1, "a missing file: exit code 2, one line")
        run(folder, "embed", "graph.tsv", "-o", "new.npz", "--dim", "0", code=2)
        run(folder, "embed", "graph.tsv", "--no-such-option", code=2)
        check(not (folder / "new.npz").exists(), "what is given wrong: exit code 2, nothing is written")
    print("all well")


if __name__ == "__main__":
    main()
