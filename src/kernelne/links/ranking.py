"""New links of many nodes at once, ranked by the trained model.

Training makes the kernel k of a pair tend to r/(r + n_negative), where r says how much likelier the pair is
than one of a node and noise, so r is proportional to the odds k/(1 − k). Noise is drawn by visits^¾, and
popular nodes get more links: the score of v as a new neighbour of u is √(odds(center u, context v) ·
odds(context u, center v)) · √degree(v). In a directed graph that was embedded with forward=True it is
odds(center u, context v) · √in-degree(v). The order of the scores has meaning, not their size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from kernelne._common.checks import available_threads, check_count
from kernelne._common.html import html_facts, html_table
from kernelne._common.memory import available_bytes
from kernelne._common.variants import variant
from kernelne.embedding import Embedding
from kernelne.errors import InputError, warn
from kernelne.graph import Graph, as_graph
from kernelne.graph.ops import as_undirected
from kernelne.links.shared import checked_embedding, is_forward, pair_rows
from kernelne.model.kernels import kinds_of, own_key

#: Number of products of a block, at most: 128 MB for both tables.
_BLOCK = 2**24
#: Rows of candidates that are used at a time, if not all are.
_PART = 2**16
#: With fewer edges beyond the number of nodes, two sides may be chance: every tree has them. Each further
#: edge closes a cycle, which is even by chance half of the time.
_MORE_EDGES = 6


@dataclass(frozen=True, eq=False)
class Recommendations:
    """The best new neighbours of nodes, one row each; those of a node follow each other, the best first.

    Nodes are in the order in which they were asked for.

    nodes, recommended   (m,) node ids
    scores               float32 (m,): only the order among those of one node has meaning
    ranks                int64 (m,): 1 for the best of a node
    measure              what the scores are, and the name of their column: score, or probability if they are
                         those of a LinkPredictor
    """

    nodes: NDArray[Any]
    recommended: NDArray[Any]
    scores: NDArray[np.float32]
    ranks: NDArray[np.int64]
    measure: str = "score"

    def __len__(self) -> int:
        return len(self.ranks)

    def __repr__(self) -> str:
        n_nodes = int((self.ranks == 1).sum())
        first = zip(self.nodes[:3], self.recommended[:3], self.scores[:3], strict=True)
        some = "; ".join(f"{node} – {other}, {self.measure} {score:.3g}" for node, other, score in first)
        more = "; …" if len(self) > 3 else ""
        told = f"<Recommendations: {len(self):,} to {n_nodes:,} nodes"
        return f"{told}: {some}{more}>" if some else f"{told}>"

    def _repr_html_(self) -> str:
        first = zip(self.nodes[:10], self.recommended[:10], self.ranks[:10], self.scores[:10], strict=True)
        rows = [(node, other, int(rank), f"{score:.3g}") for node, other, rank, score in first]
        title = f"first {len(rows)} of {len(self):,}"
        return html_table(["node", "recommended", "rank", self.measure], rows, title)

    def of(self, node: Any) -> NDArray[Any]:
        """Return the nodes recommended to one node."""
        found: NDArray[Any] = self.recommended[self.nodes == node]
        return found

    def to_arrow(self) -> Any:
        """Return a pyarrow Table with the columns node, recommended, rank, and score or probability."""
        import pyarrow as pa

        from kernelne.graph.ids import id_column

        columns = (id_column(self.nodes), id_column(self.recommended), self.ranks, self.scores)
        return pa.table(dict(zip(("node", "recommended", "rank", self.measure), columns, strict=True)))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with the columns node, recommended, rank, and score or probability."""
        return self.to_arrow().to_pandas()


