"""What a user sees of a long run: nothing at first, then a bar on a terminal or lines in a log."""

from __future__ import annotations

import io
import math
import sys
import types

import pytest

from kernelne import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_lines_come_after_a_while_and_not_too_often(clock, monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with progress.reporting(True) as report:
        clock[0] = 60.0  # a minute of compiling is no part of the speed
        for second in range(26):
            clock[0] += 1.0
            report(1000 * (second + 1), 100_000, 0.25)
    lines = log.getvalue().splitlines()
    assert len(lines) == 3
    assert "2,000 of 100,000 walks  1,000 walks/s" in lines[0]
    assert "98 s left" in lines[0]
    assert "loss 0.2500" in lines[0]
    assert "s left" in lines[0]


@pytest.mark.parametrize("setting", [None, False])
def test_silent_without_a_terminal_or_when_told(clock, monkeypatch, setting):
    log = io.StringIO() if setting is None else Terminal()
    monkeypatch.setattr(sys, "stderr", log)
    with progress.reporting(setting) as report:
        clock[0] = 60.0
        report(1, 2, 0.5)
    assert log.getvalue() == ""


def test_a_bar_on_a_terminal(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress.reporting(None) as report:
        clock[0] = 0.5
        report(1, 100, 0.5)
        assert terminal.getvalue() == ""
        clock[0] = 10.5
        report(51, 100, 0.125)
    text = terminal.getvalue()
    assert "51%" in text
    assert "loss 0.1250" in text
    assert "5 walks/s" in text


def test_a_function_is_called_as_it_is():
    seen = []
    with progress.reporting(lambda *args: seen.append(args)) as report:
        report(1, 2, 0.5)
    assert seen == [(1, 2, 0.5)]


def test_a_long_wait_for_the_first_block_is_explained(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(progress, "_BEFORE_EXPLAINING", 0.01)
    with progress.reporting(True) as report:
        deadline = progress.time.monotonic() + 10
        while not log.getvalue() and progress.time.monotonic() < deadline:
            progress.time.sleep(0.01)
        report(1, 2, 0.5)
    assert log.getvalue().startswith("preparing: compiling")


def test_other_work_is_counted_in_its_own_unit_from_its_start(clock, monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with progress.reporting(True, "scoring", "splits") as report:
        clock[0] = 4.0
        report(0, 5, math.nan)  # nothing done: no speed to tell
        report(1, 5, math.nan)
    assert log.getvalue() == " 20%  1 of 5 splits  0.25 splits/s  16 s left\n"


def test_a_bar_of_other_work(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress.reporting(None, "scoring", "splits") as report:
        clock[0] = 4.0
        report(3, 4, math.nan)
    text = terminal.getvalue()
    assert "scoring" in text
    assert "75%" in text
    assert "loss" not in text


class _Display:
    """What IPython.display.display returns, remembering what it was told to show."""

    def __init__(self) -> None:
        self.frames: list[str] = []

    def display(self, html, display_id):
        self.frames.append(html.data)
        return self

    def update(self, html):
        self.frames.append(html.data)


class _Html:
    def __init__(self, data: str) -> None:
        self.data = data


class ZMQInteractiveShell:
    """The name by which a notebook is known."""


def test_a_bar_in_a_notebook_after_two_seconds(clock, monkeypatch):
    shown = _Display()
    ipython = types.SimpleNamespace(get_ipython=ZMQInteractiveShell)
    tools = types.SimpleNamespace(HTML=_Html, display=shown.display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", tools)
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with progress.reporting(None) as report:
        for second in range(4):
            clock[0] += 0.5
            report(1000 * second, 100_000, 0.25)
        assert shown.frames == []  # less than two seconds after the first block
        clock[0] += 1.0
        report(10_000, 100_000, 0.25)
        assert len(shown.frames) == 1
        clock[0] += 0.1
        report(10_100, 100_000, 0.25)
        assert len(shown.frames) == 1  # not too often
        clock[0] += 1.0
        report(50_000, 100_000, 0.25)
    assert '<progress value="10000" max="100000">' in shown.frames[0]
    assert "s left" in shown.frames[0]
    assert shown.frames[-1] == ""  # removed at the end
    assert log.getvalue() == ""
    ipython.get_ipython = lambda: None  # IPython is loaded, but this is no notebook
    with progress.reporting(None) as report:
        clock[0] += 60
        report(1, 2, 0.5)
    assert len(shown.frames) == 3
