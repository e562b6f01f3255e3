from __future__ import annotations

import errno
import gzip
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelne.errors import FileFormatError, InputError, ParameterError
from kernelne.graph import Graph
from kernelne.io.graphs.read_write import read_graph, write_graph
from kernelne.io.text import lines as text_lines
from kernelne.io.text import tokens

ints = st.one_of(st.integers(0, 12), st.integers(-(2**63), 2**63 - 1))
strings = st.text(
    st.one_of(
        st.sampled_from('01 \t,;"#%-\ufeff{'),
        st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0"),
    ),
    max_size=4,
)


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Write text or bytes to a file and read it as a graph."""

    def read(content: str | bytes, name: str = "graph.txt", **options: Any) -> Graph:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_graph(path, **options)

    return read


def fails(
    read: Any, content: str | bytes, message: str, line: int | None, text: str | None = None, **options: Any
):
    with pytest.raises(FileFormatError, match=message) as caught:
        read(content, **options)
    assert caught.value.line == line
    assert caught.value.text == text
    assert "\n" not in str(caught.value)


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return sink.getvalue().to_pybytes()


def test_a_plain_file(read):
    graph = read("3 1\n1 2\n2 1\n")
    assert graph.nodes.tolist() == [1, 2, 3]
    assert graph.nodes.dtype == np.int64
    assert graph.to_scipy().toarray().tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert graph.weights is None
    assert not graph.directed
    directed = read("3 1\n1 2\n2 2\n", directed=True, drop_self_loops=True)
    assert directed.to_scipy().toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("separator", ["\t", ",", ";", " ", "  \t ", " , "])
def test_separators_are_found(read, separator):
    graph = read(f"a{separator}b{separator}1.5\nc{separator}b{separator}2\n")
    assert graph.fingerprint == Graph.from_edges(["a", "c"], ["b", "b"], [1.5, 2]).fingerprint


def test_separators_are_found_in_spite_of_ids(read):
    assert read("New York\tOslo\nRome\tNew York\n").nodes.tolist() == ["New York", "Oslo", "Rome"]
    assert read("1\t2\n3 4\n5  6\n").nodes.tolist() == [1, 2, 3, 4, 5, 6]
    assert read("1\t\t2\n3\t4\n").nodes.tolist() == [1, 2, 3, 4]
    assert read("1\t2\t\n3\t4\t\n").nodes.tolist() == [1, 2, 3, 4]
    assert read("a,1\tb\n", separator="\t").nodes.tolist() == ["a,1", "b"]
    assert read("a,1 b\n", separator=" ").nodes.tolist() == ["a,1", "b"]
    assert read("a|b\nc|d\n", separator="|").nodes.tolist() == ["a", "b", "c", "d"]
    assert read("a,1 b;2\n", separator="space").nodes.tolist() == ["a,1", "b;2"]
    for name, mark in {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";"}.items():
        assert read(f"New York{mark}b\n", separator=name).nodes.tolist() == ["New York", "b"]
    for bad in ("", "ab", '"', "é", "\n"):
        with pytest.raises(ParameterError, match=r"separator=.* one of \\t, tab, comma, semicolon, space"):
            read("1 2\n", separator=bad)


def test_marks_inside_quotes_do_not_separate(read):
    for line in ('a,"b\tc"', 'a,"b;c"', 'a,"b c"'):
        assert read(f"{line}\n", name="g.csv").nodes.tolist() == ["a", line[3:-1]]


@pytest.mark.parametrize("between", [" ; ", ";", "\t", " "])
def test_decimal_commas_are_told(read, between):
    for header in ("", between.join(["left", "right", "score"]) + "\n"):
        lines = [between.join(fields) for fields in (("TP53", "MDM2", "0,5"), ("TP53", "ATM", "12,25"))]
        content = header + "\n".join(lines)
        fails(read, content, "expected a weight.*; decimal comma. write 0.5", 1 + bool(header), lines[0])
        assert read(content, weighted=False).nodes.tolist() == ["ATM", "MDM2", "TP53"]
    first = between.join(["a", "b", "0,5"])
    fails(read, f"{first}\n{between.join('cd1')}\n", "decimal comma", 1, first)


def test_too_many_columns_name_a_way_out(read):
    for mark in ",;\t ":
        for last in {",": ("5", "binds to"), " ": ("5",)}.get(mark, ("5", "0,5")):
            line = mark.join(["a", "b", "x", last])
            fails(read, f"{line}\n{line}\n", r"source and target\? Name them or give their numbers", 1, line)
            edge = read(f"{line}\n{line}\n", source=3, target="1", weight=False)
            assert edge.nodes.tolist() == ["a", "x"]
    fails(read, "a|b|x|5\n", "which of the columns '1', '2', '3', '4'", 1, "a|b|x|5", separator="|")


edge_lists = st.one_of(
    st.lists(st.tuples(ints, ints), min_size=1, max_size=30),
    st.lists(st.tuples(*[st.text("abcé01", min_size=1, max_size=3)] * 2), min_size=1, max_size=30),
)


@settings(deadline=None)
@given(edge_lists, st.booleans(), st.data())
def test_a_noisy_file_is_the_clean_file(edges, weighted, data):
    rows = [[*map(str, edge), *(["0.5"] if weighted else [])] for edge in edges]
    noise = st.lists(st.sampled_from(["", "   ", "\t", "# 1 2", "  % x,y", "#"]), max_size=2)
    blanks = st.text(" \t", max_size=2)
    noisy = ""
    for row in rows:
        for extra in data.draw(noise):
            noisy += extra + data.draw(st.sampled_from(["\n", "\r\n"]))
        gaps = [data.draw(blanks) + data.draw(st.sampled_from(" \t")) for _ in row[1:]]
        line = "".join(field + gap for field, gap in zip(row, [*gaps, data.draw(blanks)], strict=True))
        noisy += data.draw(blanks) + line + data.draw(st.sampled_from(["\n", "\r\n"]))
    if data.draw(st.booleans()):
        noisy = noisy.removesuffix("\n").removesuffix("\r")
    bom = data.draw(st.sampled_from(["", "\ufeff"]))
    with tempfile.TemporaryDirectory() as folder:
        clean_path, noisy_path = Path(folder, "clean.txt"), Path(folder, "noisy.EDGES")
        clean_path.write_text("".join(" ".join(row) + "\n" for row in rows))
        noisy_path.write_bytes((bom + noisy).encode())
        clean = read_graph(clean_path, header=False)
        assert read_graph(noisy_path, header=False, separator=" ").fingerprint == clean.fingerprint
    if isinstance(edges[0][0], int):
        expected = Graph.from_edges(*zip(*edges, strict=True), [0.5] * len(edges) if weighted else None)
        assert clean.fingerprint == expected.fingerprint


def test_noise_without_a_separator_given(read):
    clean = read("1 2\n3 4\n")
    noisy = b"\xef\xbb\xbf# a comment\r\n\r\n%another\n 1\t 2 \r\n   \n3 4"
    assert read(noisy).fingerprint == clean.fingerprint
    assert read(b"\xef\xbb\xbf1,2\r\n3 , 4").fingerprint == clean.fingerprint


def test_ids_are_integers_only_when_all_are_plain(read):
    assert read("0 -5\n9223372036854775807 -9223372036854775808\n").nodes.tolist() == [
        -(2**63),
        -5,
        0,
        2**63 - 1,
    ]
    for odd in (
        "01",
        "1.0",
        "+1",
        "-0",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551617",
        "1_000",
        "１",
        "00",
        "-",
        "1e3",
    ):
        graph = read(f"1 2\n3 {odd}\n")
        assert graph.nodes.tolist() == sorted(["1", "2", "3", odd], key=str.encode)
    assert read('"1","2"\n3,4\n').nodes.tolist() == ["1", "2", "3", "4"]
    wide = read("1 2\n3000000000 4\n")
    assert wide.nodes.tolist() == [1, 2, 4, 3000000000]


def test_ids_are_kept_byte_for_byte(read):
    composed, decomposed = "é", "e\u0301"
    assert len(read(f"{composed} {decomposed}\nx\u00a0y {'z' * 5000}\n").nodes) == 4


def test_quoted_fields(read):
    graph = read('"a,b","say ""hi"""\n " c " , d\n"",#e\n', name="g.csv")
    assert graph.nodes.tolist() == ["", " c ", "#e", "a,b", "d", 'say "hi"']
    assert read('"a\tb"\tc\t"2.5"\n').weights.tolist() == [2.5, 2.5]
    fails(read, 'a,b\n"c,d\n', "closing quote", 2, '"c,d')
    fails(read, 'a,b\n"c"x,d\n', "closing quote", 2, '"c"x,d')
    fails(read, '"a,b\nc,d\n', "closing quote", 1, '"a,b', separator=",")


