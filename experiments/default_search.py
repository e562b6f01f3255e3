"""The search for the rules of the default on the development graphs, on a GPU.

    KERNELNE_DATA=FOLDER python experiments/default_search.py GRAPHS.npz export
    python experiments/default_search.py GRAPHS.npz PLAN --out OUT.jsonl [--part 0/4]

GRAPHS.npz then holds the development graphs of checkset.py, so that the machine with the GPU needs no other
data. Every line of OUT.jsonl is one training: settings, loss, micro- and macro-F1 by share of its smoothed
vectors, and how well it tells hidden edges from non-edges of the same degrees if it is trained without them.
results/default_search.jsonl has all of them (of the ways to make vectors only the mean scores); the last
steps, two kernels of sigma 1.25 and 5 among them, were taken on two CPU cores.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch

from kernelne import DivergenceError, Graph, KernelNE, MKernelNE
from kernelne.model.combine_tables import combine_in_frame
from kernelne.model.defaults import settle

SHARES = (1, 5, 10, 50, 90)
_NEWTON_STEPS = 15


def gaussians(*sigmas: float) -> tuple[tuple[str, float], ...]:
    return tuple(("gaussian", sigma) for sigma in sigmas)


def _grid(kernels: dict[Any, tuple[float, ...]], **choices: Any) -> Iterator[dict[str, Any]]:
    """Yield all combinations; `kernels`: learning rates to try by bandwidths."""
    for sigmas, rates in kernels.items():
        for rate, *values in itertools.product(rates, *choices.values()):
            yield {"sigmas": sigmas, "learning_rate": rate, **dict(zip(choices, values, strict=True))}


PLANS: dict[str, list[dict[str, Any]]] = {
    "grid": list(
        _grid(
            {(2,): (0.1, 0.3), (1,): (0.03, 0.1), (1, 2): (0.1, 0.3), (1, 2, 3): (0.1, 0.3)},
            window_decay=(1.0, 0.75, 0.5, 0.25),
            l2=(0.01, 0.003, 0.001, 0.0003),
            walks_per_node=(40,),
        )
    ),
    "second": list(
        _grid(
            {
                (1, 2): (0.1, 0.3, 0.6),
                (1, 2, 3): (0.1, 0.3, 0.6),
                (0.7, 1.4, 2.8): (0.1, 0.3),
                (2,): (0.3, 0.6),
                (1.4,): (0.15, 0.3),
            },
            window_decay=(0.75, 0.5, 0.35, 0.25),
            l2=(0.01, 0.003, 0.001),
            walks_per_node=(40,),
        )
    ),
}


_BASE = {"sigmas": (0.7, 1.4, 2.8), "learning_rate": 0.3, "l2": 0.01, "walks_per_node": 40}
PLANS["third"] = [
    _BASE | {"window_decay": decay} | change
    for decay in (0.5, 0.25)
    for change in (
        {},
        {"coef_spread": 0.5},
        {"coef_spread": 5.0},
        {"coef_l2": 0.1},
        {"n_negative": 2},
        {"n_negative": 10},
        {"n_negative": 20},
        {"l2": 0.02},
        {"l2": 0.005},
        {"walks_per_node": 20},
        {"walks_per_node": 80},
        {"sigmas": (0.5, 1, 2)},
        {"sigmas": (0.7, 1.4)},
        {"sigmas": (1, 3)},
        {"sigmas": (0.5, 1.4, 4)},
        {"learning_rate": 0.2},
        {"learning_rate": 0.5},
        {"shared_negatives": 28},
        {"walk_length": 20, "walks_per_node": 20},
        {"walk_length": 5, "walks_per_node": 80},
    )
]


PLANS["ways"] = list(
    _grid(
        {(0.7, 1.4, 2.8): (0.1, 0.3), (1, 2, 3): (0.1, 0.3)},
        window_decay=(0.5, 0.25, 0.1),
        l2=(0.01, 0.001),
        walks_per_node=(80,),
    )
)


PLANS["negatives"] = [
    {"sigmas": (0.7, 1.4, 2.8), "learning_rate": 0.15, "window_decay": 0.35, "l2": 0.01, "walks_per_node": 60}
    | {"n_negative": n_negative, "shared_negatives": max(14, n_negative // 2)}
    for n_negative in (1, 2, 5, 10, 20, 60, 120)
]
PLANS["start"] = list(
    _grid(
        {(0.7, 1.4, 2.8): (0.1, 0.15, 0.3)},
        window_decay=(0.35,),
        l2=(0.01,),
        walks_per_node=(20, 40, 60),
        start=(1, 5, 20),
    )
)


def export(path: Path) -> None:
    """Write the development graphs to one file."""
    from checkset import DEVELOPMENT

    arrays: dict[str, Any] = {}
    for name, make_graph in DEVELOPMENT.items():
        graph, labels = make_graph()
        rows = graph.to_scipy()
        arrays |= {f"{name}/indptr": rows.indptr, f"{name}/indices": rows.indices}
        if graph.weights is not None:
            arrays[f"{name}/data"] = rows.data
        arrays[f"{name}/labels"] = np.packbits(np.asarray(labels, bool), axis=1)
        arrays[f"{name}/meta"] = np.array([labels.shape[1], graph.directed], np.int64)
    np.savez_compressed(path, **arrays)


def read_graphs(path: Path) -> Iterator[tuple[str, Graph, np.ndarray]]:
    """Yield name, graph and labels (n, K) bool."""
    stored = np.load(path)
    for name in dict.fromkeys(key.rpartition("/")[0] for key in stored.files):
        indptr, indices = stored[f"{name}/indptr"], stored[f"{name}/indices"]
        n_labels, directed = stored[f"{name}/meta"]
        key = f"{name}/data"
        data = stored[key] if key in stored.files else np.ones(len(indices), np.float32)
        n = len(indptr) - 1
        matrix = scipy.sparse.csr_array((data, indices, indptr), (n, n))
        labels = np.unpackbits(stored[f"{name}/labels"], axis=1, count=int(n_labels)).astype(bool)
        yield name, Graph.from_scipy(matrix, directed=bool(directed)), labels


def make(settings: dict[str, Any], seed: int, backend: str = "gpu") -> Any:
    """Return the model with these settings; a single kernel has the coefficient 1."""
    given = dict(settings)
    sigmas, start = given.pop("sigmas"), given.pop("start", 1)
    _start_from(start)
    given |= {"random_state": seed, "backend": backend, "progress": False}
    if len(sigmas) == 1:
        return KernelNE(sigma=float(sigmas[0]), **given)
    return MKernelNE(kernels=gaussians(*map(float, sigmas)), **given)


def _start_from(scale: float) -> None:
    """Let runs on the GPU start from larger vectors."""
    from kernelne.training.gpu import backend

    plain = getattr(backend.start, "plain", backend.start)

    def start(prepared: Any) -> Any:
        state = plain(prepared)
        state.center *= scale
        return state

    start.plain = plain  # type: ignore[attr-defined]
    backend.start = start


def vectors_of(model: Any) -> np.ndarray:
    """Return smoothed vectors, with the default's length for a graph of this size."""
    norm = settle(MKernelNE().get_params(deep=False), model.graph_)["norm"]
    return combine_in_frame(model.graph_, model.center_, model.context_, "smooth", norm)[0]


