"""Builders of ``pld.tensor.*`` calls: windows, one-sided transfers of tensors, collectives."""

from __future__ import annotations

from enum import Enum
from typing import Any

from pypto.core.dtype import DataType
from pypto.core.span import Span
from pypto.ir import scalar_ops
from pypto.ir.expr import Call, ConstInt, Expr
from pypto.ir.op.build import at, call, expr, extents, simple
from pypto.ir.op.distributed.system_ops import int32_operand
from pypto.ir.op.distributed.tile_ops import region_operands
from pypto.ir.op.results import int_elements


class Signal(Enum):
    """What stands for a signal that is not given; None is refused."""

    OMITTED = "omitted"


OMITTED: Any = Signal.OMITTED
_INT64 = DataType.INT64


def alloc_window_buffer(
    size: Any, span: Span | None = None, *, dtype: DataType | None = None, name: str = ""
) -> Call:
    """A buffer of ``size`` bytes, or of a shape of ``dtype`` elements, on every rank."""
    span = at(span)
    if not isinstance(size, (list, tuple)):
        if dtype is not None:
            raise ValueError("alloc_window_buffer: dtype= is only valid when the first argument is a shape")
        return call("pld.tensor.alloc_window_buffer", [expr(size, span, _INT64)], span, name=name)
    if dtype is None:
        raise ValueError("alloc_window_buffer of a shape requires dtype=")
    if not isinstance(dtype, DataType):
        raise TypeError(f"alloc_window_buffer: dtype must be a DataType, got {type(dtype).__name__}")
    return call("pld.tensor.alloc_window_buffer", [_byte_count(size, dtype, span)], span, name=name)


def _byte_count(shape: Any, dtype: DataType, span: Span) -> Expr:
    if not shape:
        raise ValueError("alloc_window_buffer: shape must be non-empty")
    static = 1
    symbolic: list[Expr] = []
    for extent in int_elements(extents(shape, span), "pld.tensor.alloc_window_buffer", "shape"):
        if isinstance(extent, ConstInt):
            if extent.value <= 0:
                raise ValueError(f"alloc_window_buffer: all dimensions must be positive, got {extent.value}")
            static *= extent.value
        else:
            symbolic.append(extent)
    total: Expr = ConstInt(static * dtype.get_byte(), _INT64, span)
    for factor in symbolic:
        wide = factor if _is_int64(factor) else scalar_ops.cast(factor, _INT64, span)
        total = scalar_ops.mul(total, wide, span)
    return total


def _is_int64(value: Expr) -> bool:
    return getattr(value.type, "dtype", None) in (_INT64, DataType.INDEX)


def window(buf: Expr, shape: Any, span: Span | None = None, *, dtype: DataType) -> Call:
    """A tensor over a window buffer."""
    span = at(span)
    return call("pld.tensor.window", [buf, extents(shape, span)], span, dtype=dtype)


def remote_store(
    src: Expr, target: Expr, peer: Any, offsets: Any, span: Span | None = None, *, atomic: int = 0
) -> Call:
    """Write (or add) a tensor into a peer's slice."""
    span = at(span)
    args = [src, target, int32_operand(peer, span), extents(offsets, span)]
    return call("pld.tensor.remote_store", args, span, **({"atomic": atomic} if atomic else {}))


def put(
    dst: Expr,
    peer: Any,
    src: Expr,
    atomic: int = 0,
    dst_offsets: Any = None,
    src_offsets: Any = None,
    shape: Any = None,
    span: Span | None = None,
    *,
    chunk_rows: int = 0,
    chunk_cols: int = 0,
    pipeline: bool = False,
) -> Call:
    """Copy (or add) into a peer's slice."""
    span = at(span)
    args = [dst, int32_operand(peer, span), src, *region_operands(dst_offsets, src_offsets, shape, span)]
    return call("pld.tensor.put", args, span, atomic=atomic, **_chunks(chunk_rows, chunk_cols, pipeline))


def get(
    dst: Expr,
    peer: Any,
    src: Expr,
    dst_offsets: Any = None,
    src_offsets: Any = None,
    shape: Any = None,
    span: Span | None = None,
    *,
    chunk_rows: int = 0,
    chunk_cols: int = 0,
    pipeline: bool = False,
) -> Call:
    """Copy from a peer's slice."""
    span = at(span)
    args = [dst, int32_operand(peer, span), src, *region_operands(dst_offsets, src_offsets, shape, span)]
    return call("pld.tensor.get", args, span, **_chunks(chunk_rows, chunk_cols, pipeline))


def _chunks(rows: Any, columns: Any, pipeline: Any) -> dict[str, Any]:
    """Attributes of a chunked transfer, stored where they are not the default."""
    kwargs: dict[str, Any] = {}
    for name, given in (("chunk_rows", rows), ("chunk_cols", columns)):
        value = given.value if isinstance(given, ConstInt) else given
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be a static int, got {type(value).__name__}")
        if value < 0:
            raise ValueError(f"{name} must be non-negative, got {value}")
        if value:
            kwargs[name] = value
    if pipeline:
        kwargs["pipeline"] = True
    return kwargs


def allreduce(
    target: Expr,
    signal: Any = OMITTED,
    span: Span | None = None,
    *,
    op: int = 0,
    mode: str = "mesh",
    core_num: int = 1,
) -> Call:
    """Every rank's target becomes the reduction over all ranks."""
    if signal is None:
        raise TypeError("allreduce: signal cannot be None; omit it to let the compiler make one")
    args = [target] if signal is OMITTED else [target, signal]
    return call("pld.tensor.allreduce", args, at(span), op=op, mode=mode, core_num=core_num)


barrier = simple("pld.tensor.barrier")
allgather = simple("pld.tensor.allgather")
all_to_all, all_to_all_v = simple("pld.tensor.all_to_all"), simple("pld.tensor.all_to_all_v")


def broadcast(target: Expr, signal: Expr, span: Span | None = None, *, root: int) -> Call:
    """Every target becomes the root's."""
    return call("pld.tensor.broadcast", [target, signal], at(span), root=root)


def reduce_scatter(target: Expr, signal: Expr, span: Span | None = None, *, op: int = 0) -> Call:
    """Each rank's own row becomes the sum of that row over all ranks."""
    return call("pld.tensor.reduce_scatter", [target, signal], at(span), op=op)
