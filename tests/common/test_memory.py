"""How much memory there is: of the machine, of a container, of the address space, or as the user says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kernelne import KernelNE
from kernelne._common import memory
from kernelne.errors import InputError, ParameterError

GROUP = "/sys/fs/cgroup"
MEMINFO = {"/proc/meminfo": "MemTotal: 90 kB\nMemAvailable:    8000 kB\n"}
SECOND = {"/proc/self/cgroup": "0::/box/inner\n", f"{GROUP}/box/inner/memory.max": "max\n"}
SECOND |= {f"{GROUP}/box/inner/memory.current": "1\n", f"{GROUP}/box/memory.max": "5000\n"}
SECOND |= {f"{GROUP}/box/memory.current": "3000\n", f"{GROUP}/box/memory.stat": "anon 7\ninactive_file 500\n"}
FIRST = {"/proc/self/cgroup": "5:cpu:/\n4:memory:/on/host\n0::/\n"}
FIRST |= {f"{GROUP}/memory/memory.limit_in_bytes": "6000", f"{GROUP}/memory/memory.usage_in_bytes": "4000"}
NO_LIMIT = {"/proc/self/cgroup": "4:memory:/\n", f"{GROUP}/memory/memory.usage_in_bytes": "4000"}
NO_LIMIT |= {f"{GROUP}/memory/memory.limit_in_bytes": str(2**63 - 4096)}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (MEMINFO, 8000 * 1024),
        (MEMINFO | SECOND, 2500),  # an outer group has the limit; cached files are given up
        (MEMINFO | FIRST, 2000),  # in a container the path is the host's
        (MEMINFO | NO_LIMIT, 8000 * 1024),
        ({}, None),
    ],
)
def test_the_least_of_what_is_left(monkeypatch, files, expected):
    monkeypatch.delenv("KERNELNE_MEMORY", raising=False)
    monkeypatch.setattr(memory, "_read", lambda path: files.get(path, ""))
    assert memory.available_bytes() == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [("8GiB", 2**33), ("1.5 g", 3 * 2**29), ("500MB", 500 * 2**20), ("77", 77), ("unlimited", None)],
)
def test_memory_set_by_hand(monkeypatch, given, expected):
    monkeypatch.setenv("KERNELNE_MEMORY", given)
    assert memory.available_bytes() == expected


def test_memory_that_is_no_size(monkeypatch):
    monkeypatch.setenv("KERNELNE_MEMORY", "much")
    with pytest.raises(ParameterError, match=r"^KERNELNE_MEMORY='much': must be a size such as 8GiB"):
        memory.available_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the address space")
def test_a_limit_on_the_address_space_is_seen():
    code = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))\n"
    code += "from kernelne._common.memory import available_bytes\nprint(available_bytes() < 2**33)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "True\n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the address space")
def test_libraries_that_do_not_fit_the_address_space_are_not_loaded(tmp_path):
    """OpenBLAS and LLVM would end the process without a word of ours."""
    (tmp_path / "g.edges").write_text("a b\nb c\n")
    code = "import resource, sys\nresource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9))\n"
    code += "from kernelne.__main__ import main\nsys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "embed", "g.edges", "-o", "out.npz"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == (
        "error: the address space is limited to 0.93 GiB (ulimit -v) and the libraries need 1.25 GiB: "
        "raise the limit\n"
    )


@pytest.mark.parametrize(
    ("limit", "cores", "threads"),
    [(None, 64, None), (2**31, 64, "9"), (2**31, 4, None), (2**33, 64, None), (5 * 2**28, 2, "1")],
)
def test_openblas_gets_as_many_threads_as_fit(monkeypatch, limit, cores, threads):
    monkeypatch.setattr(memory, "_address_space", lambda: limit)
    monkeypatch.setattr(memory.os, "cpu_count", lambda: cores)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "")  # restored after the test
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    memory.fit_libraries()
    assert memory.os.environ.get("OPENBLAS_NUM_THREADS") == threads


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize("suffix", [".csv", ".emb"])
def test_text_is_written_in_little_memory(tmp_path, suffix):
    """The estimate of the memory has nothing for the writing of a file: it may need no more than a little."""
    code = "import sys, numpy as np, kernelne, re\n"
    code += "def peak(): return int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
    code += "one = kernelne.Embedding(np.ones((9, 32), 'f4'), [f'node-{i}' for i in range(9)])\n"
    code += "one.save(sys.argv[1])\n"
    code += "some = kernelne.Embedding(np.random.default_rng(0).random((100_000, 32), 'f4'), "
    code += "[f'node-{i}' for i in range(100_000)])\n"
    code += "before = peak()\nsome.save(sys.argv[1], overwrite=True)\nprint((peak() - before) >> 10)"
    command = [sys.executable, "-c", code, str(tmp_path / f"x{suffix}")]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(result.stdout) < 40  # MiB; the vectors are 12


@pytest.mark.parametrize(
    ("parameters", "words", "not_words"),
    [
        (
            {"walk_length": 1_000_000},
            ["walk_length=1000000", "walk_length=", "or less would fit"],
            ["dim=1 "],
        ),
        ({"dim": 2_000_000_000}, ["dim=2000000000", "dim=", "or less would fit"], ["or walk_length="]),
        ({"shared_negatives": 2_000_000_000}, ["shared_negatives=", "or less would fit"], ["or dim="]),
    ],
)
def test_a_run_that_does_not_fit_names_what_would(monkeypatch, parameters, words, not_words):
    monkeypatch.setenv("KERNELNE_MEMORY", "1GiB")
    with pytest.raises(InputError) as caught:
        KernelNE(n_threads=1, **parameters).check([(0, 1), (1, 2)])
    told = str(caught.value)
    assert all(word in told for word in words), told
    assert not any(word in told.partition(" are free: ")[2] for word in not_words), told


def test_what_is_said_to_fit_fits(monkeypatch):
    monkeypatch.setenv("KERNELNE_MEMORY", "100MiB")
    with pytest.raises(InputError) as caught:
        KernelNE(n_threads=1, walk_length=10**6).check([(0, 1)])
    most = int(str(caught.value).rpartition("walk_length=")[2].split()[0])
    KernelNE(n_threads=1, walk_length=most).check([(0, 1)])
    with pytest.raises(InputError):
        KernelNE(n_threads=1, walk_length=most + 1).check([(0, 1)])


def test_a_count_beyond_the_largest_names_the_largest():
    with pytest.raises(
        ParameterError, match=r"^dim=1000000000000: must be a whole number, at most 2\*\*31 - 1"
    ):
        KernelNE(dim=10**12).config()
