"""Embeddings of graphs that grow: fold in new nodes, or update the vectors around what has changed.

Both leave the space as it is: a classifier or an index made with the old vectors works with the new ones.
"""

from __future__ import annotations

import time
from dataclasses import MISSING, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from kernelne._common.checks import available_threads, seed_of
from kernelne.embedding import Embedding
from kernelne.embedding.provenance import changed_kernels, describe_graph, versions
from kernelne.errors import InputError, warn
from kernelne.graph import Graph, as_graph
from kernelne.graph.ops import as_undirected, neighbourhoods, within
from kernelne.graph.shape import components
from kernelne.graph.tables import choose_columns, is_table, lack_prefixes, table_columns
from kernelne.model.combine_tables import Frame, combine_some
from kernelne.model.joint_axes import has_common, made_outside
from kernelne.progress import Progress, reporting
from kernelne.training.backend import OnBlock
from kernelne.training.config import TrainingConfig
from kernelne.training.cpu import backend as cpu
from kernelne.training.state import TrainingState

#: Walks of an update, as a share of those of a whole training, and the learning rate as one of its rate.
_WALKS, _RATE = 0.08, 0.75
#: Walks of an update end where a pair would weigh less than this, since only rows around changes move.
_LIGHTEST = 0.01
#: Steps from a change within which tables may move; vectors depend on the neighbours' tables too.
_REACH = 2
#: Passes in which new nodes get a place from neighbours that have one; chains of them are seldom longer.
_PASSES = 20
_NEEDED = ("center", "context", "coefficients", "neighbourhoods")
_PAIRS = 10_000  # random pairs whose mean distance is the unit of the drift


def fold_in(embedding: Embedding, edges: Any) -> Embedding:
    """Return the embedding with vectors of new nodes, found from their links to known ones; no training.

    The vector of a new node is the weighted mean of its neighbours' vectors, scaled to their length. Rows of
    known nodes are not changed. A new node that is linked to other new ones only is reached through them; one
    that is not linked to any known node, even so, gets a row of zeros, with a warning.

    Parameters
    ----------
    embedding: any embedding.
    edges: the links of the new nodes, as a graph or anything `MKernelNE.fit` takes. Links between known nodes
        are ignored; if there are no others, with a warning. The names of a table's columns are put before its
        ids if those of the embedding have them, as bipartite=True makes them: user_id:5.

    Examples
    --------
    >>> from kernelne import Embedding, fold_in
    >>> old = Embedding([[1.0, 0.0], [0.0, 1.0]], ["ann", "bob"])
    >>> fold_in(old, [("eve", "ann")])["eve"]
    array([1., 0.], dtype=float32)
    """
    if not isinstance(embedding, Embedding):
        raise InputError(f"embedding: must be an Embedding, not {type(embedding).__name__}")
    graph = as_undirected(_links(embedding, edges))
    rows = _known_rows(embedding, graph)
    if (rows >= 0).all():
        warn(
            "none of the nodes is new, so the embedding stays as it is: update_embedding (kernelne update) "
            "trains on new links between known nodes"
        )
        return embedding
    placed = rows >= 0
    vectors = np.zeros((graph.n_nodes, embedding.dim), np.float32)
    vectors[placed] = embedding.vectors[rows[placed]]
    lengths = np.linalg.norm(vectors, axis=1)
    tables = {
        name: np.zeros((graph.n_nodes, table.shape[1]), np.float32)
        for name in ("center", "context")
        if (table := getattr(embedding, name)) is not None
    }
    for name, table in tables.items():
        table[placed] = getattr(embedding, name)[rows[placed]]
    both = len(tables) == 2
    for some, shares in _layers(graph, placed.copy()):
        made = shares @ vectors
        wanted = shares @ lengths
        found = np.linalg.norm(made, axis=1)
        factor = np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0)
        vectors[some], lengths[some] = made * factor[:, None], wanted
        if both:  # a center is trained towards its neighbours' contexts
            tables["center"][some], tables["context"][some] = (
                shares @ tables["context"],
                shares @ tables["center"],
            )
        placed[some] = True
    if not placed.all():
        warn(f"{int((~placed).sum())} new nodes are not linked to any known node: their vectors are zeros")
    new = rows < 0
    return replace(
        embedding,
        vectors=np.concatenate([embedding.vectors, vectors[new]]),
        nodes=np.concatenate([embedding.nodes, graph.nodes[new]]),
        provenance={**embedding.provenance, "folded_in": _count_of(embedding, "folded_in") + int(new.sum())},
        center=np.concatenate([embedding.center, tables["center"][new]]) if both else None,
        context=np.concatenate([embedding.context, tables["context"][new]]) if both else None,
        neighbourhoods=None
        if embedding.neighbourhoods is None
        else np.concatenate([embedding.neighbourhoods, np.zeros(int(new.sum()), np.int64)]),
    )


