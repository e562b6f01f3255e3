"""Gradient boosted trees as plain arrays, which can be saved without pickle and are evaluated in parallel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.jit import cached


class Trees(NamedTuple):
    """The nodes of all trees, one after the other; a leaf has no left child.

    start: (1,) float64, the score before the first tree. roots: (t,) int64, the first node of each tree.
    features, left, right: (m,) int64. thresholds, values: (m,) float64.
    """

    start: NDArray[np.float64]
    roots: NDArray[np.int64]
    features: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, model: Any) -> Trees:
        """Return the trees of a fitted HistGradientBoostingClassifier of two classes."""
        nodes = [predictors[0].nodes for predictors in model._predictors]
        roots = np.cumsum([0, *(len(each) for each in nodes[:-1])])
        places = np.repeat(roots, [len(each) for each in nodes])
        whole = np.concatenate(nodes)
        inner = whole["is_leaf"] == 0
        return cls(
            np.ravel(model._baseline_prediction).astype(np.float64),
            roots.astype(np.int64),
            whole["feature_idx"].astype(np.int64),
            np.where(inner, whole["left"] + places, -1).astype(np.int64),
            np.where(inner, whole["right"] + places, -1).astype(np.int64),
            whole["num_threshold"].astype(np.float64),
            whole["value"].astype(np.float64),
        )

    def scores(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of all trees for each row of a table (k, features): a logit."""
        out = np.full(len(table), self.start[0])
        _add_leaves(table, *self[1:], out)
        return out

    def check(self, n_features: int) -> None:
        """Raise ValueError unless every path ends in a leaf and reads features that exist."""
        m = len(self.features)
        inner = self.left >= 0
        at = np.arange(m)
        fine = all(len(each) == m for each in self[2:]) and len(self.start) == 1
        fine = fine and bool((inner == (self.right >= 0)).all())
        for child in (self.left, self.right):  # children come later: no path can go in circles
            fine = fine and bool((child[inner] > at[inner]).all() and (child < m).all())
        fine = fine and bool(((self.features >= 0) & (self.features < n_features))[inner].all())
        if not fine or not ((self.roots >= 0) & (self.roots < m)).all():
            raise ValueError("the trees are damaged")


@cached()
def _add_leaves(table, roots, features, left, right, thresholds, values, out):  # type: ignore[no-untyped-def]
    for i in range(len(table)):
        for root in roots:
            at = root
            while left[at] >= 0:
                at = left[at] if table[i, features[at]] <= thresholds[at] else right[at]
            out[i] += values[at]
