"""`kernelne tune`: search for the best parameters for a graph."""

from __future__ import annotations

import json
import math
import re
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelne.cli.inputs import check_files, given_graph, own_labels, parse_time, told
from kernelne.cli.options import (
    LABELS,
    LIMITED,
    MODEL,
    READING,
    GraphArgument,
    JsonOption,
    OverwriteOption,
    OwnLabelsOption,
    QuietOption,
    SeedOption,
    SkipOption,
    default_of,
    takes,
)
from kernelne.cli.output import begin, duration, print_json, print_table, say, working
from kernelne.cli.signals import answered
from kernelne.errors import InputError, ParameterError

#: Options that fix a parameter, which is then not searched.
_FIXED = {
    name: MODEL[name] for name in ("dim", "window", "p", "q", "walks_per_node", "walk_length", "n_threads")
}
#: The negative form of options that are yes or no.
_OFF = {
    "bipartite": "--no-bipartite",
    "directed": "--undirected",
    "weighted": "--unweighted",
    "header": "--no-header",
}


@takes(LIMITED, LABELS, _FIXED)
def tune(
    graph: GraphArgument,
    labels: OwnLabelsOption = None,
    links: Annotated[
        bool, typer.Option("--links", help="Score by hidden links, even if there are labels.")
    ] = False,
    limit: Annotated[
        str | None,
        typer.Option("--time", help="Time limit of the search, such as 90s, 5m or 1h30m.", show_default="5m"),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            min=1,
            help="Maximum number of embeddings to train.",
            show_default="limited by --time only",
        ),
    ] = None,
    train_size: Annotated[
        float,
        typer.Option("--train-size", help="Labels: share of the labelled nodes to train on, in percent."),
    ] = 50.0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="File to write with all trials: .json."),
    ] = None,
    overwrite: OverwriteOption = False,
    random_state: SeedOption = 0,
    skip_unknown: SkipOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Search for the parameters that predict the labels or the links of a graph best.

    Parameters given as options are not searched. A fifth of the labels or links is held out, and only the
    default and the best parameters are tested on it. Ctrl-C ends the search and keeps the best so far.
    """
    from kernelne.io.files import check_output
    from kernelne.tuning import Trial, tune_embedding

    if links and labels is not None:
        raise ParameterError("--labels", labels, "labels are not used with --links: give one of the two")
    seconds = None if limit is None else parse_time(limit)
    if not 0 < train_size < 100:
        raise ParameterError("--train-size", train_size, "must be a percentage above 0 and below 100")
    check_files(output, graph, labels, given["nodes"])
    if output is not None:
        if output.suffix.lower() != ".json":
            raise ParameterError("--output", str(output), "must end in .json")
        check_output(output, overwrite)
    loaded = given_graph(graph, given)
    known = None if links else own_labels(graph, labels, given, loaded, skip_unknown)
    if known is None and not links:
        raise InputError("there is nothing to score by: give --labels, or --links to predict hidden links")
    if not quiet:
        say(told(loaded))
    fixed = {name: given[name] for name in _FIXED if given[name] is not None}

    def tell(trial: Trial, best: Trial, left: float) -> None:
        begin()
        if not quiet:
            say(_line(trial, best, left))

    with working():
        found = tune_embedding(
            loaded, known, n_trials=trials, seconds=seconds, train_size=train_size / 100, fixed=fixed,
            random_state=random_state, progress=tell, training_progress=False if quiet else None,
        )  # fmt: skip
    if found.interrupted:
        answered()
        say("interrupted: this is the best so far")
    command = embed_command(graph, given, found.estimator())
    facts = found.to_dict() | {"command": command}
    if output is not None:
        from kernelne.io.files import atomic_output

        with atomic_output(output, overwrite) as temporary:
            temporary.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    if as_json:
        print_json(facts)
        return
    columns, rows = found.table()
    print_table(columns[:-1], [row[:-1] for row in rows])
    print(command)


def embed_command(graph: str, given: dict[str, Any], estimator: Any) -> str:
    """Return the command, quoted for a shell, that reads a graph as in `given` and embeds it."""
    options = [f"--output={_stem(graph)}.safetensors"]
    options += [_option(n, given[n]) for n, kind in READING.items() if given[n] != default_of(kind)]
    if type(estimator).__name__ == "KernelNE":
        options.append("--model=kernelne")
    plain = type(estimator)().get_params()
    options += [_option(n, v) for n, v in estimator.get_params().items() if n in MODEL and v != plain[n]]
    # A name that starts with a dash must not be taken for an option.
    names = [*options, "--", graph] if graph.startswith("-") else [graph, *options]
    return shlex.join(["kernelne", "embed", *names])


def _option(name: str, value: Any) -> str:
    """Return an option of `kernelne embed` and its value as one word."""
    if value is False:
        return _OFF[name]
    option = "--" + name.replace("_", "-")
    if value is True:
        return option
    if name == "kernels":
        value = ",".join(f"{kernel}:{sigma}" for kernel, sigma in value)
    return f"{option}={value}"


def _stem(graph: str) -> str:
    """Return the name of the graph without folder, suffixes and parameters."""
    name = Path(graph).name.partition(":")[0].partition(".")[0]
    return re.sub(r"[^\w-]", "_", name) or "vectors"


def _line(trial: Any, best: Any, left: float) -> str:
    """Describe a trial in one line."""
    score = f"failed: {trial.error}" if trial.score is None else f"{trial.score:.4f}"
    eta = "" if math.isnan(left) else f", about {duration(left)} left"
    return f"trial {trial.number + 1}: {score} (best {best.score:.4f}{eta})  {trial}"
