"""The process of one method of a comparison: fit the estimator, measure it and score its vectors."""

# Why not concurrent.futures.ProcessPoolExecutor with a spawn context? With Python 3.11 it
# - runs the user's script again in each process: a script without `if __name__ == "__main__"`, or read from
#   standard input, fails, and the script's data count as the method's memory (280 MiB became 1308);
# - reports neither signal nor exit code nor last output of a process that died, and raises a method's
#   SystemExit in the parent, which ends the comparison;
# - makes an interrupted parent wait for the end of the fit, and a killed one leave its process behind;
# - shows what a method prints, also within the JSON of `kernelne compare --json`;
# - does not start in a worker of multiprocessing.Pool, nor without /dev/shm.
# Some of this could be worked around by hiding __main__ and with private attributes of the pool. That would
# save 60 lines: `Order.write`, `Order.read` and `_plain`. Pickle would save them here as well, but this
# package never loads a pickle (SECURITY.md).

from __future__ import annotations

import copy
import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelne.errors import InputError, KernelneError, ParameterError
from kernelne.evaluation.classification import ClassificationScores, classify_nodes, shuffle
from kernelne.evaluation.link_splits import LinkSplit
from kernelne.evaluation.links import score_links
from kernelne.graph import Graph
from kernelne.graph.times import TimedArcs

#: Share of the training nodes that the classifier is fitted on to choose a parameter; the others validate.
_FITTED = 0.8

Scores = dict[str, list[float]]


