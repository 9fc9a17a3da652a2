"""Builders of ``pld.*`` calls: ``pypto.ir.op.distributed.{tensor_ops, tile_ops, system_ops}``."""

from __future__ import annotations

from pypto.ir.op.distributed import system_ops, tensor_ops, tile_ops

__all__ = ["system_ops", "tensor_ops", "tile_ops"]