def _links(embedding: Embedding, edges: Any) -> Graph:
    """Return the links of new nodes as a graph; its ids get prefixes if those of the embedding have them."""
    if is_table(edges):
        columns = table_columns(edges)
        if lack_prefixes(columns, choose_columns(columns)[:2], embedding.nodes):
            return Graph.from_table(edges, bipartite=True)
    return as_graph(edges)


def update_embedding(
    embedding: Embedding,
    graph: Any,
    *,
    n_threads: int | None = None,
    deterministic: bool = False,
    random_state: Any = None,
    progress: Progress = None,
) -> Embedding:
    """Return the embedding of a graph that has changed, in the space of the old one.

    Nodes whose edges or weights changed are found by comparing the neighbours of each node with those it had.
    New nodes start from their neighbours. Walks start at new and changed nodes only, with a lower rate, and
    only rows within two steps of a change move; vectors more than three steps away keep their bits. Nodes
    that are no longer in the graph are left out. The coefficients of the kernels do not change. If nothing
    has changed, the embedding is returned as it is.

    `provenance["update"]` holds the numbers of new, changed and removed nodes and the drift: the mean
    distance that known nodes moved, in units of the mean distance of two nodes.

    Parameters
    ----------
    embedding: an embedding of KernelNE or MKernelNE with both tables, as .npz and .safetensors keep them.
    graph: the graph as it is now, as for `MKernelNE.fit`, with the same ids.
    n_threads, deterministic, random_state, progress: as in MKernelNE.
    """
    new_graph = as_graph(graph)
    config, frame = _settings_of(embedding, n_threads, deterministic, random_state)
    rows = _known_rows(embedding, new_graph)
    known = rows >= 0
    names = np.where(known, rows, -1)
    was = embedding.neighbourhoods
    assert was is not None
    changed = known.copy()
    changed[known] = neighbourhoods(new_graph, names)[known] != was[rows[known]]
    n_removed = len(embedding) - int(known.sum())
    same_order = len(rows) == len(embedding) and bool((rows == np.arange(len(rows))).all())
    if same_order and not changed.any():
        return embedding
    if 2 * int(known.sum()) < len(embedding):
        raise InputError(
            f"only {int(known.sum()):,} of {len(embedding):,} nodes of the embedding are in the graph: give "
            "the whole graph as it is now, not only its new edges; fold_in (kernelne fold-in) adds nodes by "
            "their links alone; if most nodes are gone, embed the graph anew"
        )
    _tell_of_weights(embedding, new_graph)
    seconds = time.perf_counter()
    center, context, vectors = (
        _moved(table, rows) for table in (embedding.center, embedding.context, embedding.vectors)
    )
    # Nodes folded in without links to known ones have rows of zeros, which training would not move.
    _place(new_graph, np.asarray(center.any(axis=1) | context.any(axis=1)), center, context, config)
    moving = np.flatnonzero(changed | ~known)
    starts = moving[new_graph.degrees[moving] > 0].astype(np.int64)
    near = within(new_graph, moving, _REACH)
    if len(starts):
        before = center[~near], context[~near]
        _train(new_graph, config, starts, center, context, np.asarray(embedding.coefficients), progress)
        center[~near], context[~near] = before
    again = np.flatnonzero(within(new_graph, np.flatnonzero(near), 1))
    if len(again):
        kind = str(embedding.provenance["parameters"].get("vectors", "center"))
        outside = _outside(embedding, frame, new_graph, rows, again)
        vectors[again] = combine_some(new_graph, center, context, kind, frame, again, outside)
    told = {
        "new": int((~known).sum()),
        "changed": int(changed.sum()),
        "removed": n_removed,
        "drift": _drift(vectors[known], embedding.vectors[rows[known]]),
        "updates": _count_of(embedding, "update", "updates") + 1,
        "seconds": round(time.perf_counter() - seconds, 3),
    }
    about = {"graph": describe_graph(new_graph), "versions": versions(), "update": told}
    return replace(
        embedding,
        vectors=vectors,
        nodes=new_graph.nodes,
        provenance={**embedding.provenance, **about},
        center=center,
        context=context,
        neighbourhoods=neighbourhoods(new_graph, np.arange(new_graph.n_nodes)),
    )


