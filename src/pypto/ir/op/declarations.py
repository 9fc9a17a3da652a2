"""Loads every operator declaration into the registry."""

from __future__ import annotations

from pypto.ir.op import distributed_declarations, system_declarations, tensor_declarations, tile_declarations

__all__ = ["distributed_declarations", "system_declarations", "tensor_declarations", "tile_declarations"]
