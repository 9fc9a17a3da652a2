"""``pl.system``: synchronisation, buffers between cores, task ids, topology."""

from __future__ import annotations

from typing import Any, NoReturn

from pypto.ir.op import system_ops as _ir
from pypto.language.op import lifting as _lifting
from pypto.language.op.tile_ops import tpop_from_aic, tpop_from_aiv, tpush_to_aic, tpush_to_aiv

_lift = _lifting.lift

AUTO = _ir.AUTO

sync_src = _lift(_ir.sync_src, "*, set_pipe, wait_pipe, event_id, span=None")
sync_dst = _lift(_ir.sync_dst, "*, set_pipe, wait_pipe, event_id, span=None")
sync_set = _lift(_ir.sync_set, "event_id, *, pipe, ffts_mode=None, core_type=None, span=None")
sync_wait = _lift(_ir.sync_wait, "event_id, *, pipe, core_type=None, span=None")
set_ffts = _lift(_ir.set_ffts, "workspace, span=None")
bar_v, bar_m = _lift(_ir.bar_v, "span=None"), _lift(_ir.bar_m, "span=None")
bar_all, fence = _lift(_ir.bar_all, "span=None"), _lift(_ir.fence, "span=None")
cacheinvalid = _lift(_ir.cacheinvalid, "tensor=None, shapes=None, offsets=None, span=None")
syncall = _lift(_ir.syncall, '*, core_type="mix", mode="hard", gm_workspace=None, used_cores=None, span=None')
reserve_buffer = _lift(_ir.reserve_buffer, "*, name, size, base=-1, span=None")
import_peer_buffer = _lift(_ir.import_peer_buffer, "*, name, peer_func, span=None")
aic_initialize_pipe, aiv_initialize_pipe = (
    _lift(
        build,
        "c2v_consumer_buf=0, v2c_consumer_buf=0, *, dir_mask, slot_size, slot_num=None, "
        "local_slot_num=None, id=None, "
        "span=None",
    )
    for build in (_ir.aic_initialize_pipe, _ir.aiv_initialize_pipe)
)
tfree_to_aic = _lift(_ir.tfree_to_aic, "tile, *, split=None, id=None, span=None")
tfree_to_aiv = _lift(_ir.tfree_to_aiv, "tile, *, split=None, id=None, span=None")
task_invalid = _lift(_ir.task_invalid, "span=None")
available_cluster_count = _lift(_ir.available_cluster_count, "span=None")
available_aiv_count = _lift(_ir.available_aiv_count, "span=None")


def task_dummy(*, deps: Any = None, span: Any = None) -> NoReturn:
    """A task that only waits for ``deps``; read by the parser."""
    raise RuntimeError("pl.system.task_dummy is a DSL parser construct and cannot be called directly")


__all__ = [
    "AUTO", "aic_initialize_pipe", "aiv_initialize_pipe", "available_aiv_count", "available_cluster_count",
    "bar_all", "bar_m", "bar_v", "cacheinvalid", "fence", "import_peer_buffer", "reserve_buffer",
    "set_ffts", "sync_dst", "sync_set", "sync_src", "sync_wait", "syncall", "task_dummy", "task_invalid",
    "tfree_to_aic", "tfree_to_aiv", "tpop_from_aic", "tpop_from_aiv", "tpush_to_aic", "tpush_to_aiv",
]  # fmt: skip
