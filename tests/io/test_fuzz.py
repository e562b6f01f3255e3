"""A short, repeatable run of tests/fuzz.py over every format."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import pytest

if not hasattr(__import__("signal"), "setitimer"):
    pytest.skip("needs a timer", allow_module_level=True)
_SPEC = importlib.util.spec_from_file_location("fuzz", Path(__file__).parents[1] / "fuzz.py")
fuzz = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(fuzz)


def test_every_format_is_fuzzed():
    names = {target.name for target in fuzz.targets()}
    assert {suffix[1:] for entry in fuzz.FORMATS for suffix in entry.suffixes} <= names
    assert {
        "labels",
        "embedding.npz",
        "embedding.safetensors",
        "txt.gz",
        "graphml.zst",
        "arrow-stream",
        "kne-signed",
        "mapped.safetensors",
    } <= names


def test_the_files_it_starts_from_can_be_read(tmp_path):
    for target in fuzz.targets():
        assert target.seeds, target.name
        path = tmp_path / f"seed{target.suffix}"
        for seed in target.seeds:
            path.write_bytes(seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert fuzz.check(target, path) == "read", target.name


def test_mutated_files_are_read_or_refused():
    counts, failures = fuzz.run(fuzz.targets(), seed=1, cases=2_500, seconds=None, kept=None)
    assert not failures
    assert sum(n for name, n in counts.items() if name.endswith(" refused")) > 500
    assert sum(n for name, n in counts.items() if name.endswith(" read")) > 100


def test_a_reader_that_fails_is_found():
    def bad(path):
        if b"7" in path.read_bytes():
            raise ZeroDivisionError("7")

    target = fuzz.Target("bad", ".txt", [b"1 7 1"], bad)
    counts, failures = fuzz.run([target], seed=1, cases=50, seconds=None, kept=None)
    assert counts["bad FAILED"] == len(failures) > 10
    assert "ZeroDivisionError" in failures[0]
