"""Arrow's threads read files of Arrow: with those of Python, a process could hang or abort at its end."""

from __future__ import annotations

import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from kernelne import Embedding, Graph, read_graph, write_graph
from kernelne.io.files import open_for_arrow


@pytest.fixture
def given(monkeypatch):
    """What the readers give to Arrow, in turn."""
    found = []
    for module, name in ((pyarrow.parquet, "ParquetFile"), (pyarrow.csv, "read_csv")):
        read = getattr(module, name)

        def spy(source, *rest, _read=read, **options):
            found.append(source)
            return _read(source, *rest, **options)

        monkeypatch.setattr(module, name, spy)
    return found


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".emb"])
def test_vectors_are_read_from_files_of_arrow(tmp_path, given, suffix):
    path = tmp_path / f"e{suffix}"
    Embedding(np.eye(2, dtype=np.float32), [3, 5]).save(path)
    assert Embedding.load(path).nodes.tolist() == [3, 5]
    assert [type(source) for source in given] == [pa.OSFile]


def test_tables_of_edges_are_read_from_files_of_arrow(tmp_path, given):
    write_graph(Graph.from_edges([1, 2], [2, 3]), tmp_path / "g.parquet")
    assert read_graph(tmp_path / "g.parquet").n_edges == 2
    assert [type(source) for source in given] == [pa.OSFile]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no names that are not text")
def test_names_that_are_not_text(tmp_path):
    path = tmp_path / os.fsdecode(b"\xff.bin")
    path.write_bytes(b"abc")
    with open_for_arrow(path) as file:
        assert file.read() == b"abc"
    with pytest.raises(FileNotFoundError):
        open_for_arrow(tmp_path / "missing")
