"""Test whether a change of the code leaves all results the same, by hashes of trained models.

    python benchmarks/same_bits.py --record before.json     # at the commit to compare with
    python benchmarks/same_bits.py --compare before.json    # after the change, on the same machine

Both runs must be on the same kind of CPU with the same versions of NumPy and Numba: compiled arithmetic
differs between CPUs in the last bits. The exit code is 1 if a case differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import common
from kernelne import Graph, KernelNE, MKernelNE, baselines, load_dataset

_QUICK = {"walks_per_node": 10, "n_threads": 1, "random_state": 3}


def _digits() -> Graph:
    return load_dataset("digits").graph


def _directed() -> Graph:
    """Return a directed, weighted graph with some nodes without outgoing edges."""
    rng = np.random.default_rng(5)
    sources, targets = rng.integers(0, 800, 4000), rng.integers(0, 1000, 4000)
    return Graph.from_edges(sources, targets, rng.uniform(0.1, 3.0, 4000), directed=True)


def _weighted() -> Graph:
    return load_dataset("lesmis").graph


#: Name → a function that returns a fitted estimator.
CASES: dict[str, Callable[[], Any]] = {
    "KernelNE, Gaussian": lambda: KernelNE(**_QUICK).fit(_digits()),
    "KernelNE, Schoenberg, window 3": lambda: KernelNE.paper("schoenberg", window=3, **_QUICK).fit(_digits()),
    "MKernelNE, Gaussians of the paper": lambda: MKernelNE.paper(**_QUICK).fit(_digits()),
    "MKernelNE, two kinds of kernels": lambda: MKernelNE(
        kernels=[("gaussian", 1), ("schoenberg", 2)], **_QUICK
    ).fit(_digits()),
    "MKernelNE, automatic": lambda: MKernelNE(n_threads=1, random_state=3).fit(_digits()),
    "MKernelNE, automatic, weighted graph": lambda: MKernelNE(n_threads=1, random_state=4).fit(_weighted()),
    "MKernelNE, directed and weighted graph": lambda: MKernelNE.paper(**_QUICK).fit(_directed()),
    "KernelNE, node2vec's walks": lambda: KernelNE(p=0.5, q=2.0, **_QUICK).fit(_digits()),
    "KernelNE, odd sizes": lambda: KernelNE(
        dim=37, walk_length=13, shared_negatives=9, **_QUICK
    ).fit(_digits()),
    "MKernelNE, deterministic, one thread": lambda: MKernelNE.paper(
        deterministic=True, **_QUICK
    ).fit(_digits()),
    "MKernelNE, deterministic, two threads": lambda: MKernelNE.paper(
        deterministic=True, **_QUICK | {"n_threads": 2}
    ).fit(_digits()),
    "MKernelNE, concatenated tables": lambda: MKernelNE.paper(
        vectors="concat", norm=2.0, **_QUICK
    ).fit(_digits()),
    "DeepWalk": lambda: baselines.DeepWalk(**_QUICK).fit(_digits()),
    "node2vec": lambda: baselines.Node2Vec(p=0.5, q=2.0, **_QUICK).fit(_digits()),
    "GEMSEC": lambda: baselines.GEMSEC(**_QUICK).fit(_digits()),
    "WeightedMF": lambda: baselines.WeightedMF(**_QUICK).fit(_weighted()),
    "VERSE": lambda: baselines.VERSE(samples_per_node=50, n_threads=1, random_state=3).fit(_digits()),
    "LINE": lambda: baselines.LINE(samples_per_node=50, n_threads=1, random_state=3).fit(_digits()),
}  # fmt: skip


def digest(model: Any) -> str:
    """Return the hash of all numbers in a fitted estimator."""
    total = hashlib.blake2b(digest_size=12)
    for name in ("embedding_", "center_", "context_", "coefficients_", "cluster_centers_"):
        if hasattr(model, name):
            total.update(np.ascontiguousarray(getattr(model, name)).tobytes())
    for name, values in sorted(getattr(model, "history_", {}).items()):
        total.update(name.encode() + np.ascontiguousarray(values).tobytes())
    return total.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--record", type=Path, metavar="FILE")
    group.add_argument("--compare", type=Path, metavar="FILE")
    args = parser.parse_args()
    found = {name: digest(fit()) for name, fit in CASES.items()}
    if args.record:
        facts = {"commit": common.commit(), "machine": common.machine(), "versions": common.versions()}
        args.record.write_text(json.dumps(facts | {"digests": found}, indent=1) + "\n")
        print(f"{len(found)} cases recorded in {args.record}")
        return 0
    before = json.loads(args.compare.read_text())["digests"]
    for name in CASES:
        print(f"{'same' if before.get(name) == found[name] else 'DIFFERS':8} {name}")
    return int(any(before.get(name) != value for name, value in found.items()))


if __name__ == "__main__":
    sys.exit(main())
