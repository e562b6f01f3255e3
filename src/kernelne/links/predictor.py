"""LinkPredictor: who will link, learned from a graph, its embedding and edges held out of it."""

from __future__ import annotations

import secrets
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.validation import check_is_fitted

from kernelne._checks import check_count, check_seed
from kernelne.embedding import Embedding
from kernelne.errors import InputError, ParameterError, warn
from kernelne.estimators import MKernelNE, estimator_of
from kernelne.evaluation.logistic import fit_towards
from kernelne.graph import Graph, as_graph
from kernelne.graph.ops import as_undirected
from kernelne.graph.pairs import draw_non_edges, hide_edges
from kernelne.links.features import LinkFeatures
from kernelne.model.kernels import check_kernels
from kernelne.progress import Progress

_REFERENCE = 20_000  # random pairs by which numbers are standardised
_FEW = 20  # held-out edges from which nothing can be learned
_ENOUGH = 5_000  # held-out edges after which no further embedding is made for more
_MOST = 20_000  # held-out edges used of one embedding
_MOST_EMBEDDINGS = 3
#: How firmly the weights are held to the prior, and how many held-out edges make the trees count half.
_FIRMNESS = 30.0
_HALF_TRUST = 500
_TABLES = ("center", "context", "kernels", "coefficients")


