"""Embedding: the vectors of a graph's nodes with node ids and provenance, to save and load."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelne._common.html import html_facts
from kernelne.embedding import checks
from kernelne.embedding.checks import finite_array, kernel_pairs, make_lookup, plain_json, read_only
from kernelne.embedding.neighbours import NeighbourIndex, Neighbours, check_query, index_path, nearest
from kernelne.errors import FileFormatError, InputError, MissingDependencyError
from kernelne.graph.ids import find_rows, find_strings, node_array, unknown_node
from kernelne.graph.string_ids import StringIds
from kernelne.io.embeddings import parquet
from kernelne.io.embeddings.npy import write_node_lines
from kernelne.io.embeddings.registry import DAMAGE, FORMATS, check_ids, files_of, find_reader, known_suffix
from kernelne.io.files import PathLike, atomic_output, check_output

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class Embedding:
    """Vectors of nodes, looked up by node id: `embedding[id]`, `embedding[[id, id]]`, `id in embedding`.

    vectors       (n, d) float32, finite; the vectors for most uses
    nodes         (n,) node ids, all different: int64, or objects (str, StringIds if mapped; any hashable in
                  memory, but only integers and strings can be saved)
    provenance    model, parameters, seed, graph fingerprint, versions: any values that JSON supports
    center        (n, d) float32 or None: the vectors of nodes as centres of walks
    context       (n, d) float32 or None: the vectors of nodes as context; center and context may both have
                  d / 2 columns instead, if the vectors are the two side by side
    kernels       ((name, parameter), ...) or None
    coefficients  (K,) float64 or None: the weight of each kernel
    axes          (2 d, d) or (2 d + 1, 2 d) float32 or None: the directions by which vectors="joint" were
                  made of both tables; the second half is that of nodes outside the largest component, the
                  last row what these have in common
    neighbourhoods  (n,) int64 or None: hashes of each node's neighbours, by which `update_embedding` finds
                  what has changed

    Other numeric arrays and lists are converted; arrays of the right dtype are not copied. The attributes are
    read-only views: an embedding does not change unless an array passed in is changed elsewhere. Use
    `embedding.vectors.copy()` for an array to modify.
    """

    vectors: Vectors
    nodes: NDArray[Any]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    center: Vectors | None = None
    context: Vectors | None = None
    kernels: tuple[tuple[str, float], ...] | None = None
    coefficients: NDArray[np.float64] | None = None
    axes: NDArray[np.float32] | None = None
    neighbourhoods: NDArray[np.int64] | None = None
    _lookup: dict[Any, int] | NDArray[np.int64] | None = field(init=False)
    _indexes: dict[str, NeighbourIndex] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        vectors = read_only(finite_array("vectors", self.vectors, np.float32, 2))
        if vectors.size == 0:
            raise InputError(
                f"vectors have shape {vectors.shape}: at least one row and one column are needed"
            )
        checked: dict[str, Any] = {"vectors": vectors, "nodes": node_array(self.nodes)}
        if len(checked["nodes"]) != len(vectors):
            raise InputError(f"{len(checked['nodes'])} node ids for {len(vectors)} vectors")
        tables = {
            name: vectors if given is self.vectors else finite_array(name, given, np.float32, 2)
            for name in ("center", "context")
            if (given := getattr(self, name)) is not None
        }
        halves = [table.shape for table in tables.values()] == 2 * [(len(vectors), vectors.shape[1] / 2)]
        for name, array in tables.items():
            if array.shape != vectors.shape and not halves:
                raise InputError(f"{name} has shape {array.shape}, vectors have {vectors.shape}")
            same = array is vectors or checks.same_bits(array, vectors)
            checked[name] = vectors if same else array
        if self.kernels is not None:
            checked["kernels"] = kernel_pairs(self.kernels)
        if self.coefficients is not None:
            checked["coefficients"] = finite_array("coefficients", self.coefficients, np.float64, 1)
            if self.kernels is not None and len(checked["coefficients"]) != len(checked["kernels"]):
                raise InputError(
                    f"{len(checked['coefficients'])} coefficients for {len(checked['kernels'])} kernels"
                )
        if self.axes is not None:
            checked["axes"] = finite_array("axes", self.axes, np.float32, 2)
        if self.neighbourhoods is not None:
            checked["neighbourhoods"] = finite_array("neighbourhoods", self.neighbourhoods, np.int64, 1)
            if len(checked["neighbourhoods"]) != len(vectors):
                raise InputError(
                    f"{len(checked['neighbourhoods'])} neighbourhoods for {len(vectors)} vectors"
                )
        checked["provenance"] = plain_json(self.provenance)
        checked["_lookup"] = make_lookup(checked["nodes"])
        for name, value in checked.items():
            object.__setattr__(self, name, read_only(value) if isinstance(value, np.ndarray) else value)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dim(self) -> int:
        """Number of dimensions of the vectors."""
        return int(self.vectors.shape[1])

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the node ids in the order of the rows."""
        return iter(self.nodes.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy:
            return np.array(self.vectors, dtype=dtype)
        converted = np.asarray(self.vectors, dtype=dtype)
        if copy is False and converted is not self.vectors:
            raise ValueError(f"vectors are {self.vectors.dtype}: converting them to {dtype} needs a copy")
        return converted

    def __contains__(self, node: object) -> bool:
        try:
            return bool(self.find([node])[0] >= 0)
        except InputError:  # unhashable: cannot be an id
            return False

    def __getitem__(self, ids: Any) -> Vectors:
        """Return the vector (d,) of one id, read-only, or the vectors (m, d) of a list or array of m ids."""
        rows: Vectors = self.vectors[self.index_of(ids)]
        return rows

    def index_of(self, ids: Any) -> Any:
        """Return the row (int) of one id, or the rows (m,) int64 of a list or an array of m ids.

        A tuple is one id, as in networkx. Raises UnknownNodeError for an id that is not in the embedding.
        """
        many = isinstance(ids, list) or (hasattr(ids, "__array__") and np.ndim(ids) > 0)
        keys = node_array(ids if many else [ids])
        rows = self.find(keys)
        if (rows < 0).any():
            node = keys.tolist()[int(np.argmax(rows < 0))]
            raise unknown_node(f"no node {node!r} in this embedding", node, self.nodes)
        return rows if many else int(rows[0])

    def find(self, ids: Any) -> NDArray[np.int64]:
        """Return the rows (m,) int64 of a list or an array of m ids; -1 for ids not in the embedding."""
        keys = node_array(ids)
        if isinstance(self._lookup, dict):
            return find_rows(self._lookup, keys.tolist())
        if isinstance(self.nodes, StringIds):
            return find_strings(self.nodes, keys)
        rows = np.full(len(keys), -1, dtype=np.int64)
        if keys.dtype == object:  # at least one id is not an int64
            fits = (type(key) is int and -(2**63) <= key < 2**63 for key in keys)
            whole = np.fromiter(fits, bool, len(keys))
            rows[whole] = self.find(keys[whole].astype(np.int64))
            return rows
        places = np.searchsorted(self.nodes, keys, sorter=self._lookup).clip(max=len(self) - 1)
        candidates = places if self._lookup is None else self._lookup[places]
        known = self.nodes[candidates] == keys
        rows[known] = candidates[known]
        return rows

    def neighbours(
        self, query: Any, k: int = 10, *, among: Any = None, exact: bool = False, metric: str = "cosine"
    ) -> Any:
        """Return the k nearest neighbours of a node or of a vector, nearest first: a list of (id, score).

        query   an id, whose node is excluded from its own neighbours, or an array (d,) of floats; or many: a
                list or an array of ids, or an array (m, d), which return Neighbours: ids (m, k) and scores
                (m, k) float64. `embedding.neighbours(embedding.nodes)` returns those of all nodes
        among   ids of the nodes to choose from; None: all. Compared with exactly
        metric  "cosine": scores are similarities, from 1 down to -1, and 0 for vectors of zeros;
                "euclidean": scores are distances, from 0 up, on which the kernels depend
        exact   False: use the index of this metric, which may miss some neighbours, if `build_index` or
                `load_index` was called; otherwise, and if True, compare with all vectors

        Fewer than k are returned if there are fewer nodes; equal scores are ordered by row.
        """
        index = None if exact else self._indexes.get(metric)
        if hasattr(query, "__array__") and (np.ndim(query) == 2 or _is_vector(query)):
            given = finite_array("query", query, np.float32, np.ndim(query))
            check_query(given, self.dim)
            own, many = None, given.ndim == 2
            queries: NDArray[np.float32] | None = np.atleast_2d(given)
        else:
            found = self.index_of(query)
            many = not isinstance(found, int)
            own, queries = np.atleast_1d(found), None
        if among is None:
            rows, scores = nearest(self.vectors, k, metric, queries=queries, own=own, index=index)
        else:
            chosen = np.unique(np.atleast_1d(self.index_of(among)))
            if own is not None:
                queries = self.vectors[own]
                places = np.searchsorted(chosen, own).clip(max=len(chosen) - 1)
                own = np.where(chosen[places] == own, places, -1)
            rows, scores = nearest(self.vectors[chosen], k, metric, queries=queries, own=own)
            rows = chosen[rows]
        if many:
            return Neighbours(self.nodes[rows], scores)
        return list(zip(self.nodes[rows[0]].tolist(), scores[0].tolist(), strict=True))

    def build_index(self, metric: str = "cosine", n_threads: int | None = None) -> None:
        """Build an index that makes `neighbours` with this metric fast and approximate (kernelne[search]).

        With several threads, two builds differ slightly.
        """
        self._indexes[metric] = NeighbourIndex(self.vectors, metric, n_threads)

    def save_index(self, path: PathLike, metric: str = "cosine", overwrite: bool = False) -> Path:
        """Save the index, built if needed, beside the embedding's file `path`; return the index's path."""
        file = index_path(path, metric)
        check_output(file, overwrite)
        if metric not in self._indexes:
            self.build_index(metric)
        self._indexes[metric].save(file, overwrite)
        return file

    def load_index(self, path: PathLike, metric: str = "cosine", *, trusted: bool = False) -> None:
        """Load the index that `save_index` wrote beside the embedding's file `path`.

        Raises FileNotFoundError if there is no index, FileFormatError if it is damaged or of other vectors,
        or if it was not written by this user on this machine: a crafted index can end the process. With
        `trusted` it is loaded all the same.
        """
        self._indexes[metric] = NeighbourIndex.load(index_path(path, metric), self.vectors, metric, trusted)

    def __deepcopy__(self, memo: Any) -> Embedding:
        # An embedding is immutable, and scikit-learn copies every parameter of every estimator it clones.
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_indexes": {}}  # an index can be rebuilt; a process pool needs none

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickle loses the read-only flag; an array shared by two attributes stays shared.
        arrays = {id(value): read_only(value) for value in state.values() if isinstance(value, np.ndarray)}
        self.__dict__.update({name: arrays.get(id(value), value) for name, value in state.items()})

    def __repr__(self) -> str:
        model = self.provenance.get("model")
        return f"<Embedding of {len(self)} nodes in {self.dim} dimensions{f', {model}' if model else ''}>"

    def _repr_html_(self) -> str:
        kinds = ", ".join(f"{name} σ={sigma:g}" for name, sigma in self.kernels or ())
        facts = {"nodes": len(self), "dimensions": self.dim, "model": self.provenance.get("model")}
        facts["kernels"] = kinds or None
        facts["ids"] = ", ".join(map(str, self.nodes[:5].tolist())) + ", …" * (len(self) > 5)
        return html_facts("Embedding", facts)

    def save(self, path: PathLike, overwrite: bool = False) -> None:
        """Save to `path`, in the format of its suffix; an old file is only replaced by a complete new one.

        suffix         vectors  ids                 provenance  center, context  kernels, coefficients
        .safetensors   yes      yes                 yes         yes              yes
        .npz           yes      yes                 yes         yes              yes
        .parquet       yes      yes                 yes         no               no
        .csv           yes      as text             no          no               no
        .emb, .txt     yes      as text, no spaces  no          no               no
        .npy           yes      as text, beside     no          no               no

        .npz          arrays without pickle; `numpy.load(path)["vectors"]` works without this package
        .parquet      columns `id` and `vector` (a list of fixed size)
        .csv          header `id,0,1,…`
        .emb, .txt    the text format of word2vec, as gensim reads it
        .npy          only the vectors; the ids go to a second file `<path>.nodes.txt`, one per line

        Every format restores the vectors bit for bit. Ids saved as text are loaded as integers if all of
        them are plain integers (`7`, `-7`; not `07`, `7.0`), and as strings otherwise.

        Raises InputError if the file exists and `overwrite` is false, or if the format cannot hold the ids;
        OutputError if the system refuses to write.
        """
        write = FORMATS[known_suffix(path)].write
        check_ids(self.nodes, path)
        saved = {item.name: getattr(self, item.name) for item in fields(self) if item.init}
        files = files_of(path)
        with ExitStack() as stack:
            # Exited in reverse order: the ids are in place before the vectors that need them.
            temporaries = [stack.enter_context(atomic_output(file, overwrite)) for file in files]
            for temporary, content in zip(temporaries, (write, write_node_lines), strict=False):
                with open(temporary, "wb") as stream:
                    content(saved, stream)
                    # Before any file is moved into place, so that a full disk leaves an old pair unchanged.
                    stream.flush()
                    os.fsync(stream.fileno())

    @classmethod
    def load(cls, path: PathLike, mapped: bool | None = None) -> Embedding:
        """Load a saved embedding; the suffix gives the format, and nothing in the file is executed.

        mapped: leave vectors and ids of a .safetensors or .npy file where they are, to be read as they are
        used, so that they may be larger than the memory; None: if the file takes a quarter of the free memory
        or more. The file must not be changed meanwhile; saving with `overwrite` puts a new one in its place.

        Raises FileNotFoundError if there is no such file, InputError if it cannot be read, FileFormatError if
        its content is invalid: truncated, damaged, of another format, or with repeated ids or values that are
        not finite.
        """
        read = find_reader(path, mapped)
        try:
            return cls(**read(Path(path)))
        except FileFormatError:
            raise
        except OSError as error:
            # Damaged contents, not a system error: pyarrow reports damage without an errno, and an archive
            # that points before its own start raises EINVAL.
            if error.errno not in (None, errno.EINVAL):
                raise
            raise _damaged(path, error) from error
        except DAMAGE as error:
            raise _damaged(path, error) from error

    def to_arrow(self) -> Any:
        """Return a pyarrow Table with columns `id` and `vector` (fixed-size list), as in a .parquet file."""
        check_ids(self.nodes, "table.parquet")
        return parquet.to_table({item.name: getattr(self, item.name) for item in fields(self)})

    @classmethod
    def from_arrow(cls, table: Any) -> Embedding:
        """Create an embedding from a table, also of polars, with the columns `id` and `vector`."""
        try:
            found = pa.table(table)
            for name in ("id", "vector"):
                if found.column_names.count(name) > 1:
                    raise InputError(f"the table: several columns are named {name!r}; give one")
            return cls(**parquet.from_table(Path("the table"), found))
        except InputError:
            raise
        except (TypeError, *DAMAGE) as error:
            raise _damaged("the table", error) from error

    def to_pandas(self) -> Any:
        """Return a DataFrame of the vectors, with columns 0 … d - 1 and the ids as index.

        `Embedding(frame, frame.index)` converts it back.
        """
        try:
            import pandas
        except ImportError:
            raise MissingDependencyError("pandas", "graphs") from None
        return pandas.DataFrame(self.vectors.copy(), index=pandas.Index(self.nodes.tolist(), name="id"))

    def to_networkx(self, graph: Any, attribute: str = "vector") -> Any:
        """Return a networkx graph whose nodes have their vector, a (d,) float32 array, as an attribute.

        `graph` is a networkx graph, which is copied, or any graph that `fit` accepts. All its nodes must be
        in the embedding.
        """
        if hasattr(graph, "nodes") and hasattr(graph, "add_nodes_from"):
            made = graph.copy()
        else:
            from kernelne.graph import as_graph

            made = as_graph(graph).to_networkx()
        nodes = list(made.nodes)
        for node, vector in zip(nodes, self[nodes], strict=True):
            made.nodes[node][attribute] = vector
        return made

    def to_gensim(self) -> Any:
        """Return gensim KeyedVectors; the keys are the ids as strings.

        `Embedding(keyed.vectors, keyed.index_to_key)` converts them back, with strings as ids.
        """
        try:
            from gensim.models import KeyedVectors
        except ImportError:
            raise MissingDependencyError("gensim") from None
        keyed = KeyedVectors(self.dim)
        keyed.add_vectors(list(map(str, self.nodes.tolist())), self.vectors)
        return keyed

    def to_torch(self) -> Any:
        """Return a copy of the vectors as a torch tensor (n, d) float32; row i belongs to `nodes[i]`."""
        try:
            import torch
        except ImportError:
            raise MissingDependencyError("torch", "gpu") from None
        return torch.from_numpy(self.vectors.copy())


def _is_vector(query: Any) -> bool:
    return np.ndim(query) == 1 and np.asarray(query).dtype.kind == "f"


def _damaged(path: PathLike, error: BaseException) -> FileFormatError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return FileFormatError(path, f"not a readable embedding: {reason}")
