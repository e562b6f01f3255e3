"""Following a file of edges: batches, what is read, going on after a kill, errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from kernelne import Embedding, Graph, InputError, KernelNE, ParameterError, follow_edges, load_dataset
from kernelne.graph.ops import add_edges

QUICK = {"n_threads": 1, "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def karate():
    graph = load_dataset("karate").graph
    return graph, KernelNE(dim=8, walks_per_node=20, n_threads=1, random_state=0).fit(graph).to_embedding()


def test_edges_are_added():
    graph = Graph.from_edges(["a", "b"], ["b", "c"], [1.0, 2.0])
    more = Graph.from_edges([1, 1], [2, 3])
    both = add_edges(graph, more)
    assert both.nodes.tolist() == ["a", "b", "c", "1", "2", "3"]
    assert both.n_edges == 4
    twice = add_edges(both, Graph.from_edges(["c"], ["b"], [5.0]))
    assert twice.to_scipy()[1, 2] == 7.0
    assert add_edges(more, Graph.from_edges([9], [1], [4.0])).weights is None
    with pytest.raises(InputError, match="integers, those of the new edges strings"):
        add_edges(more, graph)


def test_every_batch_is_yielded(karate, tmp_path):
    graph, embedding = karate
    log = tmp_path / "log.edges"
    log.write_text("0 100\n100 101\n101 ")
    batches = follow_edges(embedding, graph, log, every=2, idle="0.5s", **QUICK)
    first = next(batches)
    assert set(first.nodes) - set(embedding.nodes) == {100, 101}
    assert first.provenance["follow"] == {"file": "log.edges", "lines": 2, "bytes": 14}
    with log.open("a") as file:
        file.write("102\n5 102\n# no edge\n3 ")
    second = next(batches)
    assert set(second.nodes) - set(first.nodes) == {102}
    with log.open("a") as file:
        file.write("33\n")  # fewer lines than a batch: they come at the end
    *_, last = batches
    assert len(last) == len(second)
    assert last.provenance["follow"]["lines"] == 6
    # Only what is new is trained when it starts again from the last one.
    assert list(follow_edges(last, graph, log, idle=0.3, **QUICK)) == []
    (again,) = follow_edges(second, graph, log, idle=0.3, **QUICK)
    assert again.provenance["update"]["changed"] == 2
    assert again.provenance["update"]["new"] == 0


def test_a_header_and_columns(karate, tmp_path):
    graph, embedding = karate
    log = tmp_path / "log.csv"
    log.write_text("when,to,who\n1,200,0\n2,201,0\n")
    columns = {"source": "who", "target": "to", "weight": None}
    made = follow_edges(embedding, graph, log, every="0.1s", idle=0.5, header=True, columns=columns, **QUICK)
    assert set(next(made).nodes) > {200, 201}
    with log.open("a") as file:
        file.write("3,202,200\n")
    assert 202 in next(made).nodes


@pytest.mark.parametrize(
    ("lines", "message"),
    [("0 1\n2\n", "log.edges:2: expected 2 fields"), ("0 x\n", "integers, those of the new edges strings")],
)
def test_bad_lines_are_named(karate, tmp_path, lines, message):
    graph, embedding = karate
    log = tmp_path / "log.edges"
    log.write_text(lines)
    with pytest.raises(InputError, match=message) as found:
        list(follow_edges(embedding, graph, log, idle=0.2, **QUICK))
    assert str(tmp_path) in str(found.value) or "ids" in str(found.value)
    assert "kernelne-" not in str(found.value)


def test_lines_of_later_batches_have_their_numbers(karate, tmp_path):
    graph, embedding = karate
    log = tmp_path / "log.edges"
    log.write_text("0 50\n1 51\n")
    batches = follow_edges(embedding, graph, log, every=1, idle=5, **QUICK)
    next(batches)
    with log.open("a") as file:
        file.write("2 52\n3\n")
    with pytest.raises(InputError, match=r"log.edges:4: expected 2 fields"):
        next(batches)


def test_what_cannot_be_followed(karate, tmp_path):
    graph, embedding = karate
    log = tmp_path / "log.edges"
    log.write_text("0 50\n1 51\n")
    (made,) = follow_edges(embedding, graph, log, idle=0.2, **QUICK)
    log.write_text("0 50\n")
    with pytest.raises(InputError, match="shorter than the 10 bytes"):
        next(follow_edges(made, graph, log, **QUICK))
    for options, message in (
        ({"every": 0}, "every=0"),
        ({"every": "soon"}, "every='soon'"),
        ({"idle": -1}, "idle=-1"),
    ):
        with pytest.raises(ParameterError, match=message):
            next(follow_edges(embedding, graph, log, **options))
    packed = tmp_path / "log.edges.gz"
    packed.write_bytes(b"x")
    with pytest.raises(ParameterError, match="must not be compressed"):
        next(follow_edges(embedding, graph, packed))


def _command(folder, *more):
    return [
        sys.executable, "-m", "kernelne", "update", str(folder / "old.npz"), str(folder / "karate.edges"),
        "-o", str(folder / "now.npz"), "--follow", str(folder / "log.edges"), "--n-threads", "1", *more,
    ]  # fmt: skip


def test_killed_and_started_again(karate, tmp_path):
    """Killed at any moment, the output is whole, and the next run has all edges in it."""
    graph, embedding = karate
    from kernelne import write_graph

    write_graph(graph, tmp_path / "karate.edges")
    embedding.save(tmp_path / "old.npz")
    log, now = tmp_path / "log.edges", tmp_path / "now.npz"
    log.write_text("0 100\n")
    running = subprocess.Popen(_command(tmp_path, "--every", "1", "--quiet"))
    try:
        for new in range(101, 400):
            with log.open("a") as file:
                file.write(f"{new % 34} {new}\n")
            time.sleep(0.05)
            if now.exists() and new > 110:
                break
        assert running.poll() is None
        os.kill(running.pid, signal.SIGKILL)
    finally:
        running.kill()
        running.wait()
    whole = Embedding.load(now)
    assert whole.provenance["follow"]["file"] == "log.edges"
    again = subprocess.run(
        _command(tmp_path, "--idle", "0.3s"), capture_output=True, text=True, timeout=300, check=True
    )
    last = Embedding.load(now)
    expected = {int(line.split()[1]) for line in log.read_text().splitlines()}
    assert set(last.nodes) == set(graph.nodes) | expected
    assert len(last) >= len(whole)
    np.testing.assert_array_equal(last.coefficients, embedding.coefficients)
    assert "following" in again.stderr
    other = subprocess.run(
        [*_command(tmp_path, "--idle", "1s"), "-o", str(tmp_path / "now.csv")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert other.returncode == 2
    assert "must end in .npz or .safetensors" in other.stderr
