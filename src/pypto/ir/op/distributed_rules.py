"""Type inference of ``pld.*`` operators: windows, signals, one-sided transfers, collectives."""

from __future__ import annotations

from pypto.core.errors import InternalError
from pypto.ir.enums import MemorySpace, TensorLayout
from pypto.ir.expr import Expr
from pypto.ir.op import dtypes as dt
from pypto.ir.op.extents import add, as_int, equal, is_one, less_equal, negative, show, show_all
from pypto.ir.op.regions import Extents, window_valid
from pypto.ir.op.results import (
    COL,
    MX_LAYOUTS,
    NO_BOX,
    ROW,
    int_elements,
    is_distributed,
    make_tile,
    scalar_dtype,
    tensor_of,
    tensor_region,
    tile_of,
)
from pypto.ir.op.tensor_view_rules import check_atomic, layout_of
from pypto.ir.op_registry import Args, Deduce, Kwargs
from pypto.ir.types import (
    CommCtxType,
    DistributedTensorType,
    PtrType,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    Type,
    UnknownType,
    scalar_type,
)

# --- windows and topology -------------------------------------------------------------------------


def alloc_window_buffer(args: Args, kwargs: Kwargs) -> Type:
    """``pld.tensor.alloc_window_buffer``: bytes on every rank."""
    op = "pld.tensor.alloc_window_buffer"
    if not kwargs.get("name"):
        raise ValueError(f"The operator {op} requires a non-empty 'name'")
    if not scalar_dtype(args[0], op, "size").is_int():
        raise ValueError(f"The operator {op} requires an integer size")
    size = as_int(args[0])
    if size is not None and size <= 0:
        raise ValueError(f"The operator {op} requires a positive size, got {size}")
    return PtrType.get()


def window(args: Args, kwargs: Kwargs) -> Type:
    """``pld.tensor.window``: a tensor over a window buffer."""
    op = "pld.tensor.window"
    if not isinstance(args[0].type, PtrType):
        raise ValueError(
            f"The operator {op} requires buf to be a Ptr handle, got {type(args[0].type).__name__}"
        )
    if "dtype" not in kwargs:
        raise ValueError(f"The operator {op} requires a 'dtype' kwarg")
    return DistributedTensorType(int_elements(args[1], op, "shape tuple"), kwargs["dtype"])


def comm_ctx(args: Args, kwargs: Kwargs) -> Type:
    """``pld.system.get_comm_ctx``."""
    return CommCtxType.get()


def context_query(op: str) -> Deduce:
    """``pld.system.rank`` and ``nranks``."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        if not isinstance(args[0].type, CommCtxType):
            raise ValueError(
                f"The operator {op} requires ctx to be a CommCtx, got {type(args[0].type).__name__}"
            )
        return scalar_type(dt.INT32)

    return deduce


# --- signals --------------------------------------------------------------------------------------


def _offsets(op: str, arg: Expr, target: ShapedType, what: str = "offsets") -> tuple[Expr, ...]:
    found = int_elements(arg, op, what)
    if len(found) != len(target.shape_):
        raise ValueError(
            f"The operator {op} requires {what} rank {len(target.shape_)} for {show_all(target.shape_)}, got "
            f"{len(found)}"
        )
    return found


def _peer(op: str, arg: Expr) -> None:
    if not isinstance(arg.type, ScalarType) or not arg.type.dtype.is_int():
        raise ValueError(f"The operator {op}: peer must be a scalar of an integer type, got {arg.type}")


def notify(args: Args, kwargs: Kwargs) -> Type:
    """``pld.system.notify``: set or add to a peer's cell."""
    op = "pld.system.notify"
    if "op" not in kwargs:
        raise ValueError(f"The operator {op}: Missing kwarg 'op'")
    if kwargs["op"] not in (0, 1):
        raise ValueError(
            f"The operator {op} requires op to be NotifyOp.AtomicAdd or NotifyOp.Set, got {kwargs['op']}"
        )
    _peer(op, args[1])
    _offsets(op, args[2], tensor_of(args[0]))
    return UnknownType.get()


