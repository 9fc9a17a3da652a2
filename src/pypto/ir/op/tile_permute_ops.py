"""Builders of the ``tile.*`` calls that sort, gather and scatter."""

from __future__ import annotations

from typing import Any

from pypto.core.dtype import DataType
from pypto.core.span import Span
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, ConstInt, Expr
from pypto.ir.node import show_value
from pypto.ir.op.attributes import resolve_compare_mode, static_int
from pypto.ir.op.build import at, call, extents, simple, typed_constant
from pypto.ir.op.tensor_ops import retyped, update_operands
from pypto.ir.utils import element_dtype

_INT32 = DataType.INT32


class MaskPattern:
    """Column patterns of mask gathers and scatters, lowest bit last in the name."""

    P0101 = 1
    P1010 = 2
    P0001 = 3
    P0010 = 4
    P0100 = 5
    P1000 = 6
    P1111 = 7


gather, scatter = simple("tile.gather"), simple("tile.scatter")
sort32, mscatter = simple("tile.sort32"), simple("tile.mscatter")


def gatherb(
    src: Expr, offset: Expr, span: Span | None = None, *, output_dtype: DataType | None = None
) -> Call:
    """32-byte blocks by byte offset."""
    kwargs = {} if output_dtype is None else {"output_dtype": output_dtype}
    return call("tile.gatherb", [src, offset], at(span), **kwargs)


def gather_mask(
    src: Expr, mask_pattern: Any, span: Span | None = None, *, output_dtype: DataType | None = None
) -> Call:
    """The columns that a pattern selects."""
    kwargs: dict[str, Any] = {"mask_pattern": static_int(mask_pattern, "mask_pattern")}
    if output_dtype is not None:
        kwargs["output_dtype"] = output_dtype
    return call("tile.gather_mask", [src], at(span), **kwargs)


def gather_compare(
    src: Expr,
    kvalue: Any,
    tmp: Expr,
    span: Span | None = None,
    *,
    cmp_mode: Any = "eq",
    offset: Any = 0,
    out_cols: Any,
    count_dtype: DataType | None = None,
) -> Call:
    """Column numbers of the matches of each row, and their count."""
    span = at(span)
    dtype = element_dtype(src) or DataType.FP32
    kwargs: dict[str, Any] = {
        "cmp_mode": resolve_compare_mode(cmp_mode),
        "offset": static_int(offset, "offset"),
        "out_cols": static_int(out_cols, "out_cols"),
    }
    if count_dtype is not None:
        kwargs["count_dtype"] = count_dtype
    return call("tile.gather_compare", [src, typed_constant(kvalue, dtype, span), tmp], span, **kwargs)


def gather_row(
    dst: Expr,
    src: Expr,
    dst_offset: Any,
    src_offset: Any,
    shapes: Any,
    transpose: bool = False,
    span: Span | None = None,
    *,
    valid_shape: Any = None,
) -> Call:
    """Copy a window of ``src`` into a window of ``dst`` in place."""
    span = at(span)
    args = [dst, src, extents(dst_offset, span), extents(src_offset, span), extents(shapes, span)]
    if valid_shape is not None:
        args.append(extents(valid_shape, span))
    return call("tile.gather_row", args, span, transpose=transpose)


def scatter_mask(dst: Expr, src: Expr, mask_pattern: Any, span: Span | None = None) -> Call:
    """Write the columns of ``src`` into the columns of ``dst`` that a pattern selects."""
    return call(
        "tile.scatter_mask", [dst, src], at(span), mask_pattern=static_int(mask_pattern, "mask_pattern")
    )


def scatter_update(input: Expr, *args: Any, span: Span | None = None, **kwargs: Any) -> Call:
    """Replace rows: ``(input, dim, index, src)``, ``(input, index, src, dim=d)``, ``(input, d, index=,
    src=)``."""
    dim, index, src = update_operands(args, kwargs)
    return call("tile.scatter_update", [input, index, src], at(span), dim=static_int(dim, "dim"))


def mrgsort_format1(src: Expr, block_len: Any, span: Span | None = None) -> Call:
    """Merge each group of four sorted runs of ``block_len`` elements."""
    span = at(span)
    return call("tile.mrgsort_format1", [src, retyped(block_len, _INT32, span)], span)


def mrgsort_format2(
    src0: Expr, src1: Expr, *more: Expr, exhausted: bool = False, span: Span | None = None
) -> Call:
    """Merge two to four sorted lists; the last argument is scratch of the result's shape."""
    return call("tile.mrgsort_format2", [src0, src1, *more], at(span), exhausted=exhausted)


def mrgsort(
    src0: Expr,
    src1: Expr | None = None,
    src2: Expr | None = None,
    src3: Expr | None = None,
    tmp: Expr | None = None,
    exhausted: bool = False,
    span: Span | None = None,
    *,
    block_len: Any = None,
) -> Call:
    """Merge runs of one tile (``block_len``) or several sorted tiles (``tmp`` has the result's shape)."""
    span = at(span)
    if block_len is not None:
        if any(extra is not None for extra in (src1, src2, src3, tmp)) or exhausted:
            raise ValueError("mrgsort: block_len and further sources (or exhausted) are mutually exclusive")
        return mrgsort_format1(src0, block_len, span)
    if src1 is None:
        raise ValueError("mrgsort requires block_len, or at least two sources and tmp")
    if tmp is None:
        raise ValueError(
            "mrgsort of several tiles requires scratch of the result's shape; pass it as the tmp keyword"
        )
    if src3 is not None and src2 is None:
        raise ValueError("mrgsort: src3 is given without src2")
    sources = [src for src in (src1, src2, src3) if src is not None]
    return mrgsort_format2(src0, *sources, tmp, exhausted=exhausted, span=span)


_COALESCE = {"row": 0, "elem": 1}
_OUT_OF_BOUNDS = {"undefined": 0, "clamp": 1, "wrap": 2, "zero": 3}


def _named_code(value: Any, names: dict[str, int], what: str) -> int:
    if isinstance(value, str) and value in names:
        return names[value]
    if isinstance(value, ConstInt):
        value = value.value
    if isinstance(value, int) and not isinstance(value, bool) and value in names.values():
        return value
    raise ValueError(
        f"mgather {what} must be one of {', '.join(names)} or 0 to {len(names) - 1}, got {show_value(value)}"
    )


def mgather(
    mem: Expr,
    idx: Expr,
    coalesce: Any = "row",
    span: Span | None = None,
    *,
    gather_oob: Any = "undefined",
    target_memory: MemorySpace = MemorySpace.Vec,
    scratch: Expr | None = None,
    valid_shape: Any = None,
) -> Call:
    """Rows or elements of global memory by index."""
    span = at(span)
    kwargs: dict[str, Any] = {"coalesce": _named_code(coalesce, _COALESCE, "coalesce")}
    oob = _named_code(gather_oob, _OUT_OF_BOUNDS, "gather_oob")
    if oob:
        kwargs["gather_oob"] = oob
    if target_memory is not MemorySpace.Vec:
        kwargs["target_memory"] = target_memory
    args = [mem, idx]
    if scratch is not None:
        args.append(scratch)
    if valid_shape is not None:
        args.append(extents(valid_shape, span))
    return call("tile.mgather", args, span, **kwargs)
