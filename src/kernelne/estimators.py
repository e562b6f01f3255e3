"""The estimators KernelNE and MKernelNE: their parameters and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from kernelne.errors import ParameterError
from kernelne.model.kernels import check_kernels
from kernelne.progress import Progress
from kernelne.walk_embedder import WalkEmbedder


class KernelNE(WalkEmbedder):
    """Node embeddings learned with one kernel.

    Parameters
    ----------
    kernel: "gaussian", "schoenberg" or "inverse_multiquadric".
    sigma: bandwidth of the kernel. Smaller values make the Gaussian narrower, larger ones Schoenberg's.
    dim: number of columns of the embedding.
    walks_per_node: number of walks started at each node.
    walk_length: number of nodes in each walk.
    window: maximum distance, in steps of a walk, between a node and its contexts.
    window_decay: weight of a pair relative to that of a pair one step closer, at most 1; 1 weights all pairs
        of the window equally.
    forward: if True, only nodes that come later in a walk are contexts: in a directed graph the center of a
        node then tells where its links go, and its context where they come from.
    n_negative: number of negatives for each pair of a node and a context.
    p, q: node2vec's return and in-out parameters; with 1, 1 steps depend on the edge weights alone.
    learning_rate, min_learning_rate: learning rate at the start and at the end; it decreases linearly.
    l2: weight decay of the vectors, λ.
    shared_negatives: number of negatives drawn for each walk and shared by its pairs. Fewer are faster, more
        give smoother gradients.
    vectors: how the embedding is made: "center", the center table; "sum", the sum of both tables; "smooth",
        that sum plus the mean of the neighbours' sums; "joint", both smoothed tables, projected onto `dim`
        columns and smoothed where walks remember where they came from; "concat", both tables side by
        side, dim / 2 columns each.
    norm: mean length of the embedding's rows; "trained" or None leaves them as trained. MKernelNE's automatic
        length may turn out shorter when `embedding_` is made: then `chosen_` has the new one.
    backend: "cpu", or "gpu" for one NVIDIA GPU (needs kernelne[gpu]).
    n_threads: number of threads; None uses all cores available to the process. Ignored on a GPU.
    deterministic: if True, the same `random_state` gives the same bits on any number of threads; slower.
    random_state: an integer, a NumPy generator, or None for a new seed in every fit (stored in `seed_`).
    progress: None shows a bar on a terminal if training takes long; True, False, or a function called with
        (walks done, total walks, loss per pair).
    checkpoint: a folder in which the state of the run is kept, every `checkpoint_every` (seconds, or a text
        such as "5min") and at the end. A run that was stopped, by Ctrl-C or by a crash, continues from there
        when the same graph is fitted with the same parameters; one that had ended is not trained again.
    engine: for graphs whose tables are too large: "disk" trains in parts that are kept in files, "ray" on a
        cluster (needs kernelne[cluster]), "memory" in parts on the threads of this process. None: not in
        parts, unless `parts` or `memory` asks for it. All engines give the same bits for the same `parts`
        and `random_state`.
    parts: number of parts; None chooses it.
    memory: memory to use, such as "8GB"; if the tables need more, they are trained on disk, in parts.
    address: cluster of engine="ray": "local" (None) starts one on this machine, "auto" finds the one of this
        machine, or HOST:PORT.

    Attributes
    ----------
    embedding_: float32 (n, dim); row i belongs to graph_.nodes[i].
    center_, context_: float32, the two tables as trained.
    chosen_: dict of the values chosen for parameters that were None or "auto".
    coefficients_: float64 (number of kernels,).
    history_: dict of arrays, one entry per block: walks, pairs, loss, learning_rate, coefficients.
    loss_: mean loss per pair over the last walks.
    graph_, kernels_, seed_, seconds_: graph, kernels, seed and duration of the training.

    Examples
    --------
    >>> from kernelne import KernelNE
    >>> edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
    >>> KernelNE(dim=8, random_state=1).fit(edges).embedding_.shape
    (6, 8)
    """

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        sigma: float = 2.0,
        dim: int = 128,
        walks_per_node: int = 80,
        walk_length: int = 10,
        window: int = 10,
        window_decay: float = 1.0,
        forward: bool = False,
        n_negative: int = 5,
        p: float = 1.0,
        q: float = 1.0,
        learning_rate: float = 0.025,
        min_learning_rate: float = 1e-4,
        l2: float = 1e-2,
        shared_negatives: int = 14,
        vectors: str = "center",
        norm: float | str | None = None,
        backend: str = "cpu",
        n_threads: int | None = None,
        deterministic: bool = False,
        random_state: Any = None,
        progress: Progress = None,
        checkpoint: Any = None,
        checkpoint_every: Any = "5min",
        engine: str | None = None,
        parts: int | None = None,
        memory: Any = None,
        address: str | None = None,
    ) -> None:
        self.kernel = kernel
        self.sigma = sigma
        self.dim = dim
        self.walks_per_node = walks_per_node
        self.walk_length = walk_length
        self.window = window
        self.window_decay = window_decay
        self.forward = forward
        self.n_negative = n_negative
        self.p = p
        self.q = q
        self.learning_rate = learning_rate
        self.min_learning_rate = min_learning_rate
        self.l2 = l2
        self.shared_negatives = shared_negatives
        self.vectors = vectors
        self.norm = norm
        self.backend = backend
        self.n_threads = n_threads
        self.deterministic = deterministic
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.engine = engine
        self.parts = parts
        self.memory = memory
        self.address = address

    def _kernels(self, settled: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
        return check_kernels([(self.kernel, self.sigma)], "kernel, sigma")

    @classmethod
    def paper(cls, kernel: str = "gaussian", **changes: Any) -> Self:
        """Return the paper's model: kernel "gaussian" or "schoenberg", sigma 2; `changes` are set on top."""
        _check_paper(kernel)
        settings: dict[str, Any] = {"kernel": kernel, "sigma": 2.0}
        return cls(**(settings | changes))


