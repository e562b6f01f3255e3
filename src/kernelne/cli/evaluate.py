"""`kernelne classify` and `kernelne cluster`: score vectors by labels and communities."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelne.cli import completion
from kernelne.cli.inputs import check_files, check_same_nodes, given_graph, matched_labels
from kernelne.cli.options import (
    LABELS,
    LABELS_HELP,
    READING,
    EmbeddingArgument,
    JsonOption,
    OverwriteOption,
    QuietOption,
    SeedOption,
    SkipOption,
    takes,
)
from kernelne.cli.output import counted, print_facts, print_json, print_scores, say, spread, summary, working
from kernelne.errors import InputError, ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kernelne.embedding import Embedding
    from kernelne.graph import Graph

_SHARES = "1,5,10,50,90"


@takes(LABELS)
def classify(
    embedding: EmbeddingArgument,
    labels: Annotated[
        str,
        typer.Argument(
            metavar="LABELS", help=LABELS_HELP, show_default=False, autocompletion=completion.graph_or_labels
        ),
    ],
    train_sizes: Annotated[
        str | None,
        typer.Option(
            "--train-sizes",
            help="Shares of the labelled nodes to train on, in percent, separated by commas.",
            show_default=f"{_SHARES}, without those below one node",
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Number of random splits for each share.")
    ] = 10,
    random_state: SeedOption = 0,
    skip_unknown: SkipOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Score an embedding by how well a logistic regression predicts the labels of nodes from the vectors."""
    import numpy as np

    from kernelne.embedding import Embedding
    from kernelne.evaluation.classification import classify_nodes

    shares = _parse_shares(_SHARES if train_sizes is None else train_sizes)
    loaded = Embedding.load(embedding)
    rows, truth = matched_labels(labels, given, "for_nodes", loaded.nodes, skip_unknown)
    if train_sizes is None:
        shares = [share for share in shares if share * len(rows) >= 1]
    for share in shares:
        if not 1 <= int(share * len(rows)) < len(rows):
            remedy = f"{100 * share:g} % leaves none of {len(rows)} nodes to train on, or to test"
            raise ParameterError("--train-sizes", train_sizes, remedy)
    facts = {
        "nodes": len(rows),
        "without_label": len(loaded) - len(rows),
        "classes": int(truth.any(axis=0).sum()),
        "repeats": repeats,
        "seed": random_state,
    }
    if not quiet:
        left_out = f"; {facts['without_label']:,} without label left out" if facts["without_label"] else ""
        n_several = int((truth.sum(axis=1) > 1).sum())
        several = f", {n_several:,} with several labels" if n_several else ""
        say(f"Labels: {facts['nodes']:,} nodes, {facts['classes']:,} classes{several}{left_out}")
    settings: dict[str, Any] = {"train_sizes": shares, "n_repeats": repeats, "random_state": random_state}
    with working(), counted("scoring", "splits", quiet) as report:
        scores = classify_nodes(loaded.vectors[rows], truth, **settings, progress=report)
    # Without vectors the classifier can only predict the most frequent labels.
    majority = classify_nodes(np.zeros((len(rows), 1)), truth, **settings)
    columns = {
        "micro_f1": scores.micro_f1,
        "macro_f1": scores.macro_f1,
        "majority_micro_f1": majority.micro_f1,
        "majority_macro_f1": majority.macro_f1,
    }
    table = [(share, {name: values[i] for name, values in columns.items()}) for i, share in enumerate(shares)]
    if as_json:
        print_json(facts | {"scores": [{"train_share": share} | summary(row) for share, row in table]})
        return
    print_scores(
        ["trained on", "micro-F1", "macro-F1", "majority: micro-F1", "macro-F1"],
        [[f"{100 * share:g} %", *map(spread, row.values())] for share, row in table],
    )


