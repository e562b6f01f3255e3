"""Compare methods on one graph by score, time and memory, each method in its own process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kernelne import baselines
from kernelne._checks import check_count, check_seed, encode_labels
from kernelne._html import html_table
from kernelne.comparison.worker import LabelTask, LinkTask, Order, Scores, describe_estimator
from kernelne.errors import InputError, ParameterError
from kernelne.estimators import KernelNE, MKernelNE
from kernelne.evaluation.classification import classify_nodes
from kernelne.evaluation.link_splits import split_links
from kernelne.evaluation.links import control_scores, rank_scores
from kernelne.graph import Graph, as_graph
from kernelne.io.files import atomic_output
from kernelne.io.labels import Labels, by_id
from kernelne.view.figures import new_figure

#: The methods by name: the default, the paper's four models, the model without a kernel, the baselines.
METHODS: dict[str, Callable[..., Any]] = {
    "MKernelNE": MKernelNE,
    "KernelNE-Gauss": lambda **settings: KernelNE.paper("gaussian", **settings),
    "KernelNE-Sch": lambda **settings: KernelNE.paper("schoenberg", **settings),
    "MKernelNE-Gauss": lambda **settings: MKernelNE.paper("gaussian", **settings),
    "MKernelNE-Sch": lambda **settings: MKernelNE.paper("schoenberg", **settings),
    "WeightedMF": baselines.WeightedMF,
    "DeepWalk": baselines.DeepWalk,
    "Node2Vec": baselines.Node2Vec,
    "LINE": baselines.LINE,
    "HOPE": baselines.HOPE,
    "NetMF": baselines.NetMF,
    "VERSE": baselines.VERSE,
    "ProNE": baselines.ProNE,
    "GEMSEC": baselines.GEMSEC,
    "MNMF": baselines.MNMF,
}
#: Parameters for which the KernelNE paper takes the best value; the first is used if labels cannot decide.
_CHOICES = {
    "GEMSEC": ("n_clusters", (25, 5, 10, 15, 50, 75, 100)),
    "MNMF": ("n_communities", (20, 5, 15, 25, 50, 75, 100)),
}
_CONTROLS = {
    "degree_product": "degree product",
    "common_neighbours": "common neighbours",
    "adamic_adar": "Adamic–Adar",
}
_MEASURES = {
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "auc": "AUC",
    "average_precision": "average precision",
}
#: Ctrl-C reaches all processes of a terminal; only the parent process must act on it.
_CHILD = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = sys.argv[1:]; "
    "from kernelne.comparison.worker import serve; serve()"
)


def measure_label(measure: str) -> str:
    """Return the display name of a score: "micro-F1 10 %" for micro_f1_10."""
    base, _, share = measure.rpartition("_")
    return f"{_MEASURES[base]} {share} %" if base in _MEASURES else _MEASURES[measure]


@dataclass(frozen=True)
class MethodResult:
    """Scores, time and memory of one method.

    Attributes
    ----------
    method: name of the method.
    scores: for each measure, the score of each split; empty if the method failed.
    seconds: time of `fit`; if a parameter was chosen, of all fits and the validation; None for a control.
    peak_bytes: peak memory of the process during `fit`; None if unknown.
    error: the reason why there are no scores; None if there are.
    chosen: parameters chosen by validation: for each share of training labels, the most frequent choice.
    warnings: messages of the warnings issued.
    """

    method: str
    scores: Scores = field(default_factory=dict)
    seconds: float | None = None
    peak_bytes: int | None = None
    error: str | None = None
    chosen: dict[str, list[int]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def mean(self, measure: str) -> float:
        """Return the mean of a score over the splits; nan if the method failed."""
        return float(np.mean(self.scores[measure])) if self.scores else float("nan")

    def cells(self, measures: Iterable[str]) -> list[str]:
        """Return a row of the table: name, scores, seconds, memory in MiB; "–" for unknown values."""
        scores = [f"{self.mean(measure):.3f}" if self.scores else "–" for measure in measures]
        seconds = "–" if self.seconds is None else f"{self.seconds:.2f}"
        memory = "–" if self.peak_bytes is None else f"{self.peak_bytes / 2**20:,.0f}"
        return [self.method, *scores, seconds, memory]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with means and standard deviations of the scores."""
        found: dict[str, Any] = {"method": self.method}
        for measure, values in self.scores.items():
            found |= {measure: float(np.mean(values)), f"{measure}_sd": float(np.std(values))}
        memory = None if self.peak_bytes is None else round(self.peak_bytes / 2**20, 1)
        found |= {"seconds": self.seconds, "peak_memory_MiB": memory, "chosen": self.chosen}
        return found | {"warnings": list(self.warnings), "error": self.error}


