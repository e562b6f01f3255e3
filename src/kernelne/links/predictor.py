"""LinkPredictor: predicts edges from a graph and its embedding, trained on held-out edges."""

from __future__ import annotations

import secrets
import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.validation import check_is_fitted

from kernelne._common.checks import check_count, check_seed
from kernelne._common.fork import fork_safe_openmp
from kernelne.embedding import Embedding
from kernelne.errors import FileFormatError, InputError, ParameterError, warn
from kernelne.estimators import MKernelNE, estimator_of
from kernelne.evaluation.logistic import fit_towards
from kernelne.graph import Graph, as_graph
from kernelne.graph.ops import as_undirected
from kernelne.graph.pairs import directed_pairs, draw_non_edges, hide_edges
from kernelne.io.files import PathLike
from kernelne.links import predictor_file
from kernelne.links.features import LinkFeatures
from kernelne.links.ranking import Recommendations, recommend_links
from kernelne.links.shared import checked_embedding, pair_rows
from kernelne.links.trees import Trees
from kernelne.model.defaults import is_automatic
from kernelne.progress import Progress

_REFERENCE = 20_000  # random pairs used to standardise the features
_FEW = 20  # with fewer held-out edges nothing is trained
_ENOUGH = 5_000  # with this many held-out edges no further embedding is trained
_MOST = 20_000  # held-out edges used per embedding
_MOST_EMBEDDINGS = 3
#: Strength of the penalty that pulls the weights to the prior, and the number of held-out edges at which the
#: trees get half of their full weight.
_FIRMNESS = 30.0
_HALF_TRUST = 500
#: Candidates that are scored for each recommendation, and at least for a node.
_SHORT_LIST, _SHORTEST = 10, 100
_TABLES = ("center", "context", "kernels", "coefficients")


