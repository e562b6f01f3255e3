"""Find or fetch the canonical files of the paper's graphs; a file with a wrong hash is never used."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelne.datasets.convert import LARGEST
from kernelne.datasets.registry import REGISTRY, Entry
from kernelne.errors import (
    FileFormatError,
    InputError,
    KernelneError,
    MissingDependencyError,
    OutputError,
    ParameterError,
)
from kernelne.io.files import atomic_output, check_input, temporary_folder

DATA, CACHE = "KERNELNE_DATA", "KERNELNE_CACHE"
_TIMEOUT = 60  # seconds without an answer


def data_folder() -> Path | None:
    """Return the folder given by the environment variable KERNELNE_DATA, or None."""
    if not (given := os.environ.get(DATA)):
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise ParameterError(DATA, given, "there is no such folder; correct the variable, or unset it")
    return folder


def cache_folder() -> Path:
    """Return the folder for fetched files: KERNELNE_CACHE, or else the user's cache folder."""
    if given := os.environ.get(CACHE):
        return Path(given).expanduser()
    return Path(_pooch().os_cache("kernelne"))


def find(name: str) -> tuple[str, dict[str, Path]] | None:
    """Return where a graph is, "data folder" or "cache", and its files by part, unopened; None if nowhere."""
    folder = data_folder()
    if folder is not None and (files := _files(folder, name)):
        return "data folder", files
    try:
        folder = cache_folder()
    except MissingDependencyError:
        return None  # nothing has been fetched
    return ("cache", files) if (files := _files(folder, name)) else None


def read_verified(path: Path, sha256: str) -> bytes:
    """Return the text of a canonical file; raises FileFormatError if it does not have this hash."""
    check_input(path)
    # The user should not be told to delete files of their own data folder.
    ours = (folder := data_folder()) is None or folder != path.parent
    remedy = "delete it" if ours else f"{DATA} names its folder: correct the file, or unset {DATA}"
    try:
        with gzip.open(path) as file:
            text = file.read(LARGEST + 1)  # limited: a few bytes may unpack to more than the memory
    except (OSError, EOFError, zlib.error) as error:
        raise FileFormatError(path, f"corrupt or truncated gzip data ({error}): {remedy}") from None
    if len(text) > LARGEST:
        raise FileFormatError(path, f"unpacks to more than {LARGEST >> 20} MiB: not this graph; {remedy}")
    if (found := hashlib.sha256(text).hexdigest()) != sha256:
        raise FileFormatError(
            path, f"its text has sha256 {found}, should have {sha256}: not this graph, or damaged; {remedy}"
        )
    return text


def fetch(name: str, source: str | os.PathLike[str] | None = None) -> dict[str, Path]:
    """Put a graph into the cache, from the file `source` or else by download; returns its files."""
    entry = REGISTRY[name]
    folder = cache_folder()
    if source is not None:
        check_input(source)
        texts = _convert(entry, Path(source), os.fspath(source))
    elif not entry.fetched:
        raise InputError(
            f"{name} cannot be fetched: its original is {entry.source}; pass that file as source= to "
            f"fetch_dataset (kernelne datasets fetch {name} --source FILE), or put "
            f"{', '.join(_names(name, entry))} into the folder that {DATA} names"
        )
    else:
        with temporary_folder() as temporary:
            path = Path(temporary) / entry.source.rpartition("/")[2]
            _download(entry.source, path)
            texts = _convert(entry, path, entry.source)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be created: {error.strerror}") from error
    files = {part: folder / file for part, file in zip(entry.sha256, _names(name, entry), strict=True)}
    for part, path in files.items():
        with atomic_output(path, overwrite=True) as temporary_path:
            temporary_path.write_bytes(gzip.compress(texts[part], mtime=0))
    return files


def _names(name: str, entry: Entry) -> list[str]:
    return [f"{name}.{part}.gz" for part in entry.sha256]


def _files(folder: Path, name: str) -> dict[str, Path] | None:
    """Return the files of a graph if the folder has all of them, else None."""
    entry = REGISTRY[name]
    files = {part: folder / file for part, file in zip(entry.sha256, _names(name, entry), strict=True)}
    return files if all(path.exists() for path in files.values()) else None


def _pooch() -> Any:
    try:
        import pooch
    except ImportError:
        raise MissingDependencyError("pooch", "data") from None
    return pooch


def _download(address: str, path: Path) -> None:
    # With compressed transfer the content would not match the suffix of the file.
    headers = {"Accept-Encoding": "identity"}
    downloader = _pooch().HTTPDownloader(chunk_size=1 << 16, timeout=_TIMEOUT, headers=headers)
    try:
        downloader(address, str(path), None)
    except OSError as error:  # base class of all errors of requests
        answer = getattr(error, "response", None)
        reason = type(error).__name__ if answer is None else f"{answer.status_code} {answer.reason}"
        raise KernelneError(
            f"{address}: cannot be downloaded ({reason}); nothing was kept. If you have the file, pass it as "
            "source= to fetch_dataset (kernelne datasets fetch NAME --source FILE); if you have the "
            f"canonical files, set {DATA} to their folder"
        ) from error


def _convert(entry: Entry, path: Path, shown: str) -> Mapping[str, bytes]:
    """Return the verified texts of an original file."""
    try:
        texts = entry.convert(path)
    except Exception as error:  # on unexpected bytes a parser may raise anything
        reason = str(error).replace(str(path), path.name) or type(error).__name__
        raise FileFormatError(
            shown, f"is not the original file of this graph, or damaged ({reason}); nothing was kept"
        ) from error
    found = {part: hashlib.sha256(text).hexdigest() for part, text in texts.items()}
    for part in sorted({*found, *entry.sha256}):
        if found.get(part) != entry.sha256.get(part):
            raise FileFormatError(
                shown,
                f"the {part} made of it have sha256 {found.get(part)}, should have {entry.sha256.get(part)}: "
                "the file has changed, or is not the original file of this graph; nothing was kept",
            )
    return texts
