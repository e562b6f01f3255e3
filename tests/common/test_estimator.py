"""The manners of scikit-learn's estimators, which ours have without importing it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks, estimator_html_repr

from kernelne import KernelNE, LinkPredictor, MKernelNE, NodeVectors
from kernelne.baselines import DeepWalk

MODELS = [KernelNE, MKernelNE, DeepWalk]

#: scikit-learn's own checks of what does not need a table of features.
CHECKS = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_params_invariance",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("check", CHECKS)
def test_scikit_learns_checks(model, check):
    if not hasattr(estimator_checks, check):
        pytest.skip("not in this version of scikit-learn")
    getattr(estimator_checks, check)(model.__name__, model())


@pytest.mark.parametrize("model", MODELS)
def test_parameters_are_got_set_and_cloned(model):
    made = model(dim=7, random_state=3)
    assert made.get_params()["dim"] == 7
    copy = clone(made).set_params(dim=8)
    assert (made.dim, copy.dim, copy.random_state) == (7, 8, 3)
    assert repr(copy) == f"{model.__name__}(dim=8, random_state=3)"
    with pytest.raises(ValueError, match=r"Invalid parameter 'dims' .*Valid parameters are: .*'dim'"):
        made.set_params(dim=9, dims=5)
    assert made.dim == 7
    with pytest.raises(NotFittedError, match="call fit first"):
        made.to_embedding()


def test_parameters_of_estimators_within_estimators():
    outer = NodeVectors(KernelNE(sigma=1.0), graph=[(0, 1)])
    assert outer.get_params()["embedding__sigma"] == 1.0
    assert outer.set_params(embedding__sigma=3.5).embedding.sigma == 3.5
    assert "KernelNE(sigma=3.5)" in repr(outer)
    within = LinkPredictor(embedder=MKernelNE(dim=9))
    assert clone(within).set_params(embedder__dim=4).embedder.dim == 4
    assert within.embedder.dim == 9


def test_notebooks_show_the_parameters():
    assert "<td>dim</td><td>7</td>" in KernelNE(dim=7)._repr_html_()
    assert "as by default" in KernelNE()._repr_html_()
    assert "KernelNE" in estimator_html_repr(NodeVectors(KernelNE(), graph=[(0, 1)]))


def test_scikit_learn_is_not_imported_to_train():
    """It takes most of a second, and every start of a command would wait for it."""
    code = "import sys, kernelne\nkernelne.MKernelNE(dim=4).fit([(0, 1)]).to_embedding()\n"
    code += "assert not {'sklearn', 'scipy.stats'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
