"""How the tests of the commands run them, and what they expect of a refusal."""

from __future__ import annotations

import subprocess
import sys
from collections import namedtuple

Result = namedtuple("Result", "returncode stdout stderr")

#: Options of a model that is trained in no time.
FAST = ["--walks-per-node", "2", "--dim", "8", "--seed", "1"]


def process(*args, cwd, **more):
    """The command in a process of its own."""
    command = [sys.executable, "-m", "kernelne", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, **more)


def assert_refused(result, folder, *words, code=2):
    """One line on standard error with these words, the exit code, and no file that was not there."""
    assert result.returncode == code, result.stderr
    told = ("Graph: ", "warning: ")
    lines = [
        line for line in result.stderr.splitlines() if line and not (code == 1 and line.startswith(told))
    ]
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0]
    assert "Traceback" not in result.stderr
    assert sorted(p.name for p in folder.iterdir() if p.name.startswith(("out", "."))) == []