class MKernelNE(WalkEmbedder):
    """Node embeddings learned with a mixture of kernels, whose coefficients are learned too.

    Parameters
    ----------
    kernels: (name, sigma) pairs, names as in KernelNE. With "auto" the kernels and all parameters that are
        None have values that suit graphs of many kinds, found from the graph: how dense it is, how fast its
        walks forget where they started, and whether it is bipartite. `chosen_` holds the values. If kernels
        are given, parameters that are None have KernelNE's defaults or those below.
    coef_l2: weight decay of the coefficients, β; None: 0.02.
    coef_spread: penalty on differences between the coefficients, γ, together with a lower bound of their sum
        that keeps the vectors from collapsing; 0 disables both, as in the paper; None: 1.5, or less in
        dense graphs with kernels="auto".

    All other parameters and attributes are those of KernelNE.

    Examples
    --------
    >>> from kernelne import MKernelNE
    >>> edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
    >>> model = MKernelNE(kernels=[("gaussian", 1), ("schoenberg", 2)], dim=8, random_state=1).fit(edges)
    >>> model.coefficients_.shape
    (2,)
    """

    def __init__(
        self,
        *,
        kernels: Any = "auto",
        coef_l2: float | None = None,
        coef_spread: float | None = None,
        dim: int = 128,
        walks_per_node: int | None = None,
        walk_length: int | None = None,
        window: int = 10,
        window_decay: float | None = None,
        forward: bool = False,
        n_negative: int | None = None,
        p: float = 1.0,
        q: float = 1.0,
        learning_rate: float | None = None,
        min_learning_rate: float = 1e-4,
        l2: float | None = None,
        shared_negatives: int | None = None,
        vectors: str | None = None,
        norm: float | str | None = None,
        backend: str = "cpu",
        n_threads: int | None = None,
        deterministic: bool = False,
        random_state: Any = None,
        progress: Progress = None,
        checkpoint: Any = None,
        checkpoint_every: Any = "5min",
        engine: str | None = None,
        parts: int | None = None,
        memory: Any = None,
        address: str | None = None,
    ) -> None:
        self.kernels = kernels
        self.coef_l2 = coef_l2
        self.coef_spread = coef_spread
        self.dim = dim
        self.walks_per_node = walks_per_node
        self.walk_length = walk_length
        self.window = window
        self.window_decay = window_decay
        self.forward = forward
        self.n_negative = n_negative
        self.p = p
        self.q = q
        self.learning_rate = learning_rate
        self.min_learning_rate = min_learning_rate
        self.l2 = l2
        self.shared_negatives = shared_negatives
        self.vectors = vectors
        self.norm = norm
        self.backend = backend
        self.n_threads = n_threads
        self.deterministic = deterministic
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.engine = engine
        self.parts = parts
        self.memory = memory
        self.address = address

    def _kernels(self, settled: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
        kernels = settled["kernels"]
        if isinstance(kernels, str):
            raise ParameterError(
                "kernels", kernels, 'give "auto", or (name, sigma) pairs such as [("gaussian", 1.0)]'
            )
        return check_kernels(kernels)

    @classmethod
    def paper(
        cls, kernel: str = "gaussian", dataset: str | None = None, *, strict: bool = False, **changes: Any
    ) -> Self:
        """Return the paper's mixture of "gaussian" or "schoenberg" kernels; `changes` are set on top.

        Gaussian kernels have sigma 1, 2, 3, or 0.5, 1, 1.5 for dataset="ppi"; Schoenberg's have 1, 1.5, 2.

        The step of the coefficients differs from the paper: `coef_l2` is 0.02 and `coef_spread` 1.5, which
        reach the paper's scores where its values 0.1 and 0 fall below them. strict=True uses 0.1 and 0.
        """
        _check_paper(kernel)
        sigmas = (1.0, 1.5, 2.0) if kernel == "schoenberg" else (1.0, 2.0, 3.0)
        if kernel == "gaussian" and str(dataset).lower() == "ppi":
            sigmas = (0.5, 1.0, 1.5)
        settings: dict[str, Any] = {"kernels": tuple((kernel, sigma) for sigma in sigmas)}
        if strict:
            settings |= {"coef_l2": 0.1, "coef_spread": 0.0}
        return cls(**(settings | changes))


def _check_paper(kernel: Any) -> None:
    if kernel not in ("gaussian", "schoenberg"):
        raise ParameterError("kernel", kernel, "must be gaussian or schoenberg, the paper's kernels")


def estimator_of(provenance: Mapping[str, Any]) -> KernelNE | MKernelNE | None:
    """Return an estimator with the parameters in `provenance`, except seed and threads; None without any."""
    model = {"KernelNE": KernelNE, "MKernelNE": MKernelNE}.get(str(provenance.get("model")))
    parameters = provenance.get("parameters")
    if model is None or not isinstance(parameters, Mapping) or "kernels" not in parameters:
        return None
    estimator: KernelNE | MKernelNE = model()
    known = estimator.get_params().keys() - {"n_threads"}
    estimator.set_params(**{name: value for name, value in parameters.items() if name in known})
    if isinstance(estimator, KernelNE):
        ((kernel, sigma),) = check_kernels(parameters["kernels"])
        estimator.set_params(kernel=kernel, sigma=sigma)
    return estimator
