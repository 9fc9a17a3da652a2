"""Declarations of ``system.*``, ``prefetch.*`` and self-test operators."""

from __future__ import annotations

from pypto.core.dtype import DataType
from pypto.core.errors import InternalError
from pypto.ir.enums import ArgEffect, PipeType
from pypto.ir.expr import ConstInt, IterArg, Var
from pypto.ir.meaning import Query, Together
from pypto.ir.op import dtypes as dt
from pypto.ir.op.extents import as_int, show_all
from pypto.ir.op.results import elements, scalar_dtype
from pypto.ir.op_registry import Args, Deduce, EffectWhen, Kwargs, register
from pypto.ir.types import (
    AsyncEventType,
    AsyncSessionType,
    PrefetchAsyncContextType,
    ScalarType,
    TensorType,
    Type,
    UnknownType,
    scalar_type,
)

_IN_ORDER = Query("in_order")  # orders what a core of the CPU does in order anyway


def _unknown(args: Args, kwargs: Kwargs) -> Type:
    return UnknownType.get()


def _scalar(dtype: DataType) -> Deduce:
    result = scalar_type(dtype)

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        return result

    return deduce


# --- synchronisation ------------------------------------------------------------------------------


_PIPES = frozenset(PipeType)


def _require_keys(op: str, kwargs: Kwargs, *keys: str) -> None:
    for key in keys:
        if key not in kwargs:
            raise ValueError(f"The operator {op} requires a '{key}' kwarg")


def _require_pipes(op: str, kwargs: Kwargs, *keys: str) -> None:
    _require_keys(op, kwargs, *keys)
    for key in keys:
        if kwargs[key] not in _PIPES:
            raise ValueError(f"The operator {op} requires {key} to be a PipeType, got {kwargs[key]}")


def _pipe_flag(op: str) -> Deduce:
    def deduce(args: Args, kwargs: Kwargs) -> Type:
        _require_pipes(op, kwargs, "set_pipe", "wait_pipe")
        _require_keys(op, kwargs, "event_id")
        return UnknownType.get()

    return deduce


