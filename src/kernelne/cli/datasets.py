"""`kernelne datasets`: graphs available by name."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from kernelne.cli import completion
from kernelne.cli.options import JsonOption
from kernelne.cli.output import begin, print_json, print_table, say, working

app = typer.Typer(
    name="datasets", help="List, locate and download graphs that are available by name.", no_args_is_help=True
)

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name of the dataset.",
        show_default=False,
        autocompletion=completion.one_of(*completion.DATASETS),
    ),
]


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List the datasets. Their names can be given as GRAPH to all commands."""
    from kernelne.datasets import list_datasets

    found = list_datasets()
    if as_json:
        print_json([asdict(info) for info in found])
        return
    print_table(
        ["name", "nodes", "edges", "classes", "where", "description"],
        [
            [
                info.name,
                *("" if n is None else f"{n:,}" for n in (info.n_nodes, info.n_edges, info.n_classes)),
                info.where,
                info.description,
            ]
            for info in found
        ],
        text=["where", "description"],
    )


@app.command()
def path(name: NameArgument) -> None:
    """Print the path of the edges of a dataset."""
    from kernelne.datasets import dataset_path

    print(dataset_path(name))


@app.command()
def fetch(
    name: NameArgument,
    source: Annotated[
        Path | None, typer.Option("--source", help="The original file, used instead of a download.")
    ] = None,
) -> None:
    """Download a dataset into the cache unless it is there, and print the path of its edges."""
    from kernelne.datasets import fetch_dataset, list_datasets
    from kernelne.io.files import check_input

    if source is not None:
        check_input(source)
    where = next((info.where for info in list_datasets() if info.name == name), None)
    if source is None and where in ("to fetch", "cache"):
        if where == "to fetch":
            say(f"fetching {name} …")
        begin()
    with working():
        found = fetch_dataset(name, source=source)
    print(found)
