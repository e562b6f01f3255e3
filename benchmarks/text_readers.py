"""Our reader of edge lists compared with two based on pyarrow.csv: seconds, memory and correctness.

    python benchmarks/text_readers.py [--lines 5000000] [--repeats 5]

bare     pyarrow.csv on the unchanged file: integers if they convert, else strings. The fastest possible.
checked  pyarrow.csv on lines cleaned by whole-buffer operations of Python (comments, runs of blanks, line
         ends, UTF-8); strings become integers only if these have the same text; errors are located line by
         line. The most correct result without compiled code.

The readers take turns in one process, each after ours; ratios are relative to our time in the same turn. Ours
uses one core; pyarrow may use two. Memory is the growth of a separate process, results included. The hard
inputs are small files whose edges, or line of the error, are known.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from arrow_readers import Edges, Layout, bare, checked
from common import Bench, child_main, disturbed, parser, peak_mb, save, spread, table, timed
from kernelne.errors import FileFormatError
from kernelne.io.graphs import edgelist
from kernelne.io.graphs.shared import Options, as_text, join
from kernelne.io.text import lines as text_lines


def ours(path: str, layout: Layout) -> Edges:
    options = Options(
        header=False, weighted=layout.weighted, separator=layout.separator, skip_bad=layout.skip_bad
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = edgelist.read(path, options)
    told = [re.search(r": ([0-9,]+) lines? left out", str(warning.message)) for warning in caught]
    n_bad = sum(int(match[1].replace(",", "")) for match in told if match)
    return Edges(found.sources, found.targets, found.weights, n_bad)


READERS: dict[str, Callable[[str, Layout], Edges]] = {"ours": ours, "bare": bare, "checked": checked}


# The files whose reading is timed


class File(NamedTuple):
    """How to make a file of random edges: `between` cycles from line to line, `last` comes after them."""

    layout: Layout
    prefix: str = ""
    between: tuple[str, ...] = ()
    ids_from: int = 0
    comment_every: int = 0
    bad_every: int = 0
    last: str = ""
    suffix: str = ""


WEIGHTED = Layout(",", weighted=True)
FILES = {
    "integers, blanks": File(Layout()),
    "integers, tabs": File(Layout("\t")),
    "integers, commas": File(Layout(",")),
    "integers, runs of blanks": File(Layout(), between=("  ", " \t", " ", "   ")),
    "integers, gzip": File(Layout("\t"), suffix=".gz"),
    "integers, zstd": File(Layout("\t"), suffix=".zst"),
    "integers of 12 digits, tabs": File(Layout("\t"), ids_from=10**11),
    "integers, weights, commas": File(WEIGHTED),
    "strings, tabs": File(Layout("\t"), prefix="node"),
    "strings, weights, commas": File(WEIGHTED, prefix="node"),
    "integers, a comment in 100 lines": File(Layout("\t"), comment_every=100),
    "integers, 1 bad line in 100 skipped": File(Layout("\t", skip_bad=True), bad_every=100),
    "integers, last line bad": File(Layout("\t"), last="7\n"),
}


def make(name: str, path: str, lines: int, threads: int) -> dict[str, Any]:
    """Child: write one of the files."""
    file = FILES[name]
    rng = np.random.default_rng(0)
    marks = file.between or (file.layout.separator,)
    block = 1 << 18
    with pa.output_stream(path) as out:  # compresses by the name
        for start in range(0, lines, block):
            size = min(block, lines - start)
            ids = [as_text(rng.integers(0, lines // 10 + 1, size) + file.ids_from) for _ in range(2)]
            ids = [join(file.prefix, column) for column in ids] if file.prefix else ids
            between = pa.array(np.resize(np.array(marks, object), size), pa.large_string())
            parts = [ids[0], between, ids[1]]
            if file.layout.weighted:
                parts += [between, as_text(np.round(rng.random(size), 6))]
            texts = join(*parts, "\n").to_pylist()
            for every, text in ((file.comment_every, "# a comment\n"), (file.bad_every, "7\n")):
                if every:
                    texts[every - 1 :: every] = [text] * (len(texts) // every)
            out.write("".join(texts).encode())
        out.write(file.last.encode())
    return {"mb": Path(path).stat().st_size / 2**20}


def measure(name: str, path: str, repeats: int, threads: int) -> dict[str, Any]:
    """Child: how long each reader takes for a file, by turns."""
    _warm_up(name, READERS, threads)
    runs = []
    for repeat in range(repeats):
        for method in READERS:
            with timed() as seconds:
                outcome = _outcome(method, path, FILES[name].layout)
            runs.append({"method": method, "repeat": repeat, "outcome": outcome} | seconds)
    return {"runs": runs}


def memory(name: str, path: str, method: str, threads: int) -> dict[str, Any]:
    """Child: by how much its memory grows while one reader reads a file."""
    _warm_up(name, [method], threads)
    before = peak_mb()
    _outcome(method, path, FILES[name].layout)
    return {"grown_mb": peak_mb() - before}


def _warm_up(name: str, methods: Iterable[str], threads: int) -> None:
    """Read a small file of the kind: compiles, and starts threads."""
    pa.set_cpu_count(threads)
    with tempfile.TemporaryDirectory() as folder:
        small = f"{folder}/small.tsv{FILES[name].suffix}"
        make(name, small, 1000, threads)
        for method in methods:
            _outcome(method, small, FILES[name].layout)


def _outcome(method: str, path: str, layout: Layout) -> str:
    """What came of a file, in words: the same for those who read it alike."""
    try:
        found = READERS[method](path, layout)
    except FileFormatError as error:
        return f"error in line {error.line}"
    total = "" if found.weights is None else f", weights {found.weights.sum():.4f}"
    kind = "integers" if pa.types.is_integer(found.sources.type) else "strings"
    return f"{len(found.sources)} edges of {kind}{total}, {found.n_bad} left out"


# Hard inputs


class Hard(NamedTuple):
    """A small file, and its edges or the line of its error (0: an error that is about no line)."""

    content: bytes
    expected: list[tuple[Any, ...]] | int
    layout: Layout = Layout(",")
    n_bad: int = 0


def _one(*edge: Any) -> list[tuple[Any, ...]]:
    return [(1, 2), edge]


_LONG = b"a" * (text_lines.MAX_LINE - 2)
_W = Layout(" ", weighted=True)
_SKIP = Layout(" ", weighted=True, skip_bad=True)
HARD = {
    "01 is no 1": Hard(b"1,2\n3,01\n", [("1", "2"), ("3", "01")]),
    "-0 is no 0": Hard(b"1,2\n3,-0\n", [("1", "2"), ("3", "-0")]),
    "0x10 is no 16": Hard(b"1,2\n3,0x10\n", [("1", "2"), ("3", "0x10")]),
    "1.0 is no 1": Hard(b"1,2\n3,1.0\n", [("1", "2"), ("3", "1.0")]),
    "integers to both ends of int64": Hard(
        b"1,2\n-9223372036854775808,9223372036854775807\n", _one(-(2**63), 2**63 - 1)
    ),
    "an integer beyond int64": Hard(b"1,2\n3,9223372036854775808\n", [("1", "2"), ("3", str(2**63))]),
    "integers in quotes are strings": Hard(b'1,2\n"3","4"\n', [("1", "2"), ("3", "4")]),
    "NA and null are ids": Hard(b"NA,null\n,x\n", 2),
    "an empty id in quotes": Hard(b'a,b\n"",c\n', [("a", "b"), ("", "c")]),
    "blanks around fields": Hard(b"1,2\n 3 ,\t4 \n", _one(3, 4)),
    "blanks inside and outside quotes": Hard(b'" c " , d\n', [(" c ", "d")]),
    "quotes inside quotes": Hard(b'a,"say ""hi"""\n', [("a", 'say "hi"')]),
    "a quote that is not closed": Hard(b'a,b\n"c,d\ne,f\n', 2),
    "a quote that swallows lines": Hard(b'a,b\n"c\nd",e\nf,g\n', 2),
    "text after a closing quote": Hard(b'a,b\n"c"x,d\n', 2),
    "quotes are letters between blanks": Hard(b'"a b"\nc d\n', [('"a', 'b"'), ("c", "d")], Layout()),
    "runs of blanks": Hard(b"1  2\n\t3 \t 4 \n", _one(3, 4), Layout()),
    "byte order mark": Hard(b"\xef\xbb\xbf1,2\n3,4\n", _one(3, 4)),
    "CRLF and LF": Hard(b"1,2\r\n3,4\n5,6\r\n", [(1, 2), (3, 4), (5, 6)]),
    "CR alone": Hard(b"1,2\n3,4\r5,6\n", 2),
    "no newline at the end": Hard(b"1,2\n3,4", _one(3, 4)),
    "blank lines": Hard(b"\n1,2\n\n \t \n3,4\n\n", _one(3, 4)),
    "comments": Hard(b"# a\n1,2\n  % b,c\n#d,e\n3,4\n", _one(3, 4)),
    "a comment with a quote": Hard(b'1,2\n# "x,y\n3,4\n', _one(3, 4)),
    "# in quotes is an id": Hard(b'a,b\n"#c",d\n', [("a", "b"), ("#c", "d")]),
    "# after the separator is an id": Hard(b"a,#b\n", [("a", "#b")]),
    "too few fields, after noise": Hard(b"# c\n\n1,2\n\n# c\n3\n4,5\n", 6),
    "too many fields": Hard(b"1,2\n3,4,5\n", 2),
    "a weight that is none": Hard(b"1 2 1\n\n# x\n3 4 x\n", 4, _W),
    "NaN": Hard(b"1 2 1\n3 4 nan\n", 2, _W),
    "infinity": Hard(b"1 2 1\n3 4 inf\n", 2, _W),
    "a weight below zero": Hard(b"1 2 1\n3 4 -1\n", 2, _W),
    "a weight beyond float64": Hard(b"1 2 1\n3 4 1e999\n", 2, _W),
    "spellings of weights": Hard(b"1 2 .25\n1 2 1.\n1 2 +2E-1\n", [(1, 2, w) for w in (0.25, 1.0, 0.2)], _W),
    "bad lines left out": Hard(
        b"1 2 1\n3\n4 5 x\n6 7 nan\nfoo bar\n3 4 2\n", [(1, 2, 1.0), (3, 4, 2.0)], _SKIP, 4
    ),
    "a bad quote left out": Hard(b'1,2\n"3,4\n5,6\n', _one(5, 6), Layout(",", skip_bad=True), 1),
    "an empty id left out": Hard(b"1,2\n,4\n5,6\n", _one(5, 6), Layout(",", skip_bad=True), 1),
    "not UTF-8": Hard(b"1,2\n\xff,4\n", 2),
    "not UTF-8 in a comment": Hard(b"1,2\n# caf\xe9\n", 2),
    "NUL": Hard(b"a,b\nc\x00,d\n", 2),
    "a line of 1 MiB": Hard(b"c,d\n" + _LONG + b",b\n", [("c", "d"), (_LONG.decode(), "b")]),
    "a line of 3 MiB": Hard(b"c,d\n" + 3 * _LONG + b",b\n", 2),
    "an error in a late block": Hard(b"12345,67890\n" * 500_000 + b"7\n", 500_001),
    "strings from a late block on": Hard(
        b"12345,67890\n" * 500_000 + b"a,b\n", [("12345", "67890")] * 500_000 + [("a", "b")]
    ),
    "nothing but comments": Hard(b"# a\n% b\n\n", 0),
    "nothing at all": Hard(b"", 0),
}  # fmt: skip


