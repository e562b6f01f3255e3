"""The logistic regression of evaluation/logistic.py against scikit-learn's, one label against the rest.

    KERNELNE_DATA=FOLDER python benchmarks/logistic.py [--graphs cora,ppi]

Same vectors, penalty (L2, C = 1, intercept penalised) and training nodes, one thread. Told: seconds for all
labels of a split, median of five, and how far the margins of the other nodes are from those of liblinear run
to 1e-8.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from common import table
from kernelne import KernelNE, read_graph
from kernelne.evaluation.logistic import fit_classes, whiten
from peers import read_labels

SHARES = (0.1, 0.5, 0.9)


def ours(X: Any, truth: Any, n_train: int) -> Any:
    wide, penalty, _ = whiten(X)
    Z = wide.astype(np.float32)
    sign = np.where(truth[:n_train], np.float32(1.0), np.float32(-1.0))
    return Z[n_train:] @ fit_classes(Z[:n_train], sign, penalty.astype(np.float32), 1e-3).T


def library(solver: str, tol: float) -> Any:
    def margins(X: Any, truth: Any, n_train: int) -> Any:
        model = LogisticRegression(C=1.0, fit_intercept=False, solver=solver, tol=tol, max_iter=10_000)
        found = [model.fit(X[:n_train], y[:n_train]).decision_function(X[n_train:]) for y in truth.T]
        return np.column_stack(found)

    return margins


METHODS = {
    "ours": ours,
    "scikit-learn, lbfgs": library("lbfgs", 1e-4),
    "scikit-learn, liblinear": library("liblinear", 1e-4),
    "scikit-learn, newton-cholesky": library("newton-cholesky", 1e-4),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", default="cora,ppi")
    rows = []
    folder = Path(os.environ["KERNELNE_DATA"])
    for name in parser.parse_args().graphs.split(","):
        labels = folder / f"{name}.labels.gz"
        graph = read_graph(folder / f"{name}.edges.gz", weighted=False, nodes=labels, drop_self_loops=True)
        truth = read_labels(labels)
        vectors = KernelNE(random_state=0).fit(graph).embedding_[: len(truth)]
        order = np.random.default_rng(0).permutation(len(truth))
        X = np.column_stack([vectors, np.ones(len(vectors))]).astype(np.float64)[order]
        truth = truth[order]
        for share in SHARES:
            n_train = int(share * len(X))
            count = truth[:n_train].sum(axis=0)
            known = truth[:, (count > 0) & (count < n_train)]
            exact = library("liblinear", 1e-8)(X, known, n_train)
            for method, margins in METHODS.items():
                seconds = []
                with threadpool_limits(1):
                    for _ in range(5):
                        start = time.perf_counter()
                        found = margins(X, known, n_train)
                        seconds.append(time.perf_counter() - start)
                off = float(np.sqrt(np.mean((found - exact) ** 2)))
                cells = [f"{statistics.median(seconds):.3f}", f"{off:.1e}"]
                rows.append([name, f"{share:.0%}", method, *cells])
    print(table(["graph", "trained on", "method", "seconds", "margins off by (root mean square)"], rows))


if __name__ == "__main__":
    main()
