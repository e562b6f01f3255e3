"""Checkpoints: the state of a run on disk, from which it continues after a stop, a crash or a reboot.

A checkpoint is a folder with the last two states that were written, each whole or not at all, with a hash of
its arrays: if the newer one cannot be read, the older one is used. Of tables in parts only the last state is
kept: its parts are written first, each to a file, then the file that names them. Random numbers depend on the
number of a walk, or of a block of pairs, only, so a run that continues is the same run, to the bit where the
backend repeats.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelne._common.checks import check_duration
from kernelne.errors import FileFormatError, InputError, OutputError, ParameterError, warn
from kernelne.io.arrays import write_arrays
from kernelne.io.files import atomic_output
from kernelne.training.backend import Backend, OnBlock
from kernelne.training.config import TrainingConfig
from kernelne.training.part_files import PartFiles, file_digest, keep_part, remove_folder
from kernelne.training.state import RECORDED, TrainingState

if TYPE_CHECKING:
    from kernelne.graph import Graph

_FORMAT = "kernelne checkpoint 1"
#: Settings in which a run may differ from the one it continues.
_FREE = {"n_threads"}
_TABLES = ("center", "context")
#: How the names of folders begin in which training out of core has its files.
WORK = ".work-"


class Interrupted(KeyboardInterrupt):
    """Training was stopped by a signal; what there is has been kept.

    signum: the signal. done: share of the walks. folder: the checkpoint, or None.
    """

    def __init__(self, signum: int, done: float, folder: Path | None) -> None:
        super().__init__(f"stopped after {done:.0%} of the walks")
        self.signum, self.done, self.folder = signum, done, folder


@dataclass
class Checkpoint:
    """Where and how often the state of a run is written.

    folder: created if there is none. every: seconds between two writes. model: name of the estimator.
    """

    folder: Path
    every: float
    model: str

    @classmethod
    def at(cls, folder: Any, every: Any, model: str) -> Checkpoint:
        """Check the parameters `checkpoint` and `checkpoint_every`."""
        if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
            raise ParameterError("checkpoint", folder, "must be the name of a folder")
        return cls(Path(os.fsdecode(folder)), check_duration("checkpoint_every", every), model)

    def files(self) -> list[Path]:
        """Return the states in the folder, the newest first."""
        return sorted(self.folder.glob("walk-*.safetensors"), key=_walk_of, reverse=True)

    def check(self) -> None:
        """Create the folder; raises InputError if it is something else or holds other files."""
        try:
            self.folder.mkdir(exist_ok=True)
            self._sweep()
            strange = [p.name for p in self.folder.iterdir() if not p.name.startswith((".", "walk-"))]
        except OSError as error:
            told = error.strerror or type(error).__name__
            raise InputError(f"{self.folder}: cannot be used for checkpoints: {told}") from None
        if strange:
            raise InputError(f"{self.folder}: holds other files, such as {strange[0]}: give an empty folder")

    def load(
        self, graph: Graph, config: TrainingConfig, any_seed: bool
    ) -> tuple[TrainingConfig, TrainingState | None]:
        """Return the newest state that can be read, if there is one, and the settings with its seed.

        any_seed: whether the seed may be that of the checkpoint instead of the one in `config`. Raises
        InputError if the checkpoint is that of another graph or of other settings.
        """
        self.check()
        files = self.files()
        for file in files:
            try:
                state, told = _read(file)
            except (FileFormatError, OSError) as error:
                warn(f"{error}; the checkpoint before it is used" if file != files[-1] else str(error))
                continue
            self._compare(file, told, graph, config, any_seed)
            return replace(config, seed=int(told["config"]["seed"])), state
        if files:
            raise InputError(f"{self.folder}: no checkpoint in it can be read: remove it to start anew")
        return config, None

    def _compare(
        self, file: Path, told: dict[str, Any], graph: Graph, config: TrainingConfig, any_seed: bool
    ) -> None:
        if told["graph"] != graph.fingerprint:
            raise InputError(
                f"{self.folder}: is the checkpoint of another graph ({told['nodes']:,} nodes, fingerprint "
                f"{str(told['graph'])[:12]}), not of this one ({graph.n_nodes:,} nodes, "
                f"{graph.fingerprint[:12]}): give another folder, or remove it"
            )
        wanted = json.loads(json.dumps(asdict(config) | {"model": self.model}))
        known = told["config"] | {"model": told["model"]}
        free = _FREE | ({"seed"} if any_seed else set())
        names = [name for name in {**known, **wanted} if name not in free]
        other = [name for name in names if known.get(name) != wanted.get(name)]
        if other:
            shown = ", ".join(f"{name} {known.get(name)} (now {wanted.get(name)})" for name in other)
            raise InputError(
                f"{self.folder}: is the checkpoint of a run with other settings: {shown}; give the same, "
                "another folder, or remove it"
            )

    def write(self, state: TrainingState, graph: Graph, config: TrainingConfig) -> None:
        """Write a state with NumPy arrays or tables in parts, then remove the states before it."""
        arrays = _arrays_of(state)
        told: dict[str, Any] = {"config": asdict(config), "model": self.model, "graph": graph.fingerprint}
        told |= {"nodes": graph.n_nodes, "next_walk": state.next_walk, "hashes": _hashes(arrays)}
        if "center" not in arrays:
            try:
                told["parts"] = self._write_parts(state)
            except OSError as error:
                raise OutputError(f"{self.folder}: cannot be written: {error.strerror}") from error
        text = json.dumps(told)
        sealed = {"format": _FORMAT, "told": text, "seal": _digest(text.encode())}
        file = self.folder / f"walk-{state.next_walk}.safetensors"
        with atomic_output(file, overwrite=True) as temporary, open(temporary, "wb") as stream:
            write_arrays(stream, arrays, sealed)
        for old in self.files()[1 if "parts" in told else 2 :]:
            old.unlink(missing_ok=True)
        for part in self.folder.glob("walk-*.part"):
            if _walk_of(part) != state.next_walk:
                part.unlink(missing_ok=True)

    def _write_parts(self, state: TrainingState) -> dict[str, list[str]]:
        """Write tables in parts; returns the hashes of the files of each."""
        found: dict[str, list[str]] = {}
        with ThreadPoolExecutor() as pool:
            for name in _TABLES:
                table = getattr(state, name)
                files = _part_files(self.folder, name, state.next_walk, len(table))
                for i, file in enumerate(files):
                    keep_part(table, i, file)
                found[name] = list(pool.map(file_digest, files))
        return found

    def _sweep(self) -> None:
        """Remove what processes that were killed while writing have left."""
        for file in self.folder.glob(".walk-*.tmp"):
            file.unlink(missing_ok=True)
        for folder in self.folder.glob(f"{WORK}*"):
            remove_folder(folder)

    def remove(self) -> None:
        """Remove the states, and the folder if nothing else is in it."""
        self._sweep()
        for file in [*self.files(), *self.folder.glob("walk-*.part")]:
            file.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()


def train_on(
    backend: Backend,
    graph: Graph,
    config: TrainingConfig,
    on_block: OnBlock,
    checkpoint: Checkpoint | None,
    state: TrainingState | None,
) -> tuple[TrainingState, Interrupted | None]:
    """Train from `state` (None: from the start) to the end or a signal, with checkpoints on the way.

    Returns the state with NumPy arrays, and how it was stopped, if it was. SIGINT and SIGTERM end the run
    after the current block, a second one at once.
    """
    prepared = backend.prepare(graph, config)
    state = backend.start(prepared) if state is None else state
    written = time.monotonic()
    with _signals() as caught:

        def pause(done: int, total: int, loss: float) -> bool:
            on_block(done, total, loss)
            due = checkpoint is not None and time.monotonic() - written > checkpoint.every
            return due or bool(caught)

        while True:
            before = state.next_walk
            state = backend.run(prepared, state, None, pause)
            ended = state.next_walk >= prepared.n_walks
            if checkpoint is not None and state.next_walk > before:
                checkpoint.write(backend.keep(state), graph, config)
                written = time.monotonic()
            if ended or caught:
                break
    stopped = None
    if caught and not ended:
        folder = None if checkpoint is None else checkpoint.folder
        stopped = Interrupted(caught[0], state.next_walk / prepared.n_walks, folder)
    return backend.fetch(state), stopped


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Yield a list of the signals to stop that came; the first one restores what was before.

    Only the main thread may set handlers: in others signals do what they did.
    """
    caught: list[int] = []
    before: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        before.clear()

    def note(signum: int, frame: Any) -> None:
        caught.append(signum)
        restore()

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            # None: set by other code than Python's, which could not be restored. Ignored ones stay ignored.
            if handler is not None and handler != signal.SIG_IGN:
                before[number] = signal.signal(number, note)
    try:
        yield caught
    finally:
        restore()


