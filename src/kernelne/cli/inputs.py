"""Estimators, graphs, labels and nodes made from arguments and shared options."""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelne.cli.options import LABELS, READING, Options, default_of
from kernelne.cli.output import begin, say
from kernelne.errors import InputError, KernelneError, ParameterError, UnknownNodeError

#: The name that stands for standard input.
STANDARD_INPUT = "-"

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kernelne.datasets import Dataset
    from kernelne.embedding import Embedding
    from kernelne.graph import Graph
    from kernelne.io.labels import Labels


def given_estimator(given: dict[str, Any]) -> Any:
    """Return the estimator with the parameters that were given."""
    from kernelne.estimators import KernelNE, MKernelNE

    models = {"mkernelne": MKernelNE, "kernelne": KernelNE}
    model = given["model"] or "mkernelne"
    if model not in models:
        raise ParameterError("--model", model, f"must be one of {', '.join(models)}")
    estimator = models[model]()
    known = estimator.get_params()
    own = {name for cls in models.values() for name in cls().get_params()}
    chosen = {name: value for name, value in given.items() if name in own and value is not None}
    for name in chosen:
        if name not in known:
            other = next(m for m in models if m != model)
            option = "--" + name.replace("_", "-")
            raise ParameterError(option, chosen[name], f"is an option of --model {other}, not of {model}")
    if chosen.get("kernels", "auto") != "auto":
        chosen["kernels"] = _parse_kernels(chosen["kernels"])
    if "norm" in chosen:
        chosen["norm"] = _parse_norm(chosen["norm"])
    return estimator.set_params(**chosen)


def _parse_norm(text: str) -> float | str:
    """Parse a number, or the word that leaves the vectors as trained."""
    from kernelne.model.combine_tables import AS_TRAINED

    try:
        return text if text == AS_TRAINED else float(text)
    except ValueError:
        raise ParameterError("--norm", text, f"must be a positive number or {AS_TRAINED}") from None


def _parse_kernels(text: str) -> list[tuple[str, float]]:
    """gaussian:1,schoenberg:2 → [("gaussian", 1.0), ("schoenberg", 2.0)]."""
    pairs = []
    for part in text.split(","):
        name, _, sigma = part.strip().partition(":")
        try:
            pairs.append((name, float(sigma)))
        except ValueError:
            raise ParameterError(
                "--kernels", text, "must be auto or NAME:SIGMA,NAME:SIGMA,… such as gaussian:1,schoenberg:2"
            ) from None
    return pairs


def is_dataset(text: str) -> bool:
    """Whether this names a dataset: there is no such file, and the name has no suffix and no folder."""
    if text == STANDARD_INPUT:
        return False
    base = text.partition(":")[0]
    if os.path.isdir(text):  # cannot be read; may hold the results of the dataset of that name
        from kernelne.datasets import list_datasets

        return any(known.name == base for known in list_datasets())
    return not os.path.lexists(text) and not any(mark in base for mark in (".", "/", os.sep))


def given_dataset(name: str, self_loops: bool = True) -> Dataset:
    """Load a dataset, downloading it if necessary."""
    from kernelne.datasets import list_datasets, load_dataset

    fetching = any(known.name == name and known.where == "to fetch" for known in list_datasets())
    if fetching:
        say(f"fetching {name} …")
    try:
        return load_dataset(name, self_loops=self_loops)
    except KernelneError as error:
        if isinstance(error, ParameterError) and error.name == "dataset":
            raise InputError(f"{name}: there is no such file; {error}") from None
        if fetching:
            begin()
        raise


def check_files(output: Path | None, *paths: Any) -> None:
    """Raise an error if an input file is missing, cannot be opened, or is also the output."""
    from kernelne.io.files import check_input

    for path in paths:
        if path is not None and str(path) != STANDARD_INPUT and not is_dataset(str(path)):
            check_input(path)
            if output is not None and output.exists() and output.samefile(path):
                raise ParameterError("--output", str(output), "is the input; give another name")


