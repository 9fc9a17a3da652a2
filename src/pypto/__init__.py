"""pypto: a compiler and runtime for tile programs that runs on an ordinary CPU."""

from __future__ import annotations

import importlib
from typing import Any

from pypto.core.dtype import DataType
from pypto.core.errors import Error, InternalError, check, internal_check, internal_check_span
from pypto.core.logging import (
    LogLevel,
    get_log_level,
    log_debug,
    log_error,
    log_event,
    log_fatal,
    log_info,
    log_warn,
    set_log_level,
)  # fmt: skip

__version__ = "0.1.0"

_MODULES = ("codegen", "ir", "language", "passes", "compile_profiling", "runtime", "testing")
_OTHER_MODULES = ("arith", "backend", "jit", "pypto_core", "tools")
_DTYPES = (
    "BOOL", "INT4", "INT8", "INT16", "INT32", "INT64", "UINT4", "UINT8", "UINT16", "UINT32", "UINT64", "FP4",
    "FP8E4M3FN", "FP8E5M2", "FP8E8M0", "FP16", "FP32", "BF16", "HF4", "HF8", "INDEX",
)  # fmt: skip
for _name in _DTYPES:
    globals()[f"DT_{_name}"] = getattr(DataType, _name)

__all__ = [
    *_MODULES,
    "Error",
    "InternalError",
    "LogLevel",
    "set_log_level",
    "get_log_level",
    "log_debug",
    "log_info",
    "log_warn",
    "log_error",
    "log_fatal",
    "log_event",
    "check",
    "internal_check",
    "internal_check_span",
    "DataType",
    *(f"DT_{name}" for name in _DTYPES),
]


def __getattr__(name: str) -> Any:
    """Load a part of the package on first use."""
    if name in _MODULES or name in _OTHER_MODULES:
        return importlib.import_module(f"pypto.{name}")
    raise AttributeError(f"module 'pypto' has no attribute '{name}'")
