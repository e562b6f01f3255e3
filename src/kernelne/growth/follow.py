"""Embeddings that follow a file to which edges are appended: updated in batches."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelne._common.checks import check_count, check_duration
from kernelne.embedding import Embedding
from kernelne.errors import FileFormatError, InputError, ParameterError
from kernelne.graph import Graph, as_graph
from kernelne.graph.ops import add_edges
from kernelne.growth.update import update_embedding
from kernelne.io.files import PathLike, check_input, temporary_folder
from kernelne.io.graphs.read_write import read_graph

_POLL = 0.2  # seconds between two looks at the file


def follow_edges(
    embedding: Embedding,
    graph: Any,
    path: PathLike,
    *,
    every: int | str = 1000,
    idle: float | str | None = None,
    header: bool = False,
    skip_bad: bool = False,
    columns: dict[str, Any] | None = None,
    **how: Any,
) -> Iterator[Embedding]:
    """Yield the embedding again and again, updated with the edges that are appended to a file.

    The first update has all lines that are there already. It takes up where an earlier run ended, if that
    run's last embedding is given: only what it does not have is trained. The graph as it is then is built
    from `graph` and the whole file. A line counts when it has its end.

    Parameters
    ----------
    embedding: an embedding of `graph`, or one that was yielded before.
    graph: the graph without the edges of the file.
    path: an edge list, with an edge on each line, as `read_graph` reads it; not compressed.
    every: number of new lines, or a time such as "30s", after which the embedding is updated.
    idle: end when there was no new line for so long: seconds, or a text such as "10min". None: never.
    header: whether the first line names the columns.
    skip_bad, columns: as in `read_graph`: `columns` holds its source, target, weight and separator.
    how: n_threads, deterministic, random_state and progress of `update_embedding`.
    """
    n_lines, seconds = _batch(every)
    most_idle = None if idle is None else check_duration("idle", idle)
    known = as_graph(graph)
    if known.timed is not None:
        raise ParameterError("graph", known, "edges with times cannot be followed: read it without time")
    log = _Log(path, embedding, header, {"skip_bad": skip_bad, **(columns or {})})
    quiet_since = last = time.monotonic()
    first, seen = True, 0
    while True:
        waiting, now = log.lines_waiting(), time.monotonic()
        if log.n_read != seen:
            seen, quiet_since = log.n_read, now
        ending = most_idle is not None and now - quiet_since >= most_idle
        if waiting and (first or ending or (waiting >= n_lines if n_lines else now - last >= seconds)):
            first, last = False, now
            known = log.added_to(known)
            made = update_embedding(embedding, known, **how)
            if made is not embedding:
                embedding = replace(made, provenance={**made.provenance, "follow": log.told()})
                yield embedding
        elif ending:
            return
        else:
            time.sleep(_POLL)


def _batch(every: Any) -> tuple[int, float]:
    """Return a number of lines and 0, or 0 and a number of seconds."""
    text = every.strip() if isinstance(every, str) else every
    if isinstance(text, str) and text.isascii() and text.isdigit():
        text = int(text)
    if isinstance(text, str):
        return 0, check_duration("every", text)
    check_count("every", text)
    return int(text), 0.0


class _Log:
    """A file of edges that grows; lines are handed out once."""

    def __init__(self, path: PathLike, embedding: Embedding, header: bool, options: dict[str, Any]) -> None:
        self.path, self.options, self.header = Path(path), options, header
        check_input(self.path)
        if self.path.suffix.lower() in (".gz", ".zst"):
            raise ParameterError("follow", str(path), "must not be compressed")
        self.head = b""
        self.n_bytes = self.n_lines = 0
        self.waiting = b""
        told = embedding.provenance.get("follow")
        applied = told.get("bytes", 0) if isinstance(told, dict) else 0
        if isinstance(applied, int) and applied > self.path.stat().st_size:
            raise self._shorter(applied)

    def _shorter(self, n_bytes: int) -> InputError:
        return InputError(
            f"{self.path}: shorter than the {n_bytes:,} bytes that were read before: lines may only be "
            "appended; start again with a graph that has the edges so far"
        )

    def lines_waiting(self) -> int:
        """Read what was appended; returns the number of whole lines that were not handed out yet."""
        try:
            with open(self.path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < self.n_read:
                    raise self._shorter(self.n_read)
                file.seek(self.n_read)
                self.waiting += file.read(size - self.n_read)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read any longer: {error.strerror}") from None
        if self.header and not self.head:
            line, end, rest = self.waiting.partition(b"\n")
            if not end:
                return 0
            self.head, self.waiting, self.n_bytes, self.n_lines = line + end, rest, len(line) + 1, 1
        return self.waiting.count(b"\n")

    @property
    def n_read(self) -> int:
        """Number of bytes read."""
        return self.n_bytes + len(self.waiting)

    def added_to(self, graph: Graph) -> Graph:
        """Hand out the whole lines: the graph with their edges."""
        whole = self.waiting[: self.waiting.rfind(b"\n") + 1]
        with temporary_folder() as folder:
            part = Path(folder, self.path.name)
            part.write_bytes(self.head + whole)
            try:
                more = read_graph(
                    part,
                    directed=graph.directed,
                    header=self.header,
                    weighted=None if graph.weights is not None else False,
                    **self.options,
                )
                graph = add_edges(graph, more)
            except FileFormatError as error:
                if "no edges in the file" not in str(error):  # blank lines and comments alone
                    raise self._in_log(error, part) from None
        self.n_bytes += len(whole)
        self.n_lines += whole.count(b"\n")
        self.waiting = self.waiting[len(whole) :]
        return graph

    def _in_log(self, error: FileFormatError, part: Path) -> InputError:
        """Return the error with the file and the line of the log."""
        line = getattr(error, "line", None)
        if line is None:
            return InputError(str(error).replace(str(part), str(self.path)))
        number = line + self.n_lines - (1 if self.head else 0)
        return InputError(str(error).replace(f"{part}:{line}", f"{self.path}:{number}"))

    def told(self) -> dict[str, Any]:
        return {"file": self.path.name, "lines": self.n_lines, "bytes": self.n_bytes}
