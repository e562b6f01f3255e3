"""Copies of modules whose compiled functions contain other kernels."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType


def variant(module: str, key: str | None) -> ModuleType:
    """Return a module, or if there is a key a copy of it whose compiled functions are other ones.

    The copy is executed anew from the same file, under the module's name, a plus sign and the key. What it
    makes of them is up to the module; its compiled code is kept on disk apart from others.
    """
    if key is None:
        return import_module(module)
    name = f"{module}+{key}"
    if name not in sys.modules:
        spec = spec_from_file_location(name, import_module(module).__file__)
        assert spec is not None
        assert spec.loader is not None
        made = module_from_spec(spec)
        sys.modules[name] = made
        try:
            spec.loader.exec_module(made)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
