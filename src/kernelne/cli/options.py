"""The options that commands share, by the name of the parameter they set."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from kernelne.cli import completion
from kernelne.cli.completion import one_of

Function = TypeVar("Function", bound=Callable[..., None])
Options = dict[str, Any]


def _option(
    panel: str,
    kind: Any,
    *names: str,
    help: str,
    default: Any = None,
    complete: completion.Completion | None = None,
) -> Any:
    """An option that is None, or False for a flag, unless it is given; `default` is what the help says."""
    shown = False if default is None else str(default)
    return Annotated[
        kind,
        typer.Option(*names, help=help, rich_help_panel=panel, show_default=shown, autocompletion=complete),
    ]


_reading = partial(_option, "Reading the graph")
READING: Options = {
    "nodes": _reading(
        Path | None, "--nodes", help="File of node ids, one a line: brings in nodes without edges."
    ),
    "directed": _reading(
        bool | None,
        "--directed/--undirected",
        help="Edges go from the first column to the second.",
        default="as the file says, else undirected",
    ),
    "weighted": _reading(
        bool | None,
        "--weighted/--unweighted",
        help="Third column is the weight, or is ignored.",
        default="weighted if there",
    ),
    "header": _reading(
        bool | None,
        "--header/--no-header",
        help="Does the file start with column names?",
        default="found out",
    ),
    "separator": _reading(
        str | None,
        "--separator",
        help="Between columns: a character, or its name (tab, comma …).",
        default="found out",
    ),
    "drop_self_loops": _reading(bool, "--drop-self-loops", help="Leave out edges from a node to itself."),
    "format": _reading(
        str | None,
        "--format",
        help="Format of the file, a suffix without its dot: edges, csv, graphml, mtx …",
        default="by the suffix",
    ),
    "skip_bad": _reading(
        bool, "--skip-bad", help="Edge list: leave out lines that are no edges, and tell how many."
    ),
}
#: How a graph is read to predict links in it.
UNDIRECTED = READING | {
    "directed": _reading(
        bool | None,
        "--directed/--undirected",
        help="Edges go from the first column to the second: it counts for walks; links are predicted without "
        "regard to direction.",
        default="as the file says, else undirected",
    )
}
_labels = partial(_option, "Reading the labels")
LABELS: Options = {
    "labels_header": _labels(
        bool | None,
        "--labels-header/--no-labels-header",
        help="Does the file of labels start with column names?",
        default="found out",
    ),
    "labels_separator": _labels(
        str | None,
        "--labels-separator",
        help="Between node and labels: a character, or its name (tab, comma …).",
        default="found out",
    ),
}

_model = partial(_option, "Model")
_walks = partial(_option, "Walks")
_training = partial(_option, "Training")
MODEL: Options = {
    "model": _model(
        str | None,
        "--model",
        help="mkernelne or kernelne.",
        default="mkernelne",
        complete=one_of("mkernelne", "kernelne"),
    ),
    "kernels": _model(
        str | None,
        "--kernels",
        help="mkernelne: NAME:SIGMA,NAME:SIGMA,…; auto chooses them, and what is not given, by the graph.",
        default="auto",
        complete=one_of("auto"),
    ),
    "kernel": _model(
        str | None,
        "--kernel",
        help="kernelne: gaussian, schoenberg or inverse_multiquadric.",
        default="gaussian",
        complete=one_of(*completion.KERNELS),
    ),
    "sigma": _model(float | None, "--sigma", help="kernelne: bandwidth.", default=2.0),
    "dim": _model(int | None, "--dim", "-d", help="Columns of the embedding.", default=128),
    "l2": _model(float | None, "--l2", help="Decay of the vectors.", default="chosen, or 0.01"),
    "coef_l2": _model(float | None, "--coef-l2", help="mkernelne: decay of the coefficients.", default=0.02),
    "coef_spread": _model(
        float | None,
        "--coef-spread",
        help="mkernelne: pull of the coefficients towards each other.",
        default=1.5,
    ),
    "vectors": _model(
        str | None,
        "--vectors",
        help="What is written: center, sum, smooth or concat.",
        default="smooth, or center",
        complete=one_of(*completion.VECTORS),
    ),
    "norm": _model(
        str | None,
        "--norm",
        help='Mean length of the vectors; "trained" leaves them as trained.',
        default="chosen, or as trained",
    ),
    "walks_per_node": _walks(
        int | None, "--walks-per-node", help="Walks that start at each node.", default="170, or 80"
    ),
    "walk_length": _walks(int | None, "--walk-length", help="Nodes of a walk.", default=10),
    "window": _walks(
        int | None, "--window", help="Steps between a node and its contexts, at most.", default=10
    ),
    "p": _walks(float | None, "-p", "--p", help="node2vec: higher returns less.", default=1.0),
    "q": _walks(float | None, "-q", "--q", help="node2vec: higher stays nearer.", default=1.0),
    "n_negative": _training(
        int | None, "--n-negative", help="Random nodes each pair is weighed against.", default=5
    ),
    "shared_negatives": _training(
        int | None, "--shared-negatives", help="Random nodes drawn for a walk.", default=14
    ),
    "learning_rate": _training(float | None, "--learning-rate", help="At the start.", default=0.025),
    "min_learning_rate": _training(float | None, "--min-learning-rate", help="At the end.", default=0.0001),
    "backend": _training(
        str | None,
        "--backend",
        help=r"cpu, or gpu (needs kernelne\[gpu]).",
        default="cpu",
        complete=one_of(*completion.BACKENDS),
    ),
    "n_threads": _training(int | None, "--n-threads", "-j", help="Threads.", default="all cores"),
    "deterministic": _training(
        bool | None, "--deterministic", help="The same bits for the same seed on any number of threads."
    ),
    "random_state": _training(
        int | None,
        "--random-state",
        "--seed",
        help="Seed; repeats on one thread, or with --deterministic.",
        default="a new one",
    ),
}

GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="Edge list (.txt .tsv .csv .edges …) .graphml .gml .net .mtx .metis .adjlist, also .gz or .zst; "
        ".mat .parquet .arrow .feather; - is standard input; or the name of a dataset.",
        show_default=False,
        autocompletion=completion.graph_or_labels,
    ),
]
EmbeddingArgument = Annotated[
    Path,
    typer.Argument(metavar="EMBEDDING", help="File that `kernelne embed` wrote.", show_default=False),
]
LABELS_HELP = "Lines of a node and its label, commas between several labels; or the name of a dataset."
LabelsOption = Annotated[
    str | None,
    typer.Option("--labels", metavar="LABELS", help=LABELS_HELP, autocompletion=completion.graph_or_labels),
]
#: Labels where the graph may be a dataset that has some.
OwnLabelsOption = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="LABELS",
        help=LABELS_HELP,
        show_default="those of the dataset, if GRAPH is one",
        autocompletion=completion.graph_or_labels,
    ),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress, nothing but results.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
SkipOption = Annotated[
    bool, typer.Option("--skip-unknown", help="Leave out labels of nodes that are not there.")
]
SeedOption = Annotated[
    int,
    typer.Option("--random-state", "--seed", metavar="SEED", min=0, max=2**32 - 1, help="Of what is drawn."),
]

# Those of parameters that the library, too, knows by these names; p and q are also names in random graphs.
_SHARED = {*READING, *MODEL} - {"p", "q"}
_SHARED |= {"test_share", "non_edges", "n_clusters", "methods", "metric", "layout", "n_nearest"}


def option_of(parameter: str) -> str:
    """The option that sets a parameter of the library; where there is none, the parameter."""
    return "--" + parameter.replace("_", "-") if parameter in _SHARED else parameter


def default_of(option: Any) -> bool | None:
    """What a command gets when a shared option is not given."""
    return False if option.__origin__ is bool else None


def takes(*groups: Options) -> Callable[[Function], Function]:
    """Give a command whose last parameter is `**given` these options; it finds them in `given` by name."""

    def add(function: Function) -> Function:
        signature = inspect.signature(function, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        shared = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=annotation,
                default=default_of(annotation),
            )
            for group in groups
            for name, annotation in group.items()
        ]
        function.__signature__ = signature.replace(parameters=own + shared)  # type: ignore[attr-defined]
        return function

    return add
