"""Packages whose names are loaded on first use.

Importing a submodule binds the module to its name in the package. Where a function has the same name as the
module that defines it (`passes.simplify`, `ir.compile`), that would hide the function; a lazy package ignores
the binding and keeps giving the function.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


class LazyModule(ModuleType):
    """A package with names that are loaded on first use."""

    _lazy_sources: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        source = self._lazy_sources.get(name)
        if source is None:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        module = importlib.import_module(source)
        value = getattr(module, name, module)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and name in self._lazy_sources and hasattr(value, name):
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self._lazy_sources})


def make_lazy(package: str, sources: Mapping[str, str]) -> None:
    """Give `package` the names in `sources`: each is what the module named there calls so, or that module."""
    module = sys.modules[package]
    module.__dict__["_lazy_sources"] = sources
    module.__class__ = LazyModule