def recommend_links(
    graph: Any, embedding: Embedding, nodes: Any = None, *, k: int = 10, candidates: Any = None
) -> Recommendations:
    """Recommend new links to many nodes, or to all.

    Parameters
    ----------
    graph: the graph, as for MKernelNE.fit. Links it has are not recommended. In a directed one the
        ends of new arcs are; embed it with forward=True, so that the vectors tell directions.
    embedding: its embedding; with context vectors and kernels, as .npz and .safetensors keep them, pairs are
        scored by the trained model, without them by the cosine of their vectors.
    nodes: ids of the nodes to recommend to; None: all.
    k: number of recommendations for each node; there are fewer if fewer candidates remain.
    candidates: ids of the nodes to choose from; None: all, or in a bipartite graph those on the other side.

    Examples
    --------
    >>> from kernelne import MKernelNE, load_dataset, recommend_links
    >>> graph = load_dataset("karate").graph
    >>> embedding = MKernelNE(dim=16, random_state=0, n_threads=1).fit(graph).to_embedding()
    >>> recommend_links(graph, embedding, [0, 33], k=2).to_pandas().shape
    (4, 4)
    """
    check_count("k", k)
    ranking = Ranking(graph, embedding)
    rows = np.arange(ranking.graph.n_nodes) if nodes is None else _rows(ranking.graph, nodes, "nodes")
    chosen = None if candidates is None else np.unique(_rows(ranking.graph, candidates, "candidates"))
    ids, found = ranking.graph.nodes, list(ranking.best(rows, k, chosen))
    count = np.concatenate([np.zeros(0, np.int64), *(block.counts for block in found)])
    kept = [np.arange(block.targets.shape[1]) < block.counts[:, None] for block in found]
    targets = [block.targets[keep] for block, keep in zip(found, kept, strict=True)]
    scores = [block.scores[keep] for block, keep in zip(found, kept, strict=True)]
    starts = np.repeat(np.cumsum(count) - count, count)
    ranked = np.concatenate([rows[:0], *(block.rows for block in found)])
    # In the order asked for: the two sides of a bipartite graph are ranked one after the other.
    place = np.empty(len(rows), np.int64)
    place[np.argsort(ranked, kind="stable")] = np.argsort(rows, kind="stable")
    order = np.argsort(np.repeat(place, count), kind="stable")
    return Recommendations(
        ids[np.repeat(ranked, count)[order]],
        ids[np.concatenate([rows[:0], *targets])[order]],
        np.concatenate([np.zeros(0, np.float32), *scores])[order],
        (np.arange(1, count.sum() + 1) - starts)[order],
    )


@dataclass(frozen=True)
class RankingScores:
    """How well new links are ranked, mean over the nodes that have any; `print` shows them.

    recall   share of a node's new links among its k recommendations
    ndcg     the same with weights 1/log₂(1 + rank), as a share of the best possible
    mrr      1 / rank of the best of a node's new links, among all candidates
    k        number of recommendations
    n_nodes  number of nodes with new links
    """

    recall: float
    ndcg: float
    mrr: float
    k: int
    n_nodes: int

    def __str__(self) -> str:
        told = f"recall@{self.k} {self.recall:.3f}, NDCG@{self.k} {self.ndcg:.3f}, MRR {self.mrr:.3f}"
        return f"{told} over {self.n_nodes:,} nodes"

    def _repr_html_(self) -> str:
        return html_facts("ranking", asdict(self))


def rank_links(
    graph: Any, embedding: Embedding, links: Any, *, k: int = 20, candidates: Any = None
) -> RankingScores:
    """Score the recommendations of `recommend_links` by links that the graph does not have.

    links: pairs (m, 2) of node ids, or a table of two columns, whose names are put before the ids if those of
    the graph have them (user_id:5); the second of a pair is to be recommended to the first. Links that the
    graph has, or to nodes that are no candidates, are left out with a warning.
    """
    check_count("k", k)
    ranking = Ranking(graph, embedding)
    chosen = None if candidates is None else np.unique(_rows(ranking.graph, candidates, "candidates"))
    sought = Sought.of(*_new_links(ranking, pair_rows(ranking.graph, links, "links"), chosen).T)
    gains = 1 / np.log2(np.arange(2, k + 2))
    best = np.cumsum(gains)
    recall = ndcg = mrr = 0.0
    for block in ranking.best(sought.rows, k, chosen, sought):
        begin, end = sought.ranges(block.rows)
        count, width = end - begin, block.targets.shape[1]
        hits = sought.contain(block.rows[:, None], block.targets)
        hits &= np.arange(width) < block.counts[:, None]
        recall += float((hits.sum(axis=1) / count).sum())
        ndcg += float((hits @ gains[:width] / best[np.minimum(count, k) - 1]).sum())
        ranked = block.first_hits > 0
        mrr += float((1 / block.first_hits[ranked]).sum())
    n = max(len(sought.rows), 1)
    return RankingScores(recall / n, ndcg / n, mrr / n, k, len(sought.rows))


