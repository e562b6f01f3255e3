"""The `kernelne` command: options in, functions called, exit codes that scripts can trust.

0 done · 1 failed after the work had begun · 2 something given was wrong, nothing was done · 130 Ctrl-C
"""

from __future__ import annotations

import io
import json
import signal
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelne._version import __version__
from kernelne.errors import KernelneError, ParameterError

app = typer.Typer(
    name="kernelne",
    help="Node embeddings by kernel factorisation of random walks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_INTERRUPTED = 128 + signal.SIGINT

# Typer brings its own copy of click or needs the package, by version: the class is found either way.
_UsageError: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

_GRAPH = typer.Argument(
    metavar="GRAPH",
    help="Edge list: .txt .tsv .csv .edges .edgelist, plain, .gz or .zst.",
    show_default=False,
)
_READING, _MODEL, _WALKS, _TRAINING = "Reading the graph", "Model", "Walks", "Training"


class _State:
    """Whether work that takes time has begun: from then on a failure exits with 1 instead of 2."""

    begun = False


def _option(*names: str, help: str, panel: str | None = None, default: Any = None) -> Any:
    shown = default is not None
    return typer.Option(
        *names, help=help, rich_help_panel=panel, show_default=str(default) if shown else False
    )


NodesOption = Annotated[
    Path | None,
    _option("--nodes", help="File of node ids, one a line: brings in nodes without edges.", panel=_READING),
]
DirectedOption = Annotated[
    bool, _option("--directed", help="Edges go from the first column to the second.", panel=_READING)
]
WeightedOption = Annotated[
    bool | None,
    _option(
        "--weighted/--unweighted",
        help="Third column is the weight, or is ignored.",
        panel=_READING,
        default="weighted if there",
    ),
]
HeaderOption = Annotated[
    bool | None,
    _option(
        "--header/--no-header",
        help="Does the file start with column names?",
        panel=_READING,
        default="found out",
    ),
]
SeparatorOption = Annotated[
    str | None,
    _option(
        "--separator",
        help="Between columns: a character, or its name (tab, comma …).",
        panel=_READING,
        default="found out",
    ),
]
LoopsOption = Annotated[
    bool, _option("--drop-self-loops", help="Leave out edges from a node to itself.", panel=_READING)
]
ModelOption = Annotated[
    str, _option("--model", help="mkernelne or kernelne.", panel=_MODEL, default="mkernelne")
]
KernelsOption = Annotated[
    str | None,
    _option(
        "--kernels",
        help="mkernelne: NAME:SIGMA,NAME:SIGMA,…",
        panel=_MODEL,
        default="gaussian:1,gaussian:2,gaussian:3",
    ),
]
KernelOption = Annotated[
    str | None,
    _option(
        "--kernel",
        help="kernelne: gaussian, schoenberg or inverse_multiquadric.",
        panel=_MODEL,
        default="gaussian",
    ),
]
SigmaOption = Annotated[
    float | None, _option("--sigma", help="kernelne: bandwidth.", panel=_MODEL, default=2.0)
]
DimOption = Annotated[
    int | None, _option("--dim", "-d", help="Columns of the embedding.", panel=_MODEL, default=128)
]
L2Option = Annotated[float | None, _option("--l2", help="Decay of the vectors.", panel=_MODEL, default=0.01)]
CoefL2Option = Annotated[
    float | None,
    _option("--coef-l2", help="mkernelne: decay of the coefficients.", panel=_MODEL, default=0.02),
]
CoefSpreadOption = Annotated[
    float | None,
    _option(
        "--coef-spread",
        help="mkernelne: pull of the coefficients towards each other.",
        panel=_MODEL,
        default=1.5,
    ),
]
WalksOption = Annotated[
    int | None, _option("--walks-per-node", help="Walks that start at each node.", panel=_WALKS, default=80)
]
LengthOption = Annotated[
    int | None, _option("--walk-length", help="Nodes of a walk.", panel=_WALKS, default=10)
]
WindowOption = Annotated[
    int | None,
    _option("--window", help="Steps between a node and its contexts, at most.", panel=_WALKS, default=10),
]
POption = Annotated[
    float | None, _option("-p", "--p", help="node2vec: higher returns less.", panel=_WALKS, default=1.0)
]
QOption = Annotated[
    float | None, _option("-q", "--q", help="node2vec: higher stays nearer.", panel=_WALKS, default=1.0)
]
NegativeOption = Annotated[
    int | None,
    _option("--n-negative", help="Random nodes each pair is weighed against.", panel=_TRAINING, default=5),
]
SharedOption = Annotated[
    int | None,
    _option("--shared-negatives", help="Random nodes drawn for a walk.", panel=_TRAINING, default=14),
]
RateOption = Annotated[
    float | None, _option("--learning-rate", help="At the start.", panel=_TRAINING, default=0.025)
]
MinRateOption = Annotated[
    float | None, _option("--min-learning-rate", help="At the end.", panel=_TRAINING, default=0.0001)
]
ThreadsOption = Annotated[
    int | None, _option("--n-threads", "-j", help="Threads.", panel=_TRAINING, default="all cores")
]
DeterministicOption = Annotated[
    bool | None,
    _option(
        "--deterministic", help="The same bits for the same seed on any number of threads.", panel=_TRAINING
    ),
]
SeedOption = Annotated[
    int | None,
    _option(
        "--random-state",
        "--seed",
        help="Seed; repeats on one thread, or with --deterministic.",
        panel=_TRAINING,
        default="a new one",
    ),
]
OutputOption = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Where to write: .safetensors (everything) .npz .parquet .npy .csv .emb .txt",
        show_default=False,
    ),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"kernelne {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Node embeddings by kernel factorisation of random walks."""


