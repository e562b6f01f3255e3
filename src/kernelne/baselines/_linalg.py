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
    def T(self) -> Any: ...  # noqa: N802
    def __matmul__(self, X: Any, /) -> Any: ...


def truncated_svd(
    matrix: Operator, k: int, seed: int, *, symmetric: bool = False, tolerance: float = 1e-3
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The largest singular triplets of a matrix (n, m): left (n, k), values (k,), right (m, k).

    k is cut to the rank, or nearly so. A block of vectors, random at first, is multiplied by A Aᵀ (by A, if
    it is said to be symmetric) a few times; the best of what these products span is the next block, until no
    value moves by more than `tolerance` of the largest (Musco & Musco, "Randomized Block Krylov Methods for
    Stronger and Faster Approximate SVD", NeurIPS 2015).
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
    image = np.asarray(matrix.T @ left)  # Aᵀ times `left`, and so below for `basis` and `images`
    before = np.zeros(k, matrix.dtype)
    for _ in range(_MOST_ROUNDS):
        basis, images = _extend(matrix, left, image, symmetric)
        # A ≈ Q (Qᵀ A): the triplets of the flat matrix are those of A within the subspace.
        V, s, Wt = scipy.linalg.svd(images, full_matrices=False, overwrite_a=True)
        left, image = basis @ Wt[:width].T, V[:, :width] * s[:width]
        if len(s) < k or np.abs(s[:k] - before).max() <= tolerance * s[0]:
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
        size = float(np.linalg.norm(image))
        # Twice, for a product that lies almost within the basis leaves mostly rounding the first time.
        image = orthonormal(image - basis @ (basis.T @ image), size)
        image = orthonormal(image - basis @ (basis.T @ image), 1.0)
        if not image.size:
            break
        basis = np.hstack([basis, image])
        images.append(np.asarray(matrix.T @ image))
    return basis, np.hstack(images)


def orthonormal(X: Any, size: float | None = None) -> NDArray[Any]:
    """An orthonormal basis (n, ≤ k) of the columns of X (n, k), less those that are rounding next to `size`.

    size: of the numbers X was computed from; None: that of X.
    """
    X = np.asarray(X)
    Q, R = scipy.linalg.qr(X, mode="economic")
    floor = 10 * np.finfo(X.dtype).eps * (float(np.linalg.norm(X)) if size is None else size)
    keep = np.abs(np.diagonal(R)) > floor
    return np.asarray(Q if keep.all() else Q[:, keep])
