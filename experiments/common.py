"""Shared code of the experiments: the paper's models, graphs and figures; results and tables.

An experiment is a file with the settings FULL and QUICK, a function `run(store, **settings)`, which computes
the missing cells, and `render(store, **settings)`, which makes its part of the report from the results.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kernelne import Graph, KernelNE, MKernelNE, classify_nodes
from kernelne.datasets import load_dataset
from kernelne.io.files import atomic_output

HERE = Path(__file__).resolve().parent
QUICK_FOLDER = HERE / "quick"

MODELS: dict[str, Callable[[str, int], Any]] = {
    "KernelNE-Gauss": lambda name, seed: KernelNE.paper("gaussian", random_state=seed),
    "KernelNE-Sch": lambda name, seed: KernelNE.paper("schoenberg", random_state=seed),
    "MKernelNE-Gauss": lambda name, seed: MKernelNE.paper("gaussian", name, random_state=seed),
    "MKernelNE-Sch": lambda name, seed: MKernelNE.paper("schoenberg", name, random_state=seed),
}
#: The default; it is compared with the best of the paper's thirteen methods.
DEFAULT = "MKernelNE()"
EVERY = MODELS | {DEFAULT: lambda name, seed: MKernelNE(random_state=seed)}

RANDOM_GRAPH = "erdos_renyi:n=100000,p=0.0001"
#: The paper's graphs, the quick ones first.
GRAPHS = ("cora", "citeseer", "ppi", "facebook", "gnutella", "hepth", "astroph", "dblp")


# ---------------------------------------------------------------- results


@dataclass
class Store:
    """Results: a file folder/results/EXPERIMENT.jsonl per experiment, a JSON line per cell, sorted by key.

    A key's values are strings and numbers.
    """

    folder: Path
    failures: list[str] = field(default_factory=list)
    _tables: dict[str, tuple[Any, dict[str, Any]]] = field(default_factory=dict, repr=False)

    def path(self, experiment: str) -> Path:
        return self.folder / "results" / f"{experiment}.jsonl"

    def read(self, experiment: str, **key: Any) -> dict[str, Any] | None:
        """Return the record of this cell, including its key; None if it has not been run."""
        record = self._table(experiment).get(_identity(key))
        return None if record is None else _flat(record)

    def read_all(self, experiment: str) -> list[dict[str, Any]]:
        """Return all cells of the experiment, in the order of the file."""
        return [_flat(record) for record in self._table(experiment).values()]

    def fill(self, experiment: str, compute: Callable[[], dict[str, Any]], **key: Any) -> None:
        """Compute and write the cell if it is missing. A failure is printed; the other cells still run."""
        if self.read(experiment, **key) is not None:
            return
        name = f"{experiment}/{'_'.join(map(str, key.values()))}"
        start = time.perf_counter()
        try:
            result = compute()
            seconds = round(time.perf_counter() - start, 3)
            self.write(experiment, key, result | {"seconds": seconds} | circumstances())
        except Exception:
            traceback.print_exc()
            self.failures.append(name)
            return
        print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)

    def write(self, experiment: str, key: dict[str, Any], result: dict[str, Any]) -> None:
        """Write the cell to its file, which is replaced as a whole.

        Concurrent runs of an experiment do not lose cells.
        """
        path = self.path(experiment)
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.parent):
            table = self._table(experiment) | {_identity(key): {"key": key} | result}
            lines = [json.dumps(record) + "\n" for record in sorted(table.values(), key=_place)]
            with atomic_output(path, overwrite=True) as temporary:
                temporary.write_text("".join(lines))

    def _table(self, experiment: str) -> dict[str, Any]:
        """Return the table by key; the file is read again only if it has changed."""
        path = self.path(experiment)
        if not path.exists():
            return {}
        status = path.stat()
        stamp = status.st_ino, status.st_mtime_ns, status.st_size
        if self._tables.get(experiment, (None,))[0] != stamp:
            self._tables[experiment] = stamp, _load_table(path)
        return self._tables[experiment][1]


def _load_table(path: Path) -> dict[str, Any]:
    table: dict[str, Any] = {}
    lines = path.read_text().rstrip("\n").split("\n")
    for i, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
        except ValueError:
            if i < len(lines):
                sys.exit(f"{path}, line {i}: not JSON")
            print(f"{path}: the last line is incomplete; its cell is run again", file=sys.stderr)
            break
        if table.setdefault(_identity(record["key"]), record) != record:
            sys.exit(f"{path}, line {i}: another result for {record['key']}")
    return table


def _identity(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)


def _place(record: dict[str, Any]) -> list[Any]:
    """Return the sort key of a record: the values of its key, numbers before strings."""
    return [(isinstance(value, str), value) for value in record["key"].values()]


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    return record["key"] | {name: value for name, value in record.items() if name != "key"}


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock on this folder. It is released even if the process is killed."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def circumstances() -> dict[str, Any]:
    return {
        "commit": _commit(),
        "machine": _machine(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "load": round(os.getloadavg()[0], 2),
        "versions": {p: importlib.metadata.version(p) for p in ("kernelne", "numpy", "numba")},
    }


@cache
def _commit() -> str:
    """Return the commit, marked if the code (not the results) differs from it; $COMMIT overrides it."""
    if given := os.environ.get("COMMIT"):
        return given

    def git(*args: str) -> str:
        return subprocess.run(["git", *args], capture_output=True, text=True, cwd=HERE).stdout.strip()

    changed = git("status", "--porcelain", "--", "*.py", "../src")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+changes" if changed else "")


@cache
def _machine() -> str:
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), name)
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}"


# ---------------------------------------------------------------- graphs and models


@lru_cache(maxsize=2)
def load(name: str) -> tuple[Graph, Any]:
    """Return a graph, with the paper's self-loops, and its labels as an indicator matrix, or None."""
    if ":" not in name and not os.environ.get("KERNELNE_DATA"):  # with a colon it is generated
        sys.exit("set KERNELNE_DATA to the folder with the paper's graphs (NAME.edges.gz and so on)")
    dataset = load_dataset(name)
    return dataset.graph, None if dataset.labels is None else dataset.labels.indicator


