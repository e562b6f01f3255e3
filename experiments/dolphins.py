"""Dolphins in two dimensions: NMI of k-means and Louvain communities, and maps; also node2vec and NetMF.

KERNELNE_DATA=FOLDER python experiments/dolphins.py [--quick] [--walks 80,800] [--seeds 20]

Louvain's method is random: the partition of best modularity over seeds 0–99 is used, and k is its size.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from common import (
    DEFAULT,
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
from figures import panels
from kernelne.baselines import NetMF, Node2Vec
from kernelne.evaluation.clustering import cluster_nodes
from kernelne.graph.communities import louvain, modularity

FULL: dict[str, Any] = {"walks": (80, 800), "seeds": 20}
QUICK = FULL | {"seeds": 3}
#: The other methods that the paper shows; NetMF uses no walks.
RIVALS: dict[str, Any] = {"Node2Vec": Node2Vec, "NetMF": NetMF}
PAPER_WALKS = 80  # other numbers stand in the table, not in the summary


def best_partition() -> dict[str, Any]:
    graph, _ = load("dolphins")
    partitions = [louvain(graph, random_state=seed) for seed in range(100)]
    best = max(partitions, key=lambda part: modularity(graph, part))
    return {
        "communities": best.tolist(),
        "modularity": modularity(graph, best),
        "edges": np.argwhere(np.triu(graph.to_scipy().toarray())).tolist(),
    }


def cluster(model: str, seed: int, walks: int | str, communities: list[int]) -> dict[str, Any]:
    graph, _ = load("dolphins")
    changes = {} if walks in ("chosen", "none") else {"walks_per_node": walks}
    changes |= {"dim": 2, "n_threads": 1}
    rival = RIVALS.get(model)
    made = rival(random_state=seed, **changes) if rival else make_model(model, "dolphins", seed, **changes)
    estimator = made.fit(graph)
    k = len(set(communities))
    found = cluster_nodes(
        estimator.embedding_, n_clusters=k, labels=communities, n_init=10, random_state=seed
    )
    return {"nmi": float(found.nmi), "vectors": np.round(estimator.embedding_.astype(float), 4).tolist()}


def run(store: Store, walks: tuple[int, ...], seeds: int) -> None:
    store.fill("dolphins", best_partition, what="louvain")
    partition = store.read("dolphins", what="louvain")
    if partition is None:
        return
    runs = [(model, number_of_walks) for number_of_walks in walks for model in (*MODELS, "Node2Vec")]
    runs += [(DEFAULT, "chosen"), ("NetMF", "none")]
    for model, number_of_walks in runs:
        for seed in range(seeds):
            key = {"model": model, "seed": seed, "walks": number_of_walks}
            store.fill(
                "dolphins", lambda key=key: cluster(communities=partition["communities"], **key), **key
            )


def render(store: Store, walks: tuple[int, ...], seeds: int) -> list[Section]:
    paper = {row["method"]: float(row["nmi"]) for row in paper_figures("dolphins")}
    partition = store.read("dolphins", what="louvain") or {"communities": [], "modularity": None, "edges": []}
    rows, cells = [], []

    def add(model: str, number_of_walks: int | str, printed: float) -> Cell:
        found = [store.read("dolphins", model=model, seed=s, walks=number_of_walks) for s in range(seeds)]
        nmi = [r["nmi"] for r in found if r]
        cell = Cell(f"{model}, {number_of_walks} walks", printed, float(np.mean(nmi)) if nmi else None)
        spread = f" ± {np.std(nmi):.3f} ({min(nmi):.3f}–{max(nmi):.3f})" if nmi else ""
        rows[-1].append(f"{cell}{spread}")
        return cell

    for model in (*MODELS, "Node2Vec"):
        rows.append([model])
        made = {number_of_walks: add(model, number_of_walks, paper[model]) for number_of_walks in walks}
        cells += [made[PAPER_WALKS]] if PAPER_WALKS in made else []
    rows.append([f"{DEFAULT}, with its own walks, beside the best in the paper"])
    add(DEFAULT, "chosen", max(paper.values()))
    rows[-1] += [""] * (len(walks) - 1)
    rows.append(["NetMF, without walks"])
    cells.append(add("NetMF", "none", paper["NetMF"]))
    rows[-1] += [""] * (len(walks) - 1)
    image = _maps(store, walks, partition)
    text = f"{image}\n\nSeed 0; colours are Louvain's {len(set(partition['communities']))} communities "
    text += f"(modularity {number(partition['modularity'])}). NMI of k-means with them, paper / ours / "
    text += f"difference, ± standard deviation (range) over {seeds} seeds. The paper took "
    text += f"{PAPER_WALKS} walks.\n\n"
    text += table(["model", *(f"{w} walks per node" for w in walks)], rows)
    return [Section("Dolphins: clustering in two dimensions", text, cells)]


def _maps(store: Store, walks: tuple[int, ...], partition: dict[str, Any]) -> str:
    caption = "the dolphins' graph in two dimensions"
    with panels(store, "dolphins", caption, len(walks), len(MODELS) + len(RIVALS)) as (axes, image):
        for i, number_of_walks in enumerate(walks):
            for ax, model in zip(axes[i], (*MODELS, *RIVALS), strict=True):
                title = model if model == "NetMF" else f"{model}, {number_of_walks} walks"
                ax.set(title=title, xticks=[], yticks=[])
                key = "none" if model == "NetMF" else number_of_walks
                result = store.read("dolphins", model=model, seed=0, walks=key)
                if result and partition["edges"]:
                    points = np.array(result["vectors"])
                    lines = np.full((len(partition["edges"]), 3, 2), np.nan)  # nan: lift the pen
                    lines[:, :2] = points[np.array(partition["edges"])]
                    ax.plot(*lines.reshape(-1, 2).T, color="0.85", linewidth=0.5)
                    colours = np.array(partition["communities"])
                    ax.scatter(*points.T, c=colours, cmap="tab10", vmax=10, s=12, zorder=2)
    return image


if __name__ == "__main__":
    command(sys.modules[__name__])