class LinkPredictor(BaseEstimator):  # type: ignore[misc]
    """Predicts the probability of an edge between two nodes.

    `fit` holds out edges, embeds the remaining graph with the parameters of `embedding`, and trains a
    classifier of held-out edges against non-edges. The classifier therefore never sees a pair whose degrees,
    neighbours or vectors already contain the edge to predict. It then scores pairs of the whole graph with
    the given embedding. The classifier averages a logistic regression, pulled towards a prior (close pairs
    and pairs of high degree are likelier), and gradient boosted trees, whose weight grows with the number of
    held-out edges. Only edges whose ends stay connected are held out. With fewer than twenty of them, in a
    graph that is nearly a tree or has under two hundred edges, the scores are those of the prior.

    Parameters
    ----------
    embedder: an estimator with `fit` and `embedding_` that embeds the graph with edges held out. None uses
        the model and parameters of the embedding's provenance, on the CPU. Parameters that an MKernelNE
        chooses itself are fixed to those of the embedding, or else of the first embedding trained here.
    holdout: share of the edges held out for each of at most three such embeddings.
    non_edges: how non-edges are sampled: "uniform" over pairs, or "degree": with the degrees of the edges.
    random_state: the seed, an integer, or None for a random seed. The same seed gives the same predictor if
        the embedding was trained on one thread, or with deterministic=True.
    progress: as in MKernelNE, for the embeddings.

    Attributes
    ----------
    n_held_out_: number of held-out edges in the training data; 0 if only the prior is used.
    base_rate_: share of the pairs of nodes that are edges, which `recommend` assumes of new ones.
    graph_, embedding_: the graph and the embedding, given to `fit` or made by it.

    In a directed graph arcs are predicted: a pair is (source, target), and held-out arcs are told apart from
    non-edges and from reversed arcs alike. Embed it with forward=True, as `fit` does without an embedding.

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
        """Train on a graph and its embedding; without one, `embedder` (default MKernelNE()) computes it."""
        self._check()
        seed = secrets.randbits(32) if self.random_state is None else int(self.random_state)
        given = as_graph(graph)
        if given.n_edges == 0:
            raise InputError("the graph has no edges: there is nothing to learn links from")
        if embedding is None:
            own = MKernelNE(forward=True) if given.directed else MKernelNE()
            embedding = self._embed(own if self.embedder is None else self.embedder, given, seed)
        embedding = checked_embedding(embedding, given)
        rng = np.random.default_rng(seed)
        embedder = self._embedder(embedding)
        held_out = [] if embedder is None else self._hold_out(given, embedder, rng, seed)
        # A feature that only some embeddings provide would mean something different in each.
        names = [n for n in _TABLES if all(getattr(e, n) is not None for e, *_ in [(embedding,), *held_out])]
        folds = [
            self._tell_apart(_only(made, names), rest, hidden, absent, rng)
            for made, rest, hidden, absent in held_out
        ]
        self._features = self._features_of(given, _only(embedding, names), rng)
        self._tables = names
        self._remember(given, embedding, sum(int(y.sum()) for _, y in folds))
        self._learn(folds, rng)
        return self

    def predict_proba(self, pairs: Any, base_rate: float = 0.5) -> NDArray[np.float64]:
        """Return the probabilities (k, 2) of no edge and of an edge, for pairs (k, 2) or a table of node ids.

        base_rate: share of edges among the pairs that could be asked about. With 0.5 edges and other pairs
        are assumed to be equally frequent, so a pair of a probability above 0.5 is more like an edge. Among
        all pairs of a graph few are edges: `base_rate_` is their share.
        """
        if isinstance(base_rate, bool) or not isinstance(base_rate, Real) or not 0 < base_rate < 1:
            raise ParameterError("base_rate", base_rate, "must be above 0 and below 1")
        check_is_fitted(self, "n_held_out_")
        rows = pair_rows(self.graph_, pairs, "pairs")
        alone = np.flatnonzero(rows[:, 0] == rows[:, 1])
        if alone.size:
            node = self.graph_.nodes.tolist()[rows[alone[0], 0]]
            raise InputError(f"pairs: pair {alone[0]} joins node {node!r} to itself: remove it")
        return self._chances(rows, float(base_rate))

    def recommend(self, node: Any, k: int = 10, candidates: Any = None) -> Any:
        """Return the k likeliest new neighbours of a node: ids (k,) and probabilities (k,), likeliest first.

        node: an id; or a list or an array of ids, which returns `Recommendations` with probabilities as
        scores (their column is `probability`), of candidates that `recommend_links` ranks first (at least a
        hundred). candidates: ids of the nodes to choose from; None: all. The node itself and its present
        neighbours are left out; fewer than k are returned if fewer remain. A probability is that of an edge
        between a pair drawn from all pairs (`base_rate_`).
        """
        check_is_fitted(self, "n_held_out_")
        check_count("k", k)
        if isinstance(node, list | np.ndarray):
            return self._recommend_many(node, k, candidates)
        row = int(self.graph_.index_of([node])[0])
        others = np.full(self.graph_.n_nodes, candidates is None)
        if candidates is not None:
            others[self.graph_.index_of(candidates)] = True
        begin, end = self.graph_.offsets[row : row + 2]
        others[self.graph_.neighbours[begin:end]] = False
        others[row] = False
        targets = np.flatnonzero(others)
        pairs = np.column_stack([np.full(targets.size, row), targets])
        chances = self._chances(pairs, self.base_rate_)[:, 1]
        best = np.argsort(-chances, kind="stable")[:k]
        return self.graph_.nodes[targets[best]], chances[best]

    def _recommend_many(self, nodes: Any, k: int, candidates: Any) -> Recommendations:
        some = recommend_links(
            self.graph_, self.embedding_, nodes, k=max(k * _SHORT_LIST, _SHORTEST), candidates=candidates
        )
        rows = [self.graph_.index_of(ids) for ids in (some.nodes, some.recommended)]
        chances = self._chances(np.column_stack(rows).reshape(-1, 2), self.base_rate_)[:, 1]
        list_of = np.cumsum(some.ranks == 1)  # a node may be asked for twice
        order = np.lexsort((some.ranks, -chances, list_of))
        starts = np.flatnonzero(some.ranks == 1)
        ranks = np.arange(1, len(order) + 1) - starts[list_of - 1] if len(order) else some.ranks
        kept = order[ranks <= k]
        return Recommendations(
            some.nodes[kept], some.recommended[kept], chances[kept].astype(np.float32), ranks[ranks <= k],
            "probability",
        )  # fmt: skip

    def save(self, path: PathLike, overwrite: bool = False) -> None:
        """Save what was learned as .safetensors, without graph and embedding, which `load` needs."""
        check_is_fitted(self, "n_held_out_")
        seed = None if self.random_state is None else int(self.random_state)
        told = {
            "parameters": {"holdout": self.holdout, "non_edges": self.non_edges, "random_state": seed},
            "n_held_out": self.n_held_out_,
            "tables": self._tables,
            "graph": self.graph_.fingerprint,
            "vectors": predictor_file.vectors_hash(self.embedding_),
        }
        predictor_file.save(path, self._weights, self._features.standard, self._trees, told, overwrite)

    @classmethod
    def load(cls, path: PathLike, graph: Any, embedding: Embedding) -> Self:
        """Load a predictor that `save` wrote, with the graph and the embedding that it was trained on."""
        given = as_graph(graph)
        embedding = checked_embedding(embedding, given)
        weights, standard, trees, told = predictor_file.load(path, given, embedding)
        try:
            made = cls(**told["parameters"])
            made._check()
            names = [name for name in told["tables"] if name in _TABLES]
            by_degree = made.non_edges == "uniform"
            made._features = LinkFeatures(given, _only(embedding, names), standard, by_degree)
            made._weights, made._trees, made._tables = weights, trees, names
            made._remember(given, embedding, int(told["n_held_out"]))
            made._chances(np.zeros((1, 2), np.int64), 0.5)
        except (KeyError, TypeError, ValueError) as error:  # ParameterError is a ValueError
            raise FileFormatError(path, f"not a readable link predictor: {error}") from None
        return made

    def _check(self) -> None:
        if not isinstance(self.holdout, int | float) or not 0 < self.holdout <= 0.5:
            raise ParameterError("holdout", self.holdout, "must be above 0 and at most 0.5")
        if self.non_edges not in ("uniform", "degree"):
            raise ParameterError("non_edges", self.non_edges, 'must be "uniform" or "degree"')
        if self.random_state is not None:
            check_seed(self.random_state)

    def _remember(self, graph: Graph, embedding: Embedding, n_held_out: int) -> None:
        self.graph_, self.embedding_, self.n_held_out_ = graph, embedding, n_held_out
        n_pairs = graph.n_nodes * (graph.n_nodes - 1) / (1 if graph.directed else 2)
        self.base_rate_ = min(max(graph.n_edges / max(n_pairs, 1), 1e-12), 0.5)
        self.classes_ = np.array([0, 1])

    def _embedder(self, embedding: Embedding) -> Any:
        """Return the embedder given, or that of the provenance; if there is none, warn and return None."""
        if embedding.context is None or embedding.kernels is None or embedding.coefficients is None:
            warn(
                "the embedding has no context vectors or kernels, so features based on them are left out: "
                "save embeddings as .safetensors or .npz, which keep them"
            )
        if self.embedder is not None:
            return _settled(self.embedder, embedding)
        found = estimator_of(embedding.provenance)
        if found is not None and embedding.provenance["parameters"].get("n_threads") == 1:
            found.set_params(n_threads=1)
        if found is None:
            warn(
                "the provenance of the embedding names no model, so edges cannot be held out: pairs are "
                "scored by distance and degree only; pass embedder="
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
        wanted = {"random_state": seed, "progress": self.progress, "checkpoint": None}
        model.set_params(**{name: value for name, value in wanted.items() if name in known})
        model.fit(graph)
        if hasattr(model, "to_embedding"):
            made: Embedding = model.to_embedding()
            return made
        return Embedding(model.embedding_, graph.nodes)

    def _features_of(self, graph: Graph, embedding: Embedding, rng: np.random.Generator) -> LinkFeatures:
        reference = rng.integers(graph.n_nodes, size=(_REFERENCE, 2))
        return LinkFeatures(graph, embedding, reference, by_degree=self.non_edges == "uniform")

    def _hold_out(
        self, graph: Graph, embedder: Any, rng: np.random.Generator, seed: int
    ) -> list[tuple[Embedding, Graph, NDArray[np.int64], NDArray[np.int64]]]:
        """Return, per embedding: it, the graph with edges held out, the held-out edges, and non-edges."""
        made: list[tuple[Embedding, Graph, NDArray[np.int64], NDArray[np.int64]]] = []
        plain = as_undirected(graph)
        while len(made) < _MOST_EMBEDDINGS and sum(len(hidden) for *_, hidden, _ in made) < _ENOUGH:
            rest, hidden = hide_edges(graph, self.holdout, rng)
            hidden = rng.permutation(hidden)[:_MOST]
            if len(hidden) < _FEW:
                break
            try:
                absent = draw_non_edges(plain, hidden, self.non_edges, rng)
            except InputError:  # almost every pair is an edge: too few non-edges
                break
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*have no edges")  # the whole graph has warned
                embedding = self._embed(embedder, rest, seed + len(made) + 1)
            embedder = _settled(embedder, embedding)
            if graph.directed:
                hidden, absent = directed_pairs(graph, hidden, absent, rng)
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
        """Return the features of held-out edges and of other pairs, and whether each row is an edge."""
        features = self._features_of(graph, embedding, rng)
        table = features.table(np.concatenate([edges, others]))
        return table, np.arange(len(table)) < len(edges)

    def _learn(
        self, folds: list[tuple[NDArray[np.float64], NDArray[np.bool_]]], rng: np.random.Generator
    ) -> None:
        """Train the regression and the trees; the last two weights are the prior's and the intercept."""
        graph = self._features.graph
        weights = np.zeros(self._features.table(np.zeros((1, 2), np.int64)).shape[1] + 1)
        weights[-2] = 1.0
        self._trees: Trees | None = None
        if not folds:
            # Intercept half-way between edges and random pairs: only the order of probabilities has meaning.
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
        model = HistGradientBoostingClassifier(
            max_iter=150,
            learning_rate=0.06,
            max_leaf_nodes=15,
            min_samples_leaf=40,
            l2_regularization=1.0,
            random_state=0,
        )
        with fork_safe_openmp():
            self._trees = Trees.of(model.fit(X, y))

    def _chances(self, rows: NDArray[np.int64], base_rate: float) -> NDArray[np.float64]:
        scores = [self._score(table) for table in self._features.tables(rows)]
        link = expit(np.concatenate([np.empty(0), *scores]) + logit(base_rate))
        return np.column_stack([1.0 - link, link])

    def _score(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = table @ self._weights[:-1] + self._weights[-1]
        if self._trees is not None:
            trust = self.n_held_out_ / (self.n_held_out_ + _HALF_TRUST)
            # Both models use the same evidence, so their logits are averaged, not added.
            scores = (scores + trust * self._trees.scores(table)) / (1.0 + trust)
        return scores


def _settled(embedder: Any, embedding: Embedding) -> Any:
    """Return the embedder, with the parameters it would choose itself fixed to those of the embedding.

    This applies where the embedder chooses its parameters by the graph and the embedding is of the same
    model. Vectors of other parameters have another scale, so a classifier trained on them would not carry
    over.
    """
    found = estimator_of(embedding.provenance)
    if not isinstance(embedder, MKernelNE) or type(found) is not type(embedder):
        return embedder
    given = embedder.get_params(deep=False)
    if not is_automatic(given["kernels"]):
        return embedder
    left_open = [name for name, value in given.items() if value is None or name == "kernels"]
    return clone(embedder).set_params(**{name: getattr(found, name) for name in left_open})


def _only(embedding: Embedding, names: list[str]) -> Embedding:
    """Return the embedding with only these of its optional arrays."""
    return Embedding(embedding.vectors, embedding.nodes, **{name: getattr(embedding, name) for name in names})
