"""Files of graphs: found, fetched from a server on this machine, converted, verified, kept."""

from __future__ import annotations

import gzip
import hashlib
import io
import socket
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from kernelne.datasets import convert, dataset_path, fetch, fetch_dataset, list_datasets, load_dataset
from kernelne.datasets.registry import REGISTRY, Entry
from kernelne.errors import (
    FileFormatError,
    InputError,
    KernelneError,
    MissingDependencyError,
    OutputError,
    ParameterError,
)


def _gzipped(text):
    return gzip.compress(text.encode())


def _mat(**arrays):
    sink = io.BytesIO()
    scipy.io.savemat(sink, arrays, do_compression=True)
    return sink.getvalue()


def _zipped(**files):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("_", "."), text)
    return sink.getvalue()


# Nodes 10, 20, 30, 40 hold together, as do 5 and 7; a self-loop in each.
SNAP = """# Directed graph: toy
# FromNodeId\tToNodeId
20\t10
10\t20
40\t10\r
20\t30
7\t5
7\t7
30\t30
30\t20
"""
SNAP_TEXTS = {"edges": "0 1\n0 3\n1 2\n", "selfloops": "2\n"}

# Entries above 1, one stored zero, one on one side only; node 3 has nothing but its self-loop.
NETWORK = scipy.sparse.csc_matrix(
    (np.array([2.0, 1, 1, 1, 0]), (np.array([0, 1, 2, 3, 3]), np.array([1, 0, 1, 3, 0]))), shape=(4, 4)
)
GROUP = np.array([[0, 1, 0], [1, 0, 1], [0, 0, 1], [1, 1, 1]])
MAT = _mat(network=NETWORK, group=scipy.sparse.csc_matrix(GROUP))
MAT_TEXTS = {"edges": "0 1\n1 2\n", "selfloops": "3\n", "labels": "0 1\n1 0,2\n2 2\n3 0,1,2\n"}

MEMBERSHIPS = np.array([[0.5, 0.5], [0.1, 0.9], [0.0, 0.0], [0.7, 0.3]])
SOFT_TEXTS = MAT_TEXTS | {"labels": "0 0\n1 1\n2 0\n3 0\n"}

GML = """Creator "somebody"
graph
[
  directed 0
  node
  [
    id 0
    label "2"
    community "1"
  ]
  node [ id 1 label "0" community 0 ]
  node [ id 2 label "1" community 1 ]
  edge
  [
    source 2
    target 1
  ]
  edge [ source 0 target 1 ]
]
"""
ORIGINALS = {
    "toy.txt.gz": (convert.giant_component, _gzipped(SNAP), SNAP_TEXTS, 4),
    "toy.txt": (convert.giant_component, SNAP.encode(), SNAP_TEXTS, 4),
    "toy.mat": (convert.mat_groups, MAT, MAT_TEXTS, 4),
    "dense.mat": (convert.mat_groups, _mat(network=NETWORK, group=GROUP), MAT_TEXTS, 4),
    "soft.mat": (convert.mat_memberships, _mat(network=NETWORK, F=MEMBERSHIPS), SOFT_TEXTS, 4),
    "sparse.mat": (
        convert.mat_memberships,
        _mat(network=NETWORK, F=scipy.sparse.csc_matrix(MEMBERSHIPS)),
        SOFT_TEXTS,
        4,
    ),
    "toy.zip": (convert.zipped_gml, _zipped(toy_gml=GML, readme_txt="-"), {"edges": "0 1\n1 2\n"}, 3),
    # By label: 2 - 0 and 1 - 0.
    "toy.gml": (
        convert.gml_communities,
        GML.encode(),
        {"edges": "0 1\n0 2\n", "labels": "0 0\n1 1\n2 1\n"},
        3,
    ),
}


class Site:
    """Pages by path: a body, or a function that answers in its own way; and what was asked for."""

    def __init__(self):
        self.pages, self.asked = {}, []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.asked.append(self.path)
                page = site.pages.get(self.path)
                if page is None:
                    self.send_error(404)
                elif callable(page):
                    page(self)
                else:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(page)))
                    self.end_headers()
                    self.wfile.write(page)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/"


