"""Loads every operator declaration into the registry."""

from __future__ import annotations

from pypto.ir.op import tensor_declarations, tile_declarations

__all__ = ["tensor_declarations", "tile_declarations"]
