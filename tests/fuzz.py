"""Mutate files of every format and read them: each must be read, or refused by one clear error.

    python tests/fuzz.py --seconds 3600               # all formats in turn, with a seed that is printed
    python tests/fuzz.py --cases 100000 --only graphml,csv --seed 7
    python tests/fuzz.py --replay fuzz-failures/FILE   # a case that failed, kept with its name

A case is a seed file with a few of its bytes changed, pieces moved, repeated or cut, or tokens put in that
parsers stumble over. Anything but a result or a KernelneError is a failure: the file is kept, and the run
goes on. A case may take _SLOWEST seconds and _LARGEST bytes more memory than the cases before it.
"""

from __future__ import annotations

import argparse
import faulthandler
import gzip
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kernelne import Embedding, Graph, read_graph, read_labels, write_graph
from kernelne.errors import KernelneError
from kernelne.io.graphs import kne
from kernelne.io.graphs.registry import FORMATS

_SLOWEST, _LARGEST = 10.0, 2**30
_TOKENS = [
    b"0", b"-1", b"1e999", b"nan", b"2147483648", b"9223372036854775808", b"\x00", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\n", b"\r", b"\r\n\r\n", b'"', b"'", b"[", b"]", b"<", b">", b"&a;", b"]]>", b"%",
    b"#", b"<!DOCTYPE a [", b"*Vertices 9", b",", b";", b"\t", b" " * 300, b"1" * 300, b"{}", b"\x1b[2J",
    b"node [", b"\xe2\x80\xae", b"\xff" * 8, b"\x7f\xff\xff\xff", b"\x00" * 16,
]  # fmt: skip


class Target(NamedTuple):
    """A format: its name, the suffix of its files, seed files, and a function that reads one."""

    name: str
    suffix: str
    seeds: list[bytes]
    read: Callable[[Path], Any]


def targets() -> list[Target]:
    """Return all formats of graphs, labels, embeddings and indexes, with files written by this package."""
    found = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        home = Path(folder)
        plain = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], nodes=np.arange(4))
        weighted = Graph.from_edges([0, 1, 2], [1, 2, 3], [1, 2, 3])
        named = Graph.from_edges(["a", "b c", "é"], ["b c", "é", "zz"], [0.5, 2, 1e-3], directed=True)
        for suffix in [suffix for entry in FORMATS for suffix in entry.suffixes]:
            seeds = []
            for graph in (plain, weighted, named):
                path = home / f"g{suffix}"
                try:
                    write_graph(graph, path, overwrite=True, lossy=True)
                    seeds.append(path.read_bytes())
                except KernelneError:
                    continue
            found.append(Target(suffix[1:], suffix, seeds, read_graph))
            if suffix in (".txt", ".gml", ".graphml", ".metis"):
                packed = [gzip.compress(seed, mtime=0) for seed in seeds]
                found.append(Target(f"{suffix[1:]}.gz", f"{suffix}.gz", packed, read_graph))
                zstd = pa.Codec("zstd")
                packed = [zstd.compress(seed, asbytes=True) for seed in seeds]
                found.append(Target(f"{suffix[1:]}.zst", f"{suffix}.zst", packed, read_graph))
        kne_seeds = next(target.seeds for target in found if target.name == "kne")
        found.append(Target("kne-signed", ".kne", kne_seeds, _read_signed))
        stream = pa.BufferOutputStream()
        table = pa.table({"source": ["a", "b"], "target": ["b", "c"], "weight": [1.0, 2.0]})
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
        found.append(Target("arrow-stream", ".arrow", [stream.getvalue().to_pybytes()], read_graph))
        texts = [b"node,label\n1,a\n2,b;c\n3,\n", b"a\tx,y\nb\tz\n", b"1 2\n3 4\n", b'"q, r",x\n"s",y\n']
        found.append(Target("labels", ".csv", texts, read_labels))
        found.append(
            Target("labels.gz", ".txt.gz", [gzip.compress(text, mtime=0) for text in texts], read_labels)
        )
        rng = np.random.default_rng(0)
        vectors = rng.normal(size=(5, 3)).astype(np.float32)
        made = [
            Embedding(vectors, np.arange(5), center=vectors, provenance={"model": "x"}),
            Embedding(vectors, ["a", "b", "c-d", "é", "z"]),
        ]
        for suffix in (".safetensors", ".npz", ".parquet", ".npy", ".csv", ".emb"):
            seeds = []
            for embedding in made:
                embedding.save(home / f"e{suffix}", overwrite=True)
                seeds.append((home / f"e{suffix}").read_bytes())
            found.append(Target(f"embedding{suffix}", suffix, seeds, Embedding.load))
            if suffix in (".safetensors", ".npy"):
                mapped = partial(Embedding.load, mapped=True)
                found.append(Target(f"mapped{suffix}", suffix, seeds, mapped))
        found += _index(home, made[0])
    return found


