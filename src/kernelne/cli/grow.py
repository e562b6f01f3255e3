"""`kernelne update` and `kernelne fold-in`: vectors of a graph that has changed, in the same space."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelne.cli.inputs import check_files, given_graph, told
from kernelne.cli.options import (
    MODEL,
    READING,
    EmbeddingArgument,
    GraphArgument,
    OverwriteOption,
    QuietOption,
    takes,
)
from kernelne.cli.output import say, working
from kernelne.errors import ParameterError

if TYPE_CHECKING:
    from kernelne.embedding import Embedding
    from kernelne.graph import Graph

_FOLLOWING = "Following a file"
_Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="File to write; .safetensors or .npz keep what the next update needs.",
        show_default=False,
    ),
]


@takes(READING, {name: MODEL[name] for name in ("n_threads", "deterministic", "random_state")})
def update(
    embedding: EmbeddingArgument,
    graph: GraphArgument,
    output: _Output,
    overwrite: OverwriteOption = False,
    follow: Annotated[
        Path | None,
        typer.Option(
            "--follow",
            metavar="FILE",
            help="Edge list to which lines are appended: GRAPH grows by them, and OUT is written after every "
            "batch. The same command goes on from OUT after it was stopped.",
            rich_help_panel=_FOLLOWING,
        ),
    ] = None,
    every: Annotated[
        str,
        typer.Option(
            "--every", help="New lines of a batch, or a time such as 30s.", rich_help_panel=_FOLLOWING
        ),
    ] = "1000",
    idle: Annotated[
        str | None,
        typer.Option(
            "--idle",
            help="End when no line was appended for so long, such as 10min.",
            show_default="never",
            rich_help_panel=_FOLLOWING,
        ),
    ] = None,
    quiet: QuietOption = False,
    **given: Any,
) -> None:
    """Update the vectors of a graph that has changed, training only around the changes.

    The space stays the same: a classifier or an index made with the old vectors works with the new ones.
    """
    from kernelne.embedding import Embedding
    from kernelne.growth.update import update_embedding
    from kernelne.io.embeddings.registry import FORMATS, check_ids, check_save, known_suffix

    check_files(None, embedding, graph, given["nodes"], follow)
    if follow is not None and not FORMATS[known_suffix(output)].holds_all:
        raise ParameterError("--output", str(output), "must end in .npz or .safetensors with --follow")
    going_on = follow is not None and _goes_on(output, follow)
    overwrite = overwrite or going_on
    check_save(output, overwrite)
    loaded = Embedding.load(output if going_on else embedding)
    network = given_graph(graph, given)
    check_ids(network.nodes, output)
    how = {name: given[name] for name in ("n_threads", "random_state")}
    how |= {"deterministic": bool(given["deterministic"]), "progress": False if quiet else None}
    if not quiet:
        say(told(network))
    if follow is not None:
        with working():
            _follow(loaded, network, follow, output, every, idle, quiet, overwrite, given, how)
        return
    with working():
        made = update_embedding(loaded, network, **how)
    made.save(output, overwrite=overwrite)
    if not quiet:
        _tell(output, made, changed=made is not loaded)


def _tell(output: Path, made: Embedding, changed: bool = True) -> None:
    facts = made.provenance.get("update")
    if not changed or not isinstance(facts, dict):
        print(f"{output}: nothing has changed")
        return
    print(
        f"{output}: {len(made):,} nodes × {made.dim}; {facts['new']:,} new, {facts['changed']:,} changed, "
        f"{facts['removed']:,} removed, drift {facts['drift']:.4f}, {facts['seconds']:.1f} s",
        flush=True,
    )


def _goes_on(output: Path, follow: Path) -> bool:
    """Whether the output is of an earlier run that followed the same file."""
    from kernelne.embedding import Embedding

    if not output.exists():
        return False
    followed = Embedding.load(output).provenance.get("follow")
    return isinstance(followed, dict) and followed.get("file") == follow.name


def _follow(
    loaded: Embedding,
    network: Graph,
    file: Path,
    output: Path,
    every: str,
    idle: str | None,
    quiet: bool,
    overwrite: bool,
    given: dict[str, Any],
    how: dict[str, Any],
) -> None:
    """Write the vectors after every batch of appended edges."""
    from kernelne.growth.follow import follow_edges

    if not quiet:
        say(f"following {file}; Ctrl-C ends")
    columns = {name: given[name] for name in ("source", "target", "weight", "separator")}
    batches = follow_edges(
        loaded, network, file, every=every, idle=idle, header=bool(given["header"]),
        skip_bad=bool(given["skip_bad"]), columns=columns, **how,
    )  # fmt: skip
    for made in batches:
        made.save(output, overwrite=overwrite)
        overwrite = True
        if not quiet:
            _tell(output, made)


@takes(READING)
def fold_in(
    embedding: EmbeddingArgument,
    edges: Annotated[
        str, typer.Argument(metavar="EDGES", help="File with the links of new nodes to known ones.")
    ],
    output: _Output,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
    **given: Any,
) -> None:
    """Add vectors of new nodes, found from their links to known ones, without training."""
    from kernelne.embedding import Embedding
    from kernelne.growth.update import fold_in as add_nodes
    from kernelne.io.embeddings.registry import check_ids, check_save

    check_files(None, embedding, edges, given["nodes"])
    check_save(output, overwrite)
    loaded = Embedding.load(embedding)
    network = given_graph(edges, given)
    check_ids(network.nodes, output)
    with working():
        made = add_nodes(loaded, network)
    made.save(output, overwrite=overwrite)
    if not quiet:
        print(f"{output}: {len(made):,} nodes × {made.dim}, {len(made) - len(loaded):,} of them new")
