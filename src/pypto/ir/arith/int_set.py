"""Symbolic intervals of integer expressions: both ends are expressions, None where there is no bound."""

from __future__ import annotations

from collections.abc import Callable

from pypto.ir import expr as nodes
from pypto.ir.arith.const_int_bound import conjuncts
from pypto.ir.arith.fold import binary, dtype_of, folded, is_int
from pypto.ir.arith.traversal import evaluate
from pypto.ir.expr import BinaryExpr, ConstInt, Expr, Var

Simplify = Callable[[Expr], Expr]
End = Expr | None


class IntSet:
    """An inclusive interval."""

    __slots__ = ("max", "min")

    def __init__(self, min: End, max: End) -> None:
        self.min = min
        self.max = max

    @staticmethod
    def everything() -> IntSet:
        """Return the interval without bounds."""
        return IntSet(None, None)

    @staticmethod
    def single_point(expr: Expr) -> IntSet:
        """Return the interval of one value."""
        return IntSet(expr, expr)

    @staticmethod
    def interval(min: End, max: End) -> IntSet:
        """Return the interval between two expressions."""
        return IntSet(min, max)

    def is_everything(self) -> bool:
        """Say whether nothing is known."""
        return self.min is None and self.max is None

    def is_single_point(self) -> bool:
        """Say whether both ends are the same object."""
        return self.min is not None and self.min is self.max

    def is_nothing(self) -> bool:
        """Say whether the set is empty; that is never found out."""
        return False

    def __repr__(self) -> str:
        return f"IntSet[{self.min}, {self.max}]"


_EVERYTHING = IntSet(None, None)


