"""The search for the rules of the default on the paper's four labelled graphs.

    KERNELNE_DATA=FOLDER python experiments/search.py GRAPH [--backend gpu] [--plan first]
    python experiments/search.py --show

Every training is scored with several ways to make vectors from its two tables. results/search.jsonl has a
line per training; the first plan was run on an H200, the others on two CPU cores. Four trainings that were
interrupted have fewer ways, and not all plans were completed. --show prints a summary.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np

from common import HERE, Store, load, number, paper_scores, table
from kernelne import KernelNE, MKernelNE, classify_nodes

SHARES = (1, 2, 5, 10, 20, 50, 90)
GAUSS_3 = tuple(("gaussian", s) for s in (1.0, 2.0, 3.0))


def one(kernel: str, sigma: float, **changes: Any) -> dict[str, Any]:
    return {"kernel": kernel, "sigma": sigma, **changes}


def mix(kernels: Any, **changes: Any) -> dict[str, Any]:
    return {"kernels": kernels, **changes}


PLANS: dict[str, list[dict[str, Any]]] = {
    "first": [
        *(
            one("gaussian", sigma, l2=l2, walks_per_node=walks)
            for sigma in (0.7, 1.0, 1.4, 2.0)
            for l2 in (0.01, 0.003)
            for walks in (80, 240)
        ),
        one("gaussian", 1.4, l2=0.0, walks_per_node=240),
        one("gaussian", 1.4, walks_per_node=240, learning_rate=0.05),
        one("gaussian", 1.4, walks_per_node=240, learning_rate=0.0125),
        one("gaussian", 1.4, walks_per_node=120, walk_length=20),
        one("gaussian", 1.4, walks_per_node=60, walk_length=40),
        one("gaussian", 1.4, walks_per_node=240, window=5),
        one("gaussian", 1.4, walks_per_node=240, window=3),
        one("gaussian", 1.4, walks_per_node=240, n_negative=2),
        one("gaussian", 1.4, walks_per_node=240, n_negative=10),
        one("gaussian", 1.4, walks_per_node=240, dim=64),
        one("gaussian", 1.0, walks_per_node=240, dim=64),
        one("schoenberg", 1.0, walks_per_node=240),
        one("schoenberg", 2.0, walks_per_node=240),
        one("schoenberg", 2.0, walks_per_node=240, l2=0.003),
        one("inverse_multiquadric", 0.5, walks_per_node=240),
        mix(GAUSS_3),
        mix(GAUSS_3, walks_per_node=160),
        mix(GAUSS_3, walks_per_node=160, coef_l2=0.1, coef_spread=0.0),
        mix((("gaussian", 1.0), ("schoenberg", 1.0)), walks_per_node=160),
        mix((("gaussian", 0.7), ("gaussian", 1.4)), walks_per_node=160),
    ],
    "second": [
        mix(GAUSS_3, walks_per_node=160),
        mix((("gaussian", 1.0), ("schoenberg", 1.0)), walks_per_node=160),
        mix((("gaussian", 1.4),), walks_per_node=200),
        mix((("gaussian", 1.0), ("gaussian", 2.0)), walks_per_node=160),
        mix((("gaussian", 1.4), ("gaussian", 2.8)), walks_per_node=160),
        mix(GAUSS_3, walks_per_node=80, walk_length=20),
        one("gaussian", 1.4, walks_per_node=100, walk_length=20),
        mix(GAUSS_3, walks_per_node=160, window=5),
        mix(GAUSS_3, walks_per_node=160, l2=0.003),
        mix((("gaussian", 1.0), ("gaussian", 2.0), ("schoenberg", 1.0)), walks_per_node=160),
    ],
    "third": [
        mix(GAUSS_3, walks_per_node=160, l2=0.003),
        mix((("gaussian", 1.4), ("gaussian", 2.8)), walks_per_node=160, l2=0.003),
        mix(GAUSS_3, walks_per_node=80, walk_length=20, l2=0.003),
        mix(GAUSS_3, walks_per_node=160, l2=0.001),
        mix((("gaussian", 1.0), ("gaussian", 2.0), ("gaussian", 4.0)), walks_per_node=160, l2=0.003),
        mix((("gaussian", 1.0), ("gaussian", 2.0)), walks_per_node=180, l2=0.003),
        mix((("gaussian", 2.0),), walks_per_node=200, l2=0.003),
        mix(GAUSS_3, walks_per_node=160, l2=0.003, coef_spread=0.5),
        mix(GAUSS_3, walks_per_node=160, l2=0.003, coef_spread=5.0),
        mix(GAUSS_3, walks_per_node=160, l2=0.003, learning_rate=0.05),
        mix(GAUSS_3, walks_per_node=160, l2=0.003, window=5),
    ],
    "fourth": [
        mix(GAUSS_3, walks_per_node=160, l2=0.02),
        mix(GAUSS_3, walks_per_node=160, l2=0.04),
        mix((("gaussian", 1.0), ("gaussian", 2.0)), walks_per_node=180, l2=0.02),
        mix((("gaussian", 1.0), ("gaussian", 2.0)), walks_per_node=180, l2=0.04),
        mix((("gaussian", 1.4),), walks_per_node=200, l2=0.03),
    ],
}


def scaled(table: Any, norm: float) -> Any:
    """Scale rows to this mean norm."""
    return table * (norm / np.linalg.norm(table, axis=1).mean())


def shaped(table: Any, power: float, norm: float) -> Any:
    """Raise the standard deviations of principal directions to a power: 1 keeps, 0 equalises them."""
    centred = table - table.mean(axis=0)
    u, s, _ = np.linalg.svd(centred.astype(float), full_matrices=False)
    return scaled((u * s**power).astype(np.float32), norm)


def evened(table: Any, power: float, norm: float) -> Any:
    """Raise the norms of rows to a power: 1 keeps, 0 equalises them."""
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    return scaled(table * norms ** (power - 1), norm)


def few_ways(center: Any, context: Any) -> dict[str, Any]:
    found = {"center": center, "sum": center + context}
    return found | {f"center {x}": scaled(center, x) for x in (2.0, 2.5, 3.0)}


def ways(center: Any, context: Any) -> dict[str, Any]:
    both = center + context
    found = {"center": center, "sum": both}
    found |= {f"center {x}": scaled(center, x) for x in (1.0, 2.0, 4.0, 8.0)}
    found |= {f"sum {x}": scaled(both, x) for x in (2.0, 4.0, 8.0)}
    found |= {f"even {x}": evened(center, 0.0, x) for x in (2.0, 4.0)}
    found |= {f"half even {x}": evened(center, 0.5, x) for x in (4.0,)}
    found |= {f"power {p} {x}": shaped(center, p, x) for p in (0.5, 1.5) for x in (3.0, 6.0)}
    if center.shape[1] < 128:
        found |= {f"concat {x}": scaled(np.hstack([center, context]), x) for x in (2.0, 4.0)}
    return found


def train(graph: str, settings: dict[str, Any], few: bool, backend: str, **given: Any) -> dict[str, Any]:
    """Train once and score every way; `given` is passed to `classify_nodes`."""
    network, truth = load(graph)
    model = MKernelNE if "kernels" in settings else KernelNE
    start = time.perf_counter()
    fitted = model(random_state=0, backend=backend, progress=False, **settings).fit(network)
    seconds = time.perf_counter() - start
    scores = {
        way: classify_nodes(vectors, truth, train_sizes=[s / 100 for s in SHARES], random_state=0, **given)
        for way, vectors in (few_ways if few else ways)(fitted.center_, fitted.context_).items()
    }
    return {
        "settings": settings,
        "norm": round(float(np.linalg.norm(fitted.center_, axis=1).mean()), 3),
        "loss": round(fitted.loss_, 5),
        "fit_seconds": round(seconds, 2),
        "shares": SHARES,
        "ways": {
            way: {
                "micro": np.round(found.micro_f1.mean(axis=1), 4).tolist(),
                "macro": np.round(found.macro_f1.mean(axis=1), 4).tolist(),
            }
            for way, found in scores.items()
        },
    }


def show(store: Store) -> str:
    """Return mean differences from the best of the paper's thirteen methods, by training, way and graph."""
    paper = [paper_scores(metric) for metric in ("micro_f1", "macro_f1")]
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for training in store.read_all("search"):
        graph = training["graph"]
        best = [
            [max(v for (g, _, s), v in p.items() if (g, s) == (graph, share)) for share in training["shares"]]
            for p in paper
        ]
        for way, scores in training["ways"].items():
            key = (training["plan"], _told(training["settings"]), way)
            difference = np.mean(np.array([scores["micro"], scores["macro"]]) - best)
            found.setdefault(key, {})[graph] = float(difference)
    graphs = ("citeseer", "cora", "ppi", "dblp")
    rows = [[*key, *(number(by.get(g), 4, sign=True) for g in graphs)] for key, by in found.items()]
    return table(["plan", "training", "vectors", *graphs], rows)


def _told(settings: dict[str, Any]) -> str:
    kernels = settings.get("kernels") or [(settings["kernel"], settings["sigma"])]
    told = [" ".join(f"{name[0]}{sigma:g}" for name, sigma in kernels)]
    told += [
        f"{name} {value}" for name, value in settings.items() if not name.startswith(("kernel", "sigma"))
    ]
    return ", ".join(told)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("graph", nargs="?")
    parser.add_argument("--show", action="store_true", help="print a summary of the results")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--plan", default="first", choices=PLANS)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", type=int)
    args = parser.parse_args()
    store = Store(HERE)
    if args.show:
        print(show(store))
        return
    if args.graph is None:
        parser.error("give GRAPH or --show")
    warnings.simplefilter("ignore")
    how = {"few": args.plan != "first", "backend": args.backend}
    how |= {"n_repeats": args.repeats, "n_threads": args.threads}
    for i, settings in enumerate(PLANS[args.plan]):
        store.fill(
            "search",
            lambda settings=settings: train(args.graph, settings, **how),
            plan=args.plan,
            graph=args.graph,
            training=i,
        )
    if store.failures:
        sys.exit(f"failed: {', '.join(store.failures)}")


if __name__ == "__main__":
    main()
