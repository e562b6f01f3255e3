"""`kernelne plot`: draw a map of the nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelne.cli import completion
from kernelne.cli.inputs import check_files, given_graph, given_labels, told_labels
from kernelne.cli.options import (
    LABELS,
    READING,
    EmbeddingArgument,
    LabelsOption,
    OverwriteOption,
    QuietOption,
    SeedOption,
    takes,
)
from kernelne.cli.output import say, working
from kernelne.cli.pictures import KeepLayoutOption, LayoutBackendOption, LayoutOption
from kernelne.errors import InputError, ParameterError

if TYPE_CHECKING:
    from kernelne.embedding import Embedding
    from kernelne.io.labels import Labels


@takes(READING, LABELS)
def plot(
    embedding: EmbeddingArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Picture to write: .png, .svg or .pdf.", show_default=False
        ),
    ],
    labels: LabelsOption = None,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            metavar="GRAPH",
            help="Graph whose edges are drawn; a file or a dataset.",
            autocompletion=completion.graph_or_labels,
        ),
    ] = None,
    highlight: Annotated[
        list[str] | None,
        typer.Option(
            "--highlight",
            metavar="CLASS",
            help="Class of the labels to colour; all others are grey. Can be repeated.",
        ),
    ] = None,
    layout: LayoutOption = "auto",
    backend: LayoutBackendOption = "cpu",
    title: Annotated[
        str | None, typer.Option("--title", help="Title above the map.", show_default="the number of nodes")
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Use a dark background.")] = False,
    keep_layout: KeepLayoutOption = True,
    overwrite: OverwriteOption = False,
    random_state: SeedOption = 0,
    quiet: QuietOption = False,
    **given: Any,
) -> None:
    """Draw a map of the nodes, coloured by label; nodes with similar vectors are close to each other."""
    from kernelne.embedding import Embedding
    from kernelne.view.layout import check_layout
    from kernelne.view.plot import FORMATS, check_map, plot_map

    check_layout(layout, backend)
    if highlight and labels is None:
        raise ParameterError("--highlight", highlight[0], "needs --labels, whose classes it names")
    check_files(output, embedding, labels, graph, given["nodes"])
    if output.suffix.lower() not in FORMATS:
        raise ParameterError("--output", str(output), f"must end in {', '.join(FORMATS)}")
    check_map(output, overwrite)
    loaded = Embedding.load(embedding)
    known = None if labels is None else given_labels(labels, given)
    if known is not None:
        if not quiet:
            say(told_labels(known))
        _tell_unknown(loaded, known, str(labels))
    network = None if graph is None else given_graph(graph, given)
    if not quiet:
        say(f"Drawing {len(loaded):,} nodes × {loaded.dim} …")
    with working():
        plot_map(
            loaded, output, known, graph=network, highlight=highlight or [], layout=layout, title=title,
            dark=dark, random_state=random_state, overwrite=overwrite, progress=not quiet,
            beside=embedding if keep_layout else None, backend=backend,
        )  # fmt: skip
    if not quiet:
        print(output)


def _tell_unknown(embedding: Embedding, labels: Labels, path: str) -> None:
    """Warn if some labelled nodes are not in the embedding; raise InputError if none is."""
    rows, _ = labels.among(embedding.nodes, unknown="skip")
    if not len(rows):
        first, own = labels.nodes.tolist()[0], embedding.nodes.tolist()[0]
        raise InputError(
            f"{path}: none of its nodes, such as {first!r}, is in the embedding, such as {own!r}"
        )
    if len(rows) < len(labels):
        n_unknown = f"{len(labels) - len(rows):,} of {len(labels):,}"
        say(f"warning: {path}: {n_unknown} labelled nodes are not in the embedding and are ignored")
