"""Compile-once store, task scheduler, callables: what turns generated C++ into results.

Importing this package needs no compiler and starts nothing; parts are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "CompiledProgram": "compiled_program",
    "RunConfig": "run_config",
    "RunResult": "runner",
    "compile_program": "compile",
    "compiler_runs": "build",
    "execute_compiled": "runner",
    "run": "runner",
    "CompileError": "build",
    "StoreError": "store",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'pypto.runtime' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"pypto.runtime.{home}"), name)
    globals()[name] = value
    return value
