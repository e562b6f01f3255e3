"""How far two runs with the same seed differ on several threads: the figure of README.md.

    KERNELNE_DATA=FOLDER python experiments/repeats.py [--threads 2] [--graphs cora,citeseer,ppi,dblp]

Difference of the vectors of two runs, as a share of their size (Frobenius norms), and the share of a node's
ten nearest that both runs have, over a thousand nodes.
"""

from __future__ import annotations

import argparse

import numpy as np

from checkset import DEVELOPMENT
from common import table
from kernelne import KernelNE, MKernelNE


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--graphs", default="cora,citeseer,ppi,dblp")
    given = parser.parse_args()
    rows = []
    for name in given.graphs.split(","):
        graph, _ = DEVELOPMENT[name]()
        for model in (KernelNE, MKernelNE):
            runs = [
                model(random_state=0, n_threads=given.threads).fit(graph).to_embedding() for _ in range(2)
            ]
            one, other = (run.vectors for run in runs)
            apart = np.linalg.norm(one - other) / np.linalg.norm(one)
            some = np.random.default_rng(0).choice(graph.nodes, 1000, replace=False)
            near = [run.neighbours(some, k=10).ids for run in runs]
            both = np.mean([len({*a} & {*b}) / 10 for a, b in zip(*near, strict=True)])
            rows.append([name, model.__name__, f"{apart:.1%}", f"{both:.1%}"])
    print(table(["graph", "model", "difference", "nearest in common"], rows))


if __name__ == "__main__":
    main()
