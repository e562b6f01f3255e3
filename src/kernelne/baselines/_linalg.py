"""The few largest eigenvalues or singular values of a matrix that is only multiplied with.

They are computed by SciPy's ARPACK. scikit-learn's randomised SVD does not accept a matrix that is known only
by its products, and has errors ten times as large after the same time.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

#: How far from an eigenvector a vector may be left, as a share of its eigenvalue.
_TOLERANCE = 1e-4


class Operator(Protocol):
    """A matrix known by its products; SciPy sparse matrices and arrays are operators."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def T(self) -> Any: ...  # noqa: N802
    def __matmul__(self, X: Any, /) -> Any: ...


def top_eigenpairs(matrix: Operator, k: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the largest eigenvalues (≤ k,) of a symmetric matrix (n, n) and their vectors (n, ≤ k)."""
    if _is_small(matrix, k):
        n = matrix.shape[0]
        values, vectors = scipy.linalg.eigh(_whole(matrix), subset_by_index=(max(n - k, 0), n - 1))
        return values, vectors
    return _arpack(matrix, k, seed, "LA")


def truncated_svd(
    matrix: Operator, k: int, seed: int, *, symmetric: bool = False
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the largest singular triplets of a matrix (n, m): left (n, k), values (k,), right (m, k).

    k is cut to the rank. symmetric: the matrix is its own transpose, which saves half of the products.
    """
    if _is_small(matrix, k):
        left, values, turn = scipy.linalg.svd(_whole(matrix), full_matrices=False)
        return left[:, :k], values[:k], turn[:k].T
    transposed = matrix.T
    _, right = _arpack(matrix if symmetric else _Gram(matrix, transposed), k, seed, "LM")
    image = np.asarray(matrix @ right)
    _, values, turn = scipy.linalg.svd(image, full_matrices=False)
    rounding = np.finfo(values.dtype).eps
    kept = values > values.max(initial=0) * (100 * rounding if symmetric else np.sqrt(rounding))
    # By products, so that where the matrix has a row or column of zeros the vectors have zeros.
    left = image @ turn[kept].T / values[kept]
    return left, values[kept], np.asarray(transposed @ left) / values[kept]


def _is_small(matrix: Operator, k: int) -> bool:
    return 3 * k >= min(matrix.shape)  # ARPACK's basis alone has 2k columns


def _whole(matrix: Operator) -> NDArray[Any]:
    return np.asarray(matrix @ np.eye(matrix.shape[1], dtype=matrix.dtype))


class _Gram:
    """AᵀA as an operator."""

    def __init__(self, matrix: Operator, transposed: Operator) -> None:
        self.matrix, self.transposed = matrix, transposed
        self.shape, self.dtype = (matrix.shape[1],) * 2, matrix.dtype

    @property
    def T(self) -> _Gram:  # noqa: N802
        return self

    def __matmul__(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.transposed @ (self.matrix @ X))


def _arpack(matrix: Operator, k: int, seed: int, which: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Eigenvalues (k,) and vectors (n, k) of a symmetric matrix; none of one that is all zeros."""
    start = np.random.default_rng(seed).standard_normal(matrix.shape[0]).astype(matrix.dtype)
    if not (matrix @ start).any():
        return start[:0], start[:, None][:, :0]
    operator = LinearOperator(matrix.shape, matvec=lambda x: matrix @ x, dtype=matrix.dtype)
    values, vectors = eigsh(operator, k, which=which, v0=start, tol=_TOLERANCE)
    return values, vectors