def _read_signed(path: Path) -> Graph:
    """Read a .kne file with checksums that are right for what is in it, so that only its checks refuse it."""
    data = bytearray(path.read_bytes())
    with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        told = json.loads(data[len(kne.MAGIC) : kne.HEADER - 16])
        start = kne.HEADER
        counts = kne.Counts(**{name: told[name] for name in kne.Counts._fields})
        for name, (kind, length) in counts.sections().items():
            size = kind.itemsize * length
            told["crc32"][name] = zlib.crc32(data[start : start + size])
            start += -(-size // 64) * 64
        data[: kne.HEADER] = kne.make_header(told)
        path.write_bytes(data)
    return read_graph(path)


def _index(home: Path, embedding: Embedding) -> Iterator[Target]:
    from kernelne.embedding.neighbours import NeighbourIndex, index_path

    try:
        embedding.save_index(home / "e.npz")
    except KernelneError:  # without usearch
        return
    seed = index_path(home / "e.npz", "cosine").read_bytes()
    yield Target(
        "index", ".usearch", [seed], lambda path: NeighbourIndex.load(path, embedding.vectors, "cosine")
    )


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Return the data with one to six changes."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        place, size = rng.randrange(len(made) + 1), rng.choice((1, 1, 2, 4, 8, 32))
        kind = rng.randrange(8)
        if kind == 0:
            made[place : place + 1] = bytes([rng.randrange(256)])
        elif kind == 1 and place < len(made):
            made[place] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del made[place : place + size]
        elif kind == 3:
            del made[place:]
        elif kind == 4:
            made[place:place] = rng.choice(_TOKENS)
        elif kind == 5:
            token = rng.choice(_TOKENS)
            made[place : place + len(token)] = token
        elif kind == 6:
            piece = made[place : place + rng.choice((4, 16, 64))]
            made[place:place] = piece * rng.choice((1, 2, 50))
        else:
            other = rng.randrange(len(made) + 1)
            made[other:other] = made[place : place + size]
    return bytes(made)


class _TooLongError(Exception):
    pass


def _too_long(number: int, frame: Any) -> None:
    raise _TooLongError(f"more than {_SLOWEST} s")


def _resident() -> int:
    path = Path("/proc/self/statm")
    return int(path.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if path.exists() else 0


def check(target: Target, path: Path) -> str:
    """Read a file: "read" or "refused"; raises anything else that the reader raises."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, _SLOWEST)
    before = _resident()
    try:
        target.read(path)
        outcome = "read"
    except KernelneError as error:
        if not str(error) or len(str(error)) > 5_000 or "\x1b" in str(error):
            raise AssertionError(f"no line to show: {str(error)[:200]!r}") from error
        outcome = "refused"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if _resident() - before > _LARGEST:
        raise AssertionError(f"{(_resident() - before) >> 20} MiB of memory")
    return outcome


def run(
    chosen: list[Target], seed: int, cases: int | None, seconds: float | None, kept: Path | None
) -> tuple[Counter[str], list[str]]:
    """Run cases over the targets in turn; returns counts by target and outcome, and the failures."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    number = 0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for target in chosen:  # compiles the readers before anything is timed
            for content in target.seeds:
                path = Path(folder, f"case{target.suffix}")
                path.write_bytes(content)
                with suppress(Exception):
                    target.read(path)
        start = time.monotonic()
        while (cases is None or number < cases) and (seconds is None or time.monotonic() - start < seconds):
            target = chosen[number % len(chosen)]
            rng = random.Random(f"{seed} {number}")
            path = Path(folder, f"case{target.suffix}")
            path.write_bytes(mutate(rng.choice(target.seeds), rng))
            if kept is not None:  # a crash of the process leaves the file that caused it
                (kept / "last").write_text(f"{target.name} {seed} {number}\n")
            try:
                counts[f"{target.name} {check(target, path)}"] += 1
            except Exception as error:
                counts[f"{target.name} FAILED"] += 1
                failures.append(
                    f"{target.name} seed {seed} case {number}: {type(error).__name__}: {error}"[:300]
                )
                if kept is not None:
                    (kept / f"{seed}-{number}.{target.name}").write_bytes(path.read_bytes())
                    traceback.print_exc()
            number += 1
    return counts, failures


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", help="names of formats, separated by commas")
    parser.add_argument("--kept", type=Path, default=Path("fuzz-failures"))
    parser.add_argument("--replay", type=Path)
    given = parser.parse_args()
    faulthandler.enable()
    chosen = targets()
    if given.replay is not None:
        target = next(t for t in chosen if given.replay.name.partition(".")[2] == t.name)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"case{target.suffix}")
            path.write_bytes(given.replay.read_bytes())
            print(check(target, path))
        return 0
    if given.only:
        chosen = [target for target in chosen if target.name in given.only.split(",")]
    given.kept.mkdir(exist_ok=True)
    print(f"seed {given.seed}: {', '.join(target.name for target in chosen)}", flush=True)
    start = time.monotonic()
    counts, failures = run(chosen, given.seed, given.cases, given.seconds, given.kept)
    took = time.monotonic() - start
    for name in sorted(counts):
        print(f"{counts[name]:10,} {name}")
    rate = counts.total() / took
    print(f"{counts.total():,} cases in {took:.0f} s, {rate:.0f} a second, {len(failures)} failed")
    print("\n".join(failures[:50]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
