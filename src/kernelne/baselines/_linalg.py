"""The few largest singular triplets of a matrix that is only multiplied with: block Krylov iteration."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

#: Columns beyond those asked for, so that the last of them converge too.
_SPARE = 10
#: Blocks in the subspace that is searched for the best vectors.
_DEPTH = 3
_MOST_ROUNDS = 30


class Operator(Protocol):
    """A matrix known by its products; a SciPy sparse matrix or an array is one."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def T(self) -> Any: ...
    def __matmul__(self, X: Any, /) -> Any: ...


def truncated_svd(
    matrix: Operator, k: int, seed: int, *, symmetric: bool = False, tolerance: float = 1e-3
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The largest singular values (k,), falling, of a matrix (n, m), with left (n, k) and right (m, k) vectors.

    k is cut to min(n, m). A block of vectors, random at first, is multiplied by A Aᵀ (by A, if it is said to be
    symmetric) a few times; the best of what these products span is the next block, until no value moves by more
    than `tolerance` of the largest (Musco & Musco, "Randomized Block Krylov Methods for Stronger and Faster
    Approximate SVD", NeurIPS 2015).
    """
    rows, columns = matrix.shape
    k = min(k, rows, columns)
    width = k + _SPARE
    if width * _DEPTH >= min(rows, columns):
        whole = np.asarray(matrix @ np.eye(columns, dtype=matrix.dtype))
        U, s, Vt = scipy.linalg.svd(whole, full_matrices=False)
        return U[:, :k], s[:k], Vt[:k].T
    block = np.random.default_rng(seed).standard_normal((columns, width)).astype(matrix.dtype)
    left = orthonormal(matrix @ block)
    image = np.asarray(matrix.T @ left)  # Aᵀ times `left`, and so below for `basis` and `images`
    before = np.zeros(k)
    for _ in range(_MOST_ROUNDS):
        basis, images = _extend(matrix, left, image, symmetric)
        # A ≈ Q (Qᵀ A): the triplets of the flat matrix are those of A within the subspace.
        V, s, Wt = scipy.linalg.svd(images, full_matrices=False, overwrite_a=True)
        left, image = basis @ Wt[:width].T, V[:, :width] * s[:width]
        if np.abs(s[:k] - before).max() <= tolerance * s[0]:
            break
        before = s[:k]
    return left[:, :k], s[:k], V[:, :k]


def _extend(
    matrix: Operator, block: NDArray[Any], image: NDArray[Any], symmetric: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """An orthonormal basis Q of what products of the matrix make of a block with this image, and Aᵀ Q."""
    basis, images = block, [image]
    for _ in range(_DEPTH - 1):
        image = images[-1] if symmetric else np.asarray(matrix @ images[-1])
        for _ in range(2):  # once is not enough where a product lies almost within the basis
            image = orthonormal(image - basis @ (basis.T @ image))
        basis = np.hstack([basis, image])
        images.append(np.asarray(matrix.T @ image))
    return basis, np.hstack(images)


def orthonormal(X: Any) -> NDArray[Any]:
    """An orthonormal basis of the columns of X (n, k), as many as there are."""
    return np.asarray(scipy.linalg.qr(np.asarray(X), mode="economic")[0])
