"""Builders of ``system.*`` calls: ``pypto.ir.op.system``."""

from __future__ import annotations

from typing import Any

from pypto.core.dtype import DataType
from pypto.core.span import Span
from pypto.ir.expr import Call, ConstInt, Expr
from pypto.ir.op.build import at, call, extents, simple
from pypto.ir.types import ScalarType
from pypto.ir.utils import _to_int32_scalar

AUTO = -1
_INT32_MAX = 2**31 - 1


def sync_src(span: Span | None = None, *, set_pipe: Any, wait_pipe: Any, event_id: int) -> Call:
    """Raise a flag from one pipe to another."""
    return call("system.sync_src", [], at(span), set_pipe=set_pipe, wait_pipe=wait_pipe, event_id=event_id)


def sync_dst(span: Span | None = None, *, set_pipe: Any, wait_pipe: Any, event_id: int) -> Call:
    """Wait for the flag of another pipe."""
    return call("system.sync_dst", [], at(span), set_pipe=set_pipe, wait_pipe=wait_pipe, event_id=event_id)


def _event(event_id: Any, kwargs: dict[str, Any]) -> list[Expr]:
    """The operand of a dynamic event, or the keyword of a static one."""
    if isinstance(event_id, ConstInt):
        event_id = event_id.value
    if isinstance(event_id, bool):
        raise TypeError("event_id must be an int or an INDEX scalar, got bool")
    if isinstance(event_id, int):
        if not 0 <= event_id <= 13:
            raise ValueError(f"event_id must lie within 0 to 13, got {event_id}")
        kwargs["event_id"] = event_id
        return []
    if not isinstance(event_id, Expr):
        raise TypeError(f"event_id must be an int or an INDEX scalar, got {type(event_id).__name__}")
    kind = event_id.type
    if not isinstance(kind, ScalarType) or kind.dtype is not DataType.INDEX:
        raise ValueError(
            f"event_id must be ScalarType(INDEX), got {getattr(kind, 'dtype', type(kind).__name__)}"
        )
    return [event_id]


def sync_set(
    event_id: Any,
    span: Span | None = None,
    *,
    pipe: Any,
    ffts_mode: int | None = None,
    core_type: str | None = None,
) -> Call:
    """Raise an event for another core."""
    kwargs: dict[str, Any] = {"pipe": pipe}
    args = _event(event_id, kwargs)
    if ffts_mode is not None:
        kwargs["ffts_mode"] = ffts_mode
    if core_type is not None:
        kwargs["core_type"] = core_type
    return call("system.sync_set", args, at(span), **kwargs)


def sync_wait(event_id: Any, span: Span | None = None, *, pipe: Any, core_type: str | None = None) -> Call:
    """Wait for an event of another core."""
    kwargs: dict[str, Any] = {"pipe": pipe}
    args = _event(event_id, kwargs)
    if core_type is not None:
        kwargs["core_type"] = core_type
    return call("system.sync_wait", args, at(span), **kwargs)


set_ffts = simple("system.set_ffts")
bar_v, bar_m, bar_all, fence = (simple(f"system.{leaf}") for leaf in ("bar_v", "bar_m", "bar_all", "fence"))


def cacheinvalid(
    tensor: Expr | None = None, shapes: Any = None, offsets: Any = None, span: Span | None = None
) -> Call:
    """Drop cached data of a region, or of the whole global memory."""
    span = at(span)
    if tensor is None:
        if shapes is not None or offsets is not None:
            raise ValueError("cacheinvalid: the whole-GM form takes no shapes/offsets")
        return call("system.cacheinvalid", [], span)
    if shapes is None or offsets is None:
        raise ValueError("cacheinvalid of a region requires both shapes and offsets")
    return call("system.cacheinvalid", [tensor, extents(shapes, span), extents(offsets, span)], span)