def wait(op: str, *, deferred: bool = False) -> Deduce:
    """Wait for an own cell."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        if "cmp" not in kwargs:
            raise ValueError(f"The operator {op}: Missing kwarg 'cmp'")
        if kwargs["cmp"] not in (0, 1):
            raise ValueError(
                f"The operator {op} requires cmp to be WaitCmp.Eq or WaitCmp.Ge, got {kwargs['cmp']}"
            )
        signal = tensor_of(args[0])
        _offsets(op, args[1], signal)
        if deferred:
            _check_deferred(op, signal, args[2], kwargs)
        return UnknownType.get()

    return deduce


def _check_deferred(op: str, signal: TensorType, expected: Expr, kwargs: Kwargs) -> None:
    if signal.dtype is not dt.INT32:
        raise ValueError(f"The operator {op}: signal dtype must be INT32, got {signal.dtype}")
    if not signal.shape_:
        raise ValueError(f"The operator {op} requires a signal of rank >= 1")
    if kwargs["cmp"] != 1:
        raise ValueError(f"The operator {op} only supports WaitCmp.Ge")
    if not scalar_dtype(expected, op, "expected").is_int():
        raise ValueError(f"The operator {op} requires expected to be an integer scalar")
    value = as_int(expected)
    if value is not None and not 0 <= value <= 2**31 - 1:
        raise ValueError(f"The operator {op} requires expected in [0, INT32_MAX], got {value}")


# --- one-sided transfers --------------------------------------------------------------------------


def remote_load(args: Args, kwargs: Kwargs) -> Type:
    """``pld.tile.remote_load``: a window of a peer's slice."""
    op = "pld.tile.remote_load"
    target = tensor_of(args[0])
    if layout_of(target) in MX_LAYOUTS:
        raise ValueError(f"The operator {op} does not support the layout {layout_of(target).name}")
    _peer(op, args[1])
    offsets = _offsets(op, args[2], target)
    shape = _offsets(op, args[3], target, "shape")
    request = _offsets(op, args[4], target, "valid_shape") if len(args) > 4 else None
    region = tensor_region(target, op)
    if kwargs.get("allow_physical_tail_padding"):
        valid: Extents = list(shape if request is None else request)
    else:
        valid = window_valid(op, region, shape, offsets, request, materialize=True)
    explicit_nd = target.tensor_view is not None and target.tensor_view.layout is TensorLayout.ND
    column = is_one(shape[-1]) and not is_one(shape[-2]) if len(shape) == 2 else False
    return make_tile(
        shape, target.dtype, valid, COL if column and not explicit_nd else ROW, NO_BOX, space=None
    )


