"""Blocks on a cluster, as tasks of Ray: tables and pairs are in its object store.

A block is a pure function, so Ray runs it again wherever a worker or a machine is lost, and makes the objects
that were lost with a machine anew from those they were made of. When a run goes on from a checkpoint, these
begin with its tables.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelne._common.checks import available_threads
from kernelne._common.jit import source_digest
from kernelne._version import __version__
from kernelne.errors import InputError, KernelneError, MissingDependencyError, ParameterError, warn
from kernelne.model.kernels import own_key
from kernelne.training.config import TrainingConfig
from kernelne.training.parts.block import Trained, train_block
from kernelne.training.parts.executor import Table, Task, Train
from kernelne.training.parts.pairs import Finder, Pairs, find_all
from kernelne.training.parts.schedule import Block, Round, SubEpisode
from kernelne.training.state import TrainingState
from kernelne.walks.negatives import AliasTable

#: How often a task is run again after its worker or machine was lost.
RETRIES = 4
#: Most tasks that find the pairs of an episode; each block takes an object from each of them.
_MOST_SHARDS = 64
#: The first version whose clusters can ask for a token.
_OLDEST = (2, 52)
_PATIENCE = 20.0  # seconds until a cluster must have answered
#: What a client of HTTP/2 says first, with empty settings, and the kind of frame with which it is answered.
_GREETING, _SETTINGS = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]), b"\x04"


def import_ray() -> Any:
    """Return the package ray; raises an error that names the extra if it is missing or too old."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # the error that is raised tells them
    try:
        import ray

        ray.__version__  # noqa: B018  (a folder of this name can be imported, too)
    except (ImportError, AttributeError):
        raise MissingDependencyError("ray", "cluster") from None
    found = tuple(int(x) for x in re.findall(r"\d+", ray.__version__)[:2])
    if found < _OLDEST:
        raise InputError(
            f"ray {ray.__version__} is too old, as its clusters run code of anyone: pip install "
            "'kernelne[cluster]'"
        )
    return ray


class _Refs(Sequence[NDArray[np.float32]]):
    """A table whose parts are objects of the cluster."""

    def __init__(self, refs: list[Any], ray: Any) -> None:
        self.refs, self._ray = refs, ray

    def __len__(self) -> int:
        return len(self.refs)

    def __getitem__(self, i: Any) -> Any:
        return self._ray.get(self.refs[i])


