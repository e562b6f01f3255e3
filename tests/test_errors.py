"""Errors cross process borders whole."""

import pickle

import pytest

from kernelne import errors


@pytest.mark.parametrize(
    "error",
    [
        errors.ParameterError("dim", 0, "must be at least 1"),
        errors.FileFormatError("a.edges", "two columns expected", line=3, text="x"),
        errors.FolderError("a", "is a folder"),
        errors.UnknownNodeError("unknown node"),
        errors.MissingDependencyError("matplotlib", "plot"),
        errors.DivergenceError("diverged"),
        errors.OutputError("disk full"),
    ],
)
def test_errors_survive_pickling(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_messages_say_what_where_and_what_else():
    assert str(errors.ParameterError("dim", 0, "must be at least 1")) == "dim=0: must be at least 1"
    error = errors.FileFormatError("a.edges", "two columns expected", line=3, text="x")
    assert str(error) == "a.edges:3: two columns expected (found 'x')"
    assert "kernelne[plot]" in str(errors.MissingDependencyError("matplotlib", "plot"))
