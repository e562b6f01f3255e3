"""Ids that are 2 GiB of text and more, on a small scale: no array of type string can hold all of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kernelne import Embedding, Graph, InputError, Labels
from kernelne.graph import ids

NAMES = np.array(["ann", "bob", "cem", "dora", "eve"], object)


class _Small:
    """pyarrow, if it could put two strings at most into one array, as it can 2 GiB of them."""

    def __getattr__(self, name):
        return getattr(pa, name)

    def array(self, values, *kind):
        made = pa.array(values, *kind)
        return pa.chunked_array([made[:2], made[2:]]) if pa.types.is_string(made.type) else made


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(ids, "pa", _Small())


def test_the_ids_of_a_graph_are_one_array(small):
    column = ids.id_column(NAMES)
    assert isinstance(column, pa.LargeStringArray)
    assert column.to_pylist() == NAMES.tolist()
    assert ids.id_column(np.array([b"ann", b"bob"], object)) is None  # bytes are no text


def test_graphs_and_labels_of_many_ids(small):
    graph = Graph.from_edges(NAMES[:-1], NAMES[1:])
    assert graph.fingerprint == Graph.from_edges(pa.array(NAMES[:-1]), pa.array(NAMES[1:])).fingerprint
    assert graph.index_of(["eve", "ann"]).tolist() == [4, 0]
    with pytest.raises(InputError, match=r"unknown node id 'bo'.*'bob'"):
        graph.index_of(["bo"])
    assert graph.to_arrow()["source"].type == pa.large_string()
    rows, _ = Labels.from_values(NAMES, list("xyxyx")).among(NAMES[::-1])
    assert rows.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_words_of_a_dictionary_may_come_out_long(kind):
    """A few words in a column of many rows: taken as strings they would not fit into one array."""
    words = pa.array(["ann", "bob"], kind)
    assert ids.plain_strings(words).type == pa.large_string()
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), words)
    found = ids.read_ids(column, "ids")
    assert (found.type, found.to_pylist()) == (pa.large_string(), ["bob", "ann", "bob"])


def test_columns_that_fit_may_have_ids_that_together_do_not(monkeypatch):
    """As the columns of an edge list may, each of which is then of type string."""
    made = []

    class Spy(_Small):
        def chunked_array(self, chunks, *kind):
            made.append(pa.chunked_array(chunks, *kind))
            return made[-1]

    monkeypatch.setattr(ids, "pa", Spy())
    for limit, kind in ((ids._STRING_BYTES, pa.string()), (40, pa.large_string())):
        monkeypatch.setattr(ids, "_STRING_BYTES", limit)
        columns = [pa.chunked_array([pa.array(part)]) for part in (NAMES[:0], NAMES[:3], NAMES[2:])]
        assert columns[1].nbytes < 40 < sum(column.nbytes for column in columns)
        columns[0] = pa.chunked_array([], pa.null())
        found, (sources, targets) = ids.encode_columns(columns)
        assert made[-1].type == kind
        assert found.tolist() == NAMES.tolist()
        assert (sources.tolist(), targets.tolist()) == ([0, 1, 2], [2, 3, 4])


def test_a_table_of_vectors_brings_all_its_ids():
    """Several chunks of type string become one array: of large_string, which holds them."""
    pieces = pa.chunked_array([pa.array(NAMES[:2]), pa.array(NAMES[2:])])
    assert ids.plain_strings(pieces).combine_chunks().type == pa.large_string()
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(10, dtype=np.float32)), 2)
    embedding = Embedding.from_arrow(pa.table({"id": pieces, "vector": vectors}))
    assert embedding.nodes.tolist() == NAMES.tolist()
