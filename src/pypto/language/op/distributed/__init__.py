"""Operators of ``pld``: the namespaces ``system``, ``tensor``, ``tile`` and the short forms ``pld.<op>``."""

from __future__ import annotations

from typing import Any

from pypto.language.op.distributed import system_ops, tensor_ops, tile_ops
from pypto.language.op.distributed.system_ops import get_comm_ctx, nranks, rank, world_size
from pypto.language.op.distributed.tensor_ops import alloc_window_buffer, window
from pypto.language.op.distributed.tile_ops import remote_load
from pypto.language.typing import Tensor, Tile


def remote_store(src: Any, target: Any, peer: Any, offsets: Any, *, atomic: Any = 0) -> Any:
    """Write (or add) a tile or a tensor into a peer's slice."""
    if isinstance(src, Tile):
        return tile_ops.remote_store(src, target, peer, offsets, atomic=atomic)
    if isinstance(src, Tensor):
        return tensor_ops.remote_store(src, target, peer, offsets, atomic=atomic)
    raise TypeError(f"pld.remote_store: expected a Tensor or Tile src, got {type(src).__name__}")


__all__ = [
    "alloc_window_buffer", "get_comm_ctx", "nranks", "rank", "remote_load", "remote_store", "system_ops",
    "tensor_ops", "tile_ops", "window", "world_size",
]  # fmt: skip
