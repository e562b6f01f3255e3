"""A layout kept in a file beside the vectors, so that every picture of an embedding shows the same map."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._common.checks import check_seed, check_vectors
from kernelne.errors import KernelneError
from kernelne.io.files import PathLike, atomic_output
from kernelne.progress import Progress
from kernelne.view.layout import check_layout, chosen_method, layout_nodes
from kernelne.view.spread import SETTINGS

_FORMAT = "kernelne layout 1"
#: Methods that take long enough to keep what they find.
_KEPT = ("map", "tsne", "umap")


def kept_layout(
    vectors: Any,
    method: str = "auto",
    random_state: int = 0,
    *,
    beside: PathLike | None = None,
    backend: str = "cpu",
    progress: Progress = False,
) -> NDArray[np.float32]:
    """As `layout_nodes`, but read from the file beside the vectors' file `beside`, if it is their layout.

    It is if hashes of the vectors and of itself, the method, its settings and the seed agree. Otherwise the
    layout is computed and the file is replaced. A folder that cannot be written to is no error: then the
    layout is not kept. None: nothing is read or written. A layout is read whatever the backend that made it.
    """
    check_layout(method, backend)
    seed = check_seed(random_state)
    table = check_vectors(vectors)
    chosen = chosen_method(len(table), table.shape[1], method)
    if beside is None or chosen not in _KEPT:
        return layout_nodes(table, method, seed, backend=backend, progress=progress)
    path = layout_path(beside, chosen)
    facts = {
        "format": _FORMAT,
        "method": chosen,
        "settings": json.dumps(SETTINGS if chosen == "map" else {}),
        "seed": str(seed),
        "vectors": _hash(table),
    }
    places = _read(path, facts, len(table))
    if places is None:
        places = layout_nodes(table, method, seed, backend=backend, progress=progress)
        with contextlib.suppress(KernelneError):
            _write(path, facts, places)
    return places


def layout_path(path: PathLike, method: str) -> Path:
    """Return the path of the layout of the embedding at `path`: a file beside it."""
    return Path(f"{os.fspath(path)}.{method}.layout")


def _write(path: Path, facts: dict[str, str], places: NDArray[np.float32]) -> None:
    from safetensors.numpy import save

    places = np.ascontiguousarray(places)
    with atomic_output(path, overwrite=True) as temporary:
        temporary.write_bytes(save({"places": places}, facts | {"content": _hash(places)}))


def _read(path: Path, facts: dict[str, str], n: int) -> NDArray[np.float32] | None:
    """Return the places (n, 2) in a file, or None if it is missing, damaged or another layout."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        return None
    try:
        with safe_open(os.fspath(path), "numpy") as file:
            found = file.metadata() or {}
            if any(found.get(key) != value for key, value in facts.items()):
                return None
            places: NDArray[np.float32] = file.get_tensor("places")
    except (SafetensorError, OSError):
        return None
    good = places.shape == (n, 2) and places.dtype == np.float32 and found.get("content") == _hash(places)
    return places if good else None


def _hash(array: NDArray[Any]) -> str:
    """Return the hex digest of an array's shape, dtype and bytes."""
    digest = hashlib.blake2b(f"{array.shape} {array.dtype}|".encode(), digest_size=20)
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
