"""Scalar arithmetic with promotion, and the Python operators on expressions.

Node constructors take the result dtype as given; the functions here deduce it: both operands must be
integers or both floats, the wider one wins, on equal width the left one. The narrower operand is wrapped in
a `Cast`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto.core.dtype import DataType
from pypto.core.span import UNKNOWN_SPAN, Span
from pypto.ir import expr as nodes
from pypto.ir.expr import BinaryExpr, BitNot, Cast, ConstFloat, ConstInt, Expr, Neg, Not
from pypto.ir.node import expect
from pypto.ir.types import ScalarType

_INTERCHANGEABLE = frozenset({DataType.INDEX, DataType.INT64})


def scalar_dtype(operand: Expr, name: str) -> DataType:
    """The dtype of an operand of `name`. Raises `TypeError` for what is no scalar."""
    expect(operand, Expr, f"{name} operand")
    if not isinstance(operand.type, ScalarType):
        raise TypeError(
            "Expression must be ScalarExpr or Var with ScalarType, "
            f"got {type(operand).__name__} of type {type(operand.type).__name__} as operand of {name}"
        )
    return operand.type.dtype


def promoted_dtype(left: DataType, right: DataType, name: str) -> DataType:
    """The dtype in which an operation on two scalars is carried out. Raises `TypeError` for unfit pairs."""
    if DataType.BOOL in (left, right):
        raise TypeError(f"{name} does not accept bool dtype")
    for dtype in (left, right):
        if not (dtype.is_int() or dtype.is_float()):
            raise TypeError(f"{name} requires numeric scalar dtype, got {dtype}")
    if left.is_float() != right.is_float():
        raise TypeError(f"{name} requires same numeric dtype category, got {left} and {right}")
    return right if right.get_bit() > left.get_bit() else left


def _widened(operand: Expr, have: DataType, want: DataType, span: Span) -> Expr:
    if have is want or (have in _INTERCHANGEABLE and want in _INTERCHANGEABLE):
        return operand
    return Cast(operand, want, span)


def _promoting(
    name: str, cls: type[BinaryExpr], *, result: DataType | None = None, integers_only: bool = False
) -> Callable[..., Expr]:
    def build(lhs: Expr, rhs: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
        left, right = scalar_dtype(lhs, name), scalar_dtype(rhs, name)
        if integers_only and not (left.is_int() and right.is_int()):
            raise TypeError(f"{name} requires integer dtype, got {left} and {right}")
        dtype = promoted_dtype(left, right, name)
        return cls(_widened(lhs, left, dtype, span), _widened(rhs, right, dtype, span), result or dtype, span)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"`{cls.__name__}` of two scalars after promotion. Raises `TypeError` for unfit operands."
    return build


def _logical(name: str, cls: type[BinaryExpr]) -> Callable[..., Expr]:
    def build(lhs: Expr, rhs: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
        return cls(lhs, rhs, DataType.BOOL, span)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"`{cls.__name__}` of two expressions, operands unchecked; the result is BOOL."
    return build


add = _promoting("add", nodes.Add)
sub = _promoting("sub", nodes.Sub)
mul = _promoting("mul", nodes.Mul)
truediv = _promoting("truediv", nodes.FloatDiv)
floordiv = _promoting("floordiv", nodes.FloorDiv)
mod = _promoting("mod", nodes.FloorMod)
pow = _promoting("pow", nodes.Pow)
min_ = _promoting("min", nodes.Min)
max_ = _promoting("max", nodes.Max)
eq = _promoting("eq", nodes.Eq, result=DataType.BOOL)
ne = _promoting("ne", nodes.Ne, result=DataType.BOOL)
lt = _promoting("lt", nodes.Lt, result=DataType.BOOL)
le = _promoting("le", nodes.Le, result=DataType.BOOL)
gt = _promoting("gt", nodes.Gt, result=DataType.BOOL)
ge = _promoting("ge", nodes.Ge, result=DataType.BOOL)
bit_and = _promoting("bit_and", nodes.BitAnd, integers_only=True)
bit_or = _promoting("bit_or", nodes.BitOr, integers_only=True)
bit_xor = _promoting("bit_xor", nodes.BitXor, integers_only=True)
bit_shift_left = _promoting("bit_shift_left", nodes.BitShiftLeft, integers_only=True)
bit_shift_right = _promoting("bit_shift_right", nodes.BitShiftRight, integers_only=True)
and_ = _logical("and_", nodes.And)
or_ = _logical("or_", nodes.Or)


def not_(operand: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """`Not` of an expression, operand unchecked; the result is BOOL."""
    return Not(operand, DataType.BOOL, span)


def neg(operand: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """`Neg` of a scalar, in its own dtype."""
    return Neg(operand, scalar_dtype(operand, "neg"), span)


def bit_not(operand: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """`BitNot` of an integer scalar. Raises `TypeError` for other dtypes."""
    dtype = scalar_dtype(operand, "bit_not")
    if not dtype.is_int():
        raise TypeError(f"bit_not requires integer dtype, got {dtype}")
    return BitNot(operand, dtype, span)


def cast(operand: Expr, dtype: DataType, span: Span = UNKNOWN_SPAN) -> Expr:
    """`Cast` to `dtype`; nothing is folded."""
    return Cast(operand, dtype, span)


def literal(
    value: Any, span: Span, int_dtype: DataType = DataType.INDEX, float_dtype: DataType = DataType.FP32
) -> Expr:
    """An expression as it is, a Python number as a constant. Raises `TypeError` for anything else."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, int):
        return ConstInt(int(value), int_dtype, span)
    if isinstance(value, float):
        return ConstFloat(value, float_dtype, span)
    raise TypeError(f"Cannot convert {type(value).__name__} to IR expression")


_OPERATORS = (
    ("add", add), ("sub", sub), ("mul", mul), ("truediv", truediv), ("floordiv", floordiv), ("mod", mod),
    ("pow", pow), ("and", bit_and), ("or", bit_or), ("xor", bit_xor), ("lshift", bit_shift_left),
    ("rshift", bit_shift_right),
)  # fmt: skip
_COMPARISONS = (("eq", eq), ("ne", ne), ("lt", lt), ("le", le), ("gt", gt), ("ge", ge))


def _install_operators() -> None:
    def forward(build: Callable[..., Expr]) -> Callable[[Expr, Any], Expr]:
        def operator(self: Expr, other: Any) -> Expr:
            span = Span.from_frame(1)
            return build(self, literal(other, span), span)

        return operator

    def reflected(build: Callable[..., Expr]) -> Callable[[Expr, Any], Expr]:
        def operator(self: Expr, other: Any) -> Expr:
            span = Span.from_frame(1)
            return build(literal(other, span), self, span)

        return operator

    for name, build in _OPERATORS:
        setattr(Expr, f"__{name}__", forward(build))
        setattr(Expr, f"__r{name}__", reflected(build))
    for name, build in _COMPARISONS:
        setattr(Expr, f"__{name}__", forward(build))
    setattr(Expr, "__neg__", lambda self: neg(self, Span.from_frame(1)))  # noqa: B010
    setattr(Expr, "__invert__", lambda self: bit_not(self, Span.from_frame(1)))  # noqa: B010
    # Defining __eq__ after class creation leaves the inherited identity hash in place, which is what we want.


_install_operators()
