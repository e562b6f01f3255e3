"""`kernelne convert`: convert graphs and embeddings between file formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kernelne.cli import completion
from kernelne.cli.inputs import STANDARD_INPUT, check_files, given_graph, is_dataset, told
from kernelne.cli.options import READING, OverwriteOption, QuietOption, default_of, takes
from kernelne.cli.output import begin, say, working
from kernelne.errors import InputError, ParameterError


@takes(READING)
def convert(
    path: Annotated[
        str,
        typer.Argument(
            metavar="IN",
            help="Graph to read (a file, - for standard input, or the name of a dataset), or embedding file.",
            show_default=False,
            autocompletion=completion.graph_or_labels,
        ),
    ],
    output: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="File to write; the suffix sets the format.", show_default=False),
    ],
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Write OUT even if its format cannot hold everything.")
    ] = False,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
    **given: Any,
) -> None:
    """Convert a graph or an embedding from one file format to another."""
    from kernelne.io.files import check_output

    check_files(output, path, given["nodes"])
    if _is_embedding(path, output):
        _convert_embedding(Path(path), output, lossy, overwrite, given)
    else:
        from kernelne.io.graphs.read_write import check_lossless, write_graph
        from kernelne.io.graphs.registry import find_format

        find_format(output)
        check_output(output, overwrite)
        graph = given_graph(path, given)
        if not lossy:
            check_lossless(graph, output)
        if not quiet:
            say(told(graph))
        with working():
            write_graph(graph, output, overwrite=overwrite, lossy=lossy)
        if graph.directed and not find_format(output)[0].tells_direction and not quiet:
            say("note: the format does not store the direction of edges: read the file with --directed")
    if not quiet:
        print(output)


def _convert_embedding(path: Path, output: Path, lossy: bool, overwrite: bool, given: dict[str, Any]) -> None:
    from kernelne.embedding import Embedding
    from kernelne.io.embeddings.registry import check_ids, check_save, lost_in

    for name, value in given.items():
        if value != default_of(READING[name]):
            remedy = f"is an option for reading a graph, and {path} is an embedding"
            raise ParameterError("--" + name.replace("_", "-"), value, remedy)
    check_save(output, overwrite)
    embedding = Embedding.load(path)
    check_ids(embedding.nodes, output)
    lost = lost_in(embedding, output)
    if lost and not lossy:
        raise InputError(
            f"{output}: {output.suffix} would lose {' and '.join(lost)}: write .safetensors, or --lossy"
        )
    begin()
    embedding.save(output, overwrite=overwrite)


def _is_embedding(path: str, output: Path) -> bool:
    """Whether IN and OUT are embeddings, by their suffixes or, if these are ambiguous, by the start of IN."""
    if path == STANDARD_INPUT or is_dataset(path):
        return False
    kinds = [_kinds(Path(path)), _kinds(output)]
    if {"graph"} in kinds and {"embedding"} in kinds:
        raise InputError(f"{path} and {output}: one is a graph, the other an embedding")
    if {"graph"} in kinds or {"embedding"} in kinds:
        return {"embedding"} in kinds
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        from kernelne.io.embeddings.registry import DAMAGE

        try:
            with open(path, "rb") as file:
                return {"id", "vector"} <= set(pq.read_schema(file).names)
        except (OSError, *DAMAGE):  # reported when the file is read
            return False
    with open(path, "rb") as file:
        return suffix == ".csv" and file.read(8).removeprefix(b"\xef\xbb\xbf").startswith(b"id,0")


def _kinds(path: Path) -> set[str]:
    """Return the kinds of file, graph or embedding, that have this suffix."""
    from kernelne.errors import FileFormatError
    from kernelne.io.embeddings.registry import FORMATS as EMBEDDING_FORMATS
    from kernelne.io.graphs.registry import find_format

    kinds = {"embedding"} if path.suffix.lower() in EMBEDDING_FORMATS else set()
    try:
        find_format(path)
    except FileFormatError:
        return kinds
    return kinds | {"graph"}