def classify(vectors: np.ndarray, labels: np.ndarray, n_splits: int, device: Any) -> dict[str, Any]:
    """Micro- and macro-F1 by share, of logistic regression with C = 1 on raw vectors, mean of splits.

    All labels and splits of a share are fitted at once by Newton's method.
    """
    x = torch.tensor(np.hstack([vectors, np.ones((len(vectors), 1), np.float32)]), device=device)
    y = torch.tensor(labels, device=device)
    orders = torch.tensor(
        np.array([np.random.default_rng(s).permutation(len(vectors)) for s in range(n_splits)])
    )
    found: dict[str, Any] = {"micro": [], "macro": []}
    for share in SHARES:
        n_train = int(share / 100 * len(vectors))
        train, test = orders[:, :n_train].to(device), orders[:, n_train:].to(device)
        weights = _fit(x[train], y[train].to(x.dtype))
        scores = torch.einsum("snd,skd->snk", x[test], weights)
        truth = y[test]
        rank = scores.argsort(dim=2, descending=True).argsort(dim=2)
        told = rank < truth.sum(dim=2, keepdim=True)
        hits = (told & truth).sum(dim=1).double()
        total = (told.sum(dim=1) + truth.sum(dim=1)).double()
        macro = torch.where(total > 0, 2 * hits / total.clamp(min=1), 0.0).mean(dim=1)
        micro = 2 * hits.sum(dim=1) / total.sum(dim=1)
        found["micro"].append(round(float(micro.mean()), 4))
        found["macro"].append(round(float(macro.mean()), 4))
    return found


def _fit(x: Any, y: Any) -> Any:
    """Weights (splits, labels, columns) for x (splits, rows, columns) and y (splits, rows, labels)."""
    weights = torch.zeros((x.shape[0], y.shape[2], x.shape[2]), device=x.device)
    one = torch.eye(x.shape[2], device=x.device)
    for _ in range(_NEWTON_STEPS):
        chance = torch.sigmoid(torch.einsum("snd,skd->snk", x, weights))
        slope = weights + torch.einsum("snk,snd->skd", chance - y, x)
        spread = (chance * (1 - chance)).transpose(1, 2)
        curved = torch.matmul((x[:, None] * spread[..., None]).transpose(2, 3), x[:, None]) + one
        step = torch.cholesky_solve(slope[..., None], torch.linalg.cholesky_ex(curved)[0])[..., 0]
        step *= (4 / step.norm(dim=2, keepdim=True).clamp(min=1e-9)).clamp(max=1.0)
        weights -= step
        if float(step.abs().max()) < 1e-3:
            break
    return weights


