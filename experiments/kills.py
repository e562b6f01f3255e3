"""Kill commands at random moments, again and again, and check that nothing is lost or damaged.

    python experiments/kills.py [--kills 200] [--seed 0]

resume: `kernelne embed --checkpoint` is killed and resumed until it ends; the vectors must have the bits of a
run that was never killed (--deterministic, two threads). overwrite: `kernelne update … --overwrite` is killed
while it replaces a file; the file must be the old or the new one, whole. Both get half of the kills.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from kernelne import Embedding

EMBED = [
    "embed",
    "g.edges",
    "-o",
    "out.npz",
    "--seed",
    "3",
    "--deterministic",
    "-d",
    "32",
    "--quiet",
    "-j",
    "2",
]
EMBED += ["--walks-per-node", "1500", "--kernels", "gaussian:1,gaussian:3"]


def start(folder: Path, args: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kernelne", *args]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def whole(folder: Path, args: list[str]) -> None:
    process = start(folder, args)
    told = process.communicate()[1]
    assert process.returncode == 0, told.decode()


def kill(folder: Path, args: list[str], after: float) -> bool:
    """Start a command and kill it after some seconds; returns whether it was still running."""
    process = start(folder, args)
    time.sleep(after)
    running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    told = process.communicate()[1]
    assert running or process.returncode == 0, told.decode()
    return running


def resume(folder: Path, n_kills: int, rng: random.Random) -> tuple[int, int]:
    """Return the numbers of kills and of runs that ended with the right bits."""
    whole(folder, EMBED)
    expected = Embedding.load(folder / "out.npz").vectors
    begin = time.monotonic()
    whole(folder, [*EMBED, "--overwrite"])
    longest = 1.2 * (time.monotonic() - begin)
    kills = ended = 0
    while kills < n_kills:
        (folder / "out.npz").unlink(missing_ok=True)
        args = [*EMBED, "--checkpoint", "run", "--checkpoint-every", "0.05s", "--resume"]
        while not (folder / "out.npz").exists():
            kills += kill(folder, args, rng.uniform(0.1, longest))
        np.testing.assert_array_equal(Embedding.load(folder / "out.npz").vectors, expected)
        shutil.rmtree(folder / "run", ignore_errors=True)  # left if it was killed after its last write
        ended += 1
    return kills, ended


def overwrite(folder: Path, n_kills: int, rng: random.Random) -> tuple[int, int]:
    """Return the numbers of kills and of files found new."""
    whole(folder, [*EMBED, "--overwrite"])
    lines = (folder / "g.edges").read_text()
    (folder / "more.edges").write_text(lines + "\n0 750\n9000 0\n9000 1\n")
    args = [
        "update",
        "out.npz",
        "more.edges",
        "-o",
        "new.npz",
        "--overwrite",
        "--quiet",
        "-j",
        "1",
        "--seed",
        "0",
    ]
    begin = time.monotonic()
    whole(folder, args)
    longest = 1.1 * (time.monotonic() - begin)
    new = Embedding.load(folder / "new.npz").vectors
    old = Embedding.load(folder / "out.npz").vectors
    data = (folder / "out.npz").read_bytes()
    kills = renewed = 0
    while kills < n_kills:
        (folder / "new.npz").write_bytes(data)
        kills += kill(folder, args, rng.uniform(longest / 2, longest))
        found = Embedding.load(folder / "new.npz").vectors
        assert np.array_equal(found, old) or np.array_equal(found, new)
        renewed += np.array_equal(found, new)
    return kills, renewed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "g.edges").write_text(
            "\n".join(f"{i} {(i * k + 1) % 1500}" for i in range(1500) for k in (1, 7, 30))
        )
        kills, ended = resume(folder, given.kills // 2, rng)
        print(
            f"resume: {kills} kills, {ended} runs ended, all with the bits of one that was never killed",
            flush=True,
        )
        kills, renewed = overwrite(folder, given.kills - given.kills // 2, rng)
        print(f"overwrite: {kills} kills, the file always whole, {renewed} times the new one")


if __name__ == "__main__":
    main()
