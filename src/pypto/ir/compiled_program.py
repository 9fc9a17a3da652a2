"""`CompiledProgram` and what tools ask about call signatures, found on first use in the runtime."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "CompiledProgram": "pypto.runtime.compiled_program",
    "OrchestrationProgram": "pypto.runtime.compiled_program",
    "ParamInfo": "pypto.runtime.metadata",
    "extract_param_infos": "pypto.runtime.metadata",
    "_to_runtime_shape": "pypto.runtime.compiled_program",
    "_to_torch_dtype": "pypto.runtime.compiled_program",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pypto.ir.compiled_program' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)
