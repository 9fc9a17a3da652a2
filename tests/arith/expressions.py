"""Random integer and boolean expressions over a few variables, and their values."""

from __future__ import annotations

from hypothesis import strategies as st

from pypto import ir
from pypto.testing.interpreter import evaluate

S = ir.Span.unknown()
INDEX, INT64, BOOL, FP32 = ir.DataType.INDEX, ir.DataType.INT64, ir.DataType.BOOL, ir.DataType.FP32

x, y, z = (ir.Var(name, ir.ScalarType(INT64), S) for name in "xyz")
i, j = (ir.Var(name, ir.ScalarType(INDEX), S) for name in "ij")
f = ir.Var("f", ir.ScalarType(FP32), S)
VARIABLES = (x, y, z)


def c(value: int) -> ir.ConstInt:
    return ir.ConstInt(value, INT64, S)


def value_of(expr: ir.Expr, values: dict[ir.Var, int]) -> int:
    return evaluate(expr, values)


def _binary(cls: type[ir.BinaryExpr]):
    return lambda pair: cls(pair[0], pair[1], INT64, S)


def _unary(cls: type[ir.UnaryExpr]):
    return lambda operand: cls(operand, INT64, S)


_leaves = st.one_of(st.sampled_from(VARIABLES), st.integers(-8, 8).map(c))


def _extend(children: st.SearchStrategy[ir.Expr]) -> st.SearchStrategy[ir.Expr]:
    pairs = st.tuples(children, children)
    divided = st.tuples(children, st.sampled_from([-3, -1, 1, 2, 3, 4, 6, 8]).map(c))
    small = st.tuples(children, st.integers(0, 3).map(c))
    masked = st.tuples(children, st.sampled_from([0, 1, 3, 7, 12]).map(c))
    return st.one_of(
        *(pairs.map(_binary(cls)) for cls in (ir.Add, ir.Sub, ir.Mul, ir.Min, ir.Max)),
        *(divided.map(_binary(cls)) for cls in (ir.FloorDiv, ir.FloorMod)),
        *(small.map(_binary(cls)) for cls in (ir.Pow, ir.BitShiftLeft, ir.BitShiftRight)),
        *(masked.map(_binary(cls)) for cls in (ir.BitAnd, ir.BitOr, ir.BitXor)),
        *(children.map(_unary(cls)) for cls in (ir.Neg, ir.Abs, ir.BitNot, ir.Cast)),
    )


int_exprs = st.recursive(_leaves, _extend, max_leaves=10)

_compared = st.tuples(st.sampled_from([ir.Eq, ir.Ne, ir.Lt, ir.Le, ir.Gt, ir.Ge]), int_exprs, int_exprs).map(
    lambda parts: parts[0](parts[1], parts[2], BOOL, S)
)

bool_exprs = st.recursive(
    _compared,
    lambda children: st.one_of(
        st.tuples(st.sampled_from([ir.And, ir.Or, ir.Xor]), children, children).map(
            lambda parts: parts[0](parts[1], parts[2], BOOL, S)
        ),
        children.map(lambda operand: ir.Not(operand, BOOL, S)),
    ),
    max_leaves=4,
)

assignments = st.fixed_dictionaries({var: st.integers(-20, 20) for var in VARIABLES})
