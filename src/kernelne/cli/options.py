"""Options shared by several commands, by the name of the parameter they set."""

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
    """Return an option whose value is None (a flag: False) unless given; the help shows `default`."""
    shown = False if default is None else str(default)
    return Annotated[
        kind,
        typer.Option(*names, help=help, rich_help_panel=panel, show_default=shown, autocompletion=complete),
    ]


_reading = partial(_option, "Reading the graph")
_TIMES = "Column of times, numbers or dates: walks follow edges in this order, or see --half-life."
READING: Options = {
    "nodes": _reading(
        Path | None, "--nodes", help="File with one node id per line; adds nodes without edges."
    ),
    "directed": _reading(
        bool | None,
        "--directed/--undirected",
        help="Read the edges as directed, from the first column to the second, or as undirected.",
        default="as stated in the file, else undirected",
    ),
    "weighted": _reading(
        bool | None,
        "--weighted/--unweighted",
        help="Use the third column as weights, or ignore it.",
        default="weighted if there is a third column",
    ),
    "header": _reading(
        bool | None,
        "--header/--no-header",
        help="Whether the first line of the file holds column names.",
        default="detected",
    ),
    "separator": _reading(
        str | None,
        "--separator",
        help="Separator of the columns: a character or a name (tab, comma, …).",
        default="detected",
    ),
    "drop_self_loops": _reading(bool, "--drop-self-loops", help="Drop edges from a node to itself."),
    "format": _reading(
        str | None,
        "--format",
        help="Format of the file, written as a suffix without the dot: edges, csv, graphml, mtx, …",
        default="from the suffix",
    ),
    "source": _reading(
        str | None,
        "--source",
        help="Column of the sources, by its name or by its number from 1.",
        default="found by its name",
    ),
    "target": _reading(str | None, "--target", help="Column of the targets.", default="found by its name"),
    "weight": _reading(
        str | None,
        "--weight",
        help="Column of the weights.",
        default="weight, or the only other column",
    ),
    "time": _reading(str | None, "--time", "--time-column", help=_TIMES),
    "half_life": _reading(
        str | None,
        "--half-life",
        help="With times: the age at which an edge weighs half, instead of an order of walks; with a unit, "
        "such as 12h, 30d, 1y, for dates and Unix times, else in the unit of the times.",
    ),
    "bipartite": _reading(
        bool | None,
        "--bipartite/--no-bipartite",
        help="Whether the two columns hold nodes of different kinds: each id gets the name of its column, as "
        "in user_id:5; or equal ids are the same node.",
        default="asked for where users and items have the same numbers",
    ),
    "skip_bad": _reading(
        bool, "--skip-bad", help="Edge lists: skip lines that cannot be read, and print how many there are."
    ),
}
#: Options for reading a graph whose links are predicted.
UNDIRECTED = READING | {
    "directed": _reading(
        bool | None,
        "--directed/--undirected",
        help="Read the edges as directed, from the first column to the second, or as undirected. Only walks "
        "follow the direction; links are predicted without it.",
        default="as stated in the file, else undirected",
    )
}
#: Options of commands whose --time is a limit.
LIMITED = READING | {"time": _reading(str | None, "--time-column", help=_TIMES)}
_labels = partial(_option, "Reading the labels")
LABELS: Options = {
    "labels_header": _labels(
        bool | None,
        "--labels-header/--no-labels-header",
        help="Whether the first line of the labels file holds column names.",
        default="detected",
    ),
    "labels_separator": _labels(
        str | None,
        "--labels-separator",
        help="Separator of node id and labels: a character or a name (tab, comma, …).",
        default="detected",
    ),
    "labels_joint": _labels(
        str | None,
        "--labels-joint",
        help="Separator of several labels of a node: a character or a name; none if each line has one label.",
        default="a comma, or a semicolon where columns are separated by commas",
    ),
    "labels_node": _labels(
        str | None,
        "--labels-node",
        help="Column of the node ids, by its name or by its number from 1.",
        default="the first",
    ),
    "labels_label": _labels(
        str | None, "--labels-label", help="Column of the labels.", default="the second of two columns"
    ),
}

