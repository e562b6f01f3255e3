"""The memory that this process may use: of the machine, of its control group, of its address space."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from kernelne.errors import KernelneError, ParameterError

#: The environment variable that sets the memory by hand.
MEMORY = "KERNELNE_MEMORY"
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_GROUPS = "/sys/fs/cgroup"
#: Address space of the libraries and of compiling, and what a thread of OpenBLAS reserves when loaded, twice:
#: NumPy and SciPy have one each.
_LIBRARIES, _PER_THREAD = 5 * 2**28, 80 * 2**20


def available_bytes() -> int | None:
    """Memory available without swapping, in bytes; None if the system does not report it.

    The least of what the machine has left, of what its control groups (a container) allow and of what is left
    of the address space (ulimit -v). KERNELNE_MEMORY sets it by hand: 8GiB, 500MB, or unlimited.
    """
    if given := os.environ.get(MEMORY):
        return parse_size(MEMORY, given)
    found = [_of_machine(), *_of_groups(), _of_address_space()]
    return min((max(size, 0) for size in found if size is not None), default=None)


def parse_size(name: str, given: object) -> int | None:
    """Return a size such as 8GiB in bytes, None for "unlimited"; raises a ParameterError for `name`."""
    text = str(given).strip().lower()
    if text in ("unlimited", "none"):
        return None
    found = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([kmgt]?)i?b?", text)
    if found is None:
        raise ParameterError(name, given, "must be a size such as 8GiB or 500MB, or unlimited")
    return int(float(found[1]) * _UNITS[found[2]])


def resident_bytes() -> int:
    """Memory that this process uses now, in bytes; 0 if the system does not report it."""
    pages = _read("/proc/self/statm").split()
    return int(pages[1]) * _page_size() if pages else 0


def _page_size() -> int:
    return os.sysconf("SC_PAGE_SIZE")


def _of_machine() -> int | None:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _of_groups() -> list[int]:
    """What each control group of this process leaves, with those that contain it (versions 1 and 2)."""
    left = []
    for line in _read("/proc/self/cgroup").splitlines():
        _, kinds, group = line.split(":", 2)
        if kinds == "":
            root, most, used, cached = _GROUPS, "memory.max", "memory.current", "inactive_file "
        elif "memory" in kinds.split(","):
            root, most, used = f"{_GROUPS}/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            cached = "total_inactive_file "
        else:
            continue
        # In a container the path is that of the host, and the folder of the group is the root.
        path = PurePosixPath(root + group)
        for folder in {*[p for p in (path, *path.parents) if p.is_relative_to(root)], PurePosixPath(root)}:
            limit, now = _read(f"{folder}/{most}").strip(), _read(f"{folder}/{used}").strip()
            if not limit.isdecimal() or not now.isdecimal() or int(limit) >= 2**62:
                continue
            # Cached files count as used, but are given up when memory is needed.
            stat = _read(f"{folder}/memory.stat").splitlines()
            kept = next((int(row.split()[1]) for row in stat if row.startswith(cached)), 0)
            left.append(int(limit) - int(now) + kept)
    return left


def _address_space() -> int | None:
    """The limit on the address space (ulimit -v); None if there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _of_address_space() -> int | None:
    """What the limit on the address space leaves."""
    limit, mapped = _address_space(), _read("/proc/self/statm").split()
    return None if limit is None or not mapped else limit - int(mapped[0]) * os.sysconf("SC_PAGE_SIZE")


def fit_libraries() -> None:
    """Make the libraries fit a limit on the address space, before they are loaded.

    OpenBLAS and LLVM end the process if they get no memory. Raises KernelneError if the limit is too small.
    """
    limit = _address_space()
    if limit is None:
        return
    if limit < _LIBRARIES:
        raise KernelneError(
            f"the address space is limited to {gib(limit)} (ulimit -v) and the libraries need "
            f"{gib(_LIBRARIES)}: raise the limit"
        )
    threads = max((limit - _LIBRARIES) // _PER_THREAD, 1)
    if threads < (os.cpu_count() or 1):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", str(threads))


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def gib(size: float) -> str:
    """Return a number of bytes in GiB, for messages."""
    return f"{size / 2**30:.2f} GiB"
