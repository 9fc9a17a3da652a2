"""Builders and type inference of system, prefetch and distributed operators."""

from __future__ import annotations

import pytest

from pypto import InternalError, ir
from pypto.ir.op import prefetch, system
from pypto.ir.op import tile as tile_ops
from pypto.ir.op.distributed import system_ops as pld_system
from pypto.ir.op.distributed import tensor_ops as pld_tensor
from pypto.ir.op.distributed import tile_ops as pld_tile
from tests.ir.op.operands import (
    COL,
    NOWHERE,
    ROW,
    bound,
    extents,
    layout,
    rejects,
    shape,
    symbol,
    tensor,
    tile,
    valid,
    window,
)  # fmt: skip

n = symbol("n")
MTE3 = ir.PipeType.MTE3


def is_unknown(call: ir.Expr) -> bool:
    return isinstance(call.type, ir.UnknownType)


# -- system --------------------------------------------------------------------------------------------------


def test_core_events_are_static_or_dynamic() -> None:
    static = system.sync_set(3, pipe=MTE3, ffts_mode=1)
    assert static.args == [] and static.kwargs == {"pipe": 2, "event_id": 3, "ffts_mode": 1}
    assert system.sync_wait(n, pipe=MTE3, core_type="aiv").args == [n]
    for build in (system.sync_set, system.sync_wait):
        for event in (-1, 14):
            rejects(lambda build=build, event=event: build(event, pipe=MTE3), "event_id")
        for event in (True, 1.5, "3"):
            rejects(lambda build=build, event=event: build(event, pipe=MTE3), "event_id", error=TypeError)
        for dtype in (ir.INT32, ir.INT64):
            event = symbol("i", dtype)
            rejects(lambda build=build, event=event: build(event, pipe=MTE3), "ScalarType(INDEX)")
        rejects(lambda build=build: build(1, pipe=MTE3, core_type="cube"), "core_type")
        assert [build(event, pipe=MTE3).kwargs["event_id"] for event in (0, 13)] == [0, 13]
    for mode in (-1, 3):
        rejects(lambda mode=mode: system.sync_set(1, pipe=MTE3, ffts_mode=mode), "ffts_mode")


def test_barriers_and_workspaces() -> None:
    for build in (system.bar_v, system.bar_m, system.bar_all, system.fence):
        assert is_unknown(build())
    assert is_unknown(system.set_ffts(tensor([256], ir.INT64)))
    rejects(lambda: system.set_ffts(tensor([255], ir.INT64)), "at least 256")
    rejects(lambda: system.set_ffts(tensor([256], ir.INT32)), "INT64")
    rejects(lambda: system.set_ffts(tensor([16, 16], ir.INT64)), "1-D")


def test_cacheinvalid_forms() -> None:
    x = tensor([8, 8])
    assert system.cacheinvalid().args == [] and len(system.cacheinvalid(x, [4, 4], [0, 0]).args) == 3
    rejects(lambda: system.cacheinvalid(x, [4, 4], [0]), "offsets must match tensor rank 2")
    rejects(lambda: system.cacheinvalid(x, [4], [0, 0]), "shapes must match tensor rank 2")
    rejects(lambda: system.cacheinvalid(x, [4, 4], [0, 1.5]), "offsets must be integers", error=TypeError)
    rejects(lambda: system.cacheinvalid(x, [4, 1.5], [0, 0]), "shapes must be integers", error=TypeError)
    rejects(lambda: system.cacheinvalid(None, [4], [0]), "whole-GM form takes no shapes/offsets")
    rejects(lambda: system.cacheinvalid(shapes=[4]), "whole-GM form takes no shapes/offsets")