@pytest.mark.parametrize(
    ("content", "n_edges"),
    [
        ("source target\na b\n", 1),
        ("SRC,Dst\na,b\n", 1),
        ("u\tv\tweight\na\tb\t1\n", 1),
        ('"from","to"\n"a","b"\n', 1),
        ("left right\n1 2\n3 4\n", 2),
        ("a b w\nc d 1\n", 1),
        ('"left","right"\n"1","2"\n', 1),
        ('"1","2"\n3,4\n', 2),
        ("a b\nc d\n", 2),
        ("a 1\n2 3\n", 2),
        ("a b\nc 2\n", 2),
        ("1 2\na b\n", 2),
        ("# source target\nx y\n", 1),
    ],
)
def test_headers_are_found(read, content, n_edges):
    assert read(content).n_edges == n_edges


@pytest.mark.parametrize(
    ("content", "nodes", "weights"),
    [
        (",source,target\n0,5,6\n1,6,7\n", [5, 6, 7], None),
        (",source,target\n0,a,b\n", ["a", "b"], None),
        (",citing,cited\n0,5,6\n", [5, 6], None),
        (",source,target,weight\n0,1,2,3\n", [1, 2], [3, 3]),
        ("weight,source,target\n1,5,6\n2,6,7\n", [5, 6, 7], [1, 1, 2, 2]),
        ("weight,source,target\n1.5,a,b\n", ["a", "b"], [1.5, 1.5]),
        ("Weight,left,right\n1,5,6\n", [5, 6], [1, 1]),
        ("source,weight,target\n5,1,6\n", [5, 6], [1, 1]),
        ("TARGET\tn\tSource\n5\t1\t6\n", [5, 6], [1, 1]),
    ],
)
def test_columns_are_found_by_their_names(read, content, nodes, weights):
    for header in (None, True):
        graph = read(content, header=header)
        assert graph.nodes.tolist() == nodes
        assert (None if graph.weights is None else graph.weights.tolist()) == weights
        assert read(content, header=header, weighted=False).weights is None


