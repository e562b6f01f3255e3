"""`kernelne plot`: a map of the nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kernelne.cli import completion
from kernelne.cli.inputs import check_files, given_graph, given_labels
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
from kernelne.cli.output import begin, say
from kernelne.errors import ParameterError


@takes(READING, LABELS)
def plot(
    embedding: EmbeddingArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Where to draw: .png .svg or .pdf", show_default=False
        ),
    ],
    labels: LabelsOption = None,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            metavar="GRAPH",
            help="Draw its edges, lightly; a file or a dataset.",
            autocompletion=completion.graph_or_labels,
        ),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            "--layout",
            help=r"pca, tsne, umap (needs kernelne\[explore]), or auto: tsne up to 10,000 nodes.",
            autocompletion=completion.one_of(*completion.LAYOUTS),
        ),
    ] = "auto",
    title: Annotated[
        str | None, typer.Option("--title", help="Above the map.", show_default="the number of nodes")
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark.")] = False,
    overwrite: OverwriteOption = False,
    random_state: SeedOption = 0,
    quiet: QuietOption = False,
    **given: Any,
) -> None:
    """Draw a map of the nodes: near in the picture are those whose vectors are near, coloured by label."""
    from kernelne.embedding import Embedding
    from kernelne.layout import check_layout
    from kernelne.plotting import FORMATS, check_map, plot_map

    check_layout(layout)
    check_files(output, embedding, labels, graph, given["nodes"])
    if output.suffix.lower() not in FORMATS:
        raise ParameterError("--output", str(output), f"must end in {', '.join(FORMATS)}")
    check_map(output, overwrite)
    loaded = Embedding.load(embedding)
    known = None if labels is None else given_labels(labels, given)
    network = None if graph is None else given_graph(graph, given)
    begin()
    if not quiet:
        say(f"Drawing {len(loaded):,} nodes × {loaded.dim} …")
    plot_map(
        loaded, output, known, graph=network, layout=layout, title=title, dark=dark,
        random_state=random_state, overwrite=overwrite, progress=not quiet,
    )  # fmt: skip
    if not quiet:
        print(output)