def test_syncall_forms() -> None:
    assert system.syncall().kwargs == {"core_type": "mix"}
    workspace = tensor([64], ir.INT32)
    soft = system.syncall(core_type="aiv_only", mode="soft", gm_workspace=workspace, used_cores=4)
    assert soft.kwargs == {"core_type": "aiv_only", "mode": "soft"} and soft.args[1].dtype is ir.INT32
    assert system.syncall(mode="soft", gm_workspace=workspace, used_cores=0).args == [workspace]
    rejects(lambda: system.syncall(mode="soft", gm_workspace=workspace), "explicit used_cores")
    rejects(lambda: system.syncall(mode="soft", used_cores=1), "gm_workspace")
    for cores in (-1, 2**31):
        rejects(
            lambda cores=cores: system.syncall(mode="soft", gm_workspace=workspace, used_cores=cores),
            "INT32 range",
        )
    rejects(lambda: system.syncall(mode="soft", gm_workspace=tensor([64]), used_cores=1), "INT32")
    wide = symbol("u", ir.INT64)
    rejects(lambda: system.syncall(mode="soft", gm_workspace=workspace, used_cores=wide), "INT32")
    # The checks come in this order: core type, mode, workspace, cores.
    rejects(lambda: system.syncall(core_type="cube", mode="loud"), "core_type")
    rejects(lambda: system.syncall(mode="loud", used_cores=-1), "mode")
    rejects(lambda: system.syncall(mode="soft", used_cores=-1), "gm_workspace")


def test_buffers_and_tasks() -> None:
    assert system.reserve_buffer(name="b", size=64).kwargs == {"name": "b", "size": 64, "base": -1}
    assert system.import_peer_buffer(name="b", peer_func="f").type.dtype is ir.INT32
    pipe = system.aic_initialize_pipe(dir_mask=1, slot_size=64, slot_num=2)
    assert pipe.kwargs == {"dir_mask": 1, "slot_size": 64, "slot_num": 2}
    assert system.tfree_to_aiv(tile([8, 8]), id=3).kwargs == {"id": 3}
    task = system.task_invalid()
    assert task.type.dtype is ir.DataType.TASK_ID and system.task_is_valid(task).type.dtype is ir.BOOL
    assert system.available_aiv_count().type.dtype is ir.INT32


def test_prefetch_chain() -> None:
    context = prefetch.make_context()
    event = prefetch.async_prefetch(tensor([1, 1, 256]), context)
    session = prefetch.session(context)
    assert isinstance(event.type, ir.AsyncEventType)
    assert prefetch.wait(event, session).type.dtype is ir.BOOL
    rejects(lambda: prefetch.async_prefetch(tensor([4, 32]), context), "flat contiguous logical 1D")
    rejects(lambda: prefetch.async_prefetch(context, context), "expects src to be a Var or IterArg")
    rejects(lambda: prefetch.async_prefetch(tensor([8]), event), "ctx to be a PrefetchAsyncContext")
    rejects(lambda: prefetch.wait(context, session), "event to be an AsyncEvent")
    rejects(lambda: prefetch.wait(event, event), "session to be an AsyncSession")
    rejects(lambda: prefetch.session(event), "ctx to be a PrefetchAsyncContext")
    rejects(lambda: prefetch.make_context(1, 2), "positional", error=TypeError)
    carried = ir.IterArg("a", ir.TensorType([1, 256], ir.FP32), tensor([1, 256]), NOWHERE)
    assert isinstance(prefetch.async_prefetch(carried, context).type, ir.AsyncEventType)
    stored = tile_ops.store(tile([1, 8]), [0, 0], tensor([1, 8]))
    rejects(lambda: prefetch.async_prefetch(stored, context), "expects src to be a Var or IterArg")
    rejects(lambda: prefetch.async_prefetch(tensor([n]), context), "prefetch.async_prefetch")


# -- windows and signals -------------------------------------------------------------------------------------


