"""NodeVectors: a scikit-learn transformer from node ids to vectors."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from kernelne.embedding import Embedding
from kernelne.errors import InputError, ParameterError
from kernelne.graph import Graph, as_graph
from kernelne.graph.ids import node_array


class NodeVectors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transforms node ids to their vectors in an embedding.

    Parameters
    ----------
    embedding: an Embedding, the path of a saved one, or an estimator such as KernelNE(), which is trained on
        `graph`: a grid search can then choose its parameters, such as `nodevectors__embedding__sigma`. Each
        setting is trained once for all folds if `random_state` is an integer, else once for each fold.
    graph: the graph to train an estimator on, as for `MKernelNE.fit`.
    unknown: how to treat an id that is not in the embedding: "error" raises, "zeros" gives a row of zeros.

    X is one node id per sample: a list, an array or a Series, or a table with one column.

    Attributes
    ----------
    embedding_: the Embedding.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelne import Embedding, NodeVectors
    >>> embedding = Embedding([[1.0, 0.0], [0.0, 2.0]], ["ann", "bob"])
    >>> NodeVectors(embedding, unknown="zeros").fit_transform(["bob", "eve"])
    array([[0., 2.], [0., 0.]], dtype=float32)
    """

    def __init__(self, embedding: Any, *, graph: Any = None, unknown: str = "error") -> None:
        self.embedding = embedding
        self.graph = graph
        self.unknown = unknown

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check and load the embedding, or train the estimator on the graph. X and y are ignored."""
        if self.unknown not in ("error", "zeros"):
            raise ParameterError("unknown", self.unknown, 'must be "error" or "zeros"')
        if isinstance(self.embedding, str | os.PathLike):
            self.embedding_ = Embedding.load(self.embedding)
        elif isinstance(self.embedding, Embedding):
            self.embedding_ = self.embedding
        elif isinstance(self.embedding, type):
            name = self.embedding.__name__
            raise ParameterError("embedding", self.embedding, f"is a class: give an estimator, {name}(…)")
        elif hasattr(self.embedding, "to_embedding") and hasattr(self.embedding, "get_params"):
            if self.graph is None:
                told = "give the graph on which the estimator is to be trained; of a fitted one, pass "
                raise ParameterError("graph", None, told + "estimator.to_embedding(), which needs no graph")
            self.embedding_ = _trained(self.embedding, as_graph(self.graph))
        else:
            raise ParameterError(
                "embedding", self.embedding, "must be an Embedding, the path of one, or an estimator"
            )
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the vectors (m, dim) float32 of m ids."""
        check_is_fitted(self, "embedding_")
        ids = _ids(X, self.embedding_.nodes)
        if self.unknown == "error":
            return self.embedding_[ids]
        rows = self.embedding_.find(ids)
        found: NDArray[np.float32] = self.embedding_.vectors[rows]
        found[rows < 0] = 0.0
        return found

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.dim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False  # except one column
        tags.input_tags.string = True
        return tags


#: What was trained last, and with what: the folds of a grid search come one after the other.
_last: tuple[Any, Embedding] | None = None


def _trained(estimator: Any, graph: Graph) -> Embedding:
    global _last
    params = estimator.get_params()
    key = type(estimator), repr(sorted(params.items())), graph.fingerprint
    known = _last  # another thread may change it
    if known is None or known[0] != key or not isinstance(params.get("random_state"), int):
        _last = known = key, clone(estimator).fit(graph).to_embedding()
    return known[1]


def _ids(X: Any, nodes: NDArray[Any]) -> NDArray[Any]:
    """Return ids (m,) from a list, an array, a Series, or a table with one column, of the type of `nodes`."""
    if isinstance(X, list) and X and all(isinstance(row, list) and len(row) == 1 for row in X):
        X = [row[0] for row in X]
    if hasattr(X, "__array__") and np.ndim(X) == 2:
        table = np.asarray(X)
        if table.shape[1] != 1:
            raise InputError(f"X: shape {table.shape}: give one node id per sample, not vectors")
        X = table[:, 0]
    if nodes.dtype != object and hasattr(X, "__array__") and np.asarray(X).dtype.kind == "f":
        # pandas turns a column of integers into floats if a value is missing.
        given = np.asarray(X)
        if (odd := np.flatnonzero(~(given == np.floor(given)))).size:
            raise InputError(f"X[{odd[0]}] is {given[odd[0]]}, but the ids of the embedding are integers")
        X = given.astype(np.int64)
    ids = node_array(X)
    if len(ids) and isinstance(ids[0], str) != isinstance(nodes[0], str):
        kinds = f"ids such as {nodes.tolist()[0]!r}, and X such as {ids.tolist()[0]!r}"
        raise InputError(f"X: the embedding has {kinds}: give both the same type")
    return ids
