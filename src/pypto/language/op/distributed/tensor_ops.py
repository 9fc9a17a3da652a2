"""``pld.tensor``: windows, one-sided transfers of tensors, collectives."""

from __future__ import annotations

from typing import Any

from pypto.ir.expr import Call
from pypto.ir.op.distributed import tensor_ops as _ir
from pypto.language.op import lifting as _lifting

_lift = _lifting.lift

alloc_window_buffer = _lift(_ir.alloc_window_buffer, 'size, *, dtype=None, name=""')
window = _lift(_ir.window, "buf, shape, *, dtype")
remote_store = _lift(_ir.remote_store, "src, target, peer, offsets, *, atomic=AtomicType.None_")
put = _lift(
    _ir.put,
    "dst, peer, src, dst_offsets=None, src_offsets=None, shape=None, *, atomic=AtomicType.None_, "
    "chunk_rows=0, "
    "chunk_cols=0, pipeline=False",
)
get = _lift(
    _ir.get,
    "dst, peer, src, dst_offsets=None, src_offsets=None, shape=None, *, chunk_rows=0, chunk_cols=0, "
    "pipeline=False",
)
barrier = _lift(_ir.barrier, "signal")
broadcast = _lift(_ir.broadcast, "target, signal, *, root")
allgather = _lift(_ir.allgather, "local_data, target, signal")
reduce_scatter = _lift(_ir.reduce_scatter, "target, signal, *, op=0")
all_to_all = _lift(_ir.all_to_all, "input, target, signal")
all_to_all_v = _lift(_ir.all_to_all_v, "input, target, signal, send_counts, recv_counts")


def allreduce(
    target: Any, signal: Any = _ir.OMITTED, *, op: Any = 0, mode: str = "mesh", core_num: int = 1
) -> Any:
    """Every rank's target becomes the reduction over all ranks; the signal may be omitted in mesh mode."""
    given = None if _is_no_task(signal) else _lifting.unwrap(signal)
    return _lifting.wrap(_ir.allreduce(_lifting.unwrap(target), given, op=op, mode=mode, core_num=core_num))


def _is_no_task(value: Any) -> bool:
    """Whether a parsed argument was written as ``None``, which reads as the task that does not exist."""
    expr = _lifting.unwrap(value)
    return isinstance(expr, Call) and expr.op.name == "system.task_invalid"


__all__ = [
    "all_to_all", "all_to_all_v", "allgather", "alloc_window_buffer", "allreduce", "barrier", "broadcast",
    "get", "put", "reduce_scatter", "remote_store", "window",
]  # fmt: skip
