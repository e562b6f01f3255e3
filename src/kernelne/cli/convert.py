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
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            help="Edge lists to .kne: memory that may be used, such as 2GB; the files may be larger.",
            show_default="half of what is free",
        ),
    ] = None,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
    **given: Any,
) -> None:
    """Convert a graph or an embedding from one file format to another.

    An edge list of any size can be converted to .kne, which all commands read without loading it whole.
    """
    from kernelne.io.files import check_output

    check_files(output, path, given["nodes"])
    embedding = _is_embedding(path, output)
    if not embedding and _is_large(path, output, given):
        _convert_edges(path, output, memory, overwrite, quiet, given)
    elif memory is not None:
        raise ParameterError(
            "--memory", memory, "applies to edge lists in files, without --time, and to .kne"
        )
    elif embedding:
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


def _is_large(path: str, output: Path, given: dict[str, Any]) -> bool:
    """Whether the graph is converted in parts, because it may be larger than the memory."""
    from kernelne.io.graphs.registry import find_format

    if path == STANDARD_INPUT or is_dataset(path) or given["time"] is not None:
        return False
    return output.suffix.lower() == ".kne" and find_format(path, given["format"])[0].is_edge_list


def _convert_edges(
    path: str, output: Path, memory: str | None, overwrite: bool, quiet: bool, given: dict[str, Any]
) -> None:
    from kernelne._common.memory import parse_size
    from kernelne.io.files import check_output
    from kernelne.io.graphs.out_of_core import convert_edges
    from kernelne.io.graphs.read_write import check_options
    from kernelne.io.graphs.shared import Options

    nodes = None if given["nodes"] is None else str(given["nodes"])
    told = {name: given[name] for name in Options.__dataclass_fields__}
    options = Options(**told | {"nodes": nodes})
    check_options(path, options, given["format"])
    check_output(output, overwrite)
    size = None if memory is None else parse_size("--memory", memory)
    with working():
        counts, n_edges = convert_edges(
            path,
            output,
            options,
            drop_self_loops=given["drop_self_loops"],
            memory=size,
            overwrite=overwrite,
            progress=not quiet,
        )
    if not quiet:
        kind = f"{'directed' if counts.directed else 'undirected'}, {'un' * (not counts.weighted)}weighted"
        say(f"Graph: {counts.n_nodes:,} nodes, {n_edges:,} edges, {kind}")


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
        from kernelne.io.files import open_for_arrow

        try:
            with open_for_arrow(path) as file:
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