def make_model(model: str, graph: str, seed: int, **changes: Any) -> Any:
    """Return an untrained model with some parameters changed."""
    return EVERY[model](graph, seed).set_params(**changes)


def classify(
    graph: str, model: str, seed: int, splits: int, shares: Sequence[int], **changes: Any
) -> dict[str, Any]:
    """Train and classify; return F1 by share (in percent) and split."""
    network, truth = load(graph)
    estimator = make_model(model, graph, seed, **changes).fit(network)
    scores = classify_nodes(
        estimator.embedding_,
        truth,
        train_sizes=[share / 100 for share in shares],
        n_repeats=splits,
        random_state=seed,
    )
    return {
        "shares": list(shares),
        "micro_f1": scores.micro_f1.round(5).tolist(),
        "macro_f1": scores.macro_f1.round(5).tolist(),
        "coefficients": estimator.coefficients_.tolist(),
        "provenance": estimator.to_embedding().provenance,
    }


def time_training(graph: str, model: str, repeats: int) -> dict[str, Any]:
    """Measure wall and CPU seconds of `fit` on one thread, including walks, without compilation."""
    return time_fits(graph, lambda **given: make_model(model, graph, **given), repeats)


def time_fits(graph: str, make: Callable[..., Any], repeats: int) -> dict[str, Any]:
    """Measure the same for any estimator; make(seed=…, n_threads=1) returns one."""
    network, _ = load(RANDOM_GRAPH if graph == "erdos_renyi" else graph)
    make(seed=0, n_threads=1).fit(load("erdos_renyi:n=50,p=0.2")[0])
    wall, cpu = [], []
    for seed in range(repeats):
        estimator = make(seed=seed, n_threads=1)
        start = time.perf_counter(), time.process_time()
        estimator.fit(network)
        wall.append(round(time.perf_counter() - start[0], 4))
        cpu.append(round(time.process_time() - start[1], 4))
    return {"nodes": network.n_nodes, "edges": network.n_edges, "wall_seconds": wall, "cpu_seconds": cpu}