def test_window_buffers() -> None:
    fixed = pld_tensor.alloc_window_buffer([16, 8], dtype=ir.FP32, name="buf")
    assert isinstance(fixed.type, ir.PtrType)
    assert fixed.args[0].value == 512 and fixed.args[0].dtype is ir.INT64
    assert isinstance(pld_tensor.alloc_window_buffer([n, 8], dtype=ir.FP32, name="buf").args[0], ir.Mul)
    rejects(lambda: pld_tensor.alloc_window_buffer(64), "non-empty 'name'")
    rejects(lambda: pld_tensor.alloc_window_buffer(64, dtype=ir.FP32), "dtype= is only valid")
    rejects(lambda: pld_tensor.alloc_window_buffer([8]), "requires dtype=")
    rejects(lambda: pld_tensor.alloc_window_buffer([], dtype=ir.FP32), "shape must be non-empty")
    rejects(lambda: pld_tensor.alloc_window_buffer([0], dtype=ir.FP32), "all dimensions must be positive")
    call = pld_tensor.window(bound(fixed), [16, 8], dtype=ir.FP32)
    assert isinstance(call.type, ir.DistributedTensorType) and call.type.window_buffer is None
    rejects(lambda: pld_tensor.window(tensor([8]), [8], dtype=ir.FP32), "Ptr handle")
    rejects(lambda: ir.create_op_call("pld.tensor.window", call.args, NOWHERE), "dtype")
    rejects(
        lambda: ir.create_op_call("pld.tensor.window", [bound(fixed), n], {"dtype": ir.FP32}, NOWHERE),
        "shape tuple",
    )


def test_topology() -> None:
    assert pld_system.world_size().type.dtype is ir.INT64
    context = pld_system.get_comm_ctx(window([8]))
    assert pld_system.rank(context).type.dtype is ir.INT32
    rejects(lambda: pld_system.get_comm_ctx(tensor([8])), "DistributedTensor")
    rejects(lambda: pld_system.nranks(tensor([8])), "CommCtx")


def test_signals() -> None:
    cells = window([4, 1], ir.INT32)
    call = pld_system.notify(cells, 1, [0, 0], 1, op=ir.NotifyOp.Set)
    assert is_unknown(call) and call.kwargs == {"op": 1} and call.args[3].dtype is ir.INT32
    rejects(lambda: pld_system.notify(cells, 1, [0], 1, op=0), "offsets rank")
    rejects(lambda: ir.create_op_call("pld.system.notify", call.args, NOWHERE), "Missing kwarg 'op'")
    rejects(
        lambda: ir.create_op_call("pld.system.wait", [cells, call.args[2], n], NOWHERE), "Missing kwarg 'cmp'"
    )
    assert is_unknown(pld_system.wait(cells, [0, 0], 1, cmp=ir.WaitCmp.Eq))
    rejects(lambda: pld_system.defer_wait(cells, [0, 0], 1, cmp=ir.WaitCmp.Eq), "only supports WaitCmp.Ge")
    rejects(lambda: pld_system.defer_wait(window([4]), [0], 1, cmp=1), "signal dtype must be INT32")
    for expected in (-1, 2**31):
        rejects(
            lambda expected=expected: pld_system.defer_wait(cells, [0, 0], expected, cmp=1), "[0, INT32_MAX]"
        )
    floats = window([4, 1])
    assert is_unknown(pld_system.notify(floats, 1, [0, 0], 1, op=0))  # the element type is not checked
    for plain in (lambda: pld_system.notify(tensor([4, 1]), 1, [0, 0], 1, op=0),
                  lambda: pld_system.wait(tensor([4, 1]), [0, 0], 1, cmp=0)):  # fmt: skip
        rejects(plain, "DistributedTensor")


# -- transfers -----------------------------------------------------------------------------------------------


