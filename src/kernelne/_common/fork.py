"""Processes made by fork: they have their parent's state, but of its threads only the one that forked."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any


class _State:
    forked = False


def _note() -> None:
    _State.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note)


def fork_safe_openmp() -> AbstractContextManager[Any]:
    """Use one thread of OpenMP within the block if this process was made by fork.

    GNU's OpenMP, with which scikit-learn is built, would wait for the threads of the parent for ever.
    """
    if not _State.forked:
        return nullcontext()
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    limits: AbstractContextManager[Any] = threadpool_limits(1, user_api="openmp")
    return limits
