"""`kernelne embed` and `kernelne info`: embed a graph, and describe it."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelne.cli.inputs import check_files, given_estimator, given_graph, told
from kernelne.cli.options import (
    ENGINE,
    MODEL,
    READING,
    GraphArgument,
    JsonOption,
    OverwriteOption,
    QuietOption,
    takes,
)
from kernelne.cli.output import Run, begin, can_ask, confirmed, print_facts, print_json, say, tell
from kernelne.errors import InputError, KernelneError, OutputError, ParameterError

if TYPE_CHECKING:
    from kernelne.embedding import Embedding
    from kernelne.training.checkpoint import Checkpoint

_STOPPING = "Stopping and going on"


@takes(READING, MODEL, ENGINE)
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
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="Folder in which the state of the training is kept until OUT is written.",
            rich_help_panel=_STOPPING,
        ),
    ] = None,
    checkpoint_every: Annotated[
        str,
        typer.Option("--checkpoint-every", help="Time between two checkpoints.", rich_help_panel=_STOPPING),
    ] = "5min",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue the training kept in --checkpoint, if there is one.",
            rich_help_panel=_STOPPING,
        ),
    ] = False,
    keep_partial: Annotated[
        bool,
        typer.Option(
            "--keep-partial",
            help="If Ctrl-C ends the training, write the vectors as they are; else a terminal asks.",
            rich_help_panel=_STOPPING,
        ),
    ] = False,
    quiet: QuietOption = False,
    **given: Any,
) -> None:
    """Embed the nodes of a graph and write the vectors, node ids and provenance to a file.

    With --checkpoint a training that was stopped, by Ctrl-C, a crash or a reboot, continues with --resume.
    """
    from kernelne.io.embeddings.registry import check_ids, check_save
    from kernelne.training.checkpoint import Interrupted

    estimator = given_estimator(given)
    asks = checkpoint is None and not keep_partial and can_ask()
    kept = _check_kept(estimator, checkpoint, checkpoint_every, resume, keep_partial or asks)
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
        if any(given[name] is not None for name in ENGINE):
            say(f"Training {estimator.plan(loaded).told}")
    begin()
    try:
        estimator.fit(loaded)
    except Interrupted as stop:
        told_to = shlex.join([*sys.argv[1:], *["--resume"] * (not resume)])
        say(f"{stop}, kept in {stop.folder}; to continue: kernelne {told_to}")
        Run.stopped_by = stop.signum
        return
    stopped = estimator.stopped
    offer = f"write the vectors as they are to {output}?"
    if stopped is not None and asks and not confirmed(f"{stopped}: {offer}"):
        say("interrupted: nothing was written")
        Run.stopped_by = stopped.signum
        return
    embedding = estimator.to_embedding()
    if "kernels" in estimator.chosen_ and not quiet:
        say(f"chosen: {_chosen(estimator.chosen_)}")
    _save(embedding, output, overwrite)
    if kept is not None and stopped is None:
        kept.remove()
    if not quiet:
        tell(
            f"{output}: {loaded.n_nodes:,} nodes × {estimator.dim}, {type(estimator).__name__}, "
            f"loss {estimator.loss_:.4f}, seed {estimator.seed_}, {estimator.seconds_:.1f} s"
        )
    if stopped is not None:
        say(f"interrupted after {stopped.done:.0%} of the walks: {output} holds the vectors as they were")
        Run.stopped_by = stopped.signum


def _check_kept(
    estimator: Any, folder: Path | None, every: str, resume: bool, keep_partial: bool
) -> Checkpoint | None:
    """Set what is kept of a training, and refuse to replace one that has not ended."""
    from kernelne.training.checkpoint import Checkpoint

    estimator.keeps_partial = keep_partial
    if folder is None:
        if resume:
            raise ParameterError("--resume", True, "needs --checkpoint DIR, the folder to continue from")
        return None
    estimator.set_params(checkpoint=folder, checkpoint_every=every)
    kept = Checkpoint.at(folder, every, type(estimator).__name__)
    if not resume and kept.files():
        raise InputError(f"{folder} holds a training that has not ended: --resume continues it; or remove it")
    return kept


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
    READING,
    {name: MODEL[name] for name in ("model", "dim", "walks_per_node", "walk_length", "n_threads")},
    {name: ENGINE[name] for name in ("memory", "engine", "parts")},
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
