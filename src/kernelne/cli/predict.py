"""`kernelne predict`: the labels of nodes without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelne.cli import completion
from kernelne.cli.inputs import check_files, given_labels, told_labels
from kernelne.cli.options import (
    LABELS,
    LABELS_HELP,
    EmbeddingArgument,
    JsonOption,
    OverwriteOption,
    QuietOption,
    SeedOption,
    SkipOption,
    takes,
)
from kernelne.cli.output import print_json, say, tell, working, write_tables
from kernelne.errors import InputError, ParameterError

if TYPE_CHECKING:
    from kernelne.embedding import Embedding
    from kernelne.evaluation.node_classifier import NodeClassifier

_BLOCK = 2**24  # numbers of the vectors that are in memory at a time


@takes(LABELS)
def predict(
    embedding: EmbeddingArgument,
    labels: Annotated[
        str,
        typer.Argument(
            metavar="LABELS", help=LABELS_HELP, show_default=False, autocompletion=completion.graph_or_labels
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="File to write: .csv or .parquet with node, label, probability.",
        ),
    ],
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            min=0.0,
            max=1.0,
            help="Leave the label empty where its probability is lower.",
            show_default="none; with several labels a node, chosen by micro-F1",
        ),
    ] = None,
    everyone: Annotated[
        bool, typer.Option("--all", help="Predict for nodes with a label too, not only for those without.")
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Add a column for each class: P(fraud) is its probability."),
    ] = False,
    overwrite: OverwriteOption = False,
    random_state: SeedOption = 0,
    skip_unknown: SkipOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Predict the labels of nodes from those of others, with probabilities.

    A node has one line or, where nodes have several labels, one for each. How good the predictions are is
    told by nodes with a label, which are left out in turn.
    """
    import numpy as np

    from kernelne.embedding import Embedding
    from kernelne.evaluation.node_classifier import NodeClassifier
    from kernelne.io.files import check_output

    if output.suffix.lower() not in (".csv", ".parquet"):
        raise ParameterError("--output", str(output), "must end in .csv or .parquet")
    check_files(output, embedding, labels)
    check_output(output, overwrite)
    loaded = Embedding.load(embedding)
    known = given_labels(labels, given)
    rows, mine = known.among(loaded.nodes, unknown="skip" if skip_unknown else "error")
    wanted = np.arange(len(loaded)) if everyone else np.setdiff1d(np.arange(len(loaded)), rows)
    if not len(wanted):
        raise InputError(f"{labels}: every node has a label already: --all predicts for these too")
    model = NodeClassifier(threshold=threshold, random_state=random_state)
    with working():
        model.fit(loaded, mine)
        if not quiet and not as_json:
            say(told_labels(known))
        unsure = 0

        def tables() -> Iterator[Any]:
            nonlocal unsure
            size = max(_BLOCK // loaded.dim, 1)
            for start in range(0, len(wanted), size):
                rows = wanted[start : start + size]
                table, unsure_nodes = _predicted(model, loaded, rows, threshold, probabilities)
                unsure += unsure_nodes
                yield table

        write_tables(output, tables(), overwrite)
    facts = {
        "labelled_nodes": len(rows),
        "classes": len(model.classes_),
        "predicted_nodes": len(wanted) - unsure,
        "unknown_nodes": unsure,
        "accuracy": model.scores_.accuracy,
        "precision": model.scores_.precision,
        "micro_f1": model.scores_.micro_f1,
        "macro_f1": model.scores_.macro_f1,
        "calibration_error": model.scores_.calibration_error,
        "majority_accuracy": model.scores_.majority,
        "kept_share": model.scores_.kept,
        "seed": random_state,
    }
    if as_json:
        print_json({name: None if value != value else value for name, value in facts.items()})
        return
    tell(f"Left out in turn: {model.scores_}")
    if not quiet:
        unsure_told = f"; {facts['unknown_nodes']:,} below the threshold" if facts["unknown_nodes"] else ""
        say(f"Wrote {output}: labels of {facts['predicted_nodes']:,} nodes{unsure_told}")


def _predicted(
    model: NodeClassifier, embedding: Embedding, rows: Any, threshold: float | None, probabilities: bool
) -> tuple[Any, int]:
    """Return the table of the labels of some rows, and the number of them whose label is left empty."""
    import numpy as np
    import pyarrow as pa

    from kernelne.graph.ids import id_column

    vectors = embedding.vectors[rows]
    chances = model.predict_proba(vectors)
    best = chances.argmax(axis=1)
    found, columns = model.predict(vectors).nonzero() if model.multilabel_ else (np.arange(len(rows)), best)
    alone = np.setdiff1d(np.arange(len(rows)), found)  # no label reaches the threshold
    found, columns = np.append(found, alone), np.append(columns, best[alone])
    order = np.lexsort((-chances[found, columns], found))
    found, columns = found[order], columns[order]
    told = chances[found, columns]
    names = np.array([str(each) for each in model.classes_.tolist()], object)[columns]
    unsure = np.isin(found, alone) if model.multilabel_ else told < (threshold or 0.0)
    table = pa.table(
        {
            "node": id_column(embedding.nodes[rows[found]]),
            "label": pa.array(names, pa.string(), mask=unsure),
            "probability": told,
        }
    )
    if probabilities:
        for name, column in zip(model.classes_.tolist(), chances[found].T, strict=True):
            table = table.append_column(f"P({name})", pa.array(column))
    return table, len(np.unique(found[unsure]))
