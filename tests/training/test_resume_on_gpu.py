"""Checkpoints of runs on a real card: `pytest -m gpu`, where Numba is, too."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("card")]


MIXTURE = [("gaussian", 1.0), ("schoenberg", 1.5)]


class CrashError(Exception):
    """What ends a process, or a notebook's cell."""


def test_a_run_that_crashes_is_continued(tmp_path):
    from kernelne import MKernelNE, classify_nodes, load_dataset

    data = load_dataset("planted:n=3000,k=6,p_in=0.02,p_out=0.001,seed=1")
    settings = {"backend": "gpu", "dim": 32, "walks_per_node": 3000, "random_state": 7, "kernels": MIXTURE}
    whole = MKernelNE(**settings, progress=False).fit(data.graph)
    reached: list[int] = []

    def crash(done, total, loss):
        reached[:] = [int(path.name[5:].split(".")[0]) for path in (tmp_path / "run").glob("walk-*")]
        if reached and done > 0.3 * total:
            raise CrashError

    seen: list[int] = []
    kept = settings | {"checkpoint": tmp_path / "run", "checkpoint_every": 1e-9}
    with pytest.raises(CrashError):
        MKernelNE(**kept, progress=crash).fit(data.graph)
    continued = MKernelNE(**kept, progress=lambda done, *rest: seen.append(done)).fit(data.graph)
    assert seen[0] > max(reached) > 0  # it went on, and did not start anew
    scores = [
        classify_nodes(model.to_embedding(), data.labels, train_sizes=[0.1], n_repeats=5, random_state=0)
        for model in (whole, continued)
    ]
    assert scores[1].micro_f1.mean() > scores[0].micro_f1.mean() - 0.01
    assert continued.history_["walks"][-1] == whole.history_["walks"][-1] == 3000 * 3000


RUN = """
import numpy as np, sys
from kernelne import KernelNE
nodes = np.arange(20_000)
edges = np.column_stack([np.tile(nodes, 3), np.concatenate([(nodes + k) % 20_000 for k in (1, 2, 3)])])
model = KernelNE(
    backend="gpu", walks_per_node=6000, random_state=3, progress=False, checkpoint="run",
    checkpoint_every=sys.argv[1],
)
np.save("out.npy", model.fit(edges).embedding_)
"""


def test_killed_again_and_again(tmp_path):
    """SIGKILL at random moments of a run on the card; the run that ends at last has learned as much."""
    (tmp_path / "run.py").write_text(RUN)
    rng, reached = np.random.default_rng(0), []
    for _ in range(3):
        with subprocess.Popen([sys.executable, "run.py", "0.01s"], cwd=tmp_path) as process:
            there = sorted(tmp_path.glob("run/walk-*"))
            while sorted(tmp_path.glob("run/walk-*")) == there and process.poll() is None:
                time.sleep(0.002)
            time.sleep(rng.uniform(0, 0.2))
            assert process.poll() is None, "ended before it was killed"
            process.send_signal(signal.SIGKILL)
        reached.append(max(int(path.name[5:].split(".")[0]) for path in tmp_path.glob("run/walk-*")))
    assert reached == sorted(set(reached))
    assert not (tmp_path / "out.npy").exists()
    subprocess.run([sys.executable, "run.py", "1h"], cwd=tmp_path, check=True)
    vectors = np.load(tmp_path / "out.npy")
    apart = [np.mean(np.linalg.norm(vectors - np.roll(vectors, by, axis=0), axis=1)) for by in (1, 10_000)]
    assert apart[0] < 0.2 * apart[1]
