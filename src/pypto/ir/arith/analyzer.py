"""The analyzers together: each learns what is stated, and proofs use all of them."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from pypto.core.errors import internal_error
from pypto.ir import expr as nodes
from pypto.ir.arith.canonical_simplify import CanonicalSimplifier
from pypto.ir.arith.const_int_bound import ConstIntBound, ConstIntBoundAnalyzer, conjuncts
from pypto.ir.arith.fold import binary, dtype_of, is_float
from pypto.ir.arith.int_set import IntSet, IntSetAnalyzer
from pypto.ir.arith.modular_set import ModularSetAnalyzer
from pypto.ir.arith.rewrite_simplify import RewriteSimplifier
from pypto.ir.arith.transitive_comparison import CompareResult, TransitiveComparisonAnalyzer
from pypto.ir.expr import BinaryExpr, ConstBool, ConstInt, Expr, Var
from pypto.ir.node import expect

_COMPARISONS: dict[type[Expr], CompareResult] = {
    nodes.Eq: CompareResult.kEQ,
    nodes.Ne: CompareResult.kNE,
    nodes.Lt: CompareResult.kLT,
    nodes.Le: CompareResult.kLE,
    nodes.Gt: CompareResult.kGT,
    nodes.Ge: CompareResult.kGE,
}


class ConstraintContext:
    """A condition that holds while the context is entered.

    It is entered at creation and left by `exit_scope()` or at the end of a `with` block. Contexts are left in
    reverse order; leaving one twice is harmless.
    """

    def __init__(self, analyzer: Analyzer, constraint: Expr) -> None:
        self._analyzer = analyzer
        self._undo = analyzer._enter(self, constraint)
        self._is_active = True

    def exit_scope(self) -> None:
        """Leave the context; InternalError if it is not the innermost one."""
        if not self._is_active:
            return
        self._analyzer._leave(self)
        self._is_active = False
        for undo in reversed(self._undo):
            undo()

    def __enter__(self) -> ConstraintContext:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.exit_scope()


class Analyzer:
    """Simplification and proofs about integer expressions, from what is known of their variables."""

    def __init__(self) -> None:
        self.const_int_bound = ConstIntBoundAnalyzer()
        self.modular_set = ModularSetAnalyzer()
        self.rewrite_simplify = RewriteSimplifier(self.const_int_bound)
        self.transitive_cmp = TransitiveComparisonAnalyzer()
        self.int_set = IntSetAnalyzer(self.rewrite_simplify)
        self._canonical = CanonicalSimplifier()
        self._contexts: list[ConstraintContext] = []

    # --- what is known ---

    def bind(self, var: Var, value: Expr | int, hi_exclusive: int | None = None) -> None:
        """State `var == value`, or `value <= var < hi_exclusive` for two integers.

        Raises:
            ValueError: the range is empty.
            TypeError: an end of the range is an expression.
        """
        expect(var, Var, "Analyzer.bind: the variable")
        expect(value, (Expr, int), "Analyzer.bind: the value")
        if hi_exclusive is not None and not (isinstance(value, int) and isinstance(hi_exclusive, int)):
            raise TypeError(f"bind of '{var.name_hint}': the ends of a range are integers")
        if isinstance(value, Expr):
            self._bind_value(var, self.simplify(value))
            return
        if hi_exclusive is None or hi_exclusive <= value:
            raise ValueError(
                f"bind of '{var.name_hint}': max_val_exclusive > min_val is required, "
                f"got [{value}, {hi_exclusive})"
            )
        if hi_exclusive == value + 1:
            self._bind_value(var, ConstInt(value, dtype_of(var), var.span))
            return
        dtype = dtype_of(var)
        self.const_int_bound.bind(var, value, hi_exclusive)
        self.transitive_cmp.bind(var, value, hi_exclusive)
        self.int_set.update(
            var, IntSet(ConstInt(value, dtype, var.span), ConstInt(hi_exclusive - 1, dtype, var.span))
        )

    def _bind_value(self, var: Var, value: Expr) -> None:
        self.rewrite_simplify.update(var, value)
        self._canonical.update(var, value)
        self.const_int_bound.update(var, self.const_int_bound(value))
        self.modular_set.update(var, self.modular_set(value))
        self.transitive_cmp.bind(var, value)
        self.int_set.update(var, IntSet.single_point(value))

    def unbind(self, var: Var) -> None:
        """Forget everything stated about a variable."""
        self.rewrite_simplify.update(var, None)
        self._canonical.update(var, None)
        self.const_int_bound.unbind(var)
        self.modular_set.unbind(var)
        self.transitive_cmp.unbind(var)
        self.int_set.unbind(var)

    def constraint_context(self, constraint: Expr) -> ConstraintContext:
        """Enter a condition and return the context that leaves it."""
        return ConstraintContext(self, constraint)

    def _enter(self, context: ConstraintContext, constraint: Expr) -> list[Callable[[], None]]:
        self._contexts.append(context)
        condition = self.rewrite_simplify(constraint)
        undo = [
            self.const_int_bound.enter_constraint(condition),
            self.modular_set.enter_constraint(condition),
            self.rewrite_simplify.enter_constraint(condition),
            self.transitive_cmp.enter_constraint(condition),
            self.int_set.enter_constraint(condition),
        ]
        return [each for each in undo if each is not None]

    def _leave(self, context: ConstraintContext) -> None:
        if not self._contexts or self._contexts[-1] is not context:
            raise internal_error("constraint contexts must be left in reverse order")
        self._contexts.pop()

    # --- simplification ---

    def simplify(self, expr: Expr, steps: int = 2) -> Expr:
        """Apply the rewriter `steps` times; raises ValueError for a negative count."""
        if steps < 0:
            raise ValueError(f"simplify: steps must not be negative, got {steps}")
        for _ in range(steps):
            simplified = self.rewrite_simplify(expr)
            if simplified is expr:
                break
            expr = simplified
        return expr

    # --- proofs: False means "not proven" ---

    def can_prove_greater_equal(self, expr: Expr, value: int) -> bool:
        """Say whether expr >= value is proven."""
        return self._bound(expr).min_value >= value

    def can_prove_less(self, expr: Expr, value: int) -> bool:
        """Say whether expr < value is proven."""
        return self._bound(expr).max_value < value

    def can_prove_equal(self, a: Expr, b: Expr) -> bool:
        """Say whether a == b is proven."""
        if a is b:
            return True
        if is_float(a) or is_float(b):
            return False
        return _is_zero(self._bound(binary(nodes.Sub, a, b, a.span)))

    def can_prove(self, condition: Expr) -> bool:
        """Say whether a condition is proven: by constants, bounds, chains of facts, or symbolic ends."""
        return all(self._proves(part) for part in conjuncts(self.simplify(condition)))

    def _proves(self, condition: Expr) -> bool:
        if isinstance(condition, ConstBool | ConstInt):
            return bool(condition.value)
        relation = _COMPARISONS.get(type(condition))
        if relation is None:
            return False
        assert isinstance(condition, BinaryExpr)
        left, right = condition.left, condition.right
        if is_float(left) or is_float(right):
            return False
        if _implies(self._bound(binary(nodes.Sub, left, right, condition.span)), relation):
            return True
        compared = self.transitive_cmp.try_compare(left, right)
        if compared != CompareResult.kInconsistent and (compared & relation) == compared:
            return True
        if relation in (CompareResult.kEQ, CompareResult.kNE):
            return False
        return self._prove_by_ends(left, right, relation)

    def _prove_by_ends(self, left: Expr, right: Expr, relation: CompareResult) -> bool:
        """Replace one side by the symbolic end that makes the comparison hardest."""
        is_less = relation in (CompareResult.kLT, CompareResult.kLE)
        left_set, right_set = self.int_set(left), self.int_set(right)
        left_end = left_set.max if is_less else left_set.min
        right_end = right_set.min if is_less else right_set.max
        pairs = [(left_end, right), (left, right_end)]
        for a, b in pairs:
            if a is None or b is None or (a is left and b is right):
                continue
            difference = self._canonical(binary(nodes.Sub, a, b, a.span))
            if _implies(self.const_int_bound(difference), relation):
                return True
        return False

    def _bound(self, expr: Expr) -> ConstIntBound:
        return self.const_int_bound(self.simplify(expr))


def _is_zero(bound: ConstIntBound) -> bool:
    return bound.min_value == 0 == bound.max_value


def _implies(difference: ConstIntBound, relation: CompareResult) -> bool:
    """Say whether a bound on `a - b` proves the relation of a to b."""
    low, high = difference.min_value, difference.max_value
    if relation == CompareResult.kEQ:
        return low == 0 == high
    if relation == CompareResult.kNE:
        return low > 0 or high < 0
    if relation == CompareResult.kLT:
        return high < 0
    if relation == CompareResult.kLE:
        return high <= 0
    if relation == CompareResult.kGT:
        return low > 0
    return low >= 0
