"""M-NMF's steps against the paper's formulas on dense float64 matrices."""

from __future__ import annotations

import numpy as np
import pytest

from kernelne.baselines import MNMF
from kernelne.baselines.mnmf import Proximity, State, step

LAMBDA, ETA = 1e9, 5.0


@pytest.fixture
def matrices(random_graph):
    """S, A and k kᵀ/2e, written out."""
    graph = random_graph(6, 30, directed=False, weighted=True, density=0.15)
    A = graph.to_scipy().toarray().astype(np.float64)
    lengths = np.linalg.norm(A, axis=1)
    assert (lengths == 0).any() or lengths.all()
    cosine = (A @ A.T) / np.maximum(np.outer(lengths, lengths), 1e-300)
    degrees = A.sum(axis=1)
    return graph, A + ETA * cosine, A, np.outer(degrees, degrees) / degrees.sum()


def test_proximity(matrices):
    graph, S, _, _ = matrices
    X = np.random.default_rng(0).random((30, 3), np.float32)
    np.testing.assert_allclose(Proximity.of(graph.to_scipy()) @ X, S @ X, rtol=1e-5, atol=1e-5)


def test_steps(matrices):
    graph, S, A, B1 = matrices
    alpha, beta = 0.3, 2.0
    state = State.start(30, 8, 3, 1)
    M, U, H, C = (np.array(part, np.float64) for part in (state.M, state.U, state.H, state.C))
    proximity = Proximity.of(graph.to_scipy())
    for _ in range(10):
        step(state, proximity, alpha, beta)
        M = M * (S @ U) / (M @ U.T @ U)
        U = U * (S.T @ M + alpha * H @ C) / (U @ (M.T @ M + alpha * C.T @ C))
        C = C * (H.T @ U) / (C @ U.T @ U)
        overlap = H @ H.T @ H
        gain = 2 * beta * A @ H + 2 * alpha * U @ C.T + (4 * LAMBDA - 2 * alpha) * H
        root = np.sqrt((2 * beta * B1 @ H) ** 2 + 16 * LAMBDA * overlap * gain)
        H = H * np.sqrt((root - 2 * beta * B1 @ H) / (8 * LAMBDA * overlap))
    for found, wanted in zip((state.M, state.U, state.H, state.C), (M, U, H, C), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1e-4 * wanted.max())


def test_the_objective_falls(matrices):
    graph, S, A, B1 = matrices
    alpha, beta = 0.3, 2.0
    state, proximity = State.start(30, 8, 3, 1), Proximity.of(graph.to_scipy())
    losses = []
    for _ in range(60):
        step(state, proximity, alpha, beta)
        H = state.H
        loss = np.square(S - state.M @ state.U.T).sum() + alpha * np.square(H - state.U @ state.C.T).sum()
        losses.append(loss - beta * np.trace(H.T @ (A - B1) @ H))
    assert losses[-1] < losses[5] < losses[0]
    for part in (state.M, state.U, state.H, state.C):
        assert part.min() >= 0


def test_communities_are_orthogonal(matrices):
    state, proximity = State.start(30, 8, 3, 1), Proximity.of(matrices[0].to_scipy())
    for _ in range(300):
        step(state, proximity, 0.1, 5.0)
    np.testing.assert_allclose(state.H.T @ state.H, np.eye(3), atol=0.05)


def test_lengths(ring):
    plain, scaled = (
        MNMF(dim=6, n_iterations=5, normalise=flag, random_state=0).fit_transform(ring)
        for flag in (False, True)
    )
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(scaled * np.linalg.norm(plain, axis=1, keepdims=True), plain, rtol=1e-5)
    assert plain.min() >= 0
