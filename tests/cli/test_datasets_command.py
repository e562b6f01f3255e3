"""`kernelne datasets`, and graphs given by name."""

from __future__ import annotations

import gzip
import json

import pytest

from cli.running import FAST, assert_refused
from kernelne import Embedding, load_dataset
from kernelne.datasets import fetch
from kernelne.errors import KernelneError

# A few walks leave a mixture where it started, and the estimator says so.
pytestmark = pytest.mark.filterwarnings("ignore:the loss:UserWarning")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path_factory, monkeypatch):
    """No dataset is here, and none is ever fetched."""

    def no_network(address, path):
        raise KernelneError(f"{address}: cannot be downloaded (no network)")

    monkeypatch.delenv("KERNELNE_DATA", raising=False)
    monkeypatch.setenv("KERNELNE_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr("kernelne.datasets.fetch._download", no_network)


def test_list(kernelne, tmp_path):
    result = kernelne("datasets", "list", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["name", "nodes", "edges", "classes", "where", "description"]
    [karate] = [line for line in lines if line.startswith("karate")]
    assert karate.split()[1:6] == ["34", "78", "2", "built", "in"]
    assert lines[0].index("description") == karate.index("friends")
    listed = json.loads(kernelne("datasets", "list", "--json", cwd=tmp_path).stdout)
    assert {"name": "citeseer", "where": "to fetch", "n_nodes": 3312}.items() <= listed[0].items()
    assert [line.split()[0] for line in lines[1:]] == [info["name"] for info in listed]


def test_path_of_what_is_not_here(kernelne, tmp_path):
    for name, words in (
        ("citeseer", ["citeseer has not been fetched", "kernelne datasets fetch citeseer"]),
        ("karate", ["karate", "no file"]),
        ("citesser", ["did you mean citeseer"]),
    ):
        assert_refused(kernelne("datasets", "path", name, cwd=tmp_path), tmp_path, *words)


def test_path_and_fetch_print_the_path(kernelne, tmp_path, monkeypatch):
    monkeypatch.setattr("kernelne.datasets.dataset_path", lambda name: tmp_path / f"{name}.here")
    assert kernelne("datasets", "path", "cora", cwd=tmp_path).stdout == f"{tmp_path / 'cora.here'}\n"
    asked = []

    def fetch_dataset(name, *, source=None):
        asked.append((name, source and source.name))
        return tmp_path / f"{name}.fetched"

    monkeypatch.setattr("kernelne.datasets.fetch_dataset", fetch_dataset)
    (tmp_path / "cora.gml").touch()
    result = kernelne("datasets", "fetch", "cora", "--source", "cora.gml", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, f"{tmp_path / 'cora.fetched'}\n")
    result = kernelne("datasets", "fetch", "ppi", cwd=tmp_path)
    assert result.stderr == "fetching ppi …\n"
    assert asked == [("cora", "cora.gml"), ("ppi", None)]


def test_fetch_that_cannot_be(kernelne, tmp_path):
    for args, words in (
        (["karate"], ["no file"]),
        (["none"], ["known datasets are"]),
        (["cora"], ["cora cannot be fetched", "kernelne datasets fetch cora --source FILE"]),
        (["cora", "--source", "none.gml"], ["none.gml"]),
    ):
        assert_refused(kernelne("datasets", "fetch", *args, cwd=tmp_path), tmp_path, *words)
    result = kernelne("datasets", "fetch", "citeseer", cwd=tmp_path)
    assert result.returncode == 1
    assert "cannot be downloaded" in result.stderr


def test_no_subcommand_shows_the_help(kernelne, tmp_path):
    assert "fetch" in kernelne("datasets", cwd=tmp_path).stdout


def test_embed_a_dataset(kernelne, tmp_path):
    result = kernelne("embed", "karate", "-o", "out.npz", *FAST, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    embedding = Embedding.load(tmp_path / "out.npz")
    assert embedding.provenance["graph"]["fingerprint"] == load_dataset("karate").graph.fingerprint
    # A file of that name wins, if only to be refused for its suffix.
    (tmp_path / "karate").write_text("0 1\n")
    result = kernelne("embed", "karate", "-o", "new.npz", *FAST, cwd=tmp_path)
    assert result.returncode == 2
    assert "unknown suffix" in result.stderr


def test_info_on_a_random_graph(kernelne, tmp_path):
    result = kernelne("info", "planted:n=50,k=2,p_in=0.5,p_out=0.05", "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["nodes"] == 50


BAD_NAMES = {
    "digts": ["digts: there is no such file", "did you mean digits"],
    "planted:n=x": ["n='x'", "whole number"],
    "planted:m=3": ["m='3'", "no such parameter"],
    "karate:n=3": ["karate:n=3"],
    "folder/karate": ["folder/karate", "no such file"],
    "karate.edges": ["karate.edges", "no such file"],
}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_names(kernelne, tmp_path, name):
    result = kernelne("embed", name, "-o", "out.npz", "--quiet", cwd=tmp_path)
    told = result._replace(stderr=result.stderr.replace("fetching citeseer …\n", ""))
    assert_refused(told, tmp_path, *BAD_NAMES[name])


@pytest.mark.parametrize(
    "option", ["--directed", "--unweighted", "--header", "--separator=tab", "--nodes=n.txt"]
)
def test_options_of_files_are_refused_for_datasets(kernelne, tmp_path, option):
    (tmp_path / "n.txt").write_text("1\n")
    result = kernelne("embed", "karate", "-o", "out.npz", option, cwd=tmp_path)
    assert_refused(result, tmp_path, option.split("=")[0].replace("--unw", "--w"), "karate")


def test_self_loops_of_a_dataset_can_be_dropped(kernelne, tmp_path, monkeypatch):
    asked = []

    def load(name, *, self_loops):
        asked.append(self_loops)
        return load_dataset(name)

    monkeypatch.setattr("kernelne.datasets.load_dataset", load)
    for options in ([], ["--drop-self-loops"]):
        assert kernelne("info", "karate", *options, cwd=tmp_path).returncode == 0
    assert asked == [True, False]


def test_a_failed_download_exits_with_1(kernelne, tmp_path):
    for args in (
        ["info", "citeseer"],
        ["embed", "citeseer", "-o", "out.npz"],
        ["links", "citeseer"],
        ["datasets", "fetch", "citeseer"],
    ):
        result = kernelne(*args, cwd=tmp_path)
        assert result.returncode == 1, args
        assert "cannot be downloaded" in result.stderr
    for part in ("edges", "labels", "selfloops"):  # damaged: to be fetched anew
        (fetch.cache_folder() / f"citeseer.{part}.gz").write_bytes(b"")
    assert kernelne("datasets", "fetch", "citeseer", cwd=tmp_path).returncode == 1


def test_a_folder_does_not_hide_a_dataset(kernelne, tmp_path):
    (tmp_path / "karate").mkdir()
    assert json.loads(kernelne("info", "karate", "--json", cwd=tmp_path).stdout)["nodes"] == 34
    (tmp_path / "mine").mkdir()
    assert_refused(kernelne("links", "mine", cwd=tmp_path), tmp_path, "mine: is a folder")


def test_a_wrong_file_in_the_data_folder(kernelne, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELNE_DATA", str(tmp_path))
    (tmp_path / "dolphins.edges.gz").write_bytes(gzip.compress(b"0 1\n"))
    for args in (["info", "dolphins"], ["datasets", "path", "dolphins"], ["datasets", "fetch", "dolphins"]):
        result = kernelne(*args, cwd=tmp_path)
        assert_refused(result, tmp_path, "dolphins.edges.gz", "should have", "unset KERNELNE_DATA")
