"""Training on a Ray cluster: the bits of one process, whatever is killed, and clusters that are refused.

The cluster has two machines, both of them this one, and ends with the tests.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from kernelne import InputError, MKernelNE, ParameterError, load_dataset
from kernelne.errors import KernelneError
from kernelne.training.parts import cluster

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'kernelne[cluster]'")

SETTINGS = {
    "dim": 32, "walks_per_node": 12, "random_state": 7, "n_threads": 2, "parts": 4, "progress": False,
    "kernels": (("gaussian", 1.0), ("schoenberg", 1.5)),
}  # fmt: skip

# Ray opens files and sockets that it closes late.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@cache
def planted():
    return load_dataset("planted:n=600,k=3,p_in=0.06,p_out=0.01,seed=1").graph


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Machines:
    """Two machines of a cluster on this one's loopback address."""

    def __init__(self, folder: Path) -> None:
        self.port = _free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.environment = os.environ | {
            "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_IMPORT_WARNING": "1",
        }  # fmt: skip
        self.folder = folder
        self.nodes: list[subprocess.Popen[bytes]] = []
        self.add("--head", f"--port={self.port}", "--include-dashboard=false", f"--temp-dir={folder}")
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            time.sleep(0.5)
        self.add(f"--address={self.address}")

    def add(self, *options: str) -> None:
        command = [
            sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=2",
            "--object-store-memory=200000000", "--node-ip-address=127.0.0.1", *options,
        ]  # fmt: skip
        output = open(self.folder / f"start-{len(self.nodes)}.log", "wb")  # noqa: SIM115
        self.nodes.append(
            subprocess.Popen(
                command, env=self.environment, stdout=output, stderr=output, start_new_session=True
            )
        )

    def end(self, node: int) -> None:
        """Kill a machine: all processes that it has started."""
        for process in [*_children(self.nodes[node].pid), self.nodes[node].pid]:
            _kill(process)
        self.nodes[node].wait()


