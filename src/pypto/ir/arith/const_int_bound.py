"""Constant bounds of integer expressions.

A bound is an inclusive interval; `ConstIntBound.kPosInf` and `kNegInf` stand for "no bound". An interval
operation that leaves 64 bits gives an infinite end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import ClassVar

from pypto.core.dtype import DataType
from pypto.core.errors import internal_error
from pypto.ir import expr as nodes
from pypto.ir.arith.fold import is_int
from pypto.ir.arith.traversal import evaluate
from pypto.ir.expr import BinaryExpr, Cast, ConstBool, ConstFloat, ConstInt, Expr, Var
from pypto.ir.node import expect
from pypto.ir.types import ScalarType

_POS_INF = 2**63 - 1
_NEG_INF = -(2**63 - 1)


class ConstIntBound:
    """An inclusive interval of integers."""

    __slots__ = ("max_value", "min_value")
    kPosInf: ClassVar[int] = _POS_INF
    kNegInf: ClassVar[int] = _NEG_INF

    def __init__(self, min_value: int, max_value: int) -> None:
        self.min_value = min_value
        self.max_value = max_value

    def is_const(self) -> bool:
        """Say whether exactly one value is possible."""
        return self.min_value == self.max_value

    def is_non_negative(self) -> bool:
        """Say whether every possible value is >= 0."""
        return self.min_value >= 0

    def is_positive(self) -> bool:
        """Say whether every possible value is > 0."""
        return self.min_value > 0

    def is_everything(self) -> bool:
        """Say whether nothing is known."""
        return self.min_value == _NEG_INF and self.max_value == _POS_INF

    def __repr__(self) -> str:
        low = "-inf" if self.min_value == _NEG_INF else str(self.min_value)
        high = "+inf" if self.max_value == _POS_INF else str(self.max_value)
        return f"ConstIntBound[{low}, {high}]"


_EVERYTHING = ConstIntBound(_NEG_INF, _POS_INF)
_BOOLEAN = ConstIntBound(0, 1)
_NON_NEGATIVE = ConstIntBound(0, _POS_INF)


def _is_infinite(value: int) -> bool:
    return value in (_POS_INF, _NEG_INF)


def _saturated(value: int) -> int:
    return max(_NEG_INF, min(_POS_INF, value))


def _interval(low: int, high: int) -> ConstIntBound:
    return ConstIntBound(_saturated(low), _saturated(high))


def _plus(a: int, b: int) -> int:
    """Add end points of the same side; an infinite one absorbs the other."""
    if _is_infinite(a):
        return a
    return b if _is_infinite(b) else _saturated(a + b)


def _times(a: int, b: int) -> int:
    if a == 0 or b == 0:
        return 0
    if _is_infinite(a) or _is_infinite(b):
        return _POS_INF if (a > 0) == (b > 0) else _NEG_INF
    return _saturated(a * b)


def _over(a: int, b: int) -> int:
    """Divide an end point by a positive one, rounding down."""
    if _is_infinite(a):
        return a
    if _is_infinite(b):
        return 0 if a >= 0 else -1
    return a // b


def default_bound(var: Var) -> ConstIntBound:
    """Return what is known of an unbound variable: an INDEX is not negative."""
    if isinstance(var.type, ScalarType):
        if var.type.dtype == DataType.INDEX:
            return _NON_NEGATIVE
        if var.type.dtype == DataType.BOOL:
            return _BOOLEAN
    return _EVERYTHING


def intersection(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound | None:
    """Return the common interval, None if it is empty."""
    low, high = max(a.min_value, b.min_value), min(a.max_value, b.max_value)
    return ConstIntBound(low, high) if low <= high else None


class ConstIntBoundAnalyzer:
    """Bounds of expressions from bounds of variables. Results are kept until a variable's bound changes."""

    def __init__(self) -> None:
        self._bounds: dict[Var, ConstIntBound] = {}
        self._known: dict[Expr, ConstIntBound] = {}

    def __call__(self, expr: Expr) -> ConstIntBound:
        """Return the bound of an expression."""
        return evaluate(expr, self._known, self._leave)

    def bind(self, var: Var, lo: int, hi_exclusive: int) -> None:
        """State that lo <= var < hi_exclusive; raises ValueError if no value remains."""
        if hi_exclusive <= lo:
            raise ValueError(
                f"bind of '{var.name_hint}' requires max_val_exclusive > min_val, got [{lo}, {hi_exclusive})"
            )
        self.update(var, ConstIntBound(lo, hi_exclusive - 1))

    def update(self, var: Var, bound: ConstIntBound) -> None:
        """Replace the bound of a variable; raises ValueError if it is empty."""
        expect(bound, ConstIntBound, "the bound of a variable")
        if bound.min_value > bound.max_value:
            raise ValueError(
                f"bound of '{var.name_hint}' is empty: min {bound.min_value} > max {bound.max_value}"
            )
        self._bounds[var] = bound
        self._known.clear()

    def unbind(self, var: Var) -> None:
        """Forget what was stated about a variable."""
        if self._bounds.pop(var, None) is not None:
            self._known.clear()

    def get(self, var: Var) -> ConstIntBound | None:
        """Return the stated bound of a variable, None if there is none."""
        return self._bounds.get(var)

    def enter_constraint(self, constraint: Expr) -> Callable[[], None]:
        """Tighten variables by a condition; return what undoes it."""
        undo: list[tuple[Var, ConstIntBound | None]] = []
        for var, limit in _constraint_limits(constraint):
            present = self(var)
            tightened = intersection(present, limit)
            if tightened is not None:
                undo.append((var, self._bounds.get(var)))
                self.update(var, tightened)

        def leave() -> None:
            while undo:
                var, before = undo.pop()
                if before is None:
                    self.unbind(var)
                else:
                    self.update(var, before)

        return leave

    def _leave(self, expr: Expr) -> ConstIntBound:
        if isinstance(expr, Var):
            stated = self._bounds.get(expr)
            return default_bound(expr) if stated is None else stated
        if isinstance(expr, ConstInt):
            return ConstIntBound(expr.value, expr.value)
        if isinstance(expr, ConstBool):
            return ConstIntBound(int(expr.value), int(expr.value))
        if isinstance(expr, ConstFloat):
            return _float_bound(expr.value)
        rule = _BOUND_RULES.get(type(expr))
        if rule is None or (type(expr) in _INTEGER_ONLY and not is_int(expr)):
            return _EVERYTHING
        if isinstance(expr, BinaryExpr):
            return rule(_one_sided(self._known[expr.left]), _one_sided(self._known[expr.right]))
        assert isinstance(expr, nodes.UnaryExpr)
        operand = _one_sided(self._known[expr.operand])
        return _cast_bound(expr, operand) if isinstance(expr, Cast) else rule(operand, operand)


