"""Graphs that grow: updates beside training anew, and nodes folded in: figures of docs/grow.md.

    KERNELNE_DATA=FOLDER python experiments/growth.py [--seeds 5] [--graphs cora,dblp] [--parts steps,ten]

steps: the edges of a graph come in ten parts; the model is trained on the first five, the others come one at
a time, and after each the updated vectors and those of a new training are scored (micro-F1 with half of the
labels, five splits), with the CPU time of both, one thread. A classifier trained before the first update is
scored after the last one too. last: the same with the last part only. ten: ten updates of one per cent of
the edges each. arrivals: nodes come in ten parts, the first five at once, with their edges to those that are
there; updated, folded in and trained anew are scored after each part, also in growth.jsonl. folded:
5 % of the nodes are left out of the training, then folded in by their links; a classifier of the others is
scored on them, beside one of a training with all nodes. links: hepth with a fifth of its edges hidden, the
others come in ten parts; AUC of the kernel for hidden edges against non-edges of their degrees. weeks:
collegemsg, updated every week from the fifth on; AUC for the pairs of the next week, likewise. order: the
same AUC, every third week from the sixth on, of walks in any order, in the order of time, and with
half-lives. speed, on request: half a million nodes folded in.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from kernelne import Embedding, Graph, MKernelNE, classify_nodes, fold_in, read_graph, update_embedding
from kernelne.graph.ops import edges_of
from kernelne.graph.pairs import draw_non_edges, hide_edges, pair_anew
from kernelne.model.kernels import KERNELS


def score(vectors: Any, truth: Any) -> float:
    return float(classify_nodes(vectors, truth, train_sizes=[0.5], n_repeats=5).micro_mean[0])


def model(seed: int) -> MKernelNE:
    return MKernelNE(random_state=seed, n_threads=1)


def train(graph: Graph, seed: int) -> tuple[Any, float]:
    start = time.process_time()
    made = model(seed).fit(graph).to_embedding()
    return made, time.process_time() - start


def steps(graph: Graph, truth: Any, seed: int, first: int, n_parts: int = 10) -> dict[str, float]:
    """Reveal the edges from part `first` on; means over the steps, or the last one if there are many."""
    edges, _ = edges_of(graph)
    order = np.random.default_rng(seed).permutation(len(edges))

    def part(k: int) -> Graph:
        some = edges[order[: len(edges) * k // n_parts]]
        return Graph.from_edges(some[:, 0], some[:, 1], nodes=np.arange(graph.n_nodes))

    single = truth.sum(axis=1) == 1
    label = truth.argmax(axis=1)
    old, _ = train(part(first), seed)
    halves = np.random.default_rng(seed).random(graph.n_nodes) < 0.5
    learned, tested = single & halves, single & ~halves
    before = LogisticRegression(max_iter=1000).fit(old.vectors[learned], label[learned])
    first_score = before.score(old.vectors[tested], label[tested])
    rows = []
    for k in range(first + 1, n_parts + 1):
        now = part(k)
        start = time.process_time()
        old = update_embedding(old, now, n_threads=1, random_state=seed + k)
        seconds = time.process_time() - start
        if n_parts > 10 and k < n_parts:
            continue
        anew, whole = train(now, seed)
        rows.append((score(old.vectors, truth), score(anew.vectors, truth), seconds / whole))
    after = LogisticRegression(max_iter=1000).fit(old.vectors[learned], label[learned])
    updated, retrained, share = np.array(rows).T
    return {
        "updated": updated[-1],
        "trained anew": retrained[-1],
        "difference": float((updated - retrained).mean()),
        "CPU time": float(share.mean()),
        "old classifier before": first_score,
        "after": before.score(old.vectors[tested], label[tested]),
        "new classifier": after.score(old.vectors[tested], label[tested]),
    }


def folded(graph: Graph, truth: Any, seed: int) -> dict[str, float]:
    """Fold in 5 % of the nodes."""
    n = graph.n_nodes
    hidden = np.zeros(n, bool)
    hidden[np.random.default_rng(seed).choice(n, n // 20, replace=False)] = True
    edges, _ = edges_of(graph)
    among = ~hidden[edges].any(axis=1)
    known = Graph.from_edges(*edges[among].T, nodes=np.flatnonzero(~hidden))
    small, _ = train(known, seed)
    start = time.perf_counter()
    made = fold_in(small, edges[~among])
    seconds = time.perf_counter() - start
    whole, _ = train(graph, seed)
    label = truth.argmax(axis=1)
    tested = np.flatnonzero(hidden & (truth.sum(axis=1) == 1) & np.isin(np.arange(n), made.nodes))
    learned = np.flatnonzero(~hidden & (truth.sum(axis=1) == 1))
    scores = [
        LogisticRegression(max_iter=1000).fit(e[learned], label[learned]).score(e[tested], label[tested])
        for e in (made, whole)
    ]
    return {"folded in": scores[0], "trained with them": scores[1], "nodes/s": hidden.sum() / seconds}


def arrivals(graph: Graph, truth: Any, seed: int) -> dict[str, float]:
    """Nodes arrive; scores after the last part, and one line a part in growth.jsonl."""
    order = np.random.default_rng(seed).permutation(graph.n_nodes)
    edges, _ = edges_of(graph)
    rank = np.empty(graph.n_nodes, int)
    rank[order] = np.arange(graph.n_nodes)
    updated = folded = None
    rows = []
    for k in range(5, 11):
        there = order[: graph.n_nodes * k // 10]
        some = edges[(rank[edges] < len(there)).all(axis=1)]
        now = Graph.from_edges(some[:, 0], some[:, 1], nodes=there)
        anew, _ = train(now, seed)
        if updated is None or folded is None:
            updated = folded = anew
        else:
            updated = update_embedding(updated, now, n_threads=1, random_state=seed + k)
            folded = fold_in(folded, now)
        found = {"share": k / 10, "seed": seed}
        for name, made in (("updated", updated), ("folded in", folded), ("trained anew", anew)):
            found[name] = score(made.vectors[made.index_of(there)], truth[there])
        rows.append(found)
    with RESULTS.open("a") as file:
        file.writelines(json.dumps({"nodes": graph.n_nodes, **row}) + "\n" for row in rows)
    return rows[-1]


def affinity(made: Embedding, pairs: Any) -> Any:
    """Logarithm of the kernel of pairs of rows, in both directions."""
    assert made.context is not None
    assert made.center is not None
    total = 0.0
    for u, v in (pairs.T, pairs.T[::-1]):
        far = ((made.context[v] - made.center[u]) ** 2).sum(axis=1)
        mixture = zip(made.coefficients, made.kernels, strict=True)  # type: ignore[arg-type]
        k = sum(c * KERNELS[name](far, sigma)[0] for c, (name, sigma) in mixture)
        total += np.log(np.maximum(k, 1e-9))
    return total


def auc(made: Embedding, links: Any, others: Any) -> float:
    pairs = [made.index_of(each.ravel()).reshape(-1, 2) for each in (links, others)]
    high, low = (affinity(made, each) for each in pairs)
    return float(roc_auc_score(np.arange(len(high) + len(low)) < len(high), np.concatenate([high, low])))


def growing(parts: list[Graph], tests: list[Any], seed: int) -> dict[str, float]:
    """Update through the graphs, and train each anew; mean AUC for the links and non-links of each."""
    old, _ = train(parts[0], seed)
    rows = []
    for k, (now, test) in enumerate(zip(parts[1:], tests[1:], strict=True)):
        start = time.process_time()
        old = update_embedding(old, now, n_threads=1, random_state=seed + k)
        seconds = time.process_time() - start
        anew, whole = train(now, seed)
        rows.append((auc(old, *test), auc(anew, *test), seconds / whole))
    updated, retrained, share = np.array(rows).mean(axis=0)
    told = {"updated": updated, "trained anew": retrained, "difference": updated - retrained}
    return told | {"last difference": rows[-1][0] - rows[-1][1], "CPU time": share}


def links(seed: int) -> dict[str, float]:
    """AUC for hidden edges of hepth, of which the others come in ten parts, the first five at once."""
    graph = read_graph(Path(os.environ["KERNELNE_DATA"]) / "hepth.edges.gz")
    rng = np.random.default_rng(seed)
    rest, hidden = hide_edges(graph, 0.2, rng)
    others = draw_non_edges(graph, hidden, "degree", rng)
    edges, _ = edges_of(rest)
    order = rng.permutation(len(edges))
    parts = [
        Graph.from_edges(*edges[order[: len(edges) * k // 10]].T, nodes=np.arange(graph.n_nodes))
        for k in range(5, 11)
    ]
    return growing(parts, [(hidden, others)] * len(parts), seed)


def messages(seed: int) -> list[tuple[Any, Graph, Any]]:
    """Events of collegemsg up to each week, their graph, and pairs and non-pairs of the next week."""
    events = np.loadtxt(Path(os.environ["KERNELNE_DATA"]) / "collegemsg.temporal.gz", dtype=np.int64)
    week = (events[:, 2] - events[:, 2].min()) // (7 * 86400)
    rng = np.random.default_rng(seed)
    found = []
    for last in range(4, int(week.max())):
        now = Graph.from_edges(*events[week <= last, :2].T)
        pairs = np.unique(np.sort(events[week == last + 1, :2], axis=1), axis=0)
        pairs = pairs[np.isin(pairs, now.nodes).all(axis=1) & (pairs[:, 0] != pairs[:, 1])]
        rows = np.sort(now.index_of(pairs.ravel()).reshape(-1, 2), axis=1)
        taken = np.unique(np.concatenate([edges_of(now)[0], rows]) @ (now.n_nodes, 1))
        absent = pair_anew(rows, taken, now.n_nodes, rng)
        found.append((events[week <= last], now, (pairs, now.nodes[absent])))
    return found


def weeks(seed: int) -> dict[str, float]:
    """AUC for the pairs of the next week of collegemsg."""
    _, parts, tests = zip(*messages(seed), strict=True)
    return growing(list(parts), list(tests), seed)


def order(seed: int) -> dict[str, float]:
    """AUC for the pairs of the next week, of walks in any order, in that of time, and with half-lives."""
    ways: dict[str, dict[str, Any]] = {"any": {}, "in time": {"time": "t"}}
    ways |= {f"half-life {life}": {"time": "t", "half_life": life} for life in ("28d", "14d", "7d")}
    found: dict[str, list[float]] = {way: [] for way in ways}
    for events, _, test in messages(seed)[1::3][:5]:
        columns = dict(zip("uvt", events.T, strict=True))
        for way, options in ways.items():
            graph = Graph.from_table(columns, source="u", target="v", weight=False, **options)
            found[way].append(auc(train(graph, seed)[0], *test))
    return {way: float(np.mean(values)) for way, values in found.items()}


def speed() -> None:
    """Time to fold in half a million nodes with five links each into a million vectors of 128 columns."""
    rng = np.random.default_rng(0)
    known, new = 1_000_000, 500_000
    embedding = Embedding(rng.random((known, 128), np.float32), np.arange(known))
    links = np.column_stack([np.repeat(np.arange(known, known + new), 5), rng.integers(0, known, 5 * new)])
    fold_in(embedding, links[:50])
    start = time.perf_counter()
    fold_in(embedding, links)
    print(f"speed   {new:,} nodes folded in within {time.perf_counter() - start:.1f} s")


PARTS = {
    "steps": lambda graph, truth, seed: steps(graph, truth, seed, 5),
    "last": lambda graph, truth, seed: steps(graph, truth, seed, 9),
    "ten": lambda graph, truth, seed: steps(graph, truth, seed, 90, 100),
    "folded": folded,
    "arrivals": arrivals,
}
#: Parts that have a graph of their own.
OWN = {"links": links, "weeks": weeks, "order": order}
RESULTS = Path(__file__).with_name("growth.jsonl")


def graphs(names: list[str]) -> dict[str, Any]:
    if "KERNELNE_GRAPHS" in os.environ:  # an .npz of default_search.py, for machines without the files
        from default_search import read_graphs

        stored = read_graphs(Path(os.environ["KERNELNE_GRAPHS"]))
        found = {name: (graph, truth) for name, graph, truth in stored}
        return {name: found[name] for name in names}
    from checkset import DEVELOPMENT

    return {name: DEVELOPMENT[name]() for name in names}


def plot(path: str) -> None:
    """Draw the table of `arrivals`: micro-F1 while nodes arrive, mean of the seeds."""
    import matplotlib.pyplot as plt
    import pandas as pd

    rows = pd.read_json(RESULTS, lines=True)
    names = {2708: "Cora", 3312: "CiteSeer", 7624: "LastFM Asia"}
    sizes = [size for size in names if size in set(rows["nodes"])]
    plt.rcParams["svg.hashsalt"] = "kernelne"
    figure, axes = plt.subplots(1, len(sizes), figsize=(3.3 * len(sizes), 2.8), layout="constrained")
    for axis, size in zip(np.atleast_1d(axes), sizes, strict=True):
        means = rows[rows["nodes"] == size].groupby("share").mean()
        for way, line in (("trained anew", "k--"), ("updated", "C0o-"), ("folded in", "C1s-")):
            axis.plot(100 * means.index, means[way], line, markersize=4, label=way)
        axis.set_title(names[size], fontsize=10)
        axis.set_xlabel("% of the nodes that are there")
        axis.spines[["top", "right"]].set_visible(False)
    np.atleast_1d(axes)[0].set_ylabel("micro-F1, half of the labels")
    np.atleast_1d(axes)[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def tell(part: str, name: str, found: list[dict[str, float]]) -> None:
    told = []
    for key in found[0]:
        values = [each[key] for each in found]
        told.append(f"{key} {np.mean(values):.4g} ± {np.std(values):.1g}")
    print(f"{part:8} {name:9}", "  ".join(told), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--graphs", default="cora,citeseer,dblp")
    parser.add_argument("--parts", default=",".join([*PARTS, *OWN]))
    parser.add_argument("--plot", metavar="FILE", help="draw growth.jsonl instead")
    given = parser.parse_args()
    if given.plot:
        plot(given.plot)
        return
    for part in given.parts.split(","):
        if part == "speed":
            speed()
            continue
        if part in OWN:
            tell(part, "", [OWN[part](seed) for seed in range(given.seeds)])
            continue
        for name, (graph, truth) in graphs(given.graphs.split(",")).items():
            tell(part, name, [PARTS[part](graph, truth, seed) for seed in range(given.seeds)])


if __name__ == "__main__":
    main()
