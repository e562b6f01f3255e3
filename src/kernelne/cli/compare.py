"""`kernelne compare`: compare all methods on one graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelne.cli import completion
from kernelne.cli.inputs import check_files, given_graph, own_labels, parse_time, told
from kernelne.cli.options import (
    LABELS,
    LIMITED,
    MODEL,
    GraphArgument,
    JsonOption,
    OverwriteOption,
    OwnLabelsOption,
    QuietOption,
    SeedOption,
    SkipOption,
    takes,
)
from kernelne.cli.output import begin, duration, print_json, print_scores, say, working
from kernelne.errors import ParameterError

if TYPE_CHECKING:
    from kernelne.comparison.results import MethodResult


@takes(LIMITED, LABELS, {name: MODEL[name] for name in ("dim", "n_threads")})
def compare(
    graph: GraphArgument,
    labels: OwnLabelsOption = None,
    links: Annotated[
        bool, typer.Option("--links", help="Score by hidden links, even if there are labels.")
    ] = False,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help="Methods to run, separated by commas, such as mkernelne,prone.",
            show_default="all",
            autocompletion=completion.methods,
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Labels: number of random splits for each training share.")
    ] = 10,
    splits: Annotated[
        int,
        typer.Option(
            "--splits", min=1, help="Links: number of splits; each hides other edges and embeds the rest."
        ),
    ] = 1,
    limit: Annotated[
        str | None,
        typer.Option(
            "--time",
            help="Skip methods that are estimated to take longer, such as 90s, 5m or 1h30m.",
            show_default="none is skipped",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Picture of the scores to write: .png or .svg."),
    ] = None,
    overwrite: OverwriteOption = False,
    random_state: SeedOption = 0,
    skip_unknown: SkipOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Compare all methods on a graph: scores by labels or by hidden links, seconds and memory.

    First prints how long each method will take, estimated from the size of the graph and a short timing.
    """
    if links and labels is not None:
        raise ParameterError("--labels", labels, "labels are not used with --links: give one of the two")
    check_files(output, graph, labels, given["nodes"])
    seconds = None if limit is None else parse_time(limit)
    from kernelne.comparison.compare import METHODS, compare_methods, find_method
    from kernelne.comparison.results import draw_comparison

    chosen = list(METHODS) if methods is None else [find_method(m.strip()) for m in methods.split(",")]
    if output is not None:
        _check_plot(output, overwrite)
    loaded = given_graph(graph, given)
    known = None if links else own_labels(graph, labels, given, loaded, skip_unknown)
    if not quiet:
        say(told(loaded))
        scored_by = "hidden links" if known is None else repr(known).strip("<>")
        say(f"Scored by {scored_by}; methods: {len(chosen)}")
    dim = 128 if given["dim"] is None else given["dim"]

    def tell(result: MethodResult) -> None:
        begin()
        if not quiet:
            _say_row(result)

    with working():
        found = compare_methods(
            loaded, known, methods=chosen, dim=dim, n_repeats=repeats, n_splits=splits, max_seconds=seconds,
            random_state=random_state, n_threads=given["n_threads"], plan=None if quiet else _say_plan,
            progress=tell,
        )  # fmt: skip
    if output is not None and any(result.scores for result in found.results):
        title = f"{Path(graph).name}: {loaded.n_nodes:,} nodes, {loaded.n_edges:,} edges"
        draw_comparison(found, output, title, overwrite)
        say(f"Written: {output}")
    if as_json:
        facts = {"nodes": loaded.n_nodes, "edges": loaded.n_edges, "dim": dim, "seed": random_state}
        print_json(facts | found.to_dict())
    else:
        print_scores(*found.table())
        for result in found.results:
            if result.error:
                print(f"{result.method}: {result.error}")
    if not any(result.scores for result in found.results):
        say("error: no method could be scored")
        raise typer.Exit(1)


def _check_plot(output: Path, overwrite: bool) -> None:
    """Raise an error before the methods run if the plot could not be written."""
    from kernelne.io.files import check_output
    from kernelne.view.figures import new_figure

    if output.suffix.lower() not in (".png", ".svg"):
        raise ParameterError("--output", str(output), "must end in .png or .svg")
    check_output(output, overwrite)
    new_figure(1, 1)


def _say_plan(estimates: dict[str, float | None]) -> None:
    """Print how long the methods will take."""
    told = [f"{name} {'?' if seconds is None else duration(seconds)}" for name, seconds in estimates.items()]
    total = duration(sum(seconds or 0.0 for seconds in estimates.values()))
    say(f"Estimated time of training, scoring not counted: about {total} ({', '.join(told)})")


def _say_row(result: MethodResult) -> None:
    """Print the result of a method that has finished."""
    for warning in result.warnings:
        say(f"warning: {result.method}: {warning}")
    if result.error:
        failed = "" if result.error.startswith("skipped") else "failed: "
        say(f"{result.method:16} {failed}{result.error}")
        return
    from kernelne.comparison.results import measure_label

    *scores, seconds, memory = result.cells(result.scores)[1:]
    told = [f"{measure_label(name)} {score}" for name, score in zip(result.scores, scores, strict=True)]
    choice = [f"{name} {' / '.join(map(str, values))}" for name, values in result.chosen.items()]
    say(f"{result.method:16} " + ", ".join([*told, f"{seconds} s", f"{memory} MiB", *choice]))