def test_remote_tiles() -> None:
    w = window([1, 17])
    rejects(lambda: pld_tile.remote_load(w, 0, [0, 0], [1, 8192]), "reads past the end")
    assert valid(pld_tile.remote_load(w, 0, [0, 0], [1, 8192], [1, 17])) == [1, 17]
    assert pld_tile.remote_load(w, 0, [0, 0], [1, 17]).type.memory_space is None
    rejects(lambda: pld_tile.remote_load(w, 0, [0], [1, 17]), "offsets rank")
    for peer in (tensor([1]), symbol("f", ir.FP32)):
        rejects(
            lambda peer=peer: pld_tile.remote_load(w, peer, [0, 0], [1, 17]), "peer must be a scalar"
        )  # fmt: skip
    layouts = {ir.TensorLayout.ND: ROW, ir.TensorLayout.DN: COL}
    for explicit, blayout in layouts.items():
        view = ir.TensorView(None, explicit, [48, 64])
        source = ir.Var("w", ir.DistributedTensorType([64, 64], ir.FP32, None, view), NOWHERE)
        assert layout(pld_tile.remote_load(source, 0, [0, 0], [48, 1]))[0] is blayout
    assert layout(pld_tile.remote_load(window([64, 64]), 0, [0, 0], [64, 1]))[0] is COL
    target = window([64, 64])
    assert is_unknown(pld_tile.remote_store(tile([16, 64]), target, 0, [0, 0]))
    rejects(
        lambda: pld_tile.remote_store(tile([16, 64]), target, 0, [56, 0]),
        "push exceeds the peer's target region",
    )
    rejects(
        lambda: pld_tile.remote_store(tile([2, 16, 64]), target, 0, [0, 0]),
        "src leading dimension 0 must be 1",
    )
    rejects(lambda: pld_tile.remote_store(tile([64]), target, 0, [0, 0]), "at least 2-D")
    rejects(lambda: pld_tensor.remote_store(tile([16, 64]), target, 0, [0, 0]), "pld.tile.remote_store")
    rejects(lambda: pld_tensor.remote_store(target, target, 0, [0, 0]), "pld.tensor.put")
    for build, source in ((pld_tile.remote_store, tile), (pld_tensor.remote_store, tensor)):
        rejects(lambda b=build, s=source: b(s([64]), target, 0, [0, 0]), "at least 2-D")
        rejects(
            lambda b=build, s=source: b(s([2, 16, 64]), target, 0, [0, 0]),
            "src leading dimension 0 must be 1",
        )
        for axis, offsets in ((0, [56, 0]), (1, [0, 8])):
            rejects(
                lambda b=build, s=source, offsets=offsets: b(s([16, 64]), target, 0, offsets),
                f"push exceeds the peer's target region in dimension {axis}",
            )
        rejects(lambda b=build, s=source: b(s([16, 64], ir.FP16), target, 0, [0, 0]), "dtype")
        assert is_unknown(build(source([16, 64]), target, 0, [n, 0]))
        for dtype in (ir.FP32, ir.BF16, ir.FP16, ir.INT32, ir.INT16, ir.INT8):
            added = build(source([16, 64], dtype), window([64, 64], dtype), 0, [0, 0], atomic=1)
            assert added.kwargs == {"atomic": 1}
        for dtype in (ir.INT64, ir.UINT8):
            rejects(
                lambda b=build, s=source, d=dtype: b(s([8, 8], d), window([8, 8], d), 0, [0, 0], atomic=1),
                "fp32", "int8",
            )  # fmt: skip


def test_put_and_get() -> None:
    dst, src = window([64, 64]), tensor([64, 64])
    put = pld_tensor.put(dst, 1, src)
    assert is_unknown(put) and put.kwargs == {"atomic": 0} and len(put.args) == 3
    assert pld_tensor.get(src, 1, dst).kwargs == {}
    region = pld_tensor.put(dst, 1, src, dst_offsets=[0, 0], src_offsets=[8, 0], shape=[8, 64])
    assert len(region.args) == 6
    rejects(lambda: pld_tensor.put(dst, 1, src, shape=[8, 64]), "must be provided together")
    rejects(
        lambda: pld_tensor.put(dst, 1, src, dst_offsets=[60, 0], src_offsets=[0, 0], shape=[8, 64]),
        "exceeds dst shape",
    )
    rejects(lambda: pld_tensor.put(dst, 1, tensor([32, 64])), "same static shape")
    rejects(lambda: pld_tensor.put(window([n, 64]), 1, tensor([symbol("m"), 64])), "must have the same shape")
    rejects(lambda: pld_tensor.put(dst, 1, tensor([64, 64], ir.FP16)), "element type")
    rejects(lambda: pld_tensor.put(window([n, 64]), 1, tensor([n, 64])), "chunk_rows")
    assert pld_tensor.put(window([n, 64]), 1, tensor([n, 64]), chunk_rows=8).kwargs["chunk_rows"] == 8
    moves = (
        lambda **chunks: pld_tensor.put(dst, 1, src, **chunks),
        lambda **chunks: pld_tensor.get(src, 1, dst, **chunks),
    )
    for move in moves:
        for chunks in ({}, {"chunk_rows": 8}, {"chunk_cols": 8}):
            rejects(lambda move=move, chunks=chunks: move(pipeline=True, **chunks), "both")
        for key in ("chunk_rows", "chunk_cols"):
            rejects(lambda move=move, key=key: move(**{key: -1}), "must be non-negative")
            for value in (1.5, "8", True, n):
                rejects(
                    lambda move=move, key=key, value=value: move(**{key: value}), "static", error=TypeError
                )
    raw = {"atomic": 0, "chunk_rows": -1}
    rejects(
        lambda: ir.create_op_call("pld.tensor.put", put.args, raw, NOWHERE), "must be non-negative"
    )  # fmt: skip
    rejects(lambda: ir.create_op_call("pld.tensor.get", [src, put.args[1], dst], {"atomic": 1}, NOWHERE),
            "Unknown kwarg 'atomic'")  # fmt: skip
    rows = {"dst_offsets": [0, 0], "src_offsets": [0, 0], "shape": [n, 64]}
    rejects(lambda: pld_tensor.put(dst, 1, src, **rows), "chunk_rows")
    assert len(pld_tensor.put(dst, 1, src, **rows, chunk_rows=4).args) == 6
    rejects(lambda: pld_tensor.put(window([64, n]), 1, tensor([64, n])), "chunk_cols")
    rejects(lambda: pld_tensor.put(tensor([64, 64]), 1, src), "DistributedTensor")


