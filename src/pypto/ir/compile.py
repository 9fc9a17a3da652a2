"""`ir.compile`, found on first use: it belongs to the layer above code generation."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("compile", "compile_program"):
        return getattr(importlib.import_module("pypto.runtime.compile"), name)
    raise AttributeError(f"module 'pypto.ir.compile' has no attribute '{name}'")
