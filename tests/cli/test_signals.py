# ruff: noqa: PT012  (what is raised is raised anywhere in the block)
"""Signals: the first leaves files whole and says one line, the second ends at once, none is lost."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest

from kernelne import Embedding
from kernelne.cli import signals

if os.name != "posix":
    pytest.skip("signals of POSIX", allow_module_level=True)
ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", ENDING)
def test_the_first_signal_raises_and_the_next_is_not_caught(number):
    before = signal.getsignal(number)
    with pytest.raises((KeyboardInterrupt, signals.Stopped)), signals.handled():
        assert signals.stop_requested() is None
        try:
            signal.raise_signal(number)
            time.sleep(1)
        finally:
            assert signals.stop_requested() == number
            assert all(signal.getsignal(other) == signal.SIG_DFL for other in ENDING)
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_that_lands_in_a_callback_is_not_lost(number):
    """Python only reports an exception in the callback of a weak reference, and goes on."""

    class Thing:
        pass

    thing = Thing()
    kept = weakref.ref(thing, lambda _: signal.raise_signal(number))
    with pytest.raises((KeyboardInterrupt, signals.Stopped)), signals.handled():
        del thing
        for _ in range(100):
            time.sleep(0.05)
        pytest.fail("lost")
    assert kept() is None


def _drop():
    try:
        time.sleep(60)
    except BaseException:
        return


def _drop_in_a_loop():
    for _ in range(3):
        with contextlib.suppress(BaseException):
            time.sleep(60)


def _drop_for_another():
    with contextlib.suppress(ValueError):
        try:
            time.sleep(60)
        except BaseException:
            raise ValueError from None


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("dropping", [_drop, _drop_in_a_loop, _drop_for_another])
def test_an_exception_that_code_of_others_drops_is_raised_again(number, dropping):
    with pytest.raises((signals.CtrlC, signals.Stopped)), signals.handled():
        timer = threading.Timer(0.1, os.kill, [os.getpid(), number])
        timer.start()
        dropping()
        timer.join()
        for _ in range(100):
            time.sleep(0.05)
        pytest.fail("lost")


def test_nothing_is_raised_again_that_was_answered():
    for number in ENDING:
        with signals.handled():
            with contextlib.suppress(signals.CtrlC, signals.Stopped):
                signal.raise_signal(number)
            signals.answered()
            time.sleep(0.2)
            assert signals.stop_requested() is None


def test_nothing_is_raised_after_the_end():
    for number in ENDING:
        for _ in range(3):
            with contextlib.suppress(BaseException), signals.handled():
                signal.raise_signal(number)
            with signals.handled(), contextlib.suppress(BaseException):
                signal.raise_signal(number)
    time.sleep(0.2)


def test_the_end_after_a_signal_does_not_take_modules_down(tmp_path):
    """The compiler may have been left in the middle of its work; what is registered for the end is called."""
    code = "import atexit, signal, sys, kernelne.cli.embed\nfrom kernelne.__main__ import main\n"
    code += "class Broken:\n    def __del__(self): print('taken down', flush=True)\n"
    code += "sys.broken = Broken()\n"
    code += "def embed(*args, **more):\n    atexit.register(print, 'the end')\n"
    code += "    signal.raise_signal(signal.SIGTERM)\n"
    code += "kernelne.cli.app = embed\nfor name in ('embed',): sys.exit(main([name]))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (143, "the end\n")
    assert result.stderr == "stopped by SIGTERM: nothing was written\n"


def test_blocks_look_at_the_flag_where_they_ask_to():
    seen = []
    with pytest.raises(signals.Stopped) as caught, signals.handled(), signals.deferred():
        for block in range(5):
            if block == 2:
                signal.raise_signal(signal.SIGTERM)
            seen.append((block, signals.stop_requested()))
    assert seen == [(0, None), (1, None), *[(block, signal.SIGTERM) for block in (2, 3, 4)]]
    assert caught.value.code == 143


def _start(folder, *args):
    command = [sys.executable, "-m", "kernelne", *args]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", ENDING)
def test_one_line_whenever_it_comes(folder, number):
    """At any moment: while modules are imported, while the file is read, while a model is trained."""
    for wait in (0.15, 0.5, 1.2):
        process = _start(folder, "embed", "ring.edges", "-o", "out.npz", "--walks-per-node", "1000000")
        time.sleep(wait)
        process.send_signal(number)
        told = process.communicate(timeout=60)[1]
        assert process.returncode in (128 + number, -number)
        assert "Traceback" not in told
        assert (
            len([line for line in told.splitlines() if not line.startswith(("Graph", "prep", "chosen"))]) <= 1
        )
        assert sorted(p.name for p in folder.iterdir()) == ["ring.edges"]


def test_ignored_signals_stay_ignored():
    """`nohup kernelne embed …` goes on when its terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals.handled():
            signal.raise_signal(signal.SIGHUP)
            assert signals.stop_requested() is None
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_ctrl_c_during_imports_is_one_line(tmp_path):
    code = "import signal, sys, threading\n"
    code += "class Interrupt:\n"
    code += "    def find_spec(self, name, path=None, target=None):\n"
    code += "        if name == 'typer': signal.raise_signal(signal.SIGINT)\n"
    code += "sys.meta_path.insert(0, Interrupt())\n"
    code += "from kernelne.__main__ import main\nmain(['--help'])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (130, "")
    assert result.stderr == "interrupted: nothing was written\n"


def _on_a_terminal(folder, answer):
    """Interrupt an embedding on a terminal, and answer its question; returns exit code and what was shown."""
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "kernelne", "embed", "ring.edges", "-o", "out.npz", "-j", "1"]
    command += ["--walks-per-node", "100000000", "--kernels", "gaussian:1"]
    process = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown, sent = b"", False
    while process.poll() is None or select.select([ours], [], [], 0)[0]:
        if select.select([ours], [], [], 1)[0]:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # how a terminal says that its last user is gone
                break
        if not sent and b"loss" in shown:  # it trains
            process.send_signal(signal.SIGINT)
            sent = True
        if b"[Y/n] " in shown and answer is not None:
            if isinstance(answer, bytes):
                os.write(ours, answer)
            else:
                process.send_signal(answer)
            answer = None
    os.close(ours)
    return process.wait(timeout=60), shown.decode(errors="replace")


@pytest.mark.parametrize(
    ("answer", "kept"), [(b"y\n", True), (b"\n", True), (b"n\n", False), (signal.SIGINT, False)]
)
def test_a_terminal_asks_whether_to_keep_what_there_is(folder, answer, kept):
    code, shown = _on_a_terminal(folder, answer)
    assert code == 130, shown
    assert "of the walks: write the vectors as they are to out.npz? [Y/n]" in shown
    assert ("out.npz holds the vectors as they were" in shown) == kept
    assert ("interrupted: nothing was written" in shown) != kept
    assert "Traceback" not in shown
    left = sorted(path.name for path in folder.iterdir())
    assert left == (["out.npz", "ring.edges"] if kept else ["ring.edges"])
    if kept:
        assert 0 < Embedding.load(folder / "out.npz").provenance["stopped_after"] < 1
