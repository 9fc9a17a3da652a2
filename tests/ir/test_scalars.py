from __future__ import annotations

import inspect

import pytest

from pypto import ir

from .nodes import S, const, tensor, var


def test_left_dtype_wins_on_equal_width():
    x = var()
    assert (x + 5).type.dtype is ir.INT64
    assert (5 + x).type.dtype is ir.INDEX
    assert ir.add(var(dtype=ir.UINT32), var(dtype=ir.INT32)).type.dtype is ir.UINT32


def test_narrower_operand_is_cast():
    a = var("a", ir.INT32)
    total = a + 5
    assert total.type.dtype is ir.INDEX
    assert isinstance(total.left, ir.Cast) and total.left.operand is a
    assert isinstance(total.right, ir.ConstInt)
    short, wide = var("s", ir.INT16), var()
    for build in (ir.add, ir.sub, ir.mul, ir.truediv, ir.floordiv, ir.mod, ir.pow, ir.min_, ir.max_):
        made = build(short, wide)
        assert made.type.dtype is ir.INT64 and made.right is wide
        assert isinstance(made.left, ir.Cast) and made.left.operand is short


@pytest.mark.parametrize(
    ("build", "shape", "dtype"),
    [
        (lambda: var(dtype=ir.UINT64) + 5, "Add(Var, Cast(ConstInt))", ir.UINT64),
        (lambda: var(dtype=ir.FP16) + 2.0, "Add(Cast(Var), ConstFloat)", ir.FP32),
        (lambda: var() / var(), "FloatDiv(Var, Var)", ir.INT64),
        (lambda: var(dtype=ir.INT32) < var(), "Lt(Cast(Var), Var)", ir.BOOL),
        (lambda: var() << var(dtype=ir.INT32), "BitShiftLeft(Var, Cast(Var))", ir.INT64),
        (lambda: -var(dtype=ir.BOOL), "Neg(Var)", ir.BOOL),
        (lambda: var() + True, "Add(Var, ConstInt)", ir.INT64),
    ],
)
def test_python_operators_cast_what_is_narrower(build, shape, dtype):
    def spelled(node):
        below = ", ".join(spelled(child) for child in node._children())
        return type(node).__name__ + (f"({below})" if below else "")

    made = build()
    assert spelled(made) == shape and made.type.dtype is dtype


def test_the_minimum_of_int32_and_int64_is_int64():
    a = var("a", ir.INT32)
    assert ir.min_(a, var()).type.dtype is ir.INT64


def test_comparison_helpers_give_bool_and_constructors_the_given_dtype():
    x, y = var(), var("y")
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        node = getattr(ir, name.capitalize())
        helped = getattr(ir, name)(x, y)
        assert type(helped) is node and helped.type.dtype is ir.BOOL
        assert node(x, y, ir.INT64, S).type.dtype is ir.INT64


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ir.bit_not(var(dtype=ir.FP32)), "requires integer dtype"),
        (lambda: ~var(dtype=ir.FP32), "requires integer dtype"),
        (lambda: ir.bit_and(var(dtype=ir.FP32), var()), "bit_and requires integer dtype"),
        (lambda: ir.bit_or(var(), var(dtype=ir.FP32)), "bit_or requires integer dtype"),
        (lambda: var(dtype=ir.FP32) ^ var(), "bit_xor requires integer dtype"),
        (lambda: var() << 2.0, "bit_shift_left requires integer dtype"),
        (lambda: 2.0 >> var(), "bit_shift_right requires integer dtype"),
        (lambda: tensor(4) + var(), "ScalarType"),
        (lambda: 5 * tensor(4), "ScalarType"),
        (lambda: var(dtype=ir.BOOL) == var(dtype=ir.BOOL), "eq does not accept bool"),
        (lambda: var(dtype=ir.BOOL) != True, "ne does not accept bool"),  # noqa: E712
        (lambda: var() + 2.0, "same numeric dtype category, got int64 and fp32"),
        (lambda: ir.eq(var(dtype=ir.BOOL), var(dtype=ir.BOOL)), "does not accept bool"),
        (lambda: var(dtype=ir.FP32) + 2, "same numeric dtype category"),
        (lambda: var(dtype=ir.DataType.TASK_ID) + 2, "numeric scalar dtype"),
        (lambda: var() + "2", "Cannot convert str"),
        (lambda: var() == None, "Cannot convert NoneType"),  # noqa: E711
    ],
)
def test_unfit_operands_are_type_errors(build, message):
    with pytest.raises(TypeError, match=message):
        build()


