"""`kernelne convert` of edge lists that may be larger than the memory."""

from __future__ import annotations

import numpy as np

from cli.running import assert_refused
from kernelne import read_graph
from kernelne.io.graphs import out_of_core
from kernelne.io.text import lines


def test_the_command_converts_in_parts(kernelne, tmp_path, monkeypatch):
    monkeypatch.setattr(out_of_core, "_FOR_PART", 1e-6)
    monkeypatch.setattr(lines, "BUFFER", 2048)
    ends = np.random.default_rng(1).integers(0, 99, (1500, 2))
    (tmp_path / "g.tsv").write_text("".join(f"x{a}\ty{b}\n" for a, b in ends))
    result = kernelne("convert", "g.tsv", "g.kne", "--directed", "--memory", "8GB", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "g.kne\n"), result.stderr
    graph = read_graph(tmp_path / "g.tsv", directed=True)
    assert result.stderr.endswith(f"{repr(graph).strip('<>')}\n")
    assert read_graph(tmp_path / "g.kne").fingerprint == graph.fingerprint
    result = kernelne("convert", "g.kne", "h.graphml", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert read_graph(tmp_path / "h.graphml").fingerprint == graph.fingerprint
    assert kernelne("convert", "h.graphml", "i.kne", "--quiet", cwd=tmp_path) == (0, "", "")
    assert read_graph(tmp_path / "i.kne").fingerprint == graph.fingerprint


def test_the_command_refuses_wrong_sizes(kernelne, tmp_path):
    (tmp_path / "g.tsv").write_text("1\t2\n")
    result = kernelne("convert", "g.tsv", "out.kne", "--memory", "lots", cwd=tmp_path)
    assert_refused(result, tmp_path, "--memory='lots': must be a size such as 8GiB")
    result = kernelne("convert", "g.tsv", "out.kne", "--memory", "1MB", cwd=tmp_path)
    assert_refused(result, tmp_path, "--memory='1 MiB': must be at least")
    result = kernelne("convert", "g.tsv", "out.gml", "--memory", "1GB", cwd=tmp_path)
    assert_refused(result, tmp_path, "--memory='1GB'", "and to .kne")
    result = kernelne("convert", "g.tsv", "out.kne", "--weighted", cwd=tmp_path)
    assert_refused(result, tmp_path, "no weights (weighted=True, --weighted)")
