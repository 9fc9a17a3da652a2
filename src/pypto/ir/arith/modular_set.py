"""Which residue class an integer expression lies in: `coeff * k + base` for some integer k."""

from __future__ import annotations

from collections.abc import Callable

from pypto.core.dtype import DataType
from pypto.ir import expr as nodes
from pypto.ir.arith.const_int_bound import conjuncts
from pypto.ir.arith.fold import dtype_of, is_int
from pypto.ir.arith.integers import extended_euclidean, gcd
from pypto.ir.arith.traversal import evaluate
from pypto.ir.expr import BinaryExpr, ConstBool, ConstInt, Expr, Var


class ModularSet:
    """The integers `coeff * k + base`; coeff 0 means exactly `base`.

    In normal form, which a positive coefficient is brought to, base is in [0, coeff). A negative coefficient
    is kept, and rejected where the set is stated about a variable.
    """

    __slots__ = ("base", "coeff")

    def __init__(self, coeff: int, base: int) -> None:
        self.coeff = coeff
        self.base = base % coeff if coeff > 0 else base

    def is_exact(self) -> bool:
        """Say whether the set has one member."""
        return self.coeff == 0

    def is_everything(self) -> bool:
        """Say whether nothing is known."""
        return self.coeff == 1

    def __repr__(self) -> str:
        return f"ModularSet(coeff={self.coeff}, base={self.base})"


_EVERYTHING = ModularSet(1, 0)


class ModularSetAnalyzer:
    """Residue classes of expressions from those of variables."""

    def __init__(self) -> None:
        self._sets: dict[Var, ModularSet] = {}
        self._known: dict[Expr, ModularSet] = {}

    def __call__(self, expr: Expr) -> ModularSet:
        """Return the residue class of an expression."""
        return evaluate(expr, self._known, self._leave)

    def update(self, var: Var, value: ModularSet) -> None:
        """State the residue class of a variable; raises ValueError for a negative coefficient."""
        if value.coeff < 0:
            raise ValueError(f"the coefficient of a modular set must be non-negative, got {value.coeff}")
        self._sets[var] = value
        self._known.clear()

    def unbind(self, var: Var) -> None:
        """Forget what was stated about a variable."""
        if self._sets.pop(var, None) is not None:
            self._known.clear()

    def enter_constraint(self, constraint: Expr) -> Callable[[], None] | None:
        """Tighten variables by `var % c == b` and `var == c`; return what undoes it, None without effect."""
        undo: list[tuple[Var, ModularSet | None]] = []
        for condition in conjuncts(constraint):
            stated = _stated_class(condition)
            if stated is not None:
                var, limit = stated
                undo.append((var, self._sets.get(var)))
                self.update(var, _intersection(self(var), limit))
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

    def _leave(self, expr: Expr) -> ModularSet:
        if isinstance(expr, ConstInt | ConstBool):
            return ModularSet(0, int(expr.value))
        if isinstance(expr, Var):
            return self._sets.get(expr, _EVERYTHING)
        if isinstance(expr, nodes.Cast):
            return self._cast(expr)
        if isinstance(expr, nodes.Neg):
            operand = self._known[expr.operand]
            return ModularSet(operand.coeff, -operand.base)
        rule = _RULES.get(type(expr))
        if rule is None or not isinstance(expr, BinaryExpr) or not is_int(expr):
            return _EVERYTHING
        return rule(self._known[expr.left], self._known[expr.right])

    def _cast(self, cast: nodes.UnaryExpr) -> ModularSet:
        """Return the operand's class as far as the cast keeps it: one that wraps keeps the low bits."""
        operand = cast.operand
        if not (is_int(cast) and is_int(operand)):
            return _EVERYTHING
        known = self._known[operand]
        if known.is_exact():
            return known if _holds(cast.dtype, known.base) else _EVERYTHING
        source, target = dtype_of(operand), cast.dtype
        widens = target.get_bit() >= 64 or (
            target.get_bit() >= source.get_bit() and target.is_unsigned_int() == source.is_unsigned_int()
        )
        if widens:
            return known
        if not _is_power_of_two(known.coeff):
            return _EVERYTHING
        return ModularSet(min(known.coeff, 1 << target.get_bit()), known.base)


def _holds(dtype: DataType, value: int) -> bool:
    """Say whether an integer type represents a value."""
    bits: int = dtype.get_bit()
    if dtype.is_unsigned_int():
        return 0 <= value < 1 << bits
    return -(1 << bits - 1) <= value < 1 << bits - 1


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _add(a: ModularSet, b: ModularSet) -> ModularSet:
    return ModularSet(gcd(a.coeff, b.coeff), a.base + b.base)


