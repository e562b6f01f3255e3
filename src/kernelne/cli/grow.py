"""`kernelne update` and `kernelne fold-in`: vectors of a graph that has changed, in the same space."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
    quiet: QuietOption = False,
    **given: Any,
) -> None:
    """Update the vectors of a graph that has changed, training only around the changes.

    The space stays the same: a classifier or an index made with the old vectors works with the new ones.
    """
    from kernelne.embedding import Embedding
    from kernelne.growth import update_embedding
    from kernelne.io.embeddings.registry import check_ids, check_save

    check_files(None, embedding, graph, given["nodes"])
    check_save(output, overwrite)
    loaded = Embedding.load(embedding)
    network = given_graph(graph, given)
    check_ids(network.nodes, output)
    if not quiet:
        say(told(network))
    with working():
        made = update_embedding(
            loaded,
            network,
            n_threads=given["n_threads"],
            deterministic=bool(given["deterministic"]),
            random_state=given["random_state"],
            progress=not quiet,
        )
    made.save(output, overwrite=overwrite)
    if quiet:
        return
    facts = made.provenance.get("update")
    if made is loaded or not isinstance(facts, dict):
        print(f"{output}: nothing has changed")
        return
    print(
        f"{output}: {len(made):,} nodes × {made.dim}; {facts['new']:,} new, {facts['changed']:,} changed, "
        f"{facts['removed']:,} removed, drift {facts['drift']:.4f}, {facts['seconds']:.1f} s"
    )


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
    from kernelne.growth import fold_in as add_nodes
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
