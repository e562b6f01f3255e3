"""Effect of the coefficients' settings on scores: the figures of choices.md and the README's low cell.

    KERNELNE_DATA=FOLDER python experiments/coefficients.py

Differences from the paper are in micro-F1 at 1, 5, 10, 50, 90 % of labels, one seed, 20 splits (PPI: 5).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from common import load, paper_scores
from core_quality import SHARES
from kernelne import Graph, KernelNE, MKernelNE, classify_nodes
from kernelne.model.mixture import least_sum
from kernelne.training import schedule

SETTINGS = [(0.1, 0.0), (0.1, 0.5), (0.1, 2.0), (0.02, 1.0), (0.02, 1.5), (0.02, 2.0), (0.02, 4.0)]
FLOORS = [0.0, least_sum(5), 0.3, 0.5]


def against_paper(name: str) -> None:
    graph, truth = load(name)
    paper = paper_scores()
    sigmas = (0.5, 1.0, 1.5) if name == "ppi" else (1.0, 2.0, 3.0)
    for coef_l2, coef_spread in SETTINGS:
        model = MKernelNE(
            kernels=[("gaussian", s) for s in sigmas],
            coef_l2=coef_l2,
            coef_spread=coef_spread,
            random_state=0,
        ).fit(graph)
        f1 = classify_nodes(
            model.embedding_,
            truth,
            train_sizes=[s / 100 for s in SHARES],
            n_repeats=5 if name == "ppi" else 20,
        ).micro_f1.mean(axis=1)
        gaps = " ".join(
            f"{x - paper[name, 'MKernelNE-Gauss', s]:+.3f}" for s, x in zip(SHARES, f1, strict=True)
        )
        print(f"{name} | {coef_l2}, {coef_spread} | {gaps} | c {model.coefficients_.round(2)}", flush=True)


def attachment_graph(n: int = 5000, m: int = 5) -> Graph:
    """Preferential attachment: each new node links to m ends of earlier edges."""
    rng, ends = np.random.default_rng(0), list(range(m))
    edges = []
    for node in range(m, n):
        chosen = {ends[i] for i in rng.integers(0, len(ends), m)}
        edges += [(node, other) for other in chosen]
        ends += [node] * len(chosen) + list(chosen)
    return Graph.from_edges(*np.array(edges).T)


def edge_auc(graph: Graph, vectors: Any) -> float:
    """Return the probability that an edge is shorter than a random pair."""
    rng = np.random.default_rng(0)
    sources = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    some = rng.integers(0, sources.size, 4000)
    u, v = rng.integers(0, graph.n_nodes, (2, 4000))
    near = ((vectors[sources[some]] - vectors[graph.neighbours[some]]) ** 2).sum(axis=1)
    far = np.sort(((vectors[u] - vectors[v]) ** 2).sum(axis=1))
    return float(1 - np.searchsorted(far, near).mean() / far.size)


def floors() -> None:
    graph = attachment_graph()
    for floor in FLOORS:
        schedule.least_sum = lambda n_negative, floor=floor: floor
        model = MKernelNE.paper(random_state=0).fit(graph)
        norm = np.linalg.norm(model.embedding_, axis=1).mean()
        auc = edge_auc(graph, model.embedding_)
        print(f"floor {floor:.2f}: norm {norm:.2f}, loss {model.loss_:.4f}, AUC {auc:.3f}")
    model = KernelNE(random_state=0).fit(graph)
    print(f"KernelNE: AUC {edge_auc(graph, model.embedding_):.3f}", flush=True)


def low_cell() -> None:
    graph, truth = load("cora")
    tables = [KernelNE(kernel="schoenberg", random_state=seed).fit_transform(graph) for seed in (0, 1)]
    f1 = np.mean(
        [classify_nodes(x, truth, train_sizes=[0.01], n_repeats=250).micro_f1[0] for x in tables], axis=0
    )
    print(f"cora, KernelNE-Sch at 1 %, 250 splits: {f1.mean():.4f} ± {f1.std() / 250**0.5:.4f}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    low_cell()
    floors()
    schedule.least_sum = least_sum
    for graph_name in ("cora", "citeseer", "ppi"):
        against_paper(graph_name)
