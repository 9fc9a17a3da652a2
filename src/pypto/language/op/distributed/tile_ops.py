"""``pld.tile``: one-sided transfers of tiles."""

from __future__ import annotations

from pypto.ir.op.distributed import tile_ops as _ir
from pypto.language.op import lifting as _lifting

_lift = _lifting.lift

remote_load = _lift(_ir.remote_load, "target, peer, offsets, shape, valid_shape=None")
_remote_load_with_physical_tail_padding = _lift(
    _ir._remote_load_with_physical_tail_padding, "target, peer, offsets, shape, valid_shape=None"
)
remote_store = _lift(_ir.remote_store, "src_tile, target, peer, offsets, *, atomic=AtomicType.None_")
put = _lift(
    _ir.put,
    "dst, peer, src, stage, stage2=None, dst_offsets=None, src_offsets=None, shape=None, *, "
    "atomic=AtomicType.None_",
)
get = _lift(_ir.get, "dst, peer, src, stage, stage2=None, dst_offsets=None, src_offsets=None, shape=None")

LOWERED_ONLY = ("_remote_load_with_physical_tail_padding",)  # read back from printed programs
__all__ = ["get", "put", "remote_load", "remote_store"]