class LinkPredictor(BaseEstimator):  # type: ignore[misc]
    """Probabilities of links between nodes of a graph.

    Edges are held out, what is left is embedded anew the way `embedding` was made, and a scorer learns there
    to tell the held-out edges from pairs without one: so it never sees a pair whose degrees, neighbours or
    vectors contain the very link asked about. It scores the whole graph with the embedding given. The scorer
    joins a logistic regression, held to a prior (nearer is likelier, and so is a pair of higher degrees), and
    gradient boosted trees, which count the more the more edges were held out. Held out are only edges that
    leave their ends connected; where there are fewer than twenty, in a graph that is nearly a tree or has
    under two hundred edges, the prior alone decides.

    Parameters
    ----------
    embedder: what embeds the graph with edges held out: an estimator with `fit` and `embedding_`. None takes
        the model and parameters that the embedding's provenance names, on the CPU.
    holdout: share of the edges held out for each of at most three such embeddings.
    non_edges: what links are told from: "uniform", any pairs; or "degree", pairs with the degrees of links.
    random_state: an integer, or None for a new seed.
    progress: as in MKernelNE, for the embeddings.

    Attributes
    ----------
    n_held_out_: edges the scorer learned from; 0: the prior alone.
    graph_, embedding_: what `fit` was given or made. Links are predicted without regard to direction.

    Examples
    --------
    >>> from kernelne import LinkPredictor, MKernelNE, load_dataset
    >>> graph = load_dataset("karate").graph
    >>> embedding = MKernelNE(dim=16, random_state=0).fit(graph).to_embedding()
    >>> model = LinkPredictor(random_state=0).fit(graph, embedding)
    >>> model.predict_proba([[0, 9], [16, 24]]).shape
    (2, 2)
    >>> nodes, probabilities = model.recommend(0, k=3)
    """

    def __init__(
        self,
        *,
        embedder: Any = None,
        holdout: float = 0.1,
        non_edges: str = "uniform",
        random_state: int | None = None,
        progress: Progress = None,
    ) -> None:
        self.embedder = embedder
        self.holdout = holdout
        self.non_edges = non_edges
        self.random_state = random_state
        self.progress = progress

    def fit(self, graph: Any, embedding: Embedding | None = None) -> Self:
        """Learn from a graph and its embedding; without one, `embedder` (default MKernelNE()) makes it."""
        if not isinstance(self.holdout, int | float) or not 0 < self.holdout <= 0.5:
            raise ParameterError("holdout", self.holdout, "must be above 0 and at most 0.5")
        if self.non_edges not in ("uniform", "degree"):
            raise ParameterError("non_edges", self.non_edges, 'must be "uniform" or "degree"')
        seed = secrets.randbits(32) if self.random_state is None else check_seed(self.random_state)
        given = as_graph(graph)
        if given.n_edges == 0:
            raise InputError("the graph has no edges: there is nothing to learn links from")
        if embedding is None:
            embedding = self._embed(MKernelNE() if self.embedder is None else self.embedder, given, seed)
        embedding = _checked(embedding, given)
        rng = np.random.default_rng(seed)
        embedder = self._embedder(embedding)
        held_out = [] if embedder is None else self._hold_out(given, embedder, rng, seed)
        # What only some of the embeddings carry would mean something else in each.
        names = [n for n in _TABLES if all(getattr(e, n) is not None for e, *_ in [(embedding,), *held_out])]
        folds = [
            self._tell_apart(_only(made, names), rest, hidden, absent, rng)
            for made, rest, hidden, absent in held_out
        ]
        self._features = self._features_of(given, _only(embedding, names), rng)
        self.graph_, self.embedding_ = given, embedding
        self.n_held_out_ = sum(int(y.sum()) for _, y in folds)
        self._learn(folds, rng)
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, pairs: Any) -> NDArray[np.float64]:
        """(k, 2) chances of no link and of a link, for pairs (k, 2) of node ids, were both equally common."""
        check_is_fitted(self, "n_held_out_")
        if isinstance(pairs, np.ndarray) and (pairs.ndim != 2 or pairs.shape[1] != 2):
            raise InputError(f"pairs: shape {pairs.shape}: give pairs of node ids, shape (k, 2)")
        ends = pairs.T if isinstance(pairs, np.ndarray) else _columns(pairs)
        rows = np.column_stack([self.graph_.index_of(column) for column in ends]).reshape(-1, 2)
        alone = np.flatnonzero(rows[:, 0] == rows[:, 1])
        if alone.size:
            raise InputError(f"pairs: number {alone[0]} is of node {ends[0][alone[0]]!r} with itself")
        return self._chances(rows)

    def recommend(self, node: Any, k: int = 10) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """The k likeliest new neighbours of a node: ids (k,) and chances (k,), likeliest first.

        Neighbours it has and the node itself are left out; fewer come back where fewer are left.
        """
        check_is_fitted(self, "n_held_out_")
        check_count("k", k)
        row = int(self.graph_.index_of([node])[0])
        others = np.ones(self.graph_.n_nodes, bool)
        plain = self._features.graph
        others[plain.neighbours[plain.offsets[row] : plain.offsets[row + 1]]] = False
        others[row] = False
        targets = np.flatnonzero(others)
        chances = self._chances(np.column_stack([np.full(targets.size, row), targets]))[:, 1]
        best = np.argsort(-chances, kind="stable")[:k]
        return self.graph_.nodes[targets[best]], chances[best]

    def _embedder(self, embedding: Embedding) -> Any:
        """What embeds as `embedding` was: given, or of its provenance; None, and a word on it, if unknown."""
        if embedding.context is None or embedding.kernels is None or embedding.coefficients is None:
            warn(
                "the embedding carries no context table or kernels, so what they tell of a pair is left out: "
                "save embeddings as .safetensors or .npz, which keep them"
            )
        if self.embedder is not None:
            return self.embedder
        found = estimator_of(embedding.provenance)
        if found is None:
            warn(
                "the embedding does not say how it was made, so that edges cannot be held out: scored by "
                "distance and degree alone; pass embedder="
            )
        return found

    def _embed(self, embedder: Any, graph: Graph, seed: int) -> Embedding:
        try:
            model = clone(embedder)
            known = model.get_params()
        except (TypeError, AttributeError):
            raise ParameterError(
                "embedder", embedder, "must be an estimator with fit and embedding_"
            ) from None
        wanted = {"random_state": seed, "progress": self.progress}
        model.set_params(**{name: value for name, value in wanted.items() if name in known})
        model.fit(graph)
        if hasattr(model, "to_embedding"):
            made: Embedding = model.to_embedding()
            return made
        return Embedding(model.embedding_, graph.nodes)

    def _features_of(self, graph: Graph, embedding: Embedding, rng: np.random.Generator) -> LinkFeatures:
        reference = rng.integers(graph.n_nodes, size=(_REFERENCE, 2))
        return LinkFeatures(as_undirected(graph), embedding, reference, by_degree=self.non_edges == "uniform")

    def _hold_out(
        self, graph: Graph, embedder: Any, rng: np.random.Generator, seed: int
    ) -> list[tuple[Embedding, Graph, NDArray[np.int64], NDArray[np.int64]]]:
        """Embeddings of the graph with edges held out, that graph, those edges, and pairs without one."""
        made: list[tuple[Embedding, Graph, NDArray[np.int64], NDArray[np.int64]]] = []
        plain = as_undirected(graph)
        while len(made) < _MOST_EMBEDDINGS and sum(len(hidden) for *_, hidden, _ in made) < _ENOUGH:
            rest, hidden = hide_edges(graph, self.holdout, rng)
            hidden = rng.permutation(hidden)[:_MOST]
            if len(hidden) < _FEW:
                break
            try:
                absent = draw_non_edges(plain, hidden, self.non_edges, rng)
            except InputError:  # hardly a pair without an edge: nothing to tell links from
                break
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*have no edges")  # told of the whole graph
                embedding = self._embed(embedder, rest, seed + len(made) + 1)
            made.append((embedding, rest, hidden, absent))
        return made

    def _tell_apart(
        self,
        embedding: Embedding,
        graph: Graph,
        edges: NDArray[np.int64],
        others: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The table of edges held out of a graph and of other pairs, and which of its rows are edges."""
        features = self._features_of(graph, embedding, rng)
        table = features.table(np.concatenate([edges, others]))
        return table, np.arange(len(table)) < len(edges)

    def _learn(
        self, folds: list[tuple[NDArray[np.float64], NDArray[np.bool_]]], rng: np.random.Generator
    ) -> None:
        """The weights of the regression, last but one the prior's, last the intercept; and the trees."""
        graph = self._features.graph
        weights = np.zeros(self._features.table(np.zeros((1, 2), np.int64)).shape[1] + 1)
        weights[-2] = 1.0
        self._trees: Any = None
        if not folds:
            # Half-way between links there are and random pairs: only the order of chances means something.
            sources = np.repeat(np.arange(graph.n_nodes), graph.degrees)
            some = rng.integers(sources.size, size=min(sources.size, _REFERENCE))
            links = np.column_stack([sources[some], graph.neighbours[some]]).astype(np.int64)
            pairs = rng.integers(graph.n_nodes, size=(_REFERENCE, 2))
            weights[-1] = -np.mean([self._features.table(p)[:, -1].mean() for p in (links, pairs)])
            self._weights = weights
            return
        X = np.concatenate([table for table, _ in folds])
        y = np.concatenate([edges for _, edges in folds])
        whole = np.column_stack([X, np.ones(len(X))]), np.where(y, 1.0, -1.0)
        self._weights = fit_towards(lambda: [whole], weights, _FIRMNESS)
        self._trees = HistGradientBoostingClassifier(
            max_iter=150,
            learning_rate=0.06,
            max_leaf_nodes=15,
            min_samples_leaf=40,
            l2_regularization=1.0,
            random_state=0,
        ).fit(X, y)

    def _chances(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        scores = [self._score(table) for table in self._features.tables(rows)]
        link = expit(np.concatenate([np.empty(0), *scores]))
        return np.column_stack([1.0 - link, link])

    def _score(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = table @ self._weights[:-1] + self._weights[-1]
        if self._trees is not None:
            trust = self.n_held_out_ / (self.n_held_out_ + _HALF_TRUST)
            # Two opinions of the same evidence: their logits are averaged, not added.
            scores = (scores + trust * self._trees.decision_function(table)) / (1.0 + trust)
        return scores


def _columns(pairs: Any) -> list[list[Any]]:
    """First and second of each pair of a list; ids stay as they are, tuples too."""
    try:
        rows = [tuple(pair) for pair in pairs]
    except TypeError:
        raise InputError(f"pairs: {pairs!r}: give pairs of node ids, [(id, id), …]") from None
    bad = next((i for i, row in enumerate(rows) if len(row) != 2), None)
    if bad is not None:
        raise InputError(f"pairs: number {bad} is {rows[bad]!r}: give pairs of node ids, [(id, id), …]")
    return [[row[0] for row in rows], [row[1] for row in rows]]


def _only(embedding: Embedding, names: list[str]) -> Embedding:
    """An embedding with no other tables than these."""
    return Embedding(embedding.vectors, embedding.nodes, **{name: getattr(embedding, name) for name in names})


def _checked(embedding: Any, graph: Graph) -> Embedding:
    """The embedding with its rows in the order of the graph's nodes."""
    if not isinstance(embedding, Embedding):
        raise InputError(
            f"embedding: a {type(embedding).__name__}, not an Embedding: pass est.to_embedding(), "
            "Embedding.load(path), or Embedding(vectors, nodes)"
        )
    if embedding.kernels is not None:
        check_kernels(embedding.kernels, "embedding.kernels")
    if len(embedding) != graph.n_nodes:
        raise InputError(
            f"the embedding has {len(embedding)} nodes, the graph {graph.n_nodes}: they must be the same"
        )
    rows = embedding.index_of(graph.nodes)
    source = embedding.provenance.get("graph")
    if isinstance(source, dict) and source.get("fingerprint") not in (None, graph.fingerprint):
        warn("the embedding was made of another graph with these nodes, or of this one before it changed")
    if (rows == np.arange(len(rows))).all():
        return embedding
    tables: dict[str, Any] = {name: getattr(embedding, name) for name in ("vectors", "center", "context")}
    moved: dict[str, Any] = {name: None if t is None else t[rows] for name, t in tables.items()}
    return replace(embedding, nodes=graph.nodes, **moved)
