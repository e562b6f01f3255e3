"""The truncated singular value decomposition against the whole one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from kernelne.baselines._linalg import orthonormal, truncated_svd


def _matrix(rows, columns, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < 0.05)
    return scipy.sparse.csr_array(values.astype(dtype))


def _check(matrix, k, **options):
    left, values, right = truncated_svd(matrix, k, 1, tolerance=1e-10, **options)
    dense = matrix.toarray().astype(np.float64)
    wanted = np.linalg.svd(dense, compute_uv=False)[: len(values)]
    np.testing.assert_allclose(values, wanted, rtol=1e-5, atol=1e-5 * wanted[0])
    np.testing.assert_allclose(dense @ right, left * values, atol=2e-3 * wanted[0])
    np.testing.assert_allclose(dense.T @ left, right * values, atol=2e-3 * wanted[0])
    np.testing.assert_allclose(left.T @ left, np.eye(len(values)), atol=1e-5)
    return values


@pytest.mark.parametrize("shape", [(300, 300), (300, 200), (200, 350)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_triplets(shape, dtype):
    assert len(_check(_matrix(*shape, dtype=dtype), 12)) == 12


def test_symmetric():
    matrix = _matrix(300, 300)
    _check((matrix + matrix.T).tocsr(), 12, symmetric=True)


def test_small_matrices_are_done_whole():
    assert len(_check(_matrix(20, 30, 3), 50)) == 20


def test_values_that_repeat():
    blocks = [np.full((3, 3), 2.0)] * 30 + [np.array([[1.0]])] * 110
    np.testing.assert_allclose(_check(scipy.sparse.block_diag(blocks, "csr"), 30, symmetric=True), 6.0)


def test_few_directions():
    column = _matrix(250, 1, 5).toarray()
    for symmetric in (False, True):
        left, values, right = truncated_svd(column @ column.T, 10, 0, symmetric=symmetric)
        np.testing.assert_allclose(values, [(column**2).sum()])
        np.testing.assert_allclose((left * values) @ right.T, column @ column.T, atol=1e-9)
        assert not truncated_svd(scipy.sparse.csr_array((250, 250)), 10, 0, symmetric=symmetric)[1].any()


def test_basis():
    X = np.random.default_rng(0).standard_normal((40, 5))
    Q = orthonormal(X)
    np.testing.assert_allclose(Q @ (Q.T @ X), X)
    assert orthonormal(X[:, [0, 1, 1, 0]]).shape == (40, 2)
