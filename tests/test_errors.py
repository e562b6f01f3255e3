"""Errors cross process borders whole; warnings name the line of the caller."""

import pickle
import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from kernelne import (
    Embedding,
    Graph,
    KernelNE,
    LinkPredictor,
    MKernelNE,
    baselines,
    errors,
    plot_map,
    read_graph,
    split_links,
    tune_embedding,
    write_graph,
)
from kernelne.graph import as_graph


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
    missing = str(errors.MissingDependencyError("matplotlib", "plot"))
    assert missing.endswith("pip install matplotlib, or in a clone of kernelne pip install -e '.[plot]'")


EDGES = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]


@cache
def lonely():
    return Graph.from_edges(*zip(*EDGES, strict=True), nodes=[9])


QUICK = {"dim": 4, "walks_per_node": 2, "n_threads": 1, "random_state": 0}
FILES = {
    "a.net": '*Vertices 2\n1 "x"\n*Edges\n1 2\n',
    "a.gml": 'graph [ node [ id 1 label "x" ] node [ id 2 label "x" ] edge [ source 1 target 2 ] ]',
    "a.edges": "0 1 0\n1 2 1\n",
    "bad.edges": "0 1\n1\n1 2\n",
}
WARNED = {
    "from_edges": lambda folder: Graph.from_edges([0, 1], [1, 2], [0.0, 1.0]),
    "as_graph of a list": lambda folder: as_graph([(0, 1, 0.0), (1, 2, 1.0)]),
    "from_table": lambda folder: Graph.from_table({"source": [0], "target": [1], "a": [1], "b": [2]}),
    "MKernelNE": lambda folder: MKernelNE(**QUICK).fit(lonely()),
    "MKernelNE, of a list": lambda folder: MKernelNE(**QUICK).fit([(0, 1, 0.0), (1, 2, 1.0)]),
    "KernelNE": lambda folder: KernelNE(**QUICK).fit_transform(lonely()),
    "DeepWalk": lambda folder: baselines.DeepWalk(**QUICK).fit(lonely()),
    "ProNE": lambda folder: baselines.ProNE(dim=4).fit_transform(lonely()),
    "LinkPredictor": lambda folder: LinkPredictor().fit(EDGES, Embedding(np.eye(6), range(6))),
    "LinkPredictor that embeds": lambda folder: LinkPredictor(embedder=MKernelNE(**QUICK)).fit(lonely()),
    "Pajek": lambda folder: read_graph(folder / "a.net"),
    "GML": lambda folder: read_graph(folder / "a.gml"),
    "edge list": lambda folder: read_graph(folder / "a.edges"),
    "bad lines": lambda folder: read_graph(folder / "bad.edges", skip_bad=True),
    "write_graph": lambda folder: write_graph(lonely(), folder / "b.edges"),
    "split_links": lambda folder: split_links([*EDGES, (5, 6), (6, 7)], test_share=0.9),
    "load": lambda folder: Embedding.load(folder / "a.npy"),
    "plot_map": lambda folder: plot_map(
        Embedding(np.eye(2), [0, 1]), folder / "map.png", title="\N{EGYPTIAN HIEROGLYPH A001}"
    ),
    "tune_embedding": lambda folder: tune_embedding(
        Graph.from_edges([*range(30)], [*range(1, 30), 0], nodes=[99]), np.arange(31) % 2, n_trials=1,
        fixed={"dim": 4, "walks_per_node": 2, "n_threads": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("action", WARNED)
def test_warnings_name_the_line_that_called(action, tmp_path):
    """Whatever the depth of the call: what they say is to be changed there."""
    needed = {"plot_map": "matplotlib", "tune_embedding": "optuna"}
    pytest.importorskip(needed.get(action, "kernelne"))
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    np.save(tmp_path / "a.npy", np.eye(2, dtype=np.float32))
    call = WARNED[action]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        call(tmp_path)
    assert caught
    assert {warning.filename for warning in caught} == {__file__}
    first = call.__code__.co_firstlineno
    assert all(first <= warning.lineno <= first + 3 for warning in caught)


def test_warnings_within_a_pipeline_name_who_called():
    with pytest.warns(UserWarning, match="no edges") as caught:
        make_pipeline(KernelNE(**QUICK)).fit(lonely())
    assert all("sklearn" in warning.filename for warning in caught)
