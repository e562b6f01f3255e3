"""Options of the commands that show a layout."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelne.cli import completion

LayoutOption = Annotated[
    str,
    typer.Option(
        "--layout",
        help="Layout: map, which keeps neighbours together, pca, tsne, "
        r"umap (needs kernelne\[explore]), or auto: map, but vectors of two columns are shown as they are.",
        autocompletion=completion.one_of(*completion.LAYOUTS),
    ),
]
KeepLayoutOption = Annotated[
    bool,
    typer.Option(
        "--keep-layout/--no-keep-layout",
        help="Keep the layout in a file beside EMBEDDING, for the next picture of these vectors.",
    ),
]
LayoutBackendOption = Annotated[
    str,
    typer.Option(
        "--backend",
        help=r"Where to compute the layout map: cpu, or gpu (one NVIDIA GPU; needs kernelne\[gpu]).",
        autocompletion=completion.one_of(*completion.BACKENDS),
    ),
]
