"""`kernelne explore`: write an interactive page that shows an embedding."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelne.cli import completion
from kernelne.cli.inputs import check_files, check_same_nodes, given_graph, matched_labels
from kernelne.cli.options import (
    LABELS,
    READING,
    EmbeddingArgument,
    LabelsOption,
    OverwriteOption,
    QuietOption,
    SeedOption,
    SkipOption,
    takes,
)
from kernelne.cli.output import say, working
from kernelne.cli.pictures import KeepLayoutOption, LayoutBackendOption, LayoutOption
from kernelne.errors import ParameterError


@takes(READING, LABELS)
def explore(
    embedding: EmbeddingArgument,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            metavar="GRAPH",
            help="Graph whose links, communities and degrees are shown; a file or a dataset.",
            autocompletion=completion.graph_or_labels,
        ),
    ] = None,
    labels: LabelsOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Page to write: .html.", show_default="EMBEDDING with .html"
        ),
    ] = None,
    layout: LayoutOption = "auto",
    backend: LayoutBackendOption = "cpu",
    n_nearest: Annotated[
        int | None,
        typer.Option(
            "--n-nearest",
            min=0,
            help="Number of nearest nodes listed for each node.",
            show_default="10 up to 100,000 nodes, 5 beyond",
        ),
    ] = None,
    open_page: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open", help="Open the page in a browser.", show_default="open in a terminal"
        ),
    ] = None,
    keep_layout: KeepLayoutOption = True,
    overwrite: OverwriteOption = False,
    random_state: SeedOption = 0,
    skip_unknown: SkipOption = False,
    quiet: QuietOption = False,
    **given: Any,
) -> None:
    """Write an HTML page with a map of the nodes to search, filter, select and export."""
    from kernelne.embedding import Embedding
    from kernelne.io.files import check_output
    from kernelne.view.explorer.facts import Shown
    from kernelne.view.explorer.page import write_page
    from kernelne.view.layout import check_layout, chosen_method

    target = Path(embedding.name).with_suffix(".html") if output is None else output
    if target.suffix.lower() not in (".html", ".htm"):
        raise ParameterError("--output", str(target), "must end in .html")
    check_layout(layout, backend)
    check_files(target, embedding, labels, graph, given["nodes"])
    check_output(target, overwrite)
    loaded = Embedding.load(embedding)
    network = known = None
    if graph is not None:
        network = given_graph(graph, given)
        check_same_nodes(loaded, network, embedding, graph)
    if labels is not None:
        _, known = matched_labels(labels, given, "among", loaded.nodes, skip_unknown)
    if not quiet:
        by = {"map": " by neighbours", "tsne": " by t-SNE", "umap": " by UMAP", "pca": " by PCA"}
        method = chosen_method(len(loaded), loaded.dim, layout)
        say(f"Laying out {len(loaded):,} nodes{by.get(method, '')} …")
    with working():
        shown = Shown.gather(
            loaded, network, known, layout=layout, n_nearest=n_nearest, title=embedding.name,
            random_state=random_state, progress=not quiet,
            beside=embedding if keep_layout else None, backend=backend,
        )  # fmt: skip
    write_page(target, shown, overwrite)
    print(target)
    if sys.stdout.isatty() if open_page is None else open_page:
        webbrowser.open(target.resolve().as_uri())
