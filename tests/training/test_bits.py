"""One thread gives the same bits for a seed: in any process, after any other fit, anywhere in memory."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

from kernelne import KernelNE, MKernelNE, baselines, load_dataset
from kernelne.baselines import _pairs, _skipgram, gemsec, line, verse
from kernelne.training.cpu import backend, loop, scratch
from memory import SideBySide

FEW = {"walks_per_node": 2, "n_threads": 1, "random_state": 3}
PAIRS = {"samples_per_node": 20, "n_threads": 1, "random_state": 3}
#: What is fitted, of any dim. The arithmetic of rows that are no multiple of a register is another.
METHODS = {
    "KernelNE": lambda dim: KernelNE(dim=dim, **FEW),
    "MKernelNE, deterministic": lambda dim: MKernelNE.paper(dim=dim, deterministic=True, **FEW),
    "DeepWalk": lambda dim: baselines.DeepWalk(dim=dim, **FEW),
    "Node2Vec": lambda dim: baselines.Node2Vec(dim=dim, p=0.5, q=2.0, **FEW),
    "GEMSEC": lambda dim: baselines.GEMSEC(dim=dim, n_clusters=3, **FEW),
    "WeightedMF": lambda dim: baselines.WeightedMF(dim=dim, **FEW),
    "VERSE": lambda dim: baselines.VERSE(dim=dim, **PAIRS),
    "LINE": lambda dim: baselines.LINE(dim=dim, **PAIRS),
}
DIMS = (37, 40, 128)
#: Where numbers are not integers, and loops are compiled with fast arithmetic.
ENTRIES = (loop.train_part, _skipgram.train_inner_products, verse.train_similar, line.train_edges)


def _digest(name, dim, graph):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few walks teach nothing
        model = METHODS[name](dim).fit(graph)
    found = [getattr(model, part) for part in ("embedding_", "cluster_centers_") if hasattr(model, part)]
    return hashlib.blake2b(b"".join(part.tobytes() for part in found), digest_size=8).hexdigest()


def _digests(names, dims=DIMS):
    graph = load_dataset("lesmis").graph
    return {f"{name}, dim {dim}": _digest(name, dim, graph) for name in names for dim in dims}


def test_bits_are_those_of_a_process_that_compiles_nothing():
    """Compiled here or loaded from disk, after the same or other functions: it must be the same code."""
    mine = _digests(METHODS)
    other = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert other.returncode == 0, other.stderr
    assert json.loads(other.stdout) == mine


def test_fast_arithmetic_is_all_inlined():
    """A function that is called may be another's copy of it, optimised to other roundings."""
    _digests(METHODS, dims=[8])
    for entry in ENTRIES:
        assert entry.overloads
        for compiled in entry.overloads.values():
            description = compiled.fndesc
            own = {
                description.llvm_func_name,
                description.llvm_cpython_wrapper_name,
                description.llvm_cfunc_wrapper_name,
            }
            functions = {f.name: str(f) for f in compiled.library._get_module_for_linking().functions}
            assert "reassoc" in functions[description.llvm_func_name]
            assert not [name for name, code in functions.items() if name not in own and "reassoc" in code]


@pytest.mark.parametrize("dim", [8, 16, 24, 37])
@pytest.mark.parametrize("name", METHODS)
def test_bits_do_not_depend_on_where_memory_lies(two_cliques, monkeypatch, name, dim):
    """LLVM's loops look whether their arrays are close, and take another way, with other rounding, if so."""

    def run(numpy):
        for module in (scratch, backend, _skipgram, _pairs, gemsec, line, verse):
            monkeypatch.setattr(module, "np", numpy)
        return _digest(name, dim, two_cliques)

    expected = run(np)
    counted = SideBySide()
    assert run(counted) == expected
    rng = np.random.default_rng(0)
    digests = {run(SideBySide(counted.sizes, rng.permutation(len(counted.sizes)))) for _ in range(15)}
    assert digests == {expected}


if __name__ == "__main__":
    print(json.dumps(_digests(reversed(METHODS))))
