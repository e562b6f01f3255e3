"""The few largest eigenvalues and singular values against all of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from kernelne.baselines._linalg import top_eigenpairs, truncated_svd


def _matrix(rows, columns, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < 0.05)
    return scipy.sparse.csr_array(values.astype(dtype))


def _check(matrix, k, **options):
    left, values, right = truncated_svd(matrix, k, 1, **options)
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("k", [1, 20])
def test_star(k, symmetric, dtype):
    """Two singular values, the same; all others are zero."""
    star = scipy.sparse.lil_array((2000, 2000), dtype=dtype)
    star[0, 1:] = star[1:, 0] = 1
    values = truncated_svd(star.tocsr(), k, 0, symmetric=symmetric)[1]
    np.testing.assert_allclose(values, [np.sqrt(1999)] * min(k, 2), rtol=1e-4)


@pytest.mark.parametrize("symmetric", [False, True])
def test_zeros_stay(symmetric):
    matrix = _matrix(300, 300, dtype=np.float32).toarray()
    matrix = matrix @ matrix.T if symmetric else matrix
    matrix[5], matrix[:, 5] = 0, 0
    left, _, right = truncated_svd(matrix, 12, 0, symmetric=symmetric)
    assert not left[5].any()
    assert not right[5].any()


@pytest.mark.parametrize("n", [20, 300])
def test_eigenpairs(n):
    matrix = _matrix(n, n, 2)
    matrix = (matrix + matrix.T).toarray()
    values, vectors = top_eigenpairs(matrix, 12, 0)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix)[-12:], atol=1e-6)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-3)
    assert len(top_eigenpairs(matrix, 2 * n, 0)[0]) == n
    assert not len(top_eigenpairs(np.zeros((100, 100)), 3, 0)[0])
