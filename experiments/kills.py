"""Kill commands at random moments, again and again, and check that nothing is lost or damaged.

    python experiments/kills.py [--kills 200] [--minutes 5] [--parts embed,resume,update]

Kills are made in batches, each a line of results/kills.jsonl; what is there is not made again, so that many
short runs add up to one count. Three commands take turns:

embed: writes a new file; it must be absent, or whole with the bits of a run that was never killed.
resume: `embed --checkpoint`, killed and resumed until it ends, with the same bits.
update: `update --overwrite`, killed mostly while it writes; the file must be the old or the new one, whole.

A fourth needs an NVIDIA GPU and is run with `--parts gpu`: as resume, on the GPU, where two runs never have
the same bits; the ten nearest of a node must be those of a run that was never killed as often as those of
another such run are, but for a twentieth.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from common import HERE, Store
from kernelne import Embedding

BATCH = 15
_MODEL = "--seed 3 --deterministic -d 32 --quiet -j 1 --walks-per-node 400 --kernels gaussian:1,gaussian:3"
EMBED = ["embed", "g.edges", "-o", "out.npz", *_MODEL.split()]
RESUME = [*EMBED, "--checkpoint", "run", "--checkpoint-every", "0.05s", "--resume"]
_ON_GPU = "--backend gpu --seed 3 -d 32 --quiet --walks-per-node 30000"
GPU = ["embed", "g.edges", "-o", "out.npz", *_ON_GPU.split()]
UPDATE = [
    "update",
    "old.npz",
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


def start(folder: Path, args: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kernelne", *args]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def whole(folder: Path, args: list[str]) -> float:
    """Run a command to its end; returns the seconds it took."""
    begin = time.monotonic()
    process = start(folder, args)
    told = process.communicate()[1]
    assert process.returncode == 0, told.decode()
    return time.monotonic() - begin


def kill(folder: Path, args: list[str], after: float) -> bool:
    """Start a command and kill it after some seconds; returns whether it was still running."""
    process = start(folder, args)
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    told = process.communicate()[1]
    assert process.returncode in (0, -signal.SIGKILL), told.decode()
    return process.returncode != 0


def vectors(path: Path) -> Any:
    return Embedding.load(path).vectors


def embed(folder: Path, rng: random.Random) -> dict[str, int]:
    """Return the numbers of kills and of files that were there, whole."""
    whole(folder, EMBED)
    expected, out = vectors(folder / "out.npz"), folder / "out.npz"
    longest = 1.1 * whole(folder, [*EMBED, "--overwrite"])
    kills = files = 0
    while kills < BATCH:
        out.unlink(missing_ok=True)
        kills += kill(folder, EMBED, rng.uniform(longest / 4, longest))
        if out.exists():
            np.testing.assert_array_equal(vectors(out), expected)
            files += 1
    return {"kills": kills, "ended": files}


def resume(folder: Path, rng: random.Random) -> dict[str, int]:
    """Return the numbers of kills and of runs that ended."""
    whole(folder, EMBED)
    expected, out = vectors(folder / "out.npz"), folder / "out.npz"
    longest = 1.2 * whole(folder, [*EMBED, "--overwrite"])
    kills = ended = 0
    while kills < BATCH:
        out.unlink(missing_ok=True)
        while not out.exists():
            kills += kill(folder, RESUME, rng.uniform(0.1, longest))
        np.testing.assert_array_equal(vectors(out), expected)
        # Killed after its last write: the same command again ends it, and leaves nothing behind.
        whole(folder, [*RESUME, "--overwrite"])
        assert not (folder / "run").exists()
        np.testing.assert_array_equal(vectors(out), expected)
        ended += 1
    return {"kills": kills, "ended": ended}


def gpu(folder: Path, rng: random.Random) -> dict[str, int]:
    """Return the numbers of kills and of runs that ended."""
    whole(folder, GPU)
    out, resumed = folder / "out.npz", [*GPU, *RESUME[len(EMBED) :]]
    expected, longest = vectors(out), 1.2 * whole(folder, [*GPU, "--overwrite"])
    bound = alike(expected, vectors(out)) - 0.05
    kills = ended = 0
    while kills < BATCH:
        out.unlink(missing_ok=True)
        while not out.exists():
            kills += kill(folder, resumed, rng.uniform(longest / 2, longest))
        assert alike(expected, vectors(out)) > bound
        ended += 1
    return {"kills": kills, "ended": ended}


def alike(a: Any, b: Any) -> float:
    """Return the mean share of a node's ten nearest that are the same in both."""
    near = []
    for table in (a, b):
        cosines = (table / np.linalg.norm(table, axis=1, keepdims=True)) @ table.T
        near.append(np.argsort(-cosines / np.linalg.norm(table, axis=1), axis=1)[:, 1:11])
    return float((near[0][:, :, None] == near[1][:, None]).any(axis=2).mean())


def update(folder: Path, rng: random.Random) -> dict[str, int]:
    """Return the numbers of kills and of files found new."""
    whole(folder, EMBED)
    (folder / "out.npz").rename(folder / "old.npz")
    (folder / "more.edges").write_text((folder / "g.edges").read_text() + "\n0 750\n9000 0\n9000 1\n")
    longest = 1.1 * whole(folder, UPDATE)
    new, old = vectors(folder / "new.npz"), vectors(folder / "old.npz")
    kills = renewed = 0
    while kills < BATCH:
        (folder / "new.npz").write_bytes((folder / "old.npz").read_bytes())
        kills += kill(folder, UPDATE, rng.uniform(longest / 2, longest))
        found = vectors(folder / "new.npz")
        assert np.array_equal(found, old) or np.array_equal(found, new)
        renewed += np.array_equal(found, new)
    return {"kills": kills, "ended": renewed}


PARTS: dict[str, Callable[[Path, random.Random], dict[str, int]]] = {
    "embed": embed,
    "resume": resume,
    "update": update,
    "gpu": gpu,
}


def batch(part: str, number: int) -> dict[str, int]:
    """Make a batch of kills in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        edges = (f"{i} {(i * k + 1) % 1500}" for i in range(1500) for k in (1, 7, 30))
        (folder / "g.edges").write_text("\n".join(edges))
        return PARTS[part](folder, random.Random(f"{part} {number}"))


def count(store: Store) -> dict[str, dict[str, int]]:
    """Return the sums of all batches by part."""
    sums = {part: {"kills": 0, "ended": 0} for part in PARTS}
    for line in store.read_all("kills"):
        for name in ("kills", "ended"):
            sums[line["part"]][name] += line[name]
    return sums


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200, help="wanted in all")
    parser.add_argument("--minutes", type=float, default=np.inf, help="no batch is begun after them")
    parser.add_argument("--parts", default="embed,resume,update", help="of these: " + ", ".join(PARTS))
    parser.add_argument("--first", type=int, default=0, help="first batch, for runs beside each other")
    given = parser.parse_args()
    store, began, number = Store(HERE), time.monotonic(), given.first
    parts = given.parts.split(",")
    while sum(count(store)[part]["kills"] for part in parts) < given.kills and not store.failures:
        if time.monotonic() - began > 60 * given.minutes:
            break
        part = parts[number % len(parts)]
        store.fill("kills", lambda part=part, number=number: batch(part, number), part=part, batch=number)
        number += 1
    for part, sums in count(store).items():
        print(f"{part}: {sums['kills']} kills survived, {sums['ended']} files or runs ended")
    if store.failures:
        sys.exit(f"failed: {', '.join(store.failures)}")


if __name__ == "__main__":
    main()
