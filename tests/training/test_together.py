"""Fits at the same time end, with the bits of fits one after the other: threads, forks, pools, loops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("joblib")
if not hasattr(os, "fork"):
    pytest.skip("needs fork", allow_module_level=True)

SCRIPT = Path(__file__).with_name("together.py")
WAYS = [
    "threads", "fork", "fork while compiling", "fork after OpenMP", "multiprocessing, fork",
    "multiprocessing, spawn", "futures, fork", "joblib, loky", "joblib, threading", "joblib, multiprocessing",
    "event loop",
]  # fmt: skip
_PATIENCE = 180  # seconds, for a machine that does other things, too


@pytest.mark.parametrize("way", WAYS)
def test_no_fit_waits_for_ever(tmp_path, way):
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), way],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        told, _ = process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its children, too
        pytest.fail(f"{way}: still running after {_PATIENCE} s: {process.communicate()[0][-2000:]}")
    assert process.returncode == 0, told[-2000:]
    assert told.endswith("done\n")


def test_all_ways_are_tried():
    text = SCRIPT.read_text("utf-8").partition("WAYS = {")[2]
    assert [line.split('"')[1] for line in text.splitlines() if line.startswith('    "')] == WAYS