@dataclass(frozen=True)
class Comparison:
    """Results of all methods on one graph; `print` shows a table.

    Attributes
    ----------
    task: "labels" or "links".
    measures: names of the scores; results are sorted by the first.
    results: results of all methods, the best first, failed methods last.
    controls: scores reached without vectors, the best first.
    """

    task: str
    measures: tuple[str, ...]
    results: tuple[MethodResult, ...]
    controls: tuple[MethodResult, ...]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the column names, and a row for each method and control with scores, the best first."""
        columns = ["method", *map(measure_label, self.measures), "seconds", "peak MiB"]
        scored = [result for result in self.results if result.scores]
        ranked = _rank([*scored, *self.controls], self.measures[0])
        return columns, [result.cells(self.measures) for result in ranked]

    def __str__(self) -> str:
        columns, rows = self.table()
        widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
                 for row in (columns, *rows)]  # fmt: skip
        failed = [f"{result.method}: {result.error}" for result in self.results if result.error]
        return "\n".join([*lines, *failed])

    def _repr_html_(self) -> str:
        return html_table(*self.table())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        results = [result.to_dict() for result in self.results]
        controls = [
            {k: v for k, v in c.to_dict().items() if k in {"method", *c.scores}} for c in self.controls
        ]
        return {"task": self.task, "sorted_by": self.measures[0], "results": results, "controls": controls}


def compare_methods(
    graph: Any,
    labels: Any = None,
    *,
    methods: Iterable[str] | Mapping[str, Any] | None = None,
    dim: int = 128,
    train_sizes: Iterable[float] = (0.1, 0.5),
    n_repeats: int = 10,
    test_share: float = 0.5,
    random_state: int = 0,
    n_threads: int | None = None,
    progress: Callable[[MethodResult], Any] | None = None,
) -> Comparison:
    """Run methods on one graph, one after the other, and score their vectors in the same way.

    With labels, the scores are micro- and macro-F1 of `classify_nodes`; without, AUC and average precision
    of hidden edges (`split_links`, `score_links`). Every method runs in a new process, so that its memory is
    measured alone, and a method that fails or runs out of memory does not affect the others. Compilation is
    not timed.

    Parameters
    ----------
    graph: any graph that `fit` accepts.
    labels: Labels, a dict {node: label} or a pandas Series by its index; or one label per node, or an
        indicator matrix, in the order of the graph's nodes.
    methods: names from METHODS, all by default; or a dict {name: estimator}. An estimator is created again
        from its class and `get_params()` and fitted to a graph whose nodes are 0, 1, ... Its class must be in
        a module, not in a script, and its parameters must be None, numbers, strings, or lists or dicts of
        them (a tuple becomes a list).
    dim, random_state, n_threads: parameters of every method given by name.
    train_sizes, n_repeats: as in `classify_nodes`.
    test_share: without labels, the share of the edges that is hidden.
    progress: called with the MethodResult of each method as it finishes.

    With labels, the numbers of clusters of GEMSEC and of communities of MNMF are chosen from the KernelNE
    paper's lists by validation: in every split, on a fifth of the training nodes that is left out of the fit.

    Examples
    --------
    >>> from kernelne import compare_methods, load_dataset
    >>> data = load_dataset("karate")
    >>> found = compare_methods(data.graph, data.labels, methods=["ProNE"], dim=8, train_sizes=[0.5])
    >>> found.results[0].method, found.results[0].mean("micro_f1_50") > 0.8
    ('ProNE', True)
    """
    checked = as_graph(graph)
    check_count("dim", dim)
    check_count("n_threads", 1 if n_threads is None else n_threads)
    settings = {"dim": dim, "random_state": check_seed(random_state), "n_threads": n_threads}
    estimators = _make_estimators(methods, settings)
    task: LabelTask | LinkTask
    if labels is None:
        controls, task = _prepare_links(checked, test_share, settings)
    else:
        controls, task = _prepare_labels(checked, labels, train_sizes, n_repeats, settings)
    results = []
    for name, estimator in estimators.items():
        choose = None if isinstance(methods, Mapping) else _list_choices(name, checked)
        results.append(_run(name, Order(estimator, task, choose)))
        if progress is not None:
            progress(results[-1])
    measures = tuple(controls[0].scores)
    ranked = _rank(results, measures[0]), _rank(controls, measures[0])
    return Comparison("links" if labels is None else "labels", measures, *ranked)


def _rank(results: Iterable[MethodResult], measure: str) -> tuple[MethodResult, ...]:
    """Sort by the mean of a score, the best first, failed methods last."""
    return tuple(sorted(results, key=lambda r: -r.mean(measure) if r.scores else float("inf")))


def find_method(name: str) -> str:
    """Return the name of a method as in METHODS; case is ignored."""
    known = {method.lower(): method for method in METHODS}
    if str(name).lower() not in known:
        raise ParameterError("methods", name, f"known are {', '.join(METHODS)}")
    return known[str(name).lower()]


def _make_estimators(methods: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the estimators to fit, by name; raise ParameterError if a process cannot receive one."""
    if isinstance(methods, Mapping):
        found = dict(methods)
        for name, estimator in found.items():
            describe_estimator(estimator, f"methods[{name!r}]")
    else:
        names = METHODS if methods is None else [methods] if isinstance(methods, str) else methods
        found = {n: METHODS[n](**settings, progress=False) for n in map(find_method, names)}
    if not found:
        raise ParameterError("methods", methods, "give at least one")
    return found