class OnRay:
    """The executor of a cluster; `address` as in KernelNE."""

    def __init__(self, address: str | None) -> None:
        self.ray = import_ray()
        if not self.ray.is_initialized():
            _connect(self.ray, address or "local")
        _check_machines(self.ray)

    def _alive(self) -> list[dict[str, Any]]:
        return [node for node in self.ray.nodes() if node["Alive"]]

    def n_parts(self) -> int:
        """Two parts for each worker: while a part is trained, the next one comes."""
        return 2 * max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def told(self) -> str:
        nodes, workers = len(self._alive()), int(self.ray.cluster_resources().get("CPU", 1))
        return f"a Ray cluster: machines {nodes}, workers {workers}"

    def _homes(self, n_parts: int) -> list[Any]:
        """Return the machine for each center part, if it is there: as many parts as it has workers.

        Neighbouring parts are at one machine. A context part then stays there for several sub-episodes, and
        goes round all machines once in an episode.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        alive = sorted(self._alive(), key=lambda node: str(node["NodeID"]))
        slots = [node["NodeID"] for node in alive for _ in range(int(node["Resources"].get("CPU", 0)))]
        if not slots:
            return ["DEFAULT"] * n_parts
        found = (slots[i * len(slots) // n_parts] for i in range(n_parts))
        return [NodeAffinitySchedulingStrategy(node, soft=True) for node in found]

    def adopt(self, parts: Iterable[NDArray[np.float32]]) -> Table:
        if isinstance(parts, _Refs):
            return parts
        return _Refs([self.ray.put(np.ascontiguousarray(part)) for part in parts], self.ray)

    def room(self, shape: tuple[int, int]) -> NDArray[np.float32]:
        return np.empty(shape, np.float32)

    @contextmanager
    def training(self, task: Task, state: TrainingState) -> Iterator[Train]:
        ray, config = self.ray, task.config
        if own_key(name for name, _ in config.kernels) is not None:
            raise ParameterError("kernels", config.kernels, "a cluster only knows those that are built in")
        # Objects that are put need nothing to be made anew from: what comes before is forgotten.
        for table in (state.center, state.context):
            table.refs = [ray.put(ray.get(ref)) for ref in table.refs]
        once, n_parts = {"num_cpus": 1, "max_retries": RETRIES}, task.schedule.n_parts
        find = ray.remote(_find).options(**once, num_returns=n_parts)
        train_one = ray.remote(_train)
        finder, settings = ray.put(task.find), ray.put(config)
        noise = [ray.put(each) for each in task.noise]
        pairs: dict[int, list[list[Any]]] = {}
        n_machines = len(self._alive())

        def pairs_of(sub: SubEpisode) -> list[list[Any]]:
            """Return the objects with the pairs of an episode, a list for each task that finds some."""
            if sub.episode not in pairs:
                pairs.clear()
                (first, last), n_shards = sub.walks, min(n_parts, _MOST_SHARDS)
                ends = [first + (last - first) * k // n_shards for k in range(n_shards + 1)]
                shards = [find.remote(finder, *ends[k : k + 2]) for k in range(n_shards)]
                # With one part a task returns its object, not a list of one.
                pairs[sub.episode] = [shard if n_parts > 1 else [shard] for shard in shards]
            return pairs[sub.episode]

        def train(together: Round, coefficients: NDArray[np.float64]) -> list[Trained]:
            nonlocal n_machines
            begun, where = [], self._homes(n_parts)
            for sub in together:  # a block waits for those before it that share a part with it
                shards = pairs_of(sub)
                for block in sub.blocks:
                    i, j = block.center, block.context
                    given = settings, coefficients, noise[j], state.center.refs[i], state.context.refs[j]
                    here = train_one.options(**once, num_returns=3, scheduling_strategy=where[i])
                    center, context, result = here.remote(block, *given, *(shard[i] for shard in shards))
                    state.center.refs[i], state.context.refs[j] = center, context
                    begun.append((sub, block, result))
            trained = []
            for sub, block, result in begun:
                try:
                    trained.append(Trained(*ray.get(result)))
                except ray.exceptions.RayError as error:
                    raise _failure(block, sub, error) from error
            if (left := len(self._alive())) < n_machines:
                warn(f"machines lost: {n_machines - left}; {left} are left, and go on with their blocks")
            n_machines = left
            return trained

        yield train


def _find(find: Finder, first: int, last: int) -> Any:
    """Task: return the pairs of some walks, one object for each part of their centers."""
    pairs, starts = find_all(find, first, last)
    n_parts = find.bounds.size - 1
    made = []
    for i in range(n_parts):
        own = starts[i * n_parts : (i + 1) * n_parts + 1]
        made.append((*(column[own[0] : own[-1]] for column in pairs), own - own[0]))
    return made if n_parts > 1 else made[0]


def _train(
    block: Block,
    config: TrainingConfig,
    coefficients: NDArray[np.float64],
    noise: AliasTable,
    center: NDArray[np.float32],
    context: NDArray[np.float32],
    *shards: Any,
) -> Any:
    """Task: return both parts after the block, and what else it leaves. Arguments are read-only."""
    columns = [
        np.concatenate([shard[k][shard[2][block.context] : shard[2][block.context + 1]] for shard in shards])
        for k in range(2)
    ]
    center, context = center.copy(), context.copy()
    own_noise = AliasTable(noise.keep.copy(), noise.other.copy())
    trained = train_block(block, config, coefficients, Pairs(*columns), own_noise, center, context)
    return center, context, tuple(trained)


def _failure(block: Block, sub: SubEpisode, error: Exception) -> KernelneError:
    cause = str(getattr(error, "cause", None) or error).strip().partition("\n")[0] or type(error).__name__
    return KernelneError(
        f"the block of center part {block.center} and context part {block.context} in episode {sub.episode} "
        f"failed, after {RETRIES} more attempts if its workers were lost: {cause}"
    )


def _connect(ray: Any, address: str) -> None:
    """Connect to a cluster, or start one on this machine; raises InputError if there is none."""
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address == "local":
        ray.init(
            address="local", num_cpus=available_threads(), include_dashboard=False,
            _node_ip_address="127.0.0.1", **quiet,
        )  # fmt: skip
        return
    if address != "auto":
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if address.startswith("ray://") or not host or not port.isdecimal():
            raise ParameterError("address", address, "must be local, auto or HOST:PORT")
        try:
            _greet(host, int(port))
        except OSError as error:
            told = error.strerror or str(error) or type(error).__name__
            raise InputError(f"address={address!r}: no Ray cluster answers there: {told}") from None
    os.environ.setdefault("RAY_gcs_rpc_server_connect_timeout_s", str(int(_PATIENCE)))
    os.environ.setdefault("RAY_gcs_server_request_timeout_seconds", str(int(_PATIENCE)))
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, TimeoutError, ValueError, ray.exceptions.RayError) as error:
        told = str(error).strip().partition("\n")[0]
        raise InputError(f"address={address!r}: no Ray cluster answers there: {told}") from None


def _greet(host: str, port: int) -> None:
    """Raise OSError unless a server of gRPC answers; Ray itself would wait for minutes."""
    with socket.create_connection((host, port), _PATIENCE) as probe:
        if os.environ.get("RAY_USE_TLS", "0") == "0":
            probe.sendall(_GREETING)
            if probe.recv(9)[3:4] != _SETTINGS:
                raise OSError("what answers is no Ray cluster")


def _is_here(host: str) -> bool:
    """Whether an address is one of this machine: only these can be bound to."""
    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def _own() -> tuple[str, bool]:
    """Task: return version and hash of the code that blocks run, and whether a token is asked for."""
    from ray._private.authentication.authentication_utils import is_token_auth_enabled

    version = f"{__version__} ({source_digest('kernelne.training.parts.block')[:8]})"
    return version, bool(is_token_auth_enabled())


def _check_machines(ray: Any) -> None:
    """Raise InputError if a machine has another kernelne, or is not this one and asks for no token."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ask, alive = ray.remote(_own), [node for node in ray.nodes() if node["Alive"]]
    asked = [
        ask.options(
            num_cpus=0,
            max_retries=1,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        ).remote()
        for node in alive
    ]
    mine, _ = _own()
    for node, answer in zip(alive, asked, strict=True):
        host = node["NodeManagerAddress"]
        try:
            found, has_token = ray.get(answer, timeout=10 * _PATIENCE)
        except ray.exceptions.RayError as error:
            told = str(getattr(error, "cause", None) or error).strip().partition("\n")[0]
            raise InputError(f"machine {host} of the cluster cannot run kernelne: {told}") from None
        if not has_token and not _is_here(host):
            raise InputError(
                f"the Ray cluster has another machine, {host}, and asks for no token: whoever reaches it can "
                "run code there. Start it with RAY_AUTH_MODE=token, and set this and the token here: see "
                "docs/scale.md"
            )
        if found != mine:
            raise InputError(
                f"machine {host} of the cluster has kernelne {found}, not {mine}: install the same version "
                "everywhere"
            )
