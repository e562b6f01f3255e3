"""The methods that KernelNE is compared with: estimators with the same interface, written from their papers.

Classes are imported on first access.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelne.baselines.deepwalk import DeepWalk
    from kernelne.baselines.gemsec import GEMSEC
    from kernelne.baselines.hope import HOPE
    from kernelne.baselines.line import LINE
    from kernelne.baselines.mnmf import MNMF
    from kernelne.baselines.netmf import NetMF
    from kernelne.baselines.node2vec import Node2Vec
    from kernelne.baselines.prone import ProNE
    from kernelne.baselines.verse import VERSE
    from kernelne.baselines.weighted_mf import WeightedMF

__all__ = [
    "GEMSEC",
    "HOPE",
    "LINE",
    "MNMF",
    "VERSE",
    "DeepWalk",
    "NetMF",
    "Node2Vec",
    "ProNE",
    "WeightedMF",
]

_HOMES = {name: name.lower() for name in __all__} | {"WeightedMF": "weighted_mf"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kernelne.baselines' has no attribute {name!r}")
    return getattr(import_module(f"kernelne.baselines.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
