"""Nearest neighbours among vectors: exact, by matrix products of blocks, or approximate, by an index.

Both find candidates in float32 and rank them in float64, so that the scores are accurate in both cases, and
equal vectors are ranked in the order of their rows.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelne._common.checks import check_count
from kernelne._common.folders import signature
from kernelne.errors import FileFormatError, InputError, MissingDependencyError, ParameterError
from kernelne.io.files import PathLike, atomic_output, check_input

#: The metrics, and the name of the score of each.
METRICS = {"cosine": "similarity", "euclidean": "distance"}

_SPARE = 32  # candidates beyond k, so that rounding in float32 loses none of the nearest
_BLOCK = 2**24  # numbers in memory at a time: 64 MB in float32
_BLOCK_ROWS = 2**16
_FIRST_ROWS = 2**12  # rows searched first: their nearest are a threshold that rejects most other rows
_QUERIES = 2**8
#: Squared lengths between which products in float32 neither underflow nor overflow.
_SHORTEST, _LONGEST = 1e-30, 1e30

#: Settings of the index, by metric; benchmarks/neighbours.py measures their recall. Euclidean distance needs
#: larger ones, as short vectors are near to all others.
_SETTINGS = {
    "cosine": {"connectivity": 32, "expansion_add": 200, "expansion_search": 300},
    "euclidean": {"connectivity": 64, "expansion_add": 400, "expansion_search": 400},
}
_FORMAT = "kernelne neighbour index 1"

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]


class Neighbours(NamedTuple):
    """Nearest neighbours of m nodes or vectors, nearest first: ids (m, k) and scores (m, k) float64."""

    ids: NDArray[Any]
    scores: Scores

    def __repr__(self) -> str:
        m, k = self.ids.shape
        first = zip(self.ids[:1].ravel()[:3], self.scores[:1].ravel()[:3], strict=True)
        some = ", ".join(f"{node} {score:.3g}" for node, score in first)
        told = f"; of the first: {some}{', …' if k > 3 else ''}" if some else ""
        return f"<Neighbours: {k:,} of each of {m:,}{told}>"


class NeighbourIndex:
    """An approximate index (HNSW, by usearch) of vectors (n, d) float32."""

    def __init__(self, vectors: NDArray[np.float32], metric: str, n_threads: int | None = None) -> None:
        check_metric(metric)
        check_count("n_threads", 1 if n_threads is None else n_threads)
        self.metric = metric
        self.vectors_hash = _hash(vectors)
        self._index = _usearch().Index(
            ndim=vectors.shape[1],
            metric={"cosine": "cos", "euclidean": "l2sq"}[metric],
            dtype="f32",
            enable_key_lookups=False,
            **_SETTINGS[metric],
        )
        self._index.add(np.arange(len(vectors)), vectors, threads=n_threads or 0)

    def candidates(self, queries: NDArray[np.float32], count: int) -> Rows:
        """Return candidate rows (m, count) near the queries; -1 where the index found fewer."""
        try:
            found = self._index.search(np.ascontiguousarray(queries), count)
        except RuntimeError as error:
            raise InputError(f"the neighbour index is damaged, rebuild it: {error}") from error
        keys = found.keys.astype(np.int64).reshape(len(queries), -1)
        counts = getattr(found, "counts", [keys.shape[1]])  # a single query has no counts: all keys are valid
        there = np.arange(keys.shape[1]) < np.reshape(counts, (-1, 1))
        rows = np.full((len(queries), count), -1)
        rows[:, : keys.shape[1]] = np.where(there & (keys < len(self._index)), keys, -1)
        return rows

    def save(self, path: PathLike, overwrite: bool = False) -> None:
        """Write the index, with hashes of itself and of its vectors, whole or not at all."""
        from safetensors.numpy import save

        content = np.frombuffer(self._index.save(), np.uint8)
        facts = {
            "format": _FORMAT,
            "metric": self.metric,
            "vectors": self.vectors_hash,
            "content": _hash(content),
            "signature": signature(content.tobytes()),
            "settings": json.dumps(_SETTINGS[self.metric]),
        }
        with atomic_output(path, overwrite) as temporary:
            temporary.write_bytes(save({"index": content}, facts))

    @classmethod
    def load(
        cls, path: PathLike, vectors: NDArray[np.float32], metric: str, trusted: bool = False
    ) -> NeighbourIndex:
        """Read an index; raise FileFormatError if it is damaged or has other vectors or another metric.

        Also if it was made by someone else or on another machine, unless `trusted`: usearch believes every
        number in it, and a crafted file ends the process or worse.
        """
        from safetensors import SafetensorError, safe_open

        check_metric(metric)
        library = _usearch()
        if check_input(path) == 0:
            raise FileFormatError(path, "the file is empty")
        try:
            with safe_open(os.fspath(path), "numpy") as file:
                facts = file.metadata() or {}
                content = file.get_tensor("index") if "index" in file.keys() else None  # noqa: SIM118
        except SafetensorError as error:
            raise FileFormatError(path, f"not a readable neighbour index: {error}") from error
        if facts.get("format") != _FORMAT or content is None:
            raise FileFormatError(path, "not a neighbour index that this version can read")
        # Checked first, as usearch trusts its input.
        if facts.get("content") != _hash(content):
            raise FileFormatError(path, "the neighbour index is damaged: rebuild it")
        if facts.get("metric") != metric:
            raise FileFormatError(path, f"is an index for metric {facts.get('metric')}, not {metric}")
        if facts.get("settings") != json.dumps(_SETTINGS[metric]):
            raise FileFormatError(path, "the neighbour index has other settings: rebuild it")
        if facts.get("vectors") != (fingerprint := _hash(vectors)):
            raise FileFormatError(path, "is the index of other vectors: rebuild it")
        code = facts.get("signature", "")
        if not trusted and not hmac.compare_digest(code.encode(), signature(content.tobytes()).encode()):
            told = "the neighbour index was made by someone else or on another machine: rebuild it"
            raise FileFormatError(path, f"{told}, or pass trusted=True")
        try:
            index = library.Index.restore(content.tobytes(), enable_key_lookups=False, **_SETTINGS[metric])
        except RuntimeError:
            index = None
        if index is None or len(index) != len(vectors) or index.ndim != vectors.shape[1]:
            raise FileFormatError(path, "the neighbour index is damaged: rebuild it")
        made = cls.__new__(cls)
        made.metric, made.vectors_hash, made._index = metric, fingerprint, index
        return made


def index_path(path: PathLike, metric: str) -> Path:
    """Return the path of the index of the embedding at `path`: a file beside it."""
    check_metric(metric)
    return Path(f"{os.fspath(path)}.{metric}.usearch")


def check_metric(metric: Any) -> None:
    """Raise ParameterError for an unknown metric."""
    if not isinstance(metric, str) or metric not in METRICS:
        raise ParameterError("metric", metric, f"must be one of {', '.join(METRICS)}")


def nearest(
    vectors: NDArray[np.float32],
    k: int,
    metric: str,
    *,
    queries: NDArray[np.float32] | None = None,
    own: Rows | None = None,
    index: NeighbourIndex | None = None,
) -> tuple[Rows, Scores]:
    """Return the k nearest rows of vectors (n, d), as (m, k) int64, nearest first, and their scores (m, k).

    The queries are vectors (m, d), or the rows `own` (m,), each of which is excluded from its own neighbours;
    if both are given, row `own` is excluded from the neighbours of a vector, -1 excludes none.
    If there are fewer than k rows, fewer columns are returned. With an index the search is approximate.
    Scores are cosine similarities, 0 for a vector of zeros, or Euclidean distances.
    """
    check_count("k", k)
    check_metric(metric)
    m = len(own) if own is not None else 0 if queries is None else len(queries)
    k = min(k, len(vectors) - (own is not None and bool((own >= 0).any())))
    rows, closeness = np.empty((m, k), np.int64), np.empty((m, k))
    search = _Search(vectors, k, metric, index)
    for part in _parts(m, search.n_queries):
        skip = None if own is None else own[part]
        given = vectors[skip] if queries is None else queries[part]
        if k:
            rows[part], closeness[part] = search(given, skip)
    return rows, closeness if metric == "cosine" else -closeness


class _Search:
    """Finds the k nearest rows of a batch of queries; the lengths of the vectors are computed once."""

    def __init__(
        self, vectors: NDArray[np.float32], k: int, metric: str, index: NeighbourIndex | None
    ) -> None:
        self.vectors, self.k, self.metric, self.index = vectors, k, metric, index
        n, d = vectors.shape
        self.n_candidates = min(n, k + _SPARE)
        widest = max(min(n, _BLOCK_ROWS), self.n_candidates * d)
        self.n_queries = max(min(_BLOCK // widest, _QUERIES), 1)
        if index is None:
            with np.errstate(over="ignore", under="ignore"):
                self.squares = np.einsum("ij,ij->i", vectors, vectors)
            short = self.squares < _SHORTEST
            # Beyond the range of float32 all is done in float64; trained vectors never need it.
            self.fits = bool(self.squares.max() < _LONGEST and not vectors[short].any())
            with np.errstate(divide="ignore"):
                self.inverse = np.where(short, np.float32(0), 1 / np.sqrt(self.squares))

    def __call__(self, queries: NDArray[np.float32], skip: Rows | None) -> tuple[Rows, Scores]:
        exact = queries.astype(np.float64)
        rows = np.empty((len(queries), self.k), np.int64)
        closeness = np.empty(rows.shape)
        if self.index is not None:
            candidates = self.index.candidates(queries, self.k + (skip is not None))
            if skip is not None:
                candidates[candidates == skip[:, None]] = -1
            rows[:], closeness[:] = self._rank(exact, candidates)
            sure = closeness[:, -1] > -np.inf
        else:
            lengths = np.sqrt((exact**2).sum(axis=1))
            largest = np.square(lengths).max(initial=0.0)
            if self.fits and largest < _LONGEST and not exact[lengths**2 < _SHORTEST].any():
                candidates, least = self._candidates(queries, lengths, skip)
                rows[:], closeness[:] = self._rank(exact, candidates)
                sure = self._above(closeness[:, -1], lengths, least)
            else:
                sure = np.zeros(len(queries), bool)
        unsure = np.flatnonzero(~sure)
        # Equal queries, such as leaves of a star or nodes without edges, are searched once.
        _, first, which = np.unique(exact[unsure], axis=0, return_index=True, return_inverse=True)
        for group, one in enumerate(first):
            members = unsure[which.ravel() == group]
            near, values = self._in_full(exact[unsure[one]], self.k + (skip is not None))
            own = np.full(len(members), -1) if skip is None else skip[members]
            kept = np.argsort(near == own[:, None], axis=1, kind="stable")[:, : self.k]  # itself last
            rows[members], closeness[members] = near[kept], values[kept]
        return rows, closeness

    def _candidates(
        self, queries: NDArray[np.float32], lengths: Scores, skip: Rows | None
    ) -> tuple[Rows, Scores]:
        """Return the nearest rows in float32 (m, candidates), and an upper bound (m,) on all other rows."""
        m, n, c = len(queries), len(self.vectors), self.n_candidates
        if self.metric == "cosine":
            scale = np.divide(1.0, lengths, out=np.zeros(m), where=lengths > 0)[:, None]
            factors = (queries * scale).astype(np.float32)
        else:
            factors = 2 * queries
        pool = np.full((m, c), -1), np.full((m, c), -np.inf, np.float32)
        # The first block fills the candidates; later blocks are only compared with the worst of them.
        bounds = [0, *range(min(n, max(_FIRST_ROWS, c)), n, _BLOCK_ROWS), n]
        for start, stop in pairwise(bounds):
            near = factors @ self.vectors[start:stop].T
            if self.metric == "cosine":
                near *= self.inverse[start:stop]
            else:
                near -= self.squares[start:stop]
            if skip is not None:
                inside = np.flatnonzero((start <= skip) & (skip < stop))
                near[inside, skip[inside] - start] = -np.inf
            pool = _merge(pool, near, start)
        rows, values = pool
        rows = np.where(values > -np.inf, rows, -1)
        return rows, values.min(axis=1).astype(np.float64) if c < n else np.full(m, -np.inf)

    def _above(self, closeness: Scores, lengths: Scores, least: Scores) -> NDArray[np.bool_]:
        """Return whether closeness (m,) exceeds `least`, the bound on the other rows, by more than rounding.

        For the Euclidean distance the bound is on 2x·q − |x|². Any x that is as near is at most as long as
        the query plus the distance.
        """
        rounding = (self.vectors.shape[1] + 4) * float(np.finfo(np.float32).eps)
        reach: Scores | float = 1.0
        if self.metric == "euclidean":
            longest = lengths - closeness
            closeness, reach = lengths**2 - closeness**2, 2 * lengths * longest + longest**2
        above: NDArray[np.bool_] = closeness > least + rounding * reach
        return above

    def _rank(self, queries: Scores, candidates: Rows) -> tuple[Rows, Scores]:
        """Return the k nearest of each row of candidates (-1: none), and their closeness."""
        closeness = _closeness(queries[:, None], self.vectors[candidates], self.metric)
        closeness[candidates < 0] = -np.inf
        order = np.lexsort((candidates, -closeness), axis=-1)[:, : self.k]
        return np.take_along_axis(candidates, order, 1), np.take_along_axis(closeness, order, 1)

    def _in_full(self, query: Scores, k: int) -> tuple[Rows, Scores]:
        """Return the k nearest rows of one query, compared with all rows in float64."""
        parts = _parts(len(self.vectors), max(_BLOCK // 4 // self.vectors.shape[1], 1))
        closeness = np.concatenate([_closeness(query, self.vectors[part], self.metric) for part in parts])
        least = np.partition(closeness, -k)[-k]
        above = np.flatnonzero(closeness > least)
        level = np.flatnonzero(closeness == least)[: k - len(above)]
        rows = np.sort(np.concatenate([above, level]))
        rows = rows[np.argsort(-closeness[rows], kind="stable")]
        return rows, closeness[rows]


def _merge(
    pool: tuple[Rows, NDArray[np.float32]], near: NDArray[np.float32], start: int
) -> tuple[Rows, NDArray[np.float32]]:
    """Merge the nearer rows of the block `near` (m, b) into the pool (m, c) of rows and their closeness."""
    rows, values = pool
    m, c = rows.shape
    if start == 0:
        best = np.argpartition(near, -c, axis=1)[:, -c:] if c < near.shape[1] else np.indices(near.shape)[1]
        return best.astype(np.int64), np.take_along_axis(near, best, 1)
    query, place = np.nonzero(near > values.min(axis=1, keepdims=True))
    if not len(query):
        return pool
    query = np.concatenate([np.repeat(np.arange(m), c), query])
    all_values = np.concatenate([values.ravel(), near[query[m * c :], place]])
    order = np.lexsort((-all_values, query))
    counts = np.bincount(query, minlength=m)
    first = np.cumsum(counts) - counts
    kept = order[first[:, None] + np.arange(c)]
    return np.concatenate([rows.ravel(), place + start])[kept], all_values[kept]


def _closeness(queries: Scores, vectors: NDArray[np.float32], metric: str) -> Scores:
    """Return the cosine, or minus the distance, of queries (…, d) and vectors: (…, c) float64.

    Sums along rows, not matrix products, so that equal vectors have exactly equal closeness.
    """
    exact = vectors.astype(np.float64)
    if metric == "euclidean":
        exact -= queries
        distance: Scores = -np.sqrt(np.square(exact, out=exact).sum(axis=-1))
        return distance
    lengths = np.sqrt((exact * exact).sum(axis=-1) * (queries * queries).sum(axis=-1))  # 1 for equal ones
    dots = np.multiply(exact, queries, out=exact).sum(axis=-1)
    cosine: Scores = np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)
    return cosine.clip(-1.0, 1.0)


def _parts(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _hash(array: NDArray[Any]) -> str:
    """Return the hex digest of an array's shape, dtype and bytes."""
    digest = hashlib.blake2b(f"{array.shape} {array.dtype}|".encode(), digest_size=20)
    digest.update(array.data)
    return digest.hexdigest()


def check_query(query: NDArray[np.float32], dim: int) -> None:
    """Raise InputError unless the last axis of a query has length `dim`."""
    if query.shape[-1] != dim:
        raise InputError(f"query: has {query.shape[-1]} dimensions, but the vectors have {dim}")


def _usearch() -> Any:
    try:
        import usearch.index
    except ImportError:
        raise MissingDependencyError("usearch", "search") from None
    return usearch.index