def test_a_target_before_its_source(read):
    arcs = read("target,source\n5,6\n", directed=True)
    assert arcs.nodes[np.flatnonzero(arcs.degrees)].tolist() == [6]
    assert read("v u\nb a\n", directed=True).nodes.tolist() == ["a", "b", "u", "v"]  # these are letters


def test_headers_can_be_forced(read):
    assert read("a b\nc d\n", header=True).nodes.tolist() == ["c", "d"]
    assert read("source target\n1 2\n", header=False).nodes.tolist() == ["1", "2", "source", "target"]
    fails(read, "a b w\nc d 1\n", "expected a weight", 1, "a b w", header=False)
    fails(read, "source target\n", r"read as a header; header=False \(--no-header\)", None)
    assert read("source target\n", header=False).n_edges == 1


def test_the_third_column_tells_a_header_whether_it_is_read_or_not(read):
    for weighted in (None, False, True):
        graph = read("protein1,protein2,combined_score\nA,B,900\nC,B,150\n", weighted=weighted)
        assert graph.nodes.tolist() == ["A", "B", "C"]
    for missing in ("NA", "nan", "-inf", "", "?", "1,5"):  # no name: the edge is not lost
        assert read(f"a;b;{missing}\nc;d;1\n", weighted=False).n_edges == 2
        fails(read, f"a;b;{missing}\nc;d;1\n", "expected a weight", 1, f"a;b;{missing}")
    assert read("a b x\nc d 1\ne f y\ng h z\n", weighted=False).n_edges == 4


@pytest.mark.parametrize(
    "names",
    [
        "protein1,protein2",
        "geneA,geneB",
        "Gene_A,Gene_B",
        "Protein A,Protein B",
        "interactor_a,interactor_b",
        "Gene symbol,Partner",
        "from_account,to_account",
        "pos-x,pos-y",
    ],
)
def test_a_line_that_may_be_a_header_must_be_settled(read, names, tmp_path):
    content = f"# c\n{names}\nTP53,MDM2\nTP53,ATM\n"
    message = r"column names, or an edge\? header=True \(--header\) or header=False \(--no-header\)"
    fails(read, content, message, 2, names)
    fails(read, content.replace("\n", ",x\n"), message, 2, f"{names},x", weighted=False)
    first, second = names.split(",")
    graph = read(content, header=False)
    assert graph.n_edges == 3
    assert read(content, header=True).n_edges == 2
    assert read(content + f"{second},ATM\n").n_edges == 4  # used again: an id
    assert read(content, nodes=[first]).n_edges == 3
    write_graph(graph, tmp_path / "back.csv")
    assert read_graph(tmp_path / "back.csv").fingerprint == graph.fingerprint