def _settings_of(
    embedding: Any, n_threads: int | None, deterministic: bool, random_state: Any
) -> tuple[TrainingConfig, Frame]:
    """Return settings and frame of the training; raises InputError if the embedding lacks what is needed."""
    if not isinstance(embedding, Embedding):
        raise InputError(f"embedding: must be an Embedding, not {type(embedding).__name__}")
    told, frame = embedding.provenance.get("parameters"), embedding.provenance.get("frame")
    lacking = [name for name in _NEEDED if getattr(embedding, name) is None]
    fields = TrainingConfig.__dataclass_fields__
    names = fields.keys() - {"n_threads", "deterministic", "seed", "dim", "parts"}
    needed = {name for name in names if fields[name].default is MISSING}
    if not isinstance(told, dict) or not isinstance(frame, dict) or not needed <= told.keys():
        lacking.append("settings of its training")
    elif told.get("vectors") == "joint" and (embedding.axes is None or np.ptp(embedding.axes.shape) == 0):
        lacking.append("axes of this version")  # square ones of an earlier one lack their last row
    if lacking:
        raise InputError(
            f"this embedding cannot be updated: it has no {', '.join(lacking)}; embed the graph once more "
            "and save it as .npz or .safetensors, which keep all"
        )
    assert embedding.center is not None
    for name in changed_kernels(embedding.provenance, (name for name, _ in embedding.kernels or ())):
        raise InputError(
            f"the kernel {name} is another function now than the one the embedding was trained with: "
            "register that one, or embed the graph anew"
        )
    config = TrainingConfig(
        **{name: told[name] for name in names if name in told},  # type: ignore[index,operator]
        dim=embedding.center.shape[1],
        n_threads=available_threads() if n_threads is None else n_threads,
        deterministic=deterministic,
        seed=seed_of(random_state),
    )
    rate = max(config.learning_rate * _RATE, config.min_learning_rate)
    config = replace(config, learning_rate=rate, learn_coefficients=False)
    assert isinstance(frame, dict)
    numbers = (frame["weight"], frame["scale"], frame.get("smoothing", 0))  # earlier versions did not smooth
    weight, scale, smoothing = map(float, numbers)
    return config, Frame(embedding.axes, weight, scale, smoothing)