def _list_choices(name: str, graph: Graph) -> tuple[str, tuple[int, ...]] | None:
    """Return the parameter to choose and its values; only the first may exceed the number of nodes."""
    if name not in _CHOICES:
        return None
    parameter, values = _CHOICES[name]
    return parameter, tuple(v for v in values if v <= graph.n_nodes or v == values[0])


def _prepare_labels(
    graph: Graph, labels: Any, train_sizes: Iterable[float], n_repeats: int, settings: dict[str, Any]
) -> tuple[list[MethodResult], LabelTask]:
    """Return the task for labels of the graph's nodes, and the score of guessing the most frequent labels."""
    rows = np.arange(graph.n_nodes)
    labels = by_id(labels, graph.nodes)
    if isinstance(labels, Labels):
        rows, labels = labels.for_nodes(graph.nodes)
        if not len(rows):
            raise InputError("labels: none of the labelled nodes is in the graph")
    seed, n_threads = settings["random_state"], settings["n_threads"]
    guessed = classify_nodes(
        np.zeros((len(rows), 1)), labels, train_sizes=train_sizes, n_repeats=n_repeats, random_state=seed,
        n_threads=n_threads,
    )  # fmt: skip
    truth = labels.toarray() if hasattr(labels, "toarray") else np.asarray(labels)
    truth = encode_labels(truth, len(truth)) if truth.ndim == 1 else truth
    task = LabelTask(graph, rows, truth, guessed.train_sizes, n_repeats, seed, n_threads)
    return [MethodResult("most frequent labels", task.named(guessed))], task


