"""Edge lists converted in parts: the same graph as `read_graph` gives, and nothing left behind."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from kernelne import read_graph
from kernelne.errors import FileFormatError, InputError, OutputError, ParameterError
from kernelne.io.files import folder_beside
from kernelne.io.graphs import out_of_core, sorted_runs
from kernelne.io.graphs.out_of_core import convert_edges
from kernelne.io.graphs.shared import Options
from kernelne.io.graphs.sorted_runs import SortedRuns
from kernelne.io.text import lines


@pytest.fixture
def parts(monkeypatch):
    """Small parts, small batches: returns the list of the sizes of the parts."""
    sizes: list[int] = []
    end = out_of_core._Conversion._end_part

    def count(self, part, runs):
        end(self, part, runs)
        sizes.append(self.sizes[-1])

    monkeypatch.setattr(out_of_core._Conversion, "_end_part", count)
    monkeypatch.setattr(out_of_core, "_FOR_PART", 1e-6)
    monkeypatch.setattr(out_of_core, "_ROWS", 7)
    monkeypatch.setattr(sorted_runs, "BATCH", 64)
    monkeypatch.setattr(lines, "BUFFER", 2048)
    return sizes


def text(rng, names, weighted, m=1500, n=120):
    ends = rng.integers(0, n, (m, 2)) ** 2 // n  # some pairs are frequent
    ids = [f"é{i}" if names == "unicode" else f"x{i}" if names else str(7 * i - 50) for i in range(n)]
    weights = rng.choice([0.0, 0.1, 0.7, 1 / 3, 3e7, 1e-3], m)
    rows = [
        f"{ids[u]}\t{ids[v]}" + (f"\t{w}" if weighted else "")
        for (u, v), w in zip(ends, weights, strict=True)
    ]
    return "\n".join(rows) + "\n"


def same(path, output, **options):
    """Convert, and compare with the graph as read."""
    loops = options.pop("drop_self_loops", False)
    counts, n_edges = convert_edges(
        str(path), output, Options(**options), drop_self_loops=loops, overwrite=True, progress=False
    )
    one, other = read_graph(path, drop_self_loops=loops, **options), read_graph(output)
    assert other.nodes.tolist() == one.nodes.tolist()
    for name in ("offsets", "neighbours", "weights"):
        mine, found = getattr(one, name), getattr(other, name)
        assert (mine is None) == (found is None)
        assert mine is None or (mine.dtype == found.dtype and np.array_equal(mine, found))
    assert other.fingerprint == one.fingerprint
    assert (other.n_merged, n_edges, counts.n_nodes) == (one.n_merged, one.n_edges, one.n_nodes)
    assert sorted(os.listdir(output.parent)) == sorted({path.name, output.name})
    return other


@pytest.mark.filterwarnings("ignore:edges of weight zero")
@pytest.mark.parametrize("names", [None, "ascii", "unicode"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [None, True])
@pytest.mark.parametrize("drop_self_loops", [False, True])
def test_the_graph_is_that_of_the_text(tmp_path, parts, names, weighted, directed, drop_self_loops):
    rng = np.random.default_rng(3)
    (tmp_path / "g.tsv").write_text(text(rng, names, weighted), encoding="utf-8")
    listed = ["zz", "é7", "x7"] if names else [20, 1, -(10**15)]
    for nodes in (None, listed):
        parts.clear()
        same(
            tmp_path / "g.tsv",
            tmp_path / "g.kne",
            directed=directed,
            nodes=nodes,
            drop_self_loops=drop_self_loops,
        )
        assert len(parts) > 5
        assert max(parts) < 600


@pytest.mark.parametrize("separator", ["\t", ",", " "])
def test_columns_and_headers_are_as_in_the_text(tmp_path, parts, separator):
    rng = np.random.default_rng(5)
    rows = [f"{w}|t{a}|s{b}|x".replace("|", separator) for a, b, w in rng.integers(1, 99, (500, 3))]
    head = separator.join(["amount", "to", "from", "note"])
    (tmp_path / "g.csv").write_text("\n".join([head, *rows]))
    graph = same(tmp_path / "g.csv", tmp_path / "g.kne", directed=True, weight="amount")
    assert graph.weights is not None
    assert len(parts) > 3
    same(tmp_path / "g.csv", tmp_path / "g.kne", weighted=False, source="from", target="amount")


def test_users_and_items_are_kept_apart(tmp_path, parts):
    rows = [f"{a},{b}" for a, b in np.random.default_rng(5).integers(10**5, 10**5 + 99, (500, 2))]
    path = tmp_path / "g.csv"
    path.write_text("\n".join(["user_id,item_id", *rows]))
    graph = same(path, tmp_path / "g.kne", bipartite=True)
    assert graph.nodes[0].startswith("item_id:1000")
    same(path, tmp_path / "g.kne", bipartite=False)
    for convert in (lambda: read_graph(path), lambda: same(path, tmp_path / "h.kne")):
        with pytest.raises(FileFormatError, match=r"'user_id' and 'item_id' have [0-9]+ numbers in common"):
            convert()
    apart = [f"{a},{100 + b}" for a, b in np.random.default_rng(5).integers(0, 9, (500, 2))]
    path.write_text("\n".join(["user_id,item_id", *apart]))
    (tmp_path / "g.kne").unlink()
    same(path, tmp_path / "g.kne")
    with pytest.raises(InputError, match="ids mix ints and strs"):
        same(path, tmp_path / "h.kne", bipartite=True, nodes=[3])


def test_an_id_at_the_end_makes_all_of_them_strings(tmp_path, parts):
    rows = [f"{a} {b}" for a, b in np.random.default_rng(5).integers(0, 99, (900, 2))]
    path = tmp_path / "g.txt"
    path.write_text("\n".join([*rows, "007 7"]))
    graph = same(path, tmp_path / "g.kne")
    assert {"7", "007"} <= set(graph.nodes.tolist())
    with pytest.raises(InputError, match="ids mix ints and strs"):
        same(path, tmp_path / "h.kne", nodes=[1])


def test_compressed_files_and_files_of_nodes(tmp_path, parts):
    content = text(np.random.default_rng(1), "ascii", False)
    (tmp_path / "g.tsv.gz").write_bytes(gzip.compress(content.encode()))
    same(tmp_path / "g.tsv.gz", tmp_path / "g.kne")
    (tmp_path / "ids.txt").write_text("b\nx7\na\n")
    counts, _ = convert_edges(
        str(tmp_path / "g.tsv.gz"), tmp_path / "h.kne", Options(nodes=str(tmp_path / "ids.txt"))
    )
    assert counts.n_nodes == read_graph(tmp_path / "g.kne").n_nodes + 2
    assert read_graph(tmp_path / "h.kne").nodes[:3].tolist() == ["b", "x7", "a"]


def test_nodes_without_edges_fill_all_rows(tmp_path, parts):
    path = tmp_path / "g.txt"
    path.write_text("40 50 0\n41 42 1\n")
    with pytest.warns(UserWarning, match="edges of weight zero dropped: 1; their nodes are kept"):
        same(path, tmp_path / "g.kne", nodes=list(range(30)))
    path.write_text("")
    graph = same(path, tmp_path / "g.kne", nodes=["b", "a"])
    assert (graph.n_nodes, graph.n_edges) == (2, 0)


def test_weights_are_added_in_the_order_of_the_file(tmp_path, parts):
    """Each of the small weights is lost beside the large one; their sum would not be, and would round up."""
    lines_of = ["b a 16777217", *["a b 1e-9"] * 300, *["b a 1e-9"] * 300, "c a 1"]
    (tmp_path / "g.txt").write_text("\n".join(lines_of))
    for directed in (None, True):
        graph = same(tmp_path / "g.txt", tmp_path / "g.kne", directed=directed)
        assert graph.weights.max() == 16777216
    assert len(parts) > 5


@pytest.mark.filterwarnings("ignore:edges of weight zero")
def test_bad_lines_are_refused_or_skipped(tmp_path, parts):
    good = text(np.random.default_rng(1), "ascii", True).splitlines()
    (tmp_path / "g.tsv").write_text("\n".join([*good[:900], "a\tb", *good[900:], "a\tb\tnan"]))
    with pytest.raises(FileFormatError, match=r"g.tsv:901: expected 3 fields"):
        convert_edges(str(tmp_path / "g.tsv"), tmp_path / "g.kne", Options())
    assert os.listdir(tmp_path) == ["g.tsv"]
    with pytest.warns(UserWarning, match="2 lines left out, 901, 1502"):
        same(tmp_path / "g.tsv", tmp_path / "g.kne", skip_bad=True)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "no edges in the file"),
        ("source,target\n", "its only line was read as a header"),
        ("gene a,gene b\nx1,y2\nx2,y3\nx4,y5\n", r"g.csv:1: are these column names, or an edge\?"),
        ("a,b,1e39\nb,c,1\n", r"g.csv:1: expected a weight.*fits float32"),
        ("1,2,3\n5,7,1e-60\n", r"g.csv:2: expected a weight.*fits float32"),
        ("1,2,3e38\n1,2,3e38\n", r"edge \(1, 2\): its weight 6.*e\+38 is outside the range of float32"),
    ],
)
def test_errors_are_those_of_reading(tmp_path, parts, content, word):
    (tmp_path / "g.csv").write_text(content)
    for convert in (read_graph, lambda path: convert_edges(str(path), tmp_path / "g.kne", Options())):
        with pytest.raises(FileFormatError, match=word):
            convert(tmp_path / "g.csv")
    assert os.listdir(tmp_path) == ["g.csv"]


def test_repeated_nodes_and_times_are_refused(tmp_path):
    (tmp_path / "g.txt").write_text("1 2\n")
    with pytest.raises(InputError, match="the id 5 appears more than once"):
        convert_edges(str(tmp_path / "g.txt"), tmp_path / "g.kne", Options(nodes=[5, 5]))
    with pytest.raises(ParameterError, match="ages edges in memory"):
        convert_edges(str(tmp_path / "g.txt"), tmp_path / "g.kne", Options(time="3", half_life=1))


@pytest.mark.filterwarnings("ignore:edges of weight zero")
@pytest.mark.parametrize("step", ["_end_part", "_merge_ids", "_sort_edges", "_merge_edges", "_write_offsets"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_nothing_is_left_when_it_ends_early(tmp_path, parts, monkeypatch, step, error):
    (tmp_path / "g.tsv").write_text(text(np.random.default_rng(1), "ascii", True))
    (tmp_path / "g.kne").write_text("old")
    monkeypatch.setattr(out_of_core._Conversion, step, lambda *args: (_ for _ in ()).throw(error))
    expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else OutputError
    with pytest.raises(expected, match="No space left" if expected is OutputError else None):
        convert_edges(str(tmp_path / "g.tsv"), tmp_path / "g.kne", Options(), overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["g.kne", "g.tsv"]
    assert (tmp_path / "g.kne").read_text() == "old"


def test_folders_of_killed_processes_are_removed(tmp_path):
    old = tmp_path / ".g.kne.4194304-0123456789ab.tmp"
    old.mkdir()
    (old / "edges-0").write_text("x")
    os.utime(old, (0, 0))
    with folder_beside(tmp_path / "g.kne") as folder:
        assert folder.is_dir()
        assert not old.exists()
    assert not os.listdir(tmp_path)


def test_too_little_memory_is_told(tmp_path, parts, monkeypatch):
    path = tmp_path / "g.tsv"
    path.write_text(text(np.random.default_rng(1), "ascii", False))
    with pytest.raises(ParameterError, match=r"memory='1 MiB': must be at least [0-9]+ MiB"):
        convert_edges(str(path), tmp_path / "g.kne", Options(), memory=2**20)
    monkeypatch.setattr(out_of_core, "BATCH", 2**40)
    with pytest.raises(InputError, match="too many parts: more memory makes them larger"):
        convert_edges(str(path), tmp_path / "g.kne", Options())


_PEAK = """
import sys
from pathlib import Path
from kernelne.io.graphs import out_of_core
from kernelne.io.graphs.shared import Options

