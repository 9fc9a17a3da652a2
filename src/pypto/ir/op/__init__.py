"""Operators: their declarations, and builders that make calls of them.

``from pypto.ir.op import tensor, tile, array, system, prefetch`` (also spelled ``tensor_ops`` and so on)
and ``pypto.ir.op.distributed``. Builders load on first use: the compiler itself mostly needs the
declarations only.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.ir.op import array_ops, distributed, prefetch_ops, system_ops, tensor_ops, tile_ops
    from pypto.ir.op import array_ops as array
    from pypto.ir.op import prefetch_ops as prefetch
    from pypto.ir.op import system_ops as system
    from pypto.ir.op import tensor_ops as tensor
    from pypto.ir.op import tile_ops as tile

_LEVELS = ("array", "prefetch", "system", "tensor", "tile")


def __getattr__(name: str) -> Any:
    if name in _LEVELS:
        module = importlib.import_module(f"pypto.ir.op.{name}_ops")
        globals()[name] = module
        return module
    if name == "distributed" or (name.endswith("_ops") and name[: -len("_ops")] in _LEVELS):
        return importlib.import_module(f"pypto.ir.op.{name}")
    raise AttributeError(f"module 'pypto.ir.op' has no attribute '{name}'")


__all__ = [
    "array", "array_ops", "distributed", "prefetch", "prefetch_ops", "system", "system_ops", "tensor",
    "tensor_ops", "tile", "tile_ops",
]  # fmt: skip