def remote_store(op: str, *, tile: bool) -> Deduce:
    """Write (or add) the valid cells into a peer's slice."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        source = args[0].type
        if tile:
            source = tile_of(args[0])
        elif isinstance(source, TileType):
            raise ValueError(f"The operator {op} requires a tensor src; use pld.tile.remote_store for a tile")
        elif not isinstance(source, TensorType):
            raise ValueError(f"The operator {op} requires a tensor src, got {type(source).__name__}")
        elif is_distributed(source):
            raise ValueError(
                f"The operator {op} requires a local src; use pld.tensor.put for a distributed one"
            )
        assert isinstance(source, (TileType, TensorType))
        target = tensor_of(args[1])
        _peer(op, args[2])
        offsets = _offsets(op, args[3], target)
        _check_push(op, source, target, offsets)
        check_atomic(op, kwargs, source.dtype)
        return UnknownType.get()

    return deduce


def _check_push(op: str, source: ShapedType, target: TensorType, offsets: Extents) -> None:
    rank, target_rank = len(source.shape_), len(target.shape_)
    if rank < 2:
        raise ValueError(f"The operator {op}: src must be at least 2-D, got {show_all(source.shape_)}")
    if target_rank < 2:
        raise ValueError(f"The operator {op}: target must be at least 2-D, got {show_all(target.shape_)}")
    for axis in range(rank - 2):
        if not is_one(source.shape_[axis]):
            raise ValueError(f"The operator {op}: src leading dimension {axis} must be 1")
    if source.dtype is not target.dtype:
        raise ValueError(f"The operator {op} requires the same dtype, got {source.dtype} and {target.dtype}")
    for back in (1, 2):
        axis = target_rank - back
        if less_equal(add(offsets[axis], source.shape_[rank - back]), target.shape_[axis]) is False:
            raise ValueError(
                f"The operator {op}: push exceeds the peer's target region in dimension {axis}: offset "
                f"{show(offsets[axis])} + {show(source.shape_[rank - back])} > {show(target.shape_[axis])}"
            )


def transfer(op: str, *, put: bool) -> Deduce:
    """``pld.tensor.put`` and ``get``: whole tensors, or a region of each."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        if len(args) not in (3, 6):
            raise ValueError(
                f"The operator {op} requires 3 or 6 arguments (dst_offsets, src_offsets and shape must be "
                "provided "
                f"together), got {len(args)}"
            )
        extents = _check_transfer(op, args, args[3:], put)
        _check_chunks(op, extents, kwargs)
        if put:
            check_atomic(op, kwargs, tensor_of(args[0]).dtype)
        return UnknownType.get()

    return deduce


def _check_transfer(op: str, args: Args, region: Args, put: bool) -> Extents:
    """Checks both ends of a transfer and returns its extents."""
    remote, local = (args[0], args[2]) if put else (args[2], args[0])
    for which, operand, wanted in (("remote", remote, DistributedTensorType), ("local", local, TensorType)):
        if not isinstance(operand.type, wanted):
            raise ValueError(
                f"The operator {op} requires its {which} operand to be a {wanted.__name__}, got "
                f"{type(operand.type).__name__}"
            )
    _peer(op, args[1])
    dst, src = tensor_of(args[0]), tensor_of(args[2])
    if dst.dtype is not src.dtype:
        raise ValueError(f"The operator {op} requires the same element type, got {dst.dtype} and {src.dtype}")
    if len(dst.shape_) != len(src.shape_):
        raise ValueError(
            f"The operator {op} requires the same rank, got {len(dst.shape_)} and {len(src.shape_)}"
        )
    if region:
        return _check_region(op, dst, src, region)
    for a, b in zip(dst.shape_, src.shape_, strict=True):
        if equal(a, b) is True:
            continue
        what = (
            "must have the same shape"
            if as_int(a) is None or as_int(b) is None
            else "require the same static shape"
        )
        raise ValueError(
            f"The operator {op}: dst and src {what}, got {show_all(dst.shape_)} and {show_all(src.shape_)}"
        )
    _check_positive(op, dst.shape_)
    return dst.shape_


def _check_positive(op: str, extents: Extents) -> None:
    for extent in extents:
        value = as_int(extent)
        if value is not None and value <= 0:
            raise ValueError(f"The operator {op} requires positive transfer extents, got {show_all(extents)}")


def _check_region(op: str, dst: TensorType, src: TensorType, region: Args) -> Extents:
    shape = _offsets(op, region[2], dst, "shape")
    _check_positive(op, shape)
    for which, tensor, arg in (("dst", dst, region[0]), ("src", src, region[1])):
        offsets = _offsets(op, arg, tensor, f"{which}_offsets")
        for axis, offset in enumerate(offsets):
            if negative(offset):
                raise ValueError(
                    f"The operator {op} requires non-negative {which}_offsets, got {show(offset)}"
                )
            if less_equal(add(offset, shape[axis]), tensor.shape_[axis]) is False:
                raise ValueError(
                    f"The operator {op}: the region exceeds {which} shape {show_all(tensor.shape_)} in "
                    f"dimension {axis}"
                )
    return shape