def _prepare_links(
    graph: Graph, test_share: float, settings: dict[str, Any]
) -> tuple[list[MethodResult], LinkTask]:
    """Hide edges of the graph; score them by degrees and by common neighbours as controls."""
    split = split_links(graph, test_share=test_share, random_state=settings["random_state"])
    edges, others = (control_scores(split.graph, p) for p in (split.test_edges, split.test_non_edges))
    controls = []
    for name, shown in _CONTROLS.items():
        found = rank_scores(edges[name], others[name])
        scores = {"auc": [found.auc], "average_precision": [found.average_precision]}
        controls.append(MethodResult(shown, scores))
    return controls, LinkTask(split)


def _run(name: str, order: Order) -> MethodResult:
    """Run the order in a process that always ends with this call."""
    command = [sys.executable, "-P", "-c", _CHILD, *(path for path in sys.path if isinstance(path, str))]
    pipe = subprocess.PIPE
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors) as process:
            try:
                answer = _ask(process, order)
            except BaseException:
                process.kill()
                raise
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    try:
        found = json.loads(answer)
    except ValueError:
        return MethodResult(name, error=_explain_death(process.returncode, said))
    return MethodResult(name, **found | {"warnings": tuple(found["warnings"])})


def _ask(process: subprocess.Popen[bytes], order: Order) -> bytes:
    """Send the order; return the answer, empty if the process ended without one."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):  # the process has ended; its answer or its exit code gives the reason
        order.write(process.stdin)
        process.stdin.flush()
    # Its input stays open until it has answered: if this process is killed, the input closes and it exits.
    answer = process.stdout.read()
    with suppress(BrokenPipeError):
        process.stdin.close()
    return answer


def _explain_death(code: int, said: str) -> str:
    """Return a message on how a process ended that gave no answer."""
    if code < 0:
        short = " (out of memory?)" if code == -9 else ""
        return f"its process was killed by signal {-code}{short}"
    last = said.strip().rpartition("\n")[2]
    return f"its process ended with exit code {code}" + (f": {last}" if last else "")


def draw_comparison(comparison: Comparison, path: Path, title: str = "", overwrite: bool = False) -> None:
    """Draw scores, seconds and memory as bars to a .png or .svg; the file is written whole or not at all."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise ParameterError("path", str(path), "must end in .png or .svg")
    shown = [result for result in reversed(comparison.results) if result.scores]
    figure = new_figure(11, 1.6 + 0.34 * len(shown))
    axes = figure.subplots(1, 3, sharey=True, width_ratios=[2, 1, 1])
    places = np.arange(len(shown))
    measures = [name for name in comparison.measures if name.startswith(("micro", "auc"))]
    height = 0.8 / len(measures)
    for k, measure in enumerate(measures):
        values = [result.mean(measure) for result in shown]
        offset = 0.4 - height * (k + 0.5)
        bars = axes[0].barh(places + offset, values, height, label=measure_label(measure), color=f"C{k}")
        axes[0].bar_label(bars, fmt="%.3f", fontsize=7, padding=2)
        best = max(control.mean(measure) for control in comparison.controls)
        axes[0].axvline(best, color=f"C{k}", linestyle=":", label=f"{measure_label(measure)}, no vectors")
    axes[0].set(yticks=places, yticklabels=[result.method for result in shown], xlim=(0, 1.1))
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    for panel, name, values in (
        (axes[1], "seconds", [result.seconds or 0.0 for result in shown]),
        (axes[2], "peak MiB", [(result.peak_bytes or 0) / 2**20 for result in shown]),
    ):
        bars = panel.barh(places, values, 0.6, color="0.6")
        panel.bar_label(bars, fmt="%.3g" if name == "seconds" else "%.0f", fontsize=7, padding=2)
        panel.set_xlabel(name)
        panel.margins(x=0.25)
    if shown and min(result.seconds or 0.0 for result in shown) > 0:
        axes[1].set_xscale("log")
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title)
    with atomic_output(path, overwrite) as temporary:
        figure.savefig(temporary, format=kind, dpi=120)
