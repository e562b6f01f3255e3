"""Time of the default on a large graph of blocks, and the share of near nodes that are in the own block.

    python benchmarks/blocks.py [--nodes 1000000] [--backend gpu] [--walks 10]

Every node has ten edges on average, 60 % of them inside its block of 1,000. A figure of speed says little
without what was learned: the purity is the share of the ten nearest nodes, by cosine, in the own block.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne import Graph, MKernelNE

_BLOCK, _INSIDE, _QUERIES, _PRODUCTS = 1000, 0.6, 2000, 200_000_000


def blocks(n: int, edges_per_node: int = 5) -> Graph:
    rng, m = np.random.default_rng(0), edges_per_node * n
    sources = rng.integers(0, n, m)
    inside = sources // _BLOCK * _BLOCK + rng.integers(0, _BLOCK, m)
    targets = np.where(rng.random(m) < _INSIDE, inside, rng.integers(0, n, m))
    apart = sources != targets
    return Graph.from_edges(sources[apart], targets[apart], nodes=np.arange(n))


def purity(vectors: NDArray[Any]) -> float:
    rows = np.random.default_rng(1).choice(len(vectors), _QUERIES, replace=False)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
    own = 0
    for some in np.array_split(rows, _QUERIES // min(max(_PRODUCTS // len(vectors), 1), _QUERIES)):
        near = vectors[some] @ vectors.T
        near[np.arange(len(some)), some] = -np.inf
        nearest = np.argpartition(-near, 10, axis=1)[:, :10]
        own += int((nearest // _BLOCK == some[:, None] // _BLOCK).sum())
    return own / (10 * _QUERIES)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1_000_000, help="a multiple of 1,000, at least 2,000")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--walks", type=int, help="walks per node; the default's, if not given")
    args = parser.parse_args()
    given = {"backend": args.backend, "walks_per_node": args.walks, "random_state": 0}
    MKernelNE(**given).fit(blocks(2000))  # compiles
    graph = blocks(args.nodes)
    start = time.perf_counter()
    model = MKernelNE(**given).fit(graph)
    trained = time.perf_counter() - start
    vectors = model.embedding_
    made = time.perf_counter() - start - trained
    walks = args.walks or model.chosen_["walks_per_node"]
    print(f"{graph}: {walks} walks per node, trained in {trained:.1f} s, vectors made in {made:.1f} s")
    print(f"purity {purity(vectors):.3f}")


if __name__ == "__main__":
    main()
