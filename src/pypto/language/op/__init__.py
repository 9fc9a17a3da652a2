"""Operators of the DSL: the namespaces of ``pl`` and the promoted names ``pl.<op>``."""

from __future__ import annotations

from typing import Any

from pypto.language.op import array_ops as array
from pypto.language.op import prefetch_ops as prefetch
from pypto.language.op import system_ops, tensor_ops, tile_ops, unified_ops
from pypto.language.op import system_ops as system
from pypto.language.op import tensor_ops as tensor
from pypto.language.op import tile_ops as tile

_FROM_TENSOR = (
    "arange", "create_l1", "create_tensor", "dim", "dump_tag", "expand_clone", "full", "gather",
    "get_block_idx", "get_block_num", "get_subblock_idx", "no_dep", "paged_gather", "random", "scatter",
)  # fmt: skip
_FROM_TILE = (
    "addc", "addsc", "aic_gather", "aiv_shard", "cmps", "create_tile", "gatherb", "gemv", "gemv_acc",
    "gemv_bias", "load", "lrelu", "matmul_bias", "matmul_mx", "matmul_mx_acc", "matmul_mx_bias", "max",
    "maximums", "mgather", "min", "minimums", "move", "mscatter", "prelu", "relu", "rem", "rems", "sel",
    "sels", "store", "subc", "subsc", "tri",
)  # fmt: skip
_FROM_SYSTEM = (
    "AUTO", "aic_initialize_pipe", "aiv_initialize_pipe", "import_peer_buffer", "reserve_buffer",
    "tfree_to_aic", "tfree_to_aiv", "tpop_from_aic", "tpop_from_aiv", "tpush_to_aic", "tpush_to_aiv",
)  # fmt: skip


def _promoted() -> dict[str, Any]:
    """The operators that ``pl`` offers directly."""
    names = {name: getattr(unified_ops, name) for name in unified_ops.__all__}
    names.update((name, getattr(tensor_ops, name)) for name in _FROM_TENSOR)
    names.update((name, getattr(tile_ops, name)) for name in _FROM_TILE)
    names.update((name, getattr(system_ops, name)) for name in _FROM_SYSTEM)
    return names


_PROMOTED = _promoted()
globals().update(_PROMOTED)
__all__ = ["array", "prefetch", "system", "tensor", "tile", *_PROMOTED]
