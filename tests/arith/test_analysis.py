"""The public interface of integer analysis: folding, helpers, bounds, residues, comparisons, proofs."""

from __future__ import annotations

import math

import pytest

import pypto
from pypto import ir
from pypto.arith import (
    Analyzer,
    CanonicalSimplifier,
    CompareResult,
    ConstIntBound,
    ConstIntBoundAnalyzer,
    IntSet,
    IntSetAnalyzer,
    ModularSet,
    ModularSetAnalyzer,
    RewriteSimplifier,
    TransitiveComparisonAnalyzer,
    extended_euclidean,
    floordiv,
    floormod,
    fold_const,
    gcd,
    lcm,
)
from tests.arith.expressions import BOOL, FP32, INDEX, INT64, S, c, f, i, j, x, y, z


def bounds(analyzer: ConstIntBoundAnalyzer, expr: ir.Expr) -> tuple[int, int]:
    bound = analyzer(expr)
    return bound.min_value, bound.max_value


def fp(value: float) -> ir.ConstFloat:
    return ir.ConstFloat(value, FP32, S)


# --- integers ---


def test_floor_division_rounds_down_and_modulo_takes_the_sign_of_the_divisor() -> None:
    assert (floordiv(-7, 2), floormod(-7, 2), floormod(7, -2)) == (-4, 1, -1)


@pytest.mark.parametrize("pair", [(1, 0), (-(2**63), -1)])
def test_undefined_divisions_are_internal_errors(pair: tuple[int, int]) -> None:
    for function in (floordiv, floormod):
        with pytest.raises(pypto.InternalError):
            function(*pair)


def test_gcd_lcm_and_bezout() -> None:
    assert (gcd(-12, 18), gcd(0, -5), lcm(4, 6), lcm(0, 3)) == (6, 5, 12, 0)
    for a, b in ((240, 46), (-7, 3), (0, 0), (5, 0), (-5, 0)):
        g, u, v = extended_euclidean(a, b)
        assert a * u + b * v == g == gcd(a, b)
    assert extended_euclidean(5, 0)[2] == 1


# --- folding ---


def fold(expr: ir.Expr) -> object:
    result = fold_const(expr)
    return result.value if isinstance(result, ir.ConstInt | ir.ConstBool | ir.ConstFloat) else result


@pytest.mark.parametrize(
    ("cls", "left", "right", "expected"),
    [
        (ir.Add, 2, 3, 5),
        (ir.Sub, 2, 3, -1),
        (ir.Mul, 4, 3, 12),
        (ir.FloorDiv, -7, 2, -4),
        (ir.FloorMod, -7, 2, 1),
        (ir.Min, 2, 3, 2),
        (ir.Max, 2, 3, 3),
        (ir.Pow, 2, 10, 1024),
        (ir.BitAnd, 6, 3, 2),
        (ir.BitOr, 6, 3, 7),
        (ir.BitXor, 6, 3, 5),
        (ir.BitShiftLeft, 1, 4, 16),
        (ir.BitShiftRight, -8, 1, -4),
        (ir.Lt, 2, 3, True),
        (ir.Ge, 2, 3, False),
    ],
)
def test_two_constants_fold(cls: type, left: int, right: int, expected: object) -> None:
    assert fold(cls(c(left), c(right), INT64, S)) == expected


