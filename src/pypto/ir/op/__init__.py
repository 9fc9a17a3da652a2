"""Operators: their declarations, and builders that make calls of them.

``from pypto.ir.op import tensor, tile, array`` (also spelled ``tensor_ops`` and so on).
"""

from __future__ import annotations

from pypto.ir.op import array_ops, tensor_ops, tile_ops
from pypto.ir.op import array_ops as array
from pypto.ir.op import tensor_ops as tensor
from pypto.ir.op import tile_ops as tile

__all__ = ["array", "array_ops", "tensor", "tensor_ops", "tile", "tile_ops"]