def _sub(a: ModularSet, b: ModularSet) -> ModularSet:
    return ModularSet(gcd(a.coeff, b.coeff), a.base - b.base)


def _mul(a: ModularSet, b: ModularSet) -> ModularSet:
    coeff = gcd(gcd(a.coeff * b.coeff, a.coeff * b.base), a.base * b.coeff)
    return ModularSet(coeff, a.base * b.base)


def _union(a: ModularSet, b: ModularSet) -> ModularSet:
    if a.is_exact() and b.is_exact():
        return a if a.base == b.base else _EVERYTHING
    return ModularSet(gcd(gcd(a.coeff, b.coeff), a.base - b.base), a.base)


def _floor_div(a: ModularSet, b: ModularSet) -> ModularSet:
    divisor = b.base
    if not b.is_exact() or divisor == 0:
        return _EVERYTHING
    if a.is_exact():
        return ModularSet(0, a.base // divisor)
    if a.coeff % divisor == 0 and (a.base == 0 or (a.base > 0 and divisor > 0)):
        return ModularSet(abs(a.coeff // divisor), a.base // divisor)
    return _EVERYTHING


def _floor_mod(a: ModularSet, b: ModularSet) -> ModularSet:
    divisor = b.base
    if not b.is_exact() or divisor == 0:
        return _EVERYTHING
    if a.is_exact():
        return ModularSet(0, a.base % divisor)
    return ModularSet(gcd(a.coeff, divisor), a.base)


def _bit_and(a: ModularSet, b: ModularSet) -> ModularSet:
    for value, mask in ((a, b), (b, a)):
        if mask.is_exact() and mask.base >= 0 and _is_power_of_two(mask.base + 1):
            return _floor_mod(value, ModularSet(0, mask.base + 1))
    return _EVERYTHING


def _shift_left(a: ModularSet, b: ModularSet) -> ModularSet:
    if b.is_exact() and 0 <= b.base < 63:
        return _mul(a, ModularSet(0, 2**b.base))
    return _EVERYTHING


def _shift_right(a: ModularSet, b: ModularSet) -> ModularSet:
    if b.is_exact() and 0 <= b.base < 63:
        return _floor_div(a, ModularSet(0, 2**b.base))
    return _EVERYTHING


_RULES: dict[type[Expr], Callable[[ModularSet, ModularSet], ModularSet]] = {
    nodes.Add: _add,
    nodes.Sub: _sub,
    nodes.Mul: _mul,
    nodes.Min: _union,
    nodes.Max: _union,
    nodes.FloorDiv: _floor_div,
    nodes.FloorMod: _floor_mod,
    nodes.BitAnd: _bit_and,
    nodes.BitShiftLeft: _shift_left,
    nodes.BitShiftRight: _shift_right,
}


def _stated_class(condition: Expr) -> tuple[Var, ModularSet] | None:
    """Return what `var % c == b` or `var == c` says, None for any other condition."""
    if not isinstance(condition, nodes.Eq):
        return None
    left, right = condition.left, condition.right
    if isinstance(left, ConstInt):
        left, right = right, left
    if not isinstance(right, ConstInt):
        return None
    if isinstance(left, Var):
        return left, ModularSet(0, right.value)
    if (
        isinstance(left, nodes.FloorMod)
        and isinstance(left.left, Var)
        and isinstance(left.right, ConstInt)
        and left.right.value > 0
    ):
        return left.left, ModularSet(left.right.value, right.value)
    return None


def _intersection(a: ModularSet, b: ModularSet) -> ModularSet:
    """Return the common class (Chinese remainder theorem); everything if there is none."""
    if a.is_everything():
        return b
    if b.is_everything():
        return a
    if a.is_exact() or b.is_exact():
        exact, other = (a, b) if a.is_exact() else (b, a)
        difference = exact.base - other.base
        matches = difference == 0 if other.is_exact() else difference % other.coeff == 0
        return exact if matches else _EVERYTHING
    divisor, x, _ = extended_euclidean(a.coeff, b.coeff)
    difference = b.base - a.base
    if difference % divisor:
        return _EVERYTHING
    coeff = a.coeff // divisor * b.coeff
    return ModularSet(coeff, a.base + a.coeff * (x * (difference // divisor)))
