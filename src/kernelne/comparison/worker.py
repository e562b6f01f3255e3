"""What happens in the process of one method of a comparison: it is fitted, measured and scored."""

# Why not concurrent.futures.ProcessPoolExecutor with a spawn context? As tried with Python 3.11, it
# - runs the user's script again in each process: one without `if __name__ == "__main__"`, or read from
#   standard input, fails, and what the script holds counts as the method's memory (280 MiB became 1308);
# - tells neither signal nor exit code nor last words of a process that died, and raises a method's SystemExit
#   in the parent, which ends the comparison;
# - lets an interrupted parent wait for the end of the fit, and a killed one leave its process behind;
# - shows what a method prints, amid the JSON of `kernelne compare --json` too;
# - does not start in a worker of multiprocessing.Pool, nor where there is no /dev/shm.
# Part of this can be mended, by hiding __main__ and by private attributes of the pool. What is then saved, 60
# lines, is `Order.write`, `Order.read` and `_plain`: pickle would save them here as well, but no pickle is
# ever loaded (SECURITY.md).

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

#: The part of the training nodes that a parameter is fitted on; the others choose.
_FITTED = 0.8

Scores = dict[str, list[float]]


@dataclass(frozen=True, eq=False)
class LabelTask:
    """Tell the labels of nodes: micro- and macro-F1.

    rows (m,) are the nodes with labels, truth (m,) or (m, classes) their labels.
    """

    graph: Graph
    rows: NDArray[np.int64]
    truth: NDArray[Any]
    train_sizes: Sequence[float]
    n_repeats: int
    random_state: int
    n_threads: int | None

    def score(self, vectors: NDArray[Any]) -> Scores:
        """A value a shuffle, by measure and share in percent."""
        found = classify_nodes(
            vectors[self.rows], self.truth, train_sizes=self.train_sizes, n_repeats=self.n_repeats,
            random_state=self.random_state, n_threads=self.n_threads,
        )  # fmt: skip
        return self.named(found)

    def named(self, found: ClassificationScores) -> Scores:
        """Scores of these shares by their names."""
        return {name: getattr(found, measure)[i].tolist() for name, measure, i in self.measures()}

    def measures(self) -> list[tuple[str, str, int]]:
        """Of each score its name, as micro_f1_10, what is measured, and the position of the share."""
        return [
            (f"{measure}_{100 * share:g}", measure, i)
            for i, share in enumerate(self.train_sizes)
            for measure in ("micro_f1", "macro_f1")
        ]

    def validate(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Micro-F1 (shares, repeats) within the training nodes alone; nan where they are too few for that."""
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
    """Tell hidden links from pairs without one: AUC and average precision."""

    split: LinkSplit

    @property
    def graph(self) -> Graph:
        """What is left to embed."""
        return self.split.graph

    def score(self, vectors: NDArray[Any]) -> Scores:
        """One value a measure."""
        found = score_links(vectors, self.split)
        return {"auc": [found.auc], "average_precision": [found.average_precision]}


@dataclass(frozen=True, eq=False)
class Order:
    """What a process is to do: fit the estimator and score it.

    choose: a parameter and values of which the best is taken, in each split by its training labels; the first
    one where they do not tell.
    """

    estimator: Any
    task: LabelTask | LinkTask
    choose: tuple[str, Sequence[int]] | None = None

    def carry_out(self) -> dict[str, Any]:
        """Scores, seconds, peak memory in bytes, and what was chosen."""
        _warm_up(self.estimator, self.task.graph)
        if self.choose is not None and isinstance(self.task, LabelTask):
            return _fit_each(self.estimator, self.task, *self.choose)
        vectors, seconds, peak = _fit(self.estimator, self.task.graph)
        return {"scores": self.task.score(vectors), "seconds": seconds, "peak_bytes": peak, "chosen": {}}

    def write(self, stream: IO[bytes]) -> None:
        """A line of JSON, then arrays as .npy, one after the other; node ids stay behind."""
        task = self.task if isinstance(self.task, LabelTask) else self.task.split
        values = {f.name: getattr(part, f.name) for part in (task.graph, task) for f in fields(part)}
        for name in ("graph", "nodes", "n_merged"):
            del values[name]
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        head = {
            "estimator": describe_estimator(self.estimator),
            "choose": self.choose,
            "values": {name: _plain(value) for name, value in values.items() if name not in arrays},
            "arrays": list(arrays),
        }
        stream.write(json.dumps(head).encode() + b"\n")
        pipe: Any = SimpleNamespace(write=stream.write)  # NumPy would look for its place in a real file
        for array in arrays.values():
            np.lib.format.write_array(pipe, array, allow_pickle=False)

    @classmethod
    def read(cls, stream: IO[bytes]) -> Order:
        """What `write` has written; nodes go by the numbers of their rows, tuples are lists."""
        head = json.loads(stream.readline())
        pipe: Any = SimpleNamespace(read=stream.read)
        values = head["values"]
        values |= {name: np.lib.format.read_array(pipe, allow_pickle=False) for name in head["arrays"]}
        csr = ("offsets", "neighbours", "weights", "directed")
        offsets, neighbours, weights, directed = (values.pop(name) for name in csr)
        graph = Graph(offsets, neighbours, weights, directed, np.arange(len(offsets) - 1))
        task = LabelTask(graph, **values) if "truth" in values else LinkTask(LinkSplit(graph, **values))
        module, name, parameters = head["estimator"]
        return cls(attrgetter(name)(import_module(module))(**parameters), task, head["choose"])


def describe_estimator(estimator: Any, given: str = "estimator") -> tuple[str, str, dict[str, Any]]:
    """Module, class and plain parameters: what makes the estimator anew. A ParameterError if they cannot.

    given: what the error calls the estimator.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise ParameterError(given, estimator, "must be an estimator with get_params(), as in scikit-learn")
    module, name = type(estimator).__module__, type(estimator).__qualname__
    found = None
    with suppress(AttributeError, KeyError):
        found = attrgetter(name)(sys.modules[module])
    if module == "__main__" or found is not type(estimator):
        remedy = "put it at the top level of a module (a .py file), not into the script or notebook that runs"
        raise ParameterError(given, estimator, f"its class, {module}:{name}, cannot be imported: {remedy}")
    parameters = {}
    for parameter, value in estimator.get_params().items():
        try:
            parameters[parameter] = _plain(value)
        except TypeError:
            remedy = "goes to another process as JSON: give None, numbers, strings, lists or dicts of them"
            raise ParameterError(f"{given}.{parameter}", value, remedy) from None
    return module, name, parameters


def _plain(value: Any) -> Any:
    """A value as JSON has it, tuples as lists; a TypeError where something would be lost."""
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
    """The vectors, seconds, and the most memory this process had meanwhile."""
    _forget_peak()
    start = time.perf_counter()
    vectors = np.asarray(estimator.fit(graph).embedding_)
    return vectors, time.perf_counter() - start, _peak_bytes()


def _fit_each(estimator: Any, task: LabelTask, name: str, values: Sequence[int]) -> dict[str, Any]:
    """As `carry_out`, a value of the parameter chosen in each split; the seconds are those of all fits."""
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
    """Fit a ring of the same kind, so that no compiling and no loading of compiled code is timed."""
    n = 12
    ring = scipy.sparse.csr_array((np.full(n, 2.0), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    ring = ring if graph.directed else ring + ring.T
    small = Graph.from_scipy(ring if graph.weights is not None else ring != 0, directed=graph.directed)
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copy.deepcopy(estimator).fit(small)


def _forget_peak() -> None:
    """Count the peak from here on, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_bytes() -> int | None:
    """The most memory this process had; None where the system does not tell."""
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
    """Standard input ends when the process that waits for us is gone."""
    while os.read(0, 1):
        pass
    os._exit(1)


def serve() -> None:
    """Read an Order from standard input, carry it out, and write the answer as JSON to standard output."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no part of the answer
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
        except BaseException as error:  # any method may fail in any way: the others go on
            found = {"error": f"{type(error).__name__}: {error}".removesuffix(": ")}
    found["warnings"] = list(dict.fromkeys(str(warning.message) for warning in caught))
    json.dump(found, answer)
    answer.close()
    os._exit(0)  # nothing is left to tidy up, and threads that wait for input would be in the way
