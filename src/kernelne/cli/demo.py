"""`kernelne demo`: embed, score and draw an example graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelne.cli.output import begin


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder to write the files to.")
    ] = Path("demo"),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the files of an earlier demo.")
    ] = False,
) -> None:
    """Embed, score and draw an example graph (1,797 handwritten digits from scikit-learn)."""
    from kernelne.cli.run_demo import run_demo

    run_demo(output, overwrite, begin=begin)