def disturbed(results: Iterable[dict[str, Any] | None]) -> str:
    """Describe how quiet the machine was: wall and CPU time of one thread are equal on an idle core."""
    runs = [pair for r in results if r for pair in zip(r["wall_seconds"], r["cpu_seconds"], strict=True)]
    busy = sum(wall > 1.1 * cpu + 0.02 for wall, cpu in runs)
    return f"Runs that waited for another process more than 10 % of their time: {busy} of {len(runs)}."


# ---------------------------------------------------------------- tables


@dataclass(frozen=True)
class Cell:
    """A figure of the paper and ours; None if there is none."""

    name: str
    paper: float | None
    ours: float | None

    @property
    def difference(self) -> float | None:
        return None if self.ours is None or self.paper is None else self.ours - self.paper

    def __str__(self) -> str:
        return f"{number(self.paper)} / {number(self.ours)} / {number(self.difference, sign=True)}"


@dataclass(frozen=True)
class Section:
    """A part of the report: Markdown, and our figures that are compared with the paper's."""

    title: str
    text: str
    cells: Sequence[Cell] = ()
    note: str = ""  # a line for the summary, where differences are not what counts

    def __str__(self) -> str:
        return f"## {self.title}\n\n{self.text}\n"


def number(value: float | None, digits: int = 3, sign: bool = False) -> str:
    return "–" if value is None else f"{value:{'+' if sign else ''}.{digits}f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is left-aligned, the others right-aligned."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def paper_figures(name: str) -> list[dict[str, str]]:
    with open(HERE / "paper" / f"{name}.csv") as lines:
        return list(csv.DictReader(lines))


def paper_scores(metric: str = "micro_f1") -> dict[tuple[str, str, int], float]:
    """Return the paper's scores by (graph, method, percent of nodes in training)."""
    rows = paper_figures("classification")
    return {(r["dataset"], r["method"], int(r["train_percent"])): float(r[metric]) for r in rows}


def scores_by_share(results: Iterable[dict[str, Any] | None], metric: str = "micro_f1") -> dict[int, float]:
    """Return the mean over seeds and splits of the available results, by share."""
    found = [r for r in results if r is not None]
    return {
        share: float(np.mean([r[metric][r["shares"].index(share)] for r in found if share in r["shares"]]))
        for share in sorted({s for r in found for s in r["shares"]})
    }


# ---------------------------------------------------------------- the command line


def command(module: Any, arguments: Sequence[str] | None = None) -> None:
    """Run the missing cells of an experiment and print its part of the report."""
    parser = argparse.ArgumentParser(
        description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the ten-minute version, with its own folder")
    for name, default in module.FULL.items():
        parser.add_argument(f"--{name}", type=_parse(default), help=f"default: {_show(default)}")
    given = vars(parser.parse_args(arguments))
    store = Store(QUICK_FOLDER if given.pop("quick") else HERE)
    settings = module.QUICK if store.folder == QUICK_FOLDER else module.FULL
    settings = settings | {name: value for name, value in given.items() if value is not None}
    warnings.simplefilter("ignore", UserWarning)  # isolated nodes, little learned: known of these graphs
    module.run(store, **settings)
    print(*module.render(store, **settings), sep="\n")
    if store.failures:
        sys.exit(f"failed: {', '.join(store.failures)}")


def _parse(default: Any) -> Callable[[str], Any]:
    if not isinstance(default, tuple):
        return type(default)
    return lambda text: tuple(type(default[0])(item) for item in text.split(","))


def _show(default: Any) -> str:
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
