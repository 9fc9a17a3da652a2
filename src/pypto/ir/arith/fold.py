"""Folding of one node: `fold_const`, and builders that fold what they build.

A constant made from two constants takes the dtype of the left one. A fold that would leave 64 bits does not
happen.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pypto.core.dtype import DataType
from pypto.core.errors import located
from pypto.core.span import Span
from pypto.ir import expr as nodes
from pypto.ir.arith.integers import INT64_MIN, fits_int64
from pypto.ir.expr import BinaryExpr, ConstBool, ConstFloat, ConstInt, Expr, UnaryExpr
from pypto.ir.types import ScalarType


def dtype_of(expr: Expr) -> DataType:
    """Return the dtype of a scalar expression, INDEX for anything else."""
    return expr.type.dtype if isinstance(expr.type, ScalarType) else DataType.INDEX


def is_float(expr: Expr) -> bool:
    """Say whether `expr` is a floating-point scalar."""
    return isinstance(expr.type, ScalarType) and expr.type.dtype.is_float()


def is_int(expr: Expr) -> bool:
    """Say whether `expr` is an integer scalar."""
    return isinstance(expr.type, ScalarType) and expr.type.dtype.is_int()


def binary(cls: type[BinaryExpr], left: Expr, right: Expr, span: Span) -> Expr:
    """Build an arithmetic node with the dtype of the wider operand (the left one on equal width), folded."""
    left_dtype, right_dtype = dtype_of(left), dtype_of(right)
    dtype = right_dtype if right_dtype.get_bit() > left_dtype.get_bit() else left_dtype
    return folded(cls(left, right, dtype, span))


def logical(cls: type[BinaryExpr], left: Expr, right: Expr, span: Span) -> Expr:
    """Build a comparison or a logical node, folded."""
    return folded(cls(left, right, DataType.BOOL, span))


def folded(expr: Expr) -> Expr:
    """Return the folded form of a node, the node itself if it has none."""
    result = fold_const(expr)
    return expr if result is None else result


def fold_const(expr: Expr) -> Expr | None:
    """Fold one node whose operands are taken as they are; None if nothing applies.

    Raises:
        ValueError: division by a constant zero, or a negative constant exponent of an integer.
    """
    if isinstance(expr, BinaryExpr):
        fold = _BINARY.get(type(expr))
        return fold(expr) if fold is not None else None
    if isinstance(expr, UnaryExpr):
        return _fold_unary(expr)
    return None


def _int(value: int, like: ConstInt, node: Expr) -> Expr | None:
    return ConstInt(value, like.dtype, node.span) if fits_int64(value) else None


def _float(value: float, like: ConstFloat, node: Expr) -> Expr:
    return ConstFloat(value, like.dtype, node.span)


def _is_const(expr: Expr, value: int) -> bool:
    return isinstance(expr, ConstInt | ConstFloat) and expr.value == value


def _arithmetic(
    node: BinaryExpr, ints: Callable[[int, int], int], floats: Callable[[float, float], float]
) -> Expr | None:
    left, right = node.left, node.right
    if isinstance(left, ConstInt) and isinstance(right, ConstInt):
        return _int(ints(left.value, right.value), left, node)
    if isinstance(left, ConstFloat) and isinstance(right, ConstFloat):
        return _float(floats(left.value, right.value), left, node)
    return None


def _fold_add(node: BinaryExpr) -> Expr | None:
    result = _arithmetic(node, lambda a, b: a + b, lambda a, b: a + b)
    if result is not None:
        return result
    if _is_const(node.left, 0):
        return node.right
    return node.left if _is_const(node.right, 0) else None


def _fold_sub(node: BinaryExpr) -> Expr | None:
    result = _arithmetic(node, lambda a, b: a - b, lambda a, b: a - b)
    if result is not None:
        return result
    return node.left if _is_const(node.right, 0) else None


def _fold_mul(node: BinaryExpr) -> Expr | None:
    result = _arithmetic(node, lambda a, b: a * b, lambda a, b: a * b)
    if result is not None:
        return result
    left, right = node.left, node.right
    for constant, other in ((left, right), (right, left)):
        if _is_const(constant, 1):
            return other
        if isinstance(constant, ConstInt) and constant.value == 0:
            return constant
    return None


def _fold_floor_div(node: BinaryExpr) -> Expr | None:
    left, right = node.left, node.right
    if not isinstance(right, ConstInt):
        return None
    if right.value == 0:
        raise ValueError(located("Floor division by zero", node.span))
    if isinstance(left, ConstInt):
        if left.value == INT64_MIN and right.value == -1:
            raise ValueError(f"Floor division of {left.value} by -1 does not fit into 64 bits")
        return _int(left.value // right.value, left, node)
    return left if right.value == 1 else None


def _fold_floor_mod(node: BinaryExpr) -> Expr | None:
    left, right = node.left, node.right
    if not isinstance(right, ConstInt):
        return None
    if right.value == 0:
        raise ValueError(located("Floor modulo by zero", node.span))
    if isinstance(left, ConstInt):
        return _int(left.value % right.value, left, node)
    return ConstInt(0, dtype_of(left), node.span) if right.value == 1 else None


def _fold_float_div(node: BinaryExpr) -> Expr | None:
    left, right = node.left, node.right
    if isinstance(left, ConstFloat) and isinstance(right, ConstFloat):
        return _float(_ieee_divide(left.value, right.value), left, node)
    return left if isinstance(right, ConstFloat) and right.value == 1.0 else None


def _ieee_divide(a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    if a == 0.0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _fold_pow(node: BinaryExpr) -> Expr | None:
    left, right = node.left, node.right
    if isinstance(left, ConstInt) and isinstance(right, ConstInt):
        return _fold_int_pow(left, right, node)
    if isinstance(left, ConstFloat) and isinstance(right, ConstFloat):
        return _fold_float_pow(left, right, node)
    if _is_const(left, 1):
        return left
    if _is_const(right, 0):
        return _one_like(left, node)
    return left if _is_const(right, 1) else None


def _fold_int_pow(left: ConstInt, right: ConstInt, node: BinaryExpr) -> Expr | None:
    base, exponent = left.value, right.value
    if exponent < 0:
        raise ValueError(f"Integer power with the negative exponent {exponent}")
    if abs(base) > 1 and exponent > 64:
        return None  # out of range without computing it
    return _int(base**exponent, left, node)


def _fold_float_pow(left: ConstFloat, right: ConstFloat, node: BinaryExpr) -> Expr | None:
    try:
        value = left.value**right.value
    except (OverflowError, ZeroDivisionError):
        return None
    return None if isinstance(value, complex) else _float(value, left, node)


def _one_like(expr: Expr, node: Expr) -> Expr:
    dtype = dtype_of(expr)
    return ConstFloat(1.0, dtype, node.span) if dtype.is_float() else ConstInt(1, dtype, node.span)


def _fold_min(node: BinaryExpr) -> Expr | None:
    return node.left if node.left is node.right else _arithmetic(node, min, min)


def _fold_max(node: BinaryExpr) -> Expr | None:
    return node.left if node.left is node.right else _arithmetic(node, max, max)


def _comparison(
    compare: Callable[[float, float], bool],
) -> Callable[[BinaryExpr], Expr | None]:
    def fold(node: BinaryExpr) -> Expr | None:
        left, right = node.left, node.right
        same_kind = (isinstance(left, ConstInt) and isinstance(right, ConstInt)) or (
            isinstance(left, ConstFloat) and isinstance(right, ConstFloat)
        )
        if not same_kind:
            return None
        assert isinstance(left, ConstInt | ConstFloat)
        assert isinstance(right, ConstInt | ConstFloat)
        return ConstBool(compare(left.value, right.value), node.span)

    return fold


def _fold_and(node: BinaryExpr) -> Expr | None:
    for constant, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(constant, ConstBool):
            return other if constant.value else ConstBool(False, node.span)
    return None


def _fold_or(node: BinaryExpr) -> Expr | None:
    for constant, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(constant, ConstBool):
            return ConstBool(True, node.span) if constant.value else other
    return None


def _fold_xor(node: BinaryExpr) -> Expr | None:
    left, right = node.left, node.right
    if isinstance(left, ConstBool) and isinstance(right, ConstBool):
        return ConstBool(left.value != right.value, node.span)
    return None


def _bitwise(compute: Callable[[int, int], int]) -> Callable[[BinaryExpr], Expr | None]:
    def fold(node: BinaryExpr) -> Expr | None:
        left, right = node.left, node.right
        if isinstance(left, ConstInt) and isinstance(right, ConstInt):
            return _int(compute(left.value, right.value), left, node)
        return None

    return fold


def _shift(compute: Callable[[int, int], int]) -> Callable[[BinaryExpr], Expr | None]:
    def fold(node: BinaryExpr) -> Expr | None:
        left, right = node.left, node.right
        if isinstance(left, ConstInt) and isinstance(right, ConstInt) and 0 <= right.value <= 63:
            return _int(compute(left.value, right.value), left, node)
        return None

    return fold


_BINARY: dict[type[BinaryExpr], Callable[[BinaryExpr], Expr | None]] = {
    nodes.Add: _fold_add,
    nodes.Sub: _fold_sub,
    nodes.Mul: _fold_mul,
    nodes.FloorDiv: _fold_floor_div,
    nodes.FloorMod: _fold_floor_mod,
    nodes.FloatDiv: _fold_float_div,
    nodes.Pow: _fold_pow,
    nodes.Min: _fold_min,
    nodes.Max: _fold_max,
    nodes.Eq: _comparison(lambda a, b: a == b),
    nodes.Ne: _comparison(lambda a, b: a != b),
    nodes.Lt: _comparison(lambda a, b: a < b),
    nodes.Le: _comparison(lambda a, b: a <= b),
    nodes.Gt: _comparison(lambda a, b: a > b),
    nodes.Ge: _comparison(lambda a, b: a >= b),
    nodes.And: _fold_and,
    nodes.Or: _fold_or,
    nodes.Xor: _fold_xor,
    nodes.BitAnd: _bitwise(lambda a, b: a & b),
    nodes.BitOr: _bitwise(lambda a, b: a | b),
    nodes.BitXor: _bitwise(lambda a, b: a ^ b),
    nodes.BitShiftLeft: _shift(lambda a, b: a << b),
    nodes.BitShiftRight: _shift(lambda a, b: a >> b),
}


def _fold_unary(node: UnaryExpr) -> Expr | None:
    operand = node.operand
    if isinstance(operand, ConstBool):
        return ConstBool(not operand.value, node.span) if isinstance(node, nodes.Not) else None
    if isinstance(operand, ConstInt):
        if isinstance(node, nodes.Neg):
            return _int(-operand.value, operand, node)
        if isinstance(node, nodes.Abs):
            return _int(abs(operand.value), operand, node)
        if isinstance(node, nodes.BitNot):
            return _int(~operand.value, operand, node)
    if isinstance(operand, ConstFloat):
        if isinstance(node, nodes.Neg):
            return _float(-operand.value, operand, node)
        if isinstance(node, nodes.Abs):
            return _float(abs(operand.value), operand, node)
    return None
