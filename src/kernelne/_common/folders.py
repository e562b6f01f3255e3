"""The folder of this user for what is kept between runs, and a key that only this user has."""

from __future__ import annotations

import hmac
import os
import secrets
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

_BYTES = 32


def user_folder() -> Path:
    """Return KERNELNE_CACHE, or else the folder `kernelne` below the user's cache folder."""
    if kept := os.environ.get("KERNELNE_CACHE"):
        return Path(kept)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "kernelne"


def signature(content: bytes) -> str:
    """Return a code of the content that only this user, on this machine, can make."""
    return hmac.new(_key(user_folder() / "key"), content, "sha256").hexdigest()


@cache
def _key(path: Path) -> bytes:
    """Read the key, made at the first call; where it cannot be kept, it is one of this process."""
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with open(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_BYTES))
        status = path.stat()
        private = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
        if private and len(key := path.read_bytes()) == _BYTES:
            return key
    return secrets.token_bytes(_BYTES)