def _core_event(op: str) -> Deduce:
    """An event between cores, named by a constant or by an INDEX scalar."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        _require_pipes(op, kwargs, "pipe")
        static = kwargs.get("event_id")
        if (static is None) == (not args):
            raise ValueError(f"The operator {op} requires event_id either as operand or as kwarg")
        if static is not None and not 0 <= static <= 13:
            raise ValueError(f"The operator {op} requires event_id within 0 to 13, got {static}")
        if args and scalar_dtype(args[0], op, "event_id") is not dt.INDEX:
            raise ValueError(
                f"The operator {op} requires event_id to be ScalarType(INDEX), got "
                f"{scalar_dtype(args[0], op, '')}"
            )
        if kwargs.get("ffts_mode", 0) not in (0, 1, 2):
            raise ValueError(f"The operator {op} requires ffts_mode 0, 1 or 2, got {kwargs['ffts_mode']}")
        if kwargs.get("core_type", "aic") not in ("aic", "aiv"):
            raise ValueError(
                f"The operator {op} requires core_type 'aic' or 'aiv', got {kwargs['core_type']!r}"
            )
        return UnknownType.get()

    return deduce


def _set_ffts(args: Args, kwargs: Kwargs) -> Type:
    op = "system.set_ffts"
    workspace = args[0].type
    assert isinstance(workspace, TensorType)
    if workspace.dtype is not dt.INT64:
        raise ValueError(f"The operator {op} requires an INT64 workspace, got {workspace.dtype}")
    if len(workspace.shape_) != 1:
        raise ValueError(f"The operator {op} requires a 1-D workspace, got {show_all(workspace.shape_)}")
    size = as_int(workspace.shape_[0])
    if size is None or size < 256:
        raise ValueError(
            f"The operator {op} requires a static workspace of at least 256 elements, got {size}"
        )
    return UnknownType.get()


def _cacheinvalid(args: Args, kwargs: Kwargs) -> Type:
    op = "system.cacheinvalid"
    if not args:
        return UnknownType.get()
    if len(args) != 3 or not isinstance(args[0].type, TensorType):
        raise ValueError(f"The operator {op} requires no argument, or a tensor with shapes and offsets")
    rank = len(args[0].type.shape_)
    for what, arg in (("shapes", args[1]), ("offsets", args[2])):
        found = elements(arg, op, what)
        if len(found) != rank:
            raise ValueError(f"The operator {op}: {what} must match tensor rank {rank}, got {len(found)}")
        for element in found:
            if not isinstance(element.type, ScalarType) or not element.type.dtype.is_int():
                raise TypeError(f"The operator {op}: {what} must be integers")
    return UnknownType.get()


def _syncall(args: Args, kwargs: Kwargs) -> Type:
    op = "system.syncall"
    core_type, mode = kwargs.get("core_type", "mix"), kwargs.get("mode", "hard")
    if core_type not in ("mix", "aiv_only", "aic_only"):
        raise ValueError(f"The operator {op} requires core_type mix, aiv_only or aic_only, got {core_type!r}")
    if mode not in ("hard", "soft"):
        raise ValueError(f"The operator {op} requires mode hard or soft, got {mode!r}")
    if mode == "hard":
        if args:
            raise ValueError(f"The operator {op} with mode='hard' takes no arguments")
        return UnknownType.get()
    if not args or not isinstance(args[0].type, TensorType) or args[0].type.dtype is not dt.INT32:
        raise ValueError(f"The operator {op} with mode='soft' requires gm_workspace, an INT32 tensor")
    if len(args) > 1:
        if scalar_dtype(args[1], op, "used_cores") is not dt.INT32:
            raise ValueError(f"The operator {op} requires used_cores to be an INT32 scalar")
        count = as_int(args[1])
        if count is not None and count < 0:
            raise ValueError(f"The operator {op} requires used_cores in the INT32 range from 0, got {count}")
    return UnknownType.get()


def _declare_synchronisation() -> None:
    for leaf in ("sync_src", "sync_dst"):
        register(
            f"system.{leaf}",
            "",
            _pipe_flag(f"system.{leaf}"),
            kwargs="set_pipe wait_pipe event_id",
            meaning=_IN_ORDER,
        )
    register(
        "system.sync_set",
        "event_id?: scalar",
        _core_event("system.sync_set"),
        kwargs="core_type event_id pipe ffts_mode",
        meaning=Together("signal"),
    )
    register(
        "system.sync_wait",
        "event_id?: scalar",
        _core_event("system.sync_wait"),
        kwargs="core_type event_id pipe",
        meaning=Together("await"),
    )
    register("system.set_ffts", "workspace: tensor", _set_ffts, writes_nothing=True, meaning=_IN_ORDER)
    for leaf in ("bar_v", "bar_m", "bar_all", "fence"):
        register(f"system.{leaf}", "", _unknown, meaning=_IN_ORDER)
    region = "tensor?: any, shapes?: any, offsets?: any"
    register("system.cacheinvalid", region, _cacheinvalid, meaning=_IN_ORDER)
    soft = EffectWhen(ArgEffect.Read, (("mode", "soft"),), ArgEffect.ReadWrite)
    register(
        "system.syncall",
        "workspace?: any, used_cores?: scalar",
        _syncall,
        kwargs="core_type mode:str",
        effects={0: soft},
        meaning=Together("barrier"),
    )


# --- buffers and queues between cores -------------------------------------------------------------


def _initialize_pipe(op: str) -> Deduce:
    def deduce(args: Args, kwargs: Kwargs) -> Type:
        _require_keys(op, kwargs, "dir_mask", "slot_size")
        for i, name in enumerate(("c2v_consumer_buf", "v2c_consumer_buf")):
            if scalar_dtype(args[i], op, name) is not dt.INT32:
                raise ValueError(f"The operator {op} requires {name} to be an INT32 scalar")
        return UnknownType.get()

    return deduce


def _declare_buffers() -> None:
    int32 = _scalar(dt.INT32)
    register("system.reserve_buffer", "", int32, kwargs="base name size", meaning=Together("reserve"))
    register("system.import_peer_buffer", "", int32, kwargs="name peer_func", meaning=Together("import"))
    for core, affinity in (("aic", "cube"), ("aiv", "vector")):
        name = f"system.{core}_initialize_pipe"
        register(
            name,
            "c2v_consumer_buf: scalar, v2c_consumer_buf: scalar",
            _initialize_pipe(name),
            kwargs="dir_mask id local_slot_num slot_num slot_size",
            affinity=affinity,
            meaning=Together("open"),
        )
    for core, affinity in (("aic", "vector"), ("aiv", "cube")):
        register(
            f"system.tfree_to_{core}",
            "tile: tile",
            _unknown,
            kwargs="id split",
            affinity=affinity,
            meaning=Together("free"),
        )


# --- tasks and topology ---------------------------------------------------------------------------


def _declare_tasks() -> None:
    task_id, int32 = _scalar(dt.TASK_ID), _scalar(dt.INT32)
    register("system.task_invalid", "", task_id, meaning=Query("task_invalid"))
    register("system.task_dummy", "", task_id, meaning=Query("task_dummy"))
    register("system.task_is_valid", "task_id: scalar", _task_is_valid, meaning=Query("task_is_valid"))
    for leaf in ("available_cluster_count", "available_aiv_count"):
        register(f"system.{leaf}", "", int32, meaning=Query(leaf))


def _task_is_valid(args: Args, kwargs: Kwargs) -> Type:
    if scalar_dtype(args[0], "system.task_is_valid", "task_id") is not dt.TASK_ID:
        raise ValueError("The operator system.task_is_valid requires a TASK_ID scalar")
    return scalar_type(dt.BOOL)


# --- prefetch -------------------------------------------------------------------------------------


def _make_context(args: Args, kwargs: Kwargs) -> Type:
    return PrefetchAsyncContextType.get()


def _async_prefetch(args: Args, kwargs: Kwargs) -> Type:
    op = "prefetch.async_prefetch"
    source, context = args
    kind = source.type
    if not isinstance(source, (Var, IterArg)) or not isinstance(kind, TensorType):
        raise ValueError(f"The operator {op} expects src to be a Var or IterArg of tensor type")
    if not isinstance(context.type, PrefetchAsyncContextType):
        raise ValueError(f"The operator {op} expects ctx to be a PrefetchAsyncContext")
    extents = [extent.value if isinstance(extent, ConstInt) else None for extent in kind.shape_]
    if not extents or None in extents or any(extent != 1 for extent in extents[:-1]):
        raise ValueError(
            f"The operator {op} expects a flat contiguous logical 1D source with a static shape, got "
            f"{show_all(kind.shape_)}"
        )
    return AsyncEventType.get()


def _session(args: Args, kwargs: Kwargs) -> Type:
    if not isinstance(args[0].type, PrefetchAsyncContextType):
        raise ValueError("The operator prefetch.session expects ctx to be a PrefetchAsyncContext")
    return AsyncSessionType.get()


def _wait(args: Args, kwargs: Kwargs) -> Type:
    if not isinstance(args[0].type, AsyncEventType):
        raise ValueError("The operator prefetch.wait expects event to be an AsyncEvent")
    if not isinstance(args[1].type, AsyncSessionType):
        raise ValueError("The operator prefetch.wait expects session to be an AsyncSession")
    return scalar_type(dt.BOOL)


def _declare_prefetch() -> None:
    for leaf, signature, deduce in (
        ("make_context", "", _make_context),
        ("async_prefetch", "src: any, ctx: any", _async_prefetch),
        ("session", "ctx: any", _session),
        ("wait", "event: any, session_handle: any", _wait),
    ):
        register(f"prefetch.{leaf}", signature, deduce, affinity="vector", meaning=Query(f"prefetch_{leaf}"))


# --- self-test operators --------------------------------------------------------------------------


def _first_type(args: Args, kwargs: Kwargs) -> Type:
    return args[0].type if args else UnknownType.get()


def _raises_internal(args: Args, kwargs: Kwargs) -> Type:
    raise InternalError("test.deduce_raises_internal always fails")


def _raises_type(args: Args, kwargs: Kwargs) -> Type:
    raise TypeError("test.deduce_raises_type always fails")


def _declare_self_tests() -> None:
    register("test.op", "*args: any", _first_type, kwargs="int_attr string_attr bool_attr")
    register("test.deduce_raises_internal", "*args: any", _raises_internal)
    register("test.deduce_raises_type", "*args: any", _raises_type)
    register("test.tensor_op_no_conv", "*args: any", _first_type)


_declare_synchronisation()
_declare_buffers()
_declare_tasks()
_declare_prefetch()
_declare_self_tests()
