"""The names that the source written by `torch_codegen` calls."""

from __future__ import annotations

from pypto.debug.execution import (
    blocks,
    buffer,
    check_shape,
    core,
    dispatch,
    extent,
    function,
    lane,
    manual_scope,
    note_carried,
    open_lanes,
    publish,
    split_region,
    turn,
    turns,
    valid_extent,
)
from pypto.debug.operators import op, scalar, shaped

__all__ = [
    "blocks",
    "buffer",
    "check_shape",
    "core",
    "dispatch",
    "extent",
    "function",
    "lane",
    "manual_scope",
    "note_carried",
    "op",
    "open_lanes",
    "publish",
    "scalar",
    "shaped",
    "split_region",
    "turn",
    "turns",
    "valid_extent",
]
