import errno
import os
import stat
from pathlib import Path

import pytest

from kernelne.errors import InputError, OutputError
from kernelne.io.files import atomic_output, check_output


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def write(target: Path, overwrite: bool = False, then=lambda _temporary: None) -> None:
    with atomic_output(target, overwrite) as temporary:
        temporary.write_bytes(b"new")
        then(temporary)


def refuse(code: int):
    def call(*_args, **_kwargs):
        raise OSError(code, os.strerror(code))

    return call


def test_the_file_appears_whole_and_only_at_the_end(tmp_path):
    target = tmp_path / "out.bin"
    with atomic_output(str(target)) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.name.startswith(".out.bin.")
        temporary.write_bytes(b"part")
        assert not target.exists()
    assert target.read_bytes() == b"part"
    assert names(tmp_path) == ["out.bin"]


def test_two_writers_have_two_temporary_files(tmp_path):
    target = tmp_path / "out"
    with atomic_output(target, overwrite=True) as one, atomic_output(target, overwrite=True) as two:
        assert one != two
        one.write_bytes(b"one")
        two.write_bytes(b"two")
    assert target.read_bytes() == b"one"  # the outer block ends last
    assert names(tmp_path) == ["out"]


def test_an_existing_file_is_refused_before_anything_is_written(tmp_path):
    target = tmp_path / "out"
    target.write_bytes(b"old")
    with pytest.raises(InputError, match="overwrite=True"), atomic_output(target):
        pytest.fail("the block was entered")
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("hard_links", [True, False])
def test_a_file_that_appeared_meanwhile_is_not_clobbered(tmp_path, monkeypatch, hard_links):
    if not hard_links:
        monkeypatch.setattr(os, "link", refuse(errno.EPERM))
    target = tmp_path / "out"
    with pytest.raises(InputError, match="already exists"):
        write(target, then=lambda _: target.write_bytes(b"theirs"))
    assert target.read_bytes() == b"theirs"
    assert names(tmp_path) == ["out"]


def test_without_hard_links_the_file_is_still_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", refuse(errno.EOPNOTSUPP))
    with atomic_output(tmp_path / "out") as temporary:
        temporary.write_bytes(b"new")
    assert (tmp_path / "out").read_bytes() == b"new"
    assert names(tmp_path) == ["out"]


def test_without_hard_links_a_failed_rename_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", refuse(errno.EPERM))
    monkeypatch.setattr(os, "replace", refuse(errno.EIO))
    with pytest.raises(OutputError):
        write(tmp_path / "out")
    assert names(tmp_path) == []


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, RuntimeError, InputError])
@pytest.mark.parametrize("old", [None, b"old"])
def test_an_interrupted_block_changes_nothing(tmp_path, raised, old):
    target = tmp_path / "out"
    if old is not None:
        target.write_bytes(old)

    def stop(_temporary):
        raise raised

    with pytest.raises(raised):
        write(target, overwrite=True, then=stop)
    assert (target.read_bytes() if target.exists() else None) == old
    assert names(tmp_path) == ([] if old is None else ["out"])


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("step", ["open", "block", "fsync", "replace"])
def test_a_refusal_by_the_system_keeps_the_old_file(tmp_path, monkeypatch, code, step):
    target = tmp_path / "out"
    target.write_bytes(b"old")
    if step != "block":
        monkeypatch.setattr(os, step, refuse(code))
    with pytest.raises(OutputError) as caught:
        write(target, overwrite=True, then=refuse(code) if step == "block" else lambda _: None)
    monkeypatch.undo()
    assert str(target) in str(caught.value)
    assert os.strerror(code) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["out"]


def test_a_folder_that_vanishes_is_reported(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OutputError, match="out"):
        write(folder / "out", then=lambda temporary: (temporary.unlink(), folder.rmdir()))
    assert names(tmp_path) == []