def given_graph(graph: str, given: dict[str, Any]) -> Graph:
    """Read the graph of the argument GRAPH with the given options."""
    from kernelne.io.graphs.read_write import read_graph

    options = {name: given[name] for name in READING}
    if graph == STANDARD_INPUT:
        return _read_standard_input(options)
    if not is_dataset(graph):
        return read_graph(graph, **options)
    self_loops = not options.pop("drop_self_loops")
    _refuse_reading(READING, options, graph)
    return given_dataset(graph, self_loops).graph


def _read_standard_input(options: dict[str, Any]) -> Graph:
    """Read a graph from standard input: an edge list unless `--format` names another format.

    The input is copied to a temporary file, because edge lists are read more than once.
    """
    from kernelne.io.files import compression_suffix, temporary_folder
    from kernelne.io.graphs.read_write import read_graph

    if sys.stdin is None:
        raise InputError("standard input is closed: give a file")
    if sys.stdin.isatty():
        say("reading edges from standard input; end with Ctrl-D")
    with temporary_folder() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", UserWarning)
        path = os.path.join(folder, "input")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        suffix = compression_suffix(path)
        os.rename(path, path + suffix)
        try:
            return read_graph(path + suffix, **options | {"format": options["format"] or "edges"})
        except ParameterError:
            raise
        except InputError as error:
            raise InputError(str(error).replace(path + suffix, "standard input")) from None
        finally:
            told = [str(w.message).replace(path + suffix, "standard input") for w in caught]
            for message in told:
                say(f"warning: {message}")


def _refuse_reading(group: Options, options: dict[str, Any], dataset: str) -> None:
    """Raise an error if an option for reading a file is given together with a dataset."""
    for name, value in options.items():
        if value != default_of(group[name]):
            raise ParameterError(
                "--" + name.replace("_", "-"),
                value,
                f"is an option for reading a file, and {dataset} is the name of a dataset",
            )


def given_labels(labels: str, given: dict[str, Any]) -> Labels:
    """Return the labels of a dataset, or those of a file read with the given options."""
    from kernelne.io.read_labels import read_labels

    if not is_dataset(labels):
        try:
            options = {name.removeprefix("labels_"): given[name] for name in LABELS}
            read: Labels = read_labels(labels, **options)
            return read
        except ParameterError as error:
            raise InputError(f"--labels-{error}") from None
    _refuse_reading(LABELS, {name: given[name] for name in LABELS}, labels)
    found = given_dataset(labels).labels
    if found is None:
        raise InputError(f"{labels}: this dataset has no labels; give a file with labels")
    return found


def told_labels(labels: Labels) -> str:
    """Describe labels in one line, which shows a misread separator or column."""
    several = f", {labels.n_several:,} with several labels" if labels.n_several else ""
    return f"Labels: {len(labels):,} nodes, {len(labels.classes):,} classes{several}"


