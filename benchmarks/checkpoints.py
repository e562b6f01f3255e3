"""What checkpoints cost: the seconds of a write against the time between two, on a graph of a million nodes.

    python benchmarks/checkpoints.py [--nodes 1000000] [--writes 5] [--walks 1] [--folder DIR]

Trains with tables of the default's size, and writes the state several times on the way. The share is that of
one write in `checkpoint_every`, five minutes by default: what a long run loses. Also measured: how long a
resumed run takes to read the state. The disk matters: --folder is where the states are written.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from blocks import blocks
from kernelne import MKernelNE
from kernelne._common.checks import check_duration
from kernelne.training.checkpoint import Checkpoint

_MOST = 0.02


class Timed(Checkpoint):
    """A checkpoint that keeps the seconds of its writes."""

    def write(self, *given: Any) -> None:
        start = time.perf_counter()
        super().write(*given)
        SECONDS.append(time.perf_counter() - start)


SECONDS: list[float] = []


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1_000_000, help="a multiple of 1,000")
    parser.add_argument("--writes", type=int, default=5, help="at least so many are timed")
    parser.add_argument("--walks", type=int, default=1, help="walks per node")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    args = parser.parse_args()
    every = check_duration("checkpoint_every", MKernelNE().checkpoint_every)
    warnings.simplefilter("ignore", UserWarning)  # so few walks teach little
    settings: dict[str, Any] = {"random_state": 0, "progress": False}
    MKernelNE(walks_per_node=1, **settings).fit(blocks(2000))  # compiles
    graph = blocks(args.nodes)
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        model = MKernelNE(walks_per_node=args.walks, checkpoint=name, **settings)
        start = time.perf_counter()
        MKernelNE(walks_per_node=args.walks, **settings).fit(graph)
        plain = time.perf_counter() - start
        model._kept = lambda: Timed(Path(name), plain / args.writes, "MKernelNE")  # type: ignore[method-assign]
        start = time.perf_counter()
        model.fit(graph)
        kept = time.perf_counter() - start
        newest = Checkpoint.at(name, 1, "MKernelNE").files()[0]
        size = newest.stat().st_size
        start = time.perf_counter()
        Checkpoint.at(name, 1, "MKernelNE").load(graph, model.config(graph), True)
        read = time.perf_counter() - start
    share = float(np.median(SECONDS)) / every
    print(
        json.dumps(
            {
                "nodes": args.nodes,
                "dim": model.dim,
                "state_MiB": round(size / 2**20),
                "writes_seconds": [round(each, 3) for each in SECONDS],
                "read_seconds": round(read, 3),
                "run_seconds": round(plain, 2),
                "run_with_checkpoints_seconds": round(kept, 2),
                "checkpoint_every_seconds": every,
                "share_of_time": round(share, 5),
                "most": _MOST,
            },
            indent=1,
        )
    )
    return 0 if share <= _MOST else 1


if __name__ == "__main__":
    raise SystemExit(main())
