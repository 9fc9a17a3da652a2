"""Random expressions: what analysis says of them holds for every value of their variables."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pypto import ir
from pypto.arith import (
    Analyzer,
    CanonicalSimplifier,
    ConstIntBound,
    ConstIntBoundAnalyzer,
    IntSetAnalyzer,
    ModularSet,
    ModularSetAnalyzer,
    RewriteSimplifier,
)
from tests.arith.expressions import (
    VARIABLES,
    assignments,
    bool_exprs,
    c,
    int_exprs,
    value_of,
)

fast = settings(max_examples=300, deadline=None)
Values = dict[ir.Var, int]

ranges = st.fixed_dictionaries(
    {var: st.tuples(st.integers(-10, 10), st.integers(0, 8), st.integers(0, 8)) for var in VARIABLES}
)


def in_ranges(chosen: dict[ir.Var, tuple[int, int, int]]) -> tuple[dict[ir.Var, tuple[int, int]], Values]:
    """Ranges lo <= var < hi, and a value of each variable inside its range."""
    limits = {var: (low, low + max(width, offset) + 1) for var, (low, width, offset) in chosen.items()}
    return limits, {var: low + offset for var, (low, _, offset) in chosen.items()}


@fast
@given(int_exprs, assignments)
def test_the_rewriter_keeps_the_value(expr: ir.Expr, values: Values) -> None:
    assert value_of(RewriteSimplifier()(expr), values) == value_of(expr, values)


@fast
@given(bool_exprs, assignments)
def test_the_rewriter_keeps_the_truth_of_conditions(expr: ir.Expr, values: Values) -> None:
    assert bool(value_of(RewriteSimplifier()(expr), values)) == bool(value_of(expr, values))


@fast
@given(int_exprs, assignments)
def test_the_canonical_form_keeps_the_value(expr: ir.Expr, values: Values) -> None:
    assert value_of(CanonicalSimplifier()(expr), values) == value_of(expr, values)


@fast
@given(int_exprs, ranges, st.integers(0, 3))
def test_simplification_with_ranges_keeps_the_value(expr: ir.Expr, chosen: dict, steps: int) -> None:
    limits, values = in_ranges(chosen)
    analyzer = Analyzer()
    for var, (low, high) in limits.items():
        analyzer.bind(var, low, high)
    assert value_of(analyzer.simplify(expr, steps), values) == value_of(expr, values)


@fast
@given(int_exprs, ranges)
def test_a_constant_bound_holds_the_value(expr: ir.Expr, chosen: dict) -> None:
    limits, values = in_ranges(chosen)
    analyzer = ConstIntBoundAnalyzer()
    for var, (low, high) in limits.items():
        analyzer.bind(var, low, high)
    bound = analyzer(expr)
    assert bound.min_value <= value_of(expr, values) <= bound.max_value


@fast
@given(int_exprs, assignments, st.integers(1, 6))
def test_a_modular_set_holds_the_value(expr: ir.Expr, values: Values, coeff: int) -> None:
    analyzer = ModularSetAnalyzer()
    for var, value in values.items():
        analyzer.update(var, ModularSet(coeff, value % coeff))
    known = analyzer(expr)
    difference = value_of(expr, values) - known.base
    assert difference == 0 if known.coeff == 0 else difference % known.coeff == 0


@fast
@given(int_exprs, ranges)
def test_a_symbolic_interval_holds_the_value(expr: ir.Expr, chosen: dict) -> None:
    limits, values = in_ranges(chosen)
    analyzer = IntSetAnalyzer()
    for var, (low, high) in limits.items():
        analyzer.bind(var, c(low), c(high))
    interval = analyzer(expr)
    actual = value_of(expr, values)
    assert interval.min is None or value_of(interval.min, values) <= actual
    assert interval.max is None or actual <= value_of(interval.max, values)


@fast
@given(bool_exprs, ranges)
def test_a_proof_is_never_wrong(condition: ir.Expr, chosen: dict) -> None:
    limits, values = in_ranges(chosen)
    analyzer = Analyzer()
    for var, (low, high) in limits.items():
        analyzer.bind(var, low, high)
    if analyzer.can_prove(condition):
        assert value_of(condition, values)


@fast
@given(bool_exprs, bool_exprs, assignments)
def test_a_proof_under_a_constraint_is_never_wrong(given_: ir.Expr, goal: ir.Expr, values: Values) -> None:
    analyzer = Analyzer()
    with analyzer.constraint_context(given_):
        proven = analyzer.can_prove(goal)
    if proven and value_of(given_, values):
        assert value_of(goal, values)


@fast
@given(int_exprs, int_exprs, assignments)
def test_expressions_proven_equal_are_equal(a: ir.Expr, b: ir.Expr, values: Values) -> None:
    if Analyzer().can_prove_equal(a, b):
        assert value_of(a, values) == value_of(b, values)


@fast
@given(bool_exprs, assignments)
def test_facts_of_a_constraint_hold(constraint: ir.Expr, values: Values) -> None:
    analyzer = Analyzer()
    with analyzer.constraint_context(constraint):
        if value_of(constraint, values):
            for var in VARIABLES:
                bound = analyzer.const_int_bound(var)
                assert bound.min_value <= values[var] <= bound.max_value
    everything = [analyzer.const_int_bound(var) for var in VARIABLES]
    assert all(bound.min_value == ConstIntBound.kNegInf for bound in everything)