def matched_labels(
    labels: str, given: dict[str, Any], how: str, nodes: NDArray[Any], skip_unknown: bool
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the rows of the labelled nodes, at least one, and their labels by the method `how` of Labels."""
    found = given_labels(labels, given)
    try:
        rows, truth = getattr(found, how)(nodes, unknown="skip" if skip_unknown else "error")
    except InputError as error:
        told = str(error).replace("unknown='skip', or --skip-unknown,", "--skip-unknown")
        first = found.nodes.tolist()[0]
        if isinstance(first, str) and f"the first is {first!r}" in told and not is_dataset(labels):
            told += "; is the first line a header? --labels-header"
        raise InputError(f"{labels}: {told}") from None
    if not len(rows):
        raise InputError(f"{labels}: none of its {len(found):,} nodes are among these {len(nodes):,}")
    return rows, truth


def own_labels(
    graph: str, labels: str | None, given: dict[str, Any], loaded: Graph, skip_unknown: bool
) -> Labels | None:
    """Return the given labels, else those of the graph if it is a dataset with labels, else None."""
    from kernelne.io.labels import Labels

    if labels is None:
        return given_dataset(graph).labels if is_dataset(graph) else None
    rows, truth = matched_labels(labels, given, "for_nodes", loaded.nodes, skip_unknown)
    return Labels(loaded.nodes[rows], range(truth.shape[1]), truth)


def check_same_nodes(embedding: Embedding, graph: Graph, vectors: Path, edges: str) -> None:
    """Raise an error unless the embedding in `vectors` and the graph in `edges` have the same nodes."""
    import numpy as np

    refusal = f"{vectors} is not an embedding of {edges}"
    try:
        rows = embedding.index_of(graph.nodes)
    except UnknownNodeError as error:
        lacking = str(error).replace("no node", "it lacks node", 1).replace(" in this embedding", "", 1)
        raise InputError(f"{refusal}: {lacking}") from None
    if len(embedding) > graph.n_nodes:
        extra = np.delete(embedding.nodes, rows).tolist()
        raise InputError(
            f"{refusal}: {len(extra):,} of {len(embedding):,} nodes of the embedding are not in the graph, "
            f"such as {extra[0]!r}; --nodes adds nodes without edges"
        )


def given_node(text: str, nodes: NDArray[Any]) -> Any:
    """Return a node id of the type of `nodes`: an integer if those are integers."""
    if nodes.dtype != object and text.isascii():
        with suppress(ValueError):
            number = int(text)
            return number if str(number) == text else text  # 007 is not 7
    return text


def given_ids(path: Path, known: Graph | Embedding, skip_unknown: bool = False) -> NDArray[Any]:
    """Read node ids of a graph or an embedding, one per line; unknown ones are an error or left out."""
    import numpy as np

    from kernelne.graph.ids import are_known, node_array

    texts = path.read_text(encoding="utf-8-sig").split("\n")
    lines = [(number, text.strip()) for number, text in enumerate(texts, 1) if text.strip()]
    if not lines:
        raise InputError(f"{path}: no node ids in the file")
    ids = [given_node(text, known.nodes) for _, text in lines]
    unknown = np.flatnonzero(~are_known(ids, known.nodes)).tolist()
    if unknown and not skip_unknown:
        number, text = lines[unknown[0]]
        header = "; is it a header?" if unknown == [0] else ""
        more = f" ({len(unknown) - 1:,} more are unknown)" if len(unknown) > 1 else ""
        whole = "; the ids are integers" if known.nodes.dtype != object else ""
        told = f"no node {text!r}{more}{whole}{header}"
        raise InputError(f"{path}:{number}: {told}; --skip-unknown leaves out unknown ids")
    if len(unknown) == len(ids):
        raise InputError(f"{path}: none of its {len(ids):,} ids is a node")
    if unknown:
        say(f"warning: {path}: {len(unknown):,} of {len(ids):,} ids are unknown and left out")
    kept = np.delete(np.arange(len(ids)), unknown)
    return node_array([ids[place] for place in kept])


def told(graph: Graph) -> str:
    """Describe the graph in one line, with an edge that shows a misread header or separator."""
    row = int((graph.degrees > 0).argmax())
    first = ""
    if graph.neighbours.size:
        first = f", such as {graph.nodes[row]} – {graph.nodes[graph.neighbours[graph.offsets[row]]]}"
    return repr(graph).strip("<>") + first


def parse_time(text: str) -> float:
    """90, 90s, 5m, 1h30m → seconds."""
    number = r"(\d+(?:\.\d+)?)"
    found = re.fullmatch(rf"(?:{number}h)?(?:{number}m)?(?:{number}s?)?", text.strip().lower())
    seconds = 0.0
    if found:
        seconds = sum(
            float(part or 0) * unit for part, unit in zip(found.groups(), (3600, 60, 1), strict=True)
        )
    if not seconds:
        raise ParameterError("--time", text, "must be hours, minutes and seconds, such as 90s, 5m or 1h30m")
    return seconds