def syncall(
    span: Span | None = None,
    *,
    core_type: str = "mix",
    mode: str = "hard",
    gm_workspace: Expr | None = None,
    used_cores: Any = None,
) -> Call:
    """A barrier over all blocks of the running launch."""
    span = at(span)
    if core_type not in ("mix", "aiv_only", "aic_only"):
        raise ValueError(f"syncall core_type must be mix, aiv_only or aic_only, got {core_type!r}")
    if mode not in ("hard", "soft"):
        raise ValueError(f"syncall mode must be hard or soft, got {mode!r}")
    if mode == "hard":
        if gm_workspace is not None or used_cores is not None:
            raise ValueError("syncall: gm_workspace and used_cores belong to mode='soft'")
        return call("system.syncall", [], span, core_type=core_type)
    if gm_workspace is None:
        raise ValueError("syncall with mode='soft' requires gm_workspace")
    if used_cores is None:
        raise ValueError(
            "syncall with mode='soft' requires an explicit used_cores (0: all participants of the launch)"
        )
    args = [gm_workspace, *_used_cores(used_cores, span)]
    return call("system.syncall", args, span, core_type=core_type, mode="soft")


def _used_cores(value: Any, span: Span) -> list[Expr]:
    if isinstance(value, ConstInt):
        value = value.value
    if isinstance(value, bool):
        raise TypeError("syncall used_cores must be an int or an INT32 scalar, got bool")
    if isinstance(value, int):
        if not 0 <= value <= _INT32_MAX:
            raise ValueError(f"syncall used_cores must lie in the INT32 range from 0, got {value}")
        return [] if value == 0 else [ConstInt(value, DataType.INT32, span)]
    return [value]


def reserve_buffer(span: Span | None = None, *, name: str, size: int, base: int = AUTO) -> Call:
    """The base address of a reserved buffer."""
    return call("system.reserve_buffer", [], at(span), name=name, size=size, base=base)


def import_peer_buffer(span: Span | None = None, *, name: str, peer_func: str) -> Call:
    """The base address of a buffer that a peer function reserved."""
    return call("system.import_peer_buffer", [], at(span), name=name, peer_func=peer_func)


def _initialize(core: str) -> Any:
    op_name = f"system.{core}_initialize_pipe"

    def build(
        c2v_consumer_buf: Any = 0,
        v2c_consumer_buf: Any = 0,
        span: Span | None = None,
        *,
        dir_mask: int,
        slot_size: int,
        slot_num: int | None = None,
        local_slot_num: int | None = None,
        id: int | None = None,
    ) -> Call:
        span = at(span)
        kwargs: dict[str, Any] = {"dir_mask": dir_mask, "slot_size": slot_size}
        optional = {"slot_num": slot_num, "local_slot_num": local_slot_num, "id": id}
        kwargs.update((key, value) for key, value in optional.items() if value is not None)
        args = [_to_int32_scalar(c2v_consumer_buf, span), _to_int32_scalar(v2c_consumer_buf, span)]
        return call(op_name, args, span, **kwargs)

    build.__name__ = build.__qualname__ = f"{core}_initialize_pipe"
    build.__doc__ = f"Set up the queues of the {core} side."
    return build


aic_initialize_pipe, aiv_initialize_pipe = _initialize("aic"), _initialize("aiv")


def _release(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in kwargs.items() if value is not None}


def tfree_to_aic(
    tile: Expr, span: Span | None = None, *, split: int | None = None, id: int | None = None
) -> Call:
    """Release a slot popped from the cube core."""
    return call("system.tfree_to_aic", [tile], at(span), **_release({"split": split, "id": id}))


def tfree_to_aiv(
    tile: Expr, span: Span | None = None, *, split: int | None = None, id: int | None = None
) -> Call:
    """Release a slot popped from the vector lanes."""
    return call("system.tfree_to_aiv", [tile], at(span), **_release({"split": split, "id": id}))


task_invalid, task_is_valid = simple("system.task_invalid"), simple("system.task_is_valid")
available_cluster_count = simple("system.available_cluster_count")
available_aiv_count = simple("system.available_aiv_count")


def task_dummy(span: Span | None = None, *, deps: Any = None) -> Call:
    """A task that only waits; ``deps`` are attached as the call's dependency edges."""
    span = at(span)
    made = call("system.task_dummy", [], span)
    attrs: dict[str, Any] = {"dummy_task": True}
    if deps:
        attrs["manual_dep_edges"] = list(deps)
    return made.replace(attrs=attrs)