def _parse_shares(text: str) -> list[float]:
    """1,10,50 → [0.01, 0.1, 0.5]."""
    try:
        percent = [float(part) for part in text.split(",")]
    except ValueError:
        percent = []
    if not percent or not all(0 < share < 100 for share in percent):
        raise ParameterError(
            "--train-sizes", text, "must be percentages above 0 and below 100, such as 1,10,50"
        )
    return [share / 100 for share in percent]


@takes(READING, LABELS)
def cluster(
    embedding: EmbeddingArgument,
    n_clusters: Annotated[
        int | None,
        typer.Option(
            "--n-clusters",
            min=1,
            help="Number of clusters.",
            show_default="the number of labels or communities",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="LABELS",
            help=f"Labels to compare the clusters with. {LABELS_HELP}",
            autocompletion=completion.graph_or_labels,
        ),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            metavar="GRAPH",
            help="Graph whose Louvain communities the clusters are compared with; a file or a dataset.",
            autocompletion=completion.graph_or_labels,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="File to write with a node id and its cluster on each line: .csv.",
        ),
    ] = None,
    overwrite: OverwriteOption = False,
    random_state: SeedOption = 0,
    skip_unknown: SkipOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Cluster the nodes by k-means, and compare the clusters with labels or with the graph's communities."""
    from kernelne.embedding import Embedding
    from kernelne.evaluation.clustering import cluster_nodes
    from kernelne.io.files import check_output
    from kernelne.io.labels import Labels

    if n_clusters is None and labels is None and graph is None:
        raise InputError("the number of clusters is missing: give --n-clusters, --labels or --graph")
    check_files(output, embedding, labels, graph, given["nodes"])
    if output is not None:
        if output.suffix.lower() != ".csv":
            raise ParameterError("--output", str(output), "must end in .csv")
        check_output(output, overwrite)
    loaded = Embedding.load(embedding)
    nodes = loaded.nodes
    network = classes = None
    if graph is not None:
        network = given_graph(graph, given)
        check_same_nodes(loaded, network, embedding, graph)
        nodes = network.nodes
        if _was_another(loaded, network):
            say(f"warning: {embedding} was made of another graph with these nodes, or before it changed")
    if labels is not None:
        rows, codes = matched_labels(labels, given, "single_for", nodes, skip_unknown)
        classes = Labels.from_values(nodes[rows], codes)
    if not quiet:
        some = f", {len(classes):,} of them labelled" if classes and len(classes) < len(nodes) else ""
        say(f"Clustering {len(nodes):,} nodes × {loaded.dim}{some} …")
    with working():
        scores = cluster_nodes(
            loaded, n_clusters=n_clusters, labels=classes, graph=network, random_state=random_state
        )
    if output is not None:
        _write_clusters(output, nodes, scores.assignment, overwrite)
    facts = {
        "nodes": len(nodes),
        "clusters": scores.n_clusters,
        "compared_with": "labels" if labels else "communities" if graph else None,
        "compared_nodes": scores.n_compared,
        "nmi": scores.nmi,
        "ari": scores.ari,
        "modularity": scores.modularity,
        "seed": random_state,
    }
    if as_json:
        print_json(facts)
        return
    shown = {name: value for name, value in facts.items() if value is not None}
    print_facts({name: round(v, 3) if isinstance(v, float) else v for name, v in shown.items()})


def _was_another(embedding: Embedding, graph: Graph) -> bool:
    """Whether the provenance of the embedding names another graph than this one."""
    source = embedding.provenance.get("graph")
    return isinstance(source, dict) and source.get("fingerprint") not in (None, graph.fingerprint)


def _write_clusters(path: Path, nodes: NDArray[Any], clusters: NDArray[np.int64], overwrite: bool) -> None:
    """Write a line `id,cluster` for each node below a header; strings are quoted."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    from kernelne.graph.ids import id_column
    from kernelne.io.files import atomic_output

    table = pa.table({"id": id_column(nodes), "cluster": clusters})
    with atomic_output(path, overwrite) as temporary, open(temporary, "wb") as file:
        file.write(b"id,cluster\n")
        pacsv.write_csv(table, file, pacsv.WriteOptions(include_header=False))
