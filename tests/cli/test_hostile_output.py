"""What is printed and where results go when something is wrong: terminals, full disks, vanished folders."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from cli.running import FAST, process
from kernelne import Embedding, Graph, read_graph
from kernelne.errors import FileFormatError, InputError, OutputError, UnknownNodeError, shown
from kernelne.io import files

ESCAPE = "\x1b]0;owned\x07\x1b[2J"


def test_text_of_files_is_shown_without_control_characters():
    assert shown(f"a{ESCAPE}\u202eb\x00é\t\n") == "a\\x1b]0;owned\\x07\\x1b[2J\\u202eb\\x00é\t\n"
    assert len(shown("x" * 10**6)) < 2_100
    assert shown("plain text, ü") == "plain text, ü"


def test_errors_are_short_and_escaped(tmp_path):
    (tmp_path / "g.txt").write_text(f"a {ESCAPE}b\na b c {'d' * 10**6}\n")
    with pytest.raises(FileFormatError) as caught:
        read_graph(tmp_path / "g.txt")
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 3_000
    graph = Graph.from_edges(["x" * 10**6, ESCAPE], ["y" * 10**6, "z"])
    with pytest.raises(UnknownNodeError) as unknown:
        graph.index_of(["w" * 10**6])
    assert len(str(unknown.value)) < 3_000


def test_ids_reach_the_terminal_escaped(tmp_path):
    Embedding(np.eye(3), ["a", f"b{ESCAPE}", "c\nd"]).save(tmp_path / "e.npz")
    result = process("similar", "e.npz", "a", cwd=tmp_path)
    assert result.returncode == 0
    assert "\x1b" not in result.stdout + result.stderr
    assert "c\\nd" in result.stdout
    result = process("similar", "e.npz", f"nope{ESCAPE}", cwd=tmp_path)
    assert result.returncode == 2
    assert "\x1b" not in result.stdout + result.stderr


def test_vectors_whose_file_cannot_be_written_are_kept_elsewhere(folder, kernelne, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(folder / "kept"))
    (folder / "kept").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    real = files._put_in_place

    def full(temporary, target, *rest):
        if target.name == "out.npz":
            raise OSError(28, "No space left on device")
        real(temporary, target, *rest)

    monkeypatch.setattr(files, "_put_in_place", full)
    result = kernelne("embed", "ring.edges", "-o", "out.npz", *FAST, cwd=folder)
    assert result.returncode == 1
    (kept,) = (folder / "kept").iterdir()
    assert (
        f"out.npz: cannot be written: No space left on device; the vectors are kept in {kept}"
        in result.stderr
    )
    assert len(Embedding.load(kept)) == 12
    assert not (folder / "out.npz").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_standard_output_does_not_spoil_a_written_file(folder):
    command = [sys.executable, "-m", "kernelne", "embed", "ring.edges", "-o", "out.npz", *FAST]
    with open("/dev/full", "w") as full:
        result = subprocess.run(command, cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 0, result.stderr
    assert "warning: standard output cannot be written: No space left on device" in result.stderr
    assert len(Embedding.load(folder / "out.npz")) == 12


@pytest.mark.skipif(os.name != "posix", reason="a folder in use can be removed")
def test_a_working_folder_that_is_gone(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for action in (files.check_output, Embedding(np.eye(2), [0, 1]).save):
        with pytest.raises((OutputError, InputError), match=r"out.npz: cannot be written"):
            action("out.npz")


def test_temporary_files_of_dead_processes_are_swept(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    old = time.time() - 2 * 3600
    left = {}
    for name, (number, age) in {
        "dead": (dead.pid, old), "fresh": (dead.pid, None), "alive": (os.getpid(), old)
    }.items():  # fmt: skip
        left[name] = tmp_path / f".out.npz.{number}-{secrets_like(name)}.tmp"
        left[name].write_bytes(b"part")
        if age:
            os.utime(left[name], (age, age))
    other = tmp_path / f".other.npz.{dead.pid}-{secrets_like('dead')}.tmp"
    other.write_bytes(b"part")
    os.utime(other, (old, old))
    Embedding(np.eye(2), [0, 1]).save(tmp_path / "out.npz")
    assert not left["dead"].exists()
    assert left["fresh"].exists()
    assert left["alive"].exists()
    assert other.exists()


def test_folders_of_dead_processes_are_swept(tmp_path, monkeypatch):
    """As of `kernelne embed -`, killed: it keeps a copy of its input while it reads."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    old = time.time() - 2 * 3600
    names = {
        "dead": f"{dead.pid}-abcdefg_",
        "fresh": f"{dead.pid}-00000000",
        "alive": f"{os.getpid()}-00000000",
    }
    left = {name: tmp_path / f"kernelne-{rest}" for name, rest in names.items()}
    left["vectors"] = tmp_path / f"kernelne-out-{dead.pid}"
    for name, folder in left.items():
        folder.mkdir()
        (folder / "input").write_text("a b")
        if name != "fresh":
            os.utime(folder, (old, old))
    with files.temporary_folder() as made:
        assert Path(made).parent == tmp_path
        assert Path(made).name.startswith(f"kernelne-{os.getpid()}-")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        path.name for name, path in left.items() if name != "dead"
    )


def secrets_like(name: str) -> str:
    return name.encode().hex()[:12].ljust(12, "0")


def test_ids_and_vectors_of_two_saves_are_not_paired(tmp_path):
    """As after a kill between the two renames: the ids are new, the vectors old."""
    path = tmp_path / "e.npy"
    Embedding(np.eye(3), ["a", "b", "c"]).save(path)
    old = path.read_bytes()
    assert np.array_equal(np.load(path), np.eye(3))
    assert np.array_equal(np.load(path, mmap_mode="r"), np.eye(3))
    Embedding(np.eye(3), ["c", "b", "a"]).save(path, overwrite=True)
    assert Embedding.load(path).nodes.tolist() == ["c", "b", "a"]
    path.write_bytes(old)
    with pytest.raises(FileFormatError, match="not the ids that the vectors were saved with"):
        Embedding.load(path)
    np.save(path, np.load(path))
    assert Embedding.load(path).nodes.tolist() == ["c", "b", "a"]
