"""Compare methods on one graph by score, time and memory, each method in its own process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from kernelne import baselines
from kernelne._common.checks import check_count, check_number, check_seed, encode_labels
from kernelne.comparison.results import Comparison, MethodResult, rank
from kernelne.comparison.timing import Clock
from kernelne.comparison.worker import LabelTask, LinkTask, Order, describe_estimator
from kernelne.errors import InputError, ParameterError
from kernelne.estimators import KernelNE, MKernelNE
from kernelne.evaluation.classification import classify_nodes
from kernelne.evaluation.link_splits import split_links
from kernelne.evaluation.links import control_scores, rank_scores
from kernelne.graph import Graph, as_graph
from kernelne.io.labels import Labels, by_id

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
#: Ctrl-C reaches all processes of a terminal; only the parent process must act on it.
_CHILD = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = sys.argv[1:]; "
    "from kernelne.comparison.worker import serve; serve()"
)


def compare_methods(
    graph: Any,
    labels: Any = None,
    *,
    methods: Iterable[str] | Mapping[str, Any] | None = None,
    dim: int = 128,
    train_sizes: Iterable[float] = (0.1, 0.5),
    n_repeats: int = 10,
    test_share: float = 0.5,
    n_splits: int = 1,
    max_seconds: float | None = None,
    random_state: int = 0,
    n_threads: int | None = None,
    plan: Callable[[dict[str, float | None]], Any] | None = None,
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
    n_splits: without labels, the number of times that edges are hidden and the rest is embedded.
    max_seconds: methods whose fits are estimated to take longer are skipped.
    plan: called before the first method runs with the estimated seconds of the fits of each, {name: seconds};
        None for estimators of other packages, which are never skipped. Estimates follow from the size of the
        graph and a short timing on this machine; expect them to be wrong by up to a factor of two.
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
    if max_seconds is not None:
        check_number("max_seconds", max_seconds, positive=True)
    tasks: Sequence[LabelTask | LinkTask]
    if labels is None:
        controls, tasks = _prepare_links(checked, test_share, n_splits, settings)
    else:
        controls, tasks = _prepare_labels(checked, labels, train_sizes, n_repeats, settings)
    orders = {}
    for name, estimator in estimators.items():
        choose = None if labels is None or isinstance(methods, Mapping) else _list_choices(name, checked)
        orders[name] = [Order(estimator, task, choose) for task in tasks]
    told = plan is not None or max_seconds is not None
    estimates = _estimate(orders, n_threads) if told else dict.fromkeys(orders)
    if plan is not None:
        plan(estimates)
    results = []
    for name, own in orders.items():
        expected = estimates[name]
        if max_seconds is not None and expected is not None and expected > max_seconds:
            limit = f"skipped: about {expected:.0f} s estimated, the limit is {max_seconds:g} s"
            result = MethodResult(name, error=limit)
        else:
            result = _join([_run(name, order) for order in own])
        results.append(replace(result, estimated_seconds=expected))
        if progress is not None:
            progress(results[-1])
    measures = tuple(controls[0].scores)
    ranked = rank(results, measures[0]), rank(controls, measures[0])
    return Comparison("links" if labels is None else "labels", measures, *ranked)


def _estimate(orders: Mapping[str, Sequence[Order]], n_threads: int | None) -> dict[str, float | None]:
    """Return the estimated seconds of all fits of each method; None if unknown."""
    clock = Clock(n_threads)
    found: dict[str, float | None] = {}
    for name, (first, *others) in orders.items():
        seconds = clock.seconds(first.estimator, first.task.graph)
        fits = 1 if first.choose is None else len(first.choose[1])
        found[name] = None if seconds is None else seconds * fits * (1 + len(others))
    return found


def _join(results: Sequence[MethodResult]) -> MethodResult:
    """Join the results of one method on several splits: all scores, mean time, largest memory."""
    failed = next((result for result in results if result.error), None)
    if failed is not None or len(results) == 1:
        return failed or results[0]
    return replace(
        results[0],
        scores={name: [score for r in results for score in r.scores[name]] for name in results[0].scores},
        seconds=float(np.mean([result.seconds or 0.0 for result in results])),
        peak_bytes=max((r.peak_bytes for r in results if r.peak_bytes is not None), default=None),
        warnings=tuple(dict.fromkeys(warning for result in results for warning in result.warnings)),
    )


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
) -> tuple[list[MethodResult], list[LabelTask]]:
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
    return [MethodResult("most frequent labels", task.named(guessed))], [task]


def _prepare_links(
    graph: Graph, test_share: float, n_splits: int, settings: dict[str, Any]
) -> tuple[list[MethodResult], list[LinkTask]]:
    """Hide edges of the graph, n_splits times; score them by degrees and by common neighbours as controls."""
    check_count("n_splits", n_splits)
    seed = settings["random_state"]
    if seed + n_splits > 2**32:
        raise ParameterError("random_state", seed, f"the seeds of {n_splits} splits must be below 2**32")
    tasks = []
    controls: dict[str, list[MethodResult]] = {shown: [] for shown in _CONTROLS.values()}
    for own_seed in range(seed, seed + n_splits):
        split = split_links(graph, test_share=test_share, random_state=own_seed)
        edges, others = (control_scores(split.graph, p) for p in (split.test_edges, split.test_non_edges))
        for name, shown in _CONTROLS.items():
            found = rank_scores(edges[name], others[name])
            scores = {"auc": [found.auc], "average_precision": [found.average_precision]}
            controls[shown].append(MethodResult(shown, scores))
        tasks.append(LinkTask(split))
    return [replace(_join(each), seconds=None) for each in controls.values()], tasks


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
