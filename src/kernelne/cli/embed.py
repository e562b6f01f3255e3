"""`kernelne embed` and `kernelne info`: embed a graph, and describe it."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelne.cli.inputs import check_files, given_estimator, given_graph, told
from kernelne.cli.options import (
    MODEL,
    READING,
    GraphArgument,
    JsonOption,
    OverwriteOption,
    QuietOption,
    takes,
)
from kernelne.cli.output import begin, print_facts, print_json, say, tell
from kernelne.errors import KernelneError, OutputError

if TYPE_CHECKING:
    from kernelne.embedding import Embedding


@takes(READING, MODEL)
def embed(
    graph: GraphArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="File to write; the suffix sets the format: .safetensors or .npz (both keep everything), "
            ".parquet, .npy, .csv, .emb or .txt.",
            show_default=False,
        ),
    ],
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
    **given: Any,
) -> None:
    """Embed the nodes of a graph and write the vectors, node ids and provenance to a file."""
    from kernelne.io.embeddings.registry import check_ids, check_save

    estimator = given_estimator(given)
    estimator.config()
    estimator.check_backend()
    check_files(output, graph, given["nodes"])
    check_save(output, overwrite)
    loaded = given_graph(graph, given)
    estimator.set_params(progress=not quiet)
    check_ids(loaded.nodes, output)
    estimator.check(loaded)
    if not quiet:
        say(told(loaded))
    begin()
    estimator.fit(loaded)
    if "kernels" in estimator.chosen_ and not quiet:
        say(f"chosen: {_chosen(estimator.chosen_)}")
    _save(estimator.to_embedding(), output, overwrite)
    if not quiet:
        tell(
            f"{output}: {loaded.n_nodes:,} nodes × {estimator.dim}, {type(estimator).__name__}, "
            f"loss {estimator.loss_:.4f}, seed {estimator.seed_}, {estimator.seconds_:.1f} s"
        )


def _save(embedding: Embedding, output: Path, overwrite: bool) -> None:
    """Save the vectors; if that fails after all, keep what took long to train elsewhere and say where."""
    try:
        embedding.save(output, overwrite=overwrite)
    except (KernelneError, OSError) as error:
        for folder in (tempfile.gettempdir(), os.path.expanduser("~")):
            kept = Path(folder, f"kernelne-{output.stem[:32]}-{secrets.token_hex(4)}.safetensors")
            with suppress(KernelneError, OSError):
                embedding.save(kept)
                raise_from = OutputError(f"{error}; the vectors are kept in {kept}")
                break
        else:
            raise
        raise raise_from from error


def _chosen(choice: dict[str, Any]) -> str:
    """Return the chosen parameters in one line."""
    kernels = ",".join(f"{name}:{sigma:g}" for name, sigma in choice.get("kernels", ()))
    rest = (f"{name} {value}" for name, value in choice.items() if name != "kernels")
    return ", ".join(filter(None, [kernels, *rest]))


@takes(
    READING, {name: MODEL[name] for name in ("model", "dim", "walks_per_node", "walk_length", "n_threads")}
)
def info(graph: GraphArgument, as_json: JsonOption = False, **given: Any) -> None:
    """Print the statistics of a graph, and the memory and time needed to embed it."""
    from kernelne.training.summary import summarise

    estimator = given_estimator(given)
    estimator.config()
    loaded = given_graph(graph, given)
    if not as_json:
        say(told(loaded))
    begin()
    (print_json if as_json else print_facts)(summarise(loaded, estimator))