def test_the_file_is_synchronised_before_it_is_put_in_place_and_the_folder_after(tmp_path, monkeypatch):
    target = tmp_path / "out"
    steps = []
    fsync, link = os.fsync, os.link

    def logged_fsync(descriptor):
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def logged_link(source, destination):
        steps.append("place")
        link(source, destination)

    monkeypatch.setattr(os, "fsync", logged_fsync)
    monkeypatch.setattr(os, "link", logged_link)
    with atomic_output(target) as temporary:
        temporary.write_bytes(b"new")
    assert steps == ["file", "place", "folder"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        with atomic_output(tmp_path / "out") as temporary:
            temporary.write_bytes(b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o666 & ~mask


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o664])
def test_an_overwritten_file_keeps_its_permissions(tmp_path, mode):
    target = tmp_path / "out"
    target.write_bytes(b"old")
    target.chmod(mode)
    with atomic_output(target, overwrite=True) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) & ~0o600 == mode & ~0o600  # never more public
        temporary.unlink()  # a writer that makes its own file changes nothing
        temporary.write_bytes(b"new")
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == mode


@pytest.mark.parametrize("dangling", [False, True])
def test_a_symbolic_link_is_written_through(tmp_path, dangling):
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real", tmp_path / "link"
    if not dangling:
        real.write_bytes(b"old")
    link.symlink_to(Path("elsewhere") / "real")
    with atomic_output(link, overwrite=not dangling) as temporary:
        assert temporary.parent == real.parent
        temporary.write_bytes(b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert names(real.parent) == ["real"]


def test_a_name_of_the_longest_length_allowed_is_written(tmp_path):
    target = tmp_path / ("é" * 127)
    with atomic_output(target) as temporary:
        temporary.write_bytes(b"new")
    assert target.read_bytes() == b"new"


def enter(path, overwrite):
    with atomic_output(path, overwrite):
        pytest.fail("the block was entered")


@pytest.mark.parametrize("check", [check_output, enter])
class TestAheadOfTime:
    def test_existing_file(self, tmp_path, check):
        (tmp_path / "out").write_bytes(b"old")
        with pytest.raises(InputError, match="--overwrite"):
            check(tmp_path / "out", False)
        assert (tmp_path / "out").read_bytes() == b"old"

    @pytest.mark.parametrize("overwrite", [False, True])
    def test_folder(self, tmp_path, check, overwrite):
        with pytest.raises(InputError, match="is a folder"):
            check(tmp_path, overwrite)

    # Not /dev/null: run by root, a fault here would replace it by a file.
    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
    def test_pipe(self, tmp_path, check):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(InputError, match="pipe"):
            check(tmp_path / "pipe", True)
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)

    def test_missing_folder(self, tmp_path, check):
        with pytest.raises(OutputError, match=f"there is no folder {tmp_path / 'missing'}"):
            check(tmp_path / "missing" / "out", False)

    def test_file_in_place_of_the_folder(self, tmp_path, check):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(OutputError, match=os.strerror(errno.ENOTDIR)):
            check(tmp_path / "file" / "out", False)

    def test_name_too_long(self, tmp_path, check):
        with pytest.raises(OutputError, match=os.strerror(errno.ENAMETOOLONG)):
            check(tmp_path / ("x" * 300), False)

    def test_name_no_file_can_have(self, tmp_path, check):
        with pytest.raises(InputError, match="is not a valid file name"):
            check(f"{tmp_path}/a\0b", False)

    def test_read_only_file_system(self, tmp_path, monkeypatch, check):
        monkeypatch.setattr(os, "open", refuse(errno.EROFS))
        with pytest.raises(OutputError, match=os.strerror(errno.EROFS)):
            check(tmp_path / "out", False)


def test_a_check_that_passes_leaves_no_trace(tmp_path):
    check_output(tmp_path / "new")
    (tmp_path / "old").write_bytes(b"old")
    check_output(tmp_path / "old", overwrite=True)
    assert names(tmp_path) == ["old"]
    assert (tmp_path / "old").read_bytes() == b"old"
