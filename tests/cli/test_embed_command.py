"""`kernelne embed` as a user or a script meets it, judged by exit code, output and files."""

from __future__ import annotations

import gzip
import inspect
import signal
import subprocess
import sys

import numpy as np
import pytest

from cli.running import FAST, assert_refused, process
from kernelne import Embedding, KernelNE, MKernelNE
from kernelne.cli.embed import embed
from kernelne.model.defaults import AUTO, PLAIN

# A few walks leave a mixture where it started, and the estimator says so.
pytestmark = pytest.mark.filterwarnings("ignore:the loss:UserWarning")


def test_embed_writes_ids_vectors_and_provenance(folder):
    result = process("embed", "ring.edges", "-o", "out.safetensors", *FAST, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "12 nodes × 8, MKernelNE" in result.stdout
    embedding = Embedding.load(folder / "out.safetensors")
    assert embedding.nodes.tolist() == list(range(12))
    assert embedding.dim == 8
    assert embedding.provenance["seed"] == 1
    assert embedding.provenance["parameters"]["walks_per_node"] == 2
    assert embedding.context is not None
    same = MKernelNE(walks_per_node=2, dim=8, random_state=1, n_threads=1).fit(
        [(i, (i + 1) % 12) for i in range(12)]
    )
    assert embedding.provenance["graph"]["fingerprint"] == same.graph_.fingerprint


def test_embed_passes_every_parameter_on(kernelne, folder):
    options = {
        "kernel": "schoenberg", "sigma": 1.5, "dim": 6, "walks_per_node": 3, "walk_length": 7, "window": 4,
        "n_negative": 2, "p": 0.5, "q": 2.0, "learning_rate": 0.02, "min_learning_rate": 0.001, "l2": 0.005,
        "shared_negatives": 9, "n_threads": 1, "random_state": 5,
    }  # fmt: skip
    args = [x for name, value in options.items() for x in ("--" + name.replace("_", "-"), value)]
    result = kernelne(
        "embed", "ring.edges", "-o", "out.npz", "--model", "kernelne", "--deterministic", *args, cwd=folder
    )
    assert result.returncode == 0, result.stderr
    embedding = Embedding.load(folder / "out.npz")
    assert embedding.provenance["model"] == "KernelNE"
    assert embedding.provenance["backend"] == "cpu"
    parameters = embedding.provenance["parameters"]
    assert embedding.kernels == (("schoenberg", 1.5),)
    for name in set(options) - {"kernel", "sigma", "random_state"}:
        assert parameters[name] == options[name]
    expected = KernelNE(**options, deterministic=True).fit([(i, (i + 1) % 12) for i in range(12)])
    np.testing.assert_array_equal(embedding.vectors, expected.embedding_)


def test_stated_defaults_are_the_estimators():
    defaults = MKernelNE().get_params() | {
        k: v for k, v in KernelNE().get_params().items() if k in ("kernel", "sigma")
    }
    parameters = inspect.signature(embed, eval_str=True).parameters
    # What the graph decides has no value to state.
    decided = ("l2", "norm", "walks_per_node", "window_decay", "learning_rate", "coef_spread", "n_negative")
    by_graph = dict.fromkeys((*decided, "shared_negatives"), "chosen")
    for name, value in defaults.items():
        if name in (
            "progress",
            "deterministic",
            "forward",
            "n_threads",
            "random_state",
            "checkpoint",
            "checkpoint_every",
            "engine",
            "parts",
            "memory",
            "address",
        ):
            continue
        stated = parameters[name].annotation.__metadata__[0].show_default
        if value is None:
            automatic = by_graph.get(name, str(AUTO[name]))
            plain = "trained" if PLAIN[name] is None else str(PLAIN[name])
            assert stated == (plain if automatic == plain else f"{automatic} with auto, else {plain}"), name
        else:
            assert stated == str(value) or float(stated) == value, name
    of_one = KernelNE().get_params()
    for name in of_one.keys() & PLAIN.keys():  # "else …" is true of KernelNE, too
        assert of_one[name] == PLAIN[name], name


def test_every_estimator_parameter_has_an_option():
    options = set(inspect.signature(embed).parameters)
    for model in (KernelNE, MKernelNE):
        assert set(model().get_params()) - {"progress"} <= options


def test_kernels_option(kernelne, folder):
    result = kernelne(
        "embed", "ring.edges", "-o", "out.npz", "--kernels", "gaussian:1,schoenberg:2", *FAST, cwd=folder
    )
    assert result.returncode == 0, result.stderr
    assert Embedding.load(folder / "out.npz").kernels == (("gaussian", 1.0), ("schoenberg", 2.0))


def test_what_was_chosen_is_told_in_one_line_and_kept(kernelne, folder):
    result = kernelne("embed", "ring.edges", "-o", "out.npz", *FAST, cwd=folder)
    assert result.returncode == 0, result.stderr
    chosen = Embedding.load(folder / "out.npz").provenance["chosen"]
    assert set(chosen) == {name for name in AUTO if name != "walks_per_node"}
    (line,) = [line for line in result.stderr.splitlines() if "chosen" in line]
    kernels, *rest = line.removeprefix("chosen: ").split(", ")
    assert line.startswith("chosen: ")
    assert kernels == "gaussian:1.25,gaussian:5"
    assert sorted(rest) == sorted(f"{name} {chosen[name]}" for name in chosen if name != "kernels")
    assert "chosen" not in result.stdout
    quiet = kernelne("embed", "ring.edges", "-o", "quiet.npz", "--quiet", *FAST, cwd=folder)
    assert quiet.returncode == 0
    assert "chosen" not in quiet.stderr + quiet.stdout
    assert Embedding.load(folder / "quiet.npz").provenance["chosen"] == chosen


def test_one_kernel_leaves_nothing_to_be_chosen(kernelne, folder):
    result = kernelne("embed", "ring.edges", "-o", "out.npz", "--model", "kernelne", *FAST, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "chosen" not in result.stderr
    assert Embedding.load(folder / "out.npz").provenance["chosen"] == {}


def test_kernels_auto_is_the_default(kernelne, folder):
    made = []
    for more in ([], ["--kernels", "auto"]):
        args = ["embed", "ring.edges", "-o", "out.npz", "--overwrite", "-j", "1", *FAST, *more]
        assert kernelne(*args, cwd=folder).returncode == 0
        made.append(Embedding.load(folder / "out.npz"))
    first, second = made
    np.testing.assert_array_equal(first.vectors, second.vectors)
    assert first.provenance["chosen"] == second.provenance["chosen"] != {}


@pytest.mark.parametrize("vectors", ["center", "sum", "smooth", "joint", "concat"])
def test_vectors_and_norm_options(kernelne, folder, vectors):
    options = ["--vectors", vectors, "--norm", "2", *FAST]
    result = kernelne("embed", "ring.edges", "-o", "out.npz", *options, cwd=folder)
    assert result.returncode == 0, result.stderr
    embedding = Embedding.load(folder / "out.npz")
    assert embedding.vectors.shape == (12, 8)
    assert np.linalg.norm(embedding.vectors, axis=1).mean() == pytest.approx(2, rel=1e-5)
    parameters = embedding.provenance["parameters"]
    assert (parameters["vectors"], parameters["norm"], parameters["dim"]) == (vectors, 2.0, 8)
    assert not {"vectors", "norm"} & set(embedding.provenance["chosen"])
    if vectors == "sum":
        made = embedding.center + embedding.context
        ratio = embedding.vectors / made
        np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-4)


def test_nodes_file_brings_isolated_nodes(kernelne, folder):
    (folder / "nodes.txt").write_text("alone\n3\n")
    result = kernelne("embed", "ring.edges", "-o", "out.csv", "--nodes", "nodes.txt", *FAST, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "warning: 1 of 13 nodes have no edges" in result.stderr
    assert Embedding.load(folder / "out.csv").nodes.tolist()[:2] == ["alone", "3"]


def test_zero_weight_warns(kernelne, folder):
    (folder / "w.csv").write_text("a,b,1\nb,c,0\nc,a,2\n")
    result = kernelne("embed", "w.csv", "-o", "out.csv", "--quiet", *FAST, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "warning: " in result.stderr
    assert "zero" in result.stderr


def test_existing_output_needs_overwrite(kernelne, folder):
    (folder / "old.csv").write_text("precious")
    result = kernelne("embed", "ring.edges", "-o", "old.csv", *FAST, cwd=folder)
    assert_refused(result, folder, "old.csv", "--overwrite")
    assert (folder / "old.csv").read_text() == "precious"
    assert kernelne("embed", "ring.edges", "-o", "old.csv", "--overwrite", *FAST, cwd=folder).returncode == 0
    assert len(Embedding.load(folder / "old.csv")) == 12


def _gzip_cut(path):
    path.write_bytes(gzip.compress(b"0 1\n1 2\n" * 5000)[:-20])


BAD_FILES = {
    "empty.edges": (lambda p: p.write_text(""), ["empty.edges", "no edges"]),
    "comments.edges": (lambda p: p.write_text("# nothing\n"), ["comments.edges"]),
    "ragged.edges": (lambda p: p.write_text("0 1\n1 2\n2 3 4 5\n"), ["ragged.edges:3", "2 3 4 5"]),
    "junk.edges": (lambda p: p.write_bytes(bytes(range(256)) * 9), ["junk.edges"]),
    "cut.edges.gz": (_gzip_cut, ["cut.edges.gz"]),
    "nan.csv": (lambda p: p.write_text("0,1,2\n1,2,nan\n"), ["nan.csv:2", "nan"]),
    "inf.csv": (lambda p: p.write_text("0,1,2\n1,2,inf\n"), ["inf.csv:2", "inf"]),
    "negative.csv": (lambda p: p.write_text("0,1,2\n1,2,-1\n"), ["negative.csv:2", "-1"]),
    "a_folder.edges": (lambda p: p.mkdir(), ["a_folder.edges", "folder"]),
    "graph.xyz": (lambda p: p.write_text("0 1\n"), ["graph.xyz", ".edges"]),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_input_is_refused(kernelne, folder, name):
    make, words = BAD_FILES[name]
    make(folder / name)
    assert_refused(kernelne("embed", name, "-o", "out.npz", *FAST, cwd=folder), folder, *words)


def test_missing_file(kernelne, folder):
    assert_refused(kernelne("embed", "none.edges", "-o", "out.npz", cwd=folder), folder, "none.edges")


BAD_OPTIONS = {
    "--kernels=cubic:1": ["cubic", "gaussian"],
    "--kernels=gaussian": ["gaussian", "NAME:SIGMA"],
    "--kernels=gaussian:0": ["gaussian:0", "positive"],
    "--kernels=gaussian:-1": ["positive"],
    "--dim=0": ["dim=0", "at least 1"],
    "--dim=x": ["--dim", "integer"],
    "--window=0": ["window=0"],
    "--walk-length=0": ["--walk-length=0"],
    "--learning-rate=-1": ["--learning-rate=-1"],
    "--p=0": ["p=0"],
    "--model=other": ["other", "mkernelne"],
    "--sigma=2": ["--sigma", "kernelne"],
    "--vectors=mean": ["vectors='mean'", "center, sum, concat, smooth, joint"],
    "--norm=0": ["norm=0", "positive"],
    "--backend=tpu": ["backend='tpu'", "cpu, gpu"],
    "--no-such-option": ["--no-such-option"],
    "--dim=2000000000": ["GiB", "would fit"],
}


@pytest.mark.parametrize("option", BAD_OPTIONS)
def test_bad_option_is_refused(kernelne, folder, option):
    result = kernelne("embed", "ring.edges", "-o", "out.npz", option, cwd=folder)
    assert_refused(result, folder, *BAD_OPTIONS[option])


def test_the_gpu_is_refused_in_one_line_where_there_is_none(kernelne, folder, monkeypatch):
    command = ["embed", "ring.edges", "-o", "out.npz", "--backend", "gpu", *FAST]
    result = kernelne(*command, "--deterministic", cwd=folder)
    assert_refused(result, folder, "deterministic=True", "backend='gpu'")
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "kernelne.training.gpu.backend", raising=False)
        patch.setitem(sys.modules, "torch", None)  # as if it were not installed
        assert_refused(kernelne(*command, cwd=folder), folder, "torch and triton", "[gpu]")
    torch = pytest.importorskip("torch", exc_type=ImportError)
    pytest.importorskip("triton", exc_type=ImportError)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert_refused(kernelne(*command, cwd=folder), folder, "no CUDA GPU", "backend='cpu'")
    monkeypatch.setattr("kernelne.io.graphs.read_write.read_graph", None)  # told before a large file is read
    assert_refused(kernelne(*command, cwd=folder), folder, "no CUDA GPU")


@pytest.mark.parametrize("output", ["out", "out.docx", "no/such/folder/out.npz"])
def test_unknown_or_unwritable_output_is_refused_before_reading(kernelne, folder, output):
    (folder / "unreadable.edges").write_text("a b c d e")
    result = kernelne("embed", "unreadable.edges", "-o", output, cwd=folder)
    assert_refused(result, folder, output.split("/")[0])


def test_the_input_is_never_the_output(kernelne, folder):
    (folder / "nodes.txt").write_text("3\n")
    (folder / "ring.csv").write_text("0,1\n1,2\n")
    before = {p.name: p.read_text() for p in folder.iterdir()}
    for graph, output in (("ring.csv", "ring.csv"), ("ring.edges", "nodes.txt")):
        args = ["embed", graph, "--nodes", "nodes.txt", "-o", output, "--overwrite", *FAST]
        assert_refused(kernelne(*args, cwd=folder), folder, output, "is the input")
    assert {p.name: p.read_text() for p in folder.iterdir()} == before


def test_ids_that_a_format_cannot_hold_are_refused_before_training(kernelne, folder):
    (folder / "names.tsv").write_text("New York\tParis\n")
    result = kernelne("embed", "names.tsv", "-o", "out.emb", cwd=folder)
    assert_refused(result, folder, "New York")


def test_what_was_read_is_told(kernelne, folder):
    (folder / "names.csv").write_text("ann,bob\nbob,cem\n")
    result = kernelne("embed", "names.csv", "-o", "out.npz", *FAST, cwd=folder)
    assert "Graph: 3 nodes, 2 edges, undirected, unweighted, such as ann – bob" in result.stderr


def test_full_disk_is_a_failure_that_leaves_nothing(folder):
    # A limit on the size of files stands for the full disk: the write itself fails, after training.
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600));"
        "from kernelne import cli;"
        "sys.exit(cli.main(['embed', 'ring.edges', '-o', 'out.npz', '--walks-per-node', '1', '--quiet']))"
    )
    process("embed", "ring.edges", "-o", "warm.npz", "--quiet", cwd=folder)  # what is compiled is cached
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert_refused(result, folder, "out.npz", "cannot be written", code=1)


