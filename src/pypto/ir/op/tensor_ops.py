"""Builders of ``tensor.*`` calls: ``pypto.ir.op.tensor``.

Every builder takes expressions (or Python numbers where a constant is meant) and returns a Call with
deduced type. ``span`` defaults to the place that the parser pinned, else to the caller's line.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from pypto.core.dtype import DataType, dtype_from_code
from pypto.core.span import Span
from pypto.ir.enums import MemorySpace, PadValue, TensorLayout
from pypto.ir.expr import Call, ConstBool, ConstFloat, ConstInt, Expr, MakeTuple
from pypto.ir.node import show_value
from pypto.ir.op.attributes import resolve_compare_mode, resolve_pad_value, static_int
from pypto.ir.op.build import (
    at,
    call,
    constant,
    expr,
    extents,
    scalar_for,
    simple,
    typed_constant,
    with_integer,
    with_scalar,
)
from pypto.ir.types import ScalarType, TensorType
from pypto.ir.utils import caller_warning_stacklevel, element_dtype, resolve_cast_mode

_INT32 = DataType.INT32


# --- creation -------------------------------------------------------------------------------------


def create(
    shape: Any,
    dtype: DataType,
    layout: TensorLayout = TensorLayout.ND,
    manual_dep: bool = False,
    init_value: float | None = None,
    span: Span | None = None,
) -> Call:
    """A new tensor; its contents are undefined unless ``init_value`` is given."""
    span = at(span)
    kwargs: dict[str, Any] = {"dtype": dtype, "layout": layout}
    if manual_dep:
        kwargs["manual_dep"] = True
    if init_value is not None:
        kwargs["init_value"] = _init_value(init_value, dtype)
    return call("tensor.create", [extents(shape, span)], span, **kwargs)


def _init_value(value: Any, dtype: DataType) -> float:
    if isinstance(value, (ConstInt, ConstFloat)):
        value = value.value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"init_value must be a number, got {show_value(value)}")
    if isinstance(value, int) and not -(2**53) <= value <= 2**53:
        raise ValueError(f"init_value {value} lies beyond ±2^53 and is not exact")
    return float(value)


create_tensor = create


def full(shape: Any, dtype: DataType, value: Any, span: Span | None = None) -> Call:
    """A tensor whose every element is the number ``value``."""
    span = at(span)
    return call("tensor.full", [extents(shape, span), fill_constant(value, dtype, span)], span, dtype=dtype)


def fill_constant(value: Any, dtype: DataType, span: Span) -> Expr:
    """The constant of a fill: an int gives ConstInt, a float ConstFloat, both of the element type."""
    if isinstance(value, (ConstInt, ConstFloat)):
        value = value.value
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"full value must be a number, got {type(value).__name__}")
    return ConstInt(value, dtype, span) if isinstance(value, int) else ConstFloat(value, dtype, span)


def ci(
    start: Any, shape: Any, dtype: DataType = _INT32, descending: bool = False, span: Span | None = None
) -> Call:
    """``start, start + 1, ...`` (or descending) along the last axis."""
    span = at(span)
    args = [retyped(start, dtype, span), extents(shape, span)]
    return call("tensor.ci", args, span, dtype=dtype, descending=descending)


arange = ci


def retyped(value: Any, dtype: DataType, span: Span) -> Expr:
    """An int or any integer constant as a constant of ``dtype``; other scalars pass."""
    if isinstance(value, ConstInt):
        return value if value.dtype is dtype else ConstInt(value.value, dtype, span)
    return expr(value, span, dtype)


def random(
    key0: Any,
    key1: Any,
    counter0: Any,
    counter1: Any,
    counter2: Any,
    counter3: Any,
    shape: Any,
    dtype: DataType = DataType.UINT32,
    rounds: int = 10,
    span: Span | None = None,
) -> Call:
    """Counter-based random words."""
    span = at(span)
    words = [retyped(word, _INT32, span) for word in (key0, key1, counter0, counter1, counter2, counter3)]
    return call(
        "tensor.random",
        [*words, extents(shape, span)],
        span,
        dtype=dtype,
        rounds=static_int(rounds, "rounds"),
    )


def create_l1(shape: Any, dtype: DataType, transpose: bool = False, span: Span | None = None) -> Call:
    """An uninitialised staging buffer for matrix operands."""
    span = at(span)
    return call("tensor.create_l1", [extents(shape, span)], span, dtype=dtype, transpose=transpose)


# --- elements and extents -------------------------------------------------------------------------


def index_tuple(indices: Any, span: Span) -> MakeTuple:
    """Indices as a tuple; one int or scalar stands for a 1-tuple."""
    if isinstance(indices, (list, tuple, MakeTuple)):
        return extents(indices, span)
    return extents([indices], span)


def read(tensor: Expr, indices: Any, span: Span | None = None) -> Call:
    """One element as a scalar."""
    span = at(span)
    return call("tensor.read", [tensor, index_tuple(indices, span)], span)


def write(tensor: Expr, indices: Any, value: Any, span: Span | None = None) -> Call:
    """Set one element in place; the value must have exactly the element type."""
    span = at(span)
    return call("tensor.write", [tensor, index_tuple(indices, span), expr(value, span)], span)


def dim(tensor: Expr, axis: Any, span: Span | None = None) -> Call:
    """The extent of one axis."""
    span = at(span)
    return call("tensor.dim", [tensor, constant(axis, span)], span)


# --- views and shape changes ----------------------------------------------------------------------


def optional_tail(valid_shape: Any, drop_dims: Any, span: Span) -> list[Expr]:
    """The optional operands of a slice: valid shape, then dropped axes."""
    drops = (
        None if drop_dims is None or (isinstance(drop_dims, (list, tuple)) and not drop_dims) else drop_dims
    )
    if isinstance(drops, MakeTuple) and not drops.elements_:
        drops = None
    if drops is None:
        return [] if valid_shape is None else [extents(valid_shape, span)]
    return [extents([] if valid_shape is None else valid_shape, span), extents(drops, span)]


def slice(
    tensor: Expr,
    shape: Any,
    offset: Any,
    valid_shape: Any = None,
    drop_dims: Any = None,
    pad_value: Any = None,
    clamp: bool = False,
    span: Span | None = None,
) -> Call:
    """A window of ``shape`` at ``offset``."""
    span = at(span)
    kwargs: dict[str, Any] = {}
    if pad_value is not None:
        kwargs["pad_value"] = pad = resolve_pad_value(pad_value, "slice pad_value", allow_null=True)
        if pad is not PadValue.null and valid_shape is None and not clamp and _is_full(tensor):
            warn_pad_without_effect("tensor.slice")
    if clamp:
        kwargs["clamp"] = True
    args = [tensor, extents(shape, span), extents(offset, span), *optional_tail(valid_shape, drop_dims, span)]
    return call("tensor.slice", args, span, **kwargs)


def _is_full(tensor: Expr) -> bool:
    kind = tensor.type
    return not (
        isinstance(kind, TensorType) and kind.tensor_view is not None and kind.tensor_view.valid_shape_
    )


def warn_pad_without_effect(op: str) -> None:
    """Warn the first frame outside the package that a pad value cannot matter."""
    warnings.warn(
        f"{op}: pad_value has no effect: the source is fully valid and no valid_shape is given",
        UserWarning,
        stacklevel=caller_warning_stacklevel(),
    )


def reshape(tensor: Expr, shape: Any, valid_shape: Any = None, span: Span | None = None) -> Call:
    """The same elements, row-major, under another shape."""
    span = at(span)
    tail = [] if valid_shape is None else [extents(valid_shape, span)]
    return call("tensor.reshape", [tensor, extents(shape, span), *tail], span)


def axis_constant(axis: Any, name: str, span: Span) -> ConstInt:
    """A constant axis; TypeError for anything that is neither an int nor an integer constant."""
    if isinstance(axis, ConstInt):
        return axis
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise TypeError(f"{name} must be a constant int, got {type(axis).__name__}")
    return ConstInt(axis, DataType.INDEX, span)


def transpose(
    tensor: Expr, axis1: Any, axis2: Any, valid_shape: Any = None, span: Span | None = None
) -> Call:
    """Two axes exchanged."""
    span = at(span)
    args: list[Expr] = [tensor, axis_constant(axis1, "axis1", span), axis_constant(axis2, "axis2", span)]
    if valid_shape is not None:
        args.append(extents(valid_shape, span))
    return call("tensor.transpose", args, span)


def view(
    tensor: Expr,
    shape: Any = None,
    valid_shape: Any = None,
    span: Span | None = None,
    *,
    layout: TensorLayout | None = None,
) -> Call:
    """Another shape or layout over the same bytes."""
    span = at(span)
    if valid_shape is not None and shape is None:
        raise ValueError("tensor.view: valid_shape requires shape")
    if shape is None and layout is None:
        raise ValueError("tensor.view requires a shape or a layout")
    args = [tensor]
    if shape is not None:
        args.append(extents(shape, span))
    if valid_shape is not None:
        args.append(extents(valid_shape, span))
    return call("tensor.view", args, span, **({} if layout is None else {"layout": layout}))


def reinterpret_view(data: Expr, dtype: DataType, span: Span | None = None, *, shape: Any = None) -> Call:
    """The same bytes as another element type."""
    span = at(span)
    args = [data] if shape is None else [data, extents(shape, span)]
    return call("tensor.reinterpret_view", args, span, dtype=dtype)


def set_validshape(tensor: Expr, valid_rows: Any, valid_cols: Any, span: Span | None = None) -> Call:
    """The same 2-D buffer with another valid region."""
    span = at(span)
    return call("tensor.set_validshape", [tensor, expr(valid_rows, span), expr(valid_cols, span)], span)


def fillpad(tensor: Expr, pad_value: Any = PadValue.zero, span: Span | None = None) -> Call:
    """Fill the cells outside the valid region."""
    span = at(span)
    return call("tensor.fillpad", [tensor], span, pad_value=resolve_pad_value(pad_value))


def fillpad_expand(
    tensor: Expr, shape: Any, pad_value: Any = PadValue.zero, span: Span | None = None
) -> Call:
    """The tensor at the origin of a larger, padded one."""
    span = at(span)
    return call(
        "tensor.fillpad_expand", [tensor, extents(shape, span)], span, pad_value=resolve_pad_value(pad_value)
    )


def assemble(target: Expr, source: Expr, offset: Any, span: Span | None = None, *, atomic: int = 0) -> Call:
    """Write ``source`` into ``target`` at ``offset`` in place."""
    span = at(span)
    kwargs = {"atomic": atomic} if atomic else {}
    return call("tensor.assemble", [target, source, extents(offset, span)], span, **kwargs)


concat = simple("tensor.concat")
expand_clone = simple("tensor.expand_clone")
expands = with_scalar("tensor.expands")

# --- elementwise ----------------------------------------------------------------------------------

_tensor_tensor = {leaf: simple(f"tensor.{leaf}") for leaf in ("add", "sub", "mul", "fmod")}
_maximum, _minimum = simple("tensor.maximum"), simple("tensor.minimum")


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Expr) and not isinstance(value.type, ScalarType)


def add(lhs: Expr, rhs: Any, span: Span | None = None) -> Call:
    """``lhs + rhs``; a scalar ``rhs`` gives ``tensor.adds``."""
    return _tensor_tensor["add"](lhs, rhs, at(span)) if _is_tensor(rhs) else adds(lhs, rhs, at(span))


def sub(lhs: Expr, rhs: Any, span: Span | None = None) -> Call:
    """``lhs - rhs``; a scalar ``rhs`` gives ``tensor.subs``."""
    return _tensor_tensor["sub"](lhs, rhs, at(span)) if _is_tensor(rhs) else subs(lhs, rhs, at(span))


def mul(lhs: Expr, rhs: Any, span: Span | None = None) -> Call:
    """``lhs * rhs``; a scalar ``rhs`` gives ``tensor.muls``."""
    return _tensor_tensor["mul"](lhs, rhs, at(span)) if _is_tensor(rhs) else muls(lhs, rhs, at(span))


def fmod(lhs: Expr, rhs: Any, span: Span | None = None) -> Call:
    """C ``fmod``; a scalar ``rhs`` gives ``tensor.fmods``."""
    return _tensor_tensor["fmod"](lhs, rhs, at(span)) if _is_tensor(rhs) else fmods(lhs, rhs, at(span))


def div(lhs: Expr, rhs: Any, span: Span | None = None, *, high_precision: bool = False) -> Call:
    """``lhs / rhs``; a scalar ``rhs`` gives ``tensor.divs``."""
    span = at(span)
    if _is_tensor(rhs):
        return call("tensor.div", [lhs, rhs], span, **precision(high_precision))
    if high_precision:
        raise TypeError("tensor.div(high_precision=True) requires a Tensor rhs")
    return divs(lhs, rhs, span)


def precision(high_precision: Any) -> dict[str, Any]:
    """The keyword of a precision request, stored only when it is made."""
    return {"high_precision": True} if high_precision else {}


def maximum(lhs: Expr, rhs: Any, span: Span | None = None) -> Call:
    """The larger of two; ``rhs`` may be a scalar."""
    span = at(span)
    return _maximum(lhs, rhs if _is_tensor(rhs) else scalar_for(lhs, rhs, span), span)


def minimum(lhs: Expr, rhs: Any, span: Span | None = None) -> Call:
    """The smaller of two; ``rhs`` may be a scalar."""
    span = at(span)
    return _minimum(lhs, rhs if _is_tensor(rhs) else scalar_for(lhs, rhs, span), span)


def cmp(lhs: Expr, rhs: Any, cmp_type: Any = 0, span: Span | None = None) -> Call:
    """1 where the comparison holds, else 0; code 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge."""
    span = at(span)
    other = rhs if _is_tensor(rhs) else scalar_for(lhs, rhs, span)
    return call("tensor.cmp", [lhs, other], span, cmp_type=static_int(cmp_type, "cmp_type"))


adds, subs, muls, divs, fmods = (
    with_scalar(f"tensor.{leaf}") for leaf in ("adds", "subs", "muls", "divs", "fmods")
)
part_add, part_mul = simple("tensor.part_add"), simple("tensor.part_mul")
part_max, part_min = simple("tensor.part_max"), simple("tensor.part_min")
and_, or_, xor = simple("tensor.and"), simple("tensor.or"), simple("tensor.xor")
shl, shr, not_ = simple("tensor.shl"), simple("tensor.shr"), simple("tensor.not")
ands, ors, xors = with_integer("tensor.ands"), with_integer("tensor.ors"), with_integer("tensor.xors")
shls, shrs = with_integer("tensor.shls"), with_integer("tensor.shrs")

# --- unary ----------------------------------------------------------------------------------------

neg, abs, exp, sqrt = simple("tensor.neg"), simple("tensor.abs"), simple("tensor.exp"), simple("tensor.sqrt")
sin, cos = simple("tensor.sin"), simple("tensor.cos")


def log(input: Expr, span: Span | None = None, *, high_precision: bool = False) -> Call:
    """Natural logarithm."""
    return call("tensor.log", [input], at(span), **precision(high_precision))


def recip(input: Expr, span: Span | None = None, *, high_precision: bool = False) -> Call:
    """``1 / input``."""
    return call("tensor.recip", [input], at(span), **precision(high_precision))


def rsqrt(input: Expr, high_precision: bool = False, span: Span | None = None) -> Call:
    """``1 / sqrt(input)``."""
    return call("tensor.rsqrt", [input], at(span), **precision(high_precision))


def cast(input: Expr, target_type: Any, mode: Any = "round", span: Span | None = None) -> Call:
    """Element conversion; ``mode`` is a rounding mode name or its code."""
    span = at(span)
    number = resolve_cast_mode(mode.value if isinstance(mode, ConstInt) else mode)
    return call("tensor.cast", [input], span, target_type=dtype_of(target_type), mode=number)


def dtype_of(value: Any) -> Any:
    """A data type from itself or its code."""
    if isinstance(value, ConstInt):
        value = value.value
    return dtype_from_code(value) if isinstance(value, int) and not isinstance(value, bool) else value


# --- along an axis --------------------------------------------------------------------------------


def _reduction(leaf: str) -> Any:
    name = f"tensor.{leaf}"

    def build(input: Expr, span: Span | None = None, **attributes: Any) -> Call:
        return call(name, [input], at(span), **attributes)

    build.__name__ = build.__qualname__ = leaf
    build.__doc__ = f"A call of ``{name}``; ``axis`` and ``keep_dim`` are accepted as keywords."
    return build


row_sum, row_max, row_min, row_prod, row_argmax, row_argmin = (
    _reduction(f"row_{combine}") for combine in ("sum", "max", "min", "prod", "argmax", "argmin")
)
col_sum, col_max, col_min, col_prod, col_argmax, col_argmin = (
    _reduction(f"col_{combine}") for combine in ("sum", "max", "min", "prod", "argmax", "argmin")
)
row_expand, row_expand_add, row_expand_sub = (
    simple(f"tensor.row_expand{suffix}") for suffix in ("", "_add", "_sub")
)
row_expand_mul, row_expand_div, row_expand_max, row_expand_min, row_expand_expdif = (
    simple(f"tensor.row_expand_{suffix}") for suffix in ("mul", "div", "max", "min", "expdif")
)
col_expand, col_expand_add, col_expand_sub = (
    simple(f"tensor.col_expand{suffix}") for suffix in ("", "_add", "_sub")
)
col_expand_mul, col_expand_div, col_expand_max, col_expand_min, col_expand_expdif = (
    simple(f"tensor.col_expand_{suffix}") for suffix in ("mul", "div", "max", "min", "expdif")
)

# --- matrix products ------------------------------------------------------------------------------


def matmul(
    lhs: Expr,
    rhs: Expr,
    out_dtype: DataType | None = None,
    a_trans: bool = False,
    b_trans: bool = False,
    c_matrix_nz: bool = False,
    span: Span | None = None,
) -> Call:
    """``lhs @ rhs``, summed in FP32 or INT32 and converted to ``out_dtype`` (default: the promoted type)."""
    span = at(span)
    kwargs: dict[str, Any] = {"a_trans": a_trans, "b_trans": b_trans, "c_matrix_nz": c_matrix_nz}
    if out_dtype is not None:
        if not isinstance(out_dtype, DataType):
            raise TypeError(f"matmul out_dtype must be a DataType, got {type(out_dtype).__name__}")
        kwargs["out_dtype"] = out_dtype
    return call("tensor.matmul", [lhs, rhs], span, **kwargs)


def matmul_acc(
    acc: Expr,
    lhs: Expr,
    rhs: Expr,
    a_trans: bool = False,
    b_trans: bool = False,
    span: Span | None = None,
    *,
    init_cond: Any = None,
) -> Call:
    """``acc + lhs @ rhs``, or the product alone where ``init_cond`` is true."""
    span = at(span)
    args = [acc, lhs, rhs]
    if init_cond is not None:
        args.append(condition(init_cond, span))
    return call("tensor.matmul_acc", args, span, a_trans=a_trans, b_trans=b_trans)


def condition(value: Any, span: Span) -> Expr:
    """A truth value as an expression."""
    return ConstBool(value, span) if isinstance(value, bool) else value


# --- sorting --------------------------------------------------------------------------------------

sort32 = simple("tensor.sort32")


def mrgsort_format1(src: Expr, block_len: Any, span: Span | None = None) -> Call:
    """Merge each group of four sorted runs of ``block_len`` elements."""
    span = at(span)
    return call("tensor.mrgsort_format1", [src, retyped(block_len, _INT32, span)], span)


def mrgsort_format2(
    src0: Expr, src1: Expr, src2: Expr | None = None, src3: Expr | None = None, exhausted: bool = False,
    span: Span | None = None,
) -> Call:  # fmt: skip
    """Merge two to four sorted lists."""
    span = at(span)
    sources = [src for src in (src0, src1, src2, src3) if src is not None]
    return call("tensor.mrgsort_format2", sources, span, exhausted=exhausted)


def mrgsort(
    src0: Expr,
    src1: Expr | None = None,
    src2: Expr | None = None,
    src3: Expr | None = None,
    span: Span | None = None,
    *,
    exhausted: bool = False,
    block_len: Any = None,
) -> Call:
    """Merge runs of one tensor (``block_len``) or several sorted tensors."""
    span = at(span)
    if block_len is not None:
        if src1 is not None or src2 is not None or src3 is not None or exhausted:
            raise ValueError("mrgsort: block_len and further sources (or exhausted) are mutually exclusive")
        return mrgsort_format1(src0, block_len, span)
    if src1 is None:
        raise ValueError("mrgsort requires block_len or at least two sources")
    if src3 is not None and src2 is None:
        raise ValueError("mrgsort: src3 is given without src2")
    return mrgsort_format2(src0, src1, src2, src3, exhausted, span)


# --- gather and scatter ---------------------------------------------------------------------------


def gather(
    input: Expr,
    dim: Any = None,
    index: Expr | None = None,
    span: Span | None = None,
    *,
    mask_pattern: Any = None,
    output_dtype: DataType | None = None,
    kvalue: Any = None,
    cmp_mode: Any = None,
    out_cols: int | None = None,
    offset: Any = None,
    count_dtype: DataType | None = None,
) -> Call:
    """By index (``dim``, ``index``), by column pattern (``mask_pattern``), or by comparison (``kvalue``,
    ...)."""
    span = at(span)
    by_index = dim is not None or index is not None
    by_compare = kvalue is not None or cmp_mode is not None or out_cols is not None
    if by_index + (mask_pattern is not None) + by_compare != 1:
        raise ValueError(
            "gather: exactly one form is needed; (dim, index), mask_pattern and (kvalue, cmp_mode, "
            "out_cols) are "
            "mutually exclusive"
        )
    if output_dtype is not None and mask_pattern is None:
        raise ValueError("gather: output_dtype belongs to the mask_pattern form")
    if (offset or count_dtype is not None) and not by_compare:
        raise ValueError("gather: offset and count_dtype belong to the compare form")
    if mask_pattern is not None:
        return gather_mask(input, mask_pattern, span, output_dtype=output_dtype)
    if by_compare:
        if kvalue is None or cmp_mode is None or out_cols is None:
            raise ValueError("gather: the compare form needs kvalue, cmp_mode and out_cols")
        return gather_compare(
            input,
            kvalue,
            span,
            cmp_mode=cmp_mode,
            offset=offset or 0,
            out_cols=out_cols,
            count_dtype=count_dtype,
        )
    if dim is None or index is None:
        raise ValueError("gather: the index form needs both dim and index")
    return call("tensor.gather", [input, index], span, dim=static_int(dim, "dim"))


def gather_mask(
    input: Expr, mask_pattern: Any, span: Span | None = None, *, output_dtype: DataType | None = None
) -> Call:
    """The columns that a pattern selects."""
    kwargs: dict[str, Any] = {"mask_pattern": static_int(mask_pattern, "mask_pattern")}
    if output_dtype is not None:
        kwargs["output_dtype"] = output_dtype
    return call("tensor.gather_mask", [input], at(span), **kwargs)


def gather_compare(
    input: Expr,
    kvalue: Any,
    span: Span | None = None,
    *,
    cmp_mode: Any = "eq",
    offset: Any = 0,
    out_cols: Any,
    count_dtype: DataType | None = None,
) -> Call:
    """Column numbers of the matches of each row, and their count."""
    span = at(span)
    dtype = element_dtype(input) or DataType.FP32
    kwargs: dict[str, Any] = {
        "cmp_mode": resolve_compare_mode(cmp_mode),
        "offset": static_int(offset, "offset"),
        "out_cols": static_int(out_cols, "out_cols"),
    }
    if count_dtype is not None:
        kwargs["count_dtype"] = count_dtype
    return call("tensor.gather_compare", [input, typed_constant(kvalue, dtype, span)], span, **kwargs)


def gather_row(
    acc: Expr,
    src: Expr,
    dst_offset: Any,
    src_offset: Any,
    shapes: Any,
    transpose: bool = False,
    span: Span | None = None,
    *,
    valid_shape: Any = None,
) -> Call:
    """Copy a window of ``src`` into a window of ``acc``."""
    span = at(span)
    args = [acc, src, extents(dst_offset, span), extents(src_offset, span), extents(shapes, span)]
    if valid_shape is not None:
        args.append(extents(valid_shape, span))
    return call("tensor.gather_row", args, span, transpose=transpose)


def paged_gather(
    src: Expr,
    indices: Expr,
    block_table: Expr,
    block_size: Any,
    size: Any,
    max_indices: Any,
    span: Span | None = None,
    *,
    space: MemorySpace = MemorySpace.Mat,
    col_off: Any = 0,
    is_trans: bool = False,
    is_b_matrix: bool = False,
) -> Call:
    """Rows of a paged pool by logical index."""
    numbers = {"block_size": block_size, "size": size, "max_indices": max_indices, "col_off": col_off}
    return call(
        "tensor.paged_gather",
        [src, indices, block_table],
        at(span),
        **{key: static_int(value, key) for key, value in numbers.items()},
        space=space,
        is_trans=is_trans,
        is_b_matrix=is_b_matrix,
    )


def scatter(
    input: Expr,
    dim: Any = None,
    index: Expr | None = None,
    src: Expr | None = None,
    span: Span | None = None,
    *,
    mask_pattern: Any = None,
    dst: Expr | None = None,
) -> Call:
    """By index (``dim``, ``index``, ``src``) or by column pattern (``mask_pattern``, ``dst``)."""
    span = at(span)
    by_index = dim is not None or index is not None or src is not None
    by_mask = mask_pattern is not None or dst is not None
    if by_index == by_mask:
        raise ValueError(
            "scatter: (dim, index, src) and (mask_pattern, dst) are mutually exclusive, and one is needed"
        )
    if by_mask:
        if mask_pattern is None or dst is None:
            raise ValueError("scatter: the mask form needs both mask_pattern and dst")
        return scatter_mask(input, dst, mask_pattern, span)
    if dim is None or index is None or src is None:
        raise ValueError("scatter: the index form needs dim, index and src")
    return call("tensor.scatter", [input, index, src], span, dim=static_int(dim, "dim"))


def scatter_mask(input: Expr, dst: Expr, mask_pattern: Any, span: Span | None = None) -> Call:
    """Spread the columns of ``input`` over the columns of ``dst`` that a pattern selects."""
    return call(
        "tensor.scatter_mask", [input, dst], at(span), mask_pattern=static_int(mask_pattern, "mask_pattern")
    )


def scatter_update(input: Expr, *args: Any, span: Span | None = None, **kwargs: Any) -> Call:
    """Replace rows: ``(input, dim, index, src)``, ``(input, index, src, dim=d)``, ``(input, d, index=,
    src=)``."""
    dim, index, src = update_operands(args, kwargs)
    return call("tensor.scatter_update", [input, index, src], at(span), dim=static_int(dim, "dim"))


def update_operands(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """``(dim, index, src)`` of a row update in any of its call forms; TypeError for any other form."""
    given = dict(kwargs)
    if len(args) == 3 and not given:
        return args[0], args[1], args[2]
    if len(args) == 2 and set(given) == {"dim"}:
        return given["dim"], args[0], args[1]
    if len(args) == 1 and set(given) == {"index", "src"}:
        return args[0], given["index"], given["src"]
    if not args and set(given) == {"dim", "index", "src"}:
        return given["dim"], given["index"], given["src"]
    raise TypeError(
        "scatter_update expects (input, dim, index, src), (input, index, src, dim=...) or "
        f"(input, dim, index=..., src=...); got {len(args) + 1} positional arguments and {sorted(given)}"
    )


# --- miscellaneous --------------------------------------------------------------------------------

get_block_idx, get_block_num = simple("tensor.get_block_idx"), simple("tensor.get_block_num")
get_subblock_idx = simple("tensor.get_subblock_idx")


def alloc(memory_space: Any, size: Any, span: Span | None = None) -> Call:
    """A declared buffer."""
    span = at(span)
    space = memory_space.value if isinstance(memory_space, MemorySpace) else memory_space
    return call("tensor.alloc", [constant(space, span), constant(size, span)], span)


def aiv_shard(x: Expr, span: Span | None = None, *, split: int = 0) -> Call:
    """One lane's half of a tensor in a split region."""
    return call("tensor.aiv_shard", [x], at(span), split=split)


def aic_gather(x: Expr, span: Span | None = None, *, split: int = 0) -> Call:
    """Both lanes' halves of a tensor in a split region."""
    return call("tensor.aic_gather", [x], at(span), split=split)