@app.command()
def embed(
    graph: Annotated[Path, _GRAPH],
    output: OutputOption,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
    nodes: NodesOption = None,
    directed: DirectedOption = False,
    weighted: WeightedOption = None,
    header: HeaderOption = None,
    separator: SeparatorOption = None,
    drop_self_loops: LoopsOption = False,
    model: ModelOption = "mkernelne",
    kernels: KernelsOption = None,
    kernel: KernelOption = None,
    sigma: SigmaOption = None,
    dim: DimOption = None,
    l2: L2Option = None,
    coef_l2: CoefL2Option = None,
    coef_spread: CoefSpreadOption = None,
    walks_per_node: WalksOption = None,
    walk_length: LengthOption = None,
    window: WindowOption = None,
    p: POption = None,
    q: QOption = None,
    n_negative: NegativeOption = None,
    shared_negatives: SharedOption = None,
    learning_rate: RateOption = None,
    min_learning_rate: MinRateOption = None,
    n_threads: ThreadsOption = None,
    deterministic: DeterministicOption = None,
    random_state: SeedOption = None,
) -> None:
    """Embed the nodes of a graph and write the vectors, node ids and provenance to a file."""
    given = dict(locals())
    from kernelne._inputs import check_input
    from kernelne.embedding import check_ids, check_save
    from kernelne.io import read_graph

    estimator = _estimator(given)
    estimator.config()
    for path in (graph, nodes):
        if path is not None:
            check_input(path)
            if output.exists() and output.samefile(path):
                raise ParameterError("--output", str(output), "is the input; give another name")
    check_save(output, overwrite)
    loaded = read_graph(
        graph, directed=directed, header=header, weighted=weighted, nodes=nodes, separator=separator,
        drop_self_loops=drop_self_loops,
    )  # fmt: skip
    estimator.set_params(progress=not quiet)
    check_ids(loaded.nodes, output)
    estimator.check(loaded)
    if not quiet:
        _say(_told(loaded))
    _State.begun = True
    estimator.fit(loaded)
    estimator.to_embedding().save(output, overwrite=overwrite)
    if not quiet:
        print(
            f"{output}: {loaded.n_nodes:,} nodes × {estimator.dim}, {type(estimator).__name__}, "
            f"loss {estimator.loss_:.4f}, seed {estimator.seed_}, {estimator.seconds_:.1f} s"
        )


def _told(graph: Any) -> str:
    """What was read, in a line that shows a header or a separator gone wrong."""
    row = int((graph.degrees > 0).argmax())
    first = ""
    if graph.neighbours.size:
        first = f", such as {graph.nodes[row]} – {graph.nodes[graph.neighbours[graph.offsets[row]]]}"
    return repr(graph).strip("<>") + first