def test_a_common_edge_gets_no_warning(read):
    for line in ("a b", "TP53 MDM2", "p1 p2", "01 02", "gene1 gene3", "id_x9 other"):
        assert read(f"{line}\nx y\n").n_edges == 2


def test_weights(read):
    assert read("1 2 3\n2 1 .25\n").weights.tolist() == [3.25, 3.25]
    assert read("1 2 3\n2 1 x\n", weighted=False).weights is None
    assert read("1 2 1\n", weighted=True).weights.tolist() == [1, 1]
    fails(
        read,
        "# c\n1 2\n",
        r"no weights \(weighted=True, --weighted\): expected 3 fields",
        2,
        "1 2",
        weighted=True,
    )
    for bad in (
        "nan",
        "inf",
        "-1",
        "1e999",
        "x",
        "1_0",
        "0x1",
        "1e",
        "--1",
        ".",
        "1.2.3",
        "1,5",
        "-inf",
        "e5",
        "1e39",  # infinite as float32, in which a graph keeps it
        "1e-60",  # zero
    ):
        fails(
            read,
            f"1 2 3\n\n4 5 {bad}\n",
            "expected a weight, a finite number that is not negative",
            3,
            f"4 5 {bad}",
        )
    fails(read, "1,2,3\n4,5,\n", r"weighted=False \(--unweighted\) ignores", 2, "4,5,")
    with pytest.warns(UserWarning, match="weight zero dropped: 2") as caught:
        graph = read("1 2 0\n2 3 0.0\n3 4 1\n")
    assert len(caught) == 1
    assert graph.nodes.tolist() == [1, 2, 3, 4]
    assert graph.n_edges == 1


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(
        st.floats(0, allow_infinity=False).map(repr),
        st.floats(0, 1e6, width=32).map(lambda x: f"{x:.9g}"),
        st.from_regex(
            r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True
        ),
    )
)
def test_numbers_are_those_of_python(text):
    if not text.isascii():
        return
    data = np.frombuffer(bytearray(text.encode()), np.uint8)
    value, expected = tokens.parse_number(data, 0, len(data)), float(text)
    if expected == 0 or abs(expected) < 1e-300:
        assert value == pytest.approx(expected, abs=1e-300)
    elif abs(expected) > 1e305:  # the last place decides whether it is infinite
        assert abs(value) > 1e305
    else:
        assert value == pytest.approx(expected, rel=1e-15)


def test_ragged_lines(read):
    fails(read, "# x\n1 2\n\n3\n", "expected 2 fields separated by whitespace", 4, "3")
    fails(read, "1,2\n3\n4,5\n", "expected 2 fields separated by commas", 2, "3")
    fails(read, "1\t2\n3\t4\t5\n6\t7\n", "expected 2 fields separated by tabs", 2, "3\t4\t5")
    fails(read, "1;2;3\n3;4\n5;6;7\n", "expected 3 fields separated by semicolons", 2, "3;4")
    fails(read, "1 2 3 4\n", "which of the columns '1', '2', '3', '4'", 1, "1 2 3 4")
    fails(read, "\n1,2,3,4\n", "which of the columns", 2, "1,2,3,4")
    fails(read, "% c\n\n17\r\n", "expected 2 or 3 fields", 3, "17")
    fails(read, "a,b\n,c\n", "found an empty field", 2, ",c")
    fails(read, "a,b\n ,c\n", "found an empty field", 2, " ,c")


def test_errors_name_the_column(read):
    skip = r"; skip_bad=True \(--skip-bad\) leaves out such lines"
    sales = "buyer,seller,amount,timestamp\nann,bob,2.5,2024-01-01\n"
    columns = {"time": "timestamp", "weight": "amount"}
    for line, message in (
        ("ann,cem,36.94,", "expected a time in the column 'timestamp', found an empty field" + skip),
        ("ann,,36.94,2024-01-02", "expected an id in the column 'seller', found an empty field" + skip),
        ("ann,cem,,2024-01-02", "expected a weight, .* in the column 'amount'" + skip),
        ("ann,cem,NA,2024-01-02", "expected a weight, .* in the column 'amount'" + skip),
    ):
        fails(read, f"{sales}{line}\n", message, 3, line, **columns)
        with pytest.warns(UserWarning, match="1 line left out, 3"):
            assert read(f"{sales}{line}\n", skip_bad=True, **columns).n_edges == 1
    score = "score,a,b\n1,x,y\n2,5;x,z\n"
    fails(read, "score,a,b\n1,x,y\n,x,z\n", "in the column 'score'", 3, ",x,z", weight="score")
    fails(read, "1,2\n,3\n", "expected an id in column 1, found", 2, ",3")
    assert read(score, weight="score").nodes.tolist() == ["5;x", "x", "y", "z"]