_model = partial(_option, "Model")
_walks = partial(_option, "Walks")
_training = partial(_option, "Training")
MODEL: Options = {
    "model": _model(
        str | None,
        "--model",
        help="mkernelne (a mixture of kernels) or kernelne (one kernel).",
        default="mkernelne",
        complete=one_of("mkernelne", "kernelne"),
    ),
    "kernels": _model(
        str | None,
        "--kernels",
        help="mkernelne: the kernels, as NAME:SIGMA,NAME:SIGMA,…; auto chooses them, and options not given, "
        "by the size of the graph.",
        default="auto",
        complete=one_of("auto"),
    ),
    "kernel": _model(
        str | None,
        "--kernel",
        help="kernelne: the kernel: gaussian, schoenberg or inverse_multiquadric.",
        default="gaussian",
        complete=one_of(*completion.KERNELS),
    ),
    "sigma": _model(float | None, "--sigma", help="kernelne: bandwidth of the kernel.", default=2.0),
    "dim": _model(int | None, "--dim", "-d", help="Number of columns of the embedding.", default=128),
    "l2": _model(
        float | None,
        "--l2",
        help="L2 penalty of the vectors.",
        default="chosen with auto, else 0.01",
    ),
    "coef_l2": _model(
        float | None, "--coef-l2", help="mkernelne: L2 penalty of the coefficients.", default=0.02
    ),
    "coef_spread": _model(
        float | None,
        "--coef-spread",
        help="mkernelne: penalty of the differences between the coefficients; 0 for none.",
        default="chosen with auto, else 1.5",
    ),
    "vectors": _model(
        str | None,
        "--vectors",
        help="How the embedding is made of the center and context tables: center, sum, smooth, joint or "
        "concat.",
        default="joint with auto, else center",
        complete=one_of(*completion.VECTORS),
    ),
    "norm": _model(
        str | None,
        "--norm",
        help="Mean length of the vectors, or trained to leave them as trained.",
        default="chosen with auto, else trained",
    ),
    "walks_per_node": _walks(
        int | None,
        "--walks-per-node",
        help="Number of walks started at each node.",
        default="chosen with auto, else 80",
    ),
    "walk_length": _walks(int | None, "--walk-length", help="Number of nodes in a walk.", default=10),
    "window": _walks(
        int | None, "--window", help="Largest number of steps between a node and its contexts.", default=10
    ),
    "window_decay": _walks(
        float | None,
        "--window-decay",
        help="Weight of a pair relative to that of a pair one step closer; 1 weights all equally.",
        default="chosen with auto, else 1.0",
    ),
    "forward": _walks(
        bool | None,
        "--forward",
        help="Only nodes that come later in a walk are contexts: vectors of a directed graph then tell "
        "where links lead.",
    ),
    "p": _walks(
        float | None,
        "-p",
        "--p",
        help="node2vec return parameter; higher values return less often.",
        default=1.0,
    ),
    "q": _walks(
        float | None, "-q", "--q", help="node2vec in-out parameter; higher values stay nearer.", default=1.0
    ),
    "n_negative": _training(
        int | None,
        "--n-negative",
        help="Number of negatives for each pair.",
        default="chosen with auto, else 5",
    ),
    "shared_negatives": _training(
        int | None,
        "--shared-negatives",
        help="Number of negatives drawn for each walk and shared by its pairs.",
        default="chosen with auto, else 14",
    ),
    "learning_rate": _training(
        float | None,
        "--learning-rate",
        help="Learning rate at the start.",
        default="chosen with auto, else 0.025",
    ),
    "min_learning_rate": _training(
        float | None, "--min-learning-rate", help="Learning rate at the end.", default=0.0001
    ),
    "backend": _training(
        str | None,
        "--backend",
        help=r"Where to train: cpu, or gpu (one NVIDIA GPU; needs kernelne\[gpu]).",
        default="cpu",
        complete=one_of(*completion.BACKENDS),
    ),
    "n_threads": _training(int | None, "--n-threads", "-j", help="Number of threads.", default="all cores"),
    "deterministic": _training(
        bool | None,
        "--deterministic",
        help="Give the same bits for the same seed on any number of threads; slower.",
    ),
    "random_state": _training(
        int | None,
        "--random-state",
        "--seed",
        help="Random seed. The same seed gives the same vectors on one thread, or with --deterministic.",
        default="a new seed for each run",
    ),
}

_large = partial(_option, "Large graphs")
ENGINE: Options = {
    "memory": _large(str | None, "--memory", help="Memory to use, such as 8GB; more is kept on disk."),
    "engine": _large(
        str | None,
        "--engine",
        help=r"Train in parts: in memory, on disk, or on a cluster (ray; needs kernelne\[cluster]).",
        default="not in parts, unless --memory or --parts asks for it",
        complete=one_of(*completion.ENGINES),
    ),
    "parts": _large(int | None, "--parts", help="Number of parts.", default="chosen"),
    "address": _large(
        str | None, "--address", help="Cluster: local (a new one), auto (that of this machine) or HOST:PORT."
    ),
}

GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="File with a graph: an edge list (.txt .tsv .csv .edges …), .graphml .gml .net .mtx .metis "
        ".adjlist, each also with .gz or .zst; .mat .parquet .arrow .feather .kne. - is standard input. Or "
        "the name of a dataset.",
        show_default=False,
        autocompletion=completion.graph_or_labels,
    ),
]
EmbeddingArgument = Annotated[
    Path,
    typer.Argument(
        metavar="EMBEDDING", help="Embedding file, as written by `kernelne embed`.", show_default=False
    ),
]
LABELS_HELP = (
    "File with a node id and its label on each line, several labels separated by commas; "
    "or the name of a dataset."
)
LabelsOption = Annotated[
    str | None,
    typer.Option("--labels", metavar="LABELS", help=LABELS_HELP, autocompletion=completion.graph_or_labels),
]
#: Labels of a graph that may be a dataset with labels of its own.
OwnLabelsOption = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="LABELS",
        help=LABELS_HELP,
        show_default="the labels of GRAPH, if it is a dataset",
        autocompletion=completion.graph_or_labels,
    ),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print results only, no progress.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
SkipOption = Annotated[
    bool, typer.Option("--skip-unknown", help="Ignore labels of nodes that are not there.")
]
SkipIdsOption = Annotated[
    bool, typer.Option("--skip-unknown", help="Leave out ids in files that are not those of nodes.")
]
SeedOption = Annotated[
    int,
    typer.Option("--random-state", "--seed", metavar="SEED", min=0, max=2**32 - 1, help="Random seed."),
]

# Options with the same name as a parameter of the library; p and q are also parameters of random graphs.
_SHARED = {*READING, *MODEL, *ENGINE} - {"p", "q"}
_SHARED |= {"test_share", "non_edges", "n_clusters", "methods", "metric", "layout", "n_nearest"}


def option_of(parameter: str) -> str:
    """Return the option that sets a parameter of the library, or the parameter if there is none."""
    return "--" + parameter.replace("_", "-") if parameter in _SHARED else parameter


def default_of(option: Any) -> bool | None:
    """Return the value of a shared option that is not given."""
    return False if option.__origin__ is bool else None


def takes(*groups: Options) -> Callable[[Function], Function]:
    """Add these options to a command; they are passed by name in its last parameter, `**given`."""

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
