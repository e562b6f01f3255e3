"""Table 6: link prediction, AUC on eight graphs; also our link predictor and scores without an embedding.

KERNELNE_DATA=FOLDER python experiments/table6.py [--quick] [--graphs cora,ppi] [--splits 3]

Half of the edges are removed and ranked against as many non-edges: uniform ones, as in the paper, and
non-edges whose ends have the degrees of edges, which degree alone cannot predict.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from common import (
    DEFAULT,
    EVERY,
    GRAPHS,
    MODELS,
    Cell,
    Section,
    Store,
    command,
    load,
    make_model,
    number,
    paper_figures,
    table,
)
from kernelne import LinkPredictor, score_links, split_links
from kernelne.evaluation.links import control_scores, rank_scores

FULL: dict[str, Any] = {"graphs": GRAPHS, "splits": 3}
QUICK = {"graphs": ("cora", "citeseer", "ppi", "gnutella"), "splits": 1}
NON_EDGES = ("uniform", "degree")
PREDICTORS = {f"LinkPredictor-{model}": model for model in ("MKernelNE-Gauss", "MKernelNE-Sch", DEFAULT)}
CONTROLS = {
    "degree_product": "degree product",
    "common_neighbours": "common neighbours",
    "adamic_adar": "Adamic–Adar",
}
METHODS = (*EVERY, *PREDICTORS, *CONTROLS)


@lru_cache(maxsize=2)
def split(graph: str, non_edges: str, seed: int) -> Any:
    return split_links(load(graph)[0], test_share=0.5, non_edges=non_edges, random_state=seed)


@lru_cache(maxsize=1)
def embed(graph: str, model: str, seed: int) -> Any:
    """Embed the remaining graph, which is the same for both kinds of non-edges."""
    return make_model(model, graph, seed).fit(split(graph, "uniform", seed).graph).to_embedding()


def score_operator(graph: str, model: str, seed: int) -> dict[str, Any]:
    """Score as in the paper: logistic regression on squared differences, fitted on the remaining edges."""
    vectors = embed(graph, model, seed).vectors
    scores = {kind: score_links(vectors, split(graph, kind, seed), operator="l2") for kind in NON_EDGES}
    return {kind: {model: float(found.auc)} for kind, found in scores.items()}


def score_predictor(graph: str, method: str, seed: int) -> dict[str, Any]:
    """Score `LinkPredictor`, given the kind of non-edges."""
    result = {}
    for kind in NON_EDGES:
        drawn = split(graph, kind, seed)
        # Its own draws must not follow those of the split.
        predictor = LinkPredictor(non_edges=kind, random_state=seed + 1000)
        predictor.fit(drawn.graph, embed(graph, PREDICTORS[method], seed))
        edges, others = (
            predictor.predict_proba(drawn.graph.nodes[pairs])[:, 1]
            for pairs in (drawn.test_edges, drawn.test_non_edges)
        )
        result[kind] = {method: float(rank_scores(edges, others).auc)}
    return result


def score_controls(graph: str, seed: int) -> dict[str, Any]:
    result = {}
    for kind in NON_EDGES:
        drawn = split(graph, kind, seed)
        edges, others = (
            control_scores(drawn.graph, pairs) for pairs in (drawn.test_edges, drawn.test_non_edges)
        )
        result[kind] = {name: float(rank_scores(edges[name], others[name]).auc) for name in CONTROLS}
    return result


def compute(graph: str, method: str, seed: int) -> dict[str, Any]:
    if method == "controls":
        return score_controls(graph, seed)
    return (score_predictor if method in PREDICTORS else score_operator)(graph, method, seed)


def _keys(graphs: tuple[str, ...], splits: int) -> list[dict[str, Any]]:
    methods = ("controls", *EVERY, *PREDICTORS)
    return [{"graph": g, "method": m, "seed": s} for g in graphs for s in range(splits) for m in methods]


def run(store: Store, graphs: tuple[str, ...], splits: int) -> None:
    for key in _keys(graphs, splits):
        store.fill("table6", lambda key=key: compute(**key), **key)


def render(store: Store, graphs: tuple[str, ...], splits: int) -> list[Section]:
    found: dict[tuple[str, str, str], list[float]] = {}  # by kind of non-edges, graph, method
    for key in _keys(graphs, splits):
        result = store.read("table6", **key) or {}
        for kind in NON_EDGES:
            for method, auc in result.get(kind, {}).items():
                found.setdefault((kind, key["graph"], method), []).append(auc)
    ours = {key: float(np.mean(values)) for key, values in found.items()}
    paper = {(r["dataset"], r["method"]): float(r["auc"]) for r in paper_figures("link_prediction")}
    best = {graph: max((auc, m) for (g, m), auc in paper.items() if g == graph) for graph in graphs}
    models = _models(ours, paper, best, graphs)
    deviations = [float(np.std(values, ddof=1)) for values in found.values() if len(values) > 1]
    spread = number(float(np.mean(deviations)) if deviations else None)
    spread = f"\n\nMean of splits: {splits}; their standard deviation is {spread} on average."
    return [replace(models, text=models.text + spread), _beyond(ours, best, graphs), _matched(ours, graphs)]


def _models(ours: Any, paper: Any, best: Any, graphs: tuple[str, ...]) -> Section:
    rows, cells = [], []
    for graph in graphs:
        row = [Cell(f"{m}, {graph}", paper[graph, m], ours.get(("uniform", graph, m))) for m in MODELS]
        default = Cell(f"{DEFAULT}, {graph}", best[graph][0], ours.get(("uniform", graph, DEFAULT)))
        rows.append([graph, *map(str, row), str(default), best[graph][1]])
        cells += row
    text = "AUC, paper / ours / difference, the paper's operator and uniform non-edges; for the default, the "
    text += "best of thirteen methods in the paper / ours / difference, and which method that is.\n\n"
    text += table(["graph", *EVERY, "best in the paper"], rows)
    return Section("Table 6: link prediction", text, cells)


def _beyond(ours: Any, best: Any, graphs: tuple[str, ...]) -> Section:
    rows, cells = [], []
    for graph in graphs:
        row = [Cell(f"{m}, {graph}", best[graph][0], ours.get(("uniform", graph, m))) for m in PREDICTORS]
        controls = [number(ours.get(("uniform", graph, m))) for m in CONTROLS]
        rows.append([graph, *map(str, row), *controls])
        cells += row
    text = "AUC on the same splits. Our link predictor: best of thirteen in the paper / ours / difference. "
    text += "The controls need no embedding.\n\n"
    text += table(["graph", *PREDICTORS, *CONTROLS.values()], rows)
    return Section("Table 6, continued: our link predictor and the controls", text, cells)


def _matched(ours: Any, graphs: tuple[str, ...]) -> Section:
    rows = [[graph, *(number(ours.get(("degree", graph, m))) for m in METHODS)] for graph in graphs]
    text = "AUC where non-edges have ends of the same degrees as edges; the paper has no such figures.\n\n"
    text += table(["graph", *EVERY, *PREDICTORS, *CONTROLS.values()], rows)
    return Section("Table 6, continued: non-edges matched by degree", text)


if __name__ == "__main__":
    command(sys.modules[__name__])
