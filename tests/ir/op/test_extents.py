"""Proofs and folding arithmetic on extents never contradict the numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from pypto import ir
from pypto.ir.op import extents as x
from tests.ir.op.operands import NOWHERE, symbol

VARS = [symbol(name) for name in "abc"]
VALUES = st.tuples(*[st.integers(-40, 40)] * 3)

_OPERATIONS: dict[type, Callable[[int, int], int]] = {
    ir.Add: operator.add, ir.Sub: operator.sub, ir.Mul: operator.mul, ir.Min: min, ir.Max: max,
    ir.FloorDiv: operator.floordiv, ir.FloorMod: operator.mod,
}  # fmt: skip


def value(expr: ir.Expr, values: tuple[int, ...]) -> int:
    if isinstance(expr, ir.ConstInt):
        return expr.value
    if isinstance(expr, ir.Var):
        return values[next(i for i, var in enumerate(VARS) if var is expr)]
    if isinstance(expr, ir.Neg):
        return -value(expr.operand, values)
    if isinstance(expr, ir.Cast):
        return value(expr.operand, values)
    assert isinstance(expr, ir.BinaryExpr)
    return _OPERATIONS[type(expr)](value(expr.left, values), value(expr.right, values))


def _combined(children: st.SearchStrategy[ir.Expr]) -> st.SearchStrategy[ir.Expr]:
    build = st.sampled_from([ir.add, ir.sub, ir.mul, ir.min_, ir.max_])
    divide = st.sampled_from([ir.floordiv, ir.mod])
    divisors = st.integers(1, 5).map(x.const)
    return st.one_of(
        st.builds(lambda f, a, b: f(a, b), build, children, children),
        st.builds(lambda f, a, b: f(a, b), divide, children, divisors),
        st.builds(ir.neg, children),
        st.builds(lambda a: ir.cast(a, ir.INT64), children),
    )


EXPRS = st.recursive(
    st.one_of(st.sampled_from(VARS), st.integers(-9, 9).map(x.const)), _combined, max_leaves=8
)


@settings(max_examples=150, deadline=None)
@given(EXPRS, EXPRS, VALUES)
def test_proofs_hold_for_every_assignment(a: ir.Expr, b: ir.Expr, values: tuple[int, ...]) -> None:
    left, right = value(a, values), value(b, values)
    assert x.equal(a, b) in ((left == right), None)
    assert x.less_equal(a, b) in ((left <= right), None)
    if x.negative(a):
        assert left < 0
    if x.is_zero(a):
        assert left == 0


@settings(max_examples=150, deadline=None)
@given(EXPRS, EXPRS, VALUES, st.integers(1, 7))
def test_folding_keeps_the_value(a: ir.Expr, b: ir.Expr, values: tuple[int, ...], divisor: int) -> None:
    left, right = value(a, values), value(b, values)
    assert value(x.add(a, b), values) == left + right
    assert value(x.sub(a, b), values) == left - right
    assert value(x.mul(a, b), values) == left * right
    assert value(x.minimum(a, b), values) == min(left, right)
    assert value(x.maximum(a, b), values) == max(left, right)
    assert value(x.floordiv(a, divisor), values) == left // divisor
    assert value(x.ceildiv(a, divisor), values) == -(-left // divisor)


def test_equal_terms_cancel() -> None:
    a, b, _ = VARS
    eight = x.const(8)
    rows = x.sub(ir.mul(ir.add(a, x.ONE), eight), ir.mul(a, eight))
    assert isinstance(rows, ir.ConstInt) and rows.value == 8
    assert x.sub(ir.add(ir.add(a, b), x.const(16)), ir.add(b, x.const(16))) is a
    assert x.equal(ir.add(a, b), ir.add(b, a)) is True and x.equal(a, b) is None
    assert x.equal(ir.add(a, x.ONE), a) is False


def test_min_and_max_are_seen_through() -> None:
    a, b, _ = VARS
    assert x.less_equal(ir.min_(a, x.const(64)), x.const(64)) is True
    assert x.less_equal(x.ZERO, ir.max_(a, x.ZERO)) is True
    assert x.less_equal(ir.max_(a, x.const(65)), x.const(64)) is False
    assert x.less_equal(a, ir.min_(a, b)) is None and x.less_equal(ir.min_(a, b), a) is True
    assert x.minimum(a, ir.add(a, x.ONE)) is a


def test_deep_and_shared_expressions_are_cheap() -> None:
    shared: ir.Expr = VARS[0]
    for _ in range(64):
        shared = ir.max_(shared, ir.add(shared, shared))
    chain: ir.Expr = VARS[1]
    for _ in range(20_000):
        chain = ir.Add(chain, x.ONE, ir.INDEX, NOWHERE)
    assert x.equal(shared, chain) is None and x.less_equal(chain, shared) is None
    assert x.show(chain).count("?") == 1


def test_extents_show_as_readable_lists() -> None:
    a, b, _ = VARS
    assert x.show_all([x.const(4), a, ir.add(a, b), ir.min_(a, x.ONE)]) == "[4, a, (a + b), min(a, 1)]"