def hard_inputs(method: str, threads: int) -> dict[str, Any]:
    """Child: which hard inputs a reader gets right, and what it makes of the others."""
    pa.set_cpu_count(threads)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, case in HARD.items():
            path = Path(folder, "edges.txt")
            path.write_bytes(case.content)
            found[name] = _judge(method, str(path), case)
    return {"inputs": found}


def _judge(method: str, path: str, case: Hard) -> str:
    """ "right", or what came instead."""
    try:
        edges = READERS[method](path, case.layout)
    except FileFormatError as error:
        return "right" if case.expected == (error.line or 0) else f"error in line {error.line}"
    except (ValueError, OSError, KeyError) as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:80]}"
    columns = [edges.sources.to_pylist(), edges.targets.to_pylist()]
    columns += [] if edges.weights is None else [edges.weights.tolist()]
    rows = list(zip(*columns, strict=True))
    if rows == case.expected:
        return "right" if edges.n_bad == case.n_bad else f"{edges.n_bad} lines left out, not {case.n_bad}"
    return f"read as {str(rows)[:60]}"


def main() -> None:
    arguments = parser(__doc__, "text_readers")
    arguments.add_argument("--lines", type=int, default=5_000_000)
    arguments.set_defaults(repeats=5)
    args = arguments.parse_args()
    bench = Bench(__file__)
    hard = {method: bench.run("hard_inputs", args.threads, method=method) for method in READERS}
    files = {}
    for name, file in FILES.items():
        task = {"name": name, "path": str(bench.folder / f"edges.tsv{file.suffix}")}
        made = bench.run("make", args.threads, lines=args.lines, **task)
        times = bench.run("measure", args.threads, repeats=args.repeats, **task)
        grown = {method: bench.run("memory", args.threads, method=method, **task) for method in READERS}
        files[name] = {"mb": made["mb"], "memory": grown} | times
        Path(task["path"]).unlink()
    runs = [run for result in files.values() for run in result.get("runs", [])]
    print(_timings(files), _failures(hard), disturbed(runs), sep="\n\n")
    save(args, {"files": files, "hard_inputs": hard})


