"""`kernelne demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelne.cli.output import begin


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the files go.")
    ] = Path("demo"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files of an earlier demo.")] = False,
) -> None:
    """Embed a real graph that comes along (1,797 handwritten digits), score it and draw it."""
    from kernelne.cli.run_demo import run_demo

    run_demo(output, overwrite, begin=begin)