def _estimator(given: dict[str, Any]) -> Any:
    """The model asked for, with the parameters that were given."""
    from kernelne.estimators import KernelNE, MKernelNE

    models = {"mkernelne": MKernelNE, "kernelne": KernelNE}
    if given["model"] not in models:
        raise ParameterError("--model", given["model"], f"known are {', '.join(models)}")
    estimator = models[given["model"]]()
    known = estimator.get_params()
    own = {name for cls in models.values() for name in cls().get_params()}
    chosen = {name: value for name, value in given.items() if name in own and value is not None}
    for name in chosen:
        if name not in known:
            other = next(m for m in models if m != given["model"])
            option = "--" + name.replace("_", "-")
            raise ParameterError(option, chosen[name], f"belongs to --model {other}, not to {given['model']}")
    if "kernels" in chosen:
        chosen["kernels"] = _parse_kernels(chosen["kernels"])
    return estimator.set_params(**chosen)


def _parse_kernels(text: str) -> list[tuple[str, float]]:
    """gaussian:1,schoenberg:2 → [("gaussian", 1.0), ("schoenberg", 2.0)]."""
    pairs = []
    for part in text.split(","):
        name, _, sigma = part.strip().partition(":")
        try:
            pairs.append((name, float(sigma)))
        except ValueError:
            raise ParameterError(
                "--kernels", text, "write NAME:SIGMA,NAME:SIGMA, as gaussian:1,schoenberg:2"
            ) from None
    return pairs


@app.command()
def info(
    graph: Annotated[Path, _GRAPH],
    as_json: JsonOption = False,
    nodes: NodesOption = None,
    directed: DirectedOption = False,
    weighted: WeightedOption = None,
    header: HeaderOption = None,
    separator: SeparatorOption = None,
    drop_self_loops: LoopsOption = False,
    model: ModelOption = "mkernelne",
    dim: DimOption = None,
    walks_per_node: WalksOption = None,
    walk_length: LengthOption = None,
    n_threads: ThreadsOption = None,
) -> None:
    """Say what a graph is like, and the memory and time that embedding it would take."""
    config = _estimator(dict(locals())).config()
    from kernelne.io import read_graph
    from kernelne.summary import summarise

    loaded = read_graph(
        graph, directed=directed, header=header, weighted=weighted, nodes=nodes, separator=separator,
        drop_self_loops=drop_self_loops,
    )  # fmt: skip
    if not as_json:
        _say(_told(loaded))
    _State.begun = True
    facts = summarise(loaded, config)
    if as_json:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        if isinstance(value, bool):
            value = "yes" if value else "no"
        shown = value if isinstance(value, str) else f"{value:,}"
        print(f"{name.replace('_', ' '):22} {shown}")


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the files go.")
    ] = Path("demo"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files of an earlier demo.")] = False,
) -> None:
    """Embed a real graph that comes along (1,797 handwritten digits), score it and draw it."""
    from kernelne.demo import run_demo

    run_demo(output, overwrite, begin=lambda: setattr(_State, "begun", True))


def _say(line: str) -> None:
    """A line on standard error, where there is one."""
    if sys.stderr is not None:
        print(line, file=sys.stderr)


def _stop(signum: int, frame: Any) -> None:
    raise SystemExit(128 + signum)


def _show_warning(message: Warning | str, *rest: Any, **more: Any) -> None:
    _say(f"warning: {message}")


def _run(args: list[str] | None) -> int:
    """Run the command; print what went wrong in one line; the exit code."""
    try:
        code = app(args, standalone_mode=False)
        if code != _INTERRUPTED:  # Typer turns Ctrl-C into a code, or raises it, by version
            return code if isinstance(code, int) else 0
    except typer.Exit as exit_:
        return exit_.exit_code
    except _UsageError as error:
        if not error.format_message():  # type: ignore[attr-defined]
            return 2  # no arguments at all: the help has been shown
        _say(f"error: {error.format_message()} (see --help)")  # type: ignore[attr-defined]
        return 2
    except (KeyboardInterrupt, typer.Abort):
        pass
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except (KernelneError, OSError, MemoryError) as error:
        reason = str(error) or type(error).__name__
        if isinstance(error, OSError) and error.filename is not None:
            reason = f"{error.filename}: {error.strerror}"
        _say(f"error: {' '.join(reason.split())}")
        return 1 if _State.begun else 2
    _say("interrupted: nothing was written")
    return _INTERRUPTED


def main(args: list[str] | None = None) -> int:
    """The console script: the exit code of `args` (default: those of the process)."""
    _State.begun = False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that a terminal cannot show is no failure
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _show_warning
            return _run(args)
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main())