def _walk_of(file: Path) -> int:
    number = file.name.removeprefix("walk-").partition(".")[0]
    return int(number) if number.isdecimal() else -1


def _part_files(folder: Path, table: str, walk: int, n_parts: int) -> list[Path]:
    return [folder / f"walk-{walk}.{table}-{i}.part" for i in range(n_parts)]


def _arrays_of(state: TrainingState) -> dict[str, NDArray[Any]]:
    arrays: dict[str, Any] = {"coefficients": state.coefficients}
    if isinstance(state.center, np.ndarray):
        arrays |= {name: getattr(state, name) for name in _TABLES}
    for name in RECORDED:
        if name in state.history:
            kept = state.history[name]
            arrays[f"history.{name}"] = kept.astype(np.int64 if kept.dtype.kind in "iu" else np.float64)
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _hashes(arrays: dict[str, NDArray[Any]]) -> dict[str, str]:
    with ThreadPoolExecutor() as pool:  # hashing lets other threads run
        return dict(zip(arrays, pool.map(_digest, (array.data for array in arrays.values())), strict=True))


def _digest(data: Any) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _read(file: Path) -> tuple[TrainingState, dict[str, Any]]:
    """Return the state in a file and what is told of it; raises FileFormatError if it is damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="np") as stored:
            facts = stored.metadata() or {}
            if facts.get("format") != _FORMAT or facts.get("seal") != _digest(facts["told"].encode()):
                raise ValueError("its header is damaged, or of another version")
            told = json.loads(facts["told"])
            arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        if _hashes(arrays) != told["hashes"]:
            raise ValueError("its arrays are damaged")
        history = {name: arrays[f"history.{name}"] for name in RECORDED if f"history.{name}" in arrays}
        if "parts" in told:
            arrays |= _read_parts(file.parent, told)
        state = TrainingState(
            arrays["center"], arrays["context"], arrays["coefficients"], int(told["next_walk"]), history
        )
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise FileFormatError(file, f"not a readable checkpoint: {error}") from None
    return state, told


def _read_parts(folder: Path, told: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of a state in parts, whose files are mapped to memory when they are read."""
    tables = {}
    with ThreadPoolExecutor() as pool:
        for name in _TABLES:
            known = told["parts"][name]
            files = _part_files(folder, name, int(told["next_walk"]), len(known))
            for part, (found, expected) in enumerate(zip(pool.map(file_digest, files), known, strict=True)):
                if found != expected:
                    raise ValueError(f"part {part} of the table {name} is damaged")
            tables[name] = PartFiles(files, int(told["config"]["dim"]))
    return tables