def _one_sided(bound: ConstIntBound) -> ConstIntBound:
    """Move an extreme number that stands on the side where it does not mean "no bound" one step away."""
    if bound.min_value < _POS_INF and bound.max_value > _NEG_INF:
        return bound
    return ConstIntBound(min(bound.min_value, _POS_INF - 1), max(bound.max_value, _NEG_INF + 1))


def _float_bound(value: float) -> ConstIntBound:
    if not math.isfinite(value):
        return _EVERYTHING
    return _interval(math.floor(value), math.ceil(value))


def _add(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    return ConstIntBound(_plus(a.min_value, b.min_value), _plus(a.max_value, b.max_value))


def _neg(a: ConstIntBound, _: ConstIntBound) -> ConstIntBound:
    return _interval(-a.max_value, -a.min_value)


def _sub(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    return _add(a, _neg(b, b))


def _mul(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    corners = [_times(x, y) for x in (a.min_value, a.max_value) for y in (b.min_value, b.max_value)]
    return ConstIntBound(min(corners), max(corners))


def _floor_div(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    if b.min_value <= 0 <= b.max_value:
        return _EVERYTHING
    if b.max_value < 0:
        return _floor_div(_neg(a, a), _neg(b, b))
    low = _over(a.min_value, b.max_value if a.min_value >= 0 else b.min_value)
    high = _over(a.max_value, b.min_value if a.max_value >= 0 else b.max_value)
    return ConstIntBound(low, high)


def _floor_mod(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    if b.min_value <= 0:
        return _EVERYTHING
    largest = b.max_value if _is_infinite(b.max_value) else b.max_value - 1
    if a.min_value >= 0:
        return ConstIntBound(0, min(a.max_value, largest))
    return ConstIntBound(0, largest)


def _min(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    return ConstIntBound(min(a.min_value, b.min_value), min(a.max_value, b.max_value))


def _max(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    return ConstIntBound(max(a.min_value, b.min_value), max(a.max_value, b.max_value))


def _pow(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    if not b.is_const() or b.min_value < 0:
        return _EVERYTHING
    exponent = b.min_value
    if exponent == 0:
        return ConstIntBound(1, 1)
    if exponent == 1:
        return a
    if a.min_value < 0:
        return _EVERYTHING
    return ConstIntBound(_power(a.min_value, exponent), _power(a.max_value, exponent))


def _power(base: int, exponent: int) -> int:
    if base <= 1:
        return base
    if _is_infinite(base) or exponent > 63:
        return _POS_INF
    return _saturated(base**exponent)


def _boolean(_a: ConstIntBound, _b: ConstIntBound) -> ConstIntBound:
    return _BOOLEAN


def _bit_and(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    if a.min_value >= 0 and b.min_value >= 0:
        return ConstIntBound(0, min(a.max_value, b.max_value))
    return _EVERYTHING


def _bit_or(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    if a.min_value >= 0 and b.min_value >= 0:
        return ConstIntBound(max(a.min_value, b.min_value), _plus(a.max_value, b.max_value))
    return _EVERYTHING


def _shift_left(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    if a.min_value < 0 or b.min_value < 0 or b.max_value >= 63:
        return _EVERYTHING
    return ConstIntBound(_times(a.min_value, 2**b.min_value), _times(a.max_value, 2**b.max_value))


def _shift_right(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    if a.min_value < 0 or b.min_value < 0 or b.max_value >= 63:
        return _EVERYTHING
    return ConstIntBound(_over(a.min_value, 2**b.max_value), _over(a.max_value, 2**b.min_value))


def _abs(a: ConstIntBound, _: ConstIntBound) -> ConstIntBound:
    if a.min_value >= 0:
        return a
    if a.max_value <= 0:
        return _neg(a, a)
    return ConstIntBound(0, max(-a.min_value, a.max_value))


def _cast_bound(cast: nodes.UnaryExpr, operand: ConstIntBound) -> ConstIntBound:
    """Return the operand's bound if it fits into the target type, else the type's range: a cast wraps."""
    if not is_int(cast):
        return _EVERYTHING
    if cast.dtype.get_bit() >= 64:
        wraps = cast.dtype.is_unsigned_int() and operand.min_value < 0
        return _EVERYTHING if wraps else operand
    target = _type_range(cast.dtype)
    fits = target.min_value <= operand.min_value and operand.max_value <= target.max_value
    return operand if fits else target


def _type_range(dtype: DataType) -> ConstIntBound:
    bits = dtype.get_bit()
    if dtype.is_unsigned_int():
        return ConstIntBound(0, 2**bits - 1)
    return ConstIntBound(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


_BOUND_RULES: dict[type[Expr], Callable[[ConstIntBound, ConstIntBound], ConstIntBound]] = {
    nodes.Add: _add,
    nodes.Sub: _sub,
    nodes.Mul: _mul,
    nodes.FloorDiv: _floor_div,
    nodes.FloorMod: _floor_mod,
    nodes.Min: _min,
    nodes.Max: _max,
    nodes.Pow: _pow,
    nodes.Eq: _boolean,
    nodes.Ne: _boolean,
    nodes.Lt: _boolean,
    nodes.Le: _boolean,
    nodes.Gt: _boolean,
    nodes.Ge: _boolean,
    nodes.And: _boolean,
    nodes.Or: _boolean,
    nodes.Xor: _boolean,
    nodes.Not: _boolean,
    nodes.BitAnd: _bit_and,
    nodes.BitOr: _bit_or,
    nodes.BitShiftLeft: _shift_left,
    nodes.BitShiftRight: _shift_right,
    nodes.Neg: _neg,
    nodes.Abs: _abs,
    nodes.Cast: _abs,
}


_INTEGER_ONLY = (nodes.FloorDiv, nodes.FloorMod, nodes.Pow)


def conjuncts(constraint: Expr) -> Iterator[Expr]:
    """Yield the conditions that a conjunction consists of, left to right."""
    pending = [constraint]
    while pending:
        condition = pending.pop()
        if isinstance(condition, nodes.And):
            pending += [condition.right, condition.left]
        else:
            yield condition


_MIRRORED: dict[type[Expr], type[Expr]] = {
    nodes.Lt: nodes.Gt,
    nodes.Le: nodes.Ge,
    nodes.Gt: nodes.Lt,
    nodes.Ge: nodes.Le,
    nodes.Eq: nodes.Eq,
}


def _constraint_limits(constraint: Expr) -> Iterator[tuple[Var, ConstIntBound]]:
    """Yield what a condition says about single variables compared with constants."""
    for condition in conjuncts(constraint):
        if not isinstance(condition, BinaryExpr) or type(condition) not in _MIRRORED:
            continue
        kind: type[Expr] = type(condition)
        var, constant = condition.left, condition.right
        if isinstance(var, ConstInt):
            var, constant, kind = constant, var, _MIRRORED[kind]
        if isinstance(var, Var) and isinstance(constant, ConstInt) and is_int(var):
            yield var, _limit(kind, constant.value)


def _limit(kind: type[Expr], value: int) -> ConstIntBound:
    if kind is nodes.Lt:
        return _interval(_NEG_INF, value - 1)
    if kind is nodes.Le:
        return _interval(_NEG_INF, value)
    if kind is nodes.Gt:
        return _interval(value + 1, _POS_INF)
    if kind is nodes.Ge:
        return _interval(value, _POS_INF)
    if kind is nodes.Eq:
        return ConstIntBound(value, value)
    raise internal_error(f"no limit for {kind.__name__}")