def ways(model: Any) -> dict[str, Any]:
    """Return other ways to make vectors: one table or both, smoothed or not, shorter and longer."""
    graph, center, context = model.graph_, model.center_, model.context_
    settled = settle(MKernelNE().get_params(deep=False), graph)
    nothing = np.zeros_like(center)
    around = {  # the mean of the neighbours' rows
        "center": combine_in_frame(graph, center, nothing, "smooth", None)[0] - center,
        "context": combine_in_frame(graph, context, nothing, "smooth", None)[0] - context,
    }
    found = {
        "center": center,
        "sum": center + context,
        "center + neighbours' contexts": center + around["context"],
        "context + neighbours' centers": context + around["center"],
        "smooth": center + context + around["center"] + around["context"],
    }
    made = {}
    for name, table in found.items():
        made[name] = table * np.float32(settled["norm"] / np.linalg.norm(table, axis=1).mean())
    both = np.hstack([found["center + neighbours' contexts"], found["context + neighbours' centers"]])
    for name, table in (("joint", both), ("joint centred", both - both.mean(axis=0))):
        axes = np.linalg.eigh((table.T @ table).astype(np.float64))[1][:, ::-1][:, : center.shape[1]]
        table = table @ axes.astype(np.float32)
        made[name] = table * np.float32(settled["norm"] / np.linalg.norm(table, axis=1).mean())
    return made


def aligned(model: Any) -> float:
    """Mean cosine of a node's two rows, each less the mean of its table."""
    center, context = (t - t.mean(axis=0) for t in (model.center_, model.context_))
    lengths = np.linalg.norm(center, axis=1) * np.linalg.norm(context, axis=1)
    return round(float(((center * context).sum(axis=1) / lengths.clip(1e-12)).mean()), 4)


class Hidden:
    """A graph without a tenth of its edges, those edges, and pairs of the same degrees that are no edges."""

    def __init__(self, graph: Graph) -> None:
        rng = np.random.default_rng(0)
        matrix = graph.to_scipy().tocoo()
        upper = np.ones(matrix.nnz, bool) if graph.directed else matrix.row < matrix.col
        row, col, data = matrix.row[upper], matrix.col[upper], matrix.data[upper]
        gone = rng.random(len(row)) < 0.1
        weights = None if graph.weights is None else data[~gone]
        self.graph = Graph.from_edges(
            row[~gone], col[~gone], weights, nodes=np.arange(graph.n_nodes), directed=graph.directed
        )
        self.edges = row[gone], col[gone]
        u, v = row[gone], rng.permutation(col[gone])
        known = matrix.tocsr()
        apart = (np.asarray(known[u, v]).ravel() == 0) & (u != v)
        self.others = u[apart], v[apart]

    def auc(self, model: Any) -> dict[str, float]:
        """By distance between center and context, and by cosine of the smoothed vectors."""
        smooth = vectors_of(model)
        smooth = smooth / np.linalg.norm(smooth, axis=1, keepdims=True).clip(1e-12)
        return {
            "auc": self._auc(lambda u, v: -_apart(model, u, v)),
            "cosine": self._auc(lambda u, v: (smooth[u] * smooth[v]).sum(axis=1)),
        }

    def _auc(self, score: Any) -> float:
        yes, no = score(*self.edges), score(*self.others)
        below = np.searchsorted(np.sort(no), yes, "left") + np.searchsorted(np.sort(no), yes, "right")
        return round(float(below.mean() / 2 / len(no)), 4)


def _apart(model: Any, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    one = ((model.center_[u] - model.context_[v]) ** 2).sum(axis=1)
    return np.asarray(one + ((model.center_[v] - model.context_[u]) ** 2).sum(axis=1))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("graphs", type=Path)
    parser.add_argument("plan", choices=["export", *PLANS])
    parser.add_argument("--out", type=Path, default=Path("search.jsonl"))
    parser.add_argument("--part", default="0/1", help="which part of the trainings, such as 0/4")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--backend", default="gpu")
    args = parser.parse_args()
    if args.plan == "export":
        export(args.graphs)
        return
    warnings.simplefilter("ignore")
    part, parts = map(int, args.part.split("/"))
    device = torch.device("cuda" if args.backend == "gpu" else "cpu")
    graphs = [(name, graph, labels, Hidden(graph)) for name, graph, labels in read_graphs(args.graphs)]
    trainings = list(itertools.product(PLANS[args.plan], graphs, range(args.seeds)))
    with args.out.open("a") as out:
        for settings, (name, graph, labels, hidden), seed in trainings[part::parts]:
            result: dict[str, Any] = {"graph": name, "seed": seed, "settings": settings}
            try:
                start = time.perf_counter()
                model = make(settings, seed, args.backend).fit(graph)
                result["seconds"] = round(time.perf_counter() - start, 3)
                result |= {"loss": round(model.loss_, 5), "c": model.coefficients_.round(4).tolist()}
                result["length"] = round(float(np.linalg.norm(model.center_, axis=1).mean()), 3)
                result["aligned"] = aligned(model)
                result |= classify(vectors_of(model), labels, args.splits, device)
                if args.plan in ("ways", "start"):
                    made = ways(model)
                    result["ways"] = {
                        way: classify(t, labels, args.splits, device) for way, t in made.items()
                    }
                result |= hidden.auc(make(settings, seed, args.backend).fit(hidden.graph))
            except DivergenceError:
                result["diverged"] = True
            out.write(json.dumps(result) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