def _children(process: int) -> list[int]:
    """All processes that a process has started, and those that these have."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *_children(child)]
    return found


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    # The names of Ray's sockets have at most 107 characters.
    folder = Path("/tmp", f"kne-ray-{os.getpid()}")
    folder.mkdir(mode=0o700)
    before = {name: os.environ.get(name) for name in ("RAY_AUTH_MODE",)}
    os.environ["RAY_AUTH_MODE"] = "disabled"
    made = Machines(folder)
    deadline = time.monotonic() + 120
    try:
        ray.init(address=made.address, log_to_driver=False, configure_logging=False)
        while sum(node["Alive"] for node in ray.nodes()) < 2 and time.monotonic() < deadline:
            time.sleep(0.5)
        yield made
    finally:
        ray.shutdown()
        for node in range(len(made.nodes)):
            made.end(node)
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        subprocess.run(["rm", "-rf", str(folder)], check=False)


@pytest.fixture(scope="module")
def expected():
    return MKernelNE(**SETTINGS, engine="memory").fit(planted())


def _same(one, other):
    for name in ("center_", "context_", "coefficients_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def _workers(machines):
    """Processes that run tasks, or wait for them, on all machines."""
    found = []
    for process in (child for node in machines.nodes for child in _children(node.pid)):
        with suppress(OSError):  # it may have ended
            if Path(f"/proc/{process}/cmdline").read_bytes().startswith((b"ray::_", b"ray::IDLE")):
                found.append(process)
    return found


def _on_cluster(**changes):
    return MKernelNE(**SETTINGS | changes, engine="ray")


def test_a_cluster_gives_the_bits_of_one_process(machines, expected):
    assert sum(node["Alive"] for node in ray.nodes()) == 2
    _same(_on_cluster().fit(planted()), expected)
    plan = _on_cluster(parts=None).plan(planted())
    assert plan.parts == 8
    assert plan.told == "8 parts on a Ray cluster: machines 2, workers 4"


def test_workers_may_be_killed(machines, expected):
    killed = []

    def kill(done, total, loss):
        busy = _workers(machines)
        if len(killed) < 2 and done > (len(killed) + 1) * 0.2 * total and busy:
            killed.append(busy[0])
            _kill(busy[0])

    _same(_on_cluster(progress=kill).fit(planted()), expected)
    assert len(killed) == 2


def test_a_run_goes_on_after_its_driver_was_killed(machines, expected, tmp_path):
    code = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import ray
ray.init(address=sys.argv[2], log_to_driver=False, configure_logging=False)
from test_cluster import SETTINGS, planted
from kernelne import MKernelNE
def die(done, total, loss):
    if done > 0.5 * total:
        os.kill(os.getpid(), signal.SIGKILL)
kept = {"checkpoint": sys.argv[3], "checkpoint_every": 1e-9}
MKernelNE(**SETTINGS | {"progress": die}, **kept, engine="ray").fit(planted())
"""
    given = [str(Path(__file__).parent), machines.address, str(tmp_path / "run")]
    ended = subprocess.run([sys.executable, "-c", code, *given], env=machines.environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len(list((tmp_path / "run").glob("walk-*.part"))) == 8
    seen = []
    model = _on_cluster(
        checkpoint=tmp_path / "run", progress=lambda done, total, _: seen.append(done / total)
    )
    _same(model.fit(planted()), expected)
    assert seen[0] > 0.4


def test_a_block_that_always_fails_is_named(machines, monkeypatch):
    def fail(block, *given):
        if block.number == 9:
            os._exit(1)
        return cluster._train(block, *given)

    monkeypatch.setattr(cluster, "RETRIES", 1)
    original = ray.remote

    def remote(function):
        return original(fail if function is cluster._train else function)

    monkeypatch.setattr(ray, "remote", remote)
    with pytest.raises(KernelneError, match="block of center part 1 and context part 3 in episode 0 failed"):
        _on_cluster().fit(planted())


def test_another_version_is_refused(machines, monkeypatch):
    monkeypatch.setattr(cluster, "__version__", "0.0.1")
    with pytest.raises(InputError, match=r"machine \S+ of the cluster has kernelne .*, not 0\.0\.1"):
        _on_cluster().fit(planted())


def test_other_machines_must_ask_for_a_token(machines, monkeypatch):
    monkeypatch.setattr(cluster, "_is_here", lambda host: False)
    with pytest.raises(InputError, match=r"has another machine, \S+, and asks for no token"):
        _on_cluster().fit(planted())


def test_kernels_of_ones_own_are_refused(machines, own_kernel):
    with pytest.raises(ParameterError, match="a cluster only knows those that are built in"):
        _on_cluster(kernels=((own_kernel, 1.0),)).fit(planted())


def test_a_whole_machine_may_be_lost(machines, expected):
    """The last test with a cluster: it loses one of its two machines."""
    lost = []

    def end(done, total, loss):
        if done > 0.3 * total and not lost:
            machines.end(1)
            lost.append(done)

    with pytest.warns(UserWarning, match="machines lost: 1"):
        _same(_on_cluster(progress=end).fit(planted()), expected)
    assert lost


@pytest.mark.parametrize("silent", [False, True])
def test_an_address_where_nobody_answers(silent):
    """A closed port, and one that accepts but says nothing."""
    code = """
import sys, time
from kernelne import KernelNE, InputError
start = time.monotonic()
try:
    KernelNE(engine="ray", address="127.0.0.1:" + sys.argv[1], dim=4).fit([(0, 1)])
except InputError as error:
    print(error)
    print(time.monotonic() - start < 30)
"""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        if silent:
            listening.listen()
        told = subprocess.run(
            [sys.executable, "-c", code, str(port)], capture_output=True, text=True, check=False,
            env=os.environ | {"RAY_AUTH_MODE": "disabled"},
        ).stdout.splitlines()  # fmt: skip
    assert told[-2:][0].startswith(f"address='127.0.0.1:{port}': no Ray cluster answers there")
    assert told[-1] == "True"


def test_addresses():
    for address in ("nowhere", "ray://127.0.0.1:1", ":1"):
        with pytest.raises(ParameterError, match="must be local, auto or HOST:PORT"):
            cluster._connect(ray, address)