def test_words_between_source_and_target_are_no_weights(read):
    """As in .sif files: the kind of an edge."""
    edges = "a\tpp\tb\nb\tpd\tc\n"
    graph = read(edges, source=1, target=3)
    assert graph.fingerprint == Graph.from_edges(["a", "b"], ["b", "c"]).fingerprint
    assert read(f"from\tkind\tto\n{edges}", source="from", target="to").fingerprint == graph.fingerprint
    assert read("a\t2\tb\nb\t3\tc\n", source=1, target=3).weights.tolist() == [2, 2, 3, 3]
    fails(read, "a\tNA\tb\nb\tNA\tc\n", "expected a weight", 1, "a\tNA\tb", source=1, target=3)
    fails(read, edges, "expected a weight, .* in column 2", 1, "a\tpp\tb", source=1, target=3, weight=2)


BAD = "1 2 1\n2 3\n2 3 0.5\n3 4 nan\n4 5 -1\nfoo bar baz\n6 7 8 9\n5 6 inf\n6 7 2\n"


def test_bad_lines_are_left_out_if_asked(read, tmp_path):
    fails(read, BAD, "expected 3 fields", 2, "2 3")
    expected = re.escape(
        f"{tmp_path / 'graph.txt'}: 6 lines left out, 2, 4, 5, …: expected 3 fields separated by whitespace, "
        "with a weight that is finite and not negative"
    )
    with pytest.warns(UserWarning, match=f"^{expected}$") as caught:
        graph = read(BAD, skip_bad=True)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    # Integers, for all that the words of a bad line are none.
    assert graph.nodes.tolist() == [1, 2, 3, 6, 7]
    assert graph.weights.tolist() == [1, 1, 0.5, 0.5, 2, 2]


