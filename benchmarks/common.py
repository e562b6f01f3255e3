"""Shared code of the benchmarks: machine facts, child processes and their peak memory, tables, JSON."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGES = (
    "kernelne",
    "numpy",
    "numba",
    "scipy",
    "pyarrow",
    "usearch",
    "gensim",
    "pecanpy",
    "ensmallen",
    "embiggen",
    "scikit-learn",
    "umap-learn",
    "openTSNE",
)
_THREADS = ("NUMBA_NUM_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def machine() -> dict[str, Any]:
    cpu = next(
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")
    )
    memory = Path("/proc/meminfo").read_text().split()[1]
    return {
        "cpu": cpu.split(":")[1].strip(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(int(memory) / 2**20, 1),
        "system": platform.platform(),
        "load_average": os.getloadavg(),
    }


def versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def commit() -> str:
    def git(*args: str) -> str:
        return subprocess.run(["git", *args], capture_output=True, text=True, cwd=HERE).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+changes" if git("status", "--porcelain") else "")


def peak_mb() -> float:
    """Return the peak memory of this process. (ru_maxrss would include the parent's, from before exec.)"""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index("VmHWM:") + 1]) / 1024


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Measure wall and CPU seconds (of all threads) of a block, and CPU seconds of other processes."""
    result: dict[str, float] = {}
    wall, cpu, machine = time.perf_counter(), time.process_time(), _busy_seconds()
    yield result
    result |= {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    result["others_cpu_seconds"] = max(0.0, _busy_seconds() - machine - result["cpu_seconds"])


def _busy_seconds() -> float:
    """Return the CPU seconds that the machine was not idle."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


class Bench:
    """Children of one benchmark: each a new process of the same script, all with one new Numba cache."""

    def __init__(self, script: str) -> None:
        self.script = script
        self._folder = tempfile.TemporaryDirectory(prefix="kernelne-bench-")
        self.folder = Path(self._folder.name)

    def run(self, function: str, threads: int, **task: Any) -> dict[str, Any]:
        """Run `function(threads=threads, **task)` in a child; return its result and peak memory, or error."""
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        environment = os.environ | dict.fromkeys(_THREADS, str(threads))
        environment["NUMBA_CACHE_DIR"] = str(self.folder / "numba")
        spec = json.dumps({"threads": threads} | task)
        command = [sys.executable, self.script, "--child", function, spec, str(answer)]
        print(f"{function} {task.get('method', '')} …", end=" ", file=sys.stderr, flush=True)
        child = subprocess.run(command, env=environment, capture_output=True, text=True)
        if child.returncode or not answer.exists():
            lines = child.stderr.strip().splitlines() or [f"exit status {child.returncode}"]
            result = {"error": lines[-1]}
        else:
            result = json.loads(answer.read_text())
        print(result.get("error") or {k: v for k, v in result.items() if k == "seconds"}, file=sys.stderr)
        return result


def child_main(functions: Iterable[Callable[..., dict[str, Any]]]) -> bool:
    """Do the work of a child of `Bench.run`; return whether this process is one."""
    if sys.argv[1:2] != ["--child"]:
        return False
    name, task, answer = sys.argv[2:]
    result = next(f for f in functions if f.__name__ == name)(**json.loads(task))
    result.setdefault("peak_mb", peak_mb())
    Path(answer).write_text(json.dumps(result))
    return True


def parser(description: str | None, name: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--repeats", type=int, default=3)
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--output", type=Path, default=HERE / "results" / f"{name}.json")
    return made


def save(args: argparse.Namespace, results: dict[str, Any]) -> None:
    """Write the results, with machine, versions and settings, to one file."""
    payload = {
        # Names of files only: where they lie on this machine is nobody's concern.
        "arguments": {k: v.name if isinstance(v, Path) else str(v) for k, v in vars(args).items()},
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
    }
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(payload | results, indent=1) + "\n")
    facts = payload["machine"]
    print(
        f"\n{facts['cpu']}, {facts['cores']} cores, {facts['memory_gb']} GB, load "
        f"{facts['load_average'][0]:.1f}; commit {payload['commit']}, {payload['date'][:10]}; {args.output}"
    )


def disturbed(runs: Iterable[dict[str, Any]]) -> str:
    """Describe how quiet the machine was: on two cores another busy process can halve a program's speed."""
    timed_runs = [r for r in runs if "others_cpu_seconds" in r]
    # The machine's clock ticks every 10 ms, so short runs are given two ticks.
    count = sum(r["others_cpu_seconds"] > 0.05 * r["seconds"] + 0.02 for r in timed_runs)
    return f"Runs during which other processes took more than 5 % of a core: {count} of {len(timed_runs)}."


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is left-aligned, the others right-aligned."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """median (lowest–highest)"""
    low, high = min(values), max(values)
    middle = f"{statistics.median(values):.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({low:.{digits}f}–{high:.{digits}f})"