def _check_chunks(op: str, extents: Extents, kwargs: Kwargs) -> None:
    rows, columns = kwargs.get("chunk_rows", 0), kwargs.get("chunk_cols", 0)
    for name, value in (("chunk_rows", rows), ("chunk_cols", columns)):
        if value < 0:
            raise ValueError(f"The operator {op}: {name} must be non-negative, got {value}")
    if kwargs.get("pipeline") and not (rows and columns):
        raise ValueError(f"The operator {op}: pipeline=True requires both chunk_rows and chunk_cols")
    if extents and as_int(extents[-1]) is None and not columns:
        raise ValueError(
            f"The operator {op}: a dynamic innermost extent {show(extents[-1])} requires chunk_cols > 0"
        )
    if any(as_int(extent) is None for extent in extents[:-1]) and not rows:
        raise ValueError(
            f"The operator {op}: a dynamic leading extent of {show_all(extents)} requires chunk_rows > 0"
        )


def staged_transfer(op: str, *, put: bool) -> Deduce:
    """``pld.tile.put`` and ``get``: transfers through one or two staging tiles."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        stages = 2 if len(args) in (5, 8) else 1
        if len(args) not in (4, 5, 7, 8):
            raise ValueError(f"The operator {op} requires 4, 5, 7 or 8 arguments, got {len(args)}")
        extents = _check_transfer(op, args, args[3 + stages :], put)
        stage = args[3].type
        vector = (None, MemorySpace.Vec)
        if not isinstance(stage, TileType) or len(stage.shape_) != 2 or stage.memory_space not in vector:
            raise ValueError(f"The operator {op}: stage must be a 2D VEC staging tile")
        if stage.dtype is not tensor_of(args[0]).dtype:
            raise ValueError(
                f"The operator {op} requires stage dtype {tensor_of(args[0]).dtype}, got {stage.dtype}"
            )
        if len(extents) >= 2 and any(
            less_equal(s, e) is False for s, e in zip(stage.shape_, extents[-2:], strict=True)
        ):
            raise InternalError(
                f"The operator {op}: stage {show_all(stage.shape_)} must fit within {show_all(extents)}"
            )
        if stages == 2:
            second = args[4].type
            if (
                not isinstance(second, TileType)
                or second.dtype is not stage.dtype
                or any(equal(a, b) is not True for a, b in zip(second.shape_, stage.shape_, strict=False))
            ):
                raise ValueError(f"The operator {op} requires stage2 of stage's shape and dtype")
        if put:
            check_atomic(op, kwargs, stage.dtype)
        return UnknownType.get()

    return deduce


# --- collectives ----------------------------------------------------------------------------------


def check_signal(op: str, signal: Expr) -> None:
    """ValueError unless the signal is a window-bound INT32 tensor."""
    kind = tensor_of(signal)
    if kind.dtype is not dt.INT32:
        raise ValueError(f"The operator {op}: signal must have INT32 element type, got {kind.dtype}")


def allreduce(args: Args, kwargs: Kwargs) -> Type:
    """``pld.tensor.allreduce``."""
    op = "pld.tensor.allreduce"
    target = tensor_of(args[0])
    if target.dtype not in (dt.FP16, dt.FP32):
        raise ValueError(f"The operator {op}: target dtype must be FP16 or FP32, got {target.dtype}")
    if kwargs.get("op", 0) not in (0, 1, 2, 3):
        raise ValueError(f"The operator {op} requires op ReduceOp.Sum, Max, Min, or Prod, got {kwargs['op']}")
    if kwargs.get("core_num", 1) <= 0:
        raise ValueError(f"The operator {op} requires a positive core_num, got {kwargs['core_num']}")
    mode = kwargs.get("mode", "mesh")
    if mode not in ("mesh", "ring"):
        raise ValueError(f'The operator {op}: mode must be "ring" or "mesh", got {mode!r}')
    if len(args) > 1:
        check_signal(op, args[1])
    elif mode == "ring":
        raise ValueError(f"The operator {op} with mode='ring' requires an explicit signal")
    return target


def signalled(op: str, result: int, signal: int, *, checks: str = "") -> Deduce:
    """A collective that returns one of its windows; ``checks`` names its extra rule."""

    def deduce(args: Args, kwargs: Kwargs) -> Type:
        check_signal(op, args[signal])
        if checks:
            _EXTRA_CHECKS[checks](op, args, kwargs)
        return args[result].type

    return deduce


def _check_root(op: str, args: Args, kwargs: Kwargs) -> None:
    if "root" not in kwargs:
        raise ValueError(f"The operator {op} requires a 'root' kwarg")
    if kwargs["root"] < 0:
        raise ValueError(f"The operator {op}: root must be non-negative, got {kwargs['root']}")


def _check_sum(op: str, args: Args, kwargs: Kwargs) -> None:
    if kwargs.get("op", 0) != 0:
        raise ValueError(f"The operator {op} supports only ReduceOp.Sum")


def _check_gather(op: str, args: Args, kwargs: Kwargs) -> None:
    local, target = tensor_of(args[0]), tensor_of(args[1])
    if args[0] is args[1]:
        raise ValueError(f"The operator {op} requires local_data and target to be distinct")
    if len(local.shape_) != 2 or not is_one(local.shape_[0]) or len(target.shape_) != 2:
        raise ValueError(f"The operator {op} requires local_data [1, S] and target [NR, S]")
    if equal(local.shape_[1], target.shape_[1]) is False or local.dtype is not target.dtype:
        raise ValueError(f"The operator {op} requires local_data and target of equal row size and dtype")


def _check_distinct(op: str, args: Args, kwargs: Kwargs) -> None:
    if args[0] is args[1]:
        raise ValueError(f"The operator {op}: input and target must be different windows")


def _check_counts(op: str, args: Args, kwargs: Kwargs) -> None:
    _check_distinct(op, args, kwargs)
    signal, sends, receives = tensor_of(args[2]), tensor_of(args[3]), tensor_of(args[4])
    if len(signal.shape_) != 2:
        raise ValueError(f"The operator {op} requires a rank-2 signal, got {show_all(signal.shape_)}")
    for which, counts in (("send_counts", sends), ("recv_counts", receives)):
        if counts.dtype is not dt.INT32:
            raise ValueError(f"The operator {op} requires {which} dtype INT32, got {counts.dtype}")
    ranks = signal.shape_[0]
    if len(sends.shape_) not in (1, 2) or (len(sends.shape_) == 2 and not is_one(sends.shape_[1])):
        raise ValueError(
            f"The operator {op}: send_counts must be 1D or [NR, 1], got {show_all(sends.shape_)}"
        )
    if equal(sends.shape_[0], ranks) is False:
        raise ValueError(
            f"The operator {op}: send_counts dim 0 must be {show(ranks)}, got {show(sends.shape_[0])}"
        )
    if (
        len(receives.shape_) != 2
        or not is_one(receives.shape_[1])
        or equal(receives.shape_[0], ranks) is False
    ):
        raise ValueError(f"The operator {op} requires recv_counts [NR, 1], got {show_all(receives.shape_)}")
    rows, count = as_int(tensor_of(args[1]).shape_[0]), as_int(ranks)
    if rows is not None and count and rows % count:
        raise ValueError(f"The operator {op}: the number of ranks {count} must divide target dim 0 ({rows})")


_EXTRA_CHECKS = {
    "root": _check_root, "sum": _check_sum, "gather": _check_gather, "distinct": _check_distinct,
    "counts": _check_counts,
}  # fmt: skip
