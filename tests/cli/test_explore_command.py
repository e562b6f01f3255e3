"""`kernelne explore`: the page is written, opened when asked, refused in one line."""

from __future__ import annotations

import re
import webbrowser

import pytest

from cli.running import assert_refused
from kernelne import Embedding


@pytest.fixture
def opened(monkeypatch):
    """The addresses that a browser was asked to open."""
    found = []
    monkeypatch.setattr(webbrowser, "open", found.append)
    return found


def test_page_beside_nothing_is_opened_here(kernelne, town, tmp_path, opened):
    args = ["explore", town / "town.npz", "--graph", town / "town.edges", "--labels", town / "town.labels"]
    result = kernelne(*args, "--layout", "pca", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "town.html\n"
    assert result.stderr == "Laying out 60 nodes by PCA …\n"
    text = (tmp_path / "town.html").read_text("utf-8")
    assert "<title>town.npz</title>" in text
    assert re.findall(r'"key":"(\w+)"', text) == ["label", "community", "degree"]
    assert opened == []
    again = kernelne(*args, "--layout", "pca", cwd=tmp_path)
    assert again.returncode == 2
    assert "--overwrite" in again.stderr
    result = kernelne(*args, "--layout", "pca", "--overwrite", "--open", "--quiet", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert opened == [(tmp_path / "town.html").as_uri()]


def test_auto_and_options(kernelne, town, tmp_path, opened):
    result = kernelne("explore", town / "town.npz", "-o", "page.html", "--n-nearest", "0", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "60 nodes by neighbours" in result.stderr
    text = (tmp_path / "page.html").read_text("utf-8")
    assert '"nearest":' not in text
    Embedding([[0.0, 1.0], [2.0, 3.0]], ["a", "b"]).save(tmp_path / "flat.npz")
    result = kernelne("explore", "flat.npz", cwd=tmp_path)
    assert "Laying out 2 nodes …" in result.stderr


def test_labels_of_other_nodes(kernelne, town, tmp_path):
    (tmp_path / "more.labels").write_text((town / "town.labels").read_text() + "n99 z\n")
    args = ["explore", town / "town.npz", "--labels", "more.labels", "--layout", "pca", "-o", "out.html"]
    assert_refused(kernelne(*args, cwd=tmp_path), tmp_path, "more.labels", "n99", "--skip-unknown")
    result = kernelne(*args[:-1], "page.html", "--skip-unknown", cwd=tmp_path)
    assert result.returncode == 0, result.stderr


BAD = {
    "--graph=karate": ["town.npz is not an embedding of karate"],
    "--graph=none.edges": ["none.edges", "no such file"],
    "--labels=none.labels": ["none.labels", "no such file"],
    "--labels=karate": ["karate", "unknown"],
    "--layout=mds": ["--layout='mds'", "pca"],
    "--n-nearest=-1": ["--n-nearest"],
    "-o out.png": ["out.png", ".html"],
    "-o no/folder/out.html": ["no/folder"],
}


@pytest.mark.parametrize("options", BAD)
def test_bad_options(kernelne, town, options):
    result = kernelne("explore", "town.npz", "-o", "out.html", *options.split(), "--quiet", cwd=town)
    assert_refused(result, town, *BAD[options])
