"""Fits at the same time, in the ways of `WAYS`: run by test_together.py as `python together.py WAY`.

A process of its own, because a fork of the tests' process would have its threads, too.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np

from kernelne import Embedding, KernelNE, cluster_nodes, load_dataset

warnings.simplefilter("ignore")
N_FITS = 4


def work(seed):
    """Fit on two threads, write and read a table, ask for neighbours; returns a sum that repeats."""
    graph = load_dataset("planted:n=200,k=3,p_in=0.1,p_out=0.01,seed=1").graph
    model = KernelNE(dim=8, walks_per_node=10, n_threads=2, deterministic=True, random_state=seed).fit(graph)
    path = Path(f"{os.getpid()}-{threading.get_ident()}.parquet")
    model.to_embedding().save(path, overwrite=True)
    loaded = Embedding.load(path)
    loaded.neighbours(loaded.nodes[:20], 3)
    return float(loaded.vectors.sum())


def in_child(task):
    """Run a task in a process made by fork; returns its exit status."""
    process = os.fork()
    if not process:
        status = 1
        try:
            status = task()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def threads():
    with ThreadPoolExecutor(N_FITS) as pool:
        return list(pool.map(work, range(N_FITS)))


def fork():
    """A fork after a fit, and forks while other threads fit."""
    expected = [work(seed) for seed in range(N_FITS)]
    others = [threading.Thread(target=work, args=[seed]) for seed in range(2)]
    for other in others:
        other.start()
    for seed in range(N_FITS):
        assert in_child(lambda seed=seed: int(work(seed) != expected[seed])) == 0
    for other in others:
        other.join()
    return expected


def fork_while_compiling():
    """Another thread holds Numba's lock at the moment of the fork, and the child compiles something new."""
    from numba.core.compiler_lock import global_compiler_lock

    from kernelne._common.jit import uncached

    held = threading.Event()

    def compile_slowly():
        with global_compiler_lock:
            held.set()
            time.sleep(0.5)

    other = threading.Thread(target=compile_slowly)
    other.start()
    held.wait()
    assert in_child(lambda: uncached()(lambda x: x - 3)(3)) == 0
    other.join()


def fork_after_openmp():
    """GNU's OpenMP has threads in the parent that the child does not have."""
    vectors = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)

    def cluster():
        return cluster_nodes(vectors, n_clusters=3).assignment

    expected = cluster()
    assert in_child(lambda: int((cluster() != expected).any())) == 0


def pool(method):
    work(0)
    with multiprocessing.get_context(method).Pool(2) as processes:
        return processes.map(work, range(N_FITS))


def executor(method):
    work(0)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as processes:
        return list(processes.map(work, range(N_FITS)))


def by_joblib(backend):
    work(0)
    return joblib.Parallel(2, backend=backend)(joblib.delayed(work)(seed) for seed in range(N_FITS))


def event_loop():
    """As in a notebook: an event loop that runs in some thread, which fits itself and lets others fit."""

    async def main():
        first = work(0)
        return [first, *await asyncio.gather(*(asyncio.to_thread(work, s) for s in range(1, N_FITS)))]

    with ThreadPoolExecutor(1) as one:
        return one.submit(lambda: asyncio.run(main())).result()


WAYS = {
    "threads": threads,
    "fork": fork,
    "fork while compiling": fork_while_compiling,
    "fork after OpenMP": fork_after_openmp,
    "multiprocessing, fork": lambda: pool("fork"),
    "multiprocessing, spawn": lambda: pool("spawn"),
    "futures, fork": lambda: executor("fork"),
    "joblib, loky": lambda: by_joblib("loky"),
    "joblib, threading": lambda: by_joblib("threading"),
    "joblib, multiprocessing": lambda: by_joblib("multiprocessing"),
    "event loop": event_loop,
}

if __name__ == "__main__":
    found = WAYS[sys.argv[1]]()
    if found is not None:
        assert found == [work(seed) for seed in range(N_FITS)], found
    print("done")