def test_staged_transfers() -> None:
    dst, src = window([64, 64]), tensor([64, 64])
    assert len(pld_tile.put(dst, 1, src, tile([16, 64])).args) == 4
    assert len(pld_tile.get(src, 1, dst, tile([16, 64]), tile([16, 64])).args) == 5
    for stage in (tile([64]), tile([16, 64], space=ir.MemorySpace.Mat), tensor([16, 64])):
        rejects(
            lambda stage=stage: pld_tile.put(dst, 1, src, stage), "stage must be a 2D VEC staging tile"
        )  # fmt: skip
    with pytest.raises(InternalError, match="must fit within"):
        pld_tile.put(dst, 1, src, tile([128, 64]))


def test_collectives() -> None:
    data, signal = window([4, 64]), window([4, 1], ir.INT32)
    assert pld_tensor.allreduce(data, signal).type is data.type
    assert pld_tensor.allreduce(data).kwargs == {"op": 0, "mode": "mesh", "core_num": 1}
    rejects(lambda: pld_tensor.allreduce(data, None), "signal cannot be None", error=TypeError)
    rejects(lambda: pld_tensor.allreduce(data, mode="ring"), "signal")
    rejects(lambda: pld_tensor.allreduce(data, signal, mode="tree"), 'must be "ring" or "mesh"')
    rejects(lambda: pld_tensor.allreduce(window([4], ir.INT32)), "target dtype must be FP16 or FP32")
    rejects(lambda: pld_tensor.allreduce(data, signal, op=7), "ReduceOp.Sum, Max, Min, or Prod")
    rejects(lambda: pld_tensor.allreduce(data, window([4, 1])), "signal must have INT32 element type")
    assert pld_tensor.barrier(signal).type is signal.type
    rejects(lambda: pld_tensor.broadcast(data, signal, root=-1), "must be non-negative")
    assert pld_tensor.allgather(tensor([1, 64]), data, signal).type is data.type
    rejects(lambda: pld_tensor.reduce_scatter(data, signal, op=1), "Sum")
    rejects(lambda: pld_tensor.all_to_all(data, data, signal), "must be different windows")
    counts, received = tensor([4], ir.INT32), tensor([4, 1], ir.INT32)
    rows = window([8, 64])
    assert pld_tensor.all_to_all_v(data, rows, signal, counts, received).type is rows.type
    rejects(
        lambda: pld_tensor.all_to_all_v(data, window([6, 64]), signal, counts, received),
        "must divide target dim 0",
    )
    rejects(
        lambda: pld_tensor.all_to_all_v(data, rows, signal, tensor([3], ir.INT32), received),
        "send_counts dim 0",
    )
    assert shape(pld_tensor.barrier(signal)) == [4, 1] and extents(data.type.shape) == [4, 64]