def test_divergence_is_a_failure_that_says_what_to_lower(kernelne, folder):
    result = kernelne("embed", "ring.edges", "-o", "out.npz", "--l2", "1e5", "--quiet", cwd=folder)
    assert_refused(result, folder, "diverged", "learning_rate", "l2", code=1)


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_interruption_leaves_nothing(folder, sent, code):
    args = ["embed", "ring.edges", "-o", "out.npz", "--walks-per-node", "50000000", "--dim", "64"]
    child = subprocess.Popen(
        [sys.executable, "-m", "kernelne", *args],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    while "walks/s" not in (line := child.stderr.readline()):  # until training is under way
        assert line, "ended before it was interrupted"
    child.send_signal(sent)
    _, rest = child.communicate(timeout=30)
    assert child.returncode == code
    if sent == signal.SIGINT:
        assert "interrupted: nothing was written" in rest
    assert [p.name for p in folder.iterdir()] == ["ring.edges"]


def test_parts_are_told_and_the_same_on_disk(kernelne, folder):
    for name, options in (("a", ["--parts", 3]), ("b", ["--parts", 3, "--engine", "disk"])):
        result = kernelne("embed", "ring.edges", "-o", f"{name}.npz", *options, *FAST, cwd=folder)
        assert result.returncode == 0, result.stderr
        assert "Training 3 parts" in result.stderr
    one, other = (Embedding.load(folder / name) for name in ("a.npz", "b.npz"))
    np.testing.assert_array_equal(one.vectors, other.vectors)
    assert one.provenance["parameters"]["parts"] == 3
    result = kernelne("embed", "ring.edges", "-o", "c.npz", "--memory", "4GB", *FAST, cwd=folder)
    assert "Training without parts" in result.stderr
    for options, words in (
        (["--engine", "tape"], "--engine='tape': must be one of memory, disk, ray"),
        (["--parts", 13], "--parts=13: must be at most 12, the number of nodes"),
        (["--memory", "1MB"], "12 nodes and 12 edges need"),
        (["--address", "auto"], "--address='auto': is that of a cluster"),
    ):
        result = kernelne("embed", "ring.edges", "-o", "d.npz", *options, *FAST, cwd=folder)
        assert_refused(result, folder, words)
