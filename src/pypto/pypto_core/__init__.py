"""Import paths of the public API's lower layer; everything here is a re-export."""

from __future__ import annotations

import builtins
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
from pypto.core.logging import clear_thread_log_level as _clear_thread_log_level
from pypto.core.logging import set_thread_log_level as _set_thread_log_level


class ValueError(builtins.ValueError):
    """Exists for its import path; what is raised is the builtin class itself. So for the five below."""


class TypeError(builtins.TypeError):
    pass


class RuntimeError(builtins.RuntimeError):
    pass


class NotImplementedError(builtins.NotImplementedError):
    pass


class IndexError(builtins.IndexError):
    pass


class AssertionError(builtins.AssertionError):
    pass


__all__ = [
    "AssertionError",
    "DataType",
    "Error",
    "IndexError",
    "InternalError",
    "LogLevel",
    "NotImplementedError",
    "RuntimeError",
    "TypeError",
    "ValueError",
    "_clear_thread_log_level",
    "_set_thread_log_level",
    "check",
    "get_log_level",
    "internal_check",
    "internal_check_span",
    "log_debug",
    "log_error",
    "log_event",
    "log_fatal",
    "log_info",
    "log_warn",
    "set_log_level",
]

_MODULES = ("ir", "passes", "arith", "codegen", "backend", "testing")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'pypto.pypto_core' has no attribute '{name}'")
    return importlib.import_module(f"{__name__}.{name}")
