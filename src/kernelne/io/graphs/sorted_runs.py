"""Tables that are sorted in parts, kept on disk, and merged block by block: no more of them is in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

#: Bytes of a run that are read at a time.
BATCH = 2**17


class SortedRuns:
    """Runs: tables on disk, each sorted by its first column, in files that start with `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._runs: list[_Run] = []
        self.n_rows = 0

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, table: pa.Table) -> None:
        """Write a sorted table."""
        self._runs.append(_Run(self._path.with_name(f"{self._path.name}-{len(self)}"), table))
        self.n_rows += len(table)

    def merge(self) -> Iterator[list[pa.Table]]:
        """Yield parts of all runs, in the order in which these were added, and remove the files.

        The values of a list's first columns are larger than those of the lists before it; so all rows with
        equal values are in one list.
        """
        runs = self._runs
        while True:
            for run in runs:
                run.fill()
            # Up to here everything is in memory: the least last value of those with more on disk. As a batch
            # of each is there, about a batch of each is merged.
            lasts = [run.last for run in runs if not run.ended]
            upto = min(lasts, default=None)
            for run in runs:
                while not run.ended and run.last <= upto:
                    run.read()
            parts = [run.take(upto) for run in runs]
            if not any(map(len, parts)):
                return
            yield parts


class _Run:
    """A table in a file, of which `head` has been read and not yet been taken."""

    def __init__(self, path: Path, table: pa.Table) -> None:
        self.path = path
        self.n_rows = max(BATCH * len(table) // max(table.nbytes, 1), 16)
        with open(path, "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=self.n_rows)
        self.schema, self.head = table.schema, table.schema.empty_table()
        with open(path, "rb") as written:
            pa.ipc.read_message(written)  # the schema
            self.position = written.tell()
        self.left, self.ended = len(table), False

    @property
    def last(self) -> Any:
        return self.head.column(0)[-1].as_py()

    def fill(self) -> None:
        """Read until the head has a batch."""
        while not self.ended and len(self.head) < self.n_rows:
            self.read()

    def read(self) -> None:
        """Read a batch more; at the end the file is removed."""
        if self.left:
            with open(self.path, "rb") as file:
                file.seek(self.position)
                batch = pa.ipc.read_record_batch(pa.ipc.read_message(file), self.schema)
                self.position = file.tell()
            self.left -= len(batch)
            self.head = pa.concat_tables([self.head, pa.Table.from_batches([batch])]).combine_chunks()
        if not self.left:
            self.ended = True
            self.path.unlink()

    def take(self, upto: Any) -> pa.Table:
        """Return and remove the rows of the head up to this value; None: all of them."""
        keys, count = self.head.column(0), len(self.head)
        if upto is not None:
            count = bisect_right(range(count), upto, key=lambda at: keys[at].as_py())
        taken, self.head = self.head.slice(0, count), self.head.slice(count)
        return taken