class IntSetAnalyzer:
    """Symbolic intervals of expressions from those of variables.

    Args:
        simplify: applied to the ends that are built; by default nothing but folding.
    """

    def __init__(self, simplify: Simplify | None = None) -> None:
        self._simplify = simplify if simplify is not None else folded
        self._sets: dict[Var, IntSet] = {}
        self._known: dict[Expr, IntSet] = {}

    def __call__(self, expr: Expr) -> IntSet:
        """Return the interval of an expression."""
        return evaluate(expr, self._known, self._leave)

    def update(self, var: Var, value: IntSet) -> None:
        """State the interval of a variable."""
        self._sets[var] = value
        self._known.clear()

    def bind(self, var: Var, lo: Expr, hi_exclusive: Expr) -> None:
        """State that lo <= var < hi_exclusive."""
        self.update(var, IntSet(lo, self._minus_one(hi_exclusive)))

    def unbind(self, var: Var) -> None:
        """Forget what was stated about a variable."""
        if self._sets.pop(var, None) is not None:
            self._known.clear()

    def enter_constraint(self, constraint: Expr) -> Callable[[], None] | None:
        """Give variables the ends that a conjunction of comparisons states; return what undoes it."""
        undo: list[tuple[Var, IntSet | None]] = []
        for condition in conjuncts(constraint):
            for var, limit in self._limits(condition):
                present = self._sets.get(var, _EVERYTHING)
                undo.append((var, self._sets.get(var)))
                self.update(
                    var,
                    IntSet(
                        present.min if limit.min is None else limit.min,
                        present.max if limit.max is None else limit.max,
                    ),
                )
        if not undo:
            return None

        def leave() -> None:
            while undo:
                var, before = undo.pop()
                if before is None:
                    self.unbind(var)
                else:
                    self.update(var, before)

        return leave

    def _limits(self, condition: Expr) -> list[tuple[Var, IntSet]]:
        """Return the ends that a comparison gives to the variable on either of its sides."""
        if not isinstance(condition, BinaryExpr) or not (is_int(condition.left) and is_int(condition.right)):
            return []
        left, right = condition.left, condition.right
        if isinstance(condition, nodes.Gt | nodes.Ge):
            left, right = right, left
        strict = isinstance(condition, nodes.Lt | nodes.Gt)
        if isinstance(condition, nodes.Eq):
            limits = [(left, IntSet(right, right)), (right, IntSet(left, left))]
        elif isinstance(condition, nodes.Lt | nodes.Le | nodes.Gt | nodes.Ge):
            upper = self._minus_one(right) if strict else right
            lower = self._plus_one(left) if strict else left
            limits = [(left, IntSet(None, upper)), (right, IntSet(lower, None))]
        else:
            return []
        return [(side, limit) for side, limit in limits if isinstance(side, Var)]

    def _plus_one(self, expr: Expr) -> Expr:
        return self._build(nodes.Add, expr, ConstInt(1, dtype_of(expr), expr.span))

    def _minus_one(self, expr: Expr) -> Expr:
        return self._build(nodes.Sub, expr, ConstInt(1, dtype_of(expr), expr.span))

    def _build(self, cls: type[BinaryExpr], left: Expr, right: Expr) -> Expr:
        return self._simplify(binary(cls, left, right, left.span))

    def _combine(self, cls: type[BinaryExpr], left: End, right: End) -> End:
        return None if left is None or right is None else self._build(cls, left, right)

    def _leave(self, expr: Expr) -> IntSet:
        if isinstance(expr, Var):
            return self._sets.get(expr) or IntSet.single_point(expr)
        if isinstance(expr, ConstInt):
            return IntSet.single_point(expr)
        if isinstance(expr, nodes.Eq | nodes.Ne | nodes.Lt | nodes.Le | nodes.Gt | nodes.Ge):
            return IntSet(
                ConstInt(0, dtype_of(expr.left), expr.span), ConstInt(1, dtype_of(expr.left), expr.span)
            )
        if not is_int(expr):
            return _EVERYTHING
        if isinstance(expr, nodes.Neg):
            operand = self._known[expr.operand]
            return IntSet(self._negated(operand.max), self._negated(operand.min))
        if isinstance(expr, nodes.Cast):
            widens = is_int(expr.operand) and expr.dtype.get_bit() >= dtype_of(expr.operand).get_bit()
            same_sign = expr.dtype.is_unsigned_int() == dtype_of(expr.operand).is_unsigned_int()
            return self._known[expr.operand] if widens and same_sign else _EVERYTHING
        if isinstance(expr, BinaryExpr):
            return self._binary(expr, self._known[expr.left], self._known[expr.right])
        return _EVERYTHING

    def _negated(self, end: End) -> End:
        if end is None:
            return None
        return self._simplify(folded(nodes.Neg(end, dtype_of(end), end.span)))

    def _binary(self, expr: BinaryExpr, a: IntSet, b: IntSet) -> IntSet:
        if a.is_single_point() and b.is_single_point() and a.min is expr.left and b.min is expr.right:
            return IntSet.single_point(expr)
        if isinstance(expr, nodes.Add):
            return IntSet(self._combine(nodes.Add, a.min, b.min), self._combine(nodes.Add, a.max, b.max))
        if isinstance(expr, nodes.Sub):
            return IntSet(self._combine(nodes.Sub, a.min, b.max), self._combine(nodes.Sub, a.max, b.min))
        if isinstance(expr, nodes.Mul):
            return self._product(a, b)
        if isinstance(expr, nodes.Min | nodes.Max):
            cls = type(expr)
            return IntSet(self._combine(cls, a.min, b.min), self._combine(cls, a.max, b.max))
        divisor = b.min
        if b.is_single_point() and isinstance(divisor, ConstInt) and divisor.value > 0:
            if isinstance(expr, nodes.FloorDiv):
                return IntSet(
                    self._combine(nodes.FloorDiv, a.min, divisor),
                    self._combine(nodes.FloorDiv, a.max, divisor),
                )
            if isinstance(expr, nodes.FloorMod):
                zero = ConstInt(0, divisor.dtype, expr.span)
                return IntSet(zero, ConstInt(divisor.value - 1, divisor.dtype, expr.span))
        return _EVERYTHING

    def _product(self, a: IntSet, b: IntSet) -> IntSet:
        for interval, factor in ((a, b), (b, a)):
            if factor.is_single_point() and isinstance(factor.min, ConstInt):
                low, high = interval.min, interval.max
                if factor.min.value < 0:
                    low, high = high, low
                return IntSet(
                    self._combine(nodes.Mul, low, factor.min), self._combine(nodes.Mul, high, factor.min)
                )
        if _is_non_negative(a) and _is_non_negative(b):
            return IntSet(self._combine(nodes.Mul, a.min, b.min), self._combine(nodes.Mul, a.max, b.max))
        return _EVERYTHING


def _is_non_negative(interval: IntSet) -> bool:
    return isinstance(interval.min, ConstInt) and interval.min.value >= 0