def _timings(files: dict[str, dict[str, Any]]) -> str:
    rows = []
    for name, result in files.items():
        if "error" in result:
            rows.append([name, result["error"]])
            continue
        mine = {m: [run for run in result["runs"] if run["method"] == m] for m in READERS}
        row = [name, f"{result['mb']:.0f}", spread([run["seconds"] for run in mine["ours"]])]
        for method in list(READERS)[1:]:
            for key in ("seconds", "cpu_seconds"):
                pairs = zip(mine[method], mine["ours"], strict=True)
                row.append(spread([a[key] / b[key] for a, b in pairs]))
        row += [f"{result['memory'][m].get('grown_mb', float('nan')):.0f}" for m in READERS]
        outcomes = {method: {run["outcome"] for run in mine[method]} for method in READERS}
        row.append(", ".join(m for m in READERS if outcomes[m] != outcomes["ours"]) or "–")
        rows.append(row)
    head = ["file", "MB", "ours s", "bare / ours", "CPU", "checked / ours", "CPU", "ours MB", "bare MB"]
    return table([*head, "checked MB", "otherwise read by"], rows)


def _failures(hard: dict[str, Any]) -> str:
    rows = [
        [name, *(hard[method].get("inputs", {}).get(name, hard[method].get("error")) for method in READERS)]
        for name in HARD
    ]
    wrong = [row for row in rows if set(row[1:]) != {"right"}]
    n_right = ", ".join(f"{m} {sum(row[k] == 'right' for row in rows)}" for k, m in enumerate(READERS, 1))
    return f"Right, of {len(HARD)} hard inputs: {n_right}.\n\n" + table(["input", *READERS], wrong)


if __name__ == "__main__" and not child_main([make, measure, memory, hard_inputs]):
    main()