def test_reflected_operators_keep_operand_order():
    x = var()
    reflected = {
        ir.Add: 5 + x, ir.Sub: 5 - x, ir.Mul: 5 * x, ir.FloatDiv: 5 / x, ir.FloorDiv: 5 // x,
        ir.FloorMod: 5 % x, ir.Pow: 5**x, ir.BitAnd: 5 & x, ir.BitOr: 5 | x, ir.BitXor: 5 ^ x,
        ir.BitShiftLeft: 5 << x, ir.BitShiftRight: 5 >> x,
    }  # fmt: skip
    for node, made in reflected.items():
        assert type(made) is node and made.left.value == 5 and made.right is x


def test_comparisons_that_begin_with_a_number_are_swapped():
    x, five = var(), 5
    swapped = {
        ir.Gt: five < x, ir.Ge: five <= x, ir.Lt: five > x, ir.Le: five >= x, ir.Eq: five == x,
        ir.Ne: five != x,
    }  # fmt: skip
    for node, made in swapped.items():
        assert type(made) is node and made.left is x and made.right.value == 5


def test_operators_record_the_line_that_evaluates_them():
    x = var()
    line = inspect.currentframe().f_lineno + 1
    made = [x + 1, 1 - x, x * 2, x / 2, x // 2, 2 % x, x**2, x < 1, x != 1, x & 1, 1 << x, -x, ~x, x >= 1]
    for each in made:
        span = each.span
        assert (span.filename, span.begin_line, span.begin_column) == (__file__, line, -1)
        assert all(child.span is span for child in each._children() if isinstance(child, ir.ConstInt))


@pytest.mark.parametrize(
    "use", [lambda x: x @ x, lambda x: +x, abs, lambda x: divmod(x, 2), round, len, lambda x: x[0]]
)
def test_operators_that_expressions_do_not_have_are_type_errors(use):
    with pytest.raises(TypeError):
        use(var())


def test_logical_helpers_leave_operands_alone():
    a = var("a", ir.INT32)
    assert ir.not_(a).type.dtype is ir.BOOL
    assert ir.and_(a, a).left is a
    assert ir.neg(var(dtype=ir.BOOL)).type.dtype is ir.BOOL


def test_constants_check_their_values():
    assert ir.ConstInt(True, ir.INT64, S).value == 1
    for bad in (2**63, 1.5, None):
        with pytest.raises(TypeError):
            ir.ConstInt(bad, ir.INT64, S)
    with pytest.raises(TypeError):
        ir.ConstBool(1, S)
    with pytest.raises(TypeError, match=r"ConstFloat\.value must be an int or a float, got str"):
        ir.ConstFloat("1", ir.FP32, S)
    assert ir.ConstFloat(1, ir.FP32, S).value == 1.0


def test_equality_builds_a_node_and_hash_stays_identity():
    x, y = var(), var("y")
    assert isinstance(x == y, ir.Eq)
    assert {x: 1}[x] == 1 and y not in {x: 1}


def test_abstract_classes_cannot_be_instantiated():
    for cls in (ir.Expr, ir.BinaryExpr, ir.UnaryExpr, ir.Stmt, ir.Type, ir.ShapedType, ir.ScopeStmt):
        with pytest.raises(TypeError):
            cls()


def test_numbers_are_not_accepted_where_an_expression_is_needed():
    with pytest.raises(TypeError):
        ir.add(var(), 5)
    with pytest.raises(TypeError):
        ir.Add(var(), 5, ir.INT64, S)
    assert const(5).value == 5


def test_a_bool_operand_is_named_before_any_other_trouble():
    with pytest.raises(TypeError, match="does not accept bool dtype"):
        ir.add(var(dtype=ir.DataType.TASK_ID), var(dtype=ir.BOOL))


def test_operands_that_are_not_scalar_are_named_with_node_and_type():
    with pytest.raises(
        TypeError, match="Expression must be ScalarExpr or Var with ScalarType, got Var of type TensorType"
    ):
        ir.add(ir.Var("t", ir.TensorType([4], ir.FP32), S), var())
