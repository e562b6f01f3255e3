"""`kernelne plot`: a map in a file."""

from __future__ import annotations

import pytest

from cli.running import assert_refused

pytest.importorskip("matplotlib")


def test_map(kernelne, town, tmp_path):
    args = ["plot", town / "town.npz", "--labels", town / "town.labels", "--graph", town / "town.edges"]
    result = kernelne(*args, "-o", "map.svg", "--title", "Our town", "--layout", "pca", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "map.svg\n"
    assert "60 nodes" in result.stderr
    whole = (tmp_path / "map.svg").read_text()
    assert "Our town" in whole
    quiet = kernelne(*args, "-o", "dark.png", "--dark", "--quiet", "--seed", "3", cwd=tmp_path)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    again = kernelne(*args, "-o", "map.svg", cwd=tmp_path)
    assert again.returncode == 2
    assert "--overwrite" in again.stderr
    assert (tmp_path / "map.svg").read_text() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dark.png", "map.svg"]


BAD = {
    "-o out.jpg": ["--output='out.jpg'", ".png, .svg, .pdf"],
    "-o no/out.png": ["no/out.png", "there is no folder"],
    "": ["--output"],
    "-o out.png --layout spiral": ["--layout='spiral'"],
    "-o out.png --labels none.labels": ["none.labels", "no such file"],
    "-o out.png --graph none.edges": ["none.edges", "no such file"],
    "-o out.png --graph karate": ["graph: none of its nodes are in the embedding"],
    "-o out.png --highlight red": ["--highlight='red'", "needs --labels"],
    "-o out.png --labels town.labels --highlight mauve": ["there is no class 'mauve'"],
    "-o town.npz --overwrite": ["--output", "is the input"],
}


@pytest.mark.parametrize("options", BAD)
def test_bad_options(kernelne, town, options):
    assert_refused(kernelne("plot", "town.npz", *options.split(), "--quiet", cwd=town), town, *BAD[options])


def test_labels_of_other_nodes(kernelne, town, tmp_path):
    result = kernelne("plot", "town.npz", "-o", "out.png", "--labels", "karate", "--quiet", cwd=town)
    assert_refused(result, town, "karate: none of its nodes, such as 0, is in the embedding, such as")
    labels, picture = tmp_path / "more.labels", tmp_path / "map.png"
    labels.write_text("name team\nn0 red\nn1 blue\nbob red\n")
    result = kernelne("plot", "town.npz", "-o", picture, "--labels", labels, "--quiet", cwd=town)
    assert (result.returncode, picture.exists()) == (0, True)
    assert "1 of 3 labelled nodes are not in the embedding" in result.stderr


def test_one_layout_for_plot_and_explore(kernelne, town, tmp_path):
    """The page shows the places that the plot has kept; without keeping, no file is left."""
    vectors = tmp_path / "mine.npz"
    vectors.write_bytes((town / "town.npz").read_bytes())
    assert kernelne("plot", vectors, "-o", "a.png", "--no-keep-layout", cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "mine.npz"]
    assert kernelne("plot", vectors, "-o", "b.png", cwd=tmp_path).returncode == 0
    kept = tmp_path / "mine.npz.map.layout"
    written = kept.stat()
    result = kernelne("explore", vectors, "--no-open", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (kept.stat().st_mtime_ns, kept.stat().st_ino) == (written.st_mtime_ns, written.st_ino)