def test_neutral_operands_give_the_other_operand_itself() -> None:
    for expr in (x + c(0), c(0) + x, x - c(0), x * c(1), c(1) * x, x // c(1)):
        assert fold_const(expr) is x
    assert fold(x * c(0)) == 0
    assert fold(x % c(1)) == 0
    assert fold_const(ir.Min(x, x, INT64, S)) is x
    assert fold_const(x + y) is None
    assert fold_const(x) is None


def test_zero_divided_by_something_is_not_folded() -> None:
    assert fold_const(c(0) // x) is None
    assert fold_const(c(0) % x) is None


def test_overflow_is_not_folded() -> None:
    assert fold_const(c(2**63 - 1) + c(1)) is None
    assert fold_const(c(2**62) * c(2)) is None
    assert fold_const(ir.Neg(c(-(2**63)), INT64, S)) is None
    assert fold_const(ir.Pow(c(10), c(10**9), INT64, S)) is None


@pytest.mark.parametrize("cls", [ir.FloorDiv, ir.FloorMod])
def test_division_by_a_constant_zero_raises(cls: type) -> None:
    with pytest.raises(ValueError, match=r"Floor (division|modulo) by zero"):
        fold_const(cls(x, c(0), INT64, S))


def test_a_negative_constant_exponent_raises() -> None:
    with pytest.raises(ValueError, match="negative exponent"):
        fold_const(ir.Pow(c(2), c(-1), INT64, S))


def test_float_division_follows_ieee() -> None:
    assert fold(ir.FloatDiv(fp(1.0), fp(0.0), FP32, S)) == math.inf
    assert math.isnan(fold(ir.FloatDiv(fp(0.0), fp(0.0), FP32, S)))  # type: ignore[arg-type]
    assert fold_const(ir.FloatDiv(f, fp(1.0), FP32, S)) is f
    assert fold_const(ir.Mul(f, fp(0.0), FP32, S)) is None


def test_mixed_constants_are_not_folded() -> None:
    assert fold_const(ir.Add(c(1), fp(1.0), FP32, S)) is None


def test_boolean_constants_decide_logic() -> None:
    condition, true, false = x < y, ir.ConstBool(True, S), ir.ConstBool(False, S)
    assert fold_const(ir.And(true, condition, BOOL, S)) is condition
    assert fold(ir.And(condition, false, BOOL, S)) is False
    assert fold(ir.Or(condition, true, BOOL, S)) is True
    assert fold_const(ir.Or(false, condition, BOOL, S)) is condition


def test_a_folded_constant_takes_the_dtype_of_the_left_operand() -> None:
    result = fold_const(ir.Add(c(1), ir.ConstInt(2, INDEX, S), INT64, S))
    assert isinstance(result, ir.ConstInt) and result.dtype == INT64


@pytest.mark.parametrize(
    ("cls", "left", "right", "expected"),
    [
        (ir.Add, 1.5, 2.0, 3.5),
        (ir.Sub, 1.5, 2.0, -0.5),
        (ir.Mul, 1.5, 2.0, 3.0),
        (ir.Min, 1.5, 2.0, 1.5),
        (ir.Pow, 2.0, 0.5, 2.0**0.5),
        (ir.Lt, 1.5, 2.0, True),
        (ir.Pow, -8.0, 0.5, None),
        (ir.Pow, 0.0, -1.0, None),
    ],
)
def test_two_float_constants_fold_where_the_result_is_a_float(
    cls: type, left: float, right: float, expected: object
) -> None:
    assert fold(cls(fp(left), fp(right), FP32, S)) == expected


def test_powers_with_a_neutral_side() -> None:
    assert fold(ir.Pow(c(1), x, INT64, S)) == 1
    assert fold(ir.Pow(x, c(0), INT64, S)) == 1
    assert fold_const(ir.Pow(x, c(1), INT64, S)) is x
    assert fold(ir.Pow(f, c(0), FP32, S)) == 1.0


def test_unary_operations_fold() -> None:
    assert fold(ir.Neg(c(3), INT64, S)) == -3 and fold(ir.Neg(fp(1.5), FP32, S)) == -1.5
    assert fold(ir.Abs(c(-3), INT64, S)) == 3 and fold(ir.Abs(fp(-1.5), FP32, S)) == 1.5
    assert fold(ir.BitNot(c(5), INT64, S)) == -6
    assert fold(ir.Not(ir.ConstBool(True, S), BOOL, S)) is False
    assert fold_const(ir.Not(x < y, BOOL, S)) is None
    assert fold(ir.Xor(ir.ConstBool(True, S), ir.ConstBool(False, S), BOOL, S)) is True
    assert fold_const(ir.BitShiftLeft(c(1), c(64), INT64, S)) is None


# --- simplification ---


def test_float_expressions_come_back_as_they_are() -> None:
    expr = ir.Add(f, fp(0.0), FP32, S)
    assert RewriteSimplifier()(expr) is expr
    assert CanonicalSimplifier()(expr) is expr
    compared = ir.Lt(expr, f, BOOL, S)
    assert RewriteSimplifier()(compared) is compared


def test_what_cannot_be_simplified_keeps_its_identity() -> None:
    for expr in (x + y, ir.min_(x, y), x // y, x < y):
        assert RewriteSimplifier()(expr) is expr
        assert CanonicalSimplifier()(expr) is expr


def test_division_and_modulo_inside_a_range_vanish() -> None:
    analyzer = Analyzer()
    analyzer.bind(i, 0, 8)
    assert analyzer.simplify(i // 8).value == 0  # type: ignore[attr-defined]
    assert analyzer.simplify(i % 8) is i
    assert isinstance(RewriteSimplifier()(i // 8), ir.FloorDiv)


def test_a_very_deep_expression_is_simplified_without_recursion() -> None:
    expr: ir.Expr = x
    for number in range(30_000):
        expr = ir.Add(expr, c(1) if number % 2 else y, INT64, S)
    simplified = Analyzer().simplify(expr)
    assert isinstance(simplified, ir.Add) and isinstance(simplified.right, ir.ConstInt)
    assert isinstance(CanonicalSimplifier()(expr), ir.Add)
    assert bounds(ConstIntBoundAnalyzer(), expr) == (ConstIntBound.kNegInf, ConstIntBound.kPosInf)


def test_a_shared_expression_of_exponential_tree_size_is_simplified_once_per_node() -> None:
    expr: ir.Expr = ir.Min(x, y, INT64, S)
    for _ in range(60):
        expr = ir.Mul(expr, expr, INT64, S)
    assert Analyzer().simplify(expr) is expr
    assert CanonicalSimplifier()(expr) is expr


def test_canonical_form_collects_terms_in_order_of_appearance() -> None:
    simplify = CanonicalSimplifier()
    ir.assert_structural_equal(simplify(x + y + x * c(3)), x * c(4) + y)
    ir.assert_structural_equal(simplify(y - x), ir.Add(y, ir.Neg(x, INT64, S), INT64, S))
    ir.assert_structural_equal(simplify(x + c(2) - x), c(2))
    assert simplify((x // c(4)) * c(4) + x % c(4)) is x
    ir.assert_structural_equal(simplify((x * c(6) + c(12)) // c(6)), x + c(2))
    ir.assert_structural_equal(simplify((x % c(8)) % c(4)), x % c(4))


def test_canonical_form_does_not_confuse_intermediate_expressions() -> None:
    expr = ir.Add(ir.Neg(x - z, INT64, S), ir.Mul(ir.min_(z, x), ir.Neg(z, INT64, S), INT64, S), INT64, S)
    assert not isinstance(CanonicalSimplifier()(expr), ir.ConstInt)


@pytest.mark.parametrize("divisor", [2**53 + 1, 2**63 - 1])
def test_canonical_form_keeps_divisors_that_no_float_holds(divisor: int) -> None:
    simplify = CanonicalSimplifier()
    assert simplify(x % c(divisor)).right.value == divisor  # type: ignore[attr-defined]
    assert simplify(x // c(divisor) * c(divisor) + x % c(divisor)) is x


def test_a_substituted_variable_is_replaced_until_it_is_removed() -> None:
    simplify = RewriteSimplifier()
    simplify.update(x, c(3))
    assert simplify(x + c(1)).value == 4  # type: ignore[attr-defined]
    simplify.update(x, None)
    assert isinstance(simplify(x + c(1)), ir.Add)


def test_simplify_rejects_a_negative_step_count_and_does_nothing_for_zero() -> None:
    expr = x + c(0)
    assert Analyzer().simplify(expr, 0) is expr
    with pytest.raises(ValueError):
        Analyzer().simplify(expr, -1)


# --- bounds and residues ---


def test_an_unbound_index_is_not_negative() -> None:
    analyzer = ConstIntBoundAnalyzer()
    assert bounds(analyzer, i) == (0, ConstIntBound.kPosInf)
    assert analyzer(x).is_everything()


def test_bounds_follow_the_operators() -> None:
    analyzer = ConstIntBoundAnalyzer()
    analyzer.bind(x, -3, 5)
    analyzer.update(y, ConstIntBound(2, 4))
    assert bounds(analyzer, x + y) == (-1, 8)
    assert bounds(analyzer, x * y) == (-12, 16)
    assert bounds(analyzer, x // y) == (-2, 2)
    assert bounds(analyzer, x % y) == (0, 3)
    assert bounds(analyzer, ir.Abs(x, INT64, S)) == (0, 4)
    assert bounds(analyzer, x < y) == (0, 1)
    assert bounds(analyzer, ir.Cast(x, ir.DataType.UINT8, S)) == (0, 255)
    assert analyzer(x // x).is_everything()


def test_bounds_of_bits_powers_and_casts() -> None:
    analyzer = ConstIntBoundAnalyzer()
    analyzer.update(x, ConstIntBound(1, 6))
    analyzer.update(y, ConstIntBound(2, 3))
    assert bounds(analyzer, ir.BitAnd(x, y, INT64, S)) == (0, 3)
    assert bounds(analyzer, ir.BitOr(x, y, INT64, S)) == (2, 9)
    assert bounds(analyzer, ir.BitShiftLeft(x, y, INT64, S)) == (4, 48)
    assert bounds(analyzer, ir.BitShiftRight(x, c(1), INT64, S)) == (0, 3)
    assert bounds(analyzer, ir.Pow(x, c(2), INT64, S)) == (1, 36)
    assert analyzer(ir.BitXor(x, y, INT64, S)).is_everything()
    assert bounds(analyzer, ir.Cast(x, ir.DataType.INT8, S)) == (1, 6)
    assert bounds(analyzer, ir.Cast(z, ir.DataType.INT8, S)) == (-128, 127)
    assert analyzer(ir.Cast(z, ir.DataType.UINT64, S)).is_everything()
    assert analyzer(ir.Cast(x, FP32, S)).is_everything()
    assert bounds(analyzer, fp(1.5)) == (1, 2) and analyzer(fp(math.inf)).is_everything()
    assert bounds(analyzer, ir.ConstBool(True, S)) == (1, 1)


def test_the_greatest_integer_is_a_number_and_not_the_lack_of_a_bound() -> None:
    analyzer = ConstIntBoundAnalyzer()
    greatest = c(2**63 - 1)
    for expr, value in ((ir.Sub(c(2), greatest, INT64, S), 3 - 2**63), (greatest // c(4), 2**61 - 1)):
        low, high = bounds(analyzer, expr)
        assert low <= value <= high
    assert not Analyzer().can_prove(ir.min_(x, greatest) // c(2) < c(-(2**62)))


def test_bound_repr_and_empty_ranges() -> None:
    assert repr(ConstIntBound(0, ConstIntBound.kPosInf)) == "ConstIntBound[0, +inf]"
    assert repr(ConstIntBound(ConstIntBound.kNegInf, 3)) == "ConstIntBound[-inf, 3]"
    with pytest.raises(ValueError):
        ConstIntBoundAnalyzer().bind(x, 3, 3)
    with pytest.raises(ValueError):
        ConstIntBoundAnalyzer().update(x, ConstIntBound(4, 3))
    with pytest.raises(ValueError, match="max_val_exclusive > min_val"):
        Analyzer().bind(x, 3, 3)


def test_modular_sets_are_normalised_and_follow_the_operators() -> None:
    assert repr(ModularSet(4, 6)) == "ModularSet(coeff=4, base=2)"
    analyzer = ModularSetAnalyzer()
    analyzer.update(x, ModularSet(4, 1))
    known = analyzer(x * c(2) + c(3))
    assert (known.coeff, known.base) == (8, 5)
    known = analyzer(ir.BitAnd(x, c(3), INT64, S))
    assert (known.coeff, known.base) == (4, 1)
    analyzer.unbind(x)
    assert analyzer(x).is_everything()


def test_a_modular_set_with_a_negative_coefficient_is_rejected_where_it_is_stated() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        ModularSetAnalyzer().update(x, ModularSet(-4, 1))


def test_a_cast_that_keeps_the_value_keeps_the_residue_class() -> None:
    known = ModularSetAnalyzer()
    narrow = ir.Var("m", ir.ScalarType(ir.DataType.INT16), ir.Span.unknown())
    known.update(narrow, ModularSet(6, 3))
    cast = ir.Cast(narrow, ir.DataType.INT32, ir.Span.unknown())
    assert repr(known(cast)) == "ModularSet(coeff=6, base=3)"
    assert known(ir.Cast(cast, ir.DataType.INT8, ir.Span.unknown())).is_everything()
    seven = ir.ConstInt(7, ir.DataType.INT64, ir.Span.unknown())
    assert known(ir.Cast(seven, ir.DataType.INT8, ir.Span.unknown())).is_exact()


def test_a_cast_that_wraps_keeps_the_low_bits_only() -> None:
    known = ModularSetAnalyzer()
    known.update(x, ModularSet(512, 200))
    assert repr(known(ir.Cast(x, ir.DataType.INT8, S))) == "ModularSet(coeff=256, base=200)"
    assert repr(known(ir.Cast(x, ir.DataType.INT16, S))) == "ModularSet(coeff=512, base=200)"


def test_modular_constraints_combine_by_the_chinese_remainder_theorem() -> None:
    analyzer = ModularSetAnalyzer()
    leave = analyzer.enter_constraint(ir.and_(ir.eq(x % c(4), c(1)), ir.eq(x % c(3), c(2))))
    assert leave is not None
    assert (analyzer(x).coeff, analyzer(x).base) == (12, 5)
    leave()
    assert analyzer(x).is_everything()
    assert analyzer.enter_constraint(x < y) is None


# --- comparisons and symbolic intervals ---


def test_comparisons_chain() -> None:
    analyzer = TransitiveComparisonAnalyzer()
    leave = analyzer.enter_constraint(ir.and_(x < y, y <= z))
    assert analyzer.try_compare(x, z) == CompareResult.kLT
    assert analyzer.try_compare(x + c(1), z) == CompareResult.kLE
    assert analyzer.try_compare(x, z, propagate_inequalities=False) == CompareResult.kUnknown
    leave()
    assert analyzer.try_compare(x, z) == CompareResult.kUnknown
    assert CompareResult.kLE & CompareResult.kGE == CompareResult.kEQ
    assert analyzer.try_compare(c(1), c(2)) == CompareResult.kLT
    assert analyzer.try_compare(f, f) == CompareResult.kUnknown


def test_contradicting_facts_are_inconsistent() -> None:
    analyzer = TransitiveComparisonAnalyzer()
    analyzer.enter_constraint(x < y)
    analyzer.enter_constraint(x > y)
    assert analyzer.try_compare(x, y) == CompareResult.kInconsistent


def test_a_bound_variable_compares_with_its_limits() -> None:
    analyzer = TransitiveComparisonAnalyzer()
    analyzer.bind(x, 2, 5)
    assert analyzer.try_compare(x, c(1)) == CompareResult.kGT
    assert analyzer.try_compare(x, c(4)) == CompareResult.kLE
    analyzer.unbind(x)
    assert analyzer.try_compare(x, c(4)) == CompareResult.kUnknown


def test_symbolic_intervals() -> None:
    analyzer = IntSetAnalyzer()
    assert analyzer(x).is_single_point()
    analyzer.bind(x, c(0), y)
    interval = analyzer(x)
    ir.assert_structural_equal(interval.max, ir.Sub(y, c(1), INT64, S))
    assert IntSet.everything().is_everything() and not IntSet.everything().is_nothing()
    assert repr(IntSet.single_point(x)) == "IntSet[x, x]"
    assert repr(IntSet.everything()) == "IntSet[None, None]"
    assert analyzer(f).is_single_point() or analyzer(f).is_everything()


# --- proofs ---


def test_proofs_use_bounds_chains_and_symbolic_ends() -> None:
    analyzer = Analyzer()
    analyzer.bind(i, 0, 8)
    assert analyzer.can_prove(i < 8) and not analyzer.can_prove(i < 7)
    assert analyzer.can_prove_greater_equal(i + 1, 1) and analyzer.can_prove_less(i, 8)
    assert analyzer.can_prove_equal(x + y, y + x)
    analyzer.int_set.bind(j, c(0), x)
    assert analyzer.can_prove(j < x)
    assert not analyzer.can_prove(ir.or_(x < y, y < x))


def test_a_bound_expression_is_known_everywhere_until_unbound() -> None:
    analyzer = Analyzer()
    analyzer.bind(x, y + c(2))
    assert analyzer.can_prove(x > y)
    analyzer.unbind(x)
    assert not analyzer.can_prove(x > y)
    assert analyzer.int_set(x).is_single_point() and analyzer.int_set(x).min is x


def test_the_ends_of_a_range_are_integers() -> None:
    with pytest.raises(TypeError, match="ends of a range are integers"):
        Analyzer().bind(x, c(0), 8)
    with pytest.raises(TypeError, match="ends of a range are integers"):
        Analyzer().bind(x, 0, y)  # type: ignore[arg-type]


def test_constraints_nest_and_are_left_in_reverse_order() -> None:
    analyzer = Analyzer()
    outer = analyzer.constraint_context(x > c(3))
    inner = analyzer.constraint_context(ir.not_(x < c(5)))
    assert analyzer.can_prove(x >= c(5))
    with pytest.raises(pypto.InternalError):
        outer.exit_scope()
    inner.exit_scope()
    assert analyzer.can_prove(x > c(3)) and not analyzer.can_prove(x >= c(5))
    outer.exit_scope()
    outer.exit_scope()
    assert not analyzer.can_prove(x > c(3))


def test_a_constraint_ends_with_its_block() -> None:
    analyzer = Analyzer()
    with analyzer.constraint_context(ir.eq(x, c(4))):
        assert analyzer.can_prove(ir.eq(x + c(1), c(5)))
    assert not analyzer.can_prove(ir.eq(x, c(4)))