@pytest.mark.parametrize(
    ("content", "left_out", "nodes"),
    [
        ("1 2\n3\n2 3\n", "1 line left out, 2: expected 2 fields separated by whitespace", [1, 2, 3]),
        ("a b\nb c\nc d x\nd e f g\n", "2 lines left out, 3, 4: expected 2", ["a", "b", "c"]),
        (
            '1,2\n,3\n2,\n"2,3\n3,1\n',
            "3 lines left out, 2, 3, 4: .* separated by commas",
            [1, 2, 3],
        ),
        ("source,target,weight\n# note\n1,2\n1,2,0.5\n", "1 line left out, 3: expected 3", [1, 2]),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_what_counts_as_a_bad_line(read, content, left_out, nodes, ending):
    with pytest.warns(UserWarning, match=left_out):
        graph = read(content.replace("\n", ending), skip_bad=True)
    assert graph.nodes.tolist() == nodes


def test_bad_lines_in_a_file_of_many_chunks(read):
    lines = [f"{i} {i + 1}" for i in range(400_000)]
    clean = [line for k, line in enumerate(lines) if k % 1000 != 999]
    for k in range(999, len(lines), 1000):
        lines[k] = "x" * 300
    with pytest.warns(UserWarning, match=r"400 lines left out, 1000, 2000, 3000, …"):
        graph = read("\n".join(lines), skip_bad=True)
    assert graph.fingerprint == read("\n".join(clean)).fingerprint


def test_skipping_has_its_limits(read):
    assert read("1 2\n2 3\n", skip_bad=True).n_edges == 2  # nothing to warn of
    fails(read, "1\n2 3\n", "expected 2 or 3 fields", 1, "1", skip_bad=True)
    fails(read, "1 2\n2\r3\n", "carriage return", 2, "2\r3", skip_bad=True)
    with pytest.warns(UserWarning, match="1 line left out, 1"):
        fails(read, "1 2 x\n", "no edges in the file", None, skip_bad=True, header=False)
    with pytest.raises(ParameterError, match="skip_bad=True: applies to edge lists, not to GML"):
        read("graph []", "g.gml", skip_bad=True)


def test_attributes_of_networkx_get_a_hint(read):
    for line in ("1 2 {}", "1 2 {'weight': 3}", "1 2 {'a': 1, 'b': 2}"):
        fails(read, f"{line}\n{line}\n", "data=False", 1, line)
    far = "1 2 3\n" * 200
    fails(read, far + "1 2 {}\n", "data=False", 201, "1 2 {}")


def test_line_numbers_across_chunks(read):
    n = 4 * text_lines.BUFFER // 12
    lines = [f"{i % 1000:05d} {i % 777:05d}" for i in range(n)]
    lines[n // 2] = "# comment"
    good = read("\n".join(lines))
    assert good.n_nodes == 1000
    expected = Graph.from_edges(*zip(*(line.split() for line in lines if line[0] != "#"), strict=True))
    assert good.fingerprint == expected.fingerprint
    lines[n - 2] = "7"
    fails(read, "\n".join(lines), "expected 2 fields", n - 1, "7")
    whole = [line.replace("0", "9") for line in lines[: n - 2]]
    assert read("\n".join(whole)).nodes.dtype == np.int64
    fails(read, "\n".join([*whole, "1 2 3"]), "expected 2 fields", n - 1, "1 2 3")


def test_leading_comments_longer_than_a_chunk(read):
    assert read("# comment\n" * 300_000 + "5 6\n").nodes.tolist() == [5, 6]


def test_long_lines_are_refused(read):
    longest = "a" * (text_lines.MAX_LINE - 2) + " b"
    assert read(f"c d\n{longest}\n").n_nodes == 4
    for size in (text_lines.MAX_LINE + 1, 3 * text_lines.MAX_LINE):
        with pytest.raises(FileFormatError, match="a line longer than") as caught:
            read("c d\n" * 10 + "a" * size + "\n1 2\n")
        assert caught.value.line == 11
    with pytest.raises(FileFormatError, match="a line longer than"):
        read("1 2\n#" + "a" * 3 * text_lines.MAX_LINE)


def test_what_is_not_text_is_refused(read):
    fails(read, b"1 2\n3 4\n5 \x00\n", "not UTF-8 text", 3, "5 \x00")
    fails(read, b"1 2\n\n\xff\xfe 4\n", "not UTF-8 text", 3, "\\xff\\xfe 4")
    fails(read, "# café\n1 2\n".encode("latin-1"), "not UTF-8 text", 1, "# caf\\xe9")
    late = b"1 2\n" * (text_lines.BUFFER // 2) + b"\x80 1\n"
    fails(read, late, "not UTF-8 text", text_lines.BUFFER // 2 + 1, "\\x80 1")
    fails(read, "1 2\n3 4\r5 6\n", "a carriage return inside a line", 2, "3 4\r5 6")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 1 2\n", "is an Excel or zip file: save it as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "is an old Excel file: save it as CSV"),
        (gzip.compress(b"1 2\n", mtime=0), r"is compressed by gzip: name it graph\.txt\.gz$"),
        (zstd(b"1 2\n"), r"is compressed by zstd: name it graph\.txt\.zst$"),
        (b"\xff\xfe" + "1 2\n".encode("utf-16-le"), "is UTF-16: save it as UTF-8"),
        (b"\xfe\xff" + "1 2\n".encode("utf-16-be"), "is UTF-16: save it as UTF-8"),
        (b"%PDF-1.7\n1 2\n", "is a PDF file"),
        (b"\n<!DOCTYPE html>\n<html>", "is a web page"),
        (b"\xef\xbb\xbf<HTML>\n", "is a web page"),
        (b'<?xml version="1.0"?>\n<graphml>\n', "is an XML file"),
    ],
)
def test_other_kinds_of_files_are_recognised(read, content, message, tmp_path):
    fails(read, content, message, None)
    (tmp_path / "nodes.txt").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"nodes\.txt: is "):
        read("1 2\n", nodes=tmp_path / "nodes.txt")


def test_zstd_may_start_with_a_frame_to_skip(read):
    assert read(b"\x50\x2a\x4d\x18\x01\0\0\0x" + zstd(b"1 2\n"), name="g.txt.zst").n_edges == 1


def test_empty_files(read):
    for content in ("", "\n\n", "# only\n% comments", "\ufeff"):
        fails(read, content, "no edges in the file", None)
        assert read(content, nodes=[4, 2]).nodes.tolist() == [4, 2]
    for name in ("empty.txt.gz", "empty.txt.zst"):
        fails(read, b"", "no edges in the file", None, name=name)


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".zst", zstd), (".GZ", gzip.compress)]
)
def test_compressed_files(read, suffix, compress):
    data = "".join(f"{i} {i * i}\n" for i in range(300_000)).encode()
    graph = read(data)
    packed = compress(data)
    name = "graph.tsv" + suffix
    assert read(packed, name=name).fingerprint == graph.fingerprint
    half = data.index(b"\n", len(data) // 2) + 1
    assert read(compress(data[:half]) + compress(data[half:]), name=name).fingerprint == graph.fingerprint
    for broken in (packed[: len(packed) // 2], packed[:-1], packed[:7], packed + b"garbage"):
        fails(read, broken, "corrupt or truncated", None, name=name)
    for other in (b"1 2\n3 4\n", b"1"):
        fails(read, other, "is not a (gzip|zstd) file, despite its suffix", None, name=name)


def test_paths(read, tmp_path):
    for name in ("graph.xlsx", "graph", "graph.gz", "graph.txt.bz2"):
        fails(
            read,
            "1 2\n",
            r"unknown suffix: known suffixes are \.txt \.tsv \.csv \.edges \.edgelist",
            None,
            name=name,
        )
    for name in ("graph.TXT", "graph.edgelist", "graph.v2.csv"):
        assert read("1,2\n", name=name).n_edges == 1
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read_graph(tmp_path / "missing.txt")
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_graph(tmp_path / "folder.txt")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_a_pipe_is_refused_without_waiting_for_it(tmp_path, suffix):
    pipe, edges = tmp_path / f"pipe{suffix}", tmp_path / "edges.txt"
    os.mkfifo(pipe)
    edges.write_text("1 2\n")
    for read in (lambda: read_graph(pipe), lambda: read_graph(edges, nodes=pipe)):
        with pytest.raises(InputError, match="is a device or a pipe, give the name of an ordinary file"):
            read()


def test_a_file_that_may_not_be_read_is_one_clear_line(tmp_path, monkeypatch):
    def refuse(*_args, **_kwargs):  # by hand, because root may read everything
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    (tmp_path / "edges.txt").write_text("1 2\n")
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(InputError, match=f"edges.txt: cannot be read: {os.strerror(errno.EACCES)}$"):
        read_graph(tmp_path / "edges.txt")


def test_nodes_from_a_list(read):
    assert read("1 2\n", nodes=[5, 2]).nodes.tolist() == [5, 2, 1]
    assert read("1 2\n", nodes=["x"]).nodes.tolist() == ["x", "1", "2"]
    assert read("1 2\n", nodes=[]).nodes.tolist() == [1, 2]
    with pytest.raises(InputError, match="nodes are int, sources are str"):
        read("a b\n", nodes=[1])
    with pytest.raises(InputError, match="appears more than once"):
        read("1 2\n", nodes=[1, 1])


def test_nodes_from_a_file(read, tmp_path):
    def nodes(text: str | bytes, name: str = "nodes.txt") -> str:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    assert read("1 2\n", nodes=nodes("\ufeff# ids\r\n7 seven\r\n\n2 two")).nodes.tolist() == [7, 2, 1]
    assert read("1 2\n", nodes=nodes("id\n7\n")).nodes.tolist() == [7, 1, 2]
    for header in (False, None):  # a name that is not a usual header is a node, never lost
        assert read("1 2\n", nodes=nodes("x\n7\n"), header=header).nodes.tolist() == ["x", "7", "1", "2"]
    assert read("1 2\n", nodes=nodes("id\n7\n"), header=False).nodes.tolist() == ["id", "7", "1", "2"]
    assert read("a 2\n", nodes=nodes("7\n")).nodes.tolist() == ["7", "2", "a"]
    assert read("a\tb\n", nodes=nodes("New York\n")).nodes.tolist() == ["New York", "a", "b"]
    assert read("1 2\n", nodes=nodes('3,"x y"\n4,z\n')).nodes.tolist() == [3, 4, 1, 2]
    assert read("1 2\n", nodes=nodes(gzip.compress(b"9\n"), "ids.gz")).nodes.tolist() == [9, 1, 2]
    assert read("", nodes=Path(nodes("9\n8\n"))).nodes.tolist() == [9, 8]
    assert read("1 2\n", nodes=nodes("")).nodes.tolist() == [1, 2]
    with pytest.raises(FileFormatError, match=r"bad\.txt:2: not UTF-8") as caught:
        read("1 2\n", nodes=nodes(b"1\n\xff\n", "bad.txt"))
    assert caught.value.line == 2
    with pytest.raises(InputError, match="the id 3 appears more than once"):
        read("1 2\n", nodes=nodes("3\n3\n"))
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read("1 2\n", nodes="missing.txt")


@settings(deadline=None)
@given(
    st.one_of(
        st.lists(st.tuples(ints, ints), min_size=1, max_size=20),
        st.lists(st.tuples(strings, strings), min_size=1, max_size=20),
        st.just([("source", "target"), ("a", "b")]),
        st.just([("a", "b"), ("1", "2")]),
        st.just([("1", "2"), ("2", "3")]),
    ),
    st.one_of(st.none(), st.floats(2.0**-140, 2.0**120, width=32)),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["g.txt", "g.tsv", "g.csv", "g.edges.gz", "g.csv.zst"]),
)
def test_what_is_written_is_read_back(edges, weight, directed, as_given, name):
    sources, targets = zip(*edges, strict=True)
    weights = None if weight is None else [weight] * len(edges)
    nodes = list(dict.fromkeys(node for edge in edges for node in edge)) if as_given else None
    graph = Graph.from_edges(sources, targets, weights, nodes, directed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write_graph(graph, path)
        back = read_graph(path, directed=directed, nodes=nodes)
        kind = read_graph(path).nodes.dtype
        assert os.listdir(folder) == [name]
    assert back.fingerprint == graph.fingerprint
    assert kind == graph.nodes.dtype


def test_the_text_that_is_written(tmp_path):
    graph = Graph.from_edges([2, 1, 3], [1, 3, 3], [0.1, 2, 1e-7])
    write_graph(graph, tmp_path / "g.txt")
    assert (tmp_path / "g.txt").read_text() == "1\t2\t0.1\n1\t3\t2\n3\t3\t1e-7\n"
    write_graph(Graph.from_edges(["b", "b,"], ["a", "x"], directed=True), tmp_path / "g.csv")
    assert (tmp_path / "g.csv").read_text() == 'b,a\n"b,",x\n'
    write_graph(Graph.from_edges([3], [1], directed=True), tmp_path / "g.tsv.gz")
    write_graph(Graph.from_edges(["u"], ["v"], [2]), tmp_path / "header.txt")
    assert (tmp_path / "header.txt").read_text() == "source\ttarget\tweight\nu\tv\t2\n"
    assert gzip.decompress((tmp_path / "g.tsv.gz").read_bytes()) == b"3\t1\n"


def test_writing_in_blocks(tmp_path):
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(*rng.integers(0, 50_000, (2, 400_000)), rng.random(400_000) + 0.1)
    write_graph(graph, tmp_path / "g.tsv.zst")
    assert read_graph(tmp_path / "g.tsv.zst").fingerprint == graph.fingerprint


def test_isolated_nodes_are_left_out_with_a_warning(tmp_path):
    graph = Graph.from_edges(["1"], ["2"], nodes=["x", "y", "2"], directed=True)
    with pytest.warns(
        UserWarning, match=r"2 nodes without edges are left out.*nodes=\) \(--nodes\) restores them"
    ):
        write_graph(graph, tmp_path / "g.txt")
    assert read_graph(tmp_path / "g.txt", directed=True).nodes.tolist() == ["1", "2"]
    back = read_graph(tmp_path / "g.txt", directed=True, nodes=graph.nodes)
    assert back.fingerprint == graph.fingerprint
    alone = Graph.from_edges([], [], nodes=[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_graph(alone, tmp_path / "alone.txt")
    assert read_graph(tmp_path / "alone.txt", nodes=[1]).fingerprint == alone.fingerprint


def test_write_graph_refuses(tmp_path):
    path = tmp_path / "g.txt"
    graph = Graph.from_edges([1], [2])
    path.write_text("old")
    with pytest.raises(InputError, match="already exists"):
        write_graph(graph, path)
    assert path.read_text() == "old"
    write_graph(graph, path, overwrite=True)
    assert path.read_text() == "1\t2\n"
    with pytest.raises(FileFormatError, match="unknown suffix"):
        write_graph(graph, tmp_path / "g.xlsx")
    for odd in ("a\nb", "a\rb", "a\0b"):
        with pytest.raises(InputError, match="contains a line break or NUL"):
            write_graph(Graph.from_edges(["a"], [odd]), tmp_path / "h.txt")
    nx = pytest.importorskip("networkx")
    with pytest.raises(InputError, match="all ints or all strs"):
        write_graph(Graph.from_networkx(nx.Graph([((1, 2), 3)])), tmp_path / "h.txt")
    assert os.listdir(tmp_path) == ["g.txt"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize("suffix", [b"", b".gz", b".zst"])
def test_names_that_are_not_utf8(tmp_path, suffix):
    name = os.fsencode(tmp_path) + b"/caf\xe9.csv" + suffix
    graph = Graph.from_edges([0, 1], [1, 2], nodes=[2, 1, 0])
    write_graph(graph, os.fsdecode(name))
    nodes = os.fsencode(tmp_path) + b"/n\xe9.txt"
    with open(nodes, "wb") as file:
        file.write(b"2\n1\n0\n")
    for decode in (lambda path: path, os.fsdecode):
        assert read_graph(decode(name), nodes=decode(nodes)).fingerprint == graph.fingerprint
