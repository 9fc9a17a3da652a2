"""Normalising what users pass to builders: literals, shapes, cast modes, and the source place of a call."""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pypto.core.dtype import DataType
from pypto.core.span import UNKNOWN_SPAN, Span
from pypto.ir.expr import ConstFloat, ConstInt, Expr, MakeTuple
from pypto.ir.node import show_value
from pypto.ir.scalar_ops import literal
from pypto.ir.types import ScalarType, ShapedType, TensorType, TileType

CAST_MODE_NAMES = {"none": 0, "rint": 1, "round": 2, "floor": 3, "ceil": 4, "trunc": 5, "odd": 6}

_PACKAGE_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_parser_span: contextvars.ContextVar[Span | None] = contextvars.ContextVar("parser_span", default=None)


@contextlib.contextmanager
def use_parser_span(span: Span | None) -> Iterator[None]:
    """Pin the source place for builders that are called while a program text is parsed."""
    token = _parser_span.set(span)
    try:
        yield
    finally:
        _parser_span.reset(token)


def _get_span_or_capture(span: Span | None = None, frame_offset: int = 1) -> Span:
    """`span` if given, else the pinned one, else the line that frame `frame_offset` above the caller
    executes."""
    if span is not None:
        return span
    pinned = _parser_span.get()
    return pinned if pinned is not None else Span.from_frame(frame_offset + 1)


def _normalize_expr(
    value: Any,
    span: Span | None = None,
    int_dtype: DataType = DataType.INDEX,
    float_dtype: DataType = DataType.FP32,
) -> Expr:
    """An expression as it is, a number as a constant. Raises `TypeError` for anything else."""
    return literal(value, UNKNOWN_SPAN if span is None else span, int_dtype, float_dtype)


def _normalize_shape(shape: Sequence[Any], span: Span | None = None) -> list[Expr]:
    if not isinstance(shape, Iterable):
        raise TypeError(f"A shape, offset or index list must be a list or tuple, got {type(shape).__name__}")
    return [_normalize_expr(dim, span) for dim in shape]


def _to_make_tuple(value: Any, span: Span | None = None) -> MakeTuple:
    """A tuple expression as it is, a sequence as one."""
    if isinstance(value, MakeTuple):
        return value
    return MakeTuple(_normalize_shape(value, span), UNKNOWN_SPAN if span is None else span)


def resolve_cast_mode(mode: Any) -> int:
    """The number of a rounding mode given by name or number. Raises `ValueError` for anything else."""
    if isinstance(mode, str) and mode in CAST_MODE_NAMES:
        return CAST_MODE_NAMES[mode]
    if isinstance(mode, int) and not isinstance(mode, bool) and 0 <= mode <= 6:
        return mode
    names = ", ".join(CAST_MODE_NAMES)
    raise ValueError(f"Invalid rounding mode {show_value(mode)}; use one of {names} or 0 to 6")


def has_partial_valid_region(expr: Expr) -> bool:
    """Whether the view of a tensor or tile stores a valid shape of its own."""
    type = expr.type
    if isinstance(type, TensorType):
        return type.tensor_view is not None and bool(type.tensor_view.valid_shape_)
    return isinstance(type, TileType) and type.tile_view is not None and bool(type.tile_view.valid_shape_)


def _to_int32_scalar(value: Any, span: Span) -> Expr:
    """An INT32 constant from an int or from a constant of another dtype; other expressions pass."""
    if isinstance(value, ConstInt):
        return value if value.dtype is DataType.INT32 else ConstInt(value.value, DataType.INT32, value.span)
    return _normalize_expr(value, span, int_dtype=DataType.INT32)


def element_dtype(operand: Any) -> DataType | None:
    """The element type of a tensor or tile; None for anything else, which the operator itself refuses."""
    kind = operand.type if isinstance(operand, Expr) else None
    return kind.dtype if isinstance(kind, ShapedType) else None


def _normalize_scalar_operand(
    operand: Expr,
    scalar: Any,
    span: Span,
    *,
    fallback_int_dtype: DataType = DataType.INT32,
    fallback_float_dtype: DataType = DataType.FP32,
    retype_constants: bool = False,
) -> Expr:
    """The scalar of a tensor-scalar or tile-scalar operation.

    Literals, and integer constants of INDEX, carry no dtype of their own and take that of the elements; a
    float literal against integer elements stays FP32. A scalar that is INDEX but not constant needs an
    explicit
    cast.
    """
    elements = element_dtype(operand)
    if elements is not None and not (elements.is_int() or elements.is_float()):
        elements = None  # BOOL elements have no literals of their own
    if isinstance(scalar, (ConstInt, ConstFloat)) and (_is_untyped(scalar) or retype_constants):
        return _restamped(
            scalar.value, elements, span, fallback_int_dtype, fallback_float_dtype, retype_constants
        )
    if isinstance(scalar, Expr):
        if isinstance(scalar.type, ScalarType) and scalar.type.dtype is DataType.INDEX:
            wanted, other = DataType.INT32, ""
            if elements is not None and elements.is_int():
                wanted = elements
            elif elements is not None:
                other = f", or pl.cast(<value>, pl.{elements.member})"
            raise ValueError(
                "A scalar of dtype index cannot be combined with elements of another dtype; "
                f"cast it explicitly: pl.cast(<value>, pl.{wanted.member}){other}"
            )
        return scalar
    return _restamped(
        literal(scalar, span).value,  # type: ignore[attr-defined]
        elements, span, fallback_int_dtype, fallback_float_dtype, retype_constants,
    )  # fmt: skip


def _is_untyped(constant: ConstInt | ConstFloat) -> bool:
    return isinstance(constant, ConstInt) and constant.dtype is DataType.INDEX


def _restamped(
    value: int | float,
    elements: DataType | None,
    span: Span,
    int_dtype: DataType,
    float_dtype: DataType,
    strict: bool,
) -> Expr:
    if isinstance(value, float):
        if elements is not None and elements.is_float():
            return ConstFloat(value, elements, span)
        if not strict or elements is None:
            return ConstFloat(value, float_dtype, span)
        if not value.is_integer():
            raise ValueError(f"{value} is not an integer, but the elements are {elements}")
        return ConstInt(int(value), elements, span)
    dtype = int_dtype if elements is None else elements
    return ConstFloat(float(value), dtype, span) if dtype.is_float() else ConstInt(value, dtype, span)


def _normalize_const_to_dtype(
    scalar: Any, dtype: DataType, span: Span, *, float_dtype: DataType = DataType.FP32
) -> Expr:
    """As `_normalize_scalar_operand`, for a fixed dtype."""
    if isinstance(scalar, Expr) and not (isinstance(scalar, ConstInt) and _is_untyped(scalar)):
        return scalar
    value = scalar.value if isinstance(scalar, ConstInt) else literal(scalar, span).value  # type: ignore[attr-defined]
    return _restamped(value, dtype, span, dtype, float_dtype, False)


def caller_warning_stacklevel() -> int:
    """The stack level, for `warnings.warn`, of the nearest frame outside the package; at least 1."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE_ROOT):
        frame = frame.f_back
        level += 1
    return level
