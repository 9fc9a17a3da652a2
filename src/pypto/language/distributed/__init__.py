"""The `pld` surface: distributed tensors, their enums, and the operators on them.

Operators live in `pypto.language.op.distributed`, in one module per category, and load on first use.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from pypto.ir import AtomicType, CommCtxType, NotifyOp, ReduceOp, WaitCmp
from pypto.language.typing import CommCtx, DistributedTensor

_HOME = "pypto.language.op.distributed"
_CATEGORIES = ("system", "tensor", "tile")
OPERATIONS = (
    "alloc_window_buffer", "get_comm_ctx", "nranks", "rank", "remote_load", "remote_store", "window",
    "world_size",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _CATEGORIES and name not in OPERATIONS:
        raise AttributeError(f"module 'pypto.language.distributed' has no attribute '{name}'")
    if importlib.util.find_spec(_HOME) is None:
        raise AttributeError(f"distributed operations are not supported by this version: pld.{name}")
    if name in _CATEGORIES:
        return importlib.import_module(f"{_HOME}.{name}_ops")
    return getattr(importlib.import_module(_HOME), name)


__all__ = [
    "AtomicType", "CommCtx", "CommCtxType", "DistributedTensor", "NotifyOp", "ReduceOp", "WaitCmp",
    *_CATEGORIES, *OPERATIONS,
]  # fmt: skip
