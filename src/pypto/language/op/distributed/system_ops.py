"""``pld.system``: topology and signals."""

from __future__ import annotations

from pypto.ir.op.distributed import system_ops as _ir
from pypto.language.op import lifting as _lifting

_lift = _lifting.lift

world_size = _lift(_ir.world_size, "")
get_comm_ctx = _lift(_ir.get_comm_ctx, "dist_tensor, /")
rank, nranks = _lift(_ir.rank, "ctx"), _lift(_ir.nranks, "ctx")
notify = _lift(_ir.notify, "target, peer, offsets, value, *, op")
wait = _lift(_ir.wait, "signal, offsets, expected, *, cmp")
defer_wait = _lift(_ir.defer_wait, "signal, offsets, expected, *, cmp")

__all__ = ["defer_wait", "get_comm_ctx", "notify", "nranks", "rank", "wait", "world_size"]