@dataclass(frozen=True, eq=False)
class LabelTask:
    """Node classification, scored by micro- and macro-F1.

    rows (m,): the nodes with labels. truth (m,) or (m, classes): their labels.
    """

    graph: Graph
    rows: NDArray[np.int64]
    truth: NDArray[Any]
    train_sizes: Sequence[float]
    n_repeats: int
    random_state: int
    n_threads: int | None

    def score(self, vectors: NDArray[Any]) -> Scores:
        """Return one score per shuffle, for each measure and share in percent."""
        found = classify_nodes(
            vectors[self.rows], self.truth, train_sizes=self.train_sizes, n_repeats=self.n_repeats,
            random_state=self.random_state, n_threads=self.n_threads,
        )  # fmt: skip
        return self.named(found)

    def named(self, found: ClassificationScores) -> Scores:
        """Return the scores of these shares by name."""
        return {name: getattr(found, measure)[i].tolist() for name, measure, i in self.measures()}

    def measures(self) -> list[tuple[str, str, int]]:
        """Return, for each score, its name (such as micro_f1_10), its measure, and the share's position."""
        return [
            (f"{measure}_{100 * share:g}", measure, i)
            for i, share in enumerate(self.train_sizes)
            for measure in ("micro_f1", "macro_f1")
        ]

    def validate(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Return the micro-F1 (shares, repeats) within the training nodes; nan if they are too few."""
        scores = np.full((len(self.train_sizes), self.n_repeats), np.nan)
        for repeat in range(self.n_repeats):
            order = shuffle(self.random_state, repeat, len(self.rows))
            for i, share in enumerate(self.train_sizes):
                train = order[: int(share * len(order))]
                with suppress(InputError):
                    found = classify_nodes(
                        vectors[self.rows[train]], self.truth[train], train_sizes=[_FITTED], n_repeats=1,
                        random_state=self.random_state, n_threads=1,
                    )  # fmt: skip
                    scores[i, repeat] = found.micro_f1[0, 0]
        return scores


@dataclass(frozen=True, eq=False)
class LinkTask:
    """Link prediction: AUC and average precision of hidden edges against non-edges."""

    split: LinkSplit

    @property
    def graph(self) -> Graph:
        """The residual graph, to be embedded."""
        return self.split.graph

    def score(self, vectors: NDArray[Any]) -> Scores:
        """Return one score per measure."""
        found = score_links(vectors, self.split)
        return {"auc": [found.auc], "average_precision": [found.average_precision]}


@dataclass(frozen=True, eq=False)
class Order:
    """The work of a process: fit the estimator and score it.

    choose: a parameter and its candidate values; each split takes the best on its training labels, or the
    first value if these are too few to decide.
    """

    estimator: Any
    task: LabelTask | LinkTask
    choose: tuple[str, Sequence[int]] | None = None

    def carry_out(self) -> dict[str, Any]:
        """Return scores, seconds, peak memory in bytes, and the chosen parameters."""
        _warm_up(self.estimator, self.task.graph)
        if self.choose is not None and isinstance(self.task, LabelTask):
            return _fit_each(self.estimator, self.task, *self.choose)
        vectors, seconds, peak = _fit(self.estimator, self.task.graph)
        return {"scores": self.task.score(vectors), "seconds": seconds, "peak_bytes": peak, "chosen": {}}

    def write(self, stream: IO[bytes]) -> None:
        """Write a line of JSON, then the arrays as .npy, one after the other; node ids are not sent."""
        task = self.task if isinstance(self.task, LabelTask) else self.task.split
        values = {f.name: getattr(part, f.name) for part in (task.graph, task) for f in fields(part)}
        for name in ("graph", "nodes", "n_merged"):
            del values[name]
        timed = values.pop("timed") or ()
        values |= {f"timed_{number}": array for number, array in enumerate(timed)}
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        head = {
            "estimator": describe_estimator(self.estimator),
            "choose": self.choose,
            "values": {name: _plain(value) for name, value in values.items() if name not in arrays},
            "arrays": list(arrays),
        }
        stream.write(json.dumps(head).encode() + b"\n")
        pipe: Any = SimpleNamespace(write=stream.write)  # NumPy would ask a real file for its position
        for array in arrays.values():
            np.lib.format.write_array(pipe, array, allow_pickle=False)

    @classmethod
    def read(cls, stream: IO[bytes]) -> Order:
        """Read what `write` wrote; node ids are row numbers, and tuples become lists."""
        head = json.loads(stream.readline())
        pipe: Any = SimpleNamespace(read=stream.read)
        values = head["values"]
        values |= {name: np.lib.format.read_array(pipe, allow_pickle=False) for name in head["arrays"]}
        csr = ("offsets", "neighbours", "weights", "directed")
        offsets, neighbours, weights, directed = (values.pop(name) for name in csr)
        arcs = [values.pop(name) for name in list(values) if name.startswith("timed_")]
        timed = TimedArcs(*arcs) if arcs else None
        graph = Graph(offsets, neighbours, weights, directed, np.arange(len(offsets) - 1), timed=timed)
        task = LabelTask(graph, **values) if "truth" in values else LinkTask(LinkSplit(graph, **values))
        module, name, parameters = head["estimator"]
        return cls(attrgetter(name)(import_module(module))(**parameters), task, head["choose"])


def describe_estimator(estimator: Any, given: str = "estimator") -> tuple[str, str, dict[str, Any]]:
    """Return module, class and plain parameters, to create the estimator again; raise ParameterError if not.

    given: name of the estimator in error messages.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise ParameterError(given, estimator, "must be an estimator with get_params(), as in scikit-learn")
    module, name = type(estimator).__module__, type(estimator).__qualname__
    found = None
    with suppress(AttributeError, KeyError):
        found = attrgetter(name)(sys.modules[module])
    if module == "__main__" or found is not type(estimator):
        remedy = "define it at the top level of a module (a .py file), not in the running script or notebook"
        raise ParameterError(given, estimator, f"its class, {module}:{name}, cannot be imported: {remedy}")
    parameters = {}
    for parameter, value in estimator.get_params().items():
        try:
            parameters[parameter] = _plain(value)
        except TypeError:
            remedy = "is sent to another process as JSON: use None, numbers, strings, lists or dicts of them"
            raise ParameterError(f"{given}.{parameter}", value, remedy) from None
    return module, name, parameters


def _plain(value: Any) -> Any:
    """Convert a value for JSON, tuples to lists; raise TypeError if that would lose information."""
    if isinstance(value, np.bool_ | np.integer | np.floating):
        value = value.item()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: _plain(one) for name, one in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError


def _fit(estimator: Any, graph: Graph) -> tuple[NDArray[Any], float, int | None]:
    """Fit; return the vectors, the seconds, and the peak memory of this process during the fit."""
    _forget_peak()
    start = time.perf_counter()
    vectors = np.asarray(estimator.fit(graph).embedding_)
    return vectors, time.perf_counter() - start, _peak_bytes()


def _fit_each(estimator: Any, task: LabelTask, name: str, values: Sequence[int]) -> dict[str, Any]:
    """As `carry_out`, but choose the value of the parameter in each split; seconds include all fits."""
    told, scores, seconds, peaks = [], [], 0.0, []
    for value in values:
        vectors, fitting, peak = _fit(estimator.set_params(**{name: value}), task.graph)
        start = time.perf_counter()
        told.append(np.nan_to_num(task.validate(vectors), nan=-1.0))
        seconds += fitting + time.perf_counter() - start
        peaks.append(peak)
        scores.append(task.score(vectors))
    best = np.argmax(told, axis=0)  # (shares, repeats)
    return {
        "scores": {
            measure: [scores[winner][measure][repeat] for repeat, winner in enumerate(best[i])]
            for measure, _, i in task.measures()
        },
        "seconds": seconds,
        "peak_bytes": max(filter(None, peaks), default=None),
        "chosen": {name: [values[int(np.bincount(row).argmax())] for row in best]},
    }


def _warm_up(estimator: Any, graph: Graph) -> None:
    """Fit a small ring of the same kind, so that compiling and loading compiled code are not timed."""
    n = 12
    ring = scipy.sparse.csr_array((np.full(n, 2.0), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    ring = ring if graph.directed else ring + ring.T
    small = Graph.from_scipy(ring if graph.weights is not None else ring != 0, directed=graph.directed)
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copy.deepcopy(estimator).fit(small)


def _forget_peak() -> None:
    """Reset the peak memory of this process, if the system supports it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_bytes() -> int | None:
    """Return the peak memory of this process; None if the system does not report it."""
    with suppress(OSError, ValueError):
        status = Path("/proc/self/status").read_text().split()
        return int(status[status.index("VmHWM:") + 1]) * 1024
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _end_with_parent() -> None:
    """Exit when standard input ends, which means that the parent process is gone."""
    while os.read(0, 1):
        pass
    os._exit(1)


def serve() -> None:
    """Read an Order from standard input, carry it out, and write the answer as JSON to standard output."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries is not part of the answer
    found: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            order = Order.read(sys.stdin.buffer)
            threading.Thread(target=_end_with_parent, daemon=True).start()
            found = order.carry_out()
        except KernelneError as error:
            found = {"error": str(error)}
        except BaseException as error:  # a method may fail in any way; the others continue
            found = {"error": f"{type(error).__name__}: {error}".removesuffix(": ")}
    found["warnings"] = list(dict.fromkeys(str(warning.message) for warning in caught))
    json.dump(found, answer)
    answer.close()
    os._exit(0)  # nothing to clean up, and threads that wait for input would block the exit
