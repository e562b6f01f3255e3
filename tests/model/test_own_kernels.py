"""Kernels of one's own: what is refused, and that all of the package computes with them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

from kernelne import (
    Embedding,
    KernelNE,
    MKernelNE,
    ParameterError,
    load_dataset,
    recommend_links,
    register_kernel,
)
from kernelne._common.jit import source_digest
from kernelne._common.variants import variant
from kernelne.links import rank_rows
from kernelne.links.shared import checked_embedding
from kernelne.model.kernels import BUILT_IN, KERNELS, check_kernels, kinds_of, known_to, own_hashes, own_key
from kernelne.model.objective import loss_and_gradients, walk_pairs

FACTOR = 2.0


def bell(D, sigma):
    """The Gaussian kernel, in other words."""
    value = np.exp(-D / sigma**2)
    return value, -value / sigma**2


def cauchy(D, sigma):
    base = 1 + D / sigma**2
    return 1 / base, -1 / (sigma * base) ** 2


def rational(D, sigma):
    base = 1 + D / (FACTOR * sigma)
    return base**-sigma, -(base ** (-sigma - 1)) / FACTOR


def compact(D, sigma):
    inside = np.maximum(1 - D / (9 * sigma**2), 0)
    return np.sqrt(inside**4), -2 * inside / (9 * sigma**2)


@pytest.fixture(autouse=True)
def registered():
    for function in (bell, cauchy, rational, compact):
        register_kernel(function.__name__, function)
    yield
    for name in [name for name in KERNELS if name not in BUILT_IN]:
        del KERNELS[name]


def test_one_definition_for_doubles_and_singles():
    D = np.geomspace(1e-3, 50, 40)
    for function in (bell, cauchy, rational, compact):
        made = KERNELS[function.__name__]
        expected = function(D, 1.5)
        np.testing.assert_allclose(made(D, 1.5), expected, rtol=1e-6, atol=1e-7)
        found = made(D.astype(np.float32), np.float32(1.5))
        assert all(x.dtype == np.float32 for x in found)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_compiled_code_knows_them():
    loop = variant("kernelne.training.cpu.loop", own_key(KERNELS))
    evaluate_kernel, D = loop.evaluate_kernel, np.geomspace(1e-3, 50, 40).astype(np.float32)

    @njit
    def evaluate(kind, sigma, D, values, slopes):
        evaluate_kernel(kind, sigma, D, values, slopes)

    for kind, (name, function) in zip(kinds_of(KERNELS), KERNELS.items(), strict=True):
        values, slopes = np.empty_like(D), np.empty_like(D)
        evaluate(kind, np.float32(1.5), D, values, slopes)
        expected = function(D.astype(np.float64), 1.5)
        np.testing.assert_allclose(values, expected[0], rtol=1e-4, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(slopes, expected[1], rtol=1e-4, atol=1e-6, err_msg=name)


def test_training_and_ranking(tmp_path):
    graph = load_dataset("karate").graph
    options = {"dim": 8, "sigma": 1.5, "random_state": 0, "n_threads": 1, "walks_per_node": 20}
    known = KernelNE(kernel="gaussian", **options).fit(graph)
    own = KernelNE(kernel="bell", **options).fit(graph)
    np.testing.assert_allclose(own.embedding_, known.embedding_, atol=1e-4)
    mixtures = (
        MKernelNE(kernels=[(kernel, 1.0), ("gaussian", 2.0)], dim=8, random_state=0, n_threads=1).fit(graph)
        for kernel in ("bell", "gaussian")
    )
    np.testing.assert_allclose(*(each.embedding_ for each in mixtures), atol=1e-3)
    best = recommend_links(graph, own.to_embedding(), [0], k=5)
    same = recommend_links(graph, known.to_embedding(), [0], k=5)
    assert best.to_pandas().iloc[0, 1] == same.to_pandas().iloc[0, 1]
    assert own.to_embedding().provenance["own_kernels"] == own_hashes(["bell"])
    assert "own_kernels" not in known.to_embedding().provenance
    # An embedding of a kernel that is not registered here is still an embedding.
    own.to_embedding().save(tmp_path / "own.npz")
    del KERNELS["bell"]
    assert len(Embedding.load(tmp_path / "own.npz")) == 34
    with pytest.raises(ParameterError, match=r"bell.*register_kernel adds others"):
        recommend_links(graph, own.to_embedding(), [0])


def test_the_reference_knows_them():
    center, context = np.random.default_rng(0).normal(size=(2, 3, 4))
    pairs = walk_pairs([0, 1, 2], [1], window=2, n_negative=3)

    def step(kernel):
        args = center, context, np.ones(1), [(kernel, 1.5)], pairs
        loss, gradients = loss_and_gradients(*args, l2=0.1, coef_l2=0.0)
        return loss, *gradients

    for own, known in zip(step("bell"), step("gaussian"), strict=True):
        np.testing.assert_allclose(own, known, rtol=1e-12)
    assert step("cauchy")[0] != pytest.approx(step("gaussian")[0])


def test_a_changed_function_is_other_code():
    before = own_key(["cauchy"])
    assert own_key(["gaussian", "schoenberg"]) is None
    assert own_key(["cauchy", "gaussian"]) == before

    def cauchy(D, sigma):  # steeper
        base = 1 + 2 * D / sigma**2
        return 1 / base, -2 / (sigma * base) ** 2

    register_kernel("cauchy", cauchy)
    assert own_key(["cauchy"]) != before
    assert KERNELS["cauchy"](1.0, 1.0)[0] == pytest.approx(1 / 3)
    digests = {
        source_digest(f"{rank_rows.__name__}{end}") for end in ("", f"+{before}", f"+{own_key(['cauchy'])}")
    }
    assert len(digests) == 3


def test_outside_numbers_are_part_of_the_code():
    global FACTOR
    before, FACTOR = own_key(["rational"]), 3.0
    try:
        register_kernel("rational", rational)
        assert own_key(["rational"]) != before
    finally:
        FACTOR = 2.0


def _wrong_slope(D, sigma):
    value = np.exp(-D / sigma**2)
    return value, -value


def _rising(D, sigma):
    return 1 + D, 1 + 0 * D


def _not_one(D, sigma):
    return 0.5 * np.exp(-D), -0.5 * np.exp(-D)


def _laplace(D, sigma):
    value = np.exp(-np.sqrt(D))
    return value, -value / (2 * np.sqrt(D))


def _loops(D, sigma):
    for _ in range(3):
        D = D * 2
    return np.exp(-D), -np.exp(-D)


def _calls(D, sigma):
    value = math.erfc(D)
    return value, -value


def _opens(D, sigma):
    return open("x"), D


def _one(D, sigma):
    return np.exp(-D)


def _three(D, sigma, more):
    return np.exp(-D), -np.exp(-D)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_wrong_slope, r"with sigma=0\.5 the slope at D=0 is -1, by values -4"),
        (_rising, "between 0 and 1 and must not rise"),
        (_not_one, r"the value at D=0 is 0\.5, and must be 1"),
        (_laplace, "not finite at D=0|slope at D=0"),
        (_loops, "`for _ in range.*` is not allowed; allowed are assignments"),
        (_calls, r"`math\.erfc\(D\)` is not allowed"),
        (_opens, r"`open\('x'\)` is not allowed"),
        (_one, r"`return np\.exp\(-D\)` is not allowed"),
        (_three, "must take two arguments"),
        (lambda D, sigma: (1 / (1 + D), -1 / (1 + D) ** 2), "written with def"),
        (np.exp, "written with def"),
        (3, "written with def"),
    ],
)
def test_what_is_no_kernel_is_refused(function, message):
    with pytest.raises(ParameterError, match=message):
        register_kernel("mine", function)
    assert "mine" not in KERNELS


def test_names():
    for name in ("gaussian", "two words", "", 3, None):
        with pytest.raises(ParameterError, match="must be a Python name"):
            register_kernel(name, cauchy)


def test_the_key_is_that_of_the_kernels_in_use():
    key = own_key(["gaussian", "cauchy"])
    assert own_key(["cauchy"]) == key != own_key(["bell"])
    register_kernel("aaa", bell)
    assert own_key(["cauchy"]) == key
    assert own_key(["cauchy", "aaa"]) not in (key, own_key(["aaa"]))
    assert kinds_of(["cauchy", "gaussian", "aaa", "cauchy"]) == [4, 0, 3, 4]
    known = known_to(f"kernelne.training.cpu.loop+{own_key(['cauchy', 'aaa'])}")
    assert known == [*BUILT_IN.values(), KERNELS["aaa"], KERNELS["cauchy"]]
    assert known_to("kernelne.training.cpu.loop") == list(BUILT_IN.values())


def rising(D, sigma):
    far = np.maximum(sigma - 3, 0)
    value = np.exp(-D)
    return value, -value * (1 + far)


def test_the_sigma_in_use_is_checked():
    register_kernel("rising", rising)
    KernelNE(kernel="rising", sigma=2.5).config()
    with pytest.raises(ParameterError, match=r"sigma=5.0: the kernel rising is none for it: the slope"):
        KernelNE(kernel="rising", sigma=5).config()
    for name in ("bell", "cauchy", "rational", "compact"):
        for sigma in (1e-3, 0.05, 7, 1e3):
            check_kernels([(name, sigma)])


def test_another_function_of_the_same_name_gives_a_warning():
    graph = load_dataset("karate").graph
    vectors = np.random.default_rng(0).normal(size=(34, 4)).astype(np.float32)
    told = {"own_kernels": own_hashes(["cauchy"])}
    embedding = Embedding(
        vectors, graph.nodes, context=vectors, kernels=[("cauchy", 1.0)], coefficients=[1.0], provenance=told
    )
    assert checked_embedding(embedding, graph) is embedding
    register_kernel("cauchy", bell)
    with pytest.warns(UserWarning, match="the kernel cauchy is another function now"):
        checked_embedding(embedding, graph)
