"""Declarations of the ``pld.*`` operators, their internal lowering targets, and host placeholders."""

from __future__ import annotations

from pypto.ir.enums import ArgEffect, WriteChannel
from pypto.ir.meaning import Opaque, Remote
from pypto.ir.op import distributed_rules as rules
from pypto.ir.op import dtypes as dt
from pypto.ir.op.results import Acc, Vec
from pypto.ir.op_registry import (
    WRITE_UNLESS_ATOMIC,
    Args,
    Effect,
    EffectWhen,
    Kwargs,
    MemorySpec,
    register,
)
from pypto.ir.types import Type, UnknownType, scalar_type

_HOST_ONLY = Opaque("it belongs into the function that dispatches to the ranks")
_INTERNAL = Opaque("it is a lowered form of a collective")
_DEFERRED = Opaque("a task cannot end after its kernel; use pld.system.wait")
_HOST = Opaque("it is a placeholder of the host program")
_READ_WRITE, _WRITE = ArgEffect.ReadWrite, ArgEffect.Write
_ADD_UNLESS_SET = EffectWhen(_READ_WRITE, (("op", 1),), _WRITE)
_Dma = WriteChannel.Dma


def _unknown(args: Args, kwargs: Kwargs) -> Type:
    return UnknownType.get()


def _int64(args: Args, kwargs: Kwargs) -> Type:
    return scalar_type(dt.INT64)


def _declare_windows() -> None:
    register(
        "pld.tensor.alloc_window_buffer",
        "size_bytes: scalar",
        rules.alloc_window_buffer,
        kwargs="name",
        meaning=_HOST_ONLY,
    )
    register("pld.tensor.window", "buf: any, shape: any", rules.window, kwargs="dtype", meaning=_HOST_ONLY)
    register("pld.system.world_size", "", _int64, meaning=_HOST_ONLY)
    register("pld.system.get_comm_ctx", "dist_tensor: window", rules.comm_ctx, meaning=Remote("context"))
    for leaf in ("rank", "nranks"):
        name = f"pld.system.{leaf}"
        register(name, "ctx: any", rules.context_query(name), meaning=Remote(leaf))


def _declare_signals() -> None:
    register(
        "pld.system.notify",
        "target: window, peer: any, offsets: tuple, value: scalar",
        rules.notify,
        kwargs="op",
        effects={0: _ADD_UNLESS_SET},
        no_duplicate=True,
        meaning=Remote("notify"),
    )
    for leaf in ("wait", "defer_wait"):
        name = f"pld.system.{leaf}"
        rule = rules.wait(name, deferred=leaf == "defer_wait")
        register(
            name,
            "signal: window, offsets: tuple, expected: scalar",
            rule,
            kwargs="cmp",
            writes_nothing=True,
            meaning=_DEFERRED if leaf == "defer_wait" else Remote("wait"),
        )


def _declare_transfers() -> None:
    register(
        "pld.tile.remote_load",
        "target: window, peer: any, offsets: tuple, shape: tuple, valid_shape?: tuple",
        rules.remote_load,
        kwargs="allow_physical_tail_padding",
        writes_nothing=True,
        meaning=Remote("load"),
    )
    register(
        "pld.tile.remote_store",
        "src_tile: tile, target: window, peer: any, offsets: tuple",
        rules.remote_store("pld.tile.remote_store", tile=True),
        kwargs="atomic",
        effects={1: WRITE_UNLESS_ATOMIC},
        channel=_Dma,
        memory=MemorySpec(((Vec, Acc),), None),
        meaning=Remote("store"),
    )
    register(
        "pld.tensor.remote_store",
        "src: any, target: window, peer: any, offsets: tuple",
        rules.remote_store("pld.tensor.remote_store", tile=False),
        kwargs="atomic",
        effects={1: WRITE_UNLESS_ATOMIC},
        channel=_Dma,
        meaning=Remote("store"),
    )
    region = "dst_offsets?: tuple, src_offsets?: tuple, shape?: tuple"
    for leaf, put in (("put", True), ("get", False)):
        effects: dict[int, Effect] = {0: WRITE_UNLESS_ATOMIC if put else _WRITE}
        register(
            f"pld.tensor.{leaf}",
            f"dst: any, peer: any, src: any, {region}",
            rules.transfer(f"pld.tensor.{leaf}", put=put),
            kwargs="atomic chunk_rows chunk_cols pipeline" if put else "chunk_rows chunk_cols pipeline",
            effects=effects,
            channel=_Dma,
            affinity="vector",
            meaning=Remote(leaf),
        )
        register(
            f"pld.tile.{leaf}",
            "dst: any, peer: any, src: any, stage: any, *more: any",
            rules.staged_transfer(f"pld.tile.{leaf}", put=put),
            kwargs="atomic" if put else "",
            effects=effects,
            channel=_Dma,
            affinity="vector",
            meaning=Remote(leaf),
        )


def _declare_collectives() -> None:
    both, moved = {0: _READ_WRITE, 1: _READ_WRITE}, {1: _WRITE, 2: _READ_WRITE}
    counted = {1: _WRITE, 2: _READ_WRITE, 4: _WRITE}
    for leaf, signature, rule, kwargs, effects in (
        ("allreduce", "target: window, signal?: window", rules.allreduce, "core_num mode:str op", both),
        ("barrier", "signal: window", rules.signalled("pld.tensor.barrier", 0, 0), "", {0: _READ_WRITE}),
        (
            "broadcast",
            "target: window, signal: window",
            rules.signalled("pld.tensor.broadcast", 0, 1, checks="root"),
            "root",
            both,
        ),
        (
            "allgather",
            "local_data: tensor, target: window, signal: window",
            rules.signalled("pld.tensor.allgather", 1, 2, checks="gather"),
            "",
            moved,
        ),
        (
            "reduce_scatter",
            "target: window, signal: window",
            rules.signalled("pld.tensor.reduce_scatter", 0, 1, checks="sum"),
            "op",
            both,
        ),
        (
            "all_to_all",
            "input: tensor, target: window, signal: window",
            rules.signalled("pld.tensor.all_to_all", 1, 2, checks="distinct"),
            "",
            moved,
        ),
        (
            "all_to_all_v",
            "input: tensor, target: window, signal: window, send_counts: tensor, recv_counts: tensor",
            rules.signalled("pld.tensor.all_to_all_v", 1, 2, checks="counts"),
            "",
            counted,
        ),
    ):
        register(
            f"pld.tensor.{leaf}",
            signature,
            rule,
            kwargs=kwargs,
            effects=effects,
            reuses=min(effects),  # the target, or the signal of a barrier
            meaning=Remote(leaf),
        )
    for leaf, kwargs, effects in (
        ("all_to_all", "dtype", moved),
        ("all_to_all_v", "dtype", counted),
        ("allgather", "dtype", moved),
        ("allreduce", "dtype op core_num", both),
        ("allreduce_ring", "dtype op", both),
        ("barrier", "", {0: _READ_WRITE}),
        ("broadcast", "dtype root", both),
        ("reduce_scatter", "dtype op", both),
    ):
        register(
            f"builtin.tensor.{leaf}",
            "*args: any",
            _unknown,
            kwargs=kwargs,
            effects=effects,
            internal=True,
            meaning=_INTERNAL,
        )


def _declare_placeholders() -> None:
    for leaf in ("make_tensor", "tree_reduce", "submit_worker", "submit_orchestrator", "future_get"):
        register(f"dist.{leaf}", "*args: any", _unknown, meaning=_HOST)


_declare_windows()
_declare_signals()
_declare_transfers()
_declare_collectives()
_declare_placeholders()