def told(name):
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index(name) + 1]) << 10

out_of_core.convert_edges("small.tsv", "small.kne", Options())  # compiles
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
before = told("VmRSS:")
out_of_core._room = lambda memory: 2**26
out_of_core.convert_edges("large.tsv", "large.kne", Options())
print(told("VmHWM:") - before)
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak cannot be reset")
def test_memory_is_bounded(tmp_path):
    """In 64 MiB, with some room for allocators; all 42 MB of text at once would take twice as much."""
    ends = np.random.default_rng(0).integers(0, 400_000, (600_000, 2))
    rows = [f"customer-account-{a:012}\tcustomer-account-{b:012}\t1.000000\n" for a, b in ends]
    (tmp_path / "large.tsv").write_text("".join(rows))
    (tmp_path / "small.tsv").write_text("".join(rows[:9]))
    run = subprocess.run([sys.executable, "-c", _PEAK], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 1.25 * 2**26
    assert read_graph(tmp_path / "large.kne").n_edges > 599_000


# Sorted runs


@pytest.mark.parametrize("batch", [1, 64, 10**6])
def test_runs_are_merged_in_order(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(sorted_runs, "BATCH", batch)
    rng = np.random.default_rng(0)
    runs = SortedRuns(tmp_path / "run")
    given = []
    for number, size in enumerate([0, 500, 1, 300, 40]):
        keys = np.sort(rng.integers(0, 20 if number == 3 else 400, size)).astype(np.uint64)
        given += [(int(key), number, place) for place, key in enumerate(keys)]
        runs.add(pa.table({"key": keys, "run": np.full(size, number), "place": np.arange(size)}))
    assert (len(runs), runs.n_rows) == (5, len(given))
    merged, last = [], -1
    for parts in runs.merge():
        rows = [tuple(row.values()) for part in parts for row in part.to_pylist()]
        assert rows
        assert min(rows)[0] > last  # equal keys are never in two lists
        last = max(rows)[0]
        merged += sorted(rows, key=lambda row: row[0])  # stable: equal keys in the order of the runs
    assert merged == sorted(given)
    assert not os.listdir(tmp_path)


def test_each_step_of_merging_takes_a_batch_of_each_run(tmp_path, monkeypatch):
    """And not the rest of one batch, which would be a step for each batch of each run."""
    monkeypatch.setattr(sorted_runs, "BATCH", 8 * 50)
    rng = np.random.default_rng(0)
    runs = SortedRuns(tmp_path / "run")
    for _ in range(30):
        runs.add(pa.table({"key": np.sort(rng.random(1000))}))
    assert len(list(runs.merge())) < 3 * 1000 / 50


def test_a_run_on_disk_holds_no_memory(tmp_path):
    runs = SortedRuns(tmp_path / "run")
    before = pa.total_allocated_bytes()
    for _ in range(5):
        runs.add(pa.table({"key": pa.array(range(10**5))}))
    assert pa.total_allocated_bytes() - before < 10**5