def _outside(
    embedding: Embedding,
    frame: Frame,
    graph: Graph,
    rows: NDArray[np.int64],
    again: NDArray[np.int64],
) -> NDArray[np.bool_] | None:
    """Return which nodes are made as those outside the largest component, or None if all are made alike.

    Known nodes are made as they were, but for groups that join nodes of the largest component and whose rows
    are all made again: these are made as those of the largest, which are their neighbours now. New nodes are
    made as most of the known nodes of their component, or as outside where there are none.
    """
    if frame.axes is None or not has_common(frame.axes):
        return None
    vectors, roots = _moved(embedding.vectors, rows), components(graph)
    # Others are new, or were folded in without links to known ones.
    known = np.asarray(vectors.any(axis=1))
    outside = made_outside(vectors, frame.axes)

    def counts(some: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(roots[some], minlength=len(rows))[roots]

    joined = np.flatnonzero(known & outside & (counts(known & ~outside) > 0))
    if len(joined):
        among = graph.to_scipy()[joined][:, joined]
        groups = connected_components(among, directed=False)[1]
        left = np.bincount(groups, ~np.isin(joined, again))
        outside[joined[left[groups] == 0]] = False
    outside[~known] = (2 * counts(known & outside) >= counts(known))[~known]
    return outside


def _tell_of_weights(embedding: Embedding, graph: Graph) -> None:
    """Warn if the graph has weights now and had none, or the other way round: all nodes have changed then."""
    told = embedding.provenance.get("graph")
    weighted = told.get("weighted") if isinstance(told, dict) else None
    if isinstance(weighted, bool) and weighted != (graph.weights is not None):
        now, before = ("no weights", "weights") if weighted else ("weights", "none")
        warn(f"the graph has {now}, that of the embedding had {before}: all nodes count as changed")


def _length(config: TrainingConfig) -> int:
    """Number of nodes of a walk: fewer where the weights of pairs fall fast, in dense graphs."""
    if config.window_decay == 1.0:
        return config.walk_length
    return min(2 + int(np.log(_LIGHTEST) / np.log(config.window_decay)), config.walk_length)


def _known_rows(embedding: Embedding, graph: Graph) -> NDArray[np.int64]:
    """Return the row of each node of the graph in the embedding, -1 for those that are new."""
    if (embedding.nodes.dtype == object) != (graph.nodes.dtype == object):
        kinds = [
            "strings" if nodes.dtype == object else "integers" for nodes in (graph.nodes, embedding.nodes)
        ]
        first = str(embedding.nodes[0])
        hint = f"; ids such as {first!r} are made by bipartite=True (--bipartite)" if ":" in first else ""
        raise InputError(
            f"ids of the graph are {kinds[0]}, those of the embedding {kinds[1]}: make them alike{hint}"
        )
    return embedding.find(graph.nodes)


def _layers(graph: Graph, placed: NDArray[np.bool_]) -> Any:
    """Yield rows of nodes that have neighbours with a place, and their shares (k, n), until no more do."""
    adjacency = csr_array(graph.to_scipy(), dtype=np.float64)
    for _ in range(_PASSES):
        waiting = np.flatnonzero(~placed)
        if not len(waiting):
            return
        part = csr_array(adjacency[waiting] * placed[None, :])
        sums = np.asarray(part.sum(axis=1)).ravel()
        if not sums.any():
            return
        reached = sums > 0
        part = csr_array(part[reached])
        part.data /= np.repeat(sums[reached], np.diff(part.indptr))
        part.eliminate_zeros()
        yield waiting[reached], part.astype(np.float32)
        placed[waiting[reached]] = True


def _place(
    graph: Graph,
    placed: NDArray[np.bool_],
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    config: TrainingConfig,
) -> None:
    """Give rows to new nodes: the means of their neighbours, or random ones as at the start of a training."""
    lost = ~placed
    for some, shares in _layers(as_undirected(graph), placed):
        center[some], context[some] = shares @ context, shares @ center
        lost[some] = False
    rng = np.random.default_rng(config.seed)
    spread = 0.5 / config.dim
    center[lost] = rng.uniform(-spread, spread, (int(lost.sum()), center.shape[1]))
    context[lost] = 0.0


def _train(
    graph: Graph,
    config: TrainingConfig,
    starts: NDArray[np.int64],
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    coefficients: NDArray[np.float64],
    progress: Progress,
) -> None:
    """Train on walks from `starts`, in place."""
    length = _length(config)
    most = config.walks_per_node * config.walk_length / length
    walks = min(max(_WALKS * most * graph.n_nodes / len(starts), 1), most)
    config = replace(config, walk_length=length, walks_per_node=round(walks))
    prepared = cpu.prepare(graph, config, starts)
    report: OnBlock
    with reporting(progress) as report:
        cpu.run(prepared, TrainingState(center, context, coefficients.copy()), None, report)


def _moved(table: Any, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the rows of a table in the order of another graph, zeros for new nodes."""
    made: NDArray[np.float32] = np.asarray(table)[rows]
    made[rows < 0] = 0.0
    return made


def _drift(now: NDArray[np.float32], before: NDArray[np.float32]) -> float:
    """Return the mean distance moved, in units of the mean distance of two rows."""
    rng = np.random.default_rng(0)
    one, other = rng.integers(len(before), size=(2, _PAIRS))
    unit = float(np.linalg.norm(before[one] - before[other], axis=1).mean())
    return round(float(np.linalg.norm(now - before, axis=1).mean()) / unit, 5) if unit else 0.0


def _count_of(embedding: Embedding, *keys: str) -> int:
    """Return a number in the provenance, 0 if there is none."""
    found: Any = embedding.provenance
    for key in keys:
        found = found.get(key, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, int) else 0
