"""A fitted LinkPredictor as a .safetensors file: weights and trees, not the graph nor the vectors."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelne.errors import FileFormatError, InputError
from kernelne.io.files import PathLike, atomic_output, check_input
from kernelne.links.features import Standard
from kernelne.links.trees import Trees

if TYPE_CHECKING:
    from kernelne.embedding import Embedding
    from kernelne.graph import Graph

_FORMAT = "kernelne link predictor 1"
_REMEDY = (
    "a predictor works with the graph and the vectors that it was trained on; give those, or train another: "
    "LinkPredictor().fit(graph, embedding) (--trained --predictor with a file that does not exist)"
)


def vectors_hash(embedding: Embedding) -> str:
    """Return a hash of the embedding's vectors."""
    return hashlib.blake2b(np.ascontiguousarray(embedding.vectors).data, digest_size=16).hexdigest()


def save(
    path: PathLike,
    weights: Any,
    standard: Standard,
    trees: Trees | None,
    told: dict[str, Any],
    overwrite: bool,
) -> None:
    """Write the parts of a predictor, whole or not at all; `told` is what JSON can hold."""
    from safetensors.numpy import save as pack

    arrays = {"weights": weights, "middle": standard.middle, "scale": standard.scale}
    arrays["unit"] = np.array([standard.unit])
    if trees is not None:
        arrays |= {f"trees.{name}": array for name, array in trees._asdict().items()}
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    data = pack(contiguous, {"format": _FORMAT, "told": json.dumps(told)})
    with atomic_output(path, overwrite) as temporary:
        temporary.write_bytes(data)


def load(
    path: PathLike, graph: Graph, embedding: Embedding
) -> tuple[Any, Standard, Trees | None, dict[str, Any]]:
    """Read the parts of a predictor; it must be of this graph and this embedding."""
    from safetensors import SafetensorError, safe_open

    if check_input(path) == 0:
        raise FileFormatError(path, "the file is empty")
    try:
        with safe_open(path, "numpy") as file:
            facts = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)
        if facts.get("format") != _FORMAT:
            raise FileFormatError(path, "is not a link predictor that this version can read")
        told = json.loads(facts["told"])
        standard = Standard(arrays["middle"], arrays["scale"], float(arrays["unit"][0]))
        own = {
            name.removeprefix("trees."): array for name, array in arrays.items() if name.startswith("trees.")
        }
        trees = Trees(**own) if own else None
        weights = arrays["weights"]
        n_features = len(weights) - 1
        if trees is not None:
            trees.check(n_features)
        for array in (weights, standard.middle, standard.scale):
            if array.ndim != 1 or array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError("an array is damaged")
        graph_told, vectors_told = told["graph"], told["vectors"]
    except (SafetensorError, KeyError, ValueError, TypeError, IndexError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(path, f"not a readable link predictor: {error}") from None
    if graph_told != graph.fingerprint:
        raise InputError(f"{path} was trained on another graph, or on this one before it changed: {_REMEDY}")
    if vectors_told != vectors_hash(embedding):
        raise InputError(f"{path} was trained on other vectors: {_REMEDY}")
    return weights, standard, trees, told
