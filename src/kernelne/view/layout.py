"""Places in the plane for vectors, to look at them: a map by neighbours, PCA, t-SNE or UMAP."""

from __future__ import annotations

import io
import math
import re
import warnings
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._common.checks import check_seed, check_vectors
from kernelne._common.fork import fork_safe_openmp
from kernelne.errors import MissingDependencyError, ParameterError
from kernelne.progress import Progress, reporting
from kernelne.training.backend import check_backend
from kernelne.view.spread import map_rows

#: What `layout_nodes` takes for `method`.
LAYOUTS = ("auto", "map", "pca", "tsne", "umap")
#: Fewer nodes than this have no neighbourhoods to keep: they are laid out by PCA.
_FEW = 5
_ITERATIONS = 500
#: Up to this many nodes t-SNE runs on one thread, in seconds: on a busy machine several mostly wait for each
#: other, at every one of its iterations, and take many times as long.
_ONE_THREAD = 2_000


def layout_nodes(
    vectors: Any,
    method: str = "auto",
    random_state: int = 0,
    *,
    backend: str = "cpu",
    progress: Progress = False,
) -> NDArray[np.float32]:
    """Places (n, 2) float32 of vectors (n, d), an array or an Embedding; the same for the same seed.

    method: "map", which keeps neighbours together and takes a million nodes (view/spread.py); "pca", the
    plane in which the vectors spread most; "tsne", which keeps neighbours together (scikit-learn's,
    Barnes–Hut, Euclidean); "umap", likewise (needs kernelne[explore]); "auto", the vectors themselves if they
    have two columns, else "map". Fewer than five nodes, or vectors that are all on one line, are laid out by
    PCA whatever the method.
    backend: "cpu", or "gpu" for "map" on one NVIDIA GPU (needs kernelne[gpu]): the same map but for rounding,
    which changes details.

    >>> layout_nodes([[0.0, 0.0, 0.0], [3.0, 0.0, 4.0]], "pca").round(3)
    array([[-2.5,  0. ], [ 2.5,  0. ]], dtype=float32)
    """
    check_layout(method, backend)
    seed = check_seed(random_state)
    table = check_vectors(vectors)
    method = chosen_method(len(table), table.shape[1], method)
    if method == "none":
        return np.array(table, np.float32)
    flat = _principal_plane(table)
    spread = flat.std(axis=0, dtype=np.float64)
    if method == "pca" or not spread.all():
        return flat
    start = flat / np.float32(spread[0])
    if method == "map":
        return map_rows(table, start, seed, progress, backend=backend)
    if method == "umap":
        return _umap(table, start, seed)
    return _tsne(table, start, seed, progress)


def chosen_method(n: int, dim: int, method: str) -> str:
    """What `layout_nodes` makes of a method for n vectors of `dim` columns; "none": they are the places."""
    if method == "auto":
        method = "none" if dim == 2 else "map"
    return "pca" if method in ("map", "tsne", "umap") and n < _FEW else method


def check_layout(method: Any, backend: Any = "cpu") -> None:
    """Raise now what `layout_nodes` would raise for this method, a missing package or GPU included."""
    if not isinstance(method, str) or method not in LAYOUTS:
        raise ParameterError("layout", method, f"must be one of {', '.join(LAYOUTS)}")
    if method == "umap":
        _import_umap()
    check_backend(backend, False)
    if backend == "gpu":
        if method not in ("auto", "map"):
            raise ParameterError("backend", backend, f"only the layout map runs on a GPU, not {method}")
        import_module("kernelne.view.on_gpu").find_device()


def _principal_plane(table: NDArray[Any]) -> NDArray[np.float32]:
    """Coordinates (n, 2) float32 along the two directions of most variance; zeros where there is only one."""
    if (table == table[0]).all():
        return np.zeros((len(table), 2), np.float32)
    centred = table - table.mean(axis=0, dtype=np.float64).astype(table.dtype)
    scaled = centred / np.abs(centred).max()  # so that no square overflows
    _, directions = np.linalg.eigh((scaled.T @ scaled).astype(np.float64))
    axes = directions[:, ::-1][:, :2]
    # A direction has no sign of its own: the same one every time.
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    flat = np.zeros((len(table), 2), np.float32)
    flat[:, : axes.shape[1]] = centred @ axes.astype(table.dtype)
    return flat


def _tsne(
    table: NDArray[Any], start: NDArray[np.float32], seed: int, progress: Progress
) -> NDArray[np.float32]:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    model = TSNE(
        perplexity=min(30.0, (len(table) - 1) / 3),
        init=1e-4 * start,
        max_iter=_ITERATIONS,
        random_state=seed,
        n_jobs=-1,
        verbose=2,
    )
    threads = threadpool_limits(1 if len(table) <= _ONE_THREAD else None, user_api="openmp")
    shown = reporting(progress, "t-SNE", "iterations")
    with threads, fork_safe_openmp(), shown as report, redirect_stdout(_Reader(report)):
        flat: NDArray[np.float32] = model.fit_transform(table).astype(np.float32)
    return flat


class _Reader(io.TextIOBase):
    """Report the iterations of scikit-learn's t-SNE, which has no callback, from the lines that it prints."""

    def __init__(self, report: Any) -> None:
        self.report = report

    def write(self, text: str) -> int:
        if found := re.search(r"Iteration (\d+):", text):
            self.report(int(found[1]), _ITERATIONS, math.nan)
        return len(text)


def _import_umap() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImportWarning)  # that there is no Tensorflow
            import umap
    except ImportError:
        raise MissingDependencyError("umap-learn", "explore") from None
    return umap


def _umap(table: NDArray[Any], start: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    neighbours = min(15, len(table) - 1)
    # One job: with a seed it is all that UMAP runs, and it warns of more.
    model = _import_umap().UMAP(n_neighbors=neighbours, init=10 * start, random_state=seed, n_jobs=1)
    flat: NDArray[np.float32] = model.fit_transform(table).astype(np.float32)
    return flat