@pytest.fixture
def site():
    site = Site()
    thread = threading.Thread(target=site.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield site
    site.server.shutdown()
    thread.join()
    site.server.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, no data folder, no proxy."""
    monkeypatch.delenv(fetch.DATA, raising=False)
    monkeypatch.setenv(fetch.CACHE, str(tmp_path / "cache" / "kernelne"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache" / "kernelne"


def _entry(source, original="toy.txt.gz", **changes):
    converter, _, texts, n_nodes = ORIGINALS[original]
    values = {
        "description": "a toy",
        "citation": "nobody",
        "source": source,
        "convert": converter,
        "n_nodes": n_nodes,
        "n_edges": texts["edges"].count("\n"),
        "n_loops": texts.get("selfloops", "").count("\n"),
        "n_classes": 0,
        "sha256": {part: hashlib.sha256(text.encode()).hexdigest() for part, text in texts.items()},
    }
    return Entry(**values | changes)


@pytest.fixture
def toy(site, monkeypatch):
    """The name of a graph the site has, as SNAP would."""
    site.pages["/toy.txt.gz"] = _gzipped(SNAP)
    monkeypatch.setitem(REGISTRY, "toy", _entry(site.address + "toy.txt.gz"))
    return "toy"


def _kept(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("original", ORIGINALS)
def test_originals_become_canonical(site, cache, monkeypatch, original):
    site.pages[f"/{original}"] = ORIGINALS[original][1]
    monkeypatch.setitem(REGISTRY, "toy", _entry(site.address + original, original))
    texts = ORIGINALS[original][2]
    assert fetch_dataset("toy") == cache / "toy.edges.gz"
    assert _kept(cache) == sorted(f"toy.{part}.gz" for part in texts)
    for part, text in texts.items():
        assert gzip.decompress((cache / f"toy.{part}.gz").read_bytes()).decode() == text


def test_a_graph_is_loaded_with_and_without_self_loops(site, monkeypatch):
    site.pages["/toy.mat"] = MAT
    monkeypatch.setitem(REGISTRY, "toy", _entry(site.address + "toy.mat", "toy.mat"))
    dataset = load_dataset("toy")
    assert dataset.graph.to_scipy().toarray().tolist() == [
        [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1],
    ]  # fmt: skip
    assert (dataset.name, dataset.description, dataset.citation) == ("toy", "a toy", "nobody")
    assert dataset.source == site.address + "toy.mat"
    assert dataset.labels.nodes.tolist() == [0, 1, 2, 3]
    assert dataset.labels.indicator.tolist() == GROUP.astype(bool).tolist()
    graph = load_dataset("toy", self_loops=False).graph
    assert (graph.n_nodes, graph.n_edges, graph.degrees.tolist()) == (4, 2, [1, 2, 1, 0])


def test_what_is_kept_is_not_fetched_again(site, toy, cache):
    with pytest.raises(InputError, match=r"toy has not been fetched: use fetch_dataset\('toy'\)"):
        dataset_path(toy)
    assert next(i.where for i in list_datasets() if i.name == toy) == "to fetch"
    load_dataset(toy)
    assert load_dataset(toy).graph.n_edges == 4
    assert fetch_dataset(toy) == dataset_path(toy) == cache / "toy.edges.gz"
    assert site.asked == ["/toy.txt.gz"]
    found = next(i for i in list_datasets() if i.name == toy)
    assert (found.where, found.n_nodes, found.n_edges) == ("cache", 4, 4)


def test_a_damaged_file_is_refused_and_replaced_only_when_asked(site, toy, cache):
    fetch_dataset(toy)
    for damaged in (_gzipped("0 1\n"), b"", gzip.compress(b"0 1\n0 3\n1 2\n")[:-9], b"not gzip"):
        (cache / "toy.edges.gz").write_bytes(damaged)
        for use in (load_dataset, dataset_path):
            with pytest.raises(FileFormatError, match=r"toy\.edges\.gz: .*delete it"):
                use(toy)
        assert (cache / "toy.edges.gz").read_bytes() == damaged
        assert load_dataset("karate").graph.n_nodes == 34
        fetch_dataset(toy)
        assert load_dataset(toy).graph.n_edges == 4


def test_files_that_unpack_without_end(site, toy, cache, tmp_path, monkeypatch):
    """They are left after 64 MiB, before all memory is gone and the hash could tell."""
    fetch_dataset(toy)
    (cache / "toy.edges.gz").write_bytes(gzip.compress(bytes(convert.LARGEST + 2**20), 1))
    with pytest.raises(FileFormatError, match=r"toy.edges.gz: unpacks to more than 64 MiB: .*; delete it"):
        load_dataset(toy)
    assert fetch_dataset(toy) == cache / "toy.edges.gz"  # fetched anew
    load_dataset(toy)
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("toy.gml", bytes(convert.LARGEST + 1))
    (tmp_path / "bomb.zip").write_bytes(sink.getvalue())
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("unpacked"))
    with pytest.raises(FileFormatError, match=r"toy.gml unpacks to more than 64 MiB"):
        convert.zipped_gml(tmp_path / "bomb.zip")


def test_the_data_folder_comes_first(site, toy, tmp_path, monkeypatch, cache):
    fetch_dataset(toy)
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv(fetch.DATA, str(folder))
    (folder / "toy.edges.gz").write_bytes(_gzipped(SNAP_TEXTS["edges"]))
    assert dataset_path(toy) == cache / "toy.edges.gz"  # a part is missing there
    (folder / "toy.selfloops.gz").write_bytes(_gzipped(SNAP_TEXTS["selfloops"]))
    assert dataset_path(toy) == fetch_dataset(toy) == folder / "toy.edges.gz"
    assert next(i.where for i in list_datasets() if i.name == toy) == "data folder"
    (folder / "toy.selfloops.gz").write_bytes(_gzipped("1\n"))
    for use in (load_dataset, dataset_path, fetch_dataset):  # nothing of the user's is replaced
        with pytest.raises(FileFormatError, match=r"data/toy\.selfloops\.gz: its text has sha256"):
            use(toy)
    assert gzip.decompress((folder / "toy.selfloops.gz").read_bytes()) == b"1\n"
    monkeypatch.setenv(fetch.DATA, str(tmp_path / "nowhere"))
    with pytest.raises(ParameterError, match=r"KERNELNE_DATA=.*no such folder"):
        load_dataset(toy)


def _short(page):
    """All headers, half of the body."""
    body = _gzipped(SNAP)
    page.send_response(200)
    page.send_header("Content-Length", str(len(body)))
    page.end_headers()
    page.wfile.write(body[: len(body) // 2])


def _unannounced(page):
    """Half of the body, and no word on how long it should be."""
    page.send_response(200)
    page.end_headers()
    page.wfile.write(_gzipped(SNAP)[:40])


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (None, "cannot be downloaded.*404 Not Found"),
        (lambda page: page.send_error(503), "503 Service Unavailable"),
        (_short, "cannot be downloaded"),
        (_unannounced, r"^http://\S+toy.txt.gz: .*corrupt or truncated gzip"),
        (b"", "no edges"),
        (b"<!DOCTYPE html><p>Moved</p>", r"\(toy.txt.gz: is not a gzip file"),
        (_gzipped("<!DOCTYPE html><p>Moved</p>"), "is a web page"),
        (_gzipped(SNAP + "30 40\n"), "the edges made of it have sha256 .*, should have .*nothing was kept"),
        (_gzipped(SNAP.replace("30\t30\n", "")), "the selfloops made of it have sha256 None"),
    ],
    ids=["missing", "busy", "short", "unannounced", "empty", "html", "gzipped-html", "changed", "no-loop"],
)
def test_a_bad_download_leaves_nothing(site, toy, cache, page, message):
    site.pages["/toy.txt.gz"] = page
    with pytest.raises(KernelneError, match=message):
        load_dataset(toy)
    assert _kept(cache) == []
    site.pages["/toy.txt.gz"] = _gzipped(SNAP)
    assert load_dataset(toy).graph.n_edges == 4


@pytest.mark.parametrize(
    ("original", "page"),
    [
        ("toy.mat", MAT[:-40]),
        ("toy.mat", b"not a MATLAB file" * 20),
        ("toy.mat", _mat(network=NETWORK)),
        ("soft.mat", _mat(network=NETWORK, group=GROUP)),
        ("toy.zip", _zipped(toy_gml=GML)[:-30]),
        ("toy.zip", _zipped(readme_txt="-")),
        ("toy.zip", _zipped(toy_gml="graph [ ]")),
    ],
)
def test_other_bytes_are_errors_of_the_file(site, cache, monkeypatch, original, page):
    site.pages[f"/{original}"] = page
    monkeypatch.setitem(REGISTRY, "toy", _entry(site.address + original, original))
    with pytest.raises(FileFormatError, match=original):
        load_dataset("toy")
    assert _kept(cache) == []


def test_offline(site, toy, cache, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/toy.txt.gz"
    monkeypatch.setitem(REGISTRY, "toy", _entry(address))
    with pytest.raises(KernelneError, match=f"{address}: cannot be downloaded .*source=.*KERNELNE_DATA"):
        load_dataset(toy)
    assert _kept(cache) == []


def test_an_original_at_hand_is_converted(site, cache, tmp_path, monkeypatch):
    entry = _entry("toy.gml of somebody", "toy.gml", fetched=False)
    monkeypatch.setitem(REGISTRY, "toy", entry)
    message = (
        "toy cannot be fetched.*toy.gml of somebody.*source=.*toy.edges.gz, toy.labels.gz.*KERNELNE_DATA"
    )
    for use in (load_dataset, fetch_dataset):
        with pytest.raises(InputError, match=message):
            use("toy")
    assert next(i.where for i in list_datasets() if i.name == "toy") == "by hand"
    original = tmp_path / "mine.gml"
    with pytest.raises(FileNotFoundError, match="no such file"):
        fetch_dataset("toy", source=original)
    original.write_text(GML.replace("target 1", "target 2"))
    with pytest.raises(FileFormatError, match=r"mine\.gml: the edges made of it"):
        fetch_dataset("toy", source=original)
    assert _kept(cache) == []
    original.write_text(GML)
    assert fetch_dataset("toy", source=original) == cache / "toy.edges.gz"
    assert load_dataset("toy").labels.single.tolist() == [0, 1, 1]
    assert site.asked == []


def test_interrupted_while_writing(site, toy, cache, monkeypatch):
    compress, written = gzip.compress, []

    def interrupted(text, **options):
        if written:
            raise KeyboardInterrupt
        written.append(text)
        return compress(text, **options)

    with monkeypatch.context() as patch:
        patch.setattr(fetch.gzip, "compress", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch_dataset(toy)
    assert _kept(cache) == ["toy.edges.gz"]  # whole, but alone
    assert load_dataset(toy).graph.n_edges == 4
    assert _kept(cache) == ["toy.edges.gz", "toy.selfloops.gz"]


def test_the_cache_cannot_be_written(toy, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(fetch.CACHE, str(tmp_path / "file" / "cache"))
    with pytest.raises(OutputError, match="cannot be created"):
        fetch_dataset(toy)


def test_without_pooch(toy, cache, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingDependencyError, match=r"\[data\]"):
        load_dataset(toy)
    monkeypatch.delenv(fetch.CACHE)
    with pytest.raises(MissingDependencyError, match="pooch"):
        load_dataset(toy)
    assert next(i.where for i in list_datasets() if i.name == toy) == "to fetch"
    for part, text in SNAP_TEXTS.items():
        (tmp_path / f"toy.{part}.gz").write_bytes(_gzipped(text))
    monkeypatch.setenv(fetch.DATA, str(tmp_path))
    assert load_dataset(toy).graph.n_edges == 4


def test_the_cache_is_the_users(monkeypatch):
    import pooch

    monkeypatch.delenv(fetch.CACHE)
    assert fetch.cache_folder() == pooch.os_cache("kernelne")
