"""`kernelne similar`: find the nodes whose vectors are nearest to those of a node."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelne.cli import completion
from kernelne.cli.inputs import check_files, given_ids, given_labels, given_node
from kernelne.cli.options import (
    LABELS,
    EmbeddingArgument,
    JsonOption,
    LabelsOption,
    QuietOption,
    SkipIdsOption,
    takes,
)
from kernelne.cli.output import begin, print_json, print_table, say, working
from kernelne.errors import FileFormatError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kernelne.embedding import Embedding
    from kernelne.io.labels import Labels


@takes(LABELS)
def similar(
    embedding: EmbeddingArgument,
    nodes: Annotated[
        list[str], typer.Argument(metavar="NODE...", help="One or more node ids.", show_default=False)
    ],
    k: Annotated[int, typer.Option("-k", min=1, help="Number of neighbours for each node.")] = 10,
    among: Annotated[
        Path | None,
        typer.Option("--among", metavar="FILE", help="File with the ids to choose from, one per line."),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            help="cosine (similarity) or euclidean (distance, as in the kernels).",
            autocompletion=completion.one_of(*completion.METRICS),
        ),
    ] = "cosine",
    exact: Annotated[
        bool, typer.Option("--exact", help="Compare with all vectors, without an index.")
    ] = False,
    index: Annotated[
        bool,
        typer.Option(
            "--index",
            help=r"Search approximately, with the index beside EMBEDDING, which is built if there is none "
            r"that fits (needs kernelne\[search]).",
        ),
    ] = False,
    labels: LabelsOption = None,
    skip_unknown: SkipIdsOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Find the nodes whose vectors are most similar to those of the given nodes."""
    from kernelne.embedding import Embedding
    from kernelne.embedding.neighbours import METRICS, check_metric

    check_metric(metric)
    if exact and index:
        raise ParameterError("--index", index, "an index is not used with --exact: give one of the two")
    if among is not None and index:
        raise ParameterError("--among", str(among), "cannot be combined with --index")
    check_files(None, embedding, labels, among)
    loaded = Embedding.load(embedding)
    wanted = [given_node(text, loaded.nodes) for text in nodes]
    loaded.index_of(wanted)
    chosen = None if among is None else given_ids(among, loaded, skip_unknown)
    known = None if labels is None else given_labels(labels, given)
    indexed = not exact and _bring_index(loaded, embedding, metric, index, quiet)
    begin()
    ids, scores = loaded.neighbours(wanted, k, among=chosen, exact=exact, metric=metric)
    tags = None if known is None else _tags(known, ids)
    found = [
        (node, list(zip(row, values, strict=True)))
        for node, row, values in zip(wanted, ids.tolist(), scores.tolist(), strict=True)
    ]
    score = METRICS[metric]
    if as_json:
        listed = [
            {
                "node": node,
                "neighbours": [
                    {"node": i, score: s} | ({} if tags is None else {"labels": tags.get(i, [])})
                    for i, s in pairs
                ],
            }
            for node, pairs in found
        ]
        print_json({"metric": metric, "exact": not indexed, "similar": listed})
        return
    columns = ["to"] * (len(wanted) > 1) + ["node"] + ["label"] * (tags is not None) + [score]
    cells = {
        (node, i): {"to": str(node), "node": str(i), "label": _join(tags, i), score: f"{s:.4f}"}
        for node, pairs in found
        for i, s in pairs
    }
    print_table(columns, [[row[name] for name in columns] for row in cells.values()], text=["node", "label"])


def _bring_index(embedding: Embedding, path: Path, metric: str, wanted: bool, quiet: bool) -> bool:
    """Load the index beside the file, if wanted; build and save it if there is none that fits."""
    from kernelne.embedding.neighbours import index_path
    from kernelne.io.files import check_output

    if wanted and index_path(path, metric).exists():
        with suppress(FileFormatError):
            embedding.load_index(path, metric)
            return True
    if wanted:
        if not quiet:
            say(f"Indexing {len(embedding):,} nodes × {embedding.dim} …")
        check_output(index_path(path, metric), overwrite=True)
        with working():
            embedding.save_index(path, metric, overwrite=True)
    return wanted


def _tags(labels: Labels, ids: NDArray[Any]) -> dict[Any, list[Any]]:
    """Return the labels of the ids that have any."""
    import numpy as np

    shown = np.array(list(dict.fromkeys(ids.ravel().tolist())), ids.dtype)
    rows, table = labels.for_nodes(shown, unknown="skip")
    names = labels.classes.tolist()
    return {
        node: [names[j] for j in row.nonzero()[0]]
        for node, row in zip(shown[rows].tolist(), table, strict=True)
    }


def _join(tags: dict[Any, list[Any]] | None, node: Any) -> str:
    return ", ".join(map(str, (tags or {}).get(node, [])))
