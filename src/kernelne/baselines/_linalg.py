"""The largest singular triplets of a matrix known only by its products, by block Krylov iteration."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

#: Additional columns, so that the last of the requested ones converge too.
_SPARE = 10
#: Number of blocks in the Krylov subspace.
_DEPTH = 3
_MOST_ROUNDS = 30


class Operator(Protocol):
    """A matrix known by its products; SciPy sparse matrices and arrays are operators."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def T(self) -> Any: ...  # noqa: N802
    def __matmul__(self, X: Any, /) -> Any: ...


def truncated_svd(
    matrix: Operator, k: int, seed: int, *, symmetric: bool = False, tolerance: float = 1e-3
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the largest singular triplets of a matrix (n, m): left (n, k), values (k,), right (m, k).

    k is reduced to about the rank if that is lower. A block of vectors, initially random, is multiplied by
    A Aᵀ (by A, if `symmetric`) a few times; the best vectors in the span of these products are the next
    block, until no value changes by more than `tolerance` times the largest (Musco & Musco, "Randomized Block
    Krylov Methods for Stronger and Faster Approximate SVD", NeurIPS 2015).
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
    if not left.size:
        return left, np.zeros(0, matrix.dtype), block[:, :0]
    image = np.asarray(matrix.T @ left)  # Aᵀ · left; below likewise images = Aᵀ · basis
    before = np.zeros(k, matrix.dtype)
    for _ in range(_MOST_ROUNDS):
        basis, images = _extend(matrix, left, image, symmetric)
        # A ≈ Q (Qᵀ A): the triplets of the small matrix Qᵀ A are those of A within the subspace.
        V, s, Wt = scipy.linalg.svd(images, full_matrices=False, overwrite_a=True)
        left, image = basis @ Wt[:width].T, V[:, :width] * s[:width]
        if len(s) < k or np.abs(s[:k] - before).max() <= tolerance * s[0]:
            break
        before = s[:k]
    return left[:, :k], s[:k], V[:, :k]


def _extend(
    matrix: Operator, block: NDArray[Any], image: NDArray[Any], symmetric: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return an orthonormal basis Q of the Krylov subspace of `block`, whose image is `image`, and Aᵀ Q."""
    basis, images = block, [image]
    for _ in range(_DEPTH - 1):
        image = images[-1] if symmetric else np.asarray(matrix @ images[-1])
        size = float(np.linalg.norm(image))
        # Twice, because a product almost within the span of the basis leaves mostly rounding errors first.
        image = orthonormal(image - basis @ (basis.T @ image), size)
        image = orthonormal(image - basis @ (basis.T @ image), 1.0)
        if not image.size:
            break
        basis = np.hstack([basis, image])
        images.append(np.asarray(matrix.T @ image))
    return basis, np.hstack(images)


def orthonormal(X: Any, size: float | None = None) -> NDArray[Any]:
    """Return an orthonormal basis (n, ≤ k) of the columns of X (n, k), without those that are only rounding.

    size: norm of the matrix from which X was computed; None: that of X.
    """
    X = np.asarray(X)
    Q, R = scipy.linalg.qr(X, mode="economic")
    floor = 10 * np.finfo(X.dtype).eps * (float(np.linalg.norm(X)) if size is None else size)
    keep = np.abs(np.diagonal(R)) > floor
    return np.asarray(Q if keep.all() else Q[:, keep])
