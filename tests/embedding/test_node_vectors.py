"""NodeVectors: an embedding as a step of scikit-learn's pipelines."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

from kernelne import (
    Embedding,
    InputError,
    KernelNE,
    NodeVectors,
    ParameterError,
    UnknownNodeError,
    load_dataset,
)


@pytest.fixture
def people():
    return Embedding([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], ["ann", "bob", "cem"])


@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_mixin_order",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
    ],
)
def test_checks_of_scikit_learn(check):
    """Those of its checks that do not call `fit` with a table of numbers for X."""
    getattr(estimator_checks, check)("NodeVectors", NodeVectors(Embedding(np.eye(3), [0, 1, 2])))


def test_rows_are_looked_up(people):
    pandas = pytest.importorskip("pandas")
    step = NodeVectors(people).fit()
    ids = ["cem", "ann", "cem"]
    expected = people[ids]
    for given in (
        ids,
        np.array(ids),
        np.array(ids, object)[:, None],
        [[node] for node in ids],
        pandas.Series(ids),
        pandas.Series(ids, dtype="category"),
        pandas.DataFrame({"id": ids}),
    ):
        found = step.transform(given)
        assert found.dtype == np.float32
        assert (found == expected).all()
    assert step.transform([]).shape == (0, 2)


def test_integers_and_paths(people, tmp_path):
    Embedding(np.eye(2), [7, 3]).save(tmp_path / "v.npz")
    for path in (tmp_path / "v.npz", str(tmp_path / "v.npz")):
        assert NodeVectors(path).fit_transform(np.array([3, 7])).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(FileNotFoundError):
        NodeVectors(tmp_path / "none.npz").fit()


def test_unknown_ids(people):
    with pytest.raises(UnknownNodeError, match=r"'bib'.*close ids: 'bob'"):
        NodeVectors(people).fit_transform(["ann", "bib"])
    step = NodeVectors(people, unknown="zeros")
    assert step.fit_transform(["bib", "bob", 3]).tolist() == [[0, 0], [3, 4], [0, 0]]
    assert people["cem"].tolist() == [5, 6]  # the embedding is as it was


def test_bad_parameters(people):
    with pytest.raises(ParameterError, match="unknown='skip'"):
        NodeVectors(people, unknown="skip").fit()
    with pytest.raises(ParameterError, match="embedding="):
        NodeVectors(people.vectors).fit()
    with pytest.raises(InputError, match="not vectors"):
        NodeVectors(people).fit().transform(people.vectors)


def test_clones_share_the_embedding(people):
    again = clone(NodeVectors(people, unknown="zeros"))
    assert again.embedding is people
    assert again.get_params() == {"embedding": people, "graph": None, "unknown": "zeros"}


def test_names_and_tables(people):
    pandas = pytest.importorskip("pandas")
    step = NodeVectors(people).set_output(transform="pandas").fit()
    frame = step.transform(pandas.Series(["bob", "ann"], index=[5, 9]))
    assert frame.columns.tolist() == step.get_feature_names_out().tolist() == ["nodevectors0", "nodevectors1"]
    assert frame.index.tolist() == [5, 9]
    assert frame.to_numpy().tolist() == [[3, 4], [1, 2]]


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    settings = {"walks_per_node": 40, "n_threads": 1, "random_state": 0}
    made = [KernelNE(dim=dim, **settings).fit(data.graph).to_embedding() for dim in (2, 32)]
    labels = data.labels
    return made, labels.nodes, labels.classes[labels.single]


def test_grid_search_over_classifiers_and_embeddings(digits):
    (small, large), ids, truth = digits
    pipeline = make_pipeline(NodeVectors(small), StandardScaler(), LogisticRegression(max_iter=2000))
    grid = {"nodevectors__embedding": [small, large], "logisticregression__C": [0.1, 1.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = GridSearchCV(pipeline, grid, cv=3).fit(ids, truth)
    assert search.best_params_["nodevectors__embedding"] is large
    assert search.best_score_ > 0.9
    by_embedding = search.cv_results_["mean_test_score"].reshape(2, 2)
    assert by_embedding.max(axis=0).argmax() == 1 or by_embedding.max(axis=1).argmax() == 1
    assert search.predict(ids[:5]).shape == (5,)


def test_beside_other_features(digits):
    (small, large), ids, truth = digits
    both = make_union(NodeVectors(small), NodeVectors(large))
    scores = cross_val_score(make_pipeline(both, LogisticRegression(max_iter=2000)), ids, truth, cv=3)
    assert scores.mean() > 0.9
    assert both.fit_transform(ids[:4]).shape == (4, 34)


def test_grid_search_in_processes(digits):
    """What other processes get is a copy that was pickled."""
    (_, large), ids, truth = digits
    pipeline = make_pipeline(NodeVectors(large), LogisticRegression(max_iter=2000))
    alone = cross_val_score(pipeline, ids, truth, cv=2)
    assert cross_val_score(pipeline, ids, truth, cv=2, n_jobs=2).tolist() == pytest.approx(alone.tolist())


def test_ids_of_another_kind_are_not_taken_for_unknown_ones():
    embedding = Embedding(np.eye(3), [10, 20, 30])
    lookup = NodeVectors(embedding, unknown="zeros").fit()
    np.testing.assert_array_equal(lookup.transform(np.array([20.0, 10.0])), np.eye(3)[[1, 0]])
    with pytest.raises(InputError, match=r"X\[1\] is nan"):
        lookup.transform(np.array([10.0, np.nan]))
    with pytest.raises(InputError, match="ids such as 10, and X such as '10'"):
        lookup.transform(["10", "20"])
    with pytest.raises(InputError, match="same type"):
        NodeVectors(Embedding(np.eye(2), ["a", "b"]), unknown="zeros").fit().transform([1, 2])


def test_a_grid_search_chooses_parameters_of_the_model(two_cliques, monkeypatch):
    trained = []
    real = KernelNE.fit

    def fit(self, graph, y=None):
        trained.append(self.sigma)
        return real(self, graph, y)

    monkeypatch.setattr(KernelNE, "fit", fit)
    model = KernelNE(dim=4, walks_per_node=20, n_threads=1, random_state=0)
    pipeline = make_pipeline(NodeVectors(model, graph=two_cliques), LogisticRegression())
    nodes, groups = two_cliques.nodes, np.arange(two_cliques.n_nodes) < two_cliques.n_nodes // 2
    grid = {"nodevectors__embedding__sigma": [0.5, 2.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = GridSearchCV(pipeline, grid, cv=2).fit(pd.Index(nodes), groups)
    assert search.best_params_["nodevectors__embedding__sigma"] in (0.5, 2.0)
    assert set(trained) == {0.5, 2.0}
    assert len(trained) <= 3  # one for each value, and perhaps again for the best
    assert copy.deepcopy(two_cliques) is two_cliques


def test_an_estimator_needs_a_graph():
    with pytest.raises(ParameterError, match="graph=None"):
        NodeVectors(KernelNE()).fit()


@pytest.mark.filterwarnings("ignore:1 of 11 nodes have no edges:UserWarning")
def test_fitted_estimators_and_classes(two_cliques):
    model = KernelNE(dim=4, walks_per_node=5, random_state=0, n_threads=1).fit(two_cliques)
    with pytest.raises(ParameterError, match=r"graph=None: .*pass estimator\.to_embedding\(\)"):
        NodeVectors(model).fit()
    assert NodeVectors(model.to_embedding()).fit_transform(two_cliques.nodes).shape == model.embedding_.shape
    with pytest.raises(ParameterError, match=r"is a class: give an estimator, KernelNE\("):
        NodeVectors(KernelNE, graph=two_cliques).fit()