def _new_links(
    ranking: Ranking, pairs: NDArray[np.int64], candidates: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Return those of the pairs (m, 2) of rows that can be recommended; warn of the others."""
    graph, n = ranking.graph, ranking.graph.n_nodes
    arcs = np.repeat(np.arange(n), graph.degrees) * n + graph.neighbours
    known = np.isin(pairs @ (n, 1), arcs)
    reasons = [(known, "are edges of the graph, which are not recommended")]
    if candidates is not None:
        reasons.append((~known & ~np.isin(pairs[:, 1], candidates), "lead to nodes that are no candidates"))
    elif ranking.sides is not None:
        same = ranking.sides[pairs[:, 0]] == ranking.sides[pairs[:, 1]]
        reasons.append((~known & same, "join nodes of the same side of a bipartite graph"))
    told = [f"{left.sum():,} of {len(pairs):,} {reason}" for left, reason in reasons if left.any()]
    kept: NDArray[np.int64] = pairs[~np.any([left for left, _ in reasons], axis=0)]
    if told and not len(kept):
        raise InputError(
            f"links: {'; '.join(told)}: hide links before the graph is embedded, see split_links"
        )
    if told:
        warn(f"links: {'; '.join(told)}; they are left out")
    return kept


class Sought(NamedTuple):
    """Links to look for: rows that have any, ascending, and their targets, in a row's range sorted."""

    rows: NDArray[np.int64]
    begins: NDArray[np.int64]  # one more than rows
    targets: NDArray[np.int64]

    @classmethod
    def of(cls, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> Sought:
        pairs = np.unique(np.column_stack([sources, targets]).reshape(-1, 2), axis=0)
        rows, begins = np.unique(pairs[:, 0], return_index=True)
        return cls(rows, np.append(begins, len(pairs)), pairs[:, 1])

    def ranges(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the targets of these rows begin and end; the range of others is empty."""
        at = np.searchsorted(self.rows, rows)
        known = np.append(self.rows, -1)[at] == rows
        begin = self.begins[at]
        return begin, np.where(known, np.append(self.begins, 0)[at + 1], begin)

    def contain(self, rows: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.bool_]:
        n = int(max(self.targets.max(initial=0), targets.max(initial=0))) + 1
        owners = np.repeat(self.rows, np.diff(self.begins))
        return np.isin(rows * n + targets, owners * n + self.targets)


_NOTHING = Sought(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64))


def _rows(graph: Graph, ids: Any, name: str) -> NDArray[np.int64]:
    if isinstance(ids, str | bytes) or not np.iterable(ids):
        raise InputError(f"{name}: {ids!r}: give a list of node ids")
    return graph.index_of(ids)


class Block(NamedTuple):
    """Recommendations to some nodes."""

    rows: NDArray[np.int64]  # (q,)
    targets: NDArray[np.int64]  # (q, k): rows of the graph; only the first counts[i] of row i are set
    scores: NDArray[np.float32]  # (q, k), descending
    counts: NDArray[np.int64]  # (q,)
    first_hits: NDArray[np.int64]  # (q,): rank of the best of the links looked for; 0 without


def sides_of(graph: Graph) -> NDArray[Any] | None:
    """Return the sides, 0 or 1, of the rows of an undirected graph; None if it has none but by chance."""
    return graph.sides if graph.n_edges - graph.n_nodes >= _MORE_EDGES else None


class Ranking:
    """Scores all candidates as new neighbours of nodes, in blocks of matrix products."""

    def __init__(self, graph: Any, embedding: Embedding) -> None:
        given = as_graph(graph)
        embedding = checked_embedding(embedding, given)
        self.graph = given
        self.sides = sides_of(as_undirected(given))
        self.degrees = np.bincount(given.neighbours, minlength=given.n_nodes)  # arcs that end there
        self.ways = 1 if given.directed and is_forward(embedding) else 2
        if embedding.context is None or embedding.kernels is None or embedding.coefficients is None:
            self.center = self.context = embedding.vectors
            self._unit = True  # rows are scaled to this length when they are used
            kernels, coefficients = [("gaussian", 1.0)], np.ones(1)
        else:
            self._unit = False
            self.center = embedding.vectors if embedding.center is None else embedding.center
            self.context = embedding.context
            kernels, coefficients = list(embedding.kernels), np.asarray(embedding.coefficients)
        self._kinds = np.array(kinds_of(name for name, _ in kernels))
        self._rank_rows = variant("kernelne.links.rank_rows", own_key(name for name, _ in kernels)).rank_rows
        self._sigmas = np.array([sigma for _, sigma in kernels], np.float32)
        self._coefficients = coefficients.astype(np.float32)
        self._most = np.float32(1.001 * max(float(coefficients.clip(0).sum()), 1.0))

    def best(
        self,
        rows: NDArray[np.int64],
        k: int,
        candidates: NDArray[np.int64] | None = None,
        sought: Sought = _NOTHING,
    ) -> Iterator[Block]:
        """Yield the k best candidates for these rows, and the rank of the best of their `sought` links."""
        sides = self.sides
        if candidates is not None or sides is None:
            everyone = np.arange(self.graph.n_nodes) if candidates is None else candidates
            yield from self._blocks(rows, k, everyone, sought)
            return
        for side in (0, 1):
            mine = rows[sides[rows] == side]
            if len(mine):
                yield from self._blocks(mine, k, np.flatnonzero(sides != side), sought)

    def _blocks(
        self,
        rows: NDArray[np.int64],
        k: int,
        candidates: NDArray[np.int64],
        sought: Sought,
    ) -> Iterator[Block]:
        if not len(candidates):
            raise InputError("candidates: there are none: give ids to choose from")
        k = min(k, len(candidates))
        place = np.full(self.graph.n_nodes, -1)
        place[candidates] = np.arange(len(candidates))
        tables = [self._table(table, candidates) for table in (self.context, self.center)]
        squares = [_joined([np.einsum("ij,ij->i", part, part) for part in table()]) for table in tables]
        degrees = np.maximum(self.degrees[candidates], 1).astype(np.float32)
        n_threads = available_threads()
        size = max(min(_BLOCK // (2 * len(candidates)), 4096), n_threads)
        scratch = [
            (np.empty((2, len(candidates)), np.float32), np.empty((2, len(candidates)), np.float32))
            for _ in range(n_threads)
        ]
        with ThreadPoolExecutor(n_threads) as threads:
            for first in range(0, len(rows), size):
                here = rows[first : first + size]
                own = [self._rows(table, here) for table in (self.center, self.context)]
                dots = [
                    _joined([mine @ part.T for part in table()])
                    for mine, table in zip(own, tables, strict=True)
                ]
                lengths = [np.einsum("ij,ij->i", mine, mine) for mine in own]
                block = Block(
                    here, np.empty((len(here), k), np.int64), np.empty((len(here), k), np.float32),
                    np.zeros(len(here), np.int64), np.zeros(len(here), np.int64),
                )  # fmt: skip
                begin, end = sought.ranges(here)
                task = (
                    k, here, *dots, *lengths, *squares, self.ways, self._kinds, self._sigmas,
                    self._coefficients, self._most, degrees, self.graph.offsets, self.graph.neighbours, place,
                    begin, end, sought.targets,
                )  # fmt: skip

                def work(part: int, task: tuple[Any, ...] = task, block: Block = block) -> None:
                    ends = [len(block.rows) * each // n_threads for each in (part, part + 1)]
                    self._rank_rows(*ends, *task, *scratch[part], *block[1:])

                with threadpool_limits(1, "blas"):
                    list(threads.map(work, range(n_threads)))
                yield block._replace(targets=candidates[block.targets.clip(0, len(candidates) - 1)])

    def _rows(self, table: NDArray[np.float32], at: Any) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = table[at]
        if not self._unit:
            return rows
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(lengths, np.finfo(np.float32).tiny), np.float32)

    def _table(
        self, table: NDArray[np.float32], candidates: NDArray[np.int64]
    ) -> Callable[[], Iterator[NDArray[np.float32]]]:
        """Return a function that yields the rows of candidates in parts.

        They are copied at once, in one part, unless they take much of the free memory.
        """
        free, size = available_bytes(), table[:1].nbytes * len(candidates)
        if free is None or size < free / 16:
            copied = np.ascontiguousarray(self._rows(table, candidates))
            return lambda: iter([copied])
        every = len(candidates) == len(table)  # a slice is not copied
        bounds = range(0, len(candidates), _PART)
        parts = [slice(at, at + _PART) if every else candidates[at : at + _PART] for at in bounds]
        return lambda: (self._rows(table, part) for part in parts)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return parts side by side; a single one is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
